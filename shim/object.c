/* See object.h. The table by address: open addressing, entries are claimed by compare-and-exchange and never move. */
#include "object.h"
#include "run.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define TABLE_BITS 16 /* 64 Ki entries of 32 bytes, touched only where used */
#define PROBES 32

static struct object_entry *table;
static struct object_entry nowhere;
static u32 nowhere_said;

static struct object_entry *table_of_process(void)
{
	struct object_entry *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE), *was = 0;
	long p;
	if (likely(t != 0))
		return t;
	p = sys(SYS_mmap, 0, sizeof *t << TABLE_BITS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p < 0 && p > -4096)
		return 0;
	if (!__atomic_compare_exchange_n(&table, &was, (struct object_entry *)p, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		sys(SYS_munmap, p, sizeof *t << TABLE_BITS);
		return was;
	}
	return (struct object_entry *)p;
}

static u32 spread(u64 addr, u32 type)
{
	return (u32)(((addr ^ (u64)type << 56) * 0x9E3779B97F4A7C15ull) >> (64 - TABLE_BITS));
}

struct object_entry *shim_object(struct thr *t, u32 type, const void *addr)
{
	struct object_entry *tab = table_of_process(), *e;
	u64 want = (u64)addr << 8 | type, id;
	u32 i, h = spread((u64)addr, type);
	if (!tab)
		return &nowhere;
	for (i = 0; i < PROBES; i++) {
		u64 was = 0;
		e = &tab[(h + i) & ((1u << TABLE_BITS) - 1)];
		if (e->addr != want) {
			if (e->addr || !__atomic_compare_exchange_n(&e->addr, &was, want, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				if (e->addr != want)
					continue;
		}
		if (unlikely(!(id = __atomic_load_n(&e->id, __ATOMIC_ACQUIRE)))) {
			u64 none = 0;
			id = shim_object_new(t, type, (u64)addr, 0);
			__atomic_compare_exchange_n(&e->id, &none, id, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
			e->type = type;
		}
		return e;
	}
	if (!__atomic_exchange_n(&nowhere_said, 1, __ATOMIC_RELAXED))
		shim_say("some objects have no order, there are too many in", shim_run.dir, 0);
	return &nowhere;
}

void shim_object_gone(u32 type, const void *addr)
{
	struct object_entry *tab = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	u64 want = (u64)addr << 8 | type;
	u32 i, h = spread((u64)addr, type);
	if (!tab)
		return;
	for (i = 0; i < PROBES; i++) {
		struct object_entry *e = &tab[(h + i) & ((1u << TABLE_BITS) - 1)];
		if (e->addr == want) {
			/* The place is kept for the address; a new name is given at the next use. */
			__atomic_store_n(&e->seq, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&e->readers, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&e->id, 0, __ATOMIC_RELEASE);
			return;
		}
		if (!e->addr)
			return;
	}
}

/* Called by a thread that holds m, or that only looks after a failed try (hold = 0: nothing is written then). */
u64 shim_mutex_name(struct thr *t, pthread_mutex_t *m, int hold)
{
	struct mutex_words *w = mutex_words(m);
	u64 id;
	if (m->__data.__kind & MUTEX_ROBUST)
		return shim_object(t, PROPHET_ObjMutex, m)->id;
	id = __atomic_load_n(&w->id, __ATOMIC_RELAXED);
	if (id && (w->seq ^ mutex_mark(m)) >> 48 == 0)
		return id;
	if (!hold)
		return 0;
	id = shim_object_new(t, m->__data.__kind & MUTEX_SHARED ? PROPHET_ObjSharedSync : PROPHET_ObjMutex, (u64)m, 0);
	__atomic_store_n(&w->seq, mutex_mark(m), __ATOMIC_RELAXED);
	__atomic_store_n(&w->id, id, __ATOMIC_RELEASE);
	return id;
}

/* The next place in the order of m, which the caller holds. */
u64 shim_mutex_next(struct thr *t, pthread_mutex_t *m)
{
	if (m->__data.__kind & MUTEX_ROBUST)
		return __atomic_add_fetch(&shim_object(t, PROPHET_ObjMutex, m)->seq, 1, __ATOMIC_RELAXED);
	return ++mutex_words(m)->seq & MUTEX_SEQ;
}
