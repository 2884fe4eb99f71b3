/* System V semaphores, messages and shared memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct msg {
	long type;
	char text[3000];
};

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
};

int main(void)
{
	int sem = semget(IPC_PRIVATE, 2, 0600 | IPC_CREAT), q = msgget(IPC_PRIVATE, 0600 | IPC_CREAT), shm = shmget(IPC_PRIVATE, 8192, 0600 | IPC_CREAT), r;
	struct sembuf down = {0, -1, 0}, up = {0, 1, 0}, now = {0, -1, IPC_NOWAIT};
	struct timespec soon = {0, 20000000};
	union semun u = {.val = 1};
	struct msqid_ds md;
	struct shmid_ds sd;
	struct msg m;
	volatile long *n;
	printf("got %d %d %d\n", sem >= 0, q >= 0, shm >= 0);
	printf("set %d value %d\n", semctl(sem, 0, SETVAL, u), semctl(sem, 0, GETVAL));
	n = shmat(shm, 0, 0);
	printf("at %d\n", n != (void *)-1);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			for (int k = 0; k < 300; k++) {
				semop(sem, &down, 1);
				n[0]++;
				semop(sem, &up, 1);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
	printf("sum %ld\n", n[0]);
	printf("down %d\n", semtimedop(sem, &down, 1, 0));
	r = semtimedop(sem, &down, 1, &soon);
	printf("timed %d %s\n", r, strerror(errno));
	r = semop(sem, &now, 1);
	printf("nowait %d %s\n", r, strerror(errno));
	r = semop(sem, (void *)1, 1);
	printf("bad pointer %d %s\n", r, strerror(errno));
	r = semop(-1, &up, 1);
	printf("bad id %d %s\n", r, strerror(errno));
	memset(&m, 'x', sizeof m);
	m.type = 5;
	printf("snd %d\n", msgsnd(q, &m, sizeof m.text, 0));
	m.type = 6;
	printf("snd %d\n", msgsnd(q, &m, 10, 0));
	printf("stat %d %d\n", msgctl(q, IPC_STAT, &md), (int)md.msg_qnum);
	r = msgrcv(q, &m, sizeof m.text, 6, 0);
	printf("rcv %d %ld\n", r, m.type);
	r = msgrcv(q, &m, 5, 0, 0);
	printf("too small %d %s\n", r, strerror(errno));
	r = msgrcv(q, &m, sizeof m.text, 0, 0);
	printf("rcv %d %ld %c\n", r, m.type, m.text[2999]);
	r = msgrcv(q, &m, 5, 0, IPC_NOWAIT);
	printf("empty %d %s\n", r, strerror(errno));
	printf("size %d %d\n", shmctl(shm, IPC_STAT, &sd), (int)sd.shm_segsz);
	printf("dt %d\n", shmdt((void *)n));
	r = shmdt((void *)n);
	printf("dt again %d %s\n", r, strerror(errno));
	r = (long)shmat(-1, 0, 0);
	printf("bad at %d %s\n", r, strerror(errno));
	printf("gone %d %d %d\n", semctl(sem, 0, IPC_RMID), msgctl(q, IPC_RMID, 0), shmctl(shm, IPC_RMID, 0));
	return 0;
}
