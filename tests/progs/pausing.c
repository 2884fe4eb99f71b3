// Waits of every kind, each in a thread of its own, with a pause of the run in the middle that none may see. Says
// "ready", and at the end what went wrong. Arguments: how many threads compute meanwhile (which makes the pause stop
// the process by a signal), and which group of waits.
#include <errno.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 400
#define SLACK_MS 120 // of a busy machine

static const struct timespec rel = {0, WAIT_MS * 1000000l};

static long long now_ms(clockid_t c)
{
	struct timespec ts;
	clock_gettime(c, &ts);
	return ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
}

static struct timespec in(clockid_t c)
{
	struct timespec ts;
	clock_gettime(c, &ts);
	ts.tv_nsec += WAIT_MS * 1000000l;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

static int pair[2], epfd, fullq, msgq, sems;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t cmtx;
static mqd_t emptyq;
static sem_t zero;
static pthread_t sleeper;
static atomic_int stop, word;

// Each answers 0 when it was as it must be.
static int w_poll(void)
{
	return poll(0, 0, WAIT_MS);
}
static int w_ppoll(void)
{
	return ppoll(0, 0, &rel, 0);
}
static int w_select(void)
{
	struct timeval tv = {0, WAIT_MS * 1000};
	fd_set r;
	FD_ZERO(&r);
	FD_SET(pair[0], &r);
	return select(pair[0] + 1, &r, 0, 0, &tv);
}
static int w_pselect(void)
{
	return pselect(0, 0, 0, 0, &rel, 0);
}
static int w_epoll(void)
{
	struct epoll_event e;
	return epoll_wait(epfd, &e, 1, WAIT_MS);
}
static int w_epoll_pwait(void)
{
	struct epoll_event e;
	return epoll_pwait(epfd, &e, 1, WAIT_MS, 0);
}
static int w_epoll_pwait2(void)
{
	struct epoll_event e;
	return epoll_pwait2(epfd, &e, 1, &rel, 0);
}
static int w_nanosleep(void)
{
	return nanosleep(&rel, 0);
}
static int w_clock_nanosleep(void)
{
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &rel, 0);
}
static int w_absolute(void)
{
	struct timespec t = in(CLOCK_MONOTONIC);
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
}
static int w_absolute_real(void)
{
	struct timespec t = in(CLOCK_REALTIME);
	return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, 0);
}
static int w_absolute_boot(void)
{
	struct timespec t = in(CLOCK_BOOTTIME);
	return clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, 0);
}
static int w_usleep(void)
{
	return usleep(WAIT_MS * 1000);
}
static int w_thrd_sleep(void)
{
	return thrd_sleep(&rel, 0);
}
static int cond_once(int which)
{
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_condattr_t a;
	struct timespec t = in(which ? CLOCK_MONOTONIC : CLOCK_REALTIME);
	int r;
	pthread_condattr_init(&a);
	if (which == 2)
		pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(&c, &a);
	pthread_mutex_lock(&m);
	r = which == 1 ? pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &t) : pthread_cond_timedwait(&c, &m, &t);
	pthread_mutex_unlock(&m);
	return r == ETIMEDOUT ? 0 : 1 + r;
}
static int w_cond(void)
{
	return cond_once(0);
}
static int w_cond_clock(void)
{
	return cond_once(1);
}
static int w_cond_mono(void)
{
	return cond_once(2);
}
static int w_cnd(void)
{
	cnd_t c;
	mtx_t m;
	struct timespec t = in(CLOCK_REALTIME);
	int r;
	cnd_init(&c);
	mtx_init(&m, mtx_plain);
	mtx_lock(&m);
	r = cnd_timedwait(&c, &m, &t);
	mtx_unlock(&m);
	return r == thrd_timedout ? 0 : 1 + r;
}
static int w_mutex(void)
{
	struct timespec t = in(CLOCK_REALTIME);
	return pthread_mutex_timedlock(&held, &t) == ETIMEDOUT ? 0 : 1;
}
static int w_mutex_clock(void)
{
	struct timespec t = in(CLOCK_MONOTONIC);
	return pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &t) == ETIMEDOUT ? 0 : 1;
}
static int w_mtx(void)
{
	struct timespec t = in(CLOCK_REALTIME);
	return mtx_timedlock(&cmtx, &t) == thrd_timedout ? 0 : 1;
}
static int w_rd(void)
{
	struct timespec t = in(CLOCK_REALTIME);
	return pthread_rwlock_timedrdlock(&rw, &t) == ETIMEDOUT ? 0 : 1;
}
static int w_wr(void)
{
	struct timespec t = in(CLOCK_REALTIME);
	return pthread_rwlock_timedwrlock(&rw, &t) == ETIMEDOUT ? 0 : 1;
}
static int w_rd_clock(void)
{
	struct timespec t = in(CLOCK_MONOTONIC);
	return pthread_rwlock_clockrdlock(&rw, CLOCK_MONOTONIC, &t) == ETIMEDOUT ? 0 : 1;
}
static int w_wr_clock(void)
{
	struct timespec t = in(CLOCK_MONOTONIC);
	return pthread_rwlock_clockwrlock(&rw, CLOCK_MONOTONIC, &t) == ETIMEDOUT ? 0 : 1;
}
static int w_sem(void)
{
	struct timespec t = in(CLOCK_REALTIME);
	return sem_timedwait(&zero, &t) == -1 && errno == ETIMEDOUT ? 0 : 1;
}
static int w_sem_clock(void)
{
	struct timespec t = in(CLOCK_MONOTONIC);
	return sem_clockwait(&zero, CLOCK_MONOTONIC, &t) == -1 && errno == ETIMEDOUT ? 0 : 1;
}
static int w_join(void)
{
	struct timespec t = in(CLOCK_REALTIME);
	return pthread_timedjoin_np(sleeper, 0, &t) == ETIMEDOUT ? 0 : 1;
}
static int w_join_clock(void)
{
	struct timespec t = in(CLOCK_MONOTONIC);
	return pthread_clockjoin_np(sleeper, 0, CLOCK_MONOTONIC, &t) == ETIMEDOUT ? 0 : 1;
}
static int w_sigtimedwait(void)
{
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR2);
	return sigtimedwait(&s, 0, &rel) == -1 && errno == EAGAIN ? 0 : 1;
}
static int w_mq_receive(void)
{
	struct timespec t = in(CLOCK_REALTIME);
	char b[64];
	return mq_timedreceive(emptyq, b, sizeof b, 0, &t) == -1 && errno == ETIMEDOUT ? 0 : 1;
}
static int w_mq_send(void)
{
	struct timespec t = in(CLOCK_REALTIME);
	return mq_timedsend(fullq, "x", 1, 0, &t) == -1 && errno == ETIMEDOUT ? 0 : 1;
}
static int w_semtimedop(void)
{
	struct sembuf op = {0, -1, 0};
	return semtimedop(sems, &op, 1, &rel) == -1 && errno == EAGAIN ? 0 : 1;
}
static int limited(int fd, int which)
{
	struct timeval tv = {0, WAIT_MS * 1000};
	return setsockopt(fd, SOL_SOCKET, which, &tv, sizeof tv);
}
static int w_recv(void)
{
	int p[2];
	char b;
	socketpair(AF_UNIX, SOCK_STREAM, 0, p);
	limited(p[0], SO_RCVTIMEO);
	return recv(p[0], &b, 1, 0) == -1 && errno == EAGAIN ? 0 : 1;
}
static int w_read(void)
{
	int p[2];
	char b;
	socketpair(AF_UNIX, SOCK_STREAM, 0, p);
	limited(p[0], SO_RCVTIMEO);
	return read(p[0], &b, 1) == -1 && errno == EAGAIN ? 0 : 1;
}
static int w_recvmsg(void)
{
	int p[2];
	char b;
	struct iovec v = {&b, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	socketpair(AF_UNIX, SOCK_DGRAM, 0, p);
	limited(p[0], SO_RCVTIMEO);
	return recvmsg(p[0], &m, 0) == -1 && errno == EAGAIN ? 0 : 1;
}
static int w_send(void)
{
	int p[2];
	static char b[65536];
	long long begin = now_ms(CLOCK_MONOTONIC);
	socketpair(AF_UNIX, SOCK_STREAM, 0, p);
	while (send(p[0], b, sizeof b, MSG_DONTWAIT) > 0)
		;
	limited(p[0], SO_SNDTIMEO);
	(void)begin;
	return send(p[0], b, sizeof b, 0) == -1 && errno == EAGAIN ? 0 : 1;
}
static int w_accept(void)
{
	struct sockaddr_un a = {AF_UNIX, ""};
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(s, (struct sockaddr *)&a, sizeof(sa_family_t));
	listen(s, 1);
	limited(s, SO_RCVTIMEO);
	return accept(s, 0, 0) == -1 && errno == EAGAIN ? 0 : 1;
}
static int w_timerfd(void)
{
	struct itimerspec t = {{0, 0}, rel};
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	unsigned long long n = 0;
	timerfd_settime(fd, 0, &t, 0);
	return read(fd, &n, 8) == 8 && n == 1 ? 0 : 1;
}
static int w_timerfd_abs(void)
{
	struct itimerspec t = {{0, 0}, in(CLOCK_REALTIME)};
	int fd = timerfd_create(CLOCK_REALTIME, 0);
	struct pollfd p = {fd, POLLIN, 0};
	timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, 0);
	return poll(&p, 1, 5000) == 1 ? 0 : 1;
}
static int w_timerfd_every(void)
{
	struct itimerspec t = {{0, 100000000}, {0, 100000000}};
	int fd = timerfd_create(CLOCK_MONOTONIC, 0), i;
	unsigned long long n = 0, all = 0;
	timerfd_settime(fd, 0, &t, 0);
	for (i = 0; all < 4; i++) {
		if (read(fd, &n, 8) != 8)
			return 1;
		all += n;
	}
	return all == 4 ? 0 : (int)all;
}
static int w_futex(void)
{
	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &rel, 0, 0) == -1 && errno == ETIMEDOUT ? 0 : 1;
}
static int w_futex_abs(void)
{
	struct timespec t = in(CLOCK_MONOTONIC);
	return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &t, 0, -1) == -1 && errno == ETIMEDOUT ? 0 : 1;
}

