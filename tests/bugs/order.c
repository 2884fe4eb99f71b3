// Order violation: a thread is started before what it uses is set; it starts slowly, mostly. Guarded: yes, re-executes
// under order alone. Fails: exit status 1, "used before it was set".
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static const char *config;

static void *work(void *a)
{
	const char *mine;
	usleep(300);
	pthread_mutex_lock(&m);
	mine = config;
	pthread_mutex_unlock(&m);
	return (void *)(long)!mine;
}

int main(void)
{
	pthread_t t;
	void *failed;
	pthread_create(&t, 0, work, 0);
	pthread_mutex_lock(&m);
	config = "set";
	pthread_mutex_unlock(&m);
	pthread_join(t, &failed);
	if (failed)
		printf("used before it was set\n");
	return failed != 0;
}
