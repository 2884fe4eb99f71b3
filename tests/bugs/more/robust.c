// A robust lock whose owner died is taken as if what it guards were whole. Guarded: yes (a shared lock), re-executes under
// order alone. Fails: exit status 1, "half".
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared { pthread_mutex_t m; int a, b; };

int main(void)
{
	struct shared *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t at;
	pthread_mutexattr_init(&at);
	pthread_mutexattr_setpshared(&at, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&at, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&s->m, &at);
	pid_t p = fork();
	if (p == 0) {
		for (;;) {
			pthread_mutex_lock(&s->m);
			s->a++;
			getppid();
			s->b++;
			pthread_mutex_unlock(&s->m);
			usleep(10);
		}
	}
	usleep(1000);
	kill(p, SIGKILL);
	waitpid(p, 0, 0);
	if (pthread_mutex_lock(&s->m) == EOWNERDEAD)
		pthread_mutex_consistent(&s->m);
	int half = s->a != s->b;
	pthread_mutex_unlock(&s->m);
	if (half) {
		puts("half");
		return 1;
	}
	return 0;
}
