// A child makes files one by one, and its parent, which has slept meanwhile, looks for them.
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	char name[8];
	int i, found = 0, status;
	if (!fork()) {
		for (i = 0; i < 20; i++) {
			snprintf(name, sizeof name, "f%d", i);
			close(open(name, O_CREAT | O_WRONLY, 0600));
		}
		_exit(0);
	}
	for (i = 0; i < 20; i++) {
		usleep(i ? 100 : 50000);
		snprintf(name, sizeof name, "f%d", i);
		found += access(name, R_OK) == 0;
	}
	wait(&status);
	printf("%d\n", found);
	return 0;
}
