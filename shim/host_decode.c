/* Records of a chunk's payload. runtime/trace/decode.go reads the same and is the measure: tests compare the two. */
#include "host.h"
#include "zlayout.h"

static const HOST_DATA struct row_text {
#define ROW(id, cls, result, tails, text) char text_##id[sizeof text];
#include "zrows.h"
#undef ROW
} row_text = {
#define ROW(id, cls, result, tails, text) text,
#include "zrows.h"
#undef ROW
};
_Static_assert(sizeof row_text < 65536, "offsets have 16 bits");

#define ROWS 2048
static const HOST_DATA struct {
	u16 at;
	u8 cls : 4, result : 4;
	u8 tails : 7, known : 1;
} row_index[ROWS] = {
#define ROW(id, cls, result, tails, text) [id] = {offsetof(struct row_text, text_##id), cls, result, tails, 1},
#include "zrows.h"
#undef ROW
};

static HOST const char *after(const char *s)
{
	return s + shim_len(s) + 1;
}

HOST void host_row(u32 call, struct host_row *row)
{
	const char *s;
	u32 i;
	shim_zero(row, sizeof *row);
	if (call >= ROWS || !row_index[call].known)
		return;
	s = row->name = (const char *)&row_text + row_index[call].at;
	s = row->object = after(s);
	for (i = 0; i < 3; i++)
		s = row->f[i] = after(s);
	row->cls = row_index[call].cls;
	row->result = row_index[call].result;
	row->tails = row_index[call].tails;
	for (i = 0; i < row->tails && i < HOST_TAIL; i++)
		s = row->tail[i] = after(s);
}

HOST u32 host_tails(u32 call, char kinds[HOST_TAIL])
{
	struct host_row row;
	u32 i;
	if (call >= ROWS || !row_index[call].known)
		return ~0u;
	if (!row_index[call].tails)
		return 0;
	host_row(call, &row);
	for (i = 0; i < row.tails; i++)
		kinds[i] = row.tail[i][0];
	return row.tails;
}

/* A number; b[p] is inside, and all its bytes may be loaded (HOST_SLACK). */
static HOST u64 number(const u8 *b, u64 *p)
{
	u32 n = b[*p] ? (u32)__builtin_ctz(b[*p]) + 1 : 9;
	u64 x;
	if (n == 9) {
		shim_copy(&x, b + *p + 1, 8);
	} else {
		shim_copy(&x, b + *p, 8);
		x = x >> n & ((1ull << 7 * n) - 1);
	}
	*p += n;
	return x;
}

static HOST u64 get_v(struct decoder *d)
{
	if (d->p >= d->end) {
		d->bad = 1;
		return 0;
	}
	return number(d->b, &d->p);
}

static HOST i64 zag(u64 v)
{
	return (i64)(v >> 1) ^ -(i64)(v & 1);
}

/* Sums of what a trace says may wrap. */
static HOST i64 plus(i64 a, i64 b)
{
	return (i64)((u64)a + (u64)b);
}

static HOST i64 get_z(struct decoder *d)
{
	return zag(get_v(d));
}

static HOST struct bytes get_bytes(struct decoder *d, u64 n)
{
	struct bytes s = {0, 0};
	if (d->p > d->end || n > d->end - d->p) {
		d->bad = 1;
		return s;
	}
	s.at = d->b + d->p;
	s.n = n;
	d->p += n;
	return s;
}

static HOST struct bytes get_s(struct decoder *d)
{
	return get_bytes(d, get_v(d));
}

static HOST int over(const struct decoder *d)
{
	return d->bad || d->p > d->end;
}

static HOST int fail(struct decoder *d, const char *why)
{
	d->why = over(d) ? "record runs over the end of its chunk" : why;
	return 0;
}

static HOST void forget(struct decoder *d)
{
	d->generation++;
	d->last_pc = 0;
	d->path_len = 0;
	d->lost_path = 0;
	d->stacks = 0;
}

