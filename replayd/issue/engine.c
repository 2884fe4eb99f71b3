/* The run as a whole: what all processes share is made, files are prepared, the first process is started and watched. */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct run run;

enum { HELD_NS = 10000000, REFILL_NS = 250000000, PERIOD_NS = 100000000, GRAM_ROOM = 16 << 20 };
enum { LOOK_NS = 10000000, STILL_LOOKS = 300, SURE_LOOKS = 10, RELAX_MAX = 100000, LAST_LOOKS = 30 };

u64 now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

/* fail stops the run: the engine could not do what it had to. The first failure counts. */
void fail(int err)
{
	u32 none = 0;
	atomic_compare_exchange_strong(&run.shared->failed, &none, (u32)(err ? err : EIO));
	atomic_store(&run.shared->stop, 1);
}

/* leave stops the run where its path is left; who comes first counts. */
static void leave(u32 who)
{
	u32 none = 0;
	atomic_compare_exchange_strong(&run.shared->diverged, &none, who);
	atomic_store(&run.shared->stop, 1);
}

void diverge(struct self *s)
{
	leave(s->n + 1);
}

static int complain(const char *what, const char *why)
{
	dprintf(2, "issue: %s: %s\n", what, why);
	return 2;
}

static void *shared(u64 bytes)
{
	void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void *own(u64 bytes)
{
	void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* map_program maps the compiled program and checks it. */
static const char *map_program(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st))
		return strerror(errno);
	if ((u64)st.st_size < sizeof(struct prog))
		return "not a compiled program";
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return strerror(errno);
	run.head = p;
	return check_program(&run, (u64)st.st_size);
}

static bool share(bool logs)
{
	const struct prog *h = run.head;
	run.shared = shared(sizeof *run.shared);
	run.object = own((u64)h->objects * sizeof *run.object);
	run.common = shared((u64)h->objects * sizeof *run.common);
	run.pred = shared((u64)h->preds * sizeof *run.pred);
	run.state = shared((u64)h->threads * sizeof *run.state);
	run.keys = shared(h->keys);
	run.items = shared(h->rows * sizeof *run.items);
	run.pids = shared((u64)h->procs * sizeof *run.pids);
	run.versions = shared(VERSIONS * sizeof *run.versions);
	run.burns = shared((u64)h->threads * sizeof *run.burns);
	run.log = calloc(h->threads, sizeof *run.log);
	run.room = calloc(h->threads, sizeof *run.room);
	if (!run.shared || !run.object || !run.common || !run.pred || !run.state || !run.pids || !run.versions || !run.keys || !run.items || !run.burns ||
	    !run.log || !run.room)
		return false;
	for (u32 i = 0; logs && i < h->threads; i++) {
		run.room[i] = run.threads[i].count * 2 + 1024;
		if (!(run.log[i] = shared(run.room[i] * sizeof **run.log)))
			return false;
	}
	return true;
}

static bool listen_all(void)
{
	u32 n = run.head->listeners;
	run.listeners = calloc(n + 1, sizeof *run.listeners);
	run.ports = calloc(n + 1, sizeof *run.ports);
	for (u32 i = 0; i < n; i++) {
		struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t len = sizeof a;
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 1024) || getsockname(fd, (struct sockaddr *)&a, &len))
			return false;
		run.listeners[i] = fd;
		run.ports[i] = a.sin_port;
	}
	return true;
}

/* gram_all makes the ports that datagrams are sent to. They are large: the kernel drops what nobody takes in time, which at home came. */
static bool gram_all(void)
{
	u32 n = run.head->grams;
	run.grams = calloc(n + 1, sizeof *run.grams);
	run.gram_at = calloc(n + 1, sizeof *run.gram_at);
	for (u32 i = 0; i < n; i++) {
		struct sockaddr_in *a = &run.gram_at[i];
		socklen_t len = sizeof *a;
		*a = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), room = GRAM_ROOM;
		if (fd < 0 || bind(fd, (struct sockaddr *)a, sizeof *a) || getsockname(fd, (struct sockaddr *)a, &len))
			return false;
		if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
			setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_usec = LOOK_NS / 100}, sizeof(struct timeval));
		run.grams[i] = fd;
	}
	return true;
}

