// Two processes write records to one pipe that are longer than it takes in one go: they come out mixed. Guarded: yes (a pipe's
// order is recorded), re-executes under order alone. Fails: exit status 1, "mixed".
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { size = 6000 };

int main(void)
{
	int p[2];
	pipe(p);
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			char b[size];
			memset(b, 'a' + i, size);
			close(p[0]);
			for (int k = 0; k < 20; k++)
				write(p[1], b, size);
			_exit(0);
		}
	close(p[1]);
	char b[size];
	int bad = 0;
	for (int k = 0;; k++) {
		size_t n = 0;
		ssize_t r = 0;
		while (n < size && (r = read(p[0], b + n, size - n)) > 0)
			n += r;
		if (n == 0)
			break;
		for (int i = 1; i < size; i++)
			if (b[i] != b[0])
				bad++;
	}
	while (wait(0) > 0)
		;
	if (bad) {
		printf("mixed %d\n", bad);
		return 1;
	}
	return 0;
}
