/* The descriptors that we keep open: the stream's, the rings' and one that tells how much memory there is. They lie above all that the
 * program may get, so that its own numbers do not change: above its limit where that may be raised for a moment, else at its upper end.
 * Most programs never come near 240, and a table of no more costs the start 19 us less, and each fork 22: ours go further up as the
 * program gets higher ones.
 *
 * A program that is about to use its last numbers gets ours, too. What is done through them then, and where a program has closed all that
 * it found, is done by a new descriptor: in this process where a high number is free, else in one of its own that shares our memory and
 * not our table, where any number can be closed.
 */
#include "run_own.h"
#include "sandbox.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct ours shim_stream = {.fd = -1}, shim_rings = {.fd = -1}, shim_statm = {.fd = -1};
static struct ours *const all[] = {&shim_stream, &shim_rings, &shim_statm};
#define ALL (sizeof all / sizeof *all)

#define FEW 240
#define MANY 4064
#define TOP 8 /* numbers below a limit that ours may lie at */
static u32 base; /* ours lie at or above it, or at the limit; 0: they have not been anywhere */
u32 shim_fd_near = FEW / 2;

/* A program may close all it finds and open its own under the same numbers. */
static int same(struct ours *o, long fd)
{
	struct stat st;
	if (fd < 0 || sys(SYS_fstat, fd, &st) != 0 || st.st_dev != o->dev || st.st_ino != o->ino)
		return 0;
	o->gone = o->linked && !st.st_nlink;
	return 1;
}

int shim_ours_same(struct ours *o)
{
	return same(o, o->fd);
}

int shim_fd_ours(int fd)
{
	return fd >= 0 && (fd == shim_stream.fd || fd == shim_rings.fd || fd == shim_statm.fd);
}

int shim_fd_ours_from(u32 first)
{
	int low = -1;
	u32 i;
	for (i = 0; i < ALL; i++)
		if (all[i]->fd >= 0 && (u32)all[i]->fd >= first && (low < 0 || all[i]->fd < low))
			low = all[i]->fd;
	return low;
}

static u64 limit(void)
{
	struct rlimit lim;
	return sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &lim) == 0 ? lim.rlim_cur : ~0ull;
}

/* From where on the program comes near ours. */
static void nears(u64 most)
{
	shim_fd_near = base < most ? base / 2 : most > 4 * TOP ? (u32)most - 2 * TOP : (u32)most / 2;
}

/* A duplicate there, or -errno. */
static int lifted(int fd)
{
	struct rlimit was = {~0ull, ~0ull}, up;
	long r, from;
	int raised = 0;
	if (!base)
		base = shim_ctl.index[0] ? MANY : FEW;
	from = base;
	sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &was);
	nears(was.rlim_cur);
	if (was.rlim_cur <= base) {
		up.rlim_cur = was.rlim_cur + 2 * TOP;
		up.rlim_max = was.rlim_max > up.rlim_cur ? was.rlim_max : up.rlim_cur;
		from = (long)was.rlim_cur;
		raised = sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &up, 0) == 0;
		if (!raised)
			from = from > TOP ? from - TOP : 0;
	}
	r = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
	if (raised)
		sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &was, 0);
	return (int)r;
}

int shim_ours_keep(struct ours *o, int fd)
{
	struct stat st;
	int to = lifted(fd);
	if (to < 0 && !o->ino) /* as the process starts */
		to = (int)sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
	if (to >= 0 && sys(SYS_fstat, to, &st) == 0) {
		o->dev = st.st_dev;
		o->ino = st.st_ino;
		o->linked = st.st_nlink != 0;
	}
	sys(SYS_close, fd);
	__atomic_store_n(&o->fd, to, __ATOMIC_RELEASE);
	return to < 0 ? to : 0;
}

/* Numbers of ours change, and go to the program, only while nobody is about to use them: what is written to them would be the program's. */
#define MOVING 0x80000000u

static int move_begin(int must)
{
	u32 none = 0, tries;
	for (tries = 0; !__atomic_compare_exchange_n(&shim_wiped->users, &none, MOVING, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); none = 0, tries++) {
		if (!must || tries > 10000) /* it was killed at it, in a process that shares our memory */
			return 0;
		sys(SYS_sched_yield);
	}
	return 1;
}

static void move_end(void)
{
	__atomic_fetch_sub(&shim_wiped->users, MOVING, __ATOMIC_RELEASE);
}

static void use_begin(void)
{
	while (__atomic_fetch_add(&shim_wiped->users, 1, __ATOMIC_ACQUIRE) & MOVING) {
		__atomic_fetch_sub(&shim_wiped->users, 1, __ATOMIC_RELAXED);
		sys(SYS_sched_yield);
	}
}

