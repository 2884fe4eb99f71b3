// cflags: -shared -fPIC
// The library of large.c. Less than that of it is in the file: what counts is how much is mapped at once.
#include <time.h>

const char large_data[1 << 20] = {1};
char large_room[1 << 20];

long large_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}
