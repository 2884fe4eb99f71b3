/* New processes by fork and clone. Which fork of its thread a child is, is counted before, so that child and parent
 * agree; a child becomes a process of the trace at its first event (thread.c) and costs nothing until then.
 *
 * Handlers of pthread_atfork are the program's and run inside fork: for them the thread is inside no call.
 */
#include "replay.h"
#include "steps_proc.h"
#include "hook_exec.h"
#include <fcntl.h>
#include <pty.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

extern pid_t __fork(void);
extern pid_t __vfork(void);
extern int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

static NOINLINE pid_t forked(pid_t (*real)(void), u32 call, void *pc)
{
	struct ev e;
	int on = shim_begin(&e, call, CLASS_thread, pc);
	pid_t r;
	shim_child_next();
	if (on) {
		e.t->slot->call = 0;
		if (shim_ctl.serial && !shim_replays) /* the child has turns of its own before a signal that comes as there is one */
			shim_self.ending = 1;
	}
	r = real();
	if (r == 0) {
		shim_serial_later(); /* its mask is the one that the program has */
		shim_child();
		return 0;
	}
	if (r < 0)
		shim_self.nfork--;
	if (on) {
		shim_end(&e, WRAP_BLOCK);
		e.ret = shim_ret_errno(r);
		shim_done(&e);
		if (r > 0)
			shim_fork_record(e.t, shim_self.nfork, (u64)r, PROPHET_ProcForked);
	}
	return r;
}

EXPORT pid_t fork(void)
{
	return forked(REAL(fork), CALL_fork, CALLER());
}

EXPORT pid_t __fork(void)
{
	return forked(REAL(__fork), CALL___fork, CALLER());
}

EXPORT pid_t _Fork(void)
{
	return forked(REAL(_Fork), CALL__Fork, CALLER());
}

SHIM_VFORK_THEN(shim_re_vfork, shim_re_vforked)

/* vfork returns twice on one stack, so nothing of ours may lie on it: what there is to write is written before, then
 * the real one is jumped to. Until the child is gone it runs on our state. */
HIDDEN void *shim_vfork_before(void *pc, u32 call)
{
	struct ev e;
	struct thr *t;
	int on = shim_begin(&e, call, CLASS_thread, pc);
	shim_child_next();
	if (on) {
		shim_end(&e, WRAP_ONCE);
		shim_done(&e);
	}
	t = shim_self.thr;
	if (t && t->begun && t->vfork == VFORK_NONE) {
		t->vfork = VFORK_BEGUN;
		t->gate = 0;
	}
	return unlikely(shim_replays) ? (void *)shim_re_vfork : shim_real(call);
}

SHIM_JUMP_TO(vfork, shim_vfork_before, CALL_vfork)
SHIM_JUMP_TO(__vfork, shim_vfork_before, CALL___vfork)

typedef int (*clone_fn)(int (*)(void *), void *, int, void *, ...);

struct clone {
	int (*fn)(void *);
	void *stack;
	int flags;
	void *arg;
	pid_t *parent_tid;
	void *tls;
	pid_t *child_tid;
};

static NOINLINE int cloned(clone_fn real, u32 call, void *pc, const struct clone *c)
{
	struct ev e;
	struct thr *t;
	int on = shim_begin(&e, call, CLASS_thread, pc), r;
	shim_child_next();
	t = shim_self.thr;
	if (on)
		e.t->slot->call = 0;
	if (t && t->begun && c->flags & CLONE_VM && !(c->flags & CLONE_SETTLS)) {
		t->vfork = c->flags & CLONE_VFORK ? VFORK_BEGUN : VFORK_SHARED;
		t->gate = 0;
	}
	r = real(c->fn, c->stack, c->flags, c->arg, c->parent_tid, c->tls, c->child_tid);
	if (r < 0)
		shim_self.nfork--;
	if (on) {
		shim_end(&e, WRAP_BLOCK);
		e.ret = shim_ret_errno(r);
		e.f1 = (u64)(u32)c->flags;
		shim_done(&e);
		if (r > 0 && !(c->flags & CLONE_THREAD))
			shim_fork_record(e.t, shim_self.nfork, (u64)r, PROPHET_ProcForked);
	}
	return r;
}

/* Up to three more arguments, by the flags; those that were not given are passed on unread. */
#define CLONE_ARGUMENTS(c)                                 \
	struct clone c = {fn, stack, flags, arg, 0, 0, 0}; \
	va_list ap;                                        \
	va_start(ap, arg);                                 \
	c.parent_tid = va_arg(ap, pid_t *);                \
	c.tls = va_arg(ap, void *);                        \
	c.child_tid = va_arg(ap, pid_t *);                 \
	va_end(ap);

EXPORT int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	CLONE_ARGUMENTS(c)
	return cloned(REAL(clone), CALL_clone, CALLER(), &c);
}

EXPORT int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	CLONE_ARGUMENTS(c)
	return cloned(REAL(__clone), CALL___clone, CALLER(), &c);
}

/* The C library forks inside. */
EXPORT int forkpty(int *master, char *name, const struct termios *mode, const struct winsize *size)
{
	struct ev e;
	int on = shim_begin(&e, CALL_forkpty, CLASS_thread, CALLER()), r, i;
	shim_child_next();
	if (on)
		e.t->slot->call = 0;
	r = REAL(forkpty)(master, name, mode, size);
	if (r == 0) {
		shim_child();
		for (i = 0; i < 3; i++)
			shim_fd_gone(i); /* the terminal's now */
		return 0;
	}
	if (r < 0)
		shim_self.nfork--;
	if (on) {
		shim_end(&e, WRAP_BLOCK);
		e.ret = shim_ret_errno(r);
		e.f1 = r > 0 ? (u64)(u32)*master : 0;
		shim_done(&e);
		if (r > 0)
			shim_fork_record(e.t, shim_self.nfork, (u64)r, PROPHET_ProcForked);
	}
	return r;
}

/* The C library's own would end the parent behind our back. */
EXPORT int daemon(int nochdir, int noclose)
{
	struct stat st;
	long fd, i, r;
	pid_t pid;
	{
		struct ev e;
		if (shim_begin(&e, CALL_daemon, CLASS_thread, CALLER())) {
			shim_end(&e, WRAP_ONCE);
			e.f1 = (u64)(u32)nochdir;
			e.f2 = (u64)(u32)noclose;
			shim_done(&e);
		}
	}
	shim_child_next();
	pid = REAL(fork)();
	if (pid < 0) {
		shim_self.nfork--;
		return -1;
	}
	if (pid > 0) {
		struct thr *t = shim_ready(CLASS_thread);
		if (t)
			shim_fork_record(t, shim_self.nfork, (u64)pid, PROPHET_ProcForked);
		shim_process_over(PROPHET_ExitQuick, 0);
		REAL(_exit)(0);
	}
	shim_child();
	if (REAL(setsid)() == -1)
		return -1;
	if (!nochdir)
		sys(SYS_chdir, "/");
	if (noclose)
		return 0;
	fd = sys(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
	if (fd < 0) {
		errno = (int)-fd;
		return -1;
	}
	r = sys(SYS_fstat, fd, &st);
	if (r == 0 && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
		r = -ENODEV;
	if (r != 0) {
		sys(SYS_close, fd);
		errno = (int)-r;
		return -1;
	}
	for (i = 0; i < 3; i++) {
		if (i != fd)
			sys(SYS_dup3, fd, i, 0);
		shim_fd_gone((int)i);
	}
	if (fd > 2)
		sys(SYS_close, fd);
	return 0;
}
