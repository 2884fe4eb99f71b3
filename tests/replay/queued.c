// Several threads, or processes, wait for the messages of a queue. Each message is sent when another has done with the one before, and after
// that so many at once that there is no room for them.
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAKERS 6
#define ROUNDS 300
#define MANY 200

static mqd_t q;
static struct shared {
	sem_t taken, ready;
	int got[TAKERS];
} * s;

static void *take(void *me)
{
	unsigned b;
	sem_post(&s->ready);
	for (;;) {
		if (mq_receive(q, (char *)&b, sizeof b, 0) < 0 || !b)
			return 0;
		s->got[(long)me] = s->got[(long)me] * 31 + (int)b;
		if (b <= ROUNDS)
			sem_post(&s->taken);
	}
}

int main(int argc, char **argv)
{
	struct mq_attr a = {.mq_maxmsg = 2, .mq_msgsize = sizeof(unsigned)};
	int processes = argc > 1 && !strcmp(argv[1], "processes");
	pthread_t t[TAKERS];
	char name[32];
	unsigned b, none = 0;
	long i;
	snprintf(name, sizeof name, "/prophet-%d", getpid());
	q = mq_open(name, O_CREAT | O_RDWR, 0600, &a);
	s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (q < 0 || s == MAP_FAILED)
		return 2;
	sem_init(&s->taken, 1, 0);
	sem_init(&s->ready, 1, 0);
	for (i = 0; i < TAKERS; i++) {
		if (!processes) {
			pthread_create(&t[i], 0, take, (void *)i);
		} else if (fork() == 0) {
			if (i % 2)
				q = mq_open(name, O_RDWR);
			take((void *)i);
			_exit(0);
		}
	}
	for (i = 0; i < TAKERS; i++)
		sem_wait(&s->ready);
	mq_unlink(name);
	for (b = 1; b <= ROUNDS; b++) {
		mq_send(q, (char *)&b, sizeof b, 0);
		sem_wait(&s->taken);
	}
	for (; b <= ROUNDS + MANY; b++)
		mq_send(q, (char *)&b, sizeof b, 0);
	for (i = 0; i < TAKERS; i++)
		mq_send(q, (char *)&none, sizeof none, 0);
	for (i = 0; i < TAKERS; i++)
		processes ? (void)wait(0) : (void)pthread_join(t[i], 0);
	for (i = 0; i < TAKERS; i++)
		printf("%x ", (unsigned)s->got[i]);
	puts("");
	return 0;
}
