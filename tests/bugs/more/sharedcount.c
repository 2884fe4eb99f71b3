// Processes that count in shared memory, which nobody guards. Guarded: no, needs --serial. Fails: exit status 1, "lost".
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	volatile int *n = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int i, p;
	struct timespec t;
	for (p = 0; p < 3; p++)
		if (!fork()) {
			for (i = 0; i < 10; i++) {
				int x = *n;
				clock_gettime(CLOCK_MONOTONIC, &t);
				*n = x + 1;
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
	if (*n != 30)
		printf("lost %d\n", 30 - *n);
	return *n != 30;
}
