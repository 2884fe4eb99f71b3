/* The trace as a re-execution reads it: a thread's own records, decoded where they lie in the mapped stream files.
 *
 * Rules: all of it is distrusted (a length is checked before it is believed, what does not parse is EXPECT_BAD for
 * ever); nothing is allocated after shim_expect_begin; the format is stated in cabi/events.go and read the same way by
 * runtime/trace. Records are taken off a queue, so that a call whose events come before its own (a stream's lock, fork
 * with its handlers, once) can be found before them.
 */
#ifndef SHIM_EXPECT_H
#define SHIM_EXPECT_H

#include "rules.h"

enum {
	EXPECT_END, /* the thread's part of the trace is used up */
	EXPECT_EVENT,
	EXPECT_SIGNAL, /* call: what it interrupted; f1: signal; f2: code; f3: sender; info: the words behind the code, if told; pc, obj, registers: TagPlace */
	EXPECT_SIGRET, /* f1: signal */
	EXPECT_LEFT, /* call: was left by a jump, an exception or cancellation */
	EXPECT_MARK,
	EXPECT_FORK, /* f1: which, f2: pid, f3: how */
	EXPECT_EXIT, /* f1: how, ret: status */
	EXPECT_TOKEN, /* serial: the thread took a turn right here */
	EXPECT_BAD,
};

struct expect {
	u32 kind, call;
	u64 pc, obj;
	i64 ret;
	u64 f1, f2, f3, seq;
	u64 token; /* serial: number<<3 | how of the turn that its end began, 0: none */
	const u8 *tail, *data, *input, *input2;
	u64 data_len, hash;
	u32 tail_len, input_len, input2_len;
	u32 note;
	u8 hashed, fresh; /* hash counts; the path before it is forgotten */
	u8 taken; /* a call that is under way stands for it */
	u8 informed; /* info counts */
	u8 pad[4];
	u64 named; /* objects that the thread has named when it is written */
	u64 over, took; /* ticks of the recording: when the event was over, and how long it took, where that is told */
	u64 info[4], registers[3];
};

#define EXPECT_FDS 64 /* a power of two */
#define EXPECT_AHEAD 256 /* a power of two: how far ahead is looked */

struct expect_key {
	u64 call, pc, obj;
	i64 ret;
	u64 f1, f2, f3, seq;
};

struct expects {
	const u8 *p, *end; /* in the current chunk */
	u32 chunk, chunk_end;
	u32 datum, data; /* first of the thread's data chunks, and how many */
	u64 pc, named;
	u64 now; /* time cursor: ticks of the recording */
	u32 uid, nfds;
	struct {
		u64 number, fd;
	} fds[EXPECT_FDS]; /* the last descriptors that the thread named */
	u32 nkeys, bad;
	u8 fresh, open; /* open: the newest of the queue may get attachments */
	u8 serial, said; /* said: the next event's turn is token_next */
	u8 careful, pad[3]; /* no event of it is quick: see shim_re_quick */
	struct expect_key *near; /* of the next record, when that is an event of the usual kind; it goes on at past. NULL: look */
	const u8 *past;
	u64 token, token_next; /* the last turn */
	u32 head, tail; /* of the queue: head is the oldest */
	struct expect queue[EXPECT_AHEAD];
	struct expect_key keys[PROPHET_KeySlots];
};

HIDDEN void shim_expect_begin(struct expects *x, const struct replaythread *t);
HIDDEN struct expect *shim_expect_at(struct expects *x, u32 ahead); /* the one that many after the oldest; NULL: further than is looked */

/* The key of the record at p, which is an event that nobody has to know of before it is asked for; NULL: it may be another kind of
 * record, or it is the chunk's last. */
static inline __attribute__((always_inline)) struct expect_key *shim_expect_key(struct expects *x, const u8 *p, const u8 **past)
{
	struct expect_key *k;
	u32 w, key;
	if (unlikely(x->end - p < 2 + 4)) /* its key and its time are read at once, and behind the last chunk there may be no memory */
		return 0;
	__builtin_memcpy(&w, p, 4);
	*past = p + (~w & 1) + 1;
	key = (w & 1 ? w >> 1 & 0x7f : w >> 2 & 0x3fff) - PROPHET_FirstKey;
	if (unlikely(!(w & 3) || key >= x->nkeys))
		return 0;
	k = &x->keys[key];
	return likely(k->call && k->call != CALL_syscall && k->call != CALL_pthread_once) ? k : 0;
}

/* The place in the program that it tells, without the generation of its module. */
static inline u64 shim_expect_pc(const struct expect *x)
{
	return x->pc & ((1ull << 48) - 1);
}

/* Whether a signal's place is told with registers: it came in the program, not on the way out of a call or of our code. */
static inline int shim_expect_told(const struct expect *x)
{
	return (x->registers[0] | x->registers[1] | x->registers[2]) != 0;
}

/* The oldest, whatever it is. */
static inline struct expect *shim_expect(struct expects *x)
{
	return shim_expect_at(x, 0);
}

static inline void shim_expect_drop(struct expects *x)
{
	x->head++;
}

extern struct replay *shim_index HIDDEN; /* NULL: this never was a re-execution (shim_replays: object.h) */
HIDDEN int shim_index_map(const char *path); /* 0 or -errno */

/* Where a re-execution maps what a recording does not have: far from where the kernel puts what the program maps, so
 * that this has its recorded addresses. No more than a wish to the kernel. */
HIDDEN u64 shim_apart(u64 len);

static inline struct replaythread *shim_index_threads(void)
{
	return (struct replaythread *)((u8 *)shim_index + shim_index->threadsat);
}

static inline const struct replaychunk *shim_index_chunks(void)
{
	return (const struct replaychunk *)((u8 *)shim_index + shim_index->chunksat);
}

static inline const struct replaychunk *shim_index_data(void)
{
	return (const struct replaychunk *)((u8 *)shim_index + shim_index->dataat);
}

static inline struct replayproc *shim_index_procs(void)
{
	return (struct replayproc *)((u8 *)shim_index + shim_index->procsat);
}

static inline struct replayturn *shim_index_turns(void)
{
	return (struct replayturn *)((u8 *)shim_index + shim_index->turnsat);
}

/* Numbers of a tail or a structured input. *p never passes end; what is cut short reads as 0. */
static inline u64 shim_get_v(const u8 **p, const u8 *end)
{
	const u8 *q = *p;
	u64 v;
	u32 n;
	if (unlikely(q >= end))
		return 0;
	__builtin_memcpy(&v, q, 8); /* stream files are mapped with room behind them */
	n = (u32)__builtin_ctz((u32)v | 1u << 8) + 1;
	if (unlikely(n == 9)) {
		__builtin_memcpy(&v, q + 1, 8);
		*p = q + 9 <= end ? q + 9 : end;
		return v;
	}
	*p = q + n <= end ? q + n : end;
	return v >> n & ((1ull << 7 * n) - 1);
}

static inline i64 shim_get_z(const u8 **p, const u8 *end)
{
	u64 v = shim_get_v(p, end);
	return (i64)(v >> 1) ^ -(i64)(v & 1);
}

#endif
