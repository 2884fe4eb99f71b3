/* Operations on locks, conditions, semaphores and barriers: real ones, whose order nobody chooses. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

#define RELAX_SIGNAL SIGUSR1

static void init_mutex(struct object *o, const struct progobject *p)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	if (p->flags & PROPHET_ObjectRecursive)
		pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	if (p->flags & PROPHET_ObjectShared)
		pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&o->mutex, &a);
	pthread_mutexattr_destroy(&a);
}

static void init_rwlock(struct object *o, const struct progobject *p)
{
	pthread_rwlockattr_t a;
	pthread_rwlockattr_init(&a);
	if (p->flags & PROPHET_ObjectShared)
		pthread_rwlockattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(&o->rwlock, &a);
	pthread_rwlockattr_destroy(&a);
}

static void init_cond(struct object *o, const struct progobject *p)
{
	pthread_condattr_t a;
	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	if (p->flags & PROPHET_ObjectShared)
		pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&o->cond, &a);
	pthread_condattr_destroy(&a);
}

static void init_barrier(struct object *o, const struct progobject *p)
{
	pthread_barrierattr_t a;
	pthread_barrierattr_init(&a);
	if (p->flags & PROPHET_ObjectShared)
		pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&o->barrier, &a, p->value ? p->value : 1);
	pthread_barrierattr_destroy(&a);
}

void sync_init(struct object *o, const struct progobject *p)
{
	int shared = (p->flags & PROPHET_ObjectShared) != 0;
	switch (p->kind) {
	case 1:
		init_mutex(o, p);
		break;
	case 2:
		init_rwlock(o, p);
		break;
	case 3:
		init_cond(o, p);
		break;
	case 4:
		init_barrier(o, p);
		break;
	case 5:
		sem_init(&o->sem, shared, p->value);
		break;
	case 6:
		pthread_spin_init(&o->spin, shared);
		break;
	}
}

static void on_relax(int sig);

bool sync_begin(void)
{
	sigaction(RELAX_SIGNAL, &(struct sigaction){.sa_handler = on_relax, .sa_flags = SA_RESTART}, NULL);
	for (u32 i = 0; i < run.head->objects; i++)
		sync_init(object_of(i), &run.objects[i]);
	for (u32 i = 0; i < run.head->preds; i++) {
		struct object *c = object_of(run.preds[i].cond);
		run.pred[i].next = c->preds;
		c->preds = i + 1;
	}
	return true;
}

/* until is when ns from now are over. */
static struct timespec until(clockid_t clock, i64 ns)
{
	struct timespec t;
	clock_gettime(clock, &t);
	if (ns > 3600ll * 24 * 365 * 1000000000)
		ns = 3600ll * 24 * 365 * 1000000000;
	t.tv_sec += ns / 1000000000;
	t.tv_nsec += ns % 1000000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

static u64 next(struct object *o)
{
	return atomic_fetch_add_explicit(&o->seq, 1, memory_order_relaxed) + 1;
}

/* taken notes a lock that the thread has now. */
static void taken(struct self *s, struct object *o, int err)
{
	s->result = -err;
	if (!err)
		s->seq = next(o);
}

/* enough tells whether an arrival may pass; its mutex is held. */
static bool enough(const struct progpred *p, const struct pred *q, u64 arrival)
{
	switch (p->kind) {
	case PROPHET_PredQueue:
		return (i64)q->passed < p->start + (i64)(q->released * p->unit);
	case PROPHET_PredEnds:
		return q->passed < q->released;
	case PROPHET_PredBarrier:
		return q->released > arrival / p->unit;
	case PROPHET_PredKeyed: {
		i64 key = (i64)arrival + p->start;
		return key < 0 || key >= p->rows || run.keys[p->first + (u64)key];
	}
	default:
		return !p->rows || q->released >= run.rows[p->first + (arrival < p->rows ? arrival : p->rows - 1)].value;
	}
}

/* thread_of is the thread of home's whose operation that at `at` is. */
static u32 thread_of(u64 at)
{
	u32 low = 0, high = run.head->threads - 1;
	while (low < high) {
		u32 mid = low + (high - low + 1) / 2;
		if (run.threads[mid].first <= at)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/*
 * take_up goes on when the nth passes with what was done at home with the nth thing. What is left of the way that the thread was on
 * another one does, which takes what it would have taken.
 */
static void take_up(struct self *s, const struct progpred *p, u64 nth)
{
	if (nth >= p->rows || !run.rows[p->first + nth].value)
		return;
	s->next = run.rows[p->first + nth].value;
	s->as = thread_of(s->next);
	s->home = NULL;
}

/* ended is what the nth to hear of a thread's end does: as home's nth, but for who it is that it joins. */
static void ended(struct self *s, const struct progpred *p, u64 nth)
{
	if (nth >= p->rows)
		return;
	u64 item = run.items[p->first + nth] - 1;
	s->join = run.rows[p->first + nth].value;
	s->join_as = item < p->rows ? run.rows[p->first + item].value : s->join;
	s->joins = 0;
}

/* wait_for waits, with the predicate's mutex held, until it may pass, or its time is over. */
static void wait_for(struct self *s, const struct progop *op)
{
	u32 n = (u32)op->a;
	const struct progpred *p = &run.preds[n];
	struct pred *q = &run.pred[n];
	struct object *c = object_of(p->cond), *m = object_of(p->mutex);
	u64 arrival = p->kind == PROPHET_PredBarrier ? q->arrived - 1 : q->arrived++;
	u32 relax = atomic_load_explicit(&run.shared->relax, memory_order_relaxed);
	struct timespec end;
	int err = 0;
	if (op->b > 0)
		end = until(CLOCK_MONOTONIC, op->b);
	q->waiting++;
	while (!err && !enough(p, q, arrival)) {
		err = op->b > 0 ? pthread_cond_timedwait(&c->cond, &m->mutex, &end) : pthread_cond_wait(&c->cond, &m->mutex);
		s->seq = next(m);
		if (atomic_load_explicit(&run.shared->stop, memory_order_relaxed))
			break;
		if (atomic_load_explicit(&run.shared->relax, memory_order_relaxed) != relax) {
			s->state->forced++;
			s->guessed = true;
			break;
		}
	}
	q->waiting--;
	s->came = n + 1;
	if (err) {
		/* One that was not over in time at home, or is no part of the thread's own way, is tried again: it does not count as an arrival. */
		if (p->kind != PROPHET_PredBarrier && (s->home || op->want != -err))
			q->arrived--;
		u64 done = atomic_load_explicit(&s->state->done, memory_order_relaxed);
		if (s->late == n + 1)
			atomic_fetch_add_explicit(&s->state->idle, done - s->since, memory_order_relaxed);
		s->late = n + 1;
		s->since = done;
	} else {
		s->late = 0;
		if (p->kind == PROPHET_PredQueue && p->rows)
			take_up(s, p, q->passed);
		else if (p->kind == PROPHET_PredEnds)
			ended(s, p, q->passed);
		q->passed++;
	}
	s->result = -err;
}

/* release lets arrivals of a condition's predicates pass. Its mutex is held by the thread, as the program would have it. */
static void release(struct self *s, struct object *c, const struct progop *op)
{
	for (u32 i = c->preds; i; i = run.pred[i - 1].next) {
		const struct progpred *p = &run.preds[i - 1];
		if ((p->own == PROPHET_OwnSection && s->came == i) || (p->own == PROPHET_OwnThread && s->as == p->lone))
			continue;
		struct pred *q = &run.pred[i - 1];
		if (p->kind == PROPHET_PredEnds) {
			if (op->want > 0 && op->want <= p->rows && q->released < p->rows)
				run.items[p->first + q->released++] = (u32)op->want;
			continue;
		}
		q->released++;
		if (p->kind == PROPHET_PredKeyed && op->b > 0 && op->b <= p->rows)
			run.keys[p->first + (u64)op->b - 1] = 1;
	}
}

/*
 * A signal wakes one, who may be one that may not pass yet while another may: then all are woken. Only of a queue, where each
 * may pass that comes first, is one enough.
 */
static void wake(struct object *c, bool all)
{
	for (u32 i = c->preds; i && !all; i = run.pred[i - 1].next)
		all = run.preds[i - 1].kind != PROPHET_PredQueue || run.preds[i - 1].unit != 1 || run.pred[i - 1].next;
	if (all)
		pthread_cond_broadcast(&c->cond);
	else
		pthread_cond_signal(&c->cond);
}

void sync_issue(struct self *s, const struct progop *op)
{
	struct object *o = object_of(op->obj);
	struct timespec end;
	switch (op->code) {
	case PROPHET_OpLock:
		taken(s, o, pthread_mutex_lock(&o->mutex));
		break;
	case PROPHET_OpUnlock:
		s->came = 0;
		s->result = -pthread_mutex_unlock(&o->mutex);
		break;
	case PROPHET_OpTrylock:
		taken(s, o, pthread_mutex_trylock(&o->mutex));
		break;
	case PROPHET_OpTimedlock:
		end = until(CLOCK_MONOTONIC, op->a);
		taken(s, o, pthread_mutex_clocklock(&o->mutex, CLOCK_MONOTONIC, &end));
		break;
	case PROPHET_OpRdlock:
		s->result = -pthread_rwlock_rdlock(&o->rwlock);
		s->seq = atomic_load_explicit(&o->seq, memory_order_relaxed);
		break;
	case PROPHET_OpWrlock:
		taken(s, o, pthread_rwlock_wrlock(&o->rwlock));
		break;
	case PROPHET_OpTryrdlock:
		s->result = -pthread_rwlock_tryrdlock(&o->rwlock);
		break;
	case PROPHET_OpTrywrlock:
		taken(s, o, pthread_rwlock_trywrlock(&o->rwlock));
		break;
	case PROPHET_OpRwunlock:
		s->result = -pthread_rwlock_unlock(&o->rwlock);
		break;
	case PROPHET_OpSpinlock:
		taken(s, o, pthread_spin_lock(&o->spin));
		break;
	case PROPHET_OpSpintry:
		taken(s, o, pthread_spin_trylock(&o->spin));
		break;
	case PROPHET_OpSpinunlock:
		s->result = -pthread_spin_unlock(&o->spin);
		break;
	case PROPHET_OpBarrier:
		pthread_barrier_wait(&o->barrier);
		s->seq = next(o);
		break;
	case PROPHET_OpSemwait:
		while ((s->result = sem_wait(&o->sem) ? -errno : 0) == -EINTR)
			;
		s->seq = next(o);
		break;
	case PROPHET_OpSemtry:
		s->result = sem_trywait(&o->sem) ? -errno : 0;
		if (!s->result)
			s->seq = next(o);
		break;
	case PROPHET_OpSemtimed:
		end = until(CLOCK_MONOTONIC, op->a);
		s->result = sem_clockwait(&o->sem, CLOCK_MONOTONIC, &end) ? -errno : 0;
		if (!s->result)
			s->seq = next(o);
		break;
	case PROPHET_OpSempost:
		s->seq = next(o);
		s->result = sem_post(&o->sem) ? -errno : 0;
		break;
	case PROPHET_OpWait:
		wait_for(s, op);
		break;
	case PROPHET_OpRelease:
		release(s, o, op);
		break;
	case PROPHET_OpSignal:
	case PROPHET_OpBroadcast:
		s->seq = next(o);
		if (!op->a)
			release(s, o, op);
		if (run.strict)
			order_wake(o, op->code == PROPHET_OpBroadcast);
		else
			wake(o, op->code == PROPHET_OpBroadcast);
		break;
	}
}

/*
 * sync_relax lets every wait end, as nothing else moves. Only a process itself reaches who waits in it for conditions of its own,
 * so all of the engine's group are sent a signal. Its handler runs in a thread that sleeps in some call, and so in none of these here.
 */
void sync_relax(void)
{
	atomic_fetch_add(&run.shared->relax, 1);
	kill(0, RELAX_SIGNAL);
}

/* sync_blame has all processes note who has what their threads wait for. Nobody goes on after it. */
void sync_blame(void)
{
	kill(0, RELAX_SIGNAL);
}

/* holder is the thread of the kernel's that has what an operation waits for; 0: not known. */
static u32 holder(const struct progop *op)
{
	switch (op->code) {
	case PROPHET_OpLock:
		return (u32)object_of(op->obj)->mutex.__data.__owner;
	case PROPHET_OpRdlock:
	case PROPHET_OpWrlock:
		return (u32)object_of(op->obj)->rwlock.__data.__cur_writer;
	case PROPHET_OpJoin:
		return atomic_load(&run.state[op->obj].tid);
	}
	return 0;
}

/* blame notes who has what the threads of this process wait for. */
static void blame(void)
{
	u32 self = (u32)syscall(SYS_gettid), proc = 0;
	for (u32 i = 0; i < run.head->threads; i++)
		if (atomic_load(&run.state[i].tid) == self)
			proc = run.threads[i].proc;
	for (u32 i = 0; i < run.head->threads; i++) {
		struct state *s = &run.state[i];
		if (run.threads[i].proc != proc || !atomic_load(&s->runs))
			continue;
		u32 tid = holder(&run.ops[atomic_load(&s->at)]);
		for (u32 k = 0; tid && k < run.head->threads; k++)
			if (k != i && atomic_load(&run.state[k].tid) == tid) /* who has just got it does not wait */
				atomic_store(&s->on, k + 1);
	}
}

static void on_relax(int sig)
{
	(void)sig;
	int err = errno;
	blame();
	for (u32 i = 0; i < run.head->objects; i++)
		if (run.objects[i].kind == 3)
			pthread_cond_broadcast(&object_of(i)->cond);
	errno = err;
}