// Waits without a timeout, that the main thread ends after WAIT_MS.
static sem_t posted;
static int woken[2], wokenep;
static pthread_cond_t signalled = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int flag;
static int e_epoll(void)
{
	struct epoll_event e;
	return epoll_wait(wokenep, &e, 1, -1) == 1 ? 0 : 1;
}
static int e_poll(void)
{
	struct pollfd p = {woken[0], POLLIN, 0};
	return poll(&p, 1, -1) == 1 ? 0 : 1;
}
static int e_recv(void)
{
	char b;
	return recv(woken[0], &b, 1, MSG_PEEK) == 1 ? 0 : 1;
}
static int e_sem(void)
{
	return sem_wait(&posted);
}
static int e_semop(void)
{
	struct sembuf op = {1, -1, 0};
	return semop(sems, &op, 1);
}
static int e_msgrcv(void)
{
	struct {
		long type;
		char text[8];
	} m;
	return msgrcv(msgq, &m, 8, 1, 0) == 1 ? 0 : 1;
}
static int e_cond(void)
{
	pthread_mutex_lock(&guard);
	while (!flag)
		pthread_cond_wait(&signalled, &guard);
	pthread_mutex_unlock(&guard);
	return 0;
}
static int e_cond_timed(void)
{
	struct timespec t = in(CLOCK_REALTIME);
	int r = 0;
	t.tv_sec += 5;
	pthread_mutex_lock(&guard);
	while (!flag && !r)
		r = pthread_cond_timedwait(&signalled, &guard, &t);
	pthread_mutex_unlock(&guard);
	return r;
}
static int e_sigwait(void)
{
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	return sigwaitinfo(&s, 0) == SIGUSR1 ? 0 : 1;
}
static int e_waitpid(void)
{
	int st, r;
	pid_t p = fork();
	if (!p) {
		nanosleep(&rel, 0);
		_exit(7);
	}
	r = waitpid(p, &st, WUNTRACED | WCONTINUED);
	return r == p && WIFEXITED(st) && WEXITSTATUS(st) == 7 ? 0 : 1;
}

