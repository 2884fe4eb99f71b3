// A file's lock that is gone because the same process closed the file elsewhere: a count that two processes keep there loses
// steps. Guarded: yes (files are recorded), re-executes under order alone. Fails: exit status 1, "lost".
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[64];

static void peek(void)
{
	int fd = open(name, O_RDONLY);
	close(fd);
}

static void adds(int n)
{
	int fd = open(name, O_RDWR);
	for (int i = 0; i < n; i++) {
		char b[16] = "";
		struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		fcntl(fd, F_SETLKW, &l);
		if (i % 4 == 3)
			peek();
		pread(fd, b, 15, 0);
		int v = atoi(b);
		sprintf(b, "%08d", v + 1);
		pwrite(fd, b, 8, 0);
		l.l_type = F_UNLCK;
		fcntl(fd, F_SETLK, &l);
	}
}

int main(void)
{
	char b[16] = "00000000";
	sprintf(name, "count.%d", (int)getpid());
	int fd = open(name, O_CREAT | O_RDWR, 0600);
	write(fd, b, 8);
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			adds(12);
			_exit(0);
		}
	while (wait(0) > 0)
		;
	pread(fd, b, 8, 0);
	unlink(name);
	if (atoi(b) != 24) {
		printf("lost %d\n", 24 - atoi(b));
		return 1;
	}
	return 0;
}
