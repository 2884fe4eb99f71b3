/* See ring.h. */
#include "ring.h"
#include "modules.h"
#include "scrub.h"
#include "replay.h"
#include "run.h"
#include "stack.h"
#include <errno.h>
#include <sys/mman.h>

/* A gap or a call longer than this is worth asking the kernel for CPU time (about 400 ns), but once in 10 ms: to answer,
 * the scheduler brings its books up to date and decides anew who runs next. Asked after each, the threads of a Python
 * program made twice the switches. A gap of more than 1 ms is asked about each time: most of it may have been waiting for a
 * processor, and that is not to be told apart once others are counted with it. */
#define GAP_NS 40000
#define SAMPLE_GAPS 250
#define LONG_GAPS 25

u64 shim_gap = 80000;

void shim_ring_rate(u64 ticks_per_ms)
{
	shim_gap = ticks_per_ms * GAP_NS / 1000000;
}

void shim_predict_nothing(struct thr *t)
{
	t->gen++;
	t->nkeys = 0;
	barrier();
	t->genx = shim_hash64(&t->gen, 8, 0x50726f70686574) | 1;
}

/* Whole records that predict nothing; text ends one, where it lies. */
void shim_record_text(struct thr *t, const u8 *rec, u32 len, const char *text, u32 textlen)
{
	if (unlikely(shim_replays))
		return;
	for (;;) {
		u64 pos;
		pos = shim_place(t);
		shim_copy(t->ring + (u32)pos, rec, len);
		shim_copy(t->ring + (u32)pos + len, text, textlen);
		if (shim_commit_at(&t->slot->pos, pos, pos + len + textlen)) {
			t->writing = 0;
			return;
		}
	}
}

void shim_record(struct thr *t, const u8 *rec, u32 len)
{
	shim_record_text(t, rec, len, "", 0);
}

void shim_record_at(struct thr *t, u32 tag, const u8 *rest, u32 len)
{
	if (unlikely(shim_replays)) {
		shim_re_record(t, tag);
		return;
	}
	for (;;) {
		u64 pos, last, now;
		u8 *p;
		pos = shim_place(t);
		last = shim_cursor(t);
		now = shim_ticks();
		if (now < last)
			now = last;
		p = put_v(t->ring + (u32)pos, tag);
		p = put_v(p, now - last);
		shim_copy(p, rest, len);
		t->last = now;
		if (shim_commit_at(&t->slot->pos, pos, pos + (u64)(p - (t->ring + (u32)pos)) + len)) {
			t->writing = 0;
			return;
		}
	}
}

/* Less than this is not worth its bytes, as a share of what shim_gap is. */
#define OURS_LEAST 40

void shim_ours_record(struct thr *t, u64 ticks)
{
	u8 b[9];
	if (!shim_replays && !shim_ctl.serial && t->gate)
		shim_record_at(t, PROPHET_TagOurs, b, (u32)(put_v(b, ticks) - b));
}

void shim_ours(struct thr *t, u64 since)
{
	u64 last = shim_cursor(t), now = shim_ticks();
	t->ours = 0;
	if (since < last)
		since = last; /* a handler came between */
	if ((i64)(now - since) > (i64)(shim_gap / OURS_LEAST))
		shim_ours_record(t, since == last ? 0 : now - since);
}

static u64 thread_cpu(void)
{
	struct {
		i64 s, ns;
	} ts = {0, 0};
	sys(SYS_clock_gettime, 3 /* CLOCK_THREAD_CPUTIME_ID */, &ts);
	return (u64)ts.s * 1000000000u + (u64)ts.ns;
}

/* A sample of this thread's CPU time, and now and then of resident memory. */
void shim_cpu(struct thr *t)
{
	u8 b[32];
	u64 pages, now = shim_ticks();
	shim_record_at(t, PROPHET_TagCPU, b, (u32)(put_v(b, thread_cpu()) - b));
	t->lastcpu = now;
	pages = t->vfork ? 0 : shim_rss(now); /* descriptors of a vforked child are not those of our memory */
	if (pages) {
		u8 *p = put_v(b, PROPHET_TagRSS);
		shim_record(t, b, (u32)(put_v(p, pages) - b));
	}
}

