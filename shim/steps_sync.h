/* Helpers of the steps `obj`, `input`, `pre`, `do` and `post` of Rec (cabi/calls.go) for synchronisation, and the quick
 * path that its hand-written wrappers share.
 */
#ifndef SHIM_STEPS_SYNC_H
#define SHIM_STEPS_SYNC_H

#include "wrap.h"
#include <semaphore.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/types.h>

extern int __sched_yield(void);

/* The calling thread's state when nothing special is asked for. */
static inline struct thr *sync_quick(void)
{
	struct thr *t = shim_self.thr;
	return likely(t && (t->gate & shim_ctl.fast & 1u << CLASS_sync)) ? t : 0;
}

HIDDEN void shim_sync_late(struct thr *t, u32 call, void *pc, u64 obj, i64 ret, u64 f1, u64 f2, u64 seq, u64 begin, u64 end);

/* Writes an event whose result is 0 and which has one stamp: two or three bytes when as predicted. */
static inline __attribute__((always_inline)) void sync_event(struct thr *t, u32 call, void *pc, u64 obj, u64 f1, u64 f2, u64 seq, u64 now)
{
	u64 sc = key_sc(pc, call), pos = t->slot->pos, v;
	struct key *k = &t->keys[key_slot(obj, sc)];
	u8 *p = t->ring + pos;
	u32 mask;
	barrier();
	v = now - t->last;
	if (unlikely(k->idx != (obj ^ t->genx) || k->sc != sc || k->f1 != f1 || k->ret | (i64)k->f3 || k->num >= 128 - PROPHET_FirstKey))
		goto late;
	if (unlikely(v >= 1u << 13 || pos > PROPHET_RingLimit))
		goto late;
	mask = (k->f2 != f2 ? PROPHET_MaskF2 : 0) | (seq != key_next(k->seq) ? PROPHET_MaskSeq : 0);
	*p++ = (u8)((PROPHET_FirstKey + k->num) << 1 | 1);
	v = v << 1 | (mask ? PROPHET_EvMore : 0);
	if (likely(v < 1u << 7)) {
		*p++ = (u8)(v << 1 | 1);
	} else {
		u16 w = (u16)(v << 2 | 2);
		__builtin_memcpy(p, &w, 2);
		p += 2;
	}
	if (mask) {
		*p++ = (u8)mask;
		if (mask & PROPHET_MaskF2)
			p = put_z(p, (i64)(f2 - k->f2));
		if (mask & PROPHET_MaskSeq)
			p = put_z(p, (i64)(seq - key_next(k->seq)));
	}
	t->last = now;
	if (unlikely(!shim_commit_at(&t->slot->pos, pos, (u64)(p - t->ring))))
		goto late;
	if (seq)
		k->seq = seq;
	k->f2 = f2;
	return;
late:
	shim_sync_late(t, call, pc, obj, 0, f1, f2, seq, now, now);
}

/* Names of objects that a row only mentions. */
static inline u64 shim_obj_rwlock(struct thr *t, const void *p)
{
	return shim_object(t, PROPHET_ObjRwlock, p)->id;
}

static inline u64 shim_obj_cond(struct thr *t, const void *p)
{
	return shim_object(t, PROPHET_ObjCond, p)->id;
}

static inline u64 shim_obj_sem(struct thr *t, const void *p)
{
	return shim_object(t, PROPHET_ObjSem, p)->id;
}

static inline u64 shim_obj_mutex(struct thr *t, const void *m)
{
	return shim_mutex_name(t, (pthread_mutex_t *)m, 0);
}

/* init: whatever was there is another object from now on. */
static inline int sync_begin_init(struct ev *e, u32 call, u32 type, void *p, void *pc)
{
	shim_object_gone(type, p);
	if (!shim_begin(e, call, CLASS_sync, pc))
		return 0;
	e->f1 = (u64)p;
	return 1;
}

static inline int sync_end_init(struct ev *e, int on, u32 type, void *p, int r)
{
	if (!on)
		return r;
	shim_end(e, WRAP_ONCE);
	e->ret = r;
	if (r == 0)
		e->obj = shim_object(e->t, type, p)->id;
	shim_done(e);
	return r;
}

/* destroy: the name is read before; the next use of the address is another object. */
static inline int sync_begin_destroy(struct ev *e, u32 call, u32 type, void *p, void *pc)
{
	int on = shim_begin(e, call, CLASS_sync, pc);
	if (on) {
		e->f1 = (u64)p;
		e->obj = shim_object(e->t, type, p)->id;
	}
	shim_object_gone(type, p);
	return on;
}

static inline int sync_end_destroy(struct ev *e, int on, int r)
{
	if (!on)
		return r;
	shim_end(e, WRAP_ONCE);
	e->ret = r;
	shim_done(e);
	return r;
}

static inline int sync_acquired(int r)
{
	return r == 0 || r == EOWNERDEAD;
}

/* C11 says how it went in numbers that libraries choose; the trace has error numbers. */
HIDDEN int shim_thrd_err(int r);

/* SysV objects are known to all processes by their number. */
HIDDEN u64 shim_obj_semset(struct thr *t, int id);
HIDDEN u64 shim_obj_msgq(struct thr *t, int id);

/* Messages are data from outside like a socket's. */
HIDDEN void shim_do_msgsnd(struct ev *e, const void *m, size_t n);
HIDDEN void shim_do_msgrcv(struct ev *e, const void *m);

/* Memory that processes may share comes and goes; see object.h. */
HIDDEN void shim_note_mmap(const void *p, size_t n, int prot, int flags, int fd, u64 off);
HIDDEN void shim_note_shmat(const void *p, int id);
HIDDEN void shim_note_shmdt(const void *p);

#endif
