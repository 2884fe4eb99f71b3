/* A thread's ring: how an event becomes bytes of the stream. The issue engine shares this file.
 *
 * The owner encodes at ring + Slot.Pos and commits by one compare-and-exchange without a lock prefix (rules.h, 5).
 * A full ring is written to the stream file by its own thread and starts over with nothing predicted.
 *
 *   struct thr   private to the process, wiped by fork; one writer (its thread)
 *   struct slot  shared memory, read by other threads at exit, by commands at any time; one writer
 */
#ifndef SHIM_RING_H
#define SHIM_RING_H

#include "rules.h"
#include "minlibc.h"
#include <sys/uio.h>

/* What a key predicts for its next event. 64 bytes: one cache line. */
struct key {
	u64 idx; /* object ^ thr.genx: 0 fits nothing */
	u64 sc; /* pc << 16 | call */
	u64 seq, f1, f2, f3;
	i64 ret;
	u32 num;
	u32 chunk; /* low half of the genx it was defined under: the number is its own until that changes */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct key) == 64, "a key is a cache line");

#define UNDER_MAX 8
#define SEEN 64

struct thr {
	u32 gate; /* classes that may take the fast path; 0 in a forked child, in our own threads and while we are inside */
	u32 uid;
	struct slot *slot;
	u8 *ring; /* payload */
	u64 last; /* time cursor, ticks */
	u64 stack_at; /* ticks: an event that ends then or later gets a stack (stack.h); other threads may set it to 0 */
	u64 genx;
	u64 gen;
	u32 nkeys;
	u32 limit; /* a record may begin up to here: what slot has memory for */
	/* Up to here is the first cache line, all that predicted events need; up to pc the second, what others need besides. */
	u64 cursor; /* time cursor as the last handler left it */
	struct re *re; /* what is expected of this thread (replay.h); NULL: it is recorded */
	u32 side_depth; /* slot and ring are the side's since this handler; 0: they are the own ones */
	u32 side_len; /* bytes there that belong behind what is in the own ring */
	u32 writing; /* a writer is at work outside of our text */
	u16 mute, ours; /* a handler of this depth cannot be recorded; we did what takes long, and is not yet told of (TagOurs) */
	u64 lastcpu; /* ticks of the last CPU sample */
	u64 pc_gen, pc;
	u64 path_gen; /* genx when path was stored */
	u64 nobj; /* objects named so far */
	u32 path_len;
	u32 nthread, nfork; /* creations so far */
	u32 index; /* of the slot */
	u32 depth; /* handlers running; one that was left by a jump is still counted until shim_ready_slow sees it */
	u32 vfork; /* VFORK_…: not only this thread may be running on this state */
	u32 lost; /* errno of a failed write not yet in the stream */
	u64 lost_count;
	u64 ndata;
	u32 tid, how, proc;
	u32 room; /* limit of the own slot */
	u32 parent, nth;
	struct slot *own, *side; /* the thread's ring; the one for handlers that interrupt its writer (shim_aside) */
	struct thr *next, *prev; /* of the process's list; next: also of the free list */
	struct thr *ended; /* next of the list of threads whose routine is over */
	void *start, *arg; /* a new thread's routine */
	u64 mask; /* that it begins with, when quiet: until it knows who it is no signal reaches it */
	u32 quiet, pad_quiet;
	u32 flags, begun;
	u32 leaves, pad_leaves; /* serial: the call is left; signals that had waited for that come now */
	u64 token, token_gen; /* serial: the last turn that the stream names, and genx when it did */
	struct {
		u64 state, born, stop, stopped; /* state 0: not begun; ticks */
		u32 left, pace; /* events up to the next change */
		u32 spared, pad;
	} chaos; /* chaos.h */
	void *env; /* an environment that a vforked child needed; taken back by its parent */
	u64 env_len;
	u64 handled, hidden; /* ticks when a handler of the program returned last; when one was kept from it that is a pause's */
	struct under { /* what each running handler interrupted */
		u64 frame, begin;
		u32 call, sig;
		u32 writing, token; /* token: the handler took it (serial.h) */
	} under[UNDER_MAX];
	u64 stack_gen; /* genx when nstacks was counted */
	u64 holder_at; /* ticks: until then no other thread is asked for its stack */
	u32 cpu_timer, muted; /* id + 1 of the timer of stack_cpu.c; muted: handlers that were not recorded and are still to be told of */
	u32 nstacks, stack_asked; /* defined; bits of the next stack */
	u32 unloads; /* shim_unloads when the chunk began, or before */
	u8 path[256];
	struct key keys[PROPHET_KeySlots];
	struct seen {
		u64 hash;
		u32 number, pad;
	} seen[SEEN]; /* stacks that the chunk has */
};
_Static_assert(__builtin_offsetof(struct thr, cursor) == 64 && __builtin_offsetof(struct thr, path_gen) == 120, "cache lines of a thread");

enum {
	VFORK_NONE,
	VFORK_BEGUN, /* a vforked child may run on our stack; it has not recorded anything yet */
	VFORK_SEEN,
	VFORK_SHARED, /* a clone shares our thread-local storage for good: only the thread of our tid records */
};

