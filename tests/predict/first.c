// The first thread ends before the other one, as does that of a child.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *p)
{
	for (int i = 0; i < 10; i++)
		usleep(5000);
	if (p && wait(NULL) < 0)
		_exit(1);
	return NULL;
}

int main(void)
{
	pthread_t t;
	pid_t child = fork();
	if (child < 0 || pthread_create(&t, NULL, work, child ? &child : NULL))
		return 1;
	pthread_exit(NULL);
}
