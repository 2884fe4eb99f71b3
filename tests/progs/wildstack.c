// Calls made where the chain of frames leads to the last byte of memory, in code that no table tells of.
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

void wild(void (*call)(void));

#if defined(__x86_64__)
__asm__(".text\n.globl wild\n.type wild,@function\n"
	"wild:\n"
	"push %rbp\n"
	"push $-1\n" /* where the frame above goes on */
	"push $-1\n" /* where that one's own above lies */
	"mov %rsp, %rbp\n"
	"call *%rdi\n"
	"add $16, %rsp\n"
	"pop %rbp\n"
	"ret\n"
	".size wild,.-wild\n");
#else
void wild(void (*call)(void))
{
	call();
}
#endif

static void opens(void)
{
	close(open("/dev/null", O_RDONLY));
}

int main(void)
{
	struct timespec a, b;
	int i;
	clock_gettime(CLOCK_MONOTONIC, &a);
	do { /* until some stacks have been taken */
		for (i = 0; i < 100; i++)
			wild(opens);
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 200);
	puts("done");
	return 0;
}