static void use_end(void)
{
	__atomic_fetch_sub(&shim_wiped->users, 1, __ATOMIC_RELEASE);
}

void shim_ours_close(struct ours *o)
{
	int was = o->fd;
	if (!shim_ours_same(o))
		was = -1;
	__atomic_store_n(&o->fd, -1, __ATOMIC_RELEASE);
	if (was >= 0)
		sys(SYS_close, was);
}

void shim_fd_yield(int fd)
{
	u64 mask;
	long to;
	u32 i;
	int alone;
	shim_block(&mask);
	alone = move_begin(1);
	for (i = 0; i < ALL; i++)
		if (all[i]->fd == fd) {
			to = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, fd + 1);
			__atomic_store_n(&all[i]->fd, to < 0 ? -1 : (int)to, __ATOMIC_RELEASE);
			sys(SYS_close, fd);
		}
	if (alone)
		move_end();
	shim_unblock(&mask);
}

/* Ours go up, or make room: under the lock under which new threads get their rings. */
static void further(u32 fd)
{
	u64 most = limit();
	u32 i, up = base;
	int to;
	while (up <= 2 * fd && up < most)
		up = up * 16 + 224;
	base = up;
	nears(most);
	for (i = 0; i < ALL; i++) {
		if (all[i]->fd < 0 || (u32)all[i]->fd >= base || (u32)all[i]->fd >= most || !shim_ours_same(all[i]))
			continue;
		if ((u32)all[i]->fd + TOP < most) {
			int was = all[i]->fd;
			if ((to = lifted(was)) >= 0) {
				__atomic_store_n(&all[i]->fd, to, __ATOMIC_RELEASE);
				sys(SYS_close, was);
			}
		} else if (fd >= shim_fd_near) {
			shim_ours_close(all[i]);
		}
	}
}

void shim_fd_far(u32 fd)
{
	struct thr *t = shim_self.thr;
	if (!base || (t && t->vfork && shim_in_vfork(t)))
		return;
	shim_lock(&shim_wiped->threads);
	if (move_begin(fd + 2 * TOP >= limit())) { /* else there is time until it gets the next one */
		further(fd);
		move_end();
	}
	shim_unlock(&shim_wiped->threads);
}

void shim_fd_blind(void)
{
	static u32 done;
	if (likely(__atomic_load_n(&done, __ATOMIC_RELAXED)) || __atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
		return;
	shim_fd_far(FEW / 2);
}

/* Only the very same file will do: behind a chroot, or when the trace was removed, there may be another one of its name. */
static long same_again(struct ours *o, long (*again)(void), long *fd)
{
	*fd = again();
	if (*fd < 0)
		return *fd;
	if (same(o, *fd))
		return 0;
	sys(SYS_close, *fd);
	return -ESTALE;
}

struct elsewhere {
	struct ours *o;
	long (*again)(void);
	long (*f)(int fd, void *arg);
	void *arg;
	long result;
};

static NOINLINE void in_other_table(struct elsewhere *e)
{
	long fd;
	sys(SYS_close, limit() - 1);
	e->result = same_again(e->o, e->again, &fd);
	if (e->result == 0)
		e->result = e->f((int)fd, e->arg);
}

/* No wait of the program's finds that process: it sends no signal at its end. It runs below us on our stack while we wait, so nothing that
 * either of us still needs may be in a place that the compiler thinks the other has done with: both are functions by themselves. */
static NOINLINE long elsewhere(struct elsewhere *e)
{
	long pid;
	int status;
	if (shim_sandboxed)
		return -EMFILE;
	e->result = -EMFILE;
	pid = sys(SYS_clone, CLONE_VM | CLONE_VFORK | CLONE_FS, 0, 0, 0, 0);
	if (pid == 0) {
		in_other_table(e);
		sys(SYS_exit, 0);
		__builtin_unreachable();
	}
	if (pid > 0)
		sys(SYS_wait4, pid, &status, __WCLONE, 0);
	return e->result;
}

long shim_ours_use(struct ours *o, long (*again)(void), long (*f)(int fd, void *arg), void *arg)
{
	struct elsewhere e = {o, again, f, arg, 0};
	long r = 0, fd;
	if (!o->ino)
		return -EBADF;
	use_begin();
	if (!shim_ours_same(o)) {
		shim_lock(&shim_wiped->files);
		if (!shim_ours_same(o) && (r = same_again(o, again, &fd)) == 0)
			r = shim_ours_keep(o, (int)fd);
		shim_unlock(&shim_wiped->files);
	}
	if (r == 0)
		r = f(o->fd, arg);
	else if (r == -EMFILE || r == -EINVAL)
		r = elsewhere(&e);
	use_end();
	return r;
}
