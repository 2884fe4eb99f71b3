// What a program can see of its own process: with the recorder all of it must be as without.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void status(void)
{
	static const char *wanted[] = {"Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapEff", "NoNewPrivs", "Seccomp", "Uid", "Gid", "FDSize"};
	char line[512];
	size_t i;
	FILE *f = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, f))
		for (i = 0; i < sizeof wanted / sizeof *wanted; i++)
			if (!strncmp(line, wanted[i], strlen(wanted[i])) && line[strlen(wanted[i])] == ':' && strcmp(wanted[i], "FDSize"))
				fputs(line, stdout);
	fclose(f);
}

int main(int argc, char **argv)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct rlimit r;
	struct timespec ts;
	sigset_t set;
	int i, fd[20], started_with = errno;
	printf("errno at start %d, umask %o\n", started_with, umask(022));
	for (i = 0; i < 1000; i++) {
		pthread_mutex_lock(&m);
		clock_gettime(CLOCK_MONOTONIC, &ts);
		pthread_mutex_unlock(&m);
	}
	status();
	printf("single threaded %d\n", __libc_single_threaded);
	for (i = 0; i < 20; i++)
		fd[i] = open("/dev/null", O_RDWR);
	printf("descriptors %d to %d\n", fd[0], fd[19]);
	close(fd[7]);
	printf("the lowest free one is %d\n", dup(0));
	getrlimit(RLIMIT_NOFILE, &r);
	printf("files %ld %ld\n", (long)r.rlim_cur, (long)r.rlim_max);
	sigpending(&set);
	for (i = 1; i < 65; i++)
		if (sigismember(&set, i) == 1)
			printf("signal %d pending\n", i);
	for (i = 1; i < 65; i++) {
		struct sigaction sa;
		if (sigaction(i, 0, &sa) == 0 && sa.sa_handler != SIG_DFL)
			printf("signal %d has a handler\n", i);
	}
	fflush(stdout);
	system("ulimit -n; ulimit -Hn; grep -E '^(SigBlk|SigIgn|SigCgt|Threads)' /proc/self/status");
	errno = 77;
	pthread_mutex_lock(&m);
	write(1, "", 0);
	pthread_mutex_unlock(&m);
	printf("errno %d\n", errno);
	write(-1, "", 1);
	printf("errno %d\n", errno);
	i = unshare(CLONE_NEWUSER);
	printf("unshare %d %s\n", i, i ? strerror(errno) : "");
	return 7;
}
