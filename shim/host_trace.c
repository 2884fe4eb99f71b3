/* Opening a trace: its chunks, their order, who its threads are and how fast its clock runs. What runtime/trace
 * does in source.go, open.go and names.go, for directories; a packed file is unpacked first.
 */
#include "host.h"
#include "zlayout.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define META_MAX (16u << 20)
#define SURVEY_RECORDS 4096 /* how far into a thread's first chunk its introduction may reach */
#define NAME_MAX_ 1000 /* bytes of a thread's name; */
#define NAME_DEPTH 500 /* threads and processes on the way to one. Beyond, it is named by its number */

HOST void *host_grow(struct room *r, u64 bytes)
{
	u64 n = r->bytes;
	long at;
	if (bytes <= n)
		return r->at;
	if (bytes > 1ull << 40)
		return 0;
	n = ((bytes > 2 * n ? bytes : 2 * n) + 4095) & ~4095ull;
	at = r->at ? sys(SYS_mremap, r->at, r->bytes, n, MREMAP_MAYMOVE) : sys(SYS_mmap, 0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at < 0 && at > -4096)
		return 0;
	r->at = (void *)at;
	r->bytes = n;
	return r->at;
}

HOST void host_drop(struct room *r)
{
	if (r->at)
		sys(SYS_munmap, r->at, r->bytes);
	r->at = 0;
	r->bytes = 0;
}

HOST int host_fail(prophet_trace *t, int error, const char *what, const char *about)
{
	shim_text(&t->error, t->error_text, sizeof t->error_text);
	shim_put(&t->error, what);
	shim_put(&t->error, about);
	if (error && error != -EBADMSG) {
		shim_put(&t->error, ": ");
		shim_put(&t->error, prophet_reason(error));
	}
	return error;
}

HOST int host_damage(prophet_trace *t, const struct ref *r, i64 at, const char *why)
{
	t->damage++;
	host_fail(t, -EBADMSG, "stream-", r->file < 10 ? "0" : "");
	shim_putd(&t->error, r->file);
	shim_put(&t->error, ": offset ");
	shim_putd(&t->error, (i64)(r->off + PROPHET_ChunkHeader) + at);
	shim_put(&t->error, ": ");
	shim_put(&t->error, why);
	return -EBADMSG;
}

/* n bytes at off, fewer at the end of the file. */
static HOST i64 read_at(int fd, void *to, u64 n, u64 off)
{
	u64 have = 0;
	while (have < n) {
		long r = sys(SYS_pread64, fd, (u8 *)to + have, n - have, off + have);
		if (r == -EINTR)
			continue;
		if (r < 0)
			return r;
		if (!r)
			break;
		have += (u64)r;
	}
	return (i64)have;
}

HOST int host_load(prophet_trace *t, const struct ref *r, struct room *buf)
{
	u8 *b = host_grow(buf, (u64)r->len + HOST_SLACK);
	i64 n;
	if (!b)
		return host_fail(t, -ENOMEM, "a chunk", "");
	n = read_at(t->fd[r->file], b, r->len, r->off + PROPHET_ChunkHeader);
	if (n < 0)
		return host_fail(t, (int)n, "a stream file cannot be read", "");
	if (n < r->len)
		return host_damage(t, r, -PROPHET_ChunkHeader, "chunk is cut short by the end of the file");
	if (shim_hash64(b, r->len, 0) != r->sum)
		return host_damage(t, r, -PROPHET_ChunkHeader, "checksum of the chunk does not match");
	shim_zero(b + r->len, HOST_SLACK);
	return 0;
}

/* NULL: a header; else why it is none. */
static HOST const char *header(const u8 *b, u64 n, struct chunk *c)
{
	if (n < sizeof *c)
		return "no chunk begins here";
	shim_copy(c, b, sizeof *c);
	return c->magic != PROPHET_ChunkMagic					 ? "no chunk begins here"
	       : c->headsum != shim_hash64(b, 56, 0)				 ? "checksum of the chunk's header does not match"
	       : c->len > PROPHET_ChunkMax					 ? "chunk is longer than any chunk may be"
	       : !c->version || c->version > PROPHET_FormatVersion		 ? "chunk of a newer format"
	       : c->kind < PROPHET_ChunkEvents || c->kind > PROPHET_ChunkControl ? "chunk of an unknown kind"
										 : 0;
}