// Handlers of the program and its alarms.
static atomic_int alarms, childs, conts;
static void on_alarm(int s)
{
	(void)s, alarms++;
}
static void on_child(int s)
{
	(void)s, childs++;
}
static void on_cont(int s)
{
	(void)s, conts++;
}
static int a_alarm(void)
{
	struct itimerval t = {{0, 0}, {0, WAIT_MS * 1000}};
	setitimer(ITIMER_REAL, &t, 0);
	return pause() == -1 && errno == EINTR && alarms == 1 ? 0 : 1 + alarms;
}
static int a_timer(void)
{
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	struct itimerspec t = {{0, 0}, in(CLOCK_REALTIME)};
	timer_t id;
	timer_create(CLOCK_REALTIME, &e, &id);
	timer_settime(id, TIMER_ABSTIME, &t, 0);
	return nanosleep(&(struct timespec){5, 0}, 0) == -1 && errno == EINTR ? 0 : 1;
}
static int a_default(void) // it is killed by its alarm, in time
{
	pid_t p = fork();
	int st;
	if (!p) {
		struct itimerval t = {{0, 0}, {0, WAIT_MS * 1000}};
		signal(SIGALRM, SIG_DFL);
		setitimer(ITIMER_REAL, &t, 0);
		for (;;)
			sleep(10);
	}
	while (waitpid(p, &st, 0) == -1)
		;
	return WIFSIGNALED(st) && WTERMSIG(st) == SIGALRM ? 0 : 1;
}
static int a_quiet(void) // neither SIGCHLD for a child that computes, nor SIGCONT, nor EINTR
{
	pid_t p = fork();
	int st, r;
	if (!p) {
		long long until = now_ms(CLOCK_MONOTONIC) + WAIT_MS;
		volatile unsigned long n = 0;
		while (now_ms(CLOCK_MONOTONIC) < until)
			for (int i = 0; i < 300000000 && !stop; i++)
				n++;
		_exit(0);
	}
	r = poll(0, 0, WAIT_MS / 2) == 0 ? 0 : 64;
	if (childs)
		r |= 1;
	if (conts)
		r |= 2;
	while (waitpid(p, &st, WUNTRACED | WCONTINUED) == -1)
		r |= 4;
	if (!WIFEXITED(st))
		r |= 8;
	kill(getpid(), SIGCONT); // the program's own is its own
	return conts == 1 ? r : r | 16;
}

