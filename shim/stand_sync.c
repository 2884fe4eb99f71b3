/* Stand-ins for synchronisation: each waits for its recorded turn and then asks the real function, which so does not
 * wait, or no longer than the holder needs to let go. What failed, or timed out, in the recording does so at once and
 * changes nothing. A wait for a condition is: let go of the mutex, wait for the recorded turn to lock it again.
 */
#include "channel.h"
#include "run.h"
#include "steps_sync.h"
#include <semaphore.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* The places taken so far at an object that has an entry. */
static u64 entry_away(const void *object, const struct expect *x)
{
	u64 seq = __atomic_load_n(&((const struct object_entry *)object)->seq, __ATOMIC_ACQUIRE);
	return x->seq - 1 - seq;
}

#define ANOTHER_LOOKS 100 /* of a millisecond: it may be about to be named anew */

/* Whether it is another object than the trace's: a place there is none here. */
static int another(struct thr *t, const struct expect *x, u64 name, u64 (*named)(const void *), const void *object)
{
	u64 id = named(object);
	u32 looks = 0;
	while (unlikely(id && id != name)) {
		struct timespec ts = {0, 1000000};
		if (shim_index->flags & PROPHET_ReplayLearn || ++looks > ANOTHER_LOOKS) {
			shim_re_differs(t, x, PROPHET_DiffersObject, x->call, name, id, "");
			return 1;
		}
		if (shim_re_detached())
			return 0;
		shim_re_nap(t, name, x->seq, 1, &ts);
		id = named(object);
	}
	return 0;
}

static u64 entry_name(const void *object)
{
	return ((const struct object_entry *)object)->id;
}

static void entry_turn(struct thr *t, const struct expect *x, u64 name, u64 place, turn_fn ready, const struct object_entry *o)
{
	if (!another(t, x, name, entry_name, o))
		shim_turn(t, x, name, place, ready, o);
}

/* The last call of a thread took a place that the trace does not tell, or did not come to. Whether it did shows when
 * another waits for the place after it, and nobody takes it. */
#define HOLE_LOOKS 5

static void await_hole(struct thr *t, const struct object_entry *o)
{
	const struct replaythread *th = shim_index_threads();
	u64 seq = 0, was = 0;
	u32 i, same = 0;
	while (same < HOLE_LOOKS) {
		struct timespec ts = {0, 20000000};
		int wanted = 0;
		if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
			shim_re_stop(t, PROPHET_TurnStopped);
		if (shim_re_detached())
			return;
		seq = __atomic_load_n(&o->seq, __ATOMIC_ACQUIRE);
		for (i = 1; i < shim_index->threads; i++)
			wanted |= th[i].state == PROPHET_TurnWaits && th[i].object == o->id && th[i].turn == seq + 2;
		same = wanted && seq == was ? same + 1 : 0;
		was = seq;
		if (same < HOLE_LOOKS)
			TRUE(clock_nanosleep)(CLOCK_MONOTONIC, 0, &ts, 0); /* a cancellation point, as the call may be */
	}
}

u64 shim_re_next(struct object_entry *o)
{
	struct thr *t = shim_self.thr;
	struct expect *x = t && t->re ? t->re->x : 0;
	u64 seq;
	if (x && x->kind == EXPECT_END)
		await_hole(t, o);
	if (x && x->kind == EXPECT_EVENT && x->seq && o->id == x->obj)
		shim_turn(t, x, x->obj, x->seq, entry_away, o);
	seq = __atomic_add_fetch(&o->seq, 1, __ATOMIC_SEQ_CST);
	shim_turn_next(o->id, seq);
	return seq;
}

static inline int took(i64 ret)
{
	return ret == 0 || ret == EOWNERDEAD;
}

/* A mutex that is not robust has name and order in itself (object.h). One without a name is first used now, by the
 * thread that the name says. */
static u64 mutex_away(const void *object, const struct expect *x)
{
	pthread_mutex_t *m = (pthread_mutex_t *)(u64)object;
	const struct mutex_words *w = mutex_words(m);
	u64 id = __atomic_load_n(&w->id, __ATOMIC_ACQUIRE), seq = __atomic_load_n(&w->seq, __ATOMIC_ACQUIRE), away;
	if (!id || (seq ^ mutex_mark(m)) >> 48)
		return x->seq == 1 ? 0 : TURN_FAR;
	away = (x->seq - 1 - seq) & MUTEX_SEQ;
	if (!away && __atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED) && (u32)m->__data.__owner != shim_self.thr->tid)
		return 1; /* it is about to be let go */
	return away;
}

