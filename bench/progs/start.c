/* What a process and a thread cost.
 *
 *	start spawn N PROGRAM TRACES NAME=VALUE…   N times PROGRAM bare and with the variables set, in turn; prints the
 *	                                           median microseconds of both, each from spawn to its end. With TRACES
 *	                                           a directory, each run makes a trace of its own there, which is removed.
 *	start resident PROGRAM                     KiB resident when PROGRAM ends; it gets our environment
 *	start threads N                            KiB resident a thread, when each has made many events of many kinds
 */
#define _GNU_SOURCE
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st, (void)type, (void)f;
	return remove(path);
}

static int spawn(int n, char *program, const char *traces, char **vars, int nvars)
{
	char trace[4200], name[4096], *env[2][512], *argv[] = {program, NULL};
	double *took[2];
	int i, k = 0;
	for (i = 0; environ[i] && k < 400; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "PROPHET_", 8))
			env[0][k] = env[1][k] = environ[i], k++;
	env[0][k] = NULL;
	for (i = 0; i < nvars; i++)
		env[1][k++] = vars[i];
	if (*traces)
		env[1][k++] = trace;
	env[1][k] = NULL;
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); /* what the bench was started with by chance, and a trace would describe */
	took[0] = calloc((size_t)n, sizeof(double));
	took[1] = calloc((size_t)n, sizeof(double));
	for (i = 0; i < 2 * n; i++) {
		pid_t pid;
		int status;
		double from;
		snprintf(name, sizeof name, "%s/%d.prophet", traces, i);
		snprintf(trace, sizeof trace, "PROPHET_TRACE=%s", name);
		from = now_us();
		if (posix_spawn(&pid, program, NULL, NULL, argv, env[i & 1]) || waitpid(pid, &status, 0) != pid || status)
			return perror(program), 1;
		took[i & 1][i / 2] = now_us() - from;
		if (*traces && i & 1)
			nftw(name, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	}
	for (i = 0; i < 2; i++)
		qsort(took[i], (size_t)n, sizeof(double), by_size);
	printf("%.2f %.2f\n", took[0][n / 2], took[1][n / 2]);
	return 0;
}

static long rss_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *f;
	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "Rss: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static int resident(char *program, char **argv)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(program, argv);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 1;
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXIT);
	ptrace(PTRACE_CONT, pid, 0, 0);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8))
			printf("%ld\n", rss_kib(pid));
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
	return 0;
}

#define MUTEXES 1024

static pthread_barrier_t full;

static void *thread(void *arg)
{
	static pthread_mutex_t all[64][MUTEXES];
	pthread_mutex_t *m = all[(long)arg % 64];
	for (int i = 0; i < 40000; i++) {
		pthread_mutex_lock(&m[i % MUTEXES]);
		pthread_mutex_unlock(&m[i % MUTEXES]);
	}
	pthread_barrier_wait(&full);
	pthread_barrier_wait(&full);
	return NULL;
}

static int threads(int n)
{
	pthread_t id[64];
	long before, after;
	pthread_barrier_init(&full, NULL, (unsigned)n + 1);
	before = rss_kib(getpid());
	for (long i = 0; i < n; i++)
		if (pthread_create(&id[i], NULL, thread, (void *)i))
			return 1;
	pthread_barrier_wait(&full);
	after = rss_kib(getpid());
	pthread_barrier_wait(&full);
	for (int i = 0; i < n; i++)
		pthread_join(id[i], NULL);
	printf("%.2f\n", (double)(after - before) / n);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 5 && !strcmp(argv[1], "spawn"))
		return spawn(atoi(argv[2]), argv[3], argv[4], argv + 5, argc - 5);
	if (argc >= 3 && !strcmp(argv[1], "resident"))
		return resident(argv[2], argv + 2);
	if (argc == 3 && !strcmp(argv[1], "threads") && atoi(argv[2]) <= 64)
		return threads(atoi(argv[2]));
	return 2;
}