/* waiting tells whether who is in such an operation waits for another thread of the run. */
static bool waiting(u32 code)
{
	switch (code) {
	case PROPHET_OpLock:
	case PROPHET_OpRdlock:
	case PROPHET_OpWrlock:
	case PROPHET_OpSpinlock:
	case PROPHET_OpBarrier:
	case PROPHET_OpSemwait:
	case PROPHET_OpWait:
	case PROPHET_OpJoin:
	case PROPHET_OpWaitpid:
	case PROPHET_OpTake:
	case PROPHET_OpGive:
	case PROPHET_OpAccept:
	case PROPHET_OpTakeGram:
	case PROPHET_OpFlock:
	case PROPHET_OpFcntlLock:
	case PROPHET_OpTurn:
	case PROPHET_OpCondwait:
		return true;
	}
	return false;
}

/* progress is how far all have come. Who waits again and again for what does not come in time comes no further. */
static u64 progress(bool *stuck)
{
	u64 sum = 0;
	*stuck = true;
	for (u32 i = 0; i < run.head->threads; i++) {
		struct state *s = &run.state[i];
		sum += atomic_load_explicit(&s->done, memory_order_relaxed) - atomic_load_explicit(&s->idle, memory_order_relaxed) + 1;
		if (atomic_load_explicit(&s->runs, memory_order_relaxed) && !waiting(atomic_load_explicit(&s->code, memory_order_relaxed)))
			*stuck = false;
	}
	return sum;
}

/* asleep tells whether the kernel says that a thread waits, or that there is none any more. */
static bool asleep(u32 tid)
{
	char name[32], text[128], *end;
	if (!tid) /* it has not begun yet */
		return false;
	snprintf(name, sizeof name, "/proc/%u/stat", tid);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return n < 0 && errno == ESRCH;
	text[n] = 0;
	return (end = strrchr(text, ')')) && end[1] && strchr("SZX", end[2]);
}

/* dead tells whether it is certain that nothing moves: all wait for one another, without a limit of time, and nobody has been woken and
   has no processor yet, as may be where a machine is busy. Where the kernel does not say so time has to. */
static bool dead(void)
{
	if (access("/proc/self/stat", R_OK))
		return false;
	for (u32 i = 0; i < run.head->threads; i++) {
		struct state *s = &run.state[i];
		const struct progop *op = &run.ops[atomic_load(&s->at)];
		if (atomic_load(&s->runs) && ((op->code == PROPHET_OpWait && op->b > 0) || !asleep(atomic_load(&s->tid))))
			return false;
	}
	return true;
}

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
	ended = sig;
}

/* kill_all ends every process of the run; who loses its parent becomes ours. One that was just being made is met next time. */
static void kill_all(void)
{
	for (;;) {
		for (u32 i = 0; i < run.head->procs; i++) {
			int pid = atomic_load(&run.pids[i]);
			if (pid > 1)
				kill(pid, SIGKILL);
		}
		pid_t pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0 && errno == ECHILD)
			return;
		if (!pid)
			nanosleep(&(struct timespec){0, LOOK_NS / 10}, NULL);
	}
}

/* orphaned tells whether whoever started us is gone: it holds the other end of standard input. */
static bool orphaned(void)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};
	char c;
	return poll(&p, 1, 0) > 0 && read(0, &c, 1) <= 0;
}

/* settled waits until no thread does anything any more, and tells whether that is so by now: what it was in is done and in its log,
   or cannot be done, as those that it waits for have stopped. Who computes does so behind the end, and so does who sleeps for longer. Others
   have only got no processor yet, as may be where a machine is busy: what they are in others may have seen already. */
static bool settled(u32 *looks)
{
	u32 most = LAST_LOOKS / 10;
	for (u32 i = 0; i < run.head->threads; i++) {
		struct state *s = &run.state[i];
		u32 code = atomic_load(&s->code);
		if (!atomic_load(&s->runs) || code == PROPHET_OpCPU || (waiting(code) && asleep(atomic_load(&s->tid))))
			continue;
		u32 takes = code == PROPHET_OpSleep || code == PROPHET_OpSpinlock ? LAST_LOOKS : STILL_LOOKS;
		if (takes > most)
			most = takes;
	}
	return ++*looks > most;
}

/* watch waits until all processes have ended; what can move no more is helped, and then ended. So is what takes longer than most_ns,
   where that is not 0. */
