/* The names that libraries linked against an older C library may still ask for. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#ifdef __x86_64__
#define BASE "GLIBC_2.2.5"
#define CONSISTENT "GLIBC_2.4"
#else
#define BASE "GLIBC_2.17"
#define CONSISTENT "GLIBC_2.17"
#endif
#define OLD(name, version, ...)                               \
	__asm__(".symver old_" #name ", " #name "@" version); \
	extern int old_##name(__VA_ARGS__)
OLD(__pthread_mutex_lock, BASE, pthread_mutex_t *);
OLD(__pthread_mutex_trylock, BASE, pthread_mutex_t *);
OLD(__pthread_mutex_unlock, BASE, pthread_mutex_t *);
OLD(__pthread_mutex_init, BASE, pthread_mutex_t *, void *);
OLD(__pthread_mutex_destroy, BASE, pthread_mutex_t *);
OLD(pthread_mutex_consistent_np, CONSISTENT, pthread_mutex_t *);
OLD(__pthread_rwlock_rdlock, BASE, pthread_rwlock_t *);
OLD(__pthread_rwlock_wrlock, BASE, pthread_rwlock_t *);
OLD(__pthread_rwlock_tryrdlock, BASE, pthread_rwlock_t *);
OLD(__pthread_rwlock_trywrlock, BASE, pthread_rwlock_t *);
OLD(__pthread_rwlock_unlock, BASE, pthread_rwlock_t *);
OLD(__pthread_rwlock_init, BASE, pthread_rwlock_t *, void *);
OLD(__pthread_rwlock_destroy, BASE, pthread_rwlock_t *);
OLD(__pthread_once, BASE, pthread_once_t *, void (*)(void));
OLD(pthread_yield, BASE, void);

static int runs;

static void run(void)
{
	runs++;
}

int main(void)
{
	pthread_mutex_t m;
	pthread_rwlock_t l;
	pthread_once_t o = PTHREAD_ONCE_INIT;
	printf("%d", old___pthread_mutex_init(&m, 0));
	printf("%d", old___pthread_mutex_lock(&m));
	printf("%s", strerror(old___pthread_mutex_trylock(&m)));
	printf("%d", old___pthread_mutex_unlock(&m));
	printf("%d", old___pthread_mutex_trylock(&m));
	printf("%d", old___pthread_mutex_unlock(&m));
	printf("%s", strerror(old_pthread_mutex_consistent_np(&m)));
	printf("%d\n", old___pthread_mutex_destroy(&m));
	printf("%d", old___pthread_rwlock_init(&l, 0));
	printf("%d", old___pthread_rwlock_rdlock(&l));
	printf("%d", old___pthread_rwlock_tryrdlock(&l));
	printf("%s", strerror(old___pthread_rwlock_trywrlock(&l)));
	printf("%d", old___pthread_rwlock_unlock(&l));
	printf("%d", old___pthread_rwlock_unlock(&l));
	printf("%d", old___pthread_rwlock_wrlock(&l));
	printf("%d", old___pthread_rwlock_unlock(&l));
	printf("%d\n", old___pthread_rwlock_destroy(&l));
	printf("%d%d", old___pthread_once(&o, run), old___pthread_once(&o, run));
	printf("%d\n", runs);
	printf("%d\n", old_pthread_yield());
	return 0;
}
