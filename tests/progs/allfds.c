// cflags: -O2 -pthread
// Uses all its descriptors, in several ways, and goes on: with a limit as it finds it, or as argument 1 says, which nobody may raise.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long done;

static void work(int times)
{
	for (int i = 0; i < times; i++) {
		pthread_mutex_lock(&mutex);
		done++;
		pthread_mutex_unlock(&mutex);
	}
}

static void *thread(void *arg)
{
	work(30000);
	return arg;
}

static int one(int how, int fds[2])
{
	int r;
	fds[1] = -1;
	switch (how) {
	case 0:
		return fds[0] = open("/dev/null", O_RDONLY);
	case 1:
		return fds[0] = dup(1);
	case 2:
		r = pipe(fds);
		break;
	default:
		r = socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	}
	return r;
}

static void all(int how)
{
	static const char *const name[] = {"open", "dup", "pipe", "socketpair"};
	int fds[2], n = 0, most = 0;
	while (one(how, fds) >= 0) {
		n++;
		most = fds[0] > most ? fds[0] : most;
		most = fds[1] > most ? fds[1] : most;
	}
	printf("%s: %d, the highest is %d: %d\n", name[how], n, most, errno == EMFILE);
	/* With nothing left it works on. */
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, thread, NULL))
			_exit(1);
	work(30000);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		work(30000);
		_exit(how);
	}
	int status = -1;
	pid_t other = wait(&status);
	printf("%d threads' work, child %d, %d; none left: %d\n", (int)(done / 30000), other == child, WEXITSTATUS(status), wait(NULL) < 0 && errno == ECHILD);
	for (int fd = 3; fd <= most; fd++)
		close(fd);
}

int main(int argc, char **argv)
{
	struct rlimit l;
	getrlimit(RLIMIT_NOFILE, &l);
	if (argc > 1)
		l.rlim_cur = l.rlim_max = (rlim_t)atol(argv[1]);
	if (argc > 1 && setrlimit(RLIMIT_NOFILE, &l))
		return 2;
	for (int round = 0; round < 2; round++)
		for (int how = 0; how < 4; how++)
			all(how);
	return 0;
}