static u32 watch(u64 most_ns)
{
	u64 last = 0, began = now_ns();
	u32 still = 0, relaxed = 0, looks = 0;
	for (;;) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0 && errno == ECHILD)
			return atomic_load(&run.shared->diverged) ? PROPHET_ResultDiverged : PROPHET_ResultDone;
		if (pid > 0)
			continue;
		if (ended || orphaned()) {
			kill_all();
			return PROPHET_ResultKilled;
		}
		if (atomic_load(&run.shared->failed)) {
			kill_all();
			return PROPHET_ResultFailed;
		}
		if (atomic_load(&run.shared->stop)) {
			if (settled(&looks)) {
				kill_all();
				return PROPHET_ResultDiverged;
			}
			nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
			continue;
		}
		if (most_ns && now_ns() - began > most_ns) {
			sync_blame();
			nanosleep(&(struct timespec){0, 10 * LOOK_NS}, NULL);
			kill_all();
			return PROPHET_ResultLate;
		}
		bool stuck;
		u64 sum = progress(&stuck);
		still = sum == last && stuck ? still + 1 : 0;
		last = sum;
		if (still >= SURE_LOOKS && still < STILL_LOOKS && dead())
			still = STILL_LOOKS;
		if (still >= STILL_LOOKS && run.strict) {
			leave(STUCK);
			continue;
		}
		if (still >= STILL_LOOKS) {
			if (relaxed++ >= RELAX_MAX || still >= STILL_LOOKS + 100) {
				kill_all();
				return PROPHET_ResultStuck;
			}
			sync_relax();
			order_relax();
		}
		struct timespec t = {0, LOOK_NS};
		nanosleep(&t, NULL);
	}
}

static bool put(int fd, const void *p, u64 n)
{
	while (n) {
		ssize_t r = write(fd, p, n < 1 << 30 ? n : 1 << 30);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		p = (const char *)p + r;
		n -= (u64)r;
	}
	return true;
}

static bool report(const char *path, struct progresult *head)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	bool ok = put(fd, head, sizeof *head);
	for (u32 i = 0; ok && i < run.head->threads; i++) {
		struct state *s = &run.state[i];
		struct progresultthread t = {
		    atomic_load(&s->done), s->logged,	       s->cut, s->other, s->unknown, s->outside, s->forced, atomic_load(&s->over),
		    atomic_load(&s->at),   atomic_load(&s->on)};
		ok = put(fd, &t, sizeof t);
	}
	for (u32 i = 0; ok && i < run.head->threads; i++)
		ok = !run.log[i] || put(fd, run.log[i], run.state[i].logged * sizeof **run.log);
	return !close(fd) && ok;
}

/* lift lets a run have as many descriptors and threads as it may. */
static void lift(void)
{
	struct rlimit l;
	if (!getrlimit(RLIMIT_NOFILE, &l)) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static bool held; /* something took the processor away while the loop was measured: a quota nobody knows of, maybe */

static u64 cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

/* run_ends notes when the first process came to its end, and what CPU time it took until then, with those that it waited for: what is
   taken down after that is ours. */
void run_ends(void)
{
	struct rusage u;
	u64 cpu = cpu_ns();
	atomic_store(&run.shared->end, ticks());
	if (!getrusage(RUSAGE_CHILDREN, &u))
		cpu += ((u64)u.ru_utime.tv_sec + (u64)u.ru_stime.tv_sec) * 1000000000 + ((u64)u.ru_utime.tv_usec + (u64)u.ru_stime.tv_usec) * 1000;
	run.shared->cpu = cpu;
}

/*
 * refill waits until there is all of a quota again, of which what was measured and prepared took: a program begins with it. And it begins
 * at any moment of the quota's period. We went on, when the quota was used up, as a period began, and would always begin at the same
 * moment: with most of a period behind us, whose quota is then as good as for nothing.
 */
static void refill(void)
{
	u32 chance = 0;
	if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) < 0)
		chance = (u32)now_ns() * 2654435769u;
	nanosleep(&(struct timespec){0, REFILL_NS + (i64)((u64)chance * PERIOD_NS >> 32)}, NULL);
}

/* read_as reads what the loop is taken to take: ITER, or ITER:LINE:BLOCK; 0: what it takes. */
static bool read_as(const char *s, struct burn_as *as)
{
	char *end;
	double *ns[] = {&as->iter_ns, &as->line_ns, &as->block_ns};
	memset(as, 0, sizeof *as);
	for (int i = 0; i < 3; i++, s = end + 1) {
		*ns[i] = strtod(s, &end);
		if (end == s || !(*ns[i] >= 0 && *ns[i] < 1e6) || (*end && *end != ':'))
			return false;
		if (!*end)
			return !i || i == 2;
	}
	return false;
}

