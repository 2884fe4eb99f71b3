/* See object.h. */
#include "object.h"
#include "replay.h"
#include "run.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#define PROBES 8

struct object_entry shim_objects[1 << OBJECT_BITS] __attribute__((aligned(64)));
static struct object_entry *levels[OBJECT_LEVELS] = {shim_objects};
static struct object_entry nowhere;
static u32 nowhere_said;

/* Mappings that processes may share. Changed under shim_wiped->objects. One more than there is room for is not known:
 * an object there is found by its attribute alone. */
#define RANGES 256
static struct range {
	u64 low, high, dev, ino, off;
} ranges[RANGES];
static u32 nranges;
static u64 lowest = ~0ull, highest; /* of all there ever were */
static u64 unmaps; /* how often one went */
static u64 anonymous;

static u64 new_id(struct thr *t)
{
	/* In one instruction, as a signal handler may name objects, too. */
	return (u64)t->uid << 40 | (__atomic_add_fetch(&t->nobj, 1, __ATOMIC_RELAXED) & 0xffffffffffull);
}

static void say(struct thr *t, u64 id, u32 type, u64 addr, const char *detail)
{
	u8 b[160], *p = put_v(b, PROPHET_TagObject);
	u64 len = detail ? shim_len(detail) : 0;
	if (len > 100)
		len = 100;
	p = put_v(p, id >> 40);
	p = put_v(p, id & 0xffffffffffull);
	p = put_v(p, type);
	p = put_v(p, addr);
	p = put_v(p, len);
	shim_copy(p, detail ? detail : "", len);
	shim_record(t, b, (u32)(p - b) + (u32)len);
}

static struct object_entry *level(u32 i, int make)
{
	struct object_entry *l = __atomic_load_n(&levels[i], __ATOMIC_ACQUIRE);
	long p;
	if (l || !make)
		return l;
	p = sys(SYS_mmap, 0, sizeof *l << (OBJECT_BITS + i * OBJECT_MORE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p < 0 && p > -4096)
		return 0;
	__atomic_store_n(&levels[i], (struct object_entry *)p, __ATOMIC_RELEASE);
	return (struct object_entry *)p;
}

/* The entry of want. *room, where asked for: where it may be made. An entry is made in the first place of its path
 * that is dead or was never used, so a place that was never used ends the search. */
static struct object_entry *search(u64 want, struct object_entry **room)
{
	u64 hash = shim_object_hash(want);
	u32 i, k;
	for (i = 0; i < OBJECT_LEVELS; i++) {
		u32 bits = OBJECT_BITS + i * OBJECT_MORE, h = (u32)(hash >> (64 - bits));
		struct object_entry *l = level(i, room && !*room);
		if (!l)
			return 0;
		for (k = 0; k < PROBES; k++) {
			struct object_entry *e = &l[(h + k) & ((1u << bits) - 1)];
			u64 addr = __atomic_load_n(&e->addr, __ATOMIC_ACQUIRE);
			if ((addr & ~OBJECT_SHARED) == want)
				return e;
			if (addr <= 1 && room && !*room)
				*room = e;
			if (!addr)
				return 0;
		}
	}
	return 0;
}

/* Whether its attribute says that processes share it. */
static int says_shared(u32 type, const void *addr)
{
	const u32 *w = addr;
	switch (type) {
	case PROPHET_ObjMutex:
		return (((const pthread_mutex_t *)addr)->__data.__kind & MUTEX_SHARED) != 0;
	case PROPHET_ObjRwlock:
		return ((const pthread_rwlock_t *)addr)->__data.__shared != 0;
	case PROPHET_ObjCond:
		return (((const pthread_cond_t *)addr)->__data.__wrefs & 1) != 0;
	case PROPHET_ObjSem:
		return w[2] != 0; /* struct new_sem: value and waiters in 8 bytes, private */
	case PROPHET_ObjBarrier:
		return w[3] != 0; /* struct pthread_barrier: in, current_round, count, shared */
	default:
		return 0;
	}
}

static u64 hex(const char **p)
{
	u64 v = 0;
	for (;; ++*p) {
		char c = **p;
		if (c >= '0' && c <= '9')
			v = v << 4 | (u64)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (u64)(c - 'a' + 10);
		else
			return v;
	}
}

/* Where memory is that is this process's own although objects in it say that they are shared; programs make such objects
 * again and again, and to ask the kernel costs more than 100 us. True until memory is shared anew. */
#define OWN 4
static struct {
	u64 low, high, mapped;
} own[OWN];
static u32 nown;
static u64 mapped; /* how often memory was mapped that processes may share */

static int is_own(u64 addr)
{
	u32 i;
	for (i = 0; i < OWN; i++)
		if (addr >= own[i].low && addr < own[i].high && own[i].mapped == mapped)
			return 1;
	return 0;
}

enum { LINE_OTHER, LINE_OWN, LINE_SHARED };

/* One line of maps: "low-high perms offset major:minor inode path". */
static int line_has(const char *p, u64 addr, struct range *r)
{
	r->low = hex(&p);
	p++;
	r->high = hex(&p);
	if (addr < r->low || addr >= r->high)
		return LINE_OTHER;
	if (p[4] != 's') {
		own[nown % OWN].low = r->low;
		own[nown % OWN].high = r->high;
		own[nown++ % OWN].mapped = mapped;
		return LINE_OWN;
	}
	p += 6;
	r->off = hex(&p);
	p++;
	r->dev = hex(&p) << 32;
	p++;
	r->dev |= hex(&p);
	r->ino = shim_parse(p + 1, 0);
	return LINE_SHARED;
}

static int in_maps(u64 addr, struct range *r)
{
	static char buf[4096]; /* under the lock */
	long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0), n;
	u32 have = 0, at, end;
	int found = LINE_OTHER;
	if (fd < 0)
		return 0;
	while (!found && (n = sys(SYS_read, fd, buf + have, sizeof buf - 1 - have)) > 0) {
		have += (u32)n;
		buf[have] = 0;
		for (at = 0; !found; at = end + 1) {
			for (end = at; end < have && buf[end] != '\n'; end++)
				;
			if (end == have)
				break;
			found = line_has(buf + at, addr, r);
		}
		if (at == 0)
			break; /* no line is that long */
		have = at < have ? have - at : 0;
		__builtin_memmove(buf, buf + at, have);
	}
	sys(SYS_close, fd);
	return found == LINE_SHARED;
}

