/* sched_yield under both names. */
#include <sched.h>
#include <stdio.h>

extern int __sched_yield(void);

int main(void)
{
	int r = 0;
	for (int i = 0; i < 100; i++)
		r += sched_yield() + __sched_yield();
	printf("%d\n", r);
	return 0;
}
