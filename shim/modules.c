/* See modules.h. */
#include "modules.h"
#include "boot.h"
#include "cfi.h"
#include "real.h"
#include "stack.h"
#include <errno.h>
#include <link.h>

struct range {
	u64 low, high;
	u64 frames; /* .eh_frame_hdr */
	u64 mark; /* of its generation */
	u64 id; /* hash of all that tells it from others */
	u32 live; /* it is loaded, as far as we know. Stored last: others read without a lock */
	u32 seen; /* in this look */
};
static struct range ranges[MODULES_MAX];
static u32 nranges;
u32 shim_unloads;

#define MARK(n) ((u64)(n) << 48)
#define GENERATIONS (SHIM_NOWHERE - 1) /* those beyond share the last one */

static struct range *range_of(u64 pc, u32 live)
{
	u32 i, n = __atomic_load_n(&nranges, __ATOMIC_ACQUIRE);
	for (i = 0; i < n; i++)
		if (pc >= ranges[i].low && pc < ranges[i].high && __atomic_load_n(&ranges[i].live, __ATOMIC_ACQUIRE) == live)
			return &ranges[i];
	return 0;
}

int shim_module_known(u64 pc)
{
	return range_of(pc, 1) != 0;
}

u32 shim_module_at(u64 pc)
{
	struct range *r = range_of(pc, 1);
	return r ? (u32)(r - ranges) : ~0u;
}

u64 shim_module_pc(u64 pc)
{
	struct range *r;
	if (likely(!shim_unloads))
		return pc;
	r = range_of(pc, 1);
	return r ? pc | r->mark : range_of(pc, 0) ? pc | MARK(SHIM_NOWHERE) : pc;
}

int shim_module_frames(u64 pc, u64 *low, u64 *high, u64 *frames)
{
	struct range *r = range_of(pc, 1);
	if (!r)
		return 0;
	*low = r->low;
	*high = r->high;
	*frames = r->frames;
	return 1;
}

/* A place for a range; one that is given up takes what lay there along. */
static struct range *range_new(void)
{
	u32 i;
	if (nranges < MODULES_MAX)
		return &ranges[nranges];
	for (i = 0; i < nranges; i++)
		if (!ranges[i].live)
			return &ranges[i];
	return 0;
}

/* A module as the loader has it. */
struct loaded {
	const char *name;
	const u8 *id;
	u64 bias;
	u32 idlen;
	struct range at;
};

static int loaded(struct loaded *m, const struct dl_phdr_info *d)
{
	const ElfW(Phdr) *ph = d->dlpi_phdr;
	struct range *r = &m->at;
	u32 i;
	shim_zero(m, sizeof *m);
	m->name = *d->dlpi_name ? d->dlpi_name : shim_run.exe;
	m->bias = d->dlpi_addr;
	r->low = ~0ull;
	for (i = 0; i < d->dlpi_phnum; i++) {
		u64 at = m->bias + ph[i].p_vaddr;
		if (ph[i].p_type == PT_LOAD) {
			if (at < r->low)
				r->low = at;
			if (at + ph[i].p_memsz > r->high)
				r->high = at + ph[i].p_memsz;
		} else if (ph[i].p_type == PT_GNU_EH_FRAME) {
			r->frames = at;
		} else if (ph[i].p_type == PT_NOTE && !m->id) {
			const u8 *q = (const u8 *)at, *e = q + ph[i].p_memsz;
			while (e - q > 12) {
				const ElfW(Nhdr) *h = (const void *)q;
				const u8 *desc = q + 12 + ((h->n_namesz + 3) & ~3u);
				if (h->n_type == NT_GNU_BUILD_ID && h->n_namesz == 4 && desc + h->n_descsz <= e && h->n_descsz <= 64) {
					m->id = desc;
					m->idlen = h->n_descsz;
					break;
				}
				q = desc + ((h->n_descsz + 3) & ~3u);
			}
		}
	}
	if (r->high <= r->low)
		return 0;
	r->id = shim_hash64(m->name, shim_len(m->name), shim_hash64(m->id, m->idlen, shim_hash64(r, sizeof *r, m->bias)));
	return 1;
}

