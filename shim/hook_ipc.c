/* What of System V's IPC and of POSIX message queues a printed wrapper cannot do. A semaphore set of System V is known
 * to all processes by its number, and has one order in the run: an operation that only adds takes its place before,
 * like a post, any other after, like a wait.
 */
#include "steps_sync.h"
#include <fcntl.h>
#include <mqueue.h>
#include <stdarg.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static int adds(const struct sembuf *ops, size_t n)
{
	size_t i;
	if (n > 512 || !shim_readable(ops, n * sizeof *ops))
		return 0;
	for (i = 0; i < n; i++)
		if (ops[i].sem_op <= 0)
			return 0;
	return n > 0;
}

static inline int begin(struct ev *e, u32 call, int id, const struct sembuf *ops, size_t n, void *pc)
{
	if (!shim_begin(e, call, CLASS_sync, pc))
		return 0;
	e->f1 = n;
	if (id >= 0 && adds(ops, n)) {
		struct object_entry *o = shim_object_ipc(e->t, PROPHET_ObjSem, (u64)id, "semset");
		e->obj = o->id;
		e->seq = shim_object_next(o);
	}
	return 1;
}

static inline int end(struct ev *e, int id, const struct sembuf *ops, size_t n, int r)
{
	shim_end(e, WRAP_BLOCK);
	e->ret = shim_ret_errno(r);
	if (id >= 0 && !e->obj) {
		struct object_entry *o = shim_object_ipc(e->t, PROPHET_ObjSem, (u64)id, "semset");
		e->obj = o->id;
		if (r == 0)
			e->seq = shim_object_next(o);
	}
	if (r == 0 && n > 0) {
		e->f2 = ops->sem_num;
		e->f3 = (u64)(i64)ops->sem_op;
	}
	shim_done(e);
	return r;
}

EXPORT int semop(int id, struct sembuf *ops, size_t n)
{
	struct ev e;
	if (!begin(&e, CALL_semop, id, ops, n, CALLER()))
		return REAL(semop)(id, ops, n);
	return end(&e, id, ops, n, REAL(semop)(id, ops, n));
}

EXPORT int semtimedop(int id, struct sembuf *ops, size_t n, const struct timespec *limit)
{
	struct ev e;
	if (!begin(&e, CALL_semtimedop, id, ops, n, CALLER()))
		return REAL(semtimedop)(id, ops, n, limit);
	return end(&e, id, ops, n, REAL(semtimedop)(id, ops, n, limit));
}

EXPORT int semctl(int id, int num, int cmd, ...)
{
	struct ev e;
	va_list args;
	void *arg; /* union semun: a pointer or an int, in one word */
	int r, on;
	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	on = shim_begin(&e, CALL_semctl, CLASS_sync, CALLER());
	r = REAL(semctl)(id, num, cmd, arg);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	e.obj = shim_obj_semset(e.t, id);
	e.f1 = (u64)num;
	e.f2 = (u64)cmd;
	e.f3 = cmd == SETVAL ? (u64)(int)(i64)arg : 0;
	shim_done(&e);
	return r;
}

EXPORT void *shmat(int id, const void *addr, int flags)
{
	struct ev e;
	int on = shim_begin(&e, CALL_shmat, CLASS_memory, CALLER());
	void *r = REAL(shmat)(id, addr, flags);
	shim_note_shmat(r, id);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_ptr(r == (void *)-1 ? 0 : r);
	e.f1 = (u64)id;
	e.f2 = (u64)flags;
	shim_done(&e);
	return r;
}

EXPORT int shmdt(const void *addr)
{
	struct ev e;
	int on = shim_begin(&e, CALL_shmdt, CLASS_memory, CALLER()), r = REAL(shmdt)(addr);
	if (r == 0)
		shim_note_shmdt(addr);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	e.f1 = (u64)addr;
	shim_done(&e);
	return r;
}

static inline mqd_t opened(struct ev *e, mqd_t q, const char *name, int flags)
{
	shim_end(e, WRAP_ONCE);
	e->ret = shim_ret_errno(q);
	if (q >= 0) {
		shim_fd_new(e->t, q, name);
		e->obj = shim_obj_fd(e->t, q);
	}
	e->f1 = (u64)flags;
	shim_tail_text(e, name, PART_PATH);
	shim_done(e);
	return q;
}

EXPORT mqd_t mq_open(const char *name, int flags, ...)
{
	struct ev e;
	mode_t mode = 0;
	struct mq_attr *a = 0;
	mqd_t q;
	int on;
	if (flags & O_CREAT) {
		va_list args;
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		a = va_arg(args, struct mq_attr *);
		va_end(args);
	}
	on = shim_begin(&e, CALL_mq_open, CLASS_net, CALLER());
	q = REAL(mq_open)(name, flags, mode, a);
	if (!on)
		return q;
	e.f2 = mode;
	return opened(&e, q, name, flags);
}

EXPORT mqd_t __mq_open_2(const char *name, int flags)
{
	struct ev e;
	int on = shim_begin(&e, CALL___mq_open_2, CLASS_net, CALLER());
	mqd_t q = REAL(__mq_open_2)(name, flags);
	return on ? opened(&e, q, name, flags) : q;
}

EXPORT int mq_close(mqd_t q)
{
	struct ev e;
	int r, on = shim_begin(&e, CALL_mq_close, CLASS_net, CALLER());
	if (on)
		e.obj = shim_obj_fd(e.t, q);
	shim_fd_gone(q);
	r = REAL(mq_close)(q);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	shim_done(&e);
	return r;
}
