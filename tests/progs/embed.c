/* The C interface: marks, and the Go runtime that starts when it is first needed. Prints what does not depend on the
 * run; without the library everything is a no-op. */
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

int main(void)
{
	prophet_begin("work");
	prophet_mark("point");
	prophet_end("work");
	printf("recording %d\n", prophet_recording());
	printf("threads %d\n", threads());
	if (prophet_version) {
		const char *v = prophet_version();
		printf("go %s, awake %d, same %d\n", strstr(v, " go1") ? "found" : v, threads() > 1, v == prophet_version());
	}
	return 0;
}
