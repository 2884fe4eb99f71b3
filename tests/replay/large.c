// Prints where a library with two mebibytes of data, the first argument, and mapped files of that size lie, and where the C
// library came to lie beside ours.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	void *lib = dlopen(argv[1], RTLD_NOW);
	int fd = open(argv[2], O_RDONLY), other = open(argv[3], O_RDWR);
	if (!lib)
		return fprintf(stderr, "%s\n", dlerror()), 1;
	((long (*)(void))dlsym(lib, "large_time"))();
	printf("%p %p %p %p %p\n", dlsym(lib, "large_data"), mmap(0, 2 << 20, PROT_READ, MAP_PRIVATE, fd, 0),
	       mmap(0, 2 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0), mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	       dlsym(RTLD_NEXT, "puts"));
	return 0;
}
