/* See steps_sync.h. */
#include "steps_sync.h"
#include "expect.h"
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <threads.h>

void shim_sync_late(struct thr *t, u32 call, void *pc, u64 obj, i64 ret, u64 f1, u64 f2, u64 seq, u64 begin, u64 end)
{
	struct ev e;
	if (likely(shim_ctl.fast && begin == end && shim_numbers_at(t, obj, key_sc(pc, call), ret, f1, f2, seq, end)))
		return;
	shim_late(&e, t, call, pc, begin, end);
	e.obj = obj;
	e.ret = ret;
	e.f1 = f1;
	e.f2 = f2;
	e.seq = seq;
	shim_commit(&e);
}

int shim_thrd_err(int r)
{
	switch (r) {
	case thrd_success:
		return 0;
	case thrd_busy:
		return EBUSY;
	case thrd_timedout:
		return ETIMEDOUT;
	case thrd_nomem:
		return ENOMEM;
	default:
		return EINVAL;
	}
}

u64 shim_obj_semset(struct thr *t, int id)
{
	return id < 0 ? 0 : shim_object_ipc(t, PROPHET_ObjSem, (u64)id, "semset")->id;
}

u64 shim_obj_msgq(struct thr *t, int id)
{
	return id < 0 ? 0 : shim_object_ipc(t, PROPHET_ObjFd, (u64)id, "msgq")->id;
}

void shim_do_msgsnd(struct ev *e, const void *m, size_t n)
{
	if (e->ret == 0 && shim_ctl.inputs)
		shim_data_slow(e, PROPHET_InputsHash, m, n + sizeof(long));
}

void shim_do_msgrcv(struct ev *e, int id, const void *m)
{
	if (e->ret >= 0 && !shim_ctl.serial && (!shim_replays || (e->x && e->x->seq))) /* old traces have none */
		e->seq = shim_object_next(shim_object_ipc(e->t, PROPHET_ObjFd, (u64)id, "msgq"));
	if (e->ret >= 0 && shim_ctl.inputs)
		shim_data_slow(e, shim_ctl.inputs == PROPHET_InputsHash ? PROPHET_InputsHash : PROPHET_InputsFull, m, (u64)e->ret + sizeof(long));
}

struct object_entry *shim_queue(int q)
{
	struct fdinfo *i;
	if (shim_fd_kind(q) != FD_FILE || !(i = shim_fdinfo(q)) || !i->file)
		return 0;
	return shim_object_count(PROPHET_ObjFd, i->file);
}

void shim_do_received(struct ev *e, int q)
{
	struct object_entry *o;
	if (unlikely(shim_replays)) {
		e->f3 = e->x ? e->x->f3 : 0;
		return;
	}
	o = e->ret < 0 || shim_ctl.serial ? 0 : shim_queue(q);
	if (o)
		e->f3 = __atomic_add_fetch(&o->seq, 1, __ATOMIC_RELAXED);
}

void shim_note_mmap(const void *p, size_t n, int prot, int flags, int fd, u64 off)
{
	struct stat st;
	if (p == MAP_FAILED)
		return;
	if ((flags & MAP_TYPE) == MAP_PRIVATE || !(prot & PROT_WRITE)) {
		if (flags & MAP_FIXED)
			shim_object_unmapped(p, n);
		return;
	}
	if (flags & MAP_ANONYMOUS)
		shim_object_mapped(p, n, 0, 0, 0);
	else if (sys(SYS_fstat, fd, &st) == 0)
		shim_object_mapped(p, n, (u64)major(st.st_dev) << 32 | minor(st.st_dev), st.st_ino, off);
}

void shim_note_shmat(const void *p, int id)
{
	struct shmid_ds ds;
	if (p != (void *)-1 && sys(SYS_shmctl, id, IPC_STAT, &ds) == 0)
		shim_object_mapped(p, ds.shm_segsz, ~0u, (u64)id, 0);
}

void shim_note_shmdt(const void *p)
{
	shim_object_unmapped(p, 0);
}
