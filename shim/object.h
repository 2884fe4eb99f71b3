/* Objects: their names, and for those of synchronisation their place in the order.
 *
 * A name is thr.uid << 40 | number: the thread that used it first, and its how manieth object it was. A mutex that
 * is not robust keeps name and order in the 16 bytes of __data.__list that glibc leaves unused: static
 * re-initialisation zeroes them, so that an address used again gets a new name, and processes that share the mutex
 * share its order. Everything else has an entry in a table by address; what lies in memory shared between processes
 * has it in a table of the run.
 */
#ifndef SHIM_OBJECT_H
#define SHIM_OBJECT_H

#include "thread.h"
#include <pthread.h>

struct object_entry {
	u64 addr; /* 0: free; in the shared table what identifies the place */
	u64 id;
	u64 seq;
	u32 type, readers; /* rwlock: readers since the last writer */
};

/* The entry of the object at addr; made on first use. Never NULL (a full table gives a common entry with id 0). */
HIDDEN struct object_entry *shim_object(struct thr *t, u32 type, const void *addr);
HIDDEN void shim_object_gone(u32 type, const void *addr); /* destroyed or initialised: the next use is another object */

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
HIDDEN u64 shim_mutex_next(struct thr *t, pthread_mutex_t *m);

/* Objects without order that only need a name by value: clocks, threads, processes. */
static inline u64 shim_obj_none(struct thr *t, u64 x)
{
	(void)t;
	(void)x;
	return 0;
}

#endif
