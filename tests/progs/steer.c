/* A program that steers its own recording, and without the library does the same: what it prints are the answers. */
#include "../../cabi/prophet.h"
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	int stop = prophet_stop(), again = prophet_stop(), start;
	getppid();
	start = prophet_start();
	printf("%d %d %d %d\n", stop, again, start, prophet_start());
	printf("recording %d, abi %d\n", prophet_recording(), prophet_abi());
	fflush(stdout);
	getpgrp();
	return 0;
}