int shim_cpu_due(struct thr *t, u64 now)
{
	if ((i64)(now - t->lastcpu) <= (i64)(shim_gap * SAMPLE_GAPS) && (i64)(now - t->last) <= (i64)(shim_gap * LONG_GAPS))
		return 0;
	shim_cpu(t);
	return 1;
}

static u8 *put_path(struct thr *t, u64 g, u8 *p, const struct part *s, u32 *note)
{
	u32 shared = 0, max = t->path_gen == g ? t->path_len : 0;
	const u8 *c = s->p;
	u64 n = s->n;
	if (n > PROPHET_TailMax / 2) {
		n = PROPHET_TailMax / 2;
		*note |= PROPHET_NoteCut;
	}
	while (shared < max && shared < n && c[shared] == t->path[shared])
		shared++;
	p = put_v(p, shared);
	p = put_v(p, n - shared);
	shim_copy(p, c + shared, n - shared);
	return p + (n - shared);
}

static u32 tail_size(const struct ev *e)
{
	u32 i, n = 0;
	for (i = 0; i < e->nparts; i++)
		n += e->part[i].kind == PART_NUM ? 9 : 18 + (u32)(e->part[i].n > PROPHET_TailMax / 2 ? PROPHET_TailMax / 2 : e->part[i].n);
	return n;
}

static u8 *put_tail(struct thr *t, u64 g, u8 *p, struct ev *e, const struct part **path)
{
	u32 i, max = tail_size(e);
	u8 *start, *q;
	/* The length comes first but is known last: leave the bytes that the bound needs. */
	u32 head = max < 128 ? 1 : 2;
	start = p + head;
	q = start;
	for (i = 0; i < e->nparts; i++) {
		const struct part *s = &e->part[i];
		if (s->kind == PART_NUM) {
			q = put_v(q, s->n);
		} else if (s->kind == PART_STR) {
			u64 n = s->n > PROPHET_TailMax / 2 ? PROPHET_TailMax / 2 : s->n;
			q = put_v(q, n);
			shim_copy(q, s->p, n);
			q += n;
		} else {
			q = put_path(t, g, q, s, &e->note);
			*path = s;
			break; /* at most one path is predicted from; it is the last part */
		}
	}
	{
		u64 len = (u64)(q - start);
		if (head == 1) {
			p[0] = (u8)(len << 1 | 1);
		} else {
			u16 v = (u16)(len << 2 | 2);
			shim_copy(p, &v, 2);
		}
	}
	return q;
}

/* There is no room for data of that length behind pos. Once the ring is empty there is, unless it is not the one that was
 * looked at: a handler that forked left the writer to the child, whose ring is a small one. */
static COLD void data_room(struct ev *e)
{
	struct thr *t = e->t;
	struct iovec one = {(void *)e->data, e->data_len};
	t->writing = 0;
	shim_make_room(t);
	if (t->limit == PROPHET_RingLimit)
		return;
	e->hash = shim_data_chunkv(t, e->data_kind & DATA_PIECES ? e->data : &one, ~0ull, e->data_len);
	e->data_kind = DATA_BIG;
}

