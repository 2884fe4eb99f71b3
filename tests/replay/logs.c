/* Says something to the system's log, by the C library alone. */
#include <stdio.h>
#include <syslog.h>

int main(void)
{
	openlog("prophet-test", LOG_NDELAY, LOG_USER);
	syslog(LOG_INFO, "heard");
	closelog();
	return puts("said") < 0;
}
