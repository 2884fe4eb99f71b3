// Two threads take messages from one queue, each believing that every second is its own. Guarded: yes (what a queue gave is
// recorded), re-executes under order alone. Fails: exit status 1, "another's".
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static mqd_t q;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int wrong;

static void *take(void *me)
{
	char b[16];
	unsigned prio;
	int i;
	for (i = 0; i < 8; i++) {
		if (mq_receive(q, b, sizeof b, &prio) < 0)
			return 0;
		pthread_mutex_lock(&m);
		printf("%d:%d ", (int)(long)me, b[0]);
		wrong += (b[0] & 1) != (long)me;
		pthread_mutex_unlock(&m);
	}
	return 0;
}

int main(void)
{
	struct mq_attr a = {.mq_maxmsg = 8, .mq_msgsize = 16};
	pthread_t t[2];
	char name[32];
	long i;
	snprintf(name, sizeof name, "/prophet-%d", getpid());
	q = mq_open(name, O_CREAT | O_RDWR, 0600, &a);
	if (q < 0)
		return 2;
	for (i = 0; i < 2; i++)
		pthread_create(&t[i], 0, take, (void *)i);
	for (i = 0; i < 16; i++) {
		char b = (char)i;
		mq_send(q, &b, 1, (unsigned)i % 3);
	}
	for (i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	mq_unlink(name);
	puts(wrong ? "another's" : "");
	return wrong != 0;
}