static u64 mutex_name(const void *object)
{
	pthread_mutex_t *m = (pthread_mutex_t *)(u64)object;
	return (mutex_words(m)->seq ^ mutex_mark(m)) >> 48 ? 0 : mutex_words(m)->id;
}

static void mutex_turn(struct thr *t, const struct expect *x, pthread_mutex_t *m, u64 name)
{
	if (m->__data.__kind & MUTEX_ROBUST)
		entry_turn(t, x, name, x->seq, entry_away, shim_object(t, PROPHET_ObjMutex, m));
	else if (!another(t, x, name, mutex_name, m))
		shim_turn(t, x, name, x->seq, mutex_away, m);
}

/* What other threads of its parent held, and how often they had, is in a forked child as it was at that moment, which does not
 * come the same again: while it has one thread, the trace says how a mutex stood that is its own. */
static void as_forked(struct thr *t, const struct expect *x, pthread_mutex_t *m)
{
	struct mutex_words *w = mutex_words(m);
	if (likely(shim_run.how != PROPHET_ProcForked) || m->__data.__kind & MUTEX_ROBUST)
		return;
	if ((w->id == x->obj && !m->__data.__lock && w->seq == (mutex_mark(m) | ((x->seq - 1) & MUTEX_SEQ))) || !shim_re_alone(t) || shim_mutex_shared(m))
		return;
	if (took(x->ret) && m->__data.__lock && (u32)m->__data.__owner != t->tid)
		m->__data.__lock = m->__data.__owner = 0, m->__data.__nusers = 0;
	if (!x->obj || (u32)(x->obj >> 40) == t->uid)
		w->id = x->obj && w->id == x->obj ? x->obj : 0;
	else
		w->id = x->obj;
	if (w->id)
		w->seq = mutex_mark(m) | ((x->seq ? x->seq - 1 : w->seq) & MUTEX_SEQ);
}

typedef int (*mutex_fn)(pthread_mutex_t *);

/* Any way to lock: the ways differ in how long they may wait, which nobody does now. */
static int mutex(struct expect *x, mutex_fn real, pthread_mutex_t *m)
{
	as_forked(shim_self.thr, x, m);
	if (!took(x->ret) || !x->seq)
		return (int)x->ret;
	mutex_turn(shim_self.thr, x, m, x->obj);
	return real(m);
}

