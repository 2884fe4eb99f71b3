// Who hands out work looks every few ms whether it is done: how often, the work's length decides. It is told of parts, too;
// "held": of some only when its time is over, and the lock not free yet, and of the last but one twice; "often": it looks every ms.
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int works, gave, held;
static long every = 10000000;
enum { ROUNDS = 6 };

static void *work(void *p)
{
	for (int i = 1; i <= ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		while (gave < i)
			pthread_cond_wait(&given, &lock);
		pthread_mutex_unlock(&lock);
		for (int part = i % 3; part >= 0; part--) {
			for (volatile int n = 0; n < 75000000; n++)
				;
			pthread_mutex_lock(&lock);
			if (held && (i % 2 || i == ROUNDS) && !part) {
				usleep(30000);
				if (i == ROUNDS - 1)
					pthread_cond_signal(&done);
			}
			if (!part)
				works = i;
			pthread_cond_signal(&done);
			pthread_mutex_unlock(&lock);
		}
	}
	return p;
}

int main(int argc, char **argv)
{
	pthread_t t;
	held = argc > 1 && !strcmp(argv[1], "held");
	if (argc > 1 && !held)
		every = 1000000;
	if (pthread_create(&t, NULL, work, NULL))
		return 1;
	for (int i = 1; i <= ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		gave = i;
		pthread_cond_signal(&given);
		while (works < i) {
			struct timespec until;
			clock_gettime(CLOCK_REALTIME, &until);
			if ((until.tv_nsec += every) >= 1000000000) {
				until.tv_nsec -= 1000000000;
				until.tv_sec++;
			}
			pthread_cond_timedwait(&done, &lock, &until);
		}
		pthread_mutex_unlock(&lock);
	}
	return pthread_join(t, NULL);
}