HOST void host_decode(struct decoder *d, const u8 *payload, u64 n, u64 base)
{
	d->b = payload;
	d->p = 0;
	d->end = n;
	d->now = base;
	d->bad = 0;
	d->why = 0;
	forget(d);
}

/* A number of a tail: its bytes have the tail's end as theirs. */
static HOST int tail_v(const struct bytes *s, u64 *p, u64 *v)
{
	u64 at = *p;
	if (at >= s->n)
		return 0;
	*v = number(s->at, &at);
	if (at > s->n)
		return 0;
	*p = at;
	return 1;
}

static HOST int tail_s(const struct bytes *s, u64 *p, struct bytes *out)
{
	u64 n;
	if (!tail_v(s, p, &n) || n > s->n - *p)
		return 0;
	out->at = s->at + *p;
	out->n = n;
	*p += n;
	return 1;
}

/* The tail by the row's steps: the last fields may be left out. */
static HOST int tail(struct decoder *d, struct record *r)
{
	char kinds[HOST_TAIL];
	u32 n = host_tails(r->call, kinds), i;
	int cut = (r->note & PROPHET_NoteCut) != 0, good = 1;
	u64 p = 0, shared;
	if (n == ~0u) {
		d->lost_path = 1; /* it may have held one */
		return 1;
	}
	for (i = 0; i < n && p < r->tail.n; i++) {
		struct host_field *f = &r->field[r->fields];
		u8 *to;
		f->num = 0;
		f->text.at = 0;
		f->text.n = 0;
		if (kinds[i] == 's') {
			good = tail_s(&r->tail, &p, &f->text);
		} else if (kinds[i] == 'p') {
			shared = 0;
			good = tail_v(&r->tail, &p, &shared) && tail_s(&r->tail, &p, &f->text);
			if (shared > d->path_len) {
				if (!d->lost_path)
					return fail(d, "a path shares more than there is with the one before");
				shared = d->path_len;
			}
			to = host_grow(&d->path, shared + f->text.n + 1);
			if (!to)
				return fail(d, "there is no memory for a path");
			shim_copy(to + shared, f->text.at, f->text.n);
			f->text.at = to;
			f->text.n = d->path_len = shared + f->text.n;
		} else {
			good = tail_v(&r->tail, &p, &f->num);
			if (kinds[i] == 'z')
				f->num = (u64)zag(f->num);
		}
		if (!good)
			break;
		r->fields++;
	}
	if (!good && !cut)
		return fail(d, "a tail does not match its row");
	if (good && p < r->tail.n && !cut)
		return fail(d, "a tail is longer than its row says");
	return 1;
}

static HOST int event(struct decoder *d, struct record *r, struct host_key *k)
{
	u64 t = get_v(d);
	u32 m = 0;
	r->tag = HOST_EVENT;
	r->begin = r->end = d->now + (t >> 1);
	r->note = r->timed = r->fields = 0;
	r->tail.n = 0;
	r->call = k->call;
	r->seq = k->seq ? k->seq + 1 : 0;
	if (t & PROPHET_EvMore) {
		m = d->p < d->end ? d->b[d->p++] : (d->bad = 1, 0);
		if (m & PROPHET_MaskDuration) {
			r->timed = 1;
			r->end += get_v(d);
		}
		if (m & PROPHET_MaskRet)
			k->ret = plus(k->ret, get_z(d));
		if (m & PROPHET_MaskF1)
			k->f[0] = plus(k->f[0], get_z(d));
		if (m & PROPHET_MaskF2)
			k->f[1] = plus(k->f[1], get_z(d));
		if (m & PROPHET_MaskF3)
			k->f[2] = plus(k->f[2], get_z(d));
		if (m & PROPHET_MaskSeq)
			r->seq += (u64)get_z(d);
		if (m & PROPHET_MaskTail)
			r->tail = get_s(d);
		if (m & PROPHET_MaskNote)
			r->note = (u8)get_v(d);
		if (m & PROPHET_MaskTail && !over(d) && !tail(d, r))
			return 0;
	}
	d->now = r->end;
	if (over(d))
		return fail(d, 0);
	r->pc = k->pc;
	r->uid = k->uid;
	r->num_of = k->num;
	r->ret = k->ret;
	shim_copy(r->f, k->f, sizeof r->f);
	if (r->seq)
		k->seq = r->seq;
	return 1;
}

