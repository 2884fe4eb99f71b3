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

HIDDEN void shim_re_arrived(const struct ev *e, struct object_entry *o, u32 count); /* at a barrier, which may be gone by now */
HIDDEN void shim_sync_late(struct thr *t, u32 call, void *pc, u64 obj, i64 ret, u64 f1, u64 f2, u64 seq, u64 begin, u64 end);

/* Writes an event whose result is 0 and which has one stamp: two or three bytes when as predicted. See shim_quick. */
static inline __attribute__((always_inline)) void sync_event(struct thr *t, u32 call, void *pc, u64 obj, u64 f1, u64 f2, u64 seq, u64 now)
{
	u64 sc = key_sc(pc, call), pos = t->slot->pos, v, odd;
	struct key *k = &t->keys[key_slot(obj, sc)];
	u8 *p = t->ring + (u32)pos;
	u32 head;
	barrier();
	v = now - t->last;
	odd = (k->idx ^ obj ^ t->genx) | (k->sc ^ sc) | (k->f1 ^ f1) | k->f3 | (u64)k->ret | v >> 13 | (k->num & ~63u);
	if (unlikely(odd || (u32)pos > t->limit || now >= t->stack_at))
		goto late;
	head = k->num * 2 + (PROPHET_FirstKey << 1 | 1);
	if (likely(!((k->f2 ^ f2) | (key_next(k->seq) ^ seq)))) {
		u32 w = v < 1u << 6 ? head | (u32)(v << 2 | 1) << 8 : head | (u32)(v << 3 | 2) << 8;
		__builtin_memcpy(p, &w, 4);
		v = pos + (v < 1u << 6 ? 2 : 3);
	} else {
		/* dt in two bytes, the mask, what differs. */
		u32 mask = (k->f2 != f2 ? PROPHET_MaskF2 : 0) | (seq != key_next(k->seq) ? PROPHET_MaskSeq : 0);
		u32 w = head | (u32)(v << 3 | PROPHET_EvMore << 2 | 2) << 8 | mask << 24;
		u8 *q = p + 4;
		__builtin_memcpy(p, &w, 4);
		if (mask & PROPHET_MaskF2)
			q = put_z(q, (i64)(f2 - k->f2));
		if (mask & PROPHET_MaskSeq)
			q = put_z(q, (i64)(seq - key_next(k->seq)));
		v = pos + (u64)(q - p);
	}
	t->last = now;
	if (unlikely(!shim_commit_at(&t->slot->pos, pos, v)))
		goto late;
	if (seq)
		k->seq = seq;
	k->f2 = f2;
	return;
late:
	shim_sync_late(t, call, pc, obj, 0, f1, f2, seq, now, now);
}

/* Names of objects that a row only mentions. */

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

/* Whether a mutex has its name and order in itself already. */
static inline int sync_mutex_known(pthread_mutex_t *m)
{
	const struct mutex_words *w = mutex_words(m);
	return !(m->__data.__kind & (MUTEX_ROBUST | MUTEX_SHARED)) && w->id && (w->seq ^ mutex_mark(m)) >> 48 == 0;
}

/* The C library's older kind of clean-up handler (hook_cond.c); NULL: it has none. */
extern void (*shim_cleanup_push)(struct _pthread_cleanup_buffer *, void (*)(void *), void *) HIDDEN;

/* C11 says how it went in numbers that libraries choose; the trace has error numbers. */
HIDDEN int shim_thrd_err(int r);

/* SysV objects are known to all processes by their number. */
HIDDEN u64 shim_obj_semset(struct thr *t, int id);
HIDDEN u64 shim_obj_msgq(struct thr *t, int id);

/* Messages are data from outside like a socket's. Who has got one takes the next place among those that got one of that queue, in
 * whichever process: a POSIX queue's is a number of the event, System V's the event's place. Under --serial the turns tell it, and it is 0. */
HIDDEN void shim_do_msgsnd(struct ev *e, const void *m, size_t n);
HIDDEN void shim_do_msgrcv(struct ev *e, int id, const void *m);
HIDDEN struct object_entry *shim_queue(int q); /* NULL: it is none, or there is no room */
HIDDEN void shim_do_received(struct ev *e, int q);

/* Memory that processes may share comes and goes; see object.h. */
HIDDEN void shim_note_mmap(const void *p, size_t n, int prot, int flags, int fd, u64 off);
HIDDEN void shim_note_shmat(const void *p, int id);
HIDDEN void shim_note_shmdt(const void *p);

#endif
