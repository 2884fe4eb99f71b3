/* Asynchronous I/O in all its forms: on files and pipes, told by asking, waiting and signals. */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int bad;
#define CHECK(x) ((x) ? (void)0 : (void)(bad = 1, printf("line %d: %s: errno %d\n", __LINE__, #x, errno)))

static volatile sig_atomic_t told, value, code;

static void handler(int sig, siginfo_t *si, void *context)
{
	told++;
	value = si->si_value.sival_int;
	code = si->si_code;
}

static struct aiocb threaded;
static sem_t called;

static void callback(union sigval v)
{
	printf("called for %d: %d\n", v.sival_int, v.sival_int < 90 ? (int)aio_return(&threaded) : 0);
	sem_post(&called);
}

static void wait_for(struct aiocb *cb)
{
	const struct aiocb *list[1] = {cb};
	while (aio_error(cb) == EINPROGRESS)
		aio_suspend(list, 1, 0);
}

static struct aiocb of(int fd, void *buf, size_t n, off_t off)
{
	struct aiocb cb;
	memset(&cb, 0, sizeof cb);
	cb.aio_fildes = fd;
	cb.aio_buf = buf;
	cb.aio_nbytes = n;
	cb.aio_offset = off;
	cb.aio_sigevent.sigev_notify = SIGEV_NONE;
	return cb;
}

