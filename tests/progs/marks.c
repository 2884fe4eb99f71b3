// Marks, with the library and without.
#include <prophet.h>
#include <stdio.h>

int main(void)
{
	int i;
	prophet_begin("all");
	for (i = 0; i < 3; i++)
		prophet_mark("round");
	prophet_end("all");
	prophet_mark("");
	prophet_mark(
	    "a name that is so long that it is cut somewhere, because names that are as long as this one is, which goes on and on and on and on, are of no use "
	    "to anybody who reads them later, and it still goes on until it has more than the two hundred and fifty-five bytes that there are");
	puts("marked");
	return prophet_recording() ? 11 : 10;
}