#define THR_PRIVATE_RING 1 /* no shared memory was to be had */
#define THR_SHARED_SLOT 2

/* One per thread, not wiped: survives into a forked child to say who its parent was. */
struct self {
	struct thr *thr;
	u32 uid, proc;
	u32 nfork; /* forks so far, as the parent counted */
	u32 off; /* never record on this thread: it is ours */
	struct slot *slot; /* where thr's ring is mapped: a forked child maps its own there */
	u64 untold; /* serial.c: a turn that was taken before there was a stream to say it in */
	u32 ending, pad; /* serial: its call is over, but not written, or it forks: 2 when signals wait for that */
	u64 later; /* serial: the signal mask of the program, when ending is 2 */
};
extern __thread struct self shim_self __attribute__((tls_model("initial-exec"))) HIDDEN;
extern struct control shim_ctl HIDDEN; /* page(s) that boot maps over with the file `control` */

/* One event while it is being made; lives on the wrapper's stack. */
struct part {
	const void *p; /* of bytes; for numbers NULL */
	u64 n; /* length, or the number */
	u32 kind;
};
enum { PART_NUM, PART_STR, PART_PATH };
#define PARTS 8

struct ev {
	struct thr *t;
	void *pc;
	u32 call, cls;
	u64 begin, end; /* equal for one stamp */
	u64 obj;
	i64 ret;
	u64 f1, f2, f3, seq;
	u32 note, nparts;
	u32 data_kind; /* DATA_… */
	u32 inlen;
	const void *data; /* input data: kept inline, or already in a data chunk */
	u64 data_len, hash;
	int outer_call, fd; /* fd: FD_… of wrap.h, or the descriptor that decides whether the call waits for others */
	u32 held, pad; /* held: serial: made with the token, up to its end */
	u64 out; /* how much it is to write, if it is */
	struct expect *x; /* of a re-execution: what it is compared with */
	u64 turn; /* of a release without a place of its own: the place that it gives up */
	u8 *inbuf;
	u64 token; /* serial runs: number<<3 | how of the turn that its end began, 0: none */
	struct part part[PARTS];
};
enum { DATA_NONE = 0, DATA_INLINE = 1, DATA_HASH = 2, DATA_BIG = 4, DATA_PIECES = 8 /* with INLINE: data is an iovec array */ };

HIDDEN void shim_commit(struct ev *e);
HIDDEN int shim_numbers(struct thr *t, u64 obj, u64 sc, i64 ret, u64 f1, u64 f2, u64 f3, u64 begin, u64 end);
HIDDEN int shim_numbers_at(struct thr *t, u64 obj, u64 sc, i64 ret, u64 f1, u64 f2, u64 seq, u64 now);
HIDDEN void shim_flush(struct thr *t, u32 flags);
HIDDEN int shim_aside(struct thr *t); /* 0: what comes goes to the side */
HIDDEN void shim_aside_over(struct thr *t); /* and is behind the interrupted record, which starts over */
HIDDEN void shim_flush_for(struct thr *t); /* of another thread of this process */
HIDDEN void shim_flush_dead(struct slot *s); /* of a process that is no more */
HIDDEN void shim_record(struct thr *t, const u8 *rec, u32 len);
HIDDEN void shim_record_text(struct thr *t, const u8 *rec, u32 len, const char *text, u32 textlen);
HIDDEN void shim_record_at(struct thr *t, u32 tag, const u8 *rest, u32 len); /* tag, dt to now, rest */
HIDDEN void shim_ours(struct thr *t, u64 since); /* thr.ours is told of: what has passed since then */
HIDDEN void shim_ours_record(struct thr *t, u64 ticks); /* so many up to now; 0: all since the last event */
HIDDEN u64 shim_data_chunk(struct thr *t, const void *data, u64 len);
HIDDEN u64 shim_data_chunkv(struct thr *t, const struct iovec *v, u64 n, u64 len); /* the first len bytes of scattered data */
/* Input data up to here goes through the ring. A chunk of its own costs a write and the kernel's work for a page or two; but
 * a ring that has not grown has no room for more than a record. */
static inline u64 shim_inline_max(const struct thr *t)
{
	return t->limit == PROPHET_RingLimit ? PROPHET_InlineGrown : PROPHET_InlineData;
}

HIDDEN void shim_gather(u8 *to, const struct iovec *v, u64 len);
HIDDEN void shim_cpu(struct thr *t);
HIDDEN int shim_cpu_due(struct thr *t, u64 now); /* after a long gap or call: a sample, when the last one is old */
HIDDEN void shim_predict_nothing(struct thr *t);
extern u64 shim_gap HIDDEN; /* ticks: a longer gap or call is worth asking the kernel for CPU time */