/* measure_loop calibrates the loop. as: what it is taken to take, whatever it does now. */
static int measure_loop(u64 bytes, const struct burn_as *as)
{
	u64 wall = now_ns(), cpu = cpu_ns();
	int err = burn_calibrate(&run.burn, bytes);
	if (!err && as->iter_ns > 0)
		burn_assume(&run.burn, as);
	held = now_ns() - wall > cpu_ns() - cpu + HELD_NS;
	return err;
}

/*
 * issue_main: PROGRAM DIRECTORY RESULT SCALE BYTES LOOP LOGS MOST QUOTA. Directory is an empty one; result a file to be written. Scale: CPU
 * demand here for one of the program's; bytes: memory that the loop walks (burn.h); loop: what an iteration of it is
 * taken to take, and what belongs to the walk (read_as), 0: what it takes here; logs 0: none; most: ns that it may take, 0: any time; quota 1: CPU time is limited here. After that the processors to run on; none: all that there are.
 */
int issue_main(int argc, char **argv)
{
	if (argc < 10)
		return complain("usage", "PROGRAM DIRECTORY RESULT SCALE BYTES LOOP LOGS MOST QUOTA [CPU...]");
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	for (int i = 10; i < argc; i++)
		CPU_SET((size_t)strtoul(argv[i], NULL, 10), &cpus);
	if (argc > 10 && sched_setaffinity(0, sizeof cpus, &cpus))
		return complain("the processors", strerror(errno));
	const char *bad = map_program(argv[1]);
	if (bad)
		return complain(argv[1], bad);
	if ((run.dir = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return complain(argv[2], strerror(errno));
	run.scale = strtod(argv[4], NULL);
	if (!(run.scale > 0 && run.scale < 1e6))
		return complain(argv[4], "a factor for CPU demand");
	struct burn_as as;
	if (!read_as(argv[6], &as))
		return complain(argv[6], "not what an iteration takes");
	int err = measure_loop(strtoull(argv[5], NULL, 10), &as);
	if (err)
		return complain("measuring the loop", strerror(err));
	bool logs = argv[7][0] == '1';
	if (!share(logs) || !sync_begin() || !listen_all() || !gram_all())
		return complain("what processes share", strerror(errno ? errno : ENOMEM));
	measure_costs(logs);
	lift();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	struct sigaction a = {.sa_handler = on_signal};
	for (int i = 0; i < 3; i++)
		sigaction((int[]){SIGINT, SIGTERM, SIGHUP}[i], &a, NULL);
	io_begin();
	memory_begin();
	struct progresult r = {.magic = PROPHET_ResultMagic, .version = PROPHET_ProgVersion, .threads = run.head->threads};
	if (io_prepare()) {
		if (held || argv[9][0] == '1')
			refill();
		u64 t0 = ticks(), n0 = now_ns();
		run.shared->begin = t0;
		thread_begins(run.procs[0].main);
		pid_t pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (int i = 0; i < 3; i++)
				signal((int[]){SIGINT, SIGTERM, SIGHUP}[i], SIG_DFL);
			run.shared->begin = ticks();
			run_thread(run.procs[0].main);
			end_main();
		}
		atomic_store(&run.pids[0], pid);
		if (pid < 0)
			fail(errno);
		else
			r.status = watch(strtoull(argv[8], NULL, 10));
		u64 t1 = ticks(), n1 = now_ns();
		r.begin = run.shared->begin;
		r.end = atomic_load(&run.shared->end);
		r.hz = n1 > n0 ? (u64)((double)(t1 - t0) * 1e9 / (double)(n1 - n0)) : 0;
		if (!r.end)
			r.end = t1;
		r.nanos = r.hz ? (u64)((double)(r.end - r.begin) * 1e9 / (double)r.hz) : 0;
	}
	r.cpu = run.shared->cpu;
	r.loop = (u64)(run.burn.iter_ns * 1e6 + 0.5); /* nearest: what was taken over is said again as it was */
	r.line = (u64)(run.burn.line_ns * 1e6 + 0.5);
	r.block = (u64)(run.burn.block_ns * 1e6 + 0.5);
	r.failed = atomic_load(&run.shared->failed);
	if (r.failed)
		r.status = PROPHET_ResultFailed;
	else if (r.status == PROPHET_ResultDiverged)
		r.failed = run.shared->diverged == STUCK ? 0 : run.shared->diverged;
	io_remove();
	if (!report(argv[3], &r))
		return complain(argv[3], strerror(errno));
	return 0;
}