static void module_record(struct thr *t, struct loaded *m)
{
	struct range *r = range_new();
	u8 rec[1200], *p; /* programs have small stacks */
	u64 n = shim_len(m->name);
	if (!r)
		return;
	m->at.mark = MARK(shim_unloads < GENERATIONS ? shim_unloads : GENERATIONS);
	p = put_v(rec, PROPHET_TagModule);
	p = put_v(p, m->at.low | m->at.mark);
	p = put_v(p, m->at.high - m->at.low);
	p = put_v(p, m->bias + m->at.mark);
	if (n > 1000)
		n = 1000;
	p = put_v(p, n);
	shim_copy(p, m->name, n);
	p = put_v(p + n, m->idlen);
	shim_copy(p, m->id ? m->id : p, m->idlen);
	shim_record(t, rec, (u32)(p - rec) + m->idlen);
	m->at.seen = 1;
	*r = m->at;
	__atomic_store_n(&r->live, 1, __ATOMIC_RELEASE);
	if (r == &ranges[nranges])
		__atomic_store_n(&nranges, nranges + 1, __ATOMIC_RELEASE);
}

/* What the loader had loaded and unloaded at the last look. */
static u64 adds, subs;

struct look {
	struct thr *t;
	u32 begun, record, new;
};

static int each_module(struct dl_phdr_info *d, size_t size, void *arg)
{
	struct look *l = arg;
	struct loaded m;
	u32 i;
	(void)size;
	if (!l->begun) {
		if (d->dlpi_adds == adds && d->dlpi_subs == subs)
			return 1; /* as it was at the last look */
		for (i = 0; i < nranges; i++)
			ranges[i].seen = 0;
		adds = d->dlpi_adds;
		subs = d->dlpi_subs;
		l->begun = 1;
	}
	if (!loaded(&m, d))
		return 0;
	for (i = 0; i < nranges; i++)
		if (ranges[i].id == m.at.id) {
			ranges[i].seen = 1;
			__atomic_store_n(&ranges[i].live, 1, __ATOMIC_RELEASE);
			return 0;
		}
	l->new = 1;
	if (l->record)
		module_record(l->t, &m);
	return 0;
}

/* What was not seen in a look is gone, and what threads know of its pcs with it: their streams begin anew. */
static void bury(struct thr *t)
{
	struct thr *o;
	u32 i, gone = 0;
	for (i = 0; i < nranges; i++)
		if (ranges[i].live && !ranges[i].seen) {
			__atomic_store_n(&ranges[i].live, 0, __ATOMIC_RELEASE);
			gone = 1;
		}
	if (!gone)
		return;
	__atomic_store_n(&shim_unloads, shim_unloads + 1, __ATOMIC_RELEASE);
	shim_cfi_forget();
	shim_lock(&shim_wiped->threads);
	for (o = shim_wiped->list; o; o = o->next)
		if (o != t)
			__atomic_store_n(&o->stack_at, 0, __ATOMIC_RELAXED); /* shim_stack sees to it */
	shim_unlock(&shim_wiped->threads);
	t->unloads = shim_unloads;
	shim_flush(t, 0);
}

/* dl_iterate_phdr takes the loader's lock for a moment, so: never from a handler, one thread at a time. What is gone is found
 * first: those that came since are of the generation after it. */
void shim_modules(struct thr *t)
{
	static int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
	static u32 busy;
	struct look l = {t, 0, 0, 0};
	int err = errno;
	u32 i;
	if (t->depth)
		return;
	if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) { /* who looks may wait for a lock of the loader's that we hold */
		for (i = 0; i < 1000 && __atomic_load_n(&busy, __ATOMIC_ACQUIRE); i++)
			shim_pause();
		return;
	}
	if (!iterate)
		iterate = (__typeof__(iterate))shim_find("dl_iterate_phdr", 0);
	if (iterate && !iterate(each_module, &l)) {
		bury(t);
		l.record = 1;
		if (l.new)
			iterate(each_module, &l);
	}
	errno = err;
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

static int may_look(const struct thr *t)
{
	return !t->depth && !t->vfork && !shim_run.forked_from_threads && !shim_run.exiting && !t->re;
}

/* A key is defined for a pc: when it lies in no module that we know, one has been loaded since. Code that lies in none
 * would ask for ever, so: once a millisecond, but where a module was, at each key, as its name hangs on it. A child forked by one
 * of several threads may have the loader's lock from one that is gone. */
int shim_module_of(struct thr *t, u64 pc)
{
	static u64 next;
	if (shim_module_known(pc) || !may_look(t) || (t->last < next && !range_of(pc, 0)))
		return 0;
	next = t->last + shim_gap * 25;
	shim_modules(t);
	return shim_module_known(pc);
}

/* post unloaded: something may have been unloaded. */
void shim_post_unloaded(struct ev *e)
{
	if (may_look(e->t))
		shim_modules(e->t);
}

void shim_modules_again(void)
{
	adds = subs = 0;
	__atomic_store_n(&nranges, 0, __ATOMIC_RELEASE);
}