/* Prefix varints (cabi/events.go); 8 bytes are stored whatever the length: rings have room behind every record. */
static inline u8 *put_v(u8 *p, u64 v)
{
	u32 bits = 64 - (u32)__builtin_clzll(v | 1);
	u32 n = (bits * 9 + 63) >> 6; /* ceil(bits / 7) for bits up to 56 */
	if (unlikely(bits > 56)) {
		*p = 0;
		__builtin_memcpy(p + 1, &v, 8);
		return p + 9;
	}
	v = (v << n) | (1ull << (n - 1));
	__builtin_memcpy(p, &v, 8);
	return p + n;
}

static inline u8 *put_z(u8 *p, i64 v)
{
	return put_v(p, ((u64)v << 1) ^ (u64)(v >> 63));
}

static inline u32 key_slot(u64 obj, u64 sc)
{
	return (u32)(((obj ^ sc) * 0x9E3779B97F4A7C15ull) >> 55);
}
_Static_assert(PROPHET_KeySlots == 512, "key_slot gives 9 bits");

/* A key whose place is another's lies in one of the three beside it: a server with a hundred connections has two keys for
 * each, and with one place only, every sixth event would have to define its key anew. The paths that are printed into
 * wrappers look at the first place alone. */
#define KEY_WAYS 4

/* The key, or the place where it is to be defined: one that this chunk has not used, else the first. */
static inline struct key *key_find(struct thr *t, u64 g, u64 obj, u64 sc, int *known)
{
	u32 at = key_slot(obj, sc), i;
	struct key *free = 0;
	*known = 1;
	for (i = 0; i < KEY_WAYS; i++) {
		struct key *k = &t->keys[at ^ i];
		if (likely(k->idx == (obj ^ g) && k->sc == sc))
			return k;
		if (!free && (k->chunk != (u32)g || !k->idx)) /* genx is odd */
			free = k;
	}
	*known = 0;
	return free ? free : &t->keys[at];
}

/* The place that a key predicts: the one after its last, none before its first. */
static inline u64 key_next(u64 seq)
{
	return seq + (seq != 0);
}

static inline u64 key_sc(void *pc, u32 call)
{
	return (u64)pc << 16 | call;
}

HIDDEN void shim_make_room(struct thr *t);

/* Where the next record goes. Looked at again once the position is loaded: a handler that ran before may have used up
 * the room, or have left records at the side that come first; one that runs after makes the commit fail. */
static inline u64 shim_place(struct thr *t)
{
	for (;;) {
		u64 pos;
		t->writing = 1;
		barrier();
		pos = t->slot->pos;
		barrier();
		if (likely((u32)pos <= t->limit && (!t->side_len || t->side_depth)))
			return pos;
		t->writing = 0;
		shim_make_room(t);
	}
}

/* The stream's time cursor: a writer that a handler interrupted may have set thr.last back before its commit failed. */
static inline u64 shim_cursor(struct thr *t)
{
	if (unlikely(t->cursor > t->last))
		t->last = t->cursor;
	return t->last;
}

/* What was done between the begin of a call and the call itself was ours, if it took long. */
static inline void shim_began(struct ev *e)
{
	if (unlikely(e->t->ours)) {
		shim_ours(e->t, e->begin);
		e->begin = shim_cursor(e->t);
	}
}

/* Before a call that may wait: what its event needs afterwards comes into the cache while the kernel is at work. A server
 * that goes round hundreds of connections finds each key's line as cold as the connection's. */
static inline void shim_near(struct thr *t, u64 obj, u64 sc)
{
	__builtin_prefetch(&t->keys[key_slot(obj, sc)], 1);
}

/* The fast path of an event with two stamps: its key is known and predicts all but the duration, its number takes one
 * byte, gap and duration two. One store, one commit; everything else is for shim_numbers. */
static inline __attribute__((always_inline)) int shim_quick(struct thr *t, u64 obj, u64 sc, i64 ret, u64 f1, u64 f2, u64 f3, u64 begin, u64 end)
{
	struct key *k = &t->keys[key_slot(obj, sc)];
	struct slot *s = t->slot;
	u64 pos = s->pos, dt, dur = end - begin, v, odd;
	u8 *p = t->ring + (u32)pos;
	barrier();
	dt = begin - t->last;
	odd =
	    (k->idx ^ obj ^ t->genx) | (k->sc ^ sc) | (u64)(ret ^ k->ret) | (f1 ^ k->f1) | (f2 ^ k->f2) | (f3 ^ k->f3) | dt >> 13 | dur >> 14 | (k->num & ~63u);
	if (unlikely(odd || (u32)pos > t->limit || end >= t->stack_at))
		return shim_numbers(t, obj, sc, ret, f1, f2, f3, begin, end);
	/* Key, dt in two bytes, the mask, the duration in two: see put_v. */
	v = (u64)(k->num * 2 + (PROPHET_FirstKey << 1 | 1)) | (dt << 3 | PROPHET_EvMore << 2 | 2) << 8 | (u64)PROPHET_MaskDuration << 24 | (dur << 2 | 2) << 32;
	__builtin_memcpy(p, &v, 8);
	t->last = end;
	if (likely(shim_commit_at(&s->pos, pos, pos + 6)))
		return 1;
	return 0;
}

#endif
