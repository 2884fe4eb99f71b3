// Run as a set-uid program: the loader drops LD_PRELOAD or the recorder stays away.
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/auxv.h>

int main(void)
{
	char line[512];
	int seen = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	while (f && fgets(line, sizeof line, f))
		seen += strstr(line, "control") != 0;
	printf("secure %d, uid differs %d, a control page is mapped: %d\n", getauxval(AT_SECURE) != 0, geteuid() != getuid(), seen != 0);
	return 0;
}
