// Two libraries that lie in one place, one after the other and once again, called by two threads of which one knows no other calls.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#ifdef WORK
int inner(void)
{
	return usleep(4000) + 1;
}
int WORK(void)
{
	return inner() + 1;
}
#else
static pthread_barrier_t turn;
static int (*volatile work)(void);

static void *worker(void *arg)
{
	for (int i = 0; i < 3; i++) {
		pthread_barrier_wait(&turn);
		for (int k = 0; k < 4; k++)
			work();
		pthread_barrier_wait(&turn);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *names[] = {"first", "other", "first"};
	void *at[3];
	pthread_t t;
	pthread_barrier_init(&turn, 0, 2);
	pthread_create(&t, 0, worker, 0);
	for (int i = 0; i < 3; i++) {
		void *h = dlopen(argv[1 + i % 2], RTLD_NOW);
		if (!h)
			return 1;
		at[i] = work = (int (*)(void))dlsym(h, names[i]);
		pthread_barrier_wait(&turn);
		for (int k = 0; k < 4; k++)
			work();
		pthread_barrier_wait(&turn);
		dlclose(h);
	}
	pthread_join(t, 0);
	printf("%s\n", at[0] == at[1] && at[0] == at[2] ? "in one place" : "elsewhere");
	return 0;
}
#endif
