// Each thing that lets another thread or process go on, once, in a known order: what lets go comes milliseconds after
// who waits. Every wait is of a call of its own, or told apart by who waits.
#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS 1000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int go, ev, pair[2], packets[2];
static volatile int here, leave; /* a thread is about to wait; may go on */

static void until(volatile int *flag)
{
	while (!*flag)
		usleep(MS);
}

static void *on_mutex(void *arg)
{
	here = 1;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return arg;
}

static void *on_cond(void *arg)
{
	here = 1;
	pthread_mutex_lock(&mutex);
	while (!go)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	return arg;
}

static void *on_read(void *arg)
{
	here = 1;
	pthread_rwlock_rdlock(&rwlock);
	until(&leave);
	pthread_rwlock_unlock(&rwlock);
	return arg;
}

static void *on_write(void *arg)
{
	here = 1;
	pthread_rwlock_wrlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	return arg;
}

static void *on_sem(void *arg)
{
	here = 1;
	sem_wait(&sem);
	return arg;
}

static void *on_barrier(void *arg)
{
	here = 1;
	pthread_barrier_wait(&barrier);
	return arg;
}

static void slowly(void)
{
	until(&leave);
}

static void *on_once(void *arg)
{
	here = 1;
	pthread_once(&once, slowly);
	return arg;
}

static void *on_pair(void *arg)
{
	char b[8];
	here = 1;
	read(pair[1], b, 8);
	recv(pair[1], b, 2, MSG_PEEK);
	recv(pair[1], b, 2, 0);
	return arg;
}

static void *on_packets(void *arg)
{
	char b[64];
	here = 1;
	recv(packets[1], b, 4, 0); /* the rest of the packet is lost */
	recv(packets[1], b, 64, 0);
	return arg;
}

static void *on_event(void *arg)
{
	unsigned long n;
	here = 1;
	read(ev, &n, 8);
	return arg;
}

static void *on_server(void *arg)
{
	int *fd = arg, c;
	char b[16];
	here = 1;
	c = accept(*fd, 0, 0);
	recv(c, b, 5, MSG_WAITALL);
	send(c, "yes", 3, 0);
	close(c);
	return 0;
}

static pthread_t start(void *(*f)(void *), void *arg)
{
	pthread_t t;
	here = 0;
	pthread_create(&t, 0, f, arg);
	until(&here);
	usleep(10 * MS);
	return t;
}

static void locks(void)
{
	pthread_t t, u;
	pthread_mutex_lock(&mutex);
	t = start(on_mutex, 0);
	pthread_mutex_unlock(&mutex);
	pthread_join(t, 0);

	t = start(on_cond, 0);
	pthread_mutex_lock(&mutex);
	go = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	pthread_join(t, 0);

	go = 0;
	t = start(on_cond, 0);
	u = start(on_cond, 0);
	pthread_mutex_lock(&mutex);
	go = 1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
	pthread_join(t, 0);
	pthread_join(u, 0);

	pthread_rwlock_wrlock(&rwlock);
	t = start(on_read, 0);
	pthread_rwlock_unlock(&rwlock); /* lets the reader in */
	usleep(10 * MS);
	u = start(on_write, 0); /* let in by the reader */
	leave = 1;
	pthread_join(t, 0);
	pthread_join(u, 0);

	t = start(on_sem, 0);
	sem_post(&sem);
	pthread_join(t, 0);

	pthread_barrier_init(&barrier, 0, 3);
	t = start(on_barrier, 0);
	u = start(on_barrier, 0);
	pthread_barrier_wait(&barrier);
	pthread_join(t, 0);
	pthread_join(u, 0);

	leave = 0;
	t = start(on_once, 0);
	u = start(on_once, 0);
	leave = 1;
	pthread_join(t, 0);
	pthread_join(u, 0);
}

static void channels(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "links.sock"};
	socklen_t len = sizeof a;
	pthread_t t;
	char b[16];
	int s, c, p[2];
	pid_t kid;

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	t = start(on_pair, 0);
	write(pair[0], "0123456789", 10); /* read in two parts */
	pthread_join(t, 0);

	socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets);
	send(packets[0], "first packet", 12, 0);
	t = start(on_packets, 0);
	send(packets[0], "second", 6, 0);
	pthread_join(t, 0);

	ev = eventfd(0, 0);
	t = start(on_event, 0);
	eventfd_write(ev, 3);
	pthread_join(t, 0);

	s = socket(AF_INET, SOCK_STREAM, 0);
	bind(s, (struct sockaddr *)&a, len);
	getsockname(s, (struct sockaddr *)&a, &len);
	listen(s, 4);
	t = start(on_server, &s);
	c = socket(AF_INET, SOCK_STREAM, 0);
	connect(c, (struct sockaddr *)&a, len);
	send(c, "abc", 3, 0);
	usleep(2 * MS);
	send(c, "de", 2, 0);
	recv(c, b, 16, 0);
	close(c);
	close(s);
	pthread_join(t, 0);

	unlink(un.sun_path);
	s = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(s, (struct sockaddr *)&un, sizeof un);
	listen(s, 4);
	kid = fork();
	if (!kid) {
		close(s);
		usleep(5 * MS);
		c = socket(AF_UNIX, SOCK_STREAM, 0);
		connect(c, (struct sockaddr *)&un, sizeof un);
		write(c, "hello", 5);
		read(c, b, 16);
		_exit(0);
	}
	t = start(on_server, &s);
	waitpid(kid, 0, 0);
	pthread_join(t, 0);
	close(s);
	unlink(un.sun_path);

	pipe(p);
	kid = fork();
	if (!kid) {
		dup2(p[0], 0);
		close(p[0]);
		close(p[1]);
		execl("/bin/sh", "sh", "-c", "read x; exit 3", (char *)0);
	}
	close(p[0]);
	usleep(20 * MS);
	write(p[1], "line\n", 5);
	waitpid(kid, 0, 0);
	close(p[1]);
	/* A number used again is another channel. */
	pipe(p);
	write(p[1], "x", 1);
	read(p[0], b, 1);
}

int main(void)
{
	sem_init(&sem, 0, 0);
	locks();
	channels();
	return 0;
}
