// Users, groups and namespaces: for all threads, as the C library does it.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/wait.h>
#include <unistd.h>

static int pipes[2];

static void *asks(void *p)
{
	char b;
	read(pipes[0], &b, 1);
	return (void *)(long)(geteuid() * 1000 + getegid());
}

static void all(void)
{
	gid_t groups[2] = {1, 2};
	uid_t me = getuid();
	pthread_t t;
	void *r;
	pipe(pipes);
	pthread_create(&t, 0, asks, 0);
	printf("setfsuid %d setfsgid %d\n", setfsuid(me) == (int)me, setfsgid(getgid()) == (int)getgid());
	printf("setgroups %d\n", setgroups(2, groups));
	printf("initgroups %d\n", initgroups("root", 0));
	printf("setresgid %d\n", setresgid(-1, 7, -1));
	printf("setregid %d\n", setregid(-1, 7));
	printf("setegid %d\n", setegid(7));
	printf("setresuid %d\n", setresuid(-1, 9, -1));
	printf("setreuid %d\n", setreuid(-1, 9));
	printf("seteuid %d\n", seteuid(9));
	write(pipes[1], "", 1);
	pthread_join(t, &r);
	printf("thread %ld\n", (long)r == geteuid() * 1000 + getegid());
	printf("back %d\n", seteuid(me));
	printf("setgid %d setuid %d\n", setgid(7), setuid(9));
	printf("lost %d\n", setuid(me == 9 ? 0 : me));
}

int main(void)
{
	int fd;
	setvbuf(stdout, 0, _IONBF, 0);
	if (fork() == 0) {
		all();
		_exit(0);
	}
	wait(0);
	if (fork() == 0) {
		printf("unshare %d\n", unshare(CLONE_NEWUSER) == 0);
		printf("unshare %d\n", unshare(0));
		printf("invalid %d %d\n", unshare(1), errno == EINVAL);
		_exit(0);
	}
	wait(0);
	if (fork() == 0) {
		fd = open("/proc/self/ns/uts", O_RDONLY);
		printf("setns %d\n", setns(fd, 0) == 0 || errno == EPERM);
		printf("setns %d %d\n", setns(-1, 0), errno == EBADF);
		_exit(0);
	}
	wait(0);
	if (fork() == 0) { /* a child in a namespace of its own, with a pid of its own */
		if (unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0 || 1) {
			if (fork() == 0)
				_exit(write(1, "inside\n", 7) != 7);
			wait(0);
		}
		_exit(0);
	}
	wait(0);
	return 0;
}