/* Writes one event, with its key's definition before and its attachments after it, as one commit. */
static NOINLINE void commit(struct ev *e)
{
	struct thr *t = e->t;
	u64 sc = key_sc(e->pc, e->call);
	if (unlikely(t->re != 0)) {
		if (likely(!shim_re_detached()) && likely(shim_re_commit(e)))
			return;
		if (t->re)
			shim_re_off(t);
		e->begin = e->end = t->last;
		e->data_kind = 0; /* it was to be compared, however long */
	}
	if (unlikely(e->held))
		shim_serial_next(e);
	for (;;) {
		struct key was, *k;
		const struct part *path = 0;
		u64 pos, g, last, begin = e->begin, end = e->end, named = 0;
		u32 num, mask = 0, more;
		int known;
		u8 *p, *m;
		pos = shim_place(t);
		if (unlikely(e->data_kind & DATA_INLINE && e->data_len > PROPHET_InlineData && (u32)pos + e->data_len > t->limit)) {
			data_room(e);
			continue;
		}
		g = t->genx;
		last = shim_cursor(t);
		if (unlikely(begin < last)) {
			begin = last;
			if (end < begin)
				end = begin;
		}
		if (unlikely(begin - last > shim_gap) && begin == end && shim_cpu_due(t, begin))
			continue; /* the cursor has moved on; start over */
		p = t->ring + (u32)pos;
		if (unlikely(shim_ctl.serial) && (e->token != (t->token + 1) << 3 || t->token_gen != g)) {
			p = put_v(p, PROPHET_TagToken);
			p = put_v(p, e->token);
		}
		k = key_find(t, g, e->obj, sc, &known);
		if (likely(known)) {
			was.seq = k->seq;
			was.f1 = k->f1;
			was.f2 = k->f2;
			was.f3 = k->f3;
			was.ret = k->ret;
			num = k->num;
		} else {
			u64 pc = t->pc_gen == g ? t->pc : 0;
			if (unlikely(shim_unloads) && shim_module_of(t, (u64)e->pc))
				continue; /* before it is named */
			named = shim_module_pc((u64)e->pc);
			was.seq = was.f1 = was.f2 = was.f3 = 0;
			was.ret = 0;
			num = k->chunk == (u32)g ? k->num : t->nkeys; /* the place is this chunk's already */
			p = put_v(p, PROPHET_TagKey);
			p = put_v(p, num);
			p = put_v(p, e->call);
			p = put_z(p, (i64)(named - pc));
			p = put_v(p, e->obj >> 40);
			p = put_v(p, e->obj & 0xffffffffffull);
		}
		p = put_v(p, PROPHET_FirstKey + num);
		if (e->ret != was.ret)
			mask |= PROPHET_MaskRet;
		if (e->f1 != was.f1)
			mask |= PROPHET_MaskF1;
		if (e->f2 != was.f2)
			mask |= PROPHET_MaskF2;
		if (e->f3 != was.f3)
			mask |= PROPHET_MaskF3;
		if (e->seq != key_next(was.seq))
			mask |= PROPHET_MaskSeq;
		if (e->nparts)
			mask |= PROPHET_MaskTail;
		if (end != begin)
			mask |= PROPHET_MaskDuration;
		more = mask || e->note;
		p = put_v(p, (begin - last) << 1 | more);
		if (more) {
			m = p++;
			if (end != begin)
				p = put_v(p, end - begin);
			if (mask & PROPHET_MaskRet)
				p = put_z(p, e->ret - was.ret);
			if (mask & PROPHET_MaskF1)
				p = put_z(p, (i64)(e->f1 - was.f1));
			if (mask & PROPHET_MaskF2)
				p = put_z(p, (i64)(e->f2 - was.f2));
			if (mask & PROPHET_MaskF3)
				p = put_z(p, (i64)(e->f3 - was.f3));
			if (mask & PROPHET_MaskSeq)
				p = put_z(p, (i64)(e->seq - key_next(was.seq)));
			if (mask & PROPHET_MaskTail)
				p = put_tail(t, g, p, e, &path);
			if (e->note) {
				mask |= PROPHET_MaskNote;
				p = put_v(p, e->note);
			}
			*m = (u8)mask;
		}
		if (unlikely(e->data_kind)) {
			if (e->data_kind & DATA_HASH) {
				p = put_v(p, PROPHET_TagHash);
				shim_copy(p, &e->hash, 8);
				p += 8;
			}
			if (e->data_kind & DATA_INLINE) {
				p = put_v(p, PROPHET_TagData);
				p = put_v(p, e->data_len);
				if (e->data_kind & DATA_PIECES)
					shim_gather(p, e->data, e->data_len);
				else
					shim_copy(p, e->data, e->data_len);
				p += e->data_len;
			}
			if (e->data_kind & DATA_BIG) {
				p = put_v(p, PROPHET_TagBigData);
				p = put_v(p, e->hash);
				p = put_v(p, e->data_len);
			}
		}
		if (unlikely(e->inlen)) {
			p = put_v(p, PROPHET_TagInput);
			p = put_v(p, e->inlen);
			shim_copy(p, e->inbuf, e->inlen);
			p += e->inlen;
		}
		t->last = end;
		if (unlikely(!shim_commit_at(&t->slot->pos, pos, pos + (u64)(p - (t->ring + (u32)pos)))))
			continue;
		if (!known) {
			k->idx = named >> 48 == SHIM_NOWHERE ? 0 : e->obj ^ g; /* else the next event defines it again */
			k->sc = sc;
			k->chunk = (u32)g;
			k->num = num;
			k->seq = 0;
			if (num == t->nkeys)
				t->nkeys = num + 1;
			t->pc = named;
			t->pc_gen = g;
		}
		k->ret = e->ret;
		k->f1 = e->f1;
		k->f2 = e->f2;
		k->f3 = e->f3;
		if (e->seq)
			k->seq = e->seq;
		if (unlikely(shim_ctl.serial)) {
			if (e->token)
				t->token = e->token >> 3;
			t->token_gen = g;
		}
		if (path) {
			u32 n = path->n < sizeof t->path ? (u32)path->n : (u32)sizeof t->path;
			shim_copy(t->path, path->p, n);
			t->path_len = n;
			t->path_gen = g;
		}
		t->writing = 0;
		if (unlikely(shim_stack_due(t, e)))
			shim_stack(e, pos + (u64)(p - (t->ring + (u32)pos)));
		if (unlikely(!known))
			shim_module_of(t, (u64)e->pc);
		if (unlikely(t->ours))
			shim_ours(t, end);
		if (unlikely(end - begin > shim_gap)) {
			/* Of a call that a sample was taken shortly before, one after it tells what waiting there costs. */
			if ((i64)(begin - t->lastcpu) < (i64)(shim_gap / 10))
				shim_cpu(t);
			else
				shim_cpu_due(t, end);
		}
		if (unlikely(!t->gate) && shim_run.exiting)
			shim_flush(t, PROPHET_ChunkLast);
		return;
	}
}

