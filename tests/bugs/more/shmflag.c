// Processes hand over a text by a flag in shared memory, raised before the text is whole. Guarded: no, needs --serial. Fails:
// exit status 1, "half a text".
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct page { volatile int ready; char text[64]; };

int main(void)
{
	struct page *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fork() == 0) {
		for (int i = 0; i < 3; i++)
			getppid();
		p->ready = 1;
		getppid();
		strcpy(p->text, "whole");
		_exit(0);
	}
	for (int i = 0; i < 4000 && !p->ready; i++)
		usleep(1);
	int bad = strcmp(p->text, "whole") != 0;
	wait(0);
	if (bad) {
		puts("half a text");
		return 1;
	}
	return 0;
}
