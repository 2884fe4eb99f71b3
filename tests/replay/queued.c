// Several threads, or processes, wait for the messages of a queue, POSIX's or System V's. Each message is sent when another has done with the one before, and after
// that so many at once that there is no room for them.
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAKERS 6
#define ROUNDS 300
#define MANY 200

static mqd_t q;
static int sysv; /* q is its number */
static struct shared {
	sem_t taken, ready;
	int got[TAKERS];
} * s;

static void put(unsigned b)
{
	struct {
		long type;
		unsigned b;
	} m = {1 + b % 3, b};
	if ((sysv ? msgsnd(q, &m, sizeof m.b, 0) : mq_send(q, (char *)&b, sizeof b, 0)) < 0)
		perror("sending");
}

static unsigned get(void)
{
	struct {
		long type;
		unsigned b;
	} m;
	if ((sysv ? msgrcv(q, &m, sizeof m.b, 0, 0) : mq_receive(q, (char *)&m.b, sizeof m.b, 0)) < 0)
		return 0;
	return m.b;
}

static void *take(void *me)
{
	unsigned b;
	sem_post(&s->ready);
	for (;;) {
		if (!(b = get()))
			return 0;
		s->got[(long)me] = s->got[(long)me] * 31 + (int)b;
		if (b <= ROUNDS)
			sem_post(&s->taken);
	}
}

int main(int argc, char **argv)
{
	struct mq_attr a = {.mq_maxmsg = 2, .mq_msgsize = sizeof(unsigned)};
	int processes = argc > 1 && !strcmp(argv[1], "processes");
	pthread_t t[TAKERS];
	char name[32];
	struct msqid_ds room;
	unsigned b;
	long i;
	snprintf(name, sizeof name, "/prophet-%d", getpid());
	sysv = argc > 2;
	q = sysv ? msgget(IPC_PRIVATE, IPC_CREAT | 0600) : mq_open(name, O_CREAT | O_RDWR, 0600, &a);
	s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (q < 0 || s == MAP_FAILED)
		return 2;
	if (sysv && msgctl(q, IPC_STAT, &room) == 0) {
		room.msg_qbytes = 2 * sizeof b;
		msgctl(q, IPC_SET, &room);
	}
	sem_init(&s->taken, 1, 0);
	sem_init(&s->ready, 1, 0);
	for (i = 0; i < TAKERS; i++) {
		if (!processes) {
			pthread_create(&t[i], 0, take, (void *)i);
		} else if (fork() == 0) {
			if (i % 2 && !sysv)
				q = mq_open(name, O_RDWR);
			take((void *)i);
			_exit(0);
		}
	}
	for (i = 0; i < TAKERS; i++)
		sem_wait(&s->ready);
	if (!sysv)
		mq_unlink(name);
	for (b = 1; b <= ROUNDS; b++) {
		put(b);
		sem_wait(&s->taken);
	}
	for (; b <= ROUNDS + MANY; b++)
		put(b);
	for (i = 0; i < TAKERS; i++)
		put(0);
	for (i = 0; i < TAKERS; i++)
		processes ? (void)wait(0) : (void)pthread_join(t[i], 0);
	for (i = 0; i < TAKERS; i++)
		printf("%x ", (unsigned)s->got[i]);
	puts("");
	if (sysv)
		msgctl(q, IPC_RMID, 0);
	return 0;
}
