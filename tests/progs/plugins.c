// cflags: -ldl
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int i;
	for (i = 0; i < 30; i++) {
		void *h = dlopen(argv[1], i % 2 ? RTLD_NOW : RTLD_LAZY);
		if (!h) {
			printf("%s\n", dlerror());
			return 1;
		}
		int (*f)(int) = (int (*)(int))dlsym(h, "plugin");
		printf("%d\n", f(i));
		fflush(stdout);
		dlclose(h);
	}
	return 0;
}