/* Where the next header is from off on; -1: nowhere. */
static HOST i64 find_chunk(prophet_trace *t, int fd, u64 off)
{
	enum { STEP = 1 << 20 };
	u8 *b = host_grow(&t->scratch, STEP);
	struct chunk c;
	for (; b;) {
		i64 n = read_at(fd, b, STEP, off), i;
		for (i = 0; i + PROPHET_ChunkHeader <= n; i++)
			if (b[i] == (u8)PROPHET_ChunkMagic && !header(b + i, (u64)(n - i), &c))
				return (i64)off + i;
		if (n < STEP)
			break;
		off += STEP - PROPHET_ChunkHeader + 1;
	}
	return -1;
}

static HOST int add_ref(prophet_trace *t, const struct chunk *c, u32 file, u64 off)
{
	struct ref *r = host_grow(&t->refs, (t->nrefs + 1) * sizeof *r);
	if (!r)
		return host_fail(t, -ENOMEM, "the list of chunks", "");
	r += t->nrefs++;
	r->base = c->base;
	r->seq = c->seq;
	r->sum = c->sum;
	r->off = off;
	r->uid = c->uid;
	r->proc = c->proc;
	r->len = c->len;
	r->kind = c->kind;
	r->file = (u16)file;
	return 0;
}

/* Walks the headers of a file. A chunk that another follows is taken at its header's word; where none follows it is
 * checked, and when it is torn the search for the next goes on inside it. */
static HOST int scan(prophet_trace *t, u32 file, u64 size)
{
	u64 first = t->nrefs, off = 0;
	int fd = t->fd[file];
	while (off < size || (off > size && t->nrefs > first)) {
		struct ref *last = (struct ref *)t->refs.at + t->nrefs - 1;
		struct chunk c;
		u8 b[PROPHET_ChunkHeader];
		const char *why = "no chunk begins here";
		u64 from = off;
		i64 n, next;
		if (off < size) {
			n = read_at(fd, b, sizeof b, off);
			if (n < 0)
				return host_fail(t, (int)n, "a stream file cannot be read", "");
			why = header(b, (u64)n, &c);
		}
		if (!why) {
			if (add_ref(t, &c, file, off))
				return -ENOMEM;
			off += PROPHET_ChunkHeader + c.len;
			continue;
		}
		if (t->nrefs > first && last->off + PROPHET_ChunkHeader + last->len == off) {
			n = host_load(t, last, &t->scratch);
			if (n && n != -EBADMSG)
				return (int)n;
			if (n) {
				from = last->off + PROPHET_ChunkHeader;
				t->nrefs--;
				t->damage--; /* counted here, once */
			}
		}
		t->damage++;
		next = find_chunk(t, fd, from);
		if (next < 0)
			break;
		off = (u64)next;
	}
	return 0;
}

static HOST int before(const struct ref *a, const struct ref *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind;
	if (a->uid != b->uid)
		return a->uid < b->uid;
	if (a->seq != b->seq)
		return a->seq < b->seq;
	return a->len > b->len;
}

/* Sorts by kind, thread and number, keeping the order of equals, and drops the shorter of doubles. */
static HOST int order(prophet_trace *t)
{
	u64 n = t->nrefs, width, i, k;
	struct ref *a = t->refs.at, *b = host_grow(&t->refs_spare, n * sizeof *b + 1);
	if (!b)
		return host_fail(t, -ENOMEM, "the list of chunks", "");
	for (width = 1; width < n; width *= 2) {
		struct room swap;
		for (i = 0; i < n; i += 2 * width) {
			u64 x = i, mid = i + width < n ? i + width : n, y = mid, end = mid + width < n ? mid + width : n;
			for (k = i; k < end; k++)
				b[k] = x < mid && (y >= end || !before(&a[y], &a[x])) ? a[x++] : a[y++];
		}
		swap = t->refs;
		t->refs = t->refs_spare;
		t->refs_spare = swap;
		a = t->refs.at;
		b = t->refs_spare.at;
	}
	host_drop(&t->refs_spare);
	for (i = k = 0; i < n; i++)
		if (!k || a[k - 1].kind != a[i].kind || a[k - 1].uid != a[i].uid || a[k - 1].seq != a[i].seq)
			a[k++] = a[i];
	t->nrefs = k;
	return 0;
}

