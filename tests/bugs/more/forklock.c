// A fork while another thread has a lock, which the child then wants: nobody there will ever give it up. Guarded: yes,
// re-executes under order alone. Fails: exit status 1, "stuck".
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n, over;

static void *work(void *a)
{
	for (int i = 0; i < 200; i++) {
		pthread_mutex_lock(&m);
		n++;
		getppid();
		pthread_mutex_unlock(&m);
	}
	return 0;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, work, 0);
	int bad = 0;
	for (int i = 0; i < 3 && !bad; i++) {
		pid_t p = fork();
		if (p == 0) {
			struct timespec until;
			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_nsec += 50000000;
			until.tv_sec += until.tv_nsec / 1000000000;
			until.tv_nsec %= 1000000000;
			_exit(pthread_mutex_timedlock(&m, &until) ? 1 : 0);
		}
		int s;
		waitpid(p, &s, 0);
		bad = WEXITSTATUS(s);
	}
	pthread_join(t, 0);
	if (bad) {
		puts("stuck");
		return 1;
	}
	return 0;
}
