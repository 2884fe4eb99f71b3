/* A C program that loads plugin.cc's library twice, out of the global scope, and has threads use its statics. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int (*use)(int *);
static int caught, made;

static void *worker(void *arg)
{
	for (int i = 0; i < 3; i++)
		__atomic_store_n(&made, use(&caught), __ATOMIC_RELAXED);
	return 0;
}

int main(int argc, char **argv)
{
	for (int round = 0; round < 2; round++) {
		void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		pthread_t th[16];
		if (!lib)
			return puts(dlerror()), 1;
		use = (int (*)(int *))dlsym(lib, "use");
		caught = 0;
		for (int i = 0; i < 16; i++)
			pthread_create(&th[i], 0, worker, 0);
		for (int i = 0; i < 16; i++)
			pthread_join(th[i], 0);
		printf("made %d caught %d\n", made, caught);
		dlclose(lib);
	}
	return 0;
}