static HOST struct host_thread *threads(const prophet_trace *t)
{
	return t->threads.at;
}

static HOST struct host_proc *procs(const prophet_trace *t)
{
	return t->procs.at;
}

static HOST struct host_thread *thread_by_uid(const prophet_trace *t, u32 uid)
{
	u64 low = 0, high = t->nthreads;
	while (low < high) {
		u64 mid = (low + high) / 2;
		if (threads(t)[mid].uid < uid)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->nthreads && threads(t)[low].uid == uid ? threads(t) + low : 0;
}

static HOST i64 proc_by_number(const prophet_trace *t, u32 number)
{
	u64 low = 0, high = t->nprocs;
	while (low < high) {
		u64 mid = (low + high) / 2;
		if (procs(t)[mid].number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->nprocs && procs(t)[low].number == number ? (i64)low : -1;
}

/* Threads and processes of the sorted chunks. */
static HOST int build(prophet_trace *t)
{
	struct ref *refs = t->refs.at;
	struct host_proc *p;
	u64 i, j, n = 0, gap, k;
	for (i = 0; i < t->nrefs; i = j) {
		for (j = i + 1; j < t->nrefs && refs[j].kind == refs[i].kind && refs[j].uid == refs[i].uid; j++)
			;
		if (refs[i].kind == PROPHET_ChunkEvents) {
			struct host_thread *th = host_grow(&t->threads, (t->nthreads + 1) * sizeof *th);
			p = host_grow(&t->procs, (n + 1) * sizeof *p);
			if (!th || !p)
				return host_fail(t, -ENOMEM, "the list of threads", "");
			th += t->nthreads++;
			th->uid = refs[i].uid;
			th->proc = refs[i].proc;
			th->ref = (u32)i;
			th->refs = (u32)(j - i);
			th->first = refs[i].base;
			p[n++].number = refs[i].proc;
			t->chunks += j - i;
		}
	}
	/* By number, each once. */
	p = t->procs.at;
	for (gap = n / 2; gap; gap /= 2)
		for (i = gap; i < n; i++) {
			u32 number = p[i].number;
			for (k = i; k >= gap && p[k - gap].number > number; k -= gap)
				p[k].number = p[k - gap].number;
			p[k].number = number;
		}
	for (i = 0; i < n; i++)
		if (!t->nprocs || p[t->nprocs - 1].number != p[i].number)
			p[t->nprocs++].number = p[i].number;
	for (i = 0; i < t->nprocs; i++)
		p[i].parent = -1;
	for (i = 0; i < t->nthreads; i++)
		threads(t)[i].proc = (u32)proc_by_number(t, threads(t)[i].proc);
	return 0;
}

static HOST void learn(prophet_trace *t, struct host_thread *th, const struct record *r)
{
	const u64 *n = r->num;
	struct host_proc *p;
	switch (r->tag) {
	case PROPHET_TagThread:
		if (th->uid == n[0]) {
			th->parent = (u32)n[1];
			th->nth = n[2];
			th->tid = (u32)n[3];
			th->how = n[4];
			th->known = 1;
		}
		break;
	case PROPHET_TagProc:
		p = procs(t) + th->proc;
		if (n[0] != p->number)
			break;
		p->parent_no = (u32)n[1];
		p->parent_uid = (u32)n[2];
		p->nth = n[3];
		p->pid = (u32)n[4];
		p->ppid = (u32)n[5];
		p->how = n[6];
		p->known = 1;
		break;
	case PROPHET_TagClock:
		if (!t->points || n[1] < t->low.mono) {
			t->low.ticks = n[0];
			t->low.mono = n[1];
		}
		if (!t->points || n[1] > t->high.mono) {
			t->high.ticks = n[0];
			t->high.mono = n[1];
		}
		t->points++;
		if (n[0] < t->ticks0)
			t->ticks0 = n[0];
		break;
	}
}

static HOST int look(prophet_trace *t, struct lane *l, struct host_thread *th, u32 ref, u64 most, u64 events)
{
	int r = host_load(t, (struct ref *)t->refs.at + th->ref + ref, &l->buf);
	if (r == -EBADMSG) {
		t->damage--; /* whoever reads the thread will be told */
		return 0;
	}
	if (r)
		return r;
	host_decode(&l->d, l->buf.at, ((struct ref *)t->refs.at)[th->ref + ref].len, ((struct ref *)t->refs.at)[th->ref + ref].base);
	for (; most && host_record(&l->d, &l->r); most--) {
		if (l->r.tag != HOST_EVENT)
			learn(t, th, &l->r);
		else if (!events--)
			break;
	}
	return 0;
}

/* What the first chunks say of threads, processes and clocks, and where the rate is not known yet the last ones of
 * the threads that were active last. */
static HOST int survey(prophet_trace *t)
{
	enum { LATE = 8 };
	struct lane l;
	u64 i, k, nlate = 0;
	u32 late[LATE + 1];
	int r = 0;
	shim_zero(&l, sizeof l);
	if (!host_lane_ready(&l))
		return host_fail(t, -ENOMEM, "the survey", "");
	t->ticks0 = ~0ull;
	for (i = 0; i < t->nthreads && !r; i++) {
		const struct ref *last = (struct ref *)t->refs.at + threads(t)[i].ref + threads(t)[i].refs - 1;
		if (threads(t)[i].first < t->ticks0)
			t->ticks0 = threads(t)[i].first;
		r = look(t, &l, threads(t) + i, 0, SURVEY_RECORDS, 8);
		for (k = nlate; k; k--) { /* the latest first */
			const struct host_thread *o = threads(t) + late[k - 1];
			if (((struct ref *)t->refs.at)[o->ref + o->refs - 1].base >= last->base)
				break;
			late[k] = late[k - 1];
		}
		if (k < LATE)
			late[k] = (u32)i;
		if (nlate < LATE)
			nlate++;
	}
	if (!t->hz) {
		for (i = 0; i < nlate && !r; i++)
			r = look(t, &l, threads(t) + late[i], threads(t)[late[i]].refs - 1, ~0ull, ~0ull);
		for (i = 0; i < t->nthreads && threads(t)[i].uid <= 1 && !r; i++)
			r = look(t, &l, threads(t) + i, threads(t)[i].refs - 1, ~0ull, ~0ull);
		if (t->points && t->high.mono - t->low.mono >= 1000000 && t->high.ticks > t->low.ticks) {
			unsigned __int128 q = (unsigned __int128)(t->high.ticks - t->low.ticks) * 1000000000 / (t->high.mono - t->low.mono);
			t->hz = q >> 64 ? 0 : (u64)q;
		}
	}
	t->mult = (1000000000ull << 32) / (t->hz ? t->hz : 1000000000);
	host_lane_drop(&l);
	return r;
}

HOST i64 host_ns(const prophet_trace *t, u64 ticks)
{
	return (i64)((unsigned __int128)ticks * t->mult >> 32);
}

/* A name for good, ended by NUL. NULL: no memory. */
static HOST char *keep(prophet_trace *t, const char *s, u64 n)
{
	struct room r = {0, 0};
	char *to;
	if (!t->names || t->names_used + n + 1 > t->names->bytes) {
		if (!host_grow(&r, 64 << 10))
			return 0;
		*(struct room **)((u8 *)r.at + sizeof r) = t->names;
		shim_copy(r.at, &r, sizeof r);
		t->names = r.at;
		t->names_used = sizeof r + sizeof(struct room *);
	}
	to = (char *)t->names + t->names_used;
	shim_copy(to, s, n);
	t->names_used += n + 1;
	return to;
}

/* The name, marked with a number where somebody has it already. */
static HOST const char *unique(prophet_trace *t, struct text *s, u32 no)
{
	const char **taken = t->taken.at, *is;
	int again;
	u64 at;
	for (again = 0;; again = 1) {
		for (at = shim_hash64(s->buf, s->len, 0) & (t->taken_room - 1); taken[at]; at = (at + 1) & (t->taken_room - 1))
			if (shim_same(taken[at], s->buf))
				break;
		if (!taken[at])
			break;
		if (again)
			return taken[at];
		shim_put(s, "~");
		shim_putd(s, no);
	}
	is = keep(t, s->buf, s->len);
	if (is)
		taken[at] = is;
	return is;
}

static const char *name_thread(prophet_trace *t, struct host_thread *th, u32 depth);

static HOST const char *name_proc(prophet_trace *t, struct host_proc *p, u32 depth)
{
	char room[NAME_MAX_ + 64];
	const char *by = 0;
	struct host_thread *th;
	struct text s;
	if (p->name || p->busy)
		return p->name;
	p->busy = 1;
	shim_text(&s, room, sizeof room);
	if (p->known && p->parent < 0) {
		shim_put(&s, "p0");
	} else if (p->known && depth < NAME_DEPTH) {
		struct host_proc *parent = procs(t) + p->parent;
		if (p->how == PROPHET_ProcExeced && p->pid == parent->pid) {
			by = name_proc(t, parent, depth + 1);
			if (by && shim_len(by) < NAME_MAX_) {
				shim_put(&s, by);
				shim_put(&s, "+");
			}
		} else {
			th = thread_by_uid(t, p->parent_uid);
			if (th)
				by = name_thread(t, th, depth + 1);
			if (!by)
				by = name_proc(t, parent, depth + 1);
			if (by && shim_len(by) < NAME_MAX_) {
				shim_put(&s, by);
				shim_put(&s, ".");
				shim_putd(&s, (i64)p->nth);
			}
		}
	}
	if (!s.len) {
		shim_put(&s, "p?");
		shim_putd(&s, p->number);
	}
	p->name = unique(t, &s, p->number);
	return p->name;
}

static HOST const char *name_thread(prophet_trace *t, struct host_thread *th, u32 depth)
{
	char room[NAME_MAX_ + 64];
	const char *by = 0;
	struct text s;
	if (th->name || th->busy)
		return th->name;
	th->busy = 1;
	if (th->known && (th->how == PROPHET_ThreadMain || th->how == PROPHET_ThreadForked))
		return th->name = name_proc(t, procs(t) + th->proc, depth + 1);
	if (th->known && depth < NAME_DEPTH) {
		struct host_thread *parent = thread_by_uid(t, th->parent);
		if (parent && parent->proc == th->proc)
			by = name_thread(t, parent, depth + 1);
	}
	if (!by)
		by = name_proc(t, procs(t) + th->proc, depth + 1);
	shim_text(&s, room, sizeof room);
	if (by && shim_len(by) < NAME_MAX_)
		shim_put(&s, by);
	shim_put(&s, !th->known ? "/?" : th->how == PROPHET_ThreadFound ? "/f" : "/");
	shim_putd(&s, th->known ? (i64)th->nth : th->uid);
	return th->name = unique(t, &s, th->uid);
}

/* Where a damaged trace made a ring of parents, it is cut. */
static HOST void break_rings(prophet_trace *t)
{
	u64 i;
	for (i = 0; i < t->nprocs; i++) {
		i64 at = (i64)i;
		for (; at >= 0 && !procs(t)[at].walk; at = procs(t)[at].parent) {
			procs(t)[at].walk = (u32)i + 1;
			if (procs(t)[at].parent >= 0 && procs(t)[procs(t)[at].parent].walk == (u32)i + 1)
				procs(t)[at].parent = -1;
		}
	}
}

static HOST int name_all(prophet_trace *t)
{
	u64 i;
	for (i = 0; i < t->nprocs; i++) {
		struct host_proc *p = procs(t) + i;
		if (p->number != p->parent_no && p->known && p->how != PROPHET_ProcRoot)
			p->parent = proc_by_number(t, p->parent_no);
	}
	break_rings(t);
	for (t->taken_room = 64; t->taken_room < 2 * (t->nprocs + t->nthreads); t->taken_room *= 2)
		;
	if (!host_grow(&t->taken, t->taken_room * sizeof(char *)))
		return host_fail(t, -ENOMEM, "names", "");
	/* In order of number, so that doubles get their marks in the order of creation. */
	for (i = 0; i < t->nprocs; i++)
		name_proc(t, procs(t) + i, 0);
	for (i = 0; i < t->nthreads; i++)
		if (!name_thread(t, threads(t) + i, 0))
			threads(t)[i].name = "?";
	host_drop(&t->taken);
	return 0;
}

HOST const char *host_thread_name(prophet_trace *t, u32 uid, char *room)
{
	const struct host_thread *th = thread_by_uid(t, uid);
	struct text s;
	if (th)
		return th->name;
	shim_text(&s, room, 32);
	shim_put(&s, "thread");
	shim_putd(&s, uid);
	return room;
}

/* Where in JSON text the value of a key is, in the outermost object or in an object of it; NULL: nowhere. */
HOST const char *host_json(const char *s, const char *outer, const char *key)
{
	int depth = 0, inside = 0;
	const char *name = 0;
	u64 n = 0;
	for (; *s; s++) {
		if (*s == '"') {
			const char *from = ++s;
			for (; *s && *s != '"'; s++)
				if (*s == '\\' && s[1])
					s++;
			if (!*s)
				return 0;
			name = from;
			n = (u64)(s - from);
		} else if (*s == '{' || *s == '[') {
			depth++;
			inside = depth == 2 && outer && name && n == shim_len(outer) && shim_starts(name, outer);
			name = 0;
		} else if (*s == '}' || *s == ']') {
			depth--;
			name = 0;
		} else if (*s == ',') {
			name = 0;
		} else if (*s == ':' && name && (outer ? depth == 2 && inside : depth == 1) && n == shim_len(key) && shim_starts(name, key)) {
			for (s++; *s == ' ' || *s == '\t' || *s == '\n'; s++)
				;
			return s;
		}
	}
	return 0;
}

/* 1 and *v, or 0. */
static HOST int json_number(const char *s, const char *outer, const char *key, i64 *v)
{
	const char *at = host_json(s, outer, key), *end;
	int minus;
	if (!at)
		return 0;
	minus = *at == '-';
	*v = (i64)shim_parse(at + minus, &end);
	if (minus)
		*v = (i64)(0 - (u64)*v);
	return end != at + minus;
}

/* 1: there is a meta.json. */
static HOST int meta(prophet_trace *t, int dir)
{
	int fd = (int)sys(SYS_openat, dir, "meta.json", O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	struct stat st;
	const char *s;
	i64 n, v;
	if (fd < 0)
		return 0;
	if (sys(SYS_fstat, fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > META_MAX || !host_grow(&t->scratch, (u64)st.st_size + 1)) {
		sys(SYS_close, fd);
		return 0;
	}
	n = read_at(fd, t->scratch.at, (u64)st.st_size, 0);
	sys(SYS_close, fd);
	if (n < 0)
		return 0;
	s = t->scratch.at;
	((char *)t->scratch.at)[n] = 0;
	if (json_number(s, 0, "ticks_hz", &v) && v > 0)
		t->hz = (u64)v;
	if (json_number(s, 0, "start_realtime_ns", &v))
		t->start_ns = v;
	if (json_number(s, "options", "flight", &v))
		t->flight = (u64)v;
	s = host_json(s, 0, "state");
	t->complete = s && shim_starts(s, "\"complete\"");
	return 1;
}

static HOST int open_dir(prophet_trace *t, int dir, const char *path)
{
	int any = 0, has_meta = meta(t, dir), r;
	u32 n;
	for (n = 0; n < PROPHET_StreamFiles; n++) {
		char name[] = "stream-00";
		struct stat st;
		name[7] = (char)('0' + n / 10);
		name[8] = (char)('0' + n % 10);
		r = (int)sys(SYS_openat, dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
		if (r == -ENOENT)
			continue;
		if (r < 0 && r != -ELOOP)
			return host_fail(t, r, path, " has a stream file that cannot be opened");
		if (r < 0 || sys(SYS_fstat, r, &st) != 0 || !S_ISREG(st.st_mode)) {
			if (r >= 0)
				sys(SYS_close, r);
			t->damage++;
			continue;
		}
		any = 1;
		t->fd[n] = r;
		r = scan(t, n, (u64)st.st_size);
		if (r)
			return r;
	}
	if (!has_meta && !any)
		return host_fail(t, -EINVAL, path, " is not a trace");
	if (!has_meta)
		t->damage++;
	r = order(t);
	if (!r)
		r = build(t);
	if (!r)
		r = survey(t);
	return r ? r : name_all(t);
}

/* A packed trace: `prophet unpack` makes a directory of it, which is removed as soon as its files are open. */
static HOST int open_packed(prophet_trace *t, const char *path)
{
	char tool[HOST_PATH], dir[HOST_PATH], to[HOST_PATH + 16];
	const char *argv[] = {tool, "unpack", "--output", to, "--", path, 0};
	struct child c = {0, -1, -1, -1, 0, 0};
	struct text s;
	int r = host_find(tool, "prophet", "PROPHET_TOOL"), status, fd;
	if (r)
		return host_fail(t, r, path, " is packed, and the program `prophet` that unpacks it is not beside the library nor in PATH");
	r = host_temporary(dir);
	if (r)
		return host_fail(t, r, "no temporary directory can be made to unpack ", path);
	shim_text(&s, to, sizeof to);
	shim_put(&s, dir);
	shim_put(&s, "/t.prophet");
	fd = (int)sys(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
	c.out = c.err = fd;
	r = host_spawn(&c, tool, argv);
	if (!r)
		r = host_wait(c.pid, 0, &status);
	if (fd >= 0)
		sys(SYS_close, fd);
	fd = r < 0 ? r : (int)sys(SYS_openat, AT_FDCWD, to, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0) {
		r = host_fail(t, r < 0 ? r : -EINVAL, path, " is not a trace, or cannot be unpacked");
	} else {
		r = open_dir(t, fd, path);
		sys(SYS_close, fd);
	}
	host_remove(dir);
	return r;
}

EXPORT HOST int prophet_open(const char *path, prophet_trace **out)
{
	struct room self = {0, 0};
	prophet_trace *t;
	u32 i;
	int r, fd;
	if (!path || !out)
		return -EINVAL;
	*out = t = host_grow(&self, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->self = self;
	for (i = 0; i < PROPHET_StreamFiles; i++)
		t->fd[i] = -1;
	shim_text(&t->error, t->error_text, sizeof t->error_text);
	fd = (int)sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0)
		return host_fail(t, fd, path, "");
	{
		struct stat st;
		r = (int)sys(SYS_fstat, fd, &st);
		if (!r && S_ISDIR(st.st_mode))
			r = open_dir(t, fd, path);
		else if (!r && S_ISREG(st.st_mode))
			r = open_packed(t, path);
		else
			r = host_fail(t, r ? r : -EINVAL, path, " is not a trace");
	}
	sys(SYS_close, fd);
	return r ? r : prophet_rewind(t, 0);
}

EXPORT HOST int prophet_about(prophet_trace *t, struct prophet_info *out)
{
	struct prophet_info i;
	u32 n;
	if (!t || !out || out->size < 8)
		return -EINVAL;
	shim_zero(&i, sizeof i);
	n = out->size < sizeof i ? out->size : sizeof i;
	i.size = n;
	i.processes = (u32)t->nprocs;
	i.threads = (u32)t->nthreads;
	i.complete = t->complete;
	i.ticks_hz = t->hz;
	i.damage = t->damage;
	i.start_ns = t->start_ns;
	i.chunks = t->chunks;
	shim_copy(out, &i, n);
	return 0;
}

EXPORT HOST const char *prophet_trace_error(const prophet_trace *t)
{
	return t ? t->error_text : "";
}

EXPORT HOST void prophet_close(prophet_trace *t)
{
	struct room self;
	u64 i;
	if (!t)
		return;
	for (i = 0; i < PROPHET_StreamFiles; i++)
		if (t->fd[i] >= 0)
			sys(SYS_close, t->fd[i]);
	for (i = 0; i < t->nlanes; i++)
		host_lane_drop((struct lane *)t->lanes.at + i);
	while (t->names) {
		struct room r = *t->names;
		t->names = *(struct room **)(t->names + 1);
		host_drop(&r);
	}
	host_drop(&t->refs);
	host_drop(&t->refs_spare);
	host_drop(&t->threads);
	host_drop(&t->procs);
	host_drop(&t->lanes);
	host_drop(&t->heap);
	host_drop(&t->taken);
	host_drop(&t->text);
	host_drop(&t->scratch);
	self = t->self;
	host_drop(&self);
}