#define MUTEX(name, real, params, args)                                                 \
	static int re_##name params                                                     \
	{                                                                               \
		struct expect *x = shim_re_of(CALL_##name);                             \
		return x ? mutex(x, (mutex_fn)TRUE(real), (void *)m) : TRUE(name) args; \
	}                                                                               \
	STANDIN(name, re_##name)

/* The older names' wrappers go to the newer names' real functions. */
#define MUTEX2(name, old)                                                         \
	static int re_##name(pthread_mutex_t *m)                                  \
	{                                                                         \
		struct expect *x = shim_re_of(CALL_##name);                       \
		x = x ? x : shim_re_of(CALL_##old);                               \
		return x ? mutex(x, TRUE(pthread_mutex_lock), m) : TRUE(name)(m); \
	}                                                                         \
	STANDIN(name, re_##name)
MUTEX2(pthread_mutex_lock, __pthread_mutex_lock)
MUTEX2(pthread_mutex_trylock, __pthread_mutex_trylock)
MUTEX(pthread_mutex_timedlock, pthread_mutex_lock, (pthread_mutex_t * m, const struct timespec *until), (m, until))
MUTEX(pthread_mutex_clocklock, pthread_mutex_lock, (pthread_mutex_t * m, clockid_t clk, const struct timespec *until), (m, clk, until))

/* Who held it then may hold it later here. */
static int re_pthread_mutex_destroy(pthread_mutex_t *m)
{
	struct expect *x = shim_re_of(CALL_pthread_mutex_destroy);
	x = x ? x : shim_re_of(CALL___pthread_mutex_destroy);
	return x && x->ret ? (int)x->ret : TRUE(pthread_mutex_destroy)(m);
}
STANDIN(pthread_mutex_destroy, re_pthread_mutex_destroy)

/* C11 says how it went in numbers that libraries choose. */
static int thrd(i64 err)
{
	return err == 0 ? thrd_success : err == EBUSY ? thrd_busy : err == ETIMEDOUT ? thrd_timedout : err == ENOMEM ? thrd_nomem : thrd_error;
}

#define MTX(name, params, args)                                                                   \
	static int re_##name params                                                               \
	{                                                                                         \
		struct expect *x = shim_re_of(CALL_##name);                                       \
		return x ? thrd(mutex(x, TRUE(pthread_mutex_lock), (void *)m)) : TRUE(name) args; \
	}                                                                                         \
	STANDIN(name, re_##name)
MTX(mtx_lock, (mtx_t * m), (m))
MTX(mtx_trylock, (mtx_t * m), (m))
MTX(mtx_timedlock, (mtx_t *restrict m, const struct timespec *restrict until), (m, until))

static void lets_go(const struct expect *x, pthread_mutex_t *m)
{
	u64 place = m->__data.__kind & MUTEX_ROBUST ? 0 : mutex_words(m)->seq & MUTEX_SEQ;
	TRUE(pthread_mutex_unlock)(m);
	if (place)
		shim_turn_next(x->f2, place);
	else
		shim_turn_all(x->f2);
}

static void locks_again(const struct expect *x, pthread_mutex_t *m)
{
	mutex_turn(shim_self.thr, x, m, x->f2);
	TRUE(pthread_mutex_lock)(m);
}

struct cancelled {
	struct _pthread_cleanup_buffer buf;
	const struct expect *x;
	pthread_mutex_t *m;
};

static void by_cancellation(void *p)
{
	struct cancelled *c = p;
	locks_again(c->x, c->m);
}

/* Waits to be cancelled. What the C library does then, lock the mutex before the clean-up handlers run, is done in its turn. */
static NOINLINE void waits_for_cancellation(struct expect *x, pthread_mutex_t *m)
{
	struct cancelled c;
	c.x = x;
	c.m = m;
	if (shim_cleanup_push)
		shim_cleanup_push(&c.buf, by_cancellation, &c);
	lets_go(x, m);
	shim_re_may_cancel(shim_self.thr);
	for (;;)
		TRUE(pause)();
}

static int waits(struct expect *x, u32 call, pthread_mutex_t *m)
{
	if (x->kind == EXPECT_END) { /* it waited when the process ended */
		u64 place = m->__data.__kind & MUTEX_ROBUST ? 0 : mutex_words(m)->seq & MUTEX_SEQ, name = shim_mutex_name(shim_self.thr, m, 0);
		TRUE(pthread_mutex_unlock)(m);
		if (place)
			shim_turn_next(name, place);
		else
			shim_turn_all(name);
		shim_re_end(shim_self.thr);
		return TRUE(pthread_mutex_lock)(m); /* it wakes up by itself, as any wait may */
	}
	if (x->kind == EXPECT_LEFT) /* cancelled; unwinding took calls before the event could be written */
		x = shim_re_ahead(call, 0);
	if (!x)
		for (;;)
			TRUE(pause)();
	if (x->ret == ECANCELED)
		waits_for_cancellation(x, m);
	if (!x->seq)
		return (int)x->ret;
	lets_go(x, m);
	shim_re_signals(shim_self.thr, call);
	locks_again(x, m);
	return unlikely(shim_re_detached()) ? 0 : (int)x->ret;
}

#define WAIT(name, params, args, turned)                                                                           \
	static int re_##name params                                                                                \
	{                                                                                                          \
		struct expect *x = shim_re_under_way(CALL_##name);                                                 \
		return x ? turned(waits(x, CALL_##name, (void *)m)) : ((int(*) params)shim_true(CALL_##name))args; \
	}                                                                                                          \
	STANDIN(name, re_##name)
WAIT(pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (c, m), )
WAIT(pthread_cond_timedwait, (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *until), (c, m, until), )
WAIT(pthread_cond_clockwait, (pthread_cond_t * c, pthread_mutex_t *m, clockid_t clk, const struct timespec *until), (c, m, clk, until), )
WAIT(cnd_wait, (cnd_t * c, mtx_t *m), (c, m), thrd)
WAIT(cnd_timedwait, (cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict until), (c, m, until), thrd)

#if SHIM_OLD_VERSIONS
WAIT(pthread_cond_wait_GLIBC_2_2_5, (void *c, pthread_mutex_t *m), (c, m), )
WAIT(pthread_cond_timedwait_GLIBC_2_2_5, (void *c, pthread_mutex_t *m, const struct timespec *until), (c, m, until), )
#endif

/* Nobody waits there, but for a thread that is to be cancelled, which no signal may wake. */
#define WAKE(name, type, turned)                                                               \
	static int re_##name(type *c)                                                          \
	{                                                                                      \
		struct expect *x = shim_re_of(CALL_##name);                                    \
		return x ? turned((int)x->ret) : ((int (*)(type *))shim_true(CALL_##name))(c); \
	}                                                                                      \
	STANDIN(name, re_##name)
WAKE(pthread_cond_signal, pthread_cond_t, )
WAKE(pthread_cond_broadcast, pthread_cond_t, )
#if SHIM_OLD_VERSIONS
WAKE(pthread_cond_signal_GLIBC_2_2_5, void, )
WAKE(pthread_cond_broadcast_GLIBC_2_2_5, void, )
#endif
WAKE(cnd_signal, cnd_t, thrd)
WAKE(cnd_broadcast, cnd_t, thrd)

/* A reader's turn is in its epoch; a writer's when all readers of the one before have had the lock. */
static u64 reader_away(const void *object, const struct expect *x)
{
	u64 seq = __atomic_load_n(&((const struct object_entry *)object)->seq, __ATOMIC_ACQUIRE);
	return x->f2 - seq;
}

static u64 writer_away(const void *object, const struct expect *x)
{
	const struct object_entry *o = object;
	u64 away = x->seq - 1 - __atomic_load_n(&o->seq, __ATOMIC_ACQUIRE);
	return away ? away : x->f2 - __atomic_load_n(&o->readers, __ATOMIC_ACQUIRE);
}

static int reads(struct expect *x, pthread_rwlock_t *l)
{
	struct thr *t = shim_self.thr;
	if (x->ret)
		return (int)x->ret;
	entry_turn(t, x, x->obj, 0, reader_away, shim_object(t, PROPHET_ObjRwlock, l));
	return TRUE(pthread_rwlock_rdlock)(l);
}

static int writes(struct expect *x, pthread_rwlock_t *l)
{
	struct thr *t = shim_self.thr;
	if (x->ret)
		return (int)x->ret;
	entry_turn(t, x, x->obj, 0, writer_away, shim_object(t, PROPHET_ObjRwlock, l));
	return TRUE(pthread_rwlock_wrlock)(l);
}

#define RWLOCK(name, how, params, args)                     \
	static int re_##name params                         \
	{                                                   \
		struct expect *x = shim_re_of(CALL_##name); \
		return x ? how(x, l) : TRUE(name) args;     \
	}                                                   \
	STANDIN(name, re_##name)
#define UNTIL const struct timespec *restrict until
RWLOCK(pthread_rwlock_tryrdlock, reads, (pthread_rwlock_t * l), (l))
RWLOCK(pthread_rwlock_trywrlock, writes, (pthread_rwlock_t * l), (l))
RWLOCK(pthread_rwlock_timedrdlock, reads, (pthread_rwlock_t *restrict l, UNTIL), (l, until))
RWLOCK(pthread_rwlock_timedwrlock, writes, (pthread_rwlock_t *restrict l, UNTIL), (l, until))
RWLOCK(pthread_rwlock_clockrdlock, reads, (pthread_rwlock_t *restrict l, clockid_t clk, UNTIL), (l, clk, until))
RWLOCK(pthread_rwlock_clockwrlock, writes, (pthread_rwlock_t *restrict l, clockid_t clk, UNTIL), (l, clk, until))

#define RWLOCK2(name, old, how)                             \
	static int re_##name(pthread_rwlock_t *l)           \
	{                                                   \
		struct expect *x = shim_re_of(CALL_##name); \
		x = x ? x : shim_re_of(CALL_##old);         \
		return x ? how(x, l) : TRUE(name)(l);       \
	}                                                   \
	STANDIN(name, re_##name)
RWLOCK2(pthread_rwlock_rdlock, __pthread_rwlock_rdlock, reads)
RWLOCK2(pthread_rwlock_wrlock, __pthread_rwlock_wrlock, writes)

static int spin(struct expect *x, pthread_spinlock_t *l)
{
	struct thr *t = shim_self.thr;
	if (x->ret || !x->seq)
		return (int)x->ret;
	entry_turn(t, x, x->obj, x->seq, entry_away, shim_object(t, PROPHET_ObjSpin, (void *)l));
	return TRUE(pthread_spin_lock)(l);
}

#define SPIN(name)                                          \
	static int re_##name(pthread_spinlock_t *l)         \
	{                                                   \
		struct expect *x = shim_re_of(CALL_##name); \
		return x ? spin(x, l) : TRUE(name)(l);      \
	}                                                   \
	STANDIN(name, re_##name)
SPIN(pthread_spin_lock)
SPIN(pthread_spin_trylock)

/* Barriers: who has its place has arrived, and all go on when the last one has. The real one is not asked, as a handler that interrupts
 * who has arrived keeps nobody there. Where the harness is taken off before the last one has come, all of its generation go to the
 * real one. object_entry.seen has how many generations have gone on; who has gone on need not find the barrier any more. */
#define REALLY (1ull << 63)

/* x->seq: the place of the last one. */
static u64 through_away(const void *object, const struct expect *x)
{
	const struct object_entry *o = object;
	u64 seen = __atomic_load_n(&o->seen, __ATOMIC_ACQUIRE) & ~REALLY, seq = __atomic_load_n(&o->seq, __ATOMIC_ACQUIRE);
	if (seen > x->f2 || __atomic_load_n(&o->id, __ATOMIC_ACQUIRE) != x->obj)
		return 0;
	return seq < x->seq ? x->seq - seq : 1;
}

/* 0: the real one is to be asked. */
static int through(struct thr *t, const struct expect *x, struct object_entry *o, int is_last)
{
	u64 seen, want;
	int lets = is_last && !shim_re_detached(); /* else it may not have waited for its turn */
	if (!is_last)
		shim_turn(t, x, x->obj, x->seq + 1, through_away, o);
	if (!is_last && !through_away(o, x))
		return 1;
	seen = __atomic_load_n(&o->seen, __ATOMIC_ACQUIRE);
	do {
		if (seen & REALLY || seen > x->f2)
			return (seen & ~REALLY) > x->f2;
		want = lets ? x->f2 + 1 : seen | REALLY;
	} while (!__atomic_compare_exchange_n(&o->seen, &seen, want, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	if (lets)
		shim_turn_next(x->obj, x->seq);
	return lets;
}

void shim_re_arrived(const struct ev *e, struct object_entry *o, u32 count)
{
	if (e->t->re)
		e->t->re->arrival = (struct arrival){o, e->obj, e->seq, count, 0};
}

/* Whose event was not written before its process ended lets the others go on, too. */
static int re_pthread_barrier_wait(pthread_barrier_t *b)
{
	struct thr *t = shim_self.thr;
	const struct expect *x = shim_re_under_way(CALL_pthread_barrier_wait);
	struct expect all; /* of its generation */
	struct arrival a;
	int is_last, r;
	if (!x || x->kind == EXPECT_LEFT || !(a = t->re->arrival).o || !a.count)
		return TRUE(pthread_barrier_wait)(b);
	t->re->arrival.o = 0;
	all.obj = a.id;
	all.f2 = (a.seq - 1) / a.count;
	all.seq = (all.f2 + 1) * a.count;
	is_last = all.seq == a.seq;
	r = x->kind == EXPECT_EVENT ? (int)x->ret : 0;
	if (x->kind == EXPECT_EVENT && (x->obj != all.obj || x->seq != a.seq || (r != 0 && r != PTHREAD_BARRIER_SERIAL_THREAD)))
		return TRUE(pthread_barrier_wait)(b);
	if (shim_expect(&t->re->ex)->kind == EXPECT_SIGNAL)
		shim_re_signals(t, CALL_pthread_barrier_wait);
	return t->re && through(t, &all, a.o, is_last) ? r : TRUE(pthread_barrier_wait)(b);
}
STANDIN(pthread_barrier_wait, re_pthread_barrier_wait)

static int sem(struct expect *x, sem_t *s)
{
	struct thr *t = shim_self.thr;
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	entry_turn(t, x, x->obj, x->seq, entry_away, shim_object(t, PROPHET_ObjSem, s));
	while (TRUE(sem_wait)(s) != 0 && errno == EINTR)
		;
	return 0;
}

#define SEM(name, params, args)                             \
	static int re_##name params                         \
	{                                                   \
		struct expect *x = shim_re_of(CALL_##name); \
		return x ? sem(x, s) : TRUE(name) args;     \
	}                                                   \
	STANDIN(name, re_##name)
SEM(sem_wait, (sem_t * s), (s))
SEM(sem_trywait, (sem_t * s), (s))
SEM(sem_timedwait, (sem_t *restrict s, UNTIL), (s, until))
SEM(sem_clockwait, (sem_t *restrict s, clockid_t clk, UNTIL), (s, clk, until))

/* How many there are depends on posts and waits that have their places but are not done. */
static int re_sem_getvalue(sem_t *s, int *value)
{
	struct expect *x = shim_re_of(CALL_sem_getvalue);
	if (!x)
		return TRUE(sem_getvalue)(s, value);
	if (x->ret == 0)
		*value = (int)x->f2;
	return (int)shim_re_ret(x);
}
STANDIN(sem_getvalue, re_sem_getvalue)

/* Who did not run the routine comes when it has been run. */
static u64 ran_away(const void *object, const struct expect *x)
{
	u64 seq = __atomic_load_n(&((const struct object_entry *)object)->seq, __ATOMIC_ACQUIRE);
	return seq < x->f2 ? x->f2 - seq : 0;
}

/* Who ran it, or tried, comes when as many have tried before. */
static u64 tried_away(const void *object, const struct expect *x)
{
	u64 seen = __atomic_load_n(&((const struct object_entry *)object)->seen, __ATOMIC_ACQUIRE);
	return seen + 1 < x->f3 ? x->f3 - seen - 1 : 0;
}

static void await_once(struct expect *x, const void *control)
{
	struct thr *t = shim_self.thr;
	struct object_entry *o;
	if (!x)
		return;
	o = shim_object(t, PROPHET_ObjOnce, control);
	x = shim_re_ahead(x->call, o->id); /* x may be of one inside of this one, or of one that comes later */
	if (x)
		shim_turn(t, x, x->obj, 0, x->f3 ? tried_away : ran_away, o);
}

static int re_pthread_once(pthread_once_t *control, void (*routine)(void))
{
	struct expect *x = shim_re_of(CALL_pthread_once);
	await_once(x ? x : shim_re_of(CALL___pthread_once), control);
	return TRUE(pthread_once)(control, routine);
}
STANDIN(pthread_once, re_pthread_once)

static void re_call_once(once_flag *flag, void (*routine)(void))
{
	await_once(shim_re_of(CALL_call_once), flag);
	TRUE(call_once)(flag, routine);
}
STANDIN(call_once, re_call_once)

/* Who initialises a static comes when as many have tried before as had, who does not when it has been done. The C++ library may be loaded late: its functions are
 * looked up at each call. */
struct guard {
	const u32 *word;
	const struct object_entry *o;
};

static u64 guard_away(const void *object, const struct expect *x)
{
	const struct guard *g = object;
	u64 seq = __atomic_load_n(&g->o->seq, __ATOMIC_ACQUIRE);
	u32 word = __atomic_load_n(g->word, __ATOMIC_ACQUIRE);
	if (!x->ret)
		return seq < x->f2 ? x->f2 - seq : !(word & 1);
	return seq < x->f2 - 1 ? x->f2 - 1 - seq : word != 0;
}

static int is_guard(const struct expect *x, const void *guard, u64 name, const void *pc)
{
	return x->kind == EXPECT_EVENT && x->call == CALL___cxa_guard_acquire && (name ? x->obj == name : x->f1 - x->pc == (u64)guard - (u64)pc);
}

/* Whether the recorded run did not come here, as it found the static initialised. name: what the guard is called so
 * far. One without a name is told by how far it lies from the place of the call. */
int shim_re_guard_inline(const void *guard, u64 name, const void *pc)
{
	struct thr *t = shim_self.thr;
	struct expect *x;
	if (!t || !t->re)
		return 0;
	for (;;) {
		x = shim_expect(&t->re->ex);
		if (!shim_re_found_done(x) || is_guard(x, guard, name, pc))
			break;
		shim_re_pass(t);
	}
	if ((x->kind != EXPECT_EVENT && x->kind != EXPECT_END) || is_guard(x, guard, name, pc))
		return 0;
	while (!(__atomic_load_n((const u32 *)guard, __ATOMIC_ACQUIRE) & 1)) {
		if (shim_re_detached())
			return 0;
		shim_re_yield(t, name);
	}
	return 1;
}

void shim_re_guard(const void *guard, const struct object_entry *o)
{
	struct expect *x = shim_re_of(CALL___cxa_guard_acquire);
	struct guard g = {guard, o};
	if (x)
		shim_turn(shim_self.thr, x, x->obj, 0, guard_away, &g);
}