struct wait {
	const char *name;
	int (*fn)(void);
	int group, free; // free: how long it takes is not looked at
} waits[] = {
#define W(n)                    \
	{                       \
#n, w_##n, 0, 0 \
	}
#define E(n)                    \
	{                       \
#n, e_##n, 1, 0 \
	}
#define A(n, g)                 \
	{                       \
#n, a_##n, g, 0 \
	}
    W(poll),
    W(ppoll),
    W(select),
    W(pselect),
    W(epoll),
    W(epoll_pwait),
    W(epoll_pwait2),
    W(nanosleep),
    W(clock_nanosleep),
    W(absolute),
    W(absolute_real),
    W(absolute_boot),
    W(usleep),
    W(thrd_sleep),
    W(cond),
    W(cond_clock),
    W(cond_mono),
    W(cnd),
    W(mutex),
    W(mutex_clock),
    W(mtx),
    W(rd),
    W(wr),
    W(rd_clock),
    W(wr_clock),
    W(sem),
    W(sem_clock),
    W(join),
    W(join_clock),
    W(sigtimedwait),
    W(mq_receive),
    W(mq_send),
    W(semtimedop),
    W(recv),
    W(read),
    W(recvmsg),
    W(send),
    W(accept),
    W(timerfd),
    W(timerfd_abs),
    W(timerfd_every),
    W(futex),
    W(futex_abs),
    E(epoll),
    E(poll),
    E(recv),
    E(sem),
    E(semop),
    E(msgrcv),
    E(cond),
    E(cond_timed),
    E(sigwait),
    E(waitpid),
    A(alarm, 2),
    A(timer, 3),
    A(default, 4),
    {"quiet", a_quiet, 5, 1},
};
#define N (int)(sizeof waits / sizeof *waits)

static pthread_barrier_t start;
static atomic_int bad;

static void *run(void *arg)
{
	struct wait *w = arg;
	long long begin, took;
	int r;
	pthread_barrier_wait(&start);
	begin = now_ms(CLOCK_MONOTONIC);
	r = w->fn();
	took = now_ms(CLOCK_MONOTONIC) - begin;
	if (r || (!w->free && (took < WAIT_MS - (w->group == 1 ? SLACK_MS : 2) || took > WAIT_MS + SLACK_MS))) {
		printf("%s: answered %d after %lld ms (errno %d)\n", w->name, r, took, errno);
		bad++;
	}
	return 0;
}

