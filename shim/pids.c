/* See pids.h. */
#include "pids.h"
#include "expect.h"
#include "minlibc.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#define LAST_PID "/proc/sys/kernel/ns_last_pid"
#define LOOK_NS 20000000 /* how often a waiter looks whether the holder lives */
#define ANSWER_NS 500000000ull /* how long process 1 has */

static struct pids *page;

int shim_pids_open(const char *path)
{
	long p, fd = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0)
		return (int)fd;
	p = sys(SYS_mmap, shim_apart(sizeof *page), sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	sys(SYS_close, fd);
	if (p < 0 && p > -4096)
		return (int)p;
	page = (struct pids *)p;
	return 0;
}

static void wait_ns(u32 *word, u32 is, u64 ns)
{
	struct timespec ts = {0, (long)ns};
	sys(SYS_futex, word, FUTEX_WAIT, is, &ts);
}

static int gone(u32 tid)
{
	return sys(SYS_tkill, tid, 0) == -ESRCH;
}

static int take(void)
{
	u32 me = (u32)sys(SYS_gettid), was;
	for (;;) {
		was = 0;
		if (__atomic_compare_exchange_n(&page->owner, &was, me, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return 0;
		if (was == me)
			return -EDEADLK;
		if (gone(was) && __atomic_compare_exchange_n(&page->owner, &was, me, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return 0;
		__atomic_fetch_add(&page->waiters, 1, __ATOMIC_SEQ_CST);
		wait_ns(&page->owner, was, LOOK_NS);
		__atomic_fetch_sub(&page->waiters, 1, __ATOMIC_RELAXED);
	}
}

static void give(void)
{
	__atomic_store_n(&page->owner, 0, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&page->waiters, __ATOMIC_SEQ_CST))
		sys(SYS_futex, &page->owner, FUTEX_WAKE, 1);
}

/* As root, and in a user namespace of ours where the capability for it is handed on. */
static int choose(u32 id)
{
	char text[16];
	struct text t;
	long fd = sys(SYS_openat, AT_FDCWD, LAST_PID, O_WRONLY | O_CLOEXEC, 0), r;
	if (fd < 0)
		return (int)fd;
	shim_text(&t, text, sizeof text);
	shim_putd(&t, id - 1);
	r = sys(SYS_write, fd, text, t.len);
	sys(SYS_close, fd);
	return r < 0 ? (int)r : 0;
}

static int ask(void)
{
	u32 mine, done;
	u64 waited;
	if (!__atomic_load_n(&page->server, __ATOMIC_ACQUIRE))
		return -EPERM;
	mine = __atomic_add_fetch(&page->asked, 1, __ATOMIC_RELEASE);
	sys(SYS_futex, &page->asked, FUTEX_WAKE, 1);
	for (waited = 0; (done = __atomic_load_n(&page->done, __ATOMIC_ACQUIRE)) != mine; waited += LOOK_NS) {
		if (waited >= ANSWER_NS)
			return -ETIMEDOUT;
		wait_ns(&page->done, done, LOOK_NS);
	}
	return -(int)page->failed;
}

int shim_pid_want(u32 id)
{
	int r;
	if (!page)
		return -ENOENT;
	if (id < 2)
		return -EINVAL;
	r = take();
	if (r)
		return r;
	page->want = id;
	if (!gone(id)) /* a thread or process has it, or one that nobody has waited for */
		r = -EEXIST;
	else if ((r = choose(id)) != 0)
		r = ask();
	if (r) {
		__atomic_fetch_add(&page->taken, 1, __ATOMIC_RELAXED);
		give();
	}
	return r;
}

int shim_pid_done(i64 id)
{
	int same = id == (i64)page->want;
	if (id > 0 && !same)
		__atomic_fetch_add(&page->taken, 1, __ATOMIC_RELAXED);
	give();
	return same;
}
