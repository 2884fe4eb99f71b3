// Use after free: a reference is taken after the lock under which the object was found was left, so that its last owner
// may drop it in between. Guarded: yes, re-executes under order alone. Fails: killed by SIGABRT.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static struct object {
	pthread_mutex_t m;
	int refs, dead;
} * current, first = {PTHREAD_MUTEX_INITIALIZER, 1, 0};

static void put(struct object *o)
{
	pthread_mutex_lock(&o->m);
	if (!--o->refs)
		o->dead = 1;
	pthread_mutex_unlock(&o->m);
}

static void *reader(void *a)
{
	struct object *o;
	pthread_mutex_lock(&table);
	o = current;
	pthread_mutex_unlock(&table);
	if (!o)
		return 0;
	pthread_mutex_lock(&o->m);
	if (o->dead) {
		fprintf(stderr, "use after free\n");
		abort();
	}
	o->refs++;
	pthread_mutex_unlock(&o->m);
	put(o);
	return 0;
}

static void *owner(void *a)
{
	pthread_mutex_lock(&table);
	current = 0;
	pthread_mutex_unlock(&table);
	put(&first);
	return 0;
}

int main(void)
{
	pthread_t t[2];
	current = &first;
	pthread_create(&t[0], 0, reader, 0);
	pthread_create(&t[1], 0, owner, 0);
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
	return 0;
}