void shim_commit(struct ev *e)
{
	struct thr *t = e->t;
	if (likely(!shim_ctl.serial)) {
		commit(e);
		return;
	}
	commit(e);
	if (shim_self.ending) {
		t->leaves = 1;
		shim_serial_later();
		t->leaves = 0;
	}
	if (unlikely(shim_run.exiting == t->tid))
		shim_serial_give();
	shim_scrub(e); /* the last, so that it runs in our frame's place */
}

/* An event of numbers alone whose key is known. 0: nothing is written, shim_commit does it. */
static inline __attribute__((always_inline)) int numbers(struct thr *t, u64 obj, u64 sc, i64 ret, u64 f1, u64 f2, u64 f3, u64 seq, u64 begin, u64 end)
{
	struct key *k;
	struct slot *s = t->slot;
	u64 pos = s->pos, dt, dur = end - begin, v;
	u8 *p = t->ring + (u32)pos;
	u32 n, mask = 0;
	int known;
	barrier();
	dt = begin - t->last;
	if (unlikely(dt > shim_gap || dur > shim_gap || (u32)pos > t->limit || end >= t->stack_at))
		return 0;
	k = key_find(t, t->genx, obj, sc, &known);
	if (unlikely(!known))
		return 0;
	p = put_v(p, PROPHET_FirstKey + k->num);
	if (ret != k->ret)
		mask |= PROPHET_MaskRet;
	if (f1 != k->f1)
		mask |= PROPHET_MaskF1;
	if (f2 != k->f2)
		mask |= PROPHET_MaskF2;
	if (f3 != k->f3)
		mask |= PROPHET_MaskF3;
	if (seq != key_next(k->seq))
		mask |= PROPHET_MaskSeq;
	if (dur)
		mask |= PROPHET_MaskDuration;
	v = dt << 1 | (mask != 0);
	n = ((64 - (u32)__builtin_clzll(v | 1)) * 9 + 63) >> 6;
	v = v << n | 1ull << (n - 1);
	__builtin_memcpy(p, &v, 8);
	p += n;
	if (mask) {
		*p++ = (u8)mask;
		if (dur)
			p = put_v(p, dur);
		if (mask & PROPHET_MaskRet)
			p = put_z(p, ret - k->ret);
		if (mask & PROPHET_MaskF1)
			p = put_z(p, (i64)(f1 - k->f1));
		if (mask & PROPHET_MaskF2)
			p = put_z(p, (i64)(f2 - k->f2));
		if (mask & PROPHET_MaskF3)
			p = put_z(p, (i64)(f3 - k->f3));
		if (mask & PROPHET_MaskSeq)
			p = put_z(p, (i64)(seq - key_next(k->seq)));
	}
	t->last = end;
	if (unlikely(!shim_commit_at(&s->pos, pos, pos + (u64)(p - (t->ring + (u32)pos)))))
		return 0;
	if (mask & (PROPHET_MaskRet | PROPHET_MaskF1 | PROPHET_MaskF2 | PROPHET_MaskF3)) {
		k->ret = ret;
		k->f1 = f1;
		k->f2 = f2;
		k->f3 = f3;
	}
	if (seq)
		k->seq = seq;
	return 1;
}

