/* clock_gettime: it goes on, and refuses what is no clock. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

int main(void)
{
	struct timespec a, b;
	int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_BOOTTIME};
	for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
		int r = clock_gettime(clocks[i], &a), s = clock_gettime(clocks[i], &b);
		printf("%d %d %s\n", r, s, b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec >= a.tv_nsec) ? "on" : "back");
	}
	errno = 0;
	printf("%d", clock_gettime(9999, &a));
	printf(" %d\n", errno == EINVAL);
	return 0;
}
