/* The events of all threads by the time they begin, as prophet_next gives them: the same order and the same
 * numbers as `prophet dump` (runtime/trace/iter.go). */
#include "host.h"
#include <errno.h>

HOST int host_lane_ready(struct lane *l)
{
	l->d.key = host_grow(&l->keys, PROPHET_KeySlots * sizeof *l->d.key);
	return l->d.key != 0;
}

HOST void host_lane_drop(struct lane *l)
{
	host_drop(&l->keys);
	host_drop(&l->buf);
	host_drop(&l->d.path);
	l->d.key = 0;
	l->d.path_len = 0;
}

static HOST const struct host_thread *thread_of(const prophet_trace *t, const struct lane *l)
{
	return (const struct host_thread *)t->threads.at + l->thread;
}

/* The thread's next record: 1, 0 at its end, damage or an error. */
static HOST int lane_next(prophet_trace *t, struct lane *l)
{
	const struct host_thread *th = thread_of(t, l);
	for (;;) {
		const struct ref *ref = (const struct ref *)t->refs.at + th->ref + l->next;
		int r;
		if (l->on) {
			if (host_record(&l->d, &l->r)) {
				if (l->r.tag == HOST_EVENT)
					l->n++;
				return 1;
			}
			l->on = 0;
			if (l->d.why)
				return host_damage(t, ref - 1, (i64)l->d.from, l->d.why);
		}
		if (l->next >= th->refs)
			return 0;
		if (ref->seq != l->seq && !l->gap && !t->flight) {
			l->gap = 1;
			return host_damage(t, ref, -PROPHET_ChunkHeader, "chunks are missing before this one");
		}
		l->gap = 0;
		l->seq = ref->seq + 1;
		l->next++;
		if (!l->d.key && !host_lane_ready(l))
			return host_fail(t, -ENOMEM, "a thread's predictions", "");
		r = host_load(t, ref, &l->buf);
		if (r)
			return r;
		host_decode(&l->d, l->buf.at, ref->len, ref->base);
		l->on = 1;
	}
}

static HOST int earlier(prophet_trace *t, u32 a, u32 b)
{
	const struct lane *l = t->lanes.at;
	return l[a].at != l[b].at ? l[a].at < l[b].at : thread_of(t, l + a)->uid < thread_of(t, l + b)->uid;
}

/* Restores the heap below a place that has changed. */
static HOST void down(prophet_trace *t, u64 i)
{
	u32 *h = t->heap.at;
	for (;;) {
		u64 c = 2 * i + 1;
		u32 x;
		if (c >= t->nheap)
			return;
		if (c + 1 < t->nheap && earlier(t, h[c + 1], h[c]))
			c++;
		if (!earlier(t, h[c], h[i]))
			return;
		x = h[i];
		h[i] = h[c];
		h[c] = x;
		i = c;
	}
}

static HOST int attached(u32 tag)
{
	return tag == PROPHET_TagData || tag == PROPHET_TagHash || tag == PROPHET_TagBigData || tag == PROPHET_TagInput || tag == PROPHET_TagFrames ||
	       tag == PROPHET_TagStack;
}

/* The next record of all: 1 and its lane, 0 at the end, damage or an error. */
static HOST int merged(prophet_trace *t, struct lane **out)
{
	u32 *h = t->heap.at;
	for (;;) {
		struct lane *l = t->last;
		if (l) {
			u64 was = l->at;
			int r = lane_next(t, l);
			if (r < 0)
				return r; /* the lane stays on top and goes on next time */
			if (!r) {
				t->last = 0;
				host_lane_drop(l);
				h[0] = h[--t->nheap];
				down(t, 0);
			} else if (attached(l->r.tag)) {
				*out = l;
				return 1;
			} else {
				t->last = 0;
				l->ok = 1;
				l->at = l->r.begin;
				if (l->at != was)
					down(t, 0);
			}
		}
		if (!t->nheap)
			return 0;
		l = t->last = (struct lane *)t->lanes.at + h[0];
		if (l->ok) {
			l->ok = 0;
			*out = l;
			return 1;
		}
	}
}

EXPORT HOST int prophet_rewind(prophet_trace *t, u32 uid)
{
	const struct host_thread *th;
	u64 i, n = 0;
	struct lane *l;
	u32 *h;
	if (!t)
		return -EINVAL;
	th = t->threads.at;
	for (i = 0; i < t->nlanes; i++)
		host_lane_drop((struct lane *)t->lanes.at + i);
	t->last = 0;
	t->nheap = t->nlanes = 0;
	l = host_grow(&t->lanes, t->nthreads * sizeof *l + 1);
	h = host_grow(&t->heap, t->nthreads * sizeof *h + 1);
	if (!l || !h)
		return host_fail(t, -ENOMEM, "the threads", "");
	for (i = 0; i < t->nthreads; i++)
		if (!uid || th[i].uid == uid) {
			shim_zero(&l[n], sizeof *l);
			l[n].thread = (u32)i;
			l[n].at = th[i].first;
			h[n] = (u32)n;
			n++;
		}
	t->nlanes = t->nheap = n;
	for (i = n / 2; i-- > 0;)
		down(t, i);
	return uid && !n ? host_fail(t, -ESRCH, "no thread of the trace has that number", "") : 0;
}

/* Texts of the event, each ended by NUL, in memory that was made large enough before. */
static HOST const char *text(char **at, const void *s, u64 n)
{
	char *to = *at;
	shim_copy(to, s, n);
	to[n] = 0;
	*at += n + 1;
	return to;
}

