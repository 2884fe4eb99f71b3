// C11 threads.
#include <stdio.h>
#include <threads.h>
#include <time.h>

static int plain(void *p)
{
	return *(int *)p + 1;
}

static int leaves(void *p)
{
	thrd_exit(*(int *)p + 2);
}

int main(void)
{
	struct timespec ts = {0, 2000000}, bad = {0, -1};
	thrd_t t;
	int v = 40, r = 0;
	printf("create %d\n", thrd_create(&t, plain, &v));
	printf("join %d", thrd_join(t, &r));
	printf(" %d\n", r);
	thrd_create(&t, leaves, &v);
	thrd_join(t, &r);
	printf("%d\n", r);
	thrd_create(&t, plain, &v);
	printf("detach %d\n", thrd_detach(t));
	printf("sleep %d %d\n", thrd_sleep(&ts, 0), thrd_sleep(&bad, 0));
	thrd_exit(0);
}
