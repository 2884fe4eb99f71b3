// A signal where a broadcast is needed: of two that wait for the gate one goes on waiting. Guarded: yes, re-executes
// under order alone. Fails: deadlock, to be ended by a timeout.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int opened;

static void *pass(void *a)
{
	usleep(500); /* the gate is open by now, mostly */
	pthread_mutex_lock(&m);
	while (!opened)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	return 0;
}

static void *open_gate(void *a)
{
	pthread_mutex_lock(&m);
	opened = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	return 0;
}

int main(void)
{
	pthread_t t[3];
	int i;
	pthread_create(&t[0], 0, open_gate, 0);
	for (i = 1; i < 3; i++)
		pthread_create(&t[i], 0, pass, 0);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return 0;
}
