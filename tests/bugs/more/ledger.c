// Processes that look at a sum in a file under a lock, and change it under the lock, but not in one go. Guarded: yes (file
// locks), re-executes under order alone. Fails: exit status 1, "lost".
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static int look(int f)
{
	int v = 0;
	flock(f, LOCK_EX);
	pread(f, &v, sizeof v, 0);
	flock(f, LOCK_UN);
	return v;
}
static void put(int f, int v)
{
	flock(f, LOCK_EX);
	pwrite(f, &v, sizeof v, 0);
	flock(f, LOCK_UN);
}

int main(void)
{
	char name[] = "/tmp/ledgerXXXXXX";
	close(mkstemp(name));
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			int f = open(name, O_RDWR);
			for (int k = 0; k < 10; k++)
				put(f, look(f) + 1);
			_exit(0);
		}
	while (wait(0) > 0)
		;
	int f = open(name, O_RDWR), v = look(f);
	unlink(name);
	if (v != 30) {
		printf("lost: %d\n", v);
		return 1;
	}
	return 0;
}
