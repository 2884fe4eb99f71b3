/* What system calls by number say of time and use, of files and of who one is, of children and of keys, and handlers that one installs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int handled;

static void handler(int sig)
{
	handled++;
}

static void say(const char *what, long r, const void *p, unsigned n)
{
	unsigned i;
	printf("%s %ld", what, r);
	for (i = 0; i < n; i++)
		printf(" %02x", ((const unsigned char *)p)[i]);
	printf("\n");
}

/* Files that the run makes are others in a re-execution, and later. */
static void files(void)
{
	int fd = open("made", O_RDWR | O_CREAT, 0600);
	struct stat st;
	struct statx sx;
	struct statfs fs;
	memset(&st, 0, sizeof st);
	memset(&sx, 0, sizeof sx);
#ifdef SYS_stat
	say("stat", syscall(SYS_stat, "made", &st), &st, sizeof st);
	say("lstat", syscall(SYS_lstat, ".", &st), &st, sizeof st);
#endif
	say("stat", write(fd, "data", 4), 0, 0);
	say("fstat", syscall(SYS_fstat, fd, &st), &st, sizeof st);
	say("newfstatat", syscall(SYS_newfstatat, AT_FDCWD, "made", &st, 0), &st, sizeof st);
	say("newfstatat", syscall(SYS_newfstatat, AT_FDCWD, "none", &st, 0), 0, 0);
	say("newfstatat", syscall(SYS_newfstatat, AT_FDCWD, "made", 0, 0), 0, 0);
	say("statx", syscall(SYS_statx, AT_FDCWD, "made", 0, STATX_ALL, &sx), &sx, sizeof sx);
	say("statfs", syscall(SYS_statfs, "made", &fs), &fs, sizeof fs);
	say("fstatfs", syscall(SYS_fstatfs, fd, &fs), &fs, sizeof fs);
	say("close", syscall(SYS_close, fd), 0, 0);
	unlink("made");
}

static void shape(void)
{
	struct utsname name;
	unsigned long cpus[128];
	unsigned node = 77;
	long n = syscall(SYS_sched_getaffinity, 0, sizeof cpus, cpus);
	say("uname", syscall(SYS_uname, &name), &name, sizeof name);
	say("sched_getaffinity", n, cpus, n > 0 ? (unsigned)n : 0);
	say("getcpu", syscall(SYS_getcpu, 0, &node, 0), &node, sizeof node);
	say("getpgid", syscall(SYS_getpgid, 0), 0, 0);
	say("getsid", syscall(SYS_getsid, 0), 0, 0);
#ifdef SYS_getpgrp
	say("getpgrp", syscall(SYS_getpgrp), 0, 0);
#endif
}

/* What a child has used is not what it uses in a re-execution. */
static void children(void)
{
	struct rusage u;
	siginfo_t si;
	int i, status = 0;
	for (i = 0; i < 2; i++) {
		pid_t child = fork();
		if (!child)
			_exit(3);
		memset(&u, 0, sizeof u);
		if (i)
			say("waitid", syscall(SYS_waitid, P_PID, child, &si, WEXITED, &u), &u, sizeof u);
		else
			say("wait4", syscall(SYS_wait4, child, &status, 0, &u), &u, sizeof u);
		printf("status %d\n", i ? si.si_status : status);
	}
}

/* The machine may have none, or refuse. */
static void keys(void)
{
	char data[8] = "", about[64] = "";
	long key = syscall(SYS_add_key, "user", "prophet", "data", 4, KEY_SPEC_PROCESS_KEYRING);
	say("add_key", key, 0, 0);
	say("keyring", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 0), 0, 0);
	say("read", syscall(SYS_keyctl, KEYCTL_READ, key, data, 3), data, sizeof data);
	say("describe", syscall(SYS_keyctl, KEYCTL_DESCRIBE, key, about, sizeof about), about, sizeof about);
}

int main(void)
{
	struct {
		void (*fn)(int);
		unsigned long flags, rest[2];
	} k, was;
	struct timespec ts = {0, 0};
	struct timeval tv;
	struct rusage u;
	struct sysinfo si;
	struct tms tm;
	struct itimerval it = {{0, 0}, {0, 50000}}, old;
	struct sigaction a = {.sa_handler = handler};
	unsigned cpu;
	int sig;
#ifdef SYS_time
	time_t t;
	say("time", syscall(SYS_time, &t), &t, sizeof t);
	say("time", syscall(SYS_time, 0), 0, 0);
#endif
	say("clock_gettime", syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts), &ts, sizeof ts);
	say("clock_gettime", syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts), &ts, sizeof ts);
	say("clock_gettime", syscall(SYS_clock_gettime, 99, &ts), 0, 0);
	say("clock_getres", syscall(SYS_clock_getres, CLOCK_MONOTONIC, &ts), &ts, sizeof ts);
	say("gettimeofday", syscall(SYS_gettimeofday, &tv, 0), &tv, sizeof tv);
	say("getcpu", syscall(SYS_getcpu, &cpu, 0, 0), &cpu, sizeof cpu);
	say("times", syscall(SYS_times, &tm), &tm, sizeof tm);
	say("getrusage", syscall(SYS_getrusage, RUSAGE_SELF, &u), &u, sizeof u);
	say("sysinfo", syscall(SYS_sysinfo, &si), &si, sizeof si);
	files();
	shape();
	children();
	keys();
	ts = (struct timespec){0, 1000000};
	say("nanosleep", syscall(SYS_nanosleep, &ts, 0), 0, 0);
	say("clock_nanosleep", syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, 0), 0, 0);

	/* As the C library has them, so that they come back as it does. */
	sigaction(SIGALRM, &a, 0);
	say("rt_sigaction", syscall(SYS_rt_sigaction, SIGALRM, 0, &k, 8), 0, 0);
	for (sig = SIGUSR1; sig <= SIGALRM; sig += SIGALRM - SIGUSR1) {
		say("rt_sigaction", syscall(SYS_rt_sigaction, sig, &k, &was, 8), 0, 0);
		say("rt_sigaction", syscall(SYS_rt_sigaction, sig, 0, &was, 8), 0, 0);
		printf("handler %d %d\n", was.fn == handler, was.flags == k.flags);
	}
	raise(SIGUSR1);
	printf("handled %d\n", handled);
	syscall(SYS_kill, getpid(), SIGUSR1);
	printf("handled %d\n", handled);
	say("setitimer", syscall(SYS_setitimer, ITIMER_REAL, &it, &old), &old, sizeof old);
	pause();
	printf("handled %d\n", handled);
	syscall(SYS_setitimer, ITIMER_REAL, &it, 0);
	ts.tv_sec = 10;
	say("nanosleep", syscall(SYS_nanosleep, &ts, &ts), &ts, sizeof ts);
	sigaction(SIGALRM, 0, &a);
	printf("handled %d, by the same %d\n", handled, a.sa_handler == handler);
	return 0;
}