/* Where addr lies, when processes may share it. */
static int in_shared(u32 type, u64 addr, struct range *r)
{
	u32 i;
	for (i = 0; i < nranges; i++)
		if (addr >= ranges[i].low && addr < ranges[i].high) {
			*r = ranges[i];
			return 1;
		}
	return says_shared(type, (const void *)addr) && !is_own(addr) && in_maps(addr, r);
}

/* The entry of the run for what key names; NULL when there is no room. */
static struct object_entry *of_run(u64 key)
{
	struct object_entry *tab = shim_shared_room();
	u64 h = shim_object_hash(key);
	u32 i;
	for (i = 0; tab && i < 64; i++) {
		struct object_entry *e = &tab[((h >> 40) + i) % PROPHET_SharedObjects];
		u64 was = 0;
		if (__atomic_load_n(&e->addr, __ATOMIC_ACQUIRE) == key ||
		    __atomic_compare_exchange_n(&e->addr, &was, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || was == key)
			return e;
	}
	return 0;
}

/* Whether some object is called that already. */
static int is_name(u64 id)
{
	const struct object_entry *run;
	u32 i, k;
	for (i = 0; i < OBJECT_LEVELS && levels[i]; i++)
		for (k = 0; k < 1u << (OBJECT_BITS + i * OBJECT_MORE); k++)
			if (levels[i][k].id == id && levels[i][k].addr > 1)
				return 1;
	for (i = 0, run = shim_shared_room(); run && i < PROPHET_SharedObjects; i++)
		if (run[i].id == id)
			return 1;
	return 0;
}

static void name_of_run(struct thr *t, struct object_entry *s, u32 type)
{
	u64 none = 0, id = new_id(t);
	s->type = type;
	__atomic_compare_exchange_n(&s->id, &none, id, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static const char *kind(u32 type)
{
	static const char *const names[] = {"object", "mutex", "rwlock", "cond", "barrier", "sem", "spin", "once", "guard"};
	return type < sizeof names / sizeof *names ? names[type] : "futex";
}

/* What TagObject tells of a shared one: kind and place. */
static void say_shared(struct thr *t, const struct object_entry *s, u32 type, u64 addr, const struct range *r)
{
	char b[100];
	struct text x;
	shim_text(&x, b, sizeof b);
	shim_put(&x, kind(type));
	shim_put(&x, " ");
	shim_putx(&x, r->dev, 12);
	shim_put(&x, ":");
	shim_putd(&x, (i64)r->ino);
	shim_put(&x, "+");
	shim_putd(&x, (i64)(addr - r->low + r->off));
	say(t, s->id, PROPHET_ObjSharedSync, addr, b);
}

/* Makes e the entry of want, private or pointing to one of the run. With the lock held; what is to be told of it, and
 * whether, is left in *told. */
struct told {
	struct object_entry *shared;
	struct range r;
	u64 id;
};

static void settle(struct thr *t, struct object_entry *e, u64 want, u32 type, struct told *told)
{
	u64 addr = want >> 8, *tag = shim_object_tag(type, (const void *)addr), place[4];
	told->shared = 0;
	if (in_shared(type, addr, &told->r)) {
		place[0] = told->r.dev;
		place[1] = told->r.ino;
		place[2] = addr - told->r.low + told->r.off;
		place[3] = type;
		told->shared = of_run(shim_hash64(place, sizeof place, 0) | 2);
	}
	e->type = type;
	e->readers = 0;
	if (told->shared) {
		if (!__atomic_load_n(&told->shared->id, __ATOMIC_ACQUIRE))
			name_of_run(t, told->shared, type);
		told->id = told->shared->id;
		e->id = 0;
		e->seq = (u64)told->shared;
		e->seen = unmaps;
		want |= OBJECT_SHARED;
	} else {
		told->id = new_id(t);
		__atomic_store_n(&e->seq, 0, __ATOMIC_RELAXED);
		e->seen = 0;
		__atomic_store_n(&e->id, told->id, __ATOMIC_RELEASE);
	}
	if (tag)
		*tag = told->id;
	__atomic_store_n(&e->addr, want, __ATOMIC_RELEASE);
}

static struct object_entry *known(struct thr *t, struct object_entry *e, u64 addr, u32 type)
{
	u64 *tag = shim_object_tag(type, (const void *)addr);
	if (e->addr & OBJECT_SHARED) {
		struct object_entry *s = (struct object_entry *)e->seq;
		u64 id = __atomic_load_n(&s->id, __ATOMIC_ACQUIRE);
		if (e->seen != __atomic_load_n(&unmaps, __ATOMIC_ACQUIRE))
			return 0;
		if (!id) {
			name_of_run(t, s, type);
			id = s->id;
			say(t, id, PROPHET_ObjSharedSync, addr, kind(type));
		}
		if (tag && *tag != id)
			*tag = id;
		return s;
	}
	return tag && *tag != e->id ? 0 : e;
}

/* First sight, or not where the look-up looks first. */
struct object_entry *shim_object_find(struct thr *t, u32 type, const void *addr)
{
	u64 want = (u64)addr << 8 | type;
	struct object_entry *e = search(want, 0), *room = 0, *r;
	struct told told;
	if (likely(e && (r = known(t, e, (u64)addr, type))))
		return r;
	while (unlikely(shim_replays) && !shim_re_detached() && !shim_re_mine(t) && !is_name(t->re->x->obj)) {
		shim_re_yield(t, t->re->x->obj);
		e = search(want, 0);
		if (e && (r = known(t, e, (u64)addr, type)))
			return r;
	}
	shim_lock(&shim_wiped->objects);
	e = search(want, &room);
	if (e && (r = known(t, e, (u64)addr, type))) {
		shim_unlock(&shim_wiped->objects);
		return r;
	}
	if (!e)
		e = room;
	if (e)
		settle(t, e, want, type, &told);
	shim_unlock(&shim_wiped->objects);
	if (!e) {
		if (!__atomic_exchange_n(&nowhere_said, 1, __ATOMIC_RELAXED))
			shim_say("some objects have no order, there is no memory for them in", shim_run.dir, 0);
		return &nowhere;
	}
	if (told.shared) {
		say_shared(t, told.shared, type, (u64)addr, &told.r);
		return told.shared;
	}
	say(t, told.id, type, (u64)addr, 0);
	return e;
}

u64 shim_object_known(u32 type, const void *addr)
{
	struct object_entry *e = search((u64)addr << 8 | type, 0);
	return e && !(e->addr & OBJECT_SHARED) ? e->id : 0;
}

struct object_entry *shim_object_key(struct thr *t, u32 type, u64 key, const char *detail)
{
	struct object_entry *e;
	e = of_run(shim_hash64(&key, sizeof key, type) | 2);
	if (!e)
		return &nowhere;
	if (unlikely(!__atomic_load_n(&e->id, __ATOMIC_ACQUIRE))) {
		name_of_run(t, e, type);
		say(t, e->id, PROPHET_ObjSharedSync, key, detail);
	}
	return e;
}

struct object_entry *shim_object_count(u32 type, u64 key)
{
	return of_run(shim_hash64(&key, sizeof key, type) | 2);
}

/* The name that the trace gives it. The thread that the name says has given it in the recording, when it first used it: it counts it now. */
static struct object_entry *as_named(struct thr *t, struct object_entry *e, u32 type, u64 id)
{
	u64 nth = id & 0xffffffffffull, none = 0;
	if (!__atomic_load_n(&e->id, __ATOMIC_ACQUIRE)) {
		e->type = type;
		__atomic_compare_exchange_n(&e->id, &none, id, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	}
	if (id >> 40 == t->uid && nth > t->nobj)
		t->nobj = nth;
	return e;
}

struct object_entry *shim_object_named(struct thr *t, u32 type, u64 id)
{
	struct object_entry *e = of_run(shim_hash64(&id, sizeof id, type) | 2);
	return e ? as_named(t, e, type, id) : &nowhere;
}

struct object_entry *shim_object_ipc(struct thr *t, u32 type, u64 key, const char *detail)
{
	u64 id = unlikely(shim_replays) && t->re && t->re->x ? t->re->x->obj : 0;
	struct object_entry *e = id ? of_run(shim_hash64(&key, sizeof key, type) | 2) : 0;
	return e ? as_named(t, e, type, id) : shim_object_key(t, type, key, detail);
}

static void end(u32 type, const void *addr, int whole)
{
	u64 want = (u64)addr << 8 | type;
	struct object_entry *e;
	if (!shim_wiped)
		return;
	e = search(want, 0);
	if (!e)
		return;
	if (__atomic_load_n(&e->addr, __ATOMIC_ACQUIRE) == want) { /* our own alone: there is nothing else to be told */
		__atomic_compare_exchange_n(&e->addr, &want, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
		return;
	}
	shim_lock(&shim_wiped->objects);
	e = search(want, 0);
	if (e && e->addr & OBJECT_SHARED && whole) {
		struct object_entry *s = (struct object_entry *)e->seq;
		__atomic_store_n(&s->seq, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&s->readers, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&s->seen, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&s->id, 0, __ATOMIC_RELEASE);
	}
	if (e)
		__atomic_store_n(&e->addr, 1, __ATOMIC_RELEASE);
	shim_unlock(&shim_wiped->objects);
}

void shim_object_gone(u32 type, const void *addr)
{
	end(type, addr, 1);
}

void shim_object_closed(u32 type, const void *addr)
{
	end(type, addr, 0);
}

void shim_object_mapped(const void *p, u64 len, u64 dev, u64 ino, u64 off)
{
	if (!shim_wiped || !len)
		return;
	shim_object_unmapped(p, len);
	shim_lock(&shim_wiped->objects);
	mapped++;
	if (nranges < RANGES) {
		struct range *r = &ranges[nranges];
		if (!dev && !ino)
			ino = (u64)shim_run.proc << 32 | ++anonymous;
		r->low = (u64)p;
		r->high = (u64)p + len;
		r->dev = dev;
		r->ino = ino;
		r->off = off;
		nranges++;
		if (r->low < lowest)
			lowest = r->low;
		if (r->high > highest)
			__atomic_store_n(&highest, r->high, __ATOMIC_RELEASE);
	}
	shim_unlock(&shim_wiped->objects);
}

void shim_object_unmapped(const void *p, u64 len)
{
	u64 low = (u64)p, high = low + len;
	u32 i;
	if (likely(low >= __atomic_load_n(&highest, __ATOMIC_ACQUIRE) || high < lowest) || !shim_wiped)
		return;
	shim_lock(&shim_wiped->objects);
	for (i = nranges; i-- > 0;) {
		struct range *r = &ranges[i];
		if (len ? high <= r->low || low >= r->high : low != r->low)
			continue;
		unmaps++;
		if (low > r->low && high < r->high && nranges < RANGES) { /* a hole */
			struct range *rest = &ranges[nranges++];
			*rest = *r;
			rest->low = high;
			rest->off += high - r->low;
			r->high = low;
		} else if (low > r->low) {
			r->high = low;
		} else if (len && high < r->high) {
			r->off += high - r->low;
			r->low = high;
		} else {
			*r = ranges[--nranges];
		}
	}
	shim_unlock(&shim_wiped->objects);
}

void shim_object_moved(const void *p, u64 len, const void *to, u64 newlen)
{
	struct range was = {0, 0, 0, 0, 0};
	u64 at = (u64)p;
	u32 i;
	if (likely(at >= __atomic_load_n(&highest, __ATOMIC_ACQUIRE) || at < lowest) || !shim_wiped)
		return;
	shim_lock(&shim_wiped->objects);
	for (i = 0; i < nranges; i++)
		if (at >= ranges[i].low && at < ranges[i].high)
			was = ranges[i];
	shim_unlock(&shim_wiped->objects);
	if (!was.high)
		return;
	shim_object_unmapped(p, len);
	shim_object_mapped(to, newlen, was.dev, was.ino, at - was.low + was.off);
}

/* Whether other processes may use it, too. */
int shim_mutex_shared(const pthread_mutex_t *m)
{
	struct range r;
	int shared = m->__data.__kind & MUTEX_SHARED;
	if (!shared && (u64)m < highest && (u64)m >= lowest) {
		shim_lock(&shim_wiped->objects);
		shared = in_shared(PROPHET_ObjMutex, (u64)m, &r);
		shim_unlock(&shim_wiped->objects);
	}
	return shared;
}

/* Called by a thread that holds m, or that only looks after a failed try (hold = 0: nothing is written then). */
u64 shim_mutex_name(struct thr *t, pthread_mutex_t *m, int hold)
{
	struct mutex_words *w = mutex_words(m);
	u64 id;
	int shared;
	if (m->__data.__kind & MUTEX_ROBUST)
		return shim_object(t, PROPHET_ObjMutex, m)->id;
	id = __atomic_load_n(&w->id, __ATOMIC_RELAXED);
	if (id && (w->seq ^ mutex_mark(m)) >> 48 == 0)
		return id;
	if (!hold)
		return 0;
	id = new_id(t);
	__atomic_store_n(&w->seq, mutex_mark(m), __ATOMIC_RELAXED);
	__atomic_store_n(&w->id, id, __ATOMIC_RELEASE);
	shared = shim_mutex_shared(m);
	say(t, id, shared ? PROPHET_ObjSharedSync : PROPHET_ObjMutex, (u64)m, shared ? "mutex" : 0);
	return id;
}

/* The next place in the order of m, which the caller holds. */
u64 shim_mutex_next(struct thr *t, pthread_mutex_t *m)
{
	if (m->__data.__kind & MUTEX_ROBUST)
		return shim_object_next(shim_object(t, PROPHET_ObjMutex, m));
	return ++mutex_words(m)->seq & MUTEX_SEQ;
}
