/* Libraries that come and go; what is not one is refused. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	void *self = dlopen(0, RTLD_NOW), *lib = dlopen("libBrokenLocale.so.1", RTLD_LAZY | RTLD_LOCAL);
	int i;
	printf("%d %d\n", self != 0, lib != 0);
	printf("%d\n", dlopen("libBrokenLocale.so.1", RTLD_LAZY | RTLD_LOCAL) == lib);
	printf("%d %d %d\n", dlclose(lib), dlclose(lib), dlclose(self));
	for (i = 0; i < 20; i++) {
		lib = dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_LOCAL);
		if (!lib || dlclose(lib) != 0)
			printf("round %d\n", i);
	}
	printf("%d\n", dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_NOLOAD) == 0);
	return 0;
}
