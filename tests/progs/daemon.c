// A daemon of the old kind: forks twice, closes every descriptor, changes root and user, then works and ends.
// argv[1]: the file it tells about itself in; argv[2]: where to change root to.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *a)
{
	int i;
	for (i = 0; i < 20000; i++) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int i, log, done[2];
	pthread_t t[3];
	char c;
	pipe(done);
	if (fork()) {
		close(done[1]);
		read(done[0], &c, 1); /* until the daemon is gone */
		return 0;
	}
	setsid();
	if (fork())
		_exit(0);
	for (i = 0; i < 4096; i++)
		if (i != done[1])
			close(i);
	open("/dev/null", O_RDWR);
	dup(0);
	dup(0);
	log = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0666);
	dprintf(log, "log is %d\n", log);
	dprintf(log, "chroot %d\n", chroot(argv[2]));
	dprintf(log, "chdir %d\n", chdir("/"));
	setgroups(0, 0);
	dprintf(log, "setgid %d setuid %d\n", setgid(65534), setuid(65534));
	for (i = 0; i < 3; i++)
		pthread_create(&t[i], 0, work, 0);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	for (i = 0; i < 1100; i++)
		open("/", O_RDONLY);
	work(0);
	dprintf(log, "done, uid %d, next is %d\n", (int)getuid(), open("/", O_RDONLY));
	return 0;
}
