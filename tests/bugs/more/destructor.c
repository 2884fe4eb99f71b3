// What a thread leaves to its key's destructor is counted as done when its routine says so. Guarded: yes, re-executes under order
// alone. Fails: exit status 1, "missing".
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_key_t key;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int done, sum;

static void hand_in(void *p)
{
	pthread_mutex_lock(&m);
	sum += *(int *)p;
	pthread_mutex_unlock(&m);
	free(p);
}

static void *work(void *n)
{
	int *p = malloc(sizeof *p);
	*p = (int)(long)n;
	pthread_setspecific(key, p);
	pthread_mutex_lock(&m);
	done++;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	return 0;
}

int main(void)
{
	pthread_attr_t a;
	pthread_t t;
	long i;
	int got;
	pthread_key_create(&key, hand_in);
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	for (i = 1; i <= 4; i++)
		pthread_create(&t, &a, work, (void *)i);
	pthread_mutex_lock(&m);
	while (done < 4)
		pthread_cond_wait(&c, &m);
	got = sum;
	pthread_mutex_unlock(&m);
	printf("%d%s\n", got, got == 10 ? "" : " missing");
	return got != 10;
}