int shim_numbers(struct thr *t, u64 obj, u64 sc, i64 ret, u64 f1, u64 f2, u64 f3, u64 begin, u64 end)
{
	return numbers(t, obj, sc, ret, f1, f2, f3, 0, begin, end);
}

/* The same with a place in an object's order: what is not as predicted when several places of a program, or several threads,
 * take turns at an object. */
int shim_numbers_at(struct thr *t, u64 obj, u64 sc, i64 ret, u64 f1, u64 f2, u64 seq, u64 now)
{
	return numbers(t, obj, sc, ret, f1, f2, 0, seq, now, now);
}

/* Fills in the chunk header before the payload; returns where the chunk starts. */
static u8 *seal(struct slot *s, u8 *ring, u64 len, u32 flags)
{
	struct chunk *c = (struct chunk *)(ring - PROPHET_ChunkHeader);
	shim_zero(c, sizeof *c);
	c->magic = PROPHET_ChunkMagic;
	c->kind = PROPHET_ChunkEvents;
	c->flags = (u16)flags;
	c->len = (u32)len;
	c->uid = s->uid;
	c->seq = s->seq;
	c->base = s->base;
	c->proc = s->proc;
	c->version = PROPHET_FormatVersion;
	c->sum = shim_hash64(ring, len, 0);
	c->headsum = shim_hash64(c, 56, 0);
	return (u8 *)c;
}

