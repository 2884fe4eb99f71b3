/* Clocks other than clock_gettime. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <time.h>

extern int __gettimeofday(struct timeval *, void *);
extern int old_ntp_gettime(struct ntptimeval *) __asm__("ntp_gettime");
extern int __adjtimex(struct timex *);

static void show(const char *what, long r)
{
	int e = errno;
	printf("%s %ld %d\n", what, r, r < 0 ? e : 0);
}

static time_t (*pointer)(time_t *) = time; /* a relocation with data, not a call */

int main(void)
{
	time_t a = 0, b;
	struct timeval tv = {0}, tw = {0};
	struct timespec ts = {0};
	struct timezone tz;
	struct tms tms;
	struct rusage ru;
	struct timeb tb = {0};
	struct timex tx = {0};
	struct ntptimeval nt = {0};
	b = time(&a);
	printf("time %d %d %d\n", a == b, a > 1600000000, pointer(0) - a <= 1);
	show("gettimeofday", gettimeofday(&tv, 0));
	printf("%d\n", tv.tv_sec - a <= 1);
	show("gettimeofday tz", gettimeofday(&tv, &tz));
	show("gettimeofday nothing", gettimeofday(0, 0));
	show("__gettimeofday", __gettimeofday(&tw, 0));
	printf("%d\n", timercmp(&tw, &tv, >=) && tw.tv_sec - tv.tv_sec <= 1);
	show("clock_getres", clock_getres(CLOCK_MONOTONIC, &ts));
	printf("%ld\n", ts.tv_nsec);
	show("clock_getres null", clock_getres(CLOCK_REALTIME, 0));
	show("clock_getres bad", clock_getres(77, &ts));
	show("clock_settime bad", clock_settime(CLOCK_MONOTONIC, &ts));
	ts.tv_nsec = -1;
	show("clock_settime wrong", clock_settime(CLOCK_REALTIME, &ts));
	tv.tv_usec = -1;
	show("settimeofday wrong", settimeofday(&tv, 0));
	printf("clock %d\n", clock() >= 0);
	printf("times %d %d\n", times(&tms) > 0, tms.tms_utime >= 0);
	printf("times null %d\n", times(0) > 0);
	show("getrusage", getrusage(RUSAGE_SELF, &ru));
	printf("%d\n", ru.ru_maxrss > 0);
	show("getrusage bad", getrusage(12, &ru));
	show("getrusage nowhere", getrusage(RUSAGE_SELF, (void *)8));
	show("timespec_get", timespec_get(&ts, TIME_UTC));
	show("timespec_get bad", timespec_get(&ts, 7));
	show("timespec_getres", timespec_getres(&ts, TIME_UTC));
	show("ftime", ftime(&tb));
	printf("%d\n", tb.time - a <= 1);
	printf("adjtime %d\n", adjtime(0, &tv) == 0 || errno == EPERM);
	printf("adjtimex %d\n", adjtimex(&tx) >= 0);
	tx.modes = 0;
	printf("__adjtimex %d\n", __adjtimex(&tx) >= 0);
	printf("ntp_adjtime %d\n", ntp_adjtime(&tx) >= 0);
	printf("clock_adjtime %d\n", clock_adjtime(CLOCK_REALTIME, &tx) >= 0);
	show("adjtimex nowhere", adjtimex((void *)8));
	printf("ntp_gettime %d\n", old_ntp_gettime(&nt) >= 0);
	printf("ntp_gettimex %d\n", ntp_gettimex(&nt) >= 0);
	return 0;
}
