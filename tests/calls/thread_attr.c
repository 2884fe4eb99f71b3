// What can be asked of and set for a thread.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	char name[16] = "";
	struct sched_param p = {0};
	int policy = -1;
	pthread_t me = pthread_self();
	printf("set %d\n", pthread_setname_np(me, "worker"));
	printf("get %d", pthread_getname_np(me, name, sizeof name));
	printf(" %s\n", name);
	printf("long %d\n", pthread_setname_np(me, "a name that is much too long") == ERANGE);
	printf("short %d\n", pthread_getname_np(me, name, 3) == ERANGE);
	printf("getsched %d", pthread_getschedparam(me, &policy, &p));
	printf(" %d %d\n", policy == SCHED_OTHER, p.sched_priority);
	printf("setsched %d\n", pthread_setschedparam(me, SCHED_OTHER, &p));
	p.sched_priority = 50;
	printf("invalid %d\n", pthread_setschedparam(me, SCHED_OTHER, &p) == EINVAL);
	printf("prio %d %d\n", pthread_setschedprio(me, 0), pthread_setschedprio(me, 99) == EINVAL);
	return 0;
}
