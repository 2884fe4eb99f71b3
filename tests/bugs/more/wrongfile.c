// A descriptor that one thread closes is another file's by the time at which a second thread writes to it. Guarded: yes (descriptors'
// order is recorded), re-executes under order alone. Fails: exit status 1, "in the wrong file".
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int logfd = -1;

static void *logs(void *a)
{
	for (int i = 0; i < 30; i++) {
		pthread_mutex_lock(&m);
		int fd = logfd;
		pthread_mutex_unlock(&m);
		getppid();
		if (fd >= 0)
			write(fd, "log\n", 4);
	}
	return 0;
}

int main(void)
{
	char name[64], data[64];
	pthread_t t;
	int bad = 0;
	pthread_mutex_lock(&m);
	pthread_create(&t, 0, logs, 0);
	sprintf(name, "data.%d", (int)getpid());
	for (int i = 0; i < 10; i++) {
		logfd = open("/dev/null", O_WRONLY);
		pthread_mutex_unlock(&m);
		for (int k = 0; k < 10; k++)
			getppid();
		pthread_mutex_lock(&m);
		close(logfd);
		logfd = -1;
		int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
		write(fd, "data\n", 5);
		pthread_mutex_unlock(&m);
		getppid();
		pthread_mutex_lock(&m);
		bad |= pread(fd, data, sizeof data, 0) != 5;
		close(fd);
	}
	pthread_mutex_unlock(&m);
	pthread_join(t, 0);
	unlink(name);
	if (bad) {
		puts("in the wrong file");
		return 1;
	}
	return 0;
}
