/* Named semaphores: one for all who open the name, until it is unlinked. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	char name[64];
	sem_t *a, *b;
	long *n = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int v;
	snprintf(name, sizeof name, "/prophet-test-%d", (int)getpid());
	a = sem_open(name, 0);
	printf("not there %d %s\n", a == SEM_FAILED, strerror(errno));
	a = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
	printf("made %d\n", a != SEM_FAILED);
	b = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
	printf("there %d %s\n", b == SEM_FAILED, strerror(errno));
	b = sem_open(name, 0);
	printf("same %d\n", a == b);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			sem_t *s = sem_open(name, O_CREAT, 0600, 5);
			for (int k = 0; k < 500; k++) {
				sem_wait(s);
				++*n;
				sem_post(s);
			}
			sem_close(s);
			_exit(0);
		}
	while (wait(0) > 0)
		;
	printf("processes %ld\n", *n);
	sem_getvalue(a, &v);
	printf("value %d\n", v);
	printf("close %d %d\n", sem_close(a), sem_close(b));
	printf("unlink %d\n", sem_unlink(name));
	printf("again %d %s\n", sem_unlink(name), strerror(errno));
	/* The name is free: another semaphore. */
	a = sem_open(name, O_CREAT | O_EXCL, 0600, 3);
	sem_getvalue(a, &v);
	printf("value %d\n", v);
	sem_unlink(name);
	sem_wait(a);
	sem_close(a);
	return 0;
}
