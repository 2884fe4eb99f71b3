// System V semaphores: two of a set are taken one after the other, in opposite orders, by two processes. Guarded: yes,
// re-executes under order alone. Fails: deadlock, to be ended by a timeout.
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>
#include <signal.h>
#include <stdlib.h>

static int id;
static void op(int n, int d)
{
	struct sembuf b = { n, d, SEM_UNDO };
	semop(id, &b, 1);
}
static void drop(void) { semctl(id, 0, IPC_RMID); }

int main(void)
{
	id = semget(IPC_PRIVATE, 2, 0600);
	semctl(id, 0, SETVAL, 1);
	semctl(id, 1, SETVAL, 1);
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			for (int k = 0; k < 20; k++) {
				struct sembuf b = { i, -1, SEM_UNDO };
				op(i, -1);
				struct timespec t = { 0, 200000000 };
				struct sembuf c = { !i, -1, SEM_UNDO };
				if (semtimedop(id, &c, 1, &t))
					_exit(1);
				op(!i, 1);
				op(i, 1);
			}
			_exit(0);
		}
	int s, bad = 0;
	while (wait(&s) > 0)
		bad |= s;
	drop();
	if (bad) {
		puts("stuck");
		return 1;
	}
	return 0;
}
