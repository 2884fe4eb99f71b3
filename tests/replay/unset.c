/* Writes half of the time stamp counter, which nobody sees read (not in a function with a jump that may go anywhere), as a buffer that
 * is set in part only. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

int main(int argc, char **argv)
{
	void *const to[] = {&&reads, &&ends};
	unsigned aux, low;
	char b[64] = "";
	(void)argv;
	goto *to[argc > 1];
reads:
	low = (unsigned)__rdtscp(&aux);
	memcpy(b + 8, &low, sizeof low);
ends:
	return write(1, b, sizeof b) != sizeof b;
}
