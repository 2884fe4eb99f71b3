// A read lock is taken again by who has it, where writers come first: with a writer between, all wait for one another. Guarded: yes,
// re-executes under order alone. Fails: deadlock, to be ended by a timeout.
#include <pthread.h>
#include <unistd.h>

static pthread_rwlock_t l;
static int table;

static int size(void)
{
	pthread_rwlock_rdlock(&l);
	int n = table;
	pthread_rwlock_unlock(&l);
	return n;
}

static void *reads(void *a)
{
	for (int i = 0; i < 40; i++) {
		pthread_rwlock_rdlock(&l);
		getppid();
		size();
		pthread_rwlock_unlock(&l);
	}
	return 0;
}

static void *writes(void *a)
{
	for (int i = 0; i < 15; i++) {
		for (int k = 0; k < 20; k++)
			getppid();
		pthread_rwlock_wrlock(&l);
		table++;
		pthread_rwlock_unlock(&l);
	}
	return 0;
}

int main(void)
{
	pthread_t t[2];
	pthread_rwlockattr_t a;
	pthread_rwlockattr_init(&a);
	pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&l, &a);
	pthread_create(&t[0], 0, reads, 0);
	pthread_create(&t[1], 0, writes, 0);
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
	return 0;
}
