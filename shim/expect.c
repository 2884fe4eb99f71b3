/* See expect.h. */
#include "expect.h"
#include "minlibc.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct replay *shim_index;
u32 shim_replays;

u64 shim_apart(u64 len)
{
	static u64 next = 1ull << 45;
	return __atomic_fetch_add(&next, (len + (2u << 20)) & ~((2ull << 20) - 1), __ATOMIC_RELAXED);
}

/* The stream files, mapped when the process starts; forked children have them, too. */
static struct {
	const u8 *at;
	u64 len;
} streams[PROPHET_StreamFiles];

#define ROOM 4096 /* of zeros behind a file, so that numbers are loaded in one piece */

static int map_stream(u32 i)
{
	char path[4200];
	struct text t;
	struct stat st;
	long fd, p, r = 0;
	shim_text(&t, path, sizeof path);
	shim_put(&t, (const char *)shim_index->dir);
	shim_put(&t, i < 10 ? "/stream-0" : "/stream-");
	shim_putd(&t, i);
	fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : (int)fd;
	if (sys(SYS_fstat, fd, &st) == 0 && st.st_size > 0) {
		u64 len = ((u64)st.st_size + 4095) & ~4095ull;
		p = sys(SYS_mmap, shim_apart(len + ROOM), len + ROOM, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (!(p < 0 && p > -4096))
			r = sys(SYS_mmap, p, len, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
		if ((p < 0 && p > -4096) || (r < 0 && r > -4096)) {
			sys(SYS_close, fd);
			return -ENOMEM;
		}
		streams[i].at = (const u8 *)p;
		streams[i].len = (u64)st.st_size;
	}
	sys(SYS_close, fd);
	return 0;
}

static int sane(const struct replay *r, u64 size)
{
	return r->magic == PROPHET_ReplayMagic && r->version == PROPHET_FormatVersion && r->size == size &&
	       r->threadsat + (u64)r->threads * sizeof(struct replaythread) <= size && r->chunksat + (u64)r->chunks * sizeof(struct replaychunk) <= size &&
	       r->dataat + (u64)r->data * sizeof(struct replaychunk) <= size && r->procsat + (u64)r->procs * sizeof(struct replayproc) <= size &&
	       r->fdsat + (u64)r->fds * sizeof(struct replayfd) <= size && r->skipsat + (u64)r->skips * sizeof(struct replayskip) <= size && r->ids &&
	       !(r->ids & (r->ids - 1)) && !(r->moved & (r->moved - 1)) && r->movedat + (u64)r->moved * sizeof(struct replaymoved) <= size &&
	       r->idsat + (u64)r->ids * sizeof(struct replayid) <= size && r->turnsat + PROPHET_TurnBuckets * sizeof(struct replayturn) <= size;
}

int shim_index_map(const char *path)
{
	struct stat st;
	long fd = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0), p = -EINVAL;
	u32 i;
	int r = 0;
	if (fd < 0)
		return (int)fd;
	if (sys(SYS_fstat, fd, &st) == 0 && st.st_size >= (long)sizeof *shim_index)
		p = sys(SYS_mmap, shim_apart((u64)st.st_size), st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	sys(SYS_close, fd);
	if (p < 0 && p > -4096)
		return (int)p;
	if (!sane((struct replay *)p, (u64)st.st_size)) {
		sys(SYS_munmap, p, st.st_size);
		return -EINVAL;
	}
	shim_index = (struct replay *)p;
	for (i = 0; i < PROPHET_StreamFiles && !r; i++)
		r = map_stream(i);
	return r;
}

/* A chunk's payload, when it lies in its file. */
static const u8 *payload(const struct replaychunk *c)
{
	u32 i = c->file;
	if (i >= PROPHET_StreamFiles || !streams[i].at || c->off > streams[i].len || c->len > streams[i].len - c->off)
		return 0;
	return streams[i].at + c->off;
}

static void forget(struct expects *x)
{
	x->nkeys = 0;
	x->pc = 0;
	x->fresh = 1;
}

void shim_expect_begin(struct expects *x, const struct replaythread *t)
{
	x->p = x->end = 0;
	x->chunk = t->first;
	x->chunk_end = t->first + t->chunks;
	x->datum = t->datum;
	x->data = t->data;
	if (x->chunk_end > shim_index->chunks || x->chunk_end < x->chunk)
		x->chunk = x->chunk_end = 0;
	if (x->datum + (u64)x->data > shim_index->data)
		x->datum = x->data = 0;
	x->bad = 0;
	x->named = 0;
	x->nfds = 0;
	x->uid = t->uid;
	x->open = 0;
	x->head = x->tail = 0;
	x->near = 0;
	x->serial = shim_index->token != 0;
	x->said = 0;
	x->token = 0;
	forget(x);
}

static int next_chunk(struct expects *x)
{
	while (x->chunk < x->chunk_end) {
		const struct replaychunk *c = &shim_index_chunks()[x->chunk++];
		const u8 *p = payload(c);
		if (!p)
			return x->bad = 1, 0;
		if (c->len) {
			x->p = p;
			x->end = p + c->len;
			x->now = c->base;
			forget(x);
			return 1;
		}
	}
	return 0;
}

#define V() shim_get_v(&x->p, x->end)
#define T() (x->now += V())
#define Z() shim_get_z(&x->p, x->end)

static const u8 *bytes(struct expects *x, u64 n)
{
	const u8 *p = x->p;
	if (n > (u64)(x->end - p)) {
		x->bad = 1;
		x->p = x->end;
		return p;
	}
	x->p += n;
	return p;
}

static void skip(struct expects *x)
{
	bytes(x, V());
}

static void define(struct expects *x)
{
	u64 no = V(), call = V(), uid, num;
	i64 step = Z();
	struct expect_key *k;
	uid = V();
	num = V();
	if (no >= PROPHET_KeySlots || call > 0xffff) {
		x->bad = 1;
		return;
	}
	while (x->nkeys <= no)
		x->keys[x->nkeys++].call = 0;
	k = &x->keys[no];
	x->pc += (u64)step;
	k->call = call;
	k->pc = x->pc;
	k->obj = uid << 40 | (num & 0xffffffffffull);
	k->ret = 0;
	k->f1 = k->f2 = k->f3 = k->seq = 0;
}

/* A new one at the end of the queue. */
static struct expect *make(struct expects *x, u32 kind)
{
	struct expect *e = &x->queue[x->tail % EXPECT_AHEAD];
	e->kind = kind;
	e->call = 0;
	e->taken = 0;
	e->fresh = x->fresh;
	e->named = x->named;
	x->fresh = 0;
	e->note = 0;
	e->token = 0;
	return e;
}

static void event(struct expects *x, struct expect_key *k)
{
	struct expect *e = make(x, EXPECT_EVENT);
	u64 t = V(), seq = k->seq + (k->seq != 0);
	x->now += t >> 1;
	e->tail_len = e->input_len = e->input2_len = 0;
	e->took = 0;
	e->data = 0;
	e->data_len = 0;
	e->hashed = 0;
	if (t & PROPHET_EvMore) {
		u32 m = x->p < x->end ? *x->p++ : 0;
		if (m & PROPHET_MaskDuration)
			x->now += e->took = V();
		if (m & PROPHET_MaskRet)
			k->ret += Z();
		if (m & PROPHET_MaskF1)
			k->f1 += (u64)Z();
		if (m & PROPHET_MaskF2)
			k->f2 += (u64)Z();
		if (m & PROPHET_MaskF3)
			k->f3 += (u64)Z();
		if (m & PROPHET_MaskSeq)
			seq += (u64)Z();
		if (m & PROPHET_MaskTail) {
			u64 n = V();
			e->tail = bytes(x, n);
			e->tail_len = (u32)n;
		}
		if (m & PROPHET_MaskNote)
			e->note = (u32)V();
	}
	if (seq)
		k->seq = seq;
	e->call = (u32)k->call;
	e->pc = k->pc;
	e->obj = k->obj;
	e->ret = k->ret;
	e->f1 = k->f1;
	e->f2 = k->f2;
	e->f3 = k->f3;
	e->seq = seq;
	e->over = x->now;
	if (unlikely(x->serial)) {
		e->token = x->said ? x->token_next : (x->token + 1) << 3;
		if (e->token)
			x->token = e->token >> 3;
		x->said = 0;
	}
	x->tail++;
	x->open = 1;
}

static void big(struct expects *x, struct expect *e)
{
	u64 number = V(), len = V();
	const struct replaychunk *c;
	const u8 *p;
	if (number >= x->data) {
		x->bad = 1;
		return;
	}
	c = &shim_index_data()[x->datum + number];
	p = payload(c);
	if (!p || len > c->len) {
		x->bad = 1;
		return;
	}
	e->data = p;
	e->data_len = len;
}

static void named(struct expects *x)
{
	u64 uid = V(), number = V(), type = V(), at = V();
	skip(x);
	if (uid != x->uid)
		return;
	x->named = number;
	if (type == PROPHET_ObjFd) {
		x->fds[x->nfds % EXPECT_FDS].number = number;
		x->fds[x->nfds++ % EXPECT_FDS].fd = at;
	}
}

static void control(struct expects *x, u64 tag)
{
	struct expect *e = &x->queue[(x->tail - 1) % EXPECT_AHEAD];
	u64 n;
	if (tag == PROPHET_TagData || tag == PROPHET_TagHash || tag == PROPHET_TagBigData || tag == PROPHET_TagInput) {
		if (!x->open || e->kind != EXPECT_EVENT) {
			x->bad = 1;
			return;
		}
		switch (tag) {
		case PROPHET_TagData:
			n = V();
			e->data = bytes(x, n);
			e->data_len = n;
			return;
		case PROPHET_TagHash:
			__builtin_memcpy(&e->hash, bytes(x, 8), 8);
			e->hashed = 1;
			return;
		case PROPHET_TagBigData:
			big(x, e);
			return;
		default:
			n = V();
			if (e->input_len) {
				e->input2 = bytes(x, n);
				e->input2_len = (u32)n;
			} else {
				e->input = bytes(x, n);
				e->input_len = (u32)n;
			}
			return;
		}
	}
	switch (tag) {
	case PROPHET_TagKey:
		define(x);
		return;
	case PROPHET_TagObject:
		named(x);
		return;
	case PROPHET_TagCPU:
	case PROPHET_TagOurs:
		T(), V();
		return;
	case PROPHET_TagStack:
		V(), V();
		return;
	case PROPHET_TagSample:
		T(), V(), V();
		return;
	case PROPHET_TagFrames:
		V();
		skip(x);
		return;
	case PROPHET_TagTime:
		x->now = V();
		return;
	case PROPHET_TagRSS:
		V();
		return;
	case PROPHET_TagSignal:
		e = make(x, EXPECT_SIGNAL);
		T();
		e->f1 = V();
		e->call = (u32)V();
		e->f2 = (u64)Z();
		e->f3 = V();
		e->informed = 0;
		e->pc = 0;
		forget(x);
		x->tail++;
		x->open = 1;
		return;
	case PROPHET_TagSigInfo:
		if (!x->open || e->kind != EXPECT_SIGNAL) {
			x->bad = 1;
			return;
		}
		for (n = 0; n < 4; n++)
			e->info[n] = V();
		e->informed = 1;
		return;
	case PROPHET_TagPlace:
		if (!x->open || e->kind != EXPECT_SIGNAL) {
			x->bad = 1;
			return;
		}
		e->pc = V();
		e->obj = V();
		for (n = 0; n < 3; n++)
			e->registers[n] = V();
		x->open = 0;
		return;
	case PROPHET_TagSigRet:
		e = make(x, EXPECT_SIGRET);
		T();
		e->f1 = V();
		forget(x);
		break;
	case PROPHET_TagThread:
		V(), V(), V(), V(), V();
		return;
	case PROPHET_TagProc:
		V(), V(), V(), V(), V(), V(), V();
		skip(x);
		return;
	case PROPHET_TagModule:
		V(), V(), V();
		skip(x);
		skip(x);
		return;
	case PROPHET_TagMark:
		e = make(x, EXPECT_MARK);
		T();
		e->f1 = V();
		n = V();
		e->tail = bytes(x, n);
		e->tail_len = (u32)n;
		break;
	case PROPHET_TagLeft:
		e = make(x, EXPECT_LEFT);
		T();
		e->call = (u32)V();
		V();
		break;
	case PROPHET_TagLost:
		V(), V();
		return;
	case PROPHET_TagLevel:
		x->now = V();
		V();
		return;
	case PROPHET_TagExit:
		e = make(x, EXPECT_EXIT);
		T();
		e->f1 = V();
		e->ret = Z();
		V(), V(), V(), V(), V();
		break;
	case PROPHET_TagKept:
		V(), V(), V(), V();
		skip(x);
		return;
	case PROPHET_TagUnseen:
		V(), V();
		skip(x);
		return;
	case PROPHET_TagFork:
		e = make(x, EXPECT_FORK);
		T();
		e->f1 = V();
		e->f2 = V();
		e->f3 = V();
		break;
	case PROPHET_TagClock:
		V(), V(), V();
		return;
	case PROPHET_TagToken:
		n = V();
		if (!(n & PROPHET_TokenHere)) {
			x->token_next = n;
			x->said = 1;
			return;
		}
		e = make(x, EXPECT_TOKEN);
		e->token = n;
		x->token = n >> 3;
		break;
	case PROPHET_TagWas:
		V(), V(), V(), V(), V(), V();
		skip(x);
		return;
	default:
		x->bad = 1;
		return;
	}
	x->tail++;
	x->open = 0;
}

/* Whether what comes next belongs to the newest of the queue. */
static int attached(const struct expects *x)
{
	return x->p < x->end && (*x->p == (PROPHET_TagData << 1 | 1) || *x->p == (PROPHET_TagHash << 1 | 1) || *x->p == (PROPHET_TagBigData << 1 | 1) ||
				 *x->p == (PROPHET_TagInput << 1 | 1) || *x->p == (PROPHET_TagSigInfo << 1 | 1) || *x->p == (PROPHET_TagPlace << 1 | 1));
}

struct expect *shim_expect_at(struct expects *x, u32 ahead)
{
	static struct expect end = {.kind = EXPECT_END}, bad = {.kind = EXPECT_BAD};
	if (unlikely(ahead >= EXPECT_AHEAD - 1))
		return 0;
	while (x->tail - x->head <= ahead || (x->open && x->tail - x->head == ahead + 1 && attached(x))) {
		u64 tag;
		x->near = 0;
		if (unlikely(x->bad))
			return &bad;
		if (unlikely(x->p >= x->end)) {
			if (!next_chunk(x))
				return x->bad ? &bad : &end;
			continue;
		}
		tag = V();
		if (likely(tag >= PROPHET_FirstKey)) {
			if (unlikely(tag - PROPHET_FirstKey >= x->nkeys || !x->keys[tag - PROPHET_FirstKey].call))
				x->bad = 1;
			else
				event(x, &x->keys[tag - PROPHET_FirstKey]);
		} else {
			control(x, tag);
		}
	}
	return &x->queue[(x->head + ahead) % EXPECT_AHEAD];
}
