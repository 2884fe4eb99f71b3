/* Writes half of the time stamp counter, which nobody sees read, as a buffer that is set in part only. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

int main(void)
{
	unsigned aux, low = (unsigned)__rdtscp(&aux);
	char b[64] = "";
	memcpy(b + 8, &low, sizeof low);
	return write(1, b, sizeof b) != sizeof b;
}
