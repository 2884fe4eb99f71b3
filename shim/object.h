/* Objects: their names, and for those of synchronisation their place in the order.
 *
 * A name is thr.uid << 40 | number: the thread that used it first, and its how manieth object it was.
 *
 *   mutex, not robust  name and order stand in the 16 bytes of __data.__list that glibc leaves unused: static
 *                      re-initialisation zeroes them, so that an address used again gets a new name
 *   all others         an entry in a table by address. Where the object has eight unused bytes (rwlock, sem, barrier)
 *                      they hold the name, so that an address used again without init or destroy is seen; a condition
 *                      variable tells by its sequence, which never goes back; a once control and a guard tell by being
 *                      undone again. init and destroy end a name in any case
 *
 * A name of an object in private memory belongs to its process: a forked child goes on with the names, orders and
 * entries of its parent, from where they stood, and from then on these are other objects. A reader tells them apart
 * by (process, name). The child's orders so begin where the parent's stood at the fork.
 *
 * An object in memory that processes share (it lies in a mapping that shim_object_mapped was told of, or its attribute
 * says so) has ONE name and ONE order in all processes of the run: TagObject says ObjSharedSync, in the stream of
 * each process that finds it, and the name alone identifies it. A shared mutex that is not robust has both in its own
 * words. For others the run's file `control` has a table of PROPHET_SharedObjects entries, found by device, inode and
 * offset of the place (anonymous memory: which mapping of which process), once an object and process; so it survives
 * fork and exec. Mappings are known from mmap, shmat and sem_open; for an object with the attribute elsewhere
 * /proc/self/maps is read, once. When that table is full, or cannot be had, an object is treated as private.
 *
 * The table by address is a chain of larger and larger levels. Look-up takes no lock. An entry is made, and a dead
 * one taken for another address, under shim_wiped->objects; it never moves while its object lives. Who has let go of
 * an object (unlock, post, signal) does not touch its entry again: the object may be gone by then.
 */
#ifndef SHIM_OBJECT_H
#define SHIM_OBJECT_H

#include "thread.h"
#include <pthread.h>

struct object_entry {
	u64 addr; /* address << 8 | OBJECT_SHARED | type; 0: never used; 1: dead. In the shared table: what identifies the place */
	u64 id;
	u64 seq; /* places given so far. OBJECT_SHARED: the entry in the shared table, as this one only points there */
	u32 readers; /* rwlock: since the last writer */
	u32 type;
	u64 seen; /* cond: its sequence when last looked at; OBJECT_SHARED: how often shared memory had been unmapped */
	u64 pad[3];
};
_Static_assert(sizeof(struct object_entry) == 64, "an entry is a cache line");

#define OBJECT_SHARED 0x80ull /* in addr, beside the type */
#define OBJECT_BITS 10 /* of the first level; each further one has OBJECT_MORE bits more */
#define OBJECT_MORE 4
#define OBJECT_LEVELS 4

extern struct object_entry shim_objects[1 << OBJECT_BITS] HIDDEN;

/* Where an object keeps its name, when it has room; NULL when not. */
static inline u64 *shim_object_tag(u32 type, const void *addr)
{
	switch (type) {
	case PROPHET_ObjRwlock:
		return (u64 *)((u8 *)addr + 16); /* __pad3, __pad4 */
	case PROPHET_ObjSem:
		return (u64 *)((u8 *)addr + 16); /* behind struct new_sem */
	case PROPHET_ObjBarrier:
		return (u64 *)((u8 *)addr + 24); /* behind struct pthread_barrier */
	default:
		return 0;
	}
}

HIDDEN struct object_entry *shim_object_find(struct thr *t, u32 type, const void *addr);
HIDDEN u64 shim_object_known(u32 type, const void *addr); /* the name that a private one has, or 0 */
HIDDEN struct object_entry *shim_object_key(struct thr *t, u32 type, u64 key, const char *detail); /* of the run, by key */
HIDDEN struct object_entry *shim_object_ipc(struct thr *t, u32 type, u64 key,
					    const char *detail); /* the same; a re-execution calls it as the event does that is expected */
HIDDEN struct object_entry *shim_object_count(u32 type, u64 key); /* the same, without a name: for its seq alone; NULL: there is no room */

HIDDEN struct object_entry *shim_object_named(struct thr *t, u32 type, u64 id); /* of the run, by the name that a trace gives it */

static inline u64 shim_object_hash(u64 want)
{
	return want * 0x9E3779B97F4A7C15ull;
}

/* The entry of the object at addr; made on first use. Never NULL (without memory it is a common one with id 0). */
static inline struct object_entry *shim_object(struct thr *t, u32 type, const void *addr)
{
	u64 want = (u64)addr << 8 | type;
	struct object_entry *e = &shim_objects[shim_object_hash(want) >> (64 - OBJECT_BITS)];
	const u64 *tag = shim_object_tag(type, addr);
	if (likely(__atomic_load_n(&e->addr, __ATOMIC_ACQUIRE) == want) && (!tag || likely(*tag == e->id)))
		return e;
	return shim_object_find(t, type, addr);
}

HIDDEN void shim_object_gone(u32 type, const void *addr); /* destroyed or initialised: the next use is another object */
HIDDEN void shim_object_closed(u32 type, const void *addr); /* no longer mapped here; the object lives on */
HIDDEN void shim_object_mapped(const void *p, u64 len, u64 dev, u64 ino, u64 off); /* that processes may share; dev and ino 0: anonymous */
HIDDEN void shim_object_unmapped(const void *p, u64 len); /* len 0: the mapping that begins at p */

HIDDEN void shim_object_moved(const void *p, u64 len, const void *to, u64 newlen);

extern u32 shim_replays HIDDEN; /* this is a re-execution, until its harness is taken off */
HIDDEN u64 shim_re_next(struct object_entry *e); /* the same, once it is this thread's turn */

/* The next place in an order that is not guarded by the object itself. */
static inline u64 shim_object_next(struct object_entry *e)
{
	if (unlikely(shim_replays))
		return shim_re_next(e);
	return __atomic_add_fetch(&e->seq, 1, __ATOMIC_RELAXED);
}

struct mutex_words {
	u64 id, seq;
};

static inline struct mutex_words *mutex_words(pthread_mutex_t *m)
{
	return (struct mutex_words *)&m->__data.__list;
}
_Static_assert(sizeof(((pthread_mutex_t *)0)->__data.__list) == 16, "room for name and order in a mutex");

#define MUTEX_ROBUST 16
#define MUTEX_SHARED 128

#define MUTEX_SEQ 0xffffffffffffull

/* The top 16 bits of a mutex's order: where it stands, so that a copy of its bytes is seen as another object; for a
 * mutex that processes share, which run it was named in, so that one in a file is seen as new. */
static inline u64 mutex_mark(pthread_mutex_t *m)
{
	return (unlikely(m->__data.__kind & MUTEX_SHARED) ? shim_ctl.tag | 1 : (u64)m >> 4) << 48;
}

HIDDEN u64 shim_mutex_name(struct thr *t, pthread_mutex_t *m, int hold);
HIDDEN int shim_mutex_shared(const pthread_mutex_t *m);
HIDDEN u64 shim_mutex_next(struct thr *t, pthread_mutex_t *m);

#endif
