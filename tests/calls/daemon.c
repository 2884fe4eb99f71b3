// daemon: the process goes on as its own child, in a session of its own.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int out[2], n = 0;
	char buf[200];
	setvbuf(stdout, 0, _IONBF, 0);
	pipe(out);
	if (fork() == 0) {
		char cwd[100] = "";
		struct stat null, st;
		int i, same = 1;
		close(out[0]);
		if (daemon(0, 0))
			_exit(1);
		stat("/dev/null", &null);
		for (i = 0; i < 3; i++)
			same &= fstat(i, &st) == 0 && st.st_rdev == null.st_rdev;
		getcwd(cwd, sizeof cwd);
		dprintf(out[1], "session %d null %d cwd %s next %d\n", getsid(0) == getpid(), same, cwd, open("/dev/null", O_RDONLY) == 3);
		if (daemon(1, 1))
			_exit(1);
		dprintf(out[1], "again %d\n", getsid(0) == getpid());
		exit(0);
	}
	close(out[1]);
	wait(&n);
	printf("first ended with %d\n", WEXITSTATUS(n));
	while ((n = read(out[0], buf, sizeof buf)) > 0)
		write(1, buf, n);
	return 0;
}
