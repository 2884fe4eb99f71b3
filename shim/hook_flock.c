/* Locks of files. A file's locks have one order in all processes of the run: who got one takes the next place while it
 * has it. Locks of readers have their places, too, each before that of the next writer. Unlocking and failed tries have
 * none.
 */
#include "family.h"
#include "feed.h"
#include <sys/file.h>

#define LOCKS (~0ull) /* no inode has that number */

/* The order of the locks of the file that fd is open on. A re-execution may have it under another number of device and
 * inode, so there the recorded name is asked for. */
static struct object_entry *order_of(struct ev *e, int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	struct stat st;
	u64 key, *as;
	if (unlikely(e->t->re != 0)) {
		if (shim_index->moved && sys(SYS_fstat, fd, &st) == 0)
			shim_re_moves(shim_file_id(st.st_dev, st.st_ino), LOCKS, e->x->obj, 0);
		return shim_object_named(e->t, PROPHET_ObjSharedSync, e->x->obj);
	}
	if (unlikely(shim_index && shim_index->moved) && sys(SYS_fstat, fd, &st) == 0) {
		key = shim_file_id(st.st_dev, st.st_ino);
		as = shim_moved(key, LOCKS, 0);
		return as ? shim_object_named(e->t, PROPHET_ObjSharedSync, as[0]) : shim_object_key(e->t, PROPHET_ObjSharedSync, key, "locks of a file");
	}
	if (i && i->obj)
		shim_fd_kind(fd);
	key = i && i->obj ? i->file : 0;
	if (!key)
		key = sys(SYS_fstat, fd, &st) == 0 ? shim_file_id(st.st_dev, st.st_ino) : 0;
	return shim_object_key(e->t, PROPHET_ObjSharedSync, key, "locks of a file");
}

void shim_file_locked(struct ev *e, int fd)
{
	struct object_entry *o = order_of(e, fd);
	e->f3 = e->obj;
	e->obj = o->id;
	e->seq = shim_object_next(o);
}

EXPORT int flock(int fd, int op)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, CALL_flock, CLASS_disk, CALLER()))
		return REAL(flock)(fd, op);
	r = REAL(flock)(fd, op);
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(r);
	e.obj = shim_obj_fd(e.t, fd);
	e.f1 = (u64)(i64)op;
	if (r == 0 && op & (LOCK_SH | LOCK_EX))
		shim_file_locked(&e, fd);
	shim_done(&e);
	return r;
}

#define LOCKF(name)                                                     \
	EXPORT int name(int fd, int cmd, off_t n)                       \
	{                                                               \
		struct ev e;                                            \
		int r;                                                  \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER())) \
			return REAL(name)(fd, cmd, n);                  \
		r = REAL(name)(fd, cmd, n);                             \
		shim_end(&e, WRAP_BLOCK);                               \
		e.ret = shim_ret_errno(r);                              \
		e.obj = shim_obj_fd(e.t, fd);                           \
		e.f1 = (u64)(i64)cmd;                                   \
		e.f2 = (u64)n;                                          \
		if (r == 0 && (cmd == F_LOCK || cmd == F_TLOCK))        \
			shim_file_locked(&e, fd);                       \
		shim_done(&e);                                          \
		shim_post_locked(&e, r, fd);                            \
		return r;                                               \
	}
LOCKF(lockf)
LOCKF(lockf64)

/* In a re-execution: its turn first. Whoever had it before lets go soon, if not yet. */
static void await(const struct expect *x)
{
	if (x->seq)
		shim_re_turn(x, shim_object_named(shim_self.thr, PROPHET_ObjSharedSync, x->obj));
}

/* Whether to try once more. Nobody waits in the kernel: the harness may come off meanwhile, and who only tries does not wait then, as
 * two that did would hold what the other wants. */
static int not_yet(const struct expect *x)
{
	if (errno == EINTR)
		return 1;
	if ((errno != EAGAIN && errno != EACCES) || shim_re_detached())
		return 0;
	shim_re_yield(shim_self.thr, x->obj);
	return 1;
}

int shim_re_lock_file(const struct expect *x, int fd, int cmd, unsigned long arg)
{
	int tries = cmd == F_SETLKW ? F_SETLK : cmd == F_OFD_SETLKW ? F_OFD_SETLK : cmd, r;
	await(x);
	while ((r = TRUE(fcntl)(fd, tries, arg)) != 0 && not_yet(x))
		;
	return r && shim_re_detached() ? TRUE(fcntl)(fd, cmd, arg) : r;
}

static int re_flock(int fd, int op)
{
	struct expect *x = shim_re_of(CALL_flock);
	int r;
	if (!x)
		return TRUE(flock)(fd, op);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	await(x);
	while ((r = TRUE(flock)(fd, op | LOCK_NB)) != 0 && not_yet(x))
		;
	return r && shim_re_detached() ? TRUE(flock)(fd, op) : r;
}
STANDIN(flock, re_flock)

#define RE_LOCKF(name)                                                                            \
	static int re_##name(int fd, int cmd, off_t n)                                            \
	{                                                                                         \
		struct expect *x = shim_re_of(CALL_##name);                                       \
		int r;                                                                            \
		if (!x)                                                                           \
			return TRUE(name)(fd, cmd, n);                                            \
		if (x->ret < 0 || cmd == F_TEST)                                                  \
			return (int)shim_re_ret(x);                                               \
		await(x);                                                                         \
		while ((r = TRUE(name)(fd, cmd == F_LOCK ? F_TLOCK : cmd, n)) != 0 && not_yet(x)) \
			;                                                                         \
		return r && shim_re_detached() ? TRUE(name)(fd, cmd, n) : r;                      \
	}                                                                                         \
	STANDIN(name, re_##name)
RE_LOCKF(lockf)
RE_LOCKF(lockf64)