static HOST int define(struct decoder *d)
{
	struct host_key *k;
	u64 no = get_v(d), call = get_v(d);
	u64 pc = d->last_pc + (u64)get_z(d);
	u64 uid = get_v(d), num = get_v(d);
	if (over(d))
		return fail(d, 0);
	if (no >= PROPHET_KeySlots)
		return fail(d, "a key's number is too high");
	if (call > 0xffff || uid > 0xffffffff)
		return fail(d, "a key names a call or a thread that cannot be");
	k = &d->key[no];
	shim_zero(k, sizeof *k);
	k->pc = d->last_pc = pc;
	k->call = (u32)call;
	k->uid = (u32)uid;
	k->num = num;
	k->set = d->generation;
	return 1;
}

static const char layout[PROPHET_TagLimit][12] = {
#define TAG(tag, layout) [tag] = layout,
#include "ztags.h"
#undef TAG
};

/* Stacks are numbered as they are defined, and named after that. */
static HOST int stacks(struct decoder *d, const struct record *r)
{
	u64 p = 0, v;
	u32 n;
	if (r->tag != PROPHET_TagFrames)
		return r->num[0] < d->stacks ? 1 : fail(d, "a stack is named that its chunk does not define");
	if (r->num[0] != d->stacks)
		return fail(d, "a stack is defined where another is next");
	for (n = 0; p < r->text[0].n; n++)
		if (n == PROPHET_FramesMax || !tail_v(&r->text[0], &p, &v))
			return fail(d, "a stack does not parse");
	d->stacks++;
	return 1;
}

static HOST int control(struct decoder *d, struct record *r, u64 tag)
{
	const char *c;
	u32 n = 0, s = 0;
	r->tag = (u32)tag;
	r->call = r->note = 0;
	r->text[0].n = r->text[1].n = 0;
	if (tag == PROPHET_TagKey) {
		r->begin = r->end = d->now;
		return define(d);
	}
	if (tag >= PROPHET_TagLimit || !layout[tag][0])
		return fail(d, "a record's tag is not known");
	for (c = layout[tag]; *c; c++)
		switch (*c) {
		case 'T':
			d->now += get_v(d);
			break;
		case 'A':
			d->now = get_v(d);
			break;
		case 'V':
			r->num[n++] = get_v(d);
			break;
		case 'Z':
			r->num[n++] = (u64)get_z(d);
			break;
		case 'S':
			r->text[s++] = get_s(d);
			break;
		default:
			r->text[s++] = get_bytes(d, 8);
		}
	r->begin = r->end = d->now;
	if (tag == PROPHET_TagSignal || tag == PROPHET_TagSigRet)
		forget(d);
	if (over(d))
		return fail(d, 0);
	return tag == PROPHET_TagFrames || tag == PROPHET_TagStack || tag == PROPHET_TagSample ? stacks(d, r) : 1;
}

HOST int host_record(struct decoder *d, struct record *r)
{
	u64 x;
	if (d->p >= d->end || d->why)
		return 0;
	d->from = d->p;
	x = get_v(d);
	if (x < PROPHET_FirstKey)
		return control(d, r, x);
	x -= PROPHET_FirstKey;
	if (x >= PROPHET_KeySlots || d->key[x].set != d->generation)
		return fail(d, "an event's key is not defined in its chunk");
	return event(d, r, &d->key[x]);
}
