// A library whose constructor runs before libprophet.so's, as allocators' do: it keeps what it asked of the clock and of the
// random source. It is large in memory, not in its file, so the kernel aligns it; where that and the thread's data lie is
// what programs hash. Compiled twice: LIBRARY, and the program that prints what the library kept.
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#ifdef LIBRARY
static char large[3 << 20];
static __thread int local;
uint64_t kept[4];

__attribute__((constructor)) static void early(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	kept[0] = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	if (getrandom(kept + 1, 8, 0) != 8)
		kept[1] = 0;
	kept[2] = (uint64_t)large;
	kept[3] = (uint64_t)&local;
}
#else
extern uint64_t kept[4];

int main(void)
{
	for (int i = 0; i < 4; i++)
		printf("%jx\n", (uintmax_t)kept[i]);
	return 0;
}
#endif
