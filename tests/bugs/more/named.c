// A named semaphore that each process makes when it is not there yet, and sets to one again. Guarded: yes, re-executes under
// order alone. Fails: exit status 1, "two inside".
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	char name[32];
	snprintf(name, sizeof name, "/bug-%d", getpid());
	int bad = 0, p[2], got;
	pipe(p);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			sem_t *s = sem_open(name, O_CREAT, 0600, 1);
			int v;
			for (int k = 0; k < 10; k++) {
				sem_getvalue(s, &v);
				if (v == 0)
					sem_post(s); // "it has hung"
				sem_wait(s);
				write(p[1], "+", 1);
				write(p[1], "-", 1);
				sem_post(s);
			}
			_exit(0);
		}
	close(p[1]);
	int inside = 0, most = 0;
	for (char c; read(p[0], &c, 1) == 1;) {
		inside += c == '+' ? 1 : -1;
		if (inside > most)
			most = inside;
	}
	while (wait(0) > 0)
		;
	sem_unlink(name);
	if (most > 1) {
		printf("%d inside\n", most);
		return 1;
	}
	return 0;
}
