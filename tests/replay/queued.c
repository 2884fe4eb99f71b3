// Several threads wait for the messages of a queue. Each message is sent when another thread has done with the one before, and after that
// so many at once that there is no room for them.
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#define TAKERS 6
#define ROUNDS 300
#define MANY 200

static mqd_t q;
static sem_t taken;
static pthread_barrier_t met;
static int got[TAKERS];

static void *take(void *me)
{
	unsigned b;
	pthread_barrier_wait(&met);
	for (;;) {
		if (mq_receive(q, (char *)&b, sizeof b, 0) < 0 || !b)
			return 0;
		got[(long)me] = got[(long)me] * 31 + (int)b;
		if (b <= ROUNDS)
			sem_post(&taken);
	}
}

int main(void)
{
	struct mq_attr a = {.mq_maxmsg = 2, .mq_msgsize = sizeof(unsigned)};
	pthread_t t[TAKERS];
	char name[32];
	unsigned b, none = 0;
	long i;
	snprintf(name, sizeof name, "/prophet-%d", getpid());
	q = mq_open(name, O_CREAT | O_RDWR, 0600, &a);
	mq_unlink(name);
	if (q < 0)
		return 2;
	sem_init(&taken, 0, 0);
	pthread_barrier_init(&met, 0, TAKERS + 1);
	for (i = 0; i < TAKERS; i++)
		pthread_create(&t[i], 0, take, (void *)i);
	pthread_barrier_wait(&met);
	for (b = 1; b <= ROUNDS; b++) {
		mq_send(q, (char *)&b, sizeof b, 0);
		sem_wait(&taken);
	}
	for (; b <= ROUNDS + MANY; b++)
		mq_send(q, (char *)&b, sizeof b, 0);
	for (i = 0; i < TAKERS; i++)
		mq_send(q, (char *)&none, sizeof none, 0);
	for (i = 0; i < TAKERS; i++) {
		pthread_join(t[i], 0);
		printf("%x ", (unsigned)got[i]);
	}
	puts("");
	return 0;
}
