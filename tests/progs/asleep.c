/* asleep TRACE REPLAYD: a host that uses all of prophet.h has one thread until it asks for the version of Go. */
#include "../../cabi/prophet.h"
#include <stdio.h>
#include <string.h>

static int threads(void)
{
	char line[256];
	int n = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		sscanf(line, "Threads: %d", &n);
	if (f)
		fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	struct prophet_reexec_options o = {0};
	struct prophet_result result = {0};
	struct prophet_event e;
	prophet_trace *trace;
	prophet_reexec *x;
	const char *version;
	int n = 0, r;
	if (argc != 3)
		return 2;
	r = prophet_open(argv[1], &trace);
	for (e.size = sizeof e; r >= 0 && (r = prophet_next(trace, &e)) == 1; n++)
		;
	prophet_close(trace);
	printf("%s, %s, threads %d\n", r ? prophet_reason(r) : "read", n > 10 ? "events" : "none", threads());
	o.size = sizeof o;
	o.in = o.out = -1;
	o.replayd = argv[2];
	r = prophet_reexec_start(argv[1], 0, &o, &x);
	result.size = sizeof result;
	if (r == 0)
		r = prophet_reexec_wait(x, -1, &result);
	printf("ended %d, status %d, threads %d\n", r, result.status, threads());
	prophet_reexec_free(x);
	printf("%s, threads %d\n", prophet_release(), threads());
	version = prophet_version();
	printf("go %s, awake %d\n", strstr(version, " go1") ? "found" : "missing", threads() > 1);
	return 0;
}