static HOST void number_field(struct prophet_field *f, const char *name, i64 v, u32 kind)
{
	f->name = name;
	f->text = 0;
	f->length = 0;
	f->value = v;
	f->kind = kind;
	f->pad = 0;
}

static HOST void text_field(struct prophet_field *f, const char *name, char **at, struct bytes s)
{
	number_field(f, name, 0, PROPHET_FIELD_TEXT);
	f->text = text(at, s.at, s.n);
	f->length = s.n;
}

static const char classes[][12] = {"disk", "net", "sync", "thread", "time", "random", "shape", "signal", "memory", "stdio", "mark"};

static HOST void fill_call(prophet_trace *t, struct lane *l, struct prophet_event *e, char **at)
{
	static const char unknown[][12] = {"f1", "f2", "f3"};
	const struct record *r = &l->r;
	struct prophet_field *f = t->field;
	char room[32], number[64];
	struct host_row row;
	struct text s;
	u32 i;
	host_row(r->call, &row);
	e->kind = PROPHET_EVENT_CALL;
	e->number = l->n - 1;
	e->call_id = r->call;
	e->flags = (r->note & 255) | (r->timed ? PROPHET_TIMED : 0);
	e->order = r->seq;
	e->pc = r->pc;
	e->category = row.name ? classes[row.cls] : "";
	if (row.name) {
		e->call = row.name;
	} else {
		shim_text(&s, number, sizeof number);
		shim_put(&s, r->call ? "call" : "none");
		if (r->call)
			shim_putd(&s, r->call);
		e->call = text(at, number, s.len);
	}
	e->object = "";
	e->object_uid = r->uid;
	e->object_number = r->num_of;
	if (r->uid || r->num_of) {
		const char *kind = row.name && *row.object ? row.object : "object", *by = host_thread_name(t, r->uid, room);
		e->object = text(at, kind, shim_len(kind));
		(*at)[-1] = ':';
		text(at, by, shim_len(by));
		(*at)[-1] = '#';
		shim_text(&s, number, sizeof number);
		shim_putd(&s, (i64)r->num_of);
		text(at, number, s.len);
	}
	e->ret = r->ret;
	if ((row.result == RESULT_ERRNO || row.result == RESULT_PTR) && r->ret < 0) {
		e->error = (i32)-r->ret;
		e->ret = row.result == RESULT_PTR ? 0 : -1;
	} else if (row.result == RESULT_ERR && r->ret > 0) {
		e->error = (i32)r->ret;
	}
	for (i = 0; i < 3; i++)
		if (row.name ? *row.f[i] : r->f[i] != 0)
			number_field(f++, row.name ? row.f[i] : unknown[i], r->f[i], PROPHET_FIELD_NUMBER);
	for (i = 0; i < r->fields; i++) {
		char kind = row.tail[i][0];
		if (kind == 's' || kind == 'p')
			text_field(f++, row.tail[i] + 1, at, r->field[i].text);
		else
			number_field(f++, row.tail[i] + 1, (i64)r->field[i].num, kind == 'z' ? PROPHET_FIELD_NUMBER : PROPHET_FIELD_UNSIGNED);
	}
	if (!row.name && r->tail.n)
		text_field(f++, "tail", at, r->tail);
	e->fields = (u32)(f - t->field);
}

static HOST void fill_mark(prophet_trace *t, struct lane *l, struct prophet_event *e, char **at)
{
	static const char kinds[][12] = {"point", "begin", "end"};
	const struct record *r = &l->r;
	e->kind = PROPHET_EVENT_MARK;
	e->number = l->n;
	e->category = classes[CLASS_mark];
	e->call = kinds[r->num[0] < 3 ? r->num[0] : 0];
	e->object = "";
	text_field(t->field, "name", at, r->text[0]);
	e->fields = 1;
}

static HOST i64 since(const prophet_trace *t, u64 ticks)
{
	return ticks < t->ticks0 ? -host_ns(t, t->ticks0 - ticks) : host_ns(t, ticks - t->ticks0);
}

EXPORT HOST int prophet_next(prophet_trace *t, struct prophet_event *out)
{
	const struct host_thread *th;
	const struct host_proc *p;
	struct prophet_event e;
	struct lane *l;
	u64 room = 2048;
	char *at;
	u32 i;
	int r;
	if (!t || !out || out->size < 8)
		return -EINVAL;
	do
		r = merged(t, &l);
	while (r == 1 && l->r.tag != HOST_EVENT && l->r.tag != PROPHET_TagMark);
	if (r <= 0)
		return r;
	if (l->r.tag == HOST_EVENT) {
		room += l->r.tail.n;
		for (i = 0; i < l->r.fields; i++)
			room += l->r.field[i].text.n + 1;
	} else {
		room += l->r.text[0].n;
	}
	at = host_grow(&t->text, room);
	if (!at)
		return host_fail(t, -ENOMEM, "an event's texts", "");
	shim_zero(&e, sizeof e);
	th = thread_of(t, l);
	p = (const struct host_proc *)t->procs.at + th->proc;
	e.size = out->size < sizeof e ? out->size : (u32)sizeof e;
	e.thread = th->name;
	e.uid = th->uid;
	e.process = p->number;
	e.pid = p->pid;
	e.tid = th->tid;
	e.field = t->field;
	e.begin_ns = since(t, l->r.begin);
	e.end_ns = e.begin_ns + (l->r.end > l->r.begin ? host_ns(t, l->r.end - l->r.begin) : 0);
	if (l->r.tag == HOST_EVENT)
		fill_call(t, l, &e, &at);
	else
		fill_mark(t, l, &e, &at);
	shim_copy(out, &e, e.size);
	return 1;
}