static void *compute(void *arg)
{
	volatile unsigned long n = 0;
	while (!stop)
		n++;
	return arg;
}

static void *sleeps(void *arg)
{
	sleep(30);
	return arg;
}

int main(int argc, char **argv)
{
	int spinners = argc > 1 ? atoi(argv[1]) : 0, group = argc > 2 ? atoi(argv[2]) : 0, i, n = 0;
	pthread_t th[N], spin[64];
	sigset_t all;
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 64};
	char name[64];
	sigset_t s;
	struct epoll_event ev = {EPOLLIN, {0}};
	long long before;
	setvbuf(stdout, 0, _IOLBF, 0);
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	sigaddset(&s, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &s, 0);
	if (group >= 2) {
		struct sigaction a = {.sa_handler = on_alarm};
		sigaction(SIGALRM, &a, 0);
		a.sa_handler = on_child;
		sigaction(SIGCHLD, &a, 0);
		a.sa_handler = on_cont;
		if (group == 5)
			sigaction(SIGCONT, &a, 0);
	}
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	socketpair(AF_UNIX, SOCK_STREAM, 0, woken);
	epfd = epoll_create1(0);
	epoll_ctl(epfd, EPOLL_CTL_ADD, pair[0], &ev);
	wokenep = epoll_create1(0);
	epoll_ctl(wokenep, EPOLL_CTL_ADD, woken[0], &ev);
	sems = semget(IPC_PRIVATE, 2, 0600);
	msgq = msgget(IPC_PRIVATE, 0600);
	sem_init(&zero, 0, 0);
	sem_init(&posted, 0, 0);
	mtx_init(&cmtx, mtx_timed);
	mtx_lock(&cmtx);
	pthread_mutex_lock(&held);
	pthread_rwlock_wrlock(&rw);
	snprintf(name, sizeof name, "/prophet-pausing-%d", getpid());
	fullq = mq_open(name, O_CREAT | O_RDWR, 0600, &attr);
	mq_unlink(name);
	mq_send(fullq, "x", 1, 0);
	emptyq = mq_open(name, O_CREAT | O_RDWR, 0600, &attr);
	mq_unlink(name);
	pthread_create(&sleeper, 0, sleeps, 0);
	for (i = 0; i < N; i++)
		n += waits[i].group == group;
	pthread_barrier_init(&start, 0, (unsigned)n + 1);
	if (group < 2) {
		for (n = 0, i = 0; i < N; i++)
			if (waits[i].group == group)
				pthread_create(&th[n++], 0, run, &waits[i]);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &s); // their waits get the signals
	for (i = 0; i < spinners; i++)
		pthread_create(&spin[i], 0, compute, 0);
	pthread_sigmask(SIG_SETMASK, &s, 0);
	before = now_ms(CLOCK_MONOTONIC);
	puts("ready");
	if (group < 2) {
		pthread_barrier_wait(&start);
		if (group == 1) {
			nanosleep(&rel, 0);
			send(woken[1], "x", 1, 0);
			sem_post(&posted);
			semop(sems, &(struct sembuf){1, 1, 0}, 1);
			msgsnd(msgq, &(struct {
				       long t;
				       char b[8];
			       }){1, "x"},
			       1, 0);
			pthread_mutex_lock(&guard);
			flag = 1;
			pthread_cond_broadcast(&signalled);
			pthread_mutex_unlock(&guard);
			kill(getpid(), SIGUSR1);
		}
		for (i = 0; i < n; i++)
			pthread_join(th[i], 0);
	} else {
		pthread_barrier_init(&start, 0, 1);
		for (i = 0; i < N; i++)
			if (waits[i].group == group)
				run(&waits[i]);
	}
	stop = 1;
	for (i = 0; i < spinners; i++)
		pthread_join(spin[i], 0);
	semctl(sems, 0, IPC_RMID);
	msgctl(msgq, IPC_RMID, 0);
	printf("%d wrong in %lld s\n", bad, (now_ms(CLOCK_MONOTONIC) - before) / 1000);
	fflush(stdout);
	_exit(bad != 0);
}