/* Signals are blocked. */
static void flush_slot(struct thr *t, struct slot *s, u32 flags)
{
	u8 *ring = (u8 *)s + PROPHET_SlotHeader + PROPHET_ChunkHeader;
	u64 len = (u32)s->pos;
	int err;
	if (len == 0 && !flags)
		return;
	__atomic_store_n(&s->gen, s->gen + 1, __ATOMIC_RELEASE); /* odd: being written */
	err = shim_stream_write(seal(s, ring, len, flags), PROPHET_ChunkHeader + len);
	s->seq++;
	s->base = t->last;
	__atomic_store_n(&s->pos, ((s->pos >> 32) + 1) << 32, __ATOMIC_RELEASE);
	__atomic_store_n(&s->gen, s->gen + 1, __ATOMIC_RELEASE);
	shim_predict_nothing(t);
	if (err) {
		t->lost = (u32)err;
		t->lost_count++;
	} else if (t->lost) {
		u8 b[32], *p = put_v(b, PROPHET_TagLost);
		p = put_v(p, PROPHET_LostWrite);
		p = put_v(p, t->lost_count);
		t->lost = 0;
		shim_copy(ring, b, (size_t)(p - b));
		s->pos += (u64)(p - b);
	}
}

static COLD void side_append(struct thr *t)
{
	struct slot *s = t->side, *own = t->own;
	u64 mask, len;
	shim_block(&mask);
	len = t->side_len;
	t->side_len = 0;
	if (len) {
		if ((u32)own->pos + len > t->room)
			flush_slot(t, own, 0);
		if ((u32)own->pos + len > t->room) {
			s->seq = own->seq;
			flush_slot(t, s, 0);
			own->seq = s->seq;
		} else {
			shim_copy((u8 *)own + PROPHET_SlotHeader + PROPHET_ChunkHeader + (u32)own->pos, (u8 *)s + PROPHET_SlotHeader + PROPHET_ChunkHeader,
				  len);
			own->pos += len;
		}
	}
	shim_unblock(&mask);
}

void shim_flush(struct thr *t, u32 flags)
{
	u64 mask;
	shim_block(&mask);
	if (t->side_depth) { /* what was before comes first */
		flush_slot(t, t->own, 0);
		t->side->seq = t->own->seq;
		flush_slot(t, t->side, flags);
		t->own->seq = t->side->seq;
	} else {
		side_append(t);
		flush_slot(t, t->own, flags);
	}
	shim_unblock(&mask);
}

/* Most threads of most programs never get as far, so the greater part of a slot has no memory until now. */
static int grown(struct thr *t)
{
	u64 mask;
	int r = 0;
	if (t->limit == PROPHET_RingLimit)
		return 0;
	shim_block(&mask);
	if (!t->side_depth && shim_slot_grow(t->index) == 0) {
		t->room = t->limit = PROPHET_RingLimit;
		r = 1;
	}
	shim_unblock(&mask);
	return r;
}

void shim_make_room(struct thr *t)
{
	t->ours = 1;
	if (t->side_len && !t->side_depth)
		side_append(t);
	else if (t->side_depth || !grown(t))
		shim_flush(t, 0);
}

/* A handler that interrupts a writer must not write where that one still will when it goes on. Its records go to a
 * ring at the side; the writer's commit then fails, and it puts them behind what is committed before it starts over. */
int shim_aside(struct thr *t)
{
	struct slot *s = t->side;
	if (!s) {
		long p = sys(SYS_mmap, 0, PROPHET_SlotSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p < 0 && p > -4096)
			return (int)p;
		sys(SYS_madvise, p, PROPHET_SlotSize, MADV_DONTFORK);
		t->side = s = (struct slot *)p;
	}
	if (!t->side_len) {
		s->uid = t->own->uid;
		s->proc = t->own->proc;
		s->base = t->last;
		s->pos = ((s->pos >> 32) + 1) << 32;
	}
	t->side_depth = t->depth;
	t->slot = s;
	t->ring = (u8 *)s + PROPHET_SlotHeader + PROPHET_ChunkHeader;
	t->limit = PROPHET_RingLimit;
	return 0;
}

void shim_aside_over(struct thr *t)
{
	t->slot = t->own;
	t->ring = (u8 *)t->own + PROPHET_SlotHeader + PROPHET_ChunkHeader;
	t->limit = t->room;
	t->side_len = (u32)t->side->pos;
	t->side_depth = 0;
	t->own->pos += 1ull << 32;
}

