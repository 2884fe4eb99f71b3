// A library whose constructor and IFUNC resolver call what we intercept, before the recorder is there.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;

static int answer(void)
{
	return done;
}

static int (*choose(void))(void)
{
	char c;
	int fd = open("/dev/zero", O_RDONLY);
	done = pthread_mutex_lock(&m) == 0 && read(fd, &c, 1) == 1;
	pthread_mutex_unlock(&m);
	close(fd);
	return answer;
}
static int chosen(void) __attribute__((ifunc("choose")));

__attribute__((constructor(101))) static void first(void)
{
	pthread_mutex_lock(&m);
	write(1, "library\n", 8);
	pthread_mutex_unlock(&m);
}

int earlylib(void)
{
	return chosen();
}
