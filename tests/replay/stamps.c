// Prints what the time stamp counter says.
#include <stdint.h>
#include <stdio.h>

int main(void)
{
	uint32_t low, high;
	int i;
	for (i = 0; i < 20; i++) {
		__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
		printf("%lu\n", (uint64_t)high << 32 | low);
	}
	for (i = 0; i < 20; i++) {
		uint32_t core;
		__asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(core));
		printf("%lu %u\n", (uint64_t)high << 32 | low, core);
	}
	return 0;
}