int main(void)
{
	char out[5000], in[5000], small[4][16] = {"first", "second", "third", ""};
	struct aiocb a, b, c, *list[4], *nothing[1] = {0};
	struct aiocb64 w;
	const struct aiocb *waited[3];
	const struct aiocb64 *waited64[1] = {&w};
	struct timespec soon = {0, 1000000}, limit = {20, 0};
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	struct sigevent sev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 78};
	sigset_t block, before;
	int fd = open("aio.data", O_RDWR | O_CREAT | O_TRUNC, 0600), p[2], i;
	memset(out, 'a', sizeof out);
	out[4999] = 'z';

	/* A file, by asking. */
	a = of(fd, out, sizeof out, 0);
	CHECK(aio_write(&a) == 0);
	wait_for(&a);
	CHECK(aio_error(&a) == 0 && aio_return(&a) == 5000);
	a = of(fd, 0, 0, 0);
	CHECK(aio_fsync(O_SYNC, &a) == 0);
	wait_for(&a);
	CHECK(aio_return(&a) == 0);
	a = of(fd, in, sizeof in, 100);
	CHECK(aio_read(&a) == 0);
	wait_for(&a);
	CHECK(in[4899] == 'z' && aio_return(&a) == 4900);
	CHECK(memcmp(in, out + 100, 4900) == 0);

	/* The forms with 64, and what was there before. */
	memset(&w, 0, sizeof w);
	w.aio_fildes = fd;
	w.aio_buf = "over";
	w.aio_nbytes = 4;
	w.aio_offset = 5000;
	CHECK(aio_write64(&w) == 0 && aio_suspend64(waited64, 1, 0) == 0 && aio_error64(&w) == 0 && aio_return64(&w) == 4);
	CHECK(aio_fsync64(O_DSYNC, &w) == 0 && aio_suspend64(waited64, 1, 0) == 0 && aio_return64(&w) == 0);
	w.aio_buf = in;
	CHECK(aio_read64(&w) == 0 && aio_suspend64(waited64, 1, 0) == 0 && memcmp(in, "over", 4) == 0 && aio_return64(&w) == 4);
	CHECK(pread(fd, in, 4, 5000) == 4 && memcmp(in, "over", 4) == 0);

	/* What fails. */
	a = of(-1, in, 1, 0);
	i = aio_read(&a);
	if (i == 0) {
		wait_for(&a);
		CHECK(aio_error(&a) == EBADF && aio_return(&a) == -1);
	}
	a = of(fd, in, 1, 0);
	CHECK(aio_fsync(12345, &a) == -1 && errno == EINVAL);
	CHECK(aio_cancel(-1, 0) == -1 && errno == EBADF);
	CHECK(lio_listio(99, nothing, 1, 0) == -1 && errno == EINVAL);

	/* Many at once. */
	for (i = 0; i < 3; i++) {
		list[i] = i == 0 ? &a : i == 1 ? &b : &c;
		*list[i] = of(fd, small[i], 8, i * 8);
		list[i]->aio_lio_opcode = LIO_WRITE;
	}
	list[3] = 0;
	CHECK(lio_listio(LIO_WAIT, list, 4, 0) == 0);
	for (i = 0; i < 3; i++)
		CHECK(aio_error(list[i]) == 0 && aio_return(list[i]) == 8);
	for (i = 0; i < 3; i++) {
		*list[i] = of(fd, in + i * 8, 8, i * 8);
		list[i]->aio_lio_opcode = LIO_READ;
	}
	CHECK(lio_listio64(LIO_WAIT, (struct aiocb64 *const *)list, 3, 0) == 0 && strcmp(in + 8, "second") == 0);
	for (i = 0; i < 3; i++)
		CHECK(aio_return(list[i]) == 8);

	/* By signals, in and around a wait. */
	CHECK(sigaction(SIGUSR1, &sa, 0) == 0);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigprocmask(SIG_BLOCK, &block, &before);
	a = of(fd, in, 8, 8);
	a.aio_sigevent = sev;
	a.aio_sigevent.sigev_value.sival_int = 77;
	CHECK(aio_read(&a) == 0);
	while (!told)
		sigsuspend(&before);
	CHECK(value == 77 && code == SI_ASYNCIO && aio_error(&a) == 0 && strcmp(in, "second") == 0 && aio_return(&a) == 8);
	told = 0;
	sigprocmask(SIG_SETMASK, &before, 0);
	for (i = 0; i < 3; i++) {
		*list[i] = of(fd, in + i * 8, 8, i * 8);
		list[i]->aio_lio_opcode = LIO_READ;
	}
	CHECK(lio_listio(LIO_NOWAIT, list, 3, &sev) == 0);
	while (!told)
		aio_suspend((const struct aiocb *const *)list, 3, &soon);
	for (i = 0; i < 3; i++)
		CHECK(aio_error(list[i]) == 0 && aio_return(list[i]) == 8);
	CHECK(value == 78 && strcmp(in + 16, "third") == 0);
	told = 0;

	/* By threads. */
	CHECK(sem_init(&called, 0, 0) == 0);
	for (i = 80; i < 83; i++) {
		threaded = of(fd, in, 8, 0);
		threaded.aio_sigevent.sigev_notify = SIGEV_THREAD;
		threaded.aio_sigevent.sigev_notify_function = callback;
		threaded.aio_sigevent.sigev_value.sival_int = i;
		CHECK((i == 81 ? aio_write(&threaded) : aio_read(&threaded)) == 0 && sem_wait(&called) == 0);
		CHECK(threaded.aio_sigevent.sigev_value.sival_int == i);
	}
	a = of(fd, in, 8, 0);
	a.aio_lio_opcode = LIO_READ;
	sev.sigev_notify = SIGEV_THREAD;
	sev.sigev_notify_function = callback;
	sev.sigev_value.sival_int = 90;
	CHECK(lio_listio(LIO_NOWAIT, list, 1, &sev) == 0 && sem_wait(&called) == 0 && aio_return(&a) == 8);
	sev.sigev_notify = SIGEV_SIGNAL;

	/* A pipe, which has nothing yet: a wait that is too short, one that a signal interrupts, and then it comes. */
	CHECK(pipe(p) == 0);
	a = of(p[0], in, 16, 0);
	CHECK(aio_read(&a) == 0 && aio_error(&a) == EINPROGRESS);
	waited[0] = &a;
	waited[1] = 0;
	CHECK(aio_suspend(waited, 2, &soon) == -1 && errno == EAGAIN);
	{
		timer_t t;
		struct itimerspec it = {.it_value.tv_nsec = 20000000, .it_interval.tv_nsec = 20000000}, off = {0};
		CHECK(timer_create(CLOCK_MONOTONIC, &sev, &t) == 0 && timer_settime(t, 0, &it, 0) == 0);
		CHECK(aio_suspend(waited, 2, &limit) == -1 && errno == EINTR && told > 0);
		CHECK(timer_settime(t, 0, &off, 0) == 0 && timer_delete(t) == 0);
	}
	CHECK(aio_cancel(p[1], 0) >= 0);
	b = of(p[1], "through", 8, 0);
	CHECK(aio_write(&b) == 0);
	wait_for(&a);
	wait_for(&b);
	CHECK(strcmp(in, "through") == 0 && aio_return(&a) == 8 && aio_return(&b) == 8);

	/* Two that wait for one pipe: the second can be cancelled. */
	a = of(p[0], in, 4, 0);
	b = of(p[0], in + 8, 4, 0);
	CHECK(aio_read(&a) == 0 && aio_read(&b) == 0);
	i = aio_cancel64(p[0], (struct aiocb64 *)&b);
	CHECK(i == AIO_CANCELED && aio_error(&b) == ECANCELED && aio_return(&b) == -1);
	CHECK(write(p[1], "end", 4) == 4);
	wait_for(&a);
	CHECK(strcmp(in, "end") == 0 && aio_return(&a) == 4);
	CHECK(aio_cancel(p[0], 0) == AIO_ALLDONE);
	unlink("aio.data");
	printf("asynchronous\n");
	return bad;
}