_Static_assert(sizeof shim_room_at_start >= PROPHET_ChunkHeader + PROPHET_RingCap, "a ring fits");

/* Called with the process's lock held. The owner may go on writing; if it flushes while we copy, the copy is dropped. */
void shim_flush_for(struct thr *t)
{
	u8 *copy = (u8 *)shim_room_at_start; /* the program has begun */
	struct slot *s = t->own, head;
	u64 gen = __atomic_load_n(&s->gen, __ATOMIC_ACQUIRE), len = (u32)__atomic_load_n(&s->pos, __ATOMIC_ACQUIRE);
	if (len == 0 || gen & 1 || len > PROPHET_RingCap)
		return;
	head = *s;
	shim_copy(copy + PROPHET_ChunkHeader, (u8 *)s + PROPHET_SlotHeader + PROPHET_ChunkHeader, len);
	if (__atomic_load_n(&s->gen, __ATOMIC_ACQUIRE) != gen)
		return;
	shim_stream_write(seal(&head, copy + PROPHET_ChunkHeader, len, PROPHET_ChunkOnBehalf), PROPHET_ChunkHeader + len);
}

/* What a killed process left; nobody writes it any more. */
void shim_flush_dead(struct slot *s)
{
	u8 *ring = (u8 *)s + PROPHET_SlotHeader + PROPHET_ChunkHeader;
	u64 len = (u32)s->pos;
	if (len && len <= PROPHET_RingCap)
		shim_stream_write(seal(s, ring, len, PROPHET_ChunkRecovered), PROPHET_ChunkHeader + len);
	s->pos = 0;
	s->state = PROPHET_SlotFree;
}

void shim_gather(u8 *to, const struct iovec *v, u64 len)
{
	for (; len; v++) {
		u64 n = v->iov_len < len ? v->iov_len : len;
		shim_copy(to, v->iov_base, n);
		to += n;
		len -= n;
	}
}

/* Input data that is too long for the ring goes out at once, in a chunk of its own; returns its number. */
u64 shim_data_chunkv(struct thr *t, const struct iovec *v, u64 n, u64 len)
{
	struct iovec w[1 + 8];
	struct hash_state h;
	struct chunk c;
	u64 mask, number, left = len, i;
	u32 k = 1;
	shim_hash_begin(&h);
	for (i = 0; i < n && left; i++) {
		u64 m = v[i].iov_len < left ? v[i].iov_len : left;
		if (!m)
			continue;
		if (k == 1 + 8) { /* too many pieces for one write that is ours alone */
			long p = sys(SYS_mmap, 0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (p < 0 && p > -4096) {
				t->lost_count++, t->lost = ENOMEM;
				return t->ndata++;
			}
			shim_gather((u8 *)p, v, len);
			number = shim_data_chunk(t, (void *)p, len);
			sys(SYS_munmap, p, len);
			return number;
		}
		w[k].iov_base = v[i].iov_base;
		w[k++].iov_len = m;
		shim_hash_more(&h, v[i].iov_base, m);
		left -= m;
	}
	shim_block(&mask);
	number = t->ndata++;
	shim_zero(&c, sizeof c);
	c.magic = PROPHET_ChunkMagic;
	c.kind = PROPHET_ChunkData;
	c.len = (u32)len;
	c.uid = t->uid;
	c.seq = number;
	c.base = t->last;
	c.proc = t->proc;
	c.version = PROPHET_FormatVersion;
	c.sum = shim_hash_end(&h);
	c.headsum = shim_hash64(&c, 56, 0);
	w[0].iov_base = &c;
	w[0].iov_len = sizeof c;
	if (shim_stream_writev(w, (int)k, sizeof c + len))
		t->lost_count++, t->lost = EIO;
	shim_unblock(&mask);
	return number;
}

u64 shim_data_chunk(struct thr *t, const void *data, u64 len)
{
	struct iovec v = {(void *)data, len};
	return shim_data_chunkv(t, &v, 1, len);
}
