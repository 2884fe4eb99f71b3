/* See replay.h. */
#include "family.h"
#include "modules.h"
#include "side.h"
#include "step.h"
#include "token.h"
#include "zreplay.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

extern const struct standin __start_standins[] HIDDEN, __stop_standins[] HIDDEN, __start_printed[] HIDDEN, __stop_printed[] HIDDEN;

static void *true_table[CALLS_MAX];

/* Takes the real function's place in the table for a moment only while there is one thread: the resolver writes there. */
void *shim_true(u32 call)
{
	void *f = __atomic_load_n(&true_table[call], __ATOMIC_ACQUIRE);
	if (likely(f != 0))
		return f;
	f = shim_lookup(call);
	__atomic_store_n(&true_table[call], f, __ATOMIC_RELEASE);
	return f;
}

int shim_re_boot(const char *index)
{
	const struct standin *s;
	int r = shim_index_map(index);
	if (r)
		return r;
	if (shim_re_detached())
		return 0; /* the program goes on freely, and so does this one */
	if (!__atomic_exchange_n(&shim_index->rooted, 1, __ATOMIC_ACQ_REL))
		shim_fd_outside();
	shim_fd_strangers();
	shim_replays = 1;
	for (s = __start_printed; s < __stop_printed; s++)
		shim_real_table[s->call] = (u8 *)&s->away + s->away;
	for (s = __start_standins; s < __stop_standins; s++)
		shim_real_table[s->call] = (u8 *)&s->away + s->away;
	shim_re_guards();
	shim_family_begin(index);
	return 0;
}

/* A thread that was killed before it could say anything: its creation names it. */
static u32 unseen_thread(void)
{
	struct thr *t = shim_self.thr;
	const struct expect *x = t && t->re ? t->re->x : 0;
	u32 uid = x && x->kind == EXPECT_EVENT && !(x->obj & 0xffffffffffull) ? (u32)(x->obj >> 40) : 0;
	return uid && (uid >= shim_index->threads || !shim_index_threads()[uid].uid) ? uid : 0;
}

u32 shim_re_uid(u32 parent, u32 nth, u32 how)
{
	struct replaythread *th = shim_index_threads();
	u32 i;
	for (i = 1; i < shim_index->threads; i++) {
		u32 none = 0;
		if (th[i].uid && th[i].parent == parent && th[i].nth == nth && th[i].how == how &&
		    (how != PROPHET_ThreadFound || th[i].proc == shim_run.proc) && (how != PROPHET_ThreadMain || th[i].proc == shim_run.proc) &&
		    __atomic_compare_exchange_n(&th[i].now, &none, ~0u, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return i;
	}
	return how == PROPHET_ThreadCreated ? unseen_thread() : 0;
}

void shim_re_uncreated(u32 uid)
{
	if (uid && uid < shim_index->threads)
		__atomic_store_n(&shim_index_threads()[uid].now, 0, __ATOMIC_RELEASE);
}

/* A parent may have made a silent child of this number before it became another program itself: the pid tells which,
 * else the order they came in. */
u32 shim_re_proc(u32 parent, u32 uid, u32 nth, u32 how)
{
	struct replayproc *p = shim_index_procs();
	u32 i, round;
	for (round = 0; round < 2; round++)
		for (i = 0; i < shim_index->procs; i++) {
			u32 none = 0;
			if (p[i].how != how || (how != PROPHET_ProcRoot && (p[i].parent != parent || p[i].uid != uid || p[i].nth != nth)))
				continue;
			if (!round && shim_id_now(PROPHET_IDTask, p[i].pid) != (u64)sys(SYS_getpid))
				continue;
			if (!__atomic_compare_exchange_n(&p[i].claimed, &none, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				continue;
			shim_family_came(&p[i]);
			return p[i].number;
		}
	return ~0u;
}

int shim_re_forks(u32 parent, u32 uid, u32 nth)
{
	const struct replayproc *p = shim_index_procs();
	u32 i;
	for (i = 0; i < shim_index->procs; i++)
		if (p[i].how == PROPHET_ProcForked && p[i].parent == parent && p[i].uid == uid && p[i].nth == nth && !p[i].claimed)
			return 1;
	return 0;
}

int shim_re_thread(struct thr *t)
{
	struct replaythread *th;
	long p = (long)t->re;
	if (!p) {
		p = sys(SYS_mmap, shim_apart(sizeof *t->re), sizeof *t->re, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p < 0 && p > -4096)
			return (int)p;
		t->re = (struct re *)p;
	}
	if (!t->uid)
		return -ESRCH;
	th = &shim_index_threads()[t->uid];
	while (t->uid >= shim_index->threads || !th->uid) /* unseen_thread */
		TRUE(pause)();
	t->re->th = th;
	t->re->x = 0;
	t->re->path_len = t->re->injected = 0;
	t->re->turn = 0;
	t->re->fd_next = 0;
	t->re->fd_taken = 0;
	shim_expect_begin(&t->re->ex, th);
	t->re->ex.careful = t->re->ex.serial || th->starts || shim_index->flags & PROPHET_ReplayLearn;
	th->now = (u32)sys(SYS_gettid);
	shim_id_is(PROPHET_IDTask, th->tid, th->now);
	if (th->now != th->tid && th->how == PROPHET_ThreadCreated)
		__atomic_add_fetch(&shim_index->pids, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&th->state, PROPHET_TurnRuns, __ATOMIC_RELEASE);
	shim_re_look(t);
	return 0;
}

/* Does not come back, unless by cancellation: the world has stopped, or the process ends, here or elsewhere. */
void shim_re_stop(struct thr *t, u32 state)
{
	struct replaythread *th = t->re ? t->re->th : 0;
	if (th)
		__atomic_store_n(&th->state, state, __ATOMIC_RELEASE);
	__atomic_store_n(&t->slot->parked, PROPHET_ParkedHeld, __ATOMIC_RELEASE);
	for (;;)
		shim_re_wait_for_end(t, state);
}

/* What came, for the report. Runs once, on the way to the end: it may be slow. */
static void tell_came(struct replayreport *r, const struct re *re)
{
	const struct ev *e = re->came;
	u8 *p = r->tail, *end = p + sizeof r->tail;
	const u8 *first;
	u64 n, at = 0;
	u32 i;
	r->camepc = (u64)e->pc;
	r->cameo = e->obj;
	r->whole = re->whole;
	if (!re->whole)
		return;
	r->cameret = (u64)e->ret;
	r->camef[0] = e->f1;
	r->camef[1] = e->f2;
	r->camef[2] = e->f3;
	r->cameseq = e->seq;
	r->camenote = e->note;
	for (i = 0; i < e->nparts; i++) {
		const struct part *s = &e->part[i];
		if (s->kind == PART_NUM) {
			if (end - p < 16)
				break;
			p = put_v(p, s->n);
			continue;
		}
		if ((u64)(end - p) < s->n + 24)
			break;
		if (s->kind == PART_PATH)
			p = put_v(p, 0);
		p = put_v(p, s->n);
		shim_copy(p, s->p, s->n);
		p += s->n;
	}
	r->taillen = (u32)(p - r->tail);
	if (!e->data_kind)
		return;
	r->datalen = e->data_len;
	r->dataat = re->differs_at;
	if (!(e->data_kind & DATA_PIECES)) {
		r->datahash = shim_hash64(e->data, e->data_len, 0);
		r->hashed = 1;
		at = re->differs_at < e->data_len ? re->differs_at : e->data_len;
		first = (const u8 *)e->data + at;
		n = e->data_len - at;
		shim_copy(r->data, first, n < sizeof r->data ? n : sizeof r->data);
		return;
	}
	first = ((const struct iovec *)e->data)->iov_base;
	n = ((const struct iovec *)e->data)->iov_len;
	n = n < e->data_len ? n : e->data_len;
	r->dataat = 0;
	shim_copy(r->data, first, n < sizeof r->data ? n : sizeof r->data);
}

/* A trace that cannot be read on, and a thread whose maker the trace does not know, leave nothing to go on from. */
static int goes_on(const struct thr *t, u32 what)
{
	return shim_index->flags & PROPHET_ReplayLearn && t->re && what != PROPHET_DiffersTrace && what != PROPHET_DiffersThread;
}

void shim_re_differs(struct thr *t, const struct expect *x, u32 what, u32 got, u64 want_v, u64 got_v, const char *text)
{
	struct replayreport *r = &shim_index->report;
	u32 none = 0, learns = goes_on(t, what);
	if (learns && shim_re_detached())
		return;
	if (__atomic_compare_exchange_n(learns ? &shim_index->parted : &shim_index->diverged, &none, t->uid ? t->uid : ~0u, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		struct text s;
		if (!learns)
			__atomic_or_fetch(&shim_index->hold, PROPHET_HoldDiverged, __ATOMIC_ACQ_REL);
		r->uid = t->uid;
		r->proc = t->proc;
		r->event = t->re && t->re->th ? t->re->th->event : 0;
		r->what = what;
		r->want = x && x->kind == EXPECT_EVENT ? x->call : 0;
		r->came = got;
		r->wantv = want_v;
		r->camev = got_v;
		r->wanto = x && x->kind == EXPECT_EVENT ? x->obj : 0;
		shim_text(&s, (char *)r->text, sizeof r->text);
		shim_put(&s, text ? text : "");
		if (t->re && t->re->came)
			tell_came(r, t->re);
		__atomic_store_n(&shim_index->reported, 1, __ATOMIC_RELEASE);
		sys(SYS_futex, &shim_index->reported, FUTEX_WAKE, 0x7fffffff, 0, 0, 0);
	}
	if (!learns)
		shim_re_stop(t, PROPHET_TurnStopped);
	shim_re_stand(t);
}

int shim_re_mine(const struct thr *t)
{
	const struct expect *x = t->re ? t->re->x : 0;
	return !x || x->kind != EXPECT_EVENT || x->obj >> 40 == t->uid || x->f2 >> 40 == t->uid;
}

void shim_re_nap(struct thr *t, u64 object, u64 turn, u64 away, const struct timespec *ts)
{
	u32 was;
	if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
		shim_re_stop(t, PROPHET_TurnWaits);
	was = t->re->th->state;
	t->re->th->object = object;
	t->re->th->turn = turn;
	t->re->th->at = away;
	__atomic_store_n(&t->re->th->state, PROPHET_TurnWaits, __ATOMIC_RELEASE);
	sys(SYS_nanosleep, ts, 0);
	shim_park();
	__atomic_store_n(&t->re->th->state, was, __ATOMIC_RELEASE);
}

void shim_re_yield(struct thr *t, u64 object)
{
	struct timespec ts = {0, 20000};
	shim_re_nap(t, object, 0, 0, &ts);
}

/* A recording would say here that a call was left. The trace does, or its thread came to no further call. */
void shim_re_record(struct thr *t, u32 tag)
{
	if (tag == PROPHET_TagLeft && t->re && shim_expect(&t->re->ex)->kind == EXPECT_LEFT)
		shim_expect_drop(&t->re->ex);
}

/* Whether the kernel is done with a thread; the first one stays as a zombie until the others are gone. */
static int gone(u32 tid)
{
	char b[256];
	long fd, r, i;
	if (!tid || tid == ~0u)
		return 0; /* it has not begun */
	if (tid != shim_run.pid)
		return sys(SYS_tgkill, shim_run.pid, tid, 0) != 0;
	fd = sys(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 1;
	r = sys(SYS_read, fd, b, sizeof b);
	sys(SYS_close, fd);
	for (i = r - 3; i > 0 && b[i] != ')'; i--)
		;
	return i <= 0 || b[i + 2] == 'Z';
}

/* The last thread ends the process: the one that did so waits until the others are gone. */
void shim_re_last_thread(struct thr *t)
{
	struct replaythread *th = shim_index_threads();
	struct timespec ts = {0, 100000};
	u32 i, at;
	for (at = 0;; at++) {
		const struct expect *x = shim_expect_at(&t->re->ex, at);
		if (!x || x->kind == EXPECT_END || x->kind == EXPECT_BAD)
			return;
		if (x->kind == EXPECT_EXIT)
			break;
	}
	for (i = 1; i < shim_index->threads; i++)
		while (th[i].uid && th[i].proc == t->proc && i != t->uid && th[i].how != PROPHET_ThreadFound && !gone(th[i].now)) {
			if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
				shim_re_stop(t, PROPHET_TurnStopped);
			if (shim_re_detached())
				return;
			sys(SYS_nanosleep, &ts, 0);
			shim_park();
		}
}

/* Whether events are left that a thread that ends has not asked for. */
static void look_left(struct thr *t)
{
	struct expect *x;
	u32 i;
	for (i = 0; (x = shim_expect_at(&t->re->ex, i)) && x->kind != EXPECT_EVENT && x->kind != EXPECT_END && x->kind != EXPECT_BAD; i++)
		;
	t->re->th->left = x && x->kind != EXPECT_END;
}

/* What the trace has behind the last that a thread asked for. A signal that came there can come no later. */
static const struct expect *behind_last(struct thr *t)
{
	const struct expect *x;
	for (;;) {
		x = shim_expect(&t->re->ex);
		if (x->kind == EXPECT_TOKEN)
			shim_token_here(t);
		else if (shim_re_found_done(x))
			shim_re_pass(t);
		else if (x->kind == EXPECT_MARK || x->kind == EXPECT_FORK)
			shim_expect_drop(&t->re->ex);
		else if (x->kind == EXPECT_SIGNAL && !x->call && !shim_re_is_fault(x) && !shim_re_detached())
			shim_re_deliver(t);
		else
			return x;
	}
}

void shim_re_ending(struct thr *t)
{
	behind_last(t);
	if (unlikely(t->re->th->starts))
		shim_re_fires(t, ~0ull, 1);
	shim_re_last_thread(t);
	look_left(t);
	__atomic_store_n(&t->re->th->state, PROPHET_TurnOver, __ATOMIC_RELEASE);
}

/* Whether the thread is where it was when its process ended. */
static int arrived(struct replaythread *th)
{
	u32 state = __atomic_load_n(&th->state, __ATOMIC_ACQUIRE);
	if (state == PROPHET_TurnEnd || (state == PROPHET_TurnOver && !__atomic_load_n(&th->left, __ATOMIC_ACQUIRE)) ||
	    __atomic_load_n(&th->spent, __ATOMIC_ACQUIRE) == 1)
		return 1;
	if (th->how == PROPHET_ThreadFound && th->now && sys(SYS_tgkill, shim_run.pid, th->now, 0) == -ESRCH) {
		__atomic_store_n(&th->state, PROPHET_TurnOver, __ATOMIC_RELEASE); /* no routine of ours sees its end */
		return 1;
	}
	return 0;
}

#define AWAIT_NS 3000000000ull /* for a thread that runs and comes to no event: it may compute, or spin, behind its last one */
#define AWAIT_TURN_NS 1000000000ull /* for turns that nobody gives: each was written on its own, when all still ran on */

/* Where all threads of all processes wait for turns nobody can give one. */
static int all_wait(const struct thr *t)
{
	const struct replaythread *th = shim_index_threads();
	u32 i, state;
	for (i = 1; i < shim_index->threads; i++) {
		state = th[i].uid && i != t->uid ? __atomic_load_n(&th[i].state, __ATOMIC_ACQUIRE) : PROPHET_TurnNone;
		if (state != PROPHET_TurnNone && state != PROPHET_TurnWaits && state != PROPHET_TurnEnd && state != PROPHET_TurnOver)
			return 0;
	}
	return 1;
}

void shim_re_await(struct thr *t)
{
	struct replaythread *th = shim_index_threads();
	u64 since = 0, events = 0, now, sum;
	u32 i, away, waits;
	for (;;) {
		struct timespec ts = {0, 50000}, m;
		for (i = 1, away = waits = 0, sum = 0; i < shim_index->threads; i++) {
			sum += th[i].event;
			if (th[i].uid && th[i].proc == t->proc && i != t->uid && !arrived(&th[i])) {
				away++;
				waits += th[i].state != PROPHET_TurnRuns;
			}
		}
		if (!away || shim_re_detached())
			return;
		if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
			shim_re_stop(t, PROPHET_TurnStopped);
		sys(SYS_clock_gettime, CLOCK_MONOTONIC, &m);
		now = (u64)m.tv_sec * 1000000000u + (u64)m.tv_nsec;
		if (!since || sum != events || (waits && !all_wait(t)))
			since = now;
		if (now - since > (waits ? AWAIT_TURN_NS : AWAIT_NS)) {
			t->re->alone = waits != 0;
			return;
		}
		events = sum;
		sys(SYS_nanosleep, &ts, 0);
		shim_park();
	}
}

/* Threads that still ran when the process ended did so up to some event each: they get there first. What is recorded
 * behind its end is what the C library still does. */
void shim_re_others(struct thr *t)
{
	shim_token_give(t);
	__atomic_store_n(&t->re->th->state, PROPHET_TurnOver, __ATOMIC_RELEASE);
	shim_re_await(t);
}

/* A process that is on its way to its own end may be killed there: after the last of what it still did. */
static void killed_here(struct thr *t)
{
	if (t->re->exiter && !t->re->th->left && shim_family_dies(t->proc))
		shim_re_end(t);
}

void shim_re_exit(struct thr *t, u32 how, i64 status)
{
	const struct expect *x;
	t->re->exiter = 1;
	x = behind_last(t);
	if (x->kind == EXPECT_EVENT)
		shim_re_differs(t, x, PROPHET_DiffersLess, 0, how, (u64)status, "");
	if (x->kind == EXPECT_EXIT && (x->f1 != how || x->ret != status))
		shim_re_differs(t, x, PROPHET_DiffersExit, how, (u64)x->ret, (u64)status, "");
	if (x->kind == EXPECT_END && !shim_re_detached()) /* it did not come to that: another thread ended the process, or a signal */
		shim_re_end(t);
	if (shim_re_detached()) {
		shim_re_off(t);
		return;
	}
	look_left(t);
	if (unlikely(t->re->th->starts))
		shim_re_fires(t, ~0ull, 1);
	shim_re_others(t);
	killed_here(t);
}

/* An inner event may come before that of the call it belongs to, and be one of the same function: the call site tells which, where
 * code lies where it lay; pc is 0 for any. */
static struct expect *ahead(struct expects *q, u32 call, u64 pc)
{
	struct expect *first = 0;
	u32 i;
	for (i = 0;; i++) {
		struct expect *x = shim_expect_at(q, i);
		if (!x || x->kind == EXPECT_END || x->kind == EXPECT_BAD)
			return first;
		if ((x->kind != EXPECT_EVENT && x->kind != EXPECT_LEFT) || x->call != call || x->taken)
			continue;
		if (!pc || x->kind == EXPECT_LEFT || shim_expect_pc(x) == pc)
			return !pc || x->kind == EXPECT_EVENT || !first ? x : first;
		first = first ? first : x;
	}
}

void shim_re_pass(struct thr *t)
{
	u64 token = shim_expect(&t->re->ex)->token;
	shim_expect_drop(&t->re->ex);
	__atomic_store_n(&t->re->th->event, t->re->th->event + 1, __ATOMIC_RELEASE);
	if (unlikely(token))
		shim_token_take(t, token);
}

struct expect *shim_re_ahead(u32 call, u64 obj)
{
	struct thr *t = shim_self.thr;
	u32 i;
	for (i = 0; t && t->re; i++) {
		struct expect *x = shim_expect_at(&t->re->ex, i);
		if (!x || x->kind == EXPECT_END || x->kind == EXPECT_BAD)
			break;
		if (x->kind == EXPECT_EVENT && x->call == call && (!obj || x->obj == obj))
			return x;
	}
	return 0;
}

/* A call begins, so the turn is over; but first come signals that came in it. Who handled one without the token took it
 * for that. */
static void turn_over(struct thr *t)
{
	struct expects *q = &t->re->ex;
	struct expect *x, *next;
	while (t->re->turn && (x = shim_expect(q))->kind != EXPECT_EVENT) {
		if (x->kind == EXPECT_MARK || x->kind == EXPECT_FORK)
			shim_expect_drop(q);
		else if (x->kind == EXPECT_SIGNAL && !x->call && (!(next = shim_expect_at(q, 1)) || next->kind != EXPECT_TOKEN))
			shim_re_deliver(t);
		else
			break;
	}
	shim_token_give(t);
}

/* Another call than the one expected. Comes back when the harness is off: the thread records. */
static NOINLINE int call_differs(struct ev *e, const struct expect *x, u32 what, u32 whole)
{
	struct re *re = e->t->re;
	re->came = e;
	re->whole = whole;
	shim_re_differs(e->t, x, what, e->call, 0, 0, "");
	shim_re_off(e->t);
	return 0;
}

/* Where it is to be learnt from, another place in the program that makes the same call differs, too: what the trace has
 * would be no answer to it. How far a module lies from where it lay is taken from the first call that it makes. */
static int elsewhere(const struct ev *e, const struct expect *x)
{
	static u64 away[MODULES_MAX];
	u64 by = (u64)e->pc - shim_expect_pc(x), none = 0;
	u32 m;
	if (likely(!(shim_index->flags & PROPHET_ReplayLearn)) || (m = shim_module_at((u64)e->pc)) == ~0u)
		return 0;
	by = by * 2 + 1; /* never 0 */
	return !__atomic_compare_exchange_n(&away[m], &none, by, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) && none != by;
}

/* The routine takes the token that comes next. */
static int runs_routine(u32 call)
{
	return call == CALL_pthread_once || call == CALL___pthread_once || call == CALL_call_once;
}

/* A vforked child did no more. That it was in a call then its parent said, in which nothing of this is to be found. */
static int vfork_over(struct expects *q)
{
	struct expect *x = shim_expect(q), *next = x->kind == EXPECT_LEFT ? shim_expect_at(q, 1) : x;
	if (!next || (next->kind != EXPECT_END && (next->kind != EXPECT_EVENT || next->note & PROPHET_NoteVforked)))
		return 0;
	if (x->kind == EXPECT_LEFT)
		shim_expect_drop(q);
	return 1;
}

int shim_re_begin(struct ev *e)
{
	struct thr *t = e->t;
	struct re *re = t->re;
	struct expect *x;
	e->begin = t->last; /* no time passes: nothing is written */
	e->turn = 0;
	re->busy = 1;
	re->th->call = e->call;
	if (unlikely(re->step.on))
		shim_step_end(t);
	if (unlikely(re->th->starts))
		shim_re_fires(t, re->th->event, 1);
	if (unlikely(re->th->cancel == 2))
		shim_re_not_cancelled(t);
	if (unlikely(__atomic_load_n(&shim_index->hold, __ATOMIC_ACQUIRE) && shim_re_hold(t, 0)))
		return shim_re_off(t), 0;
	for (;;) {
		if (unlikely(re->turn) && !(e->note & PROPHET_NoteVforked) && !e->held) {
			turn_over(t);
			if (!(re = t->re))
				return 0;
		}
		re->th->call = e->call; /* again, where calls of handlers are over */
		if (unlikely(__atomic_load_n(&shim_index->hold, __ATOMIC_ACQUIRE) && shim_re_hold(t, 0)))
			return shim_re_off(t), 0;
		x = shim_expect(&re->ex);
		if (unlikely(e->note & PROPHET_NoteVforked) && vfork_over(&re->ex))
			shim_re_vfork_ends(t);
		if (likely(x->kind == EXPECT_EVENT && x->call == e->call))
			break; /* taken or not: by one that was left, or by one outside of this one, which finds its own when it is done */
		if (x->kind == EXPECT_SIGNAL) {
			shim_side_inside(t, 0);
			if (x->call != e->call || !(shim_re_flags[e->call] & RE_MASKED || shim_side_frees(t, e->call) || shim_re_is_fault(x))) {
				shim_re_deliver(t);
				re = t->re; /* a child that the handler forked has its own */
				continue;
			}
			re->x = e->x = shim_side_outer(t, e->call); /* none, when it was left: by a jump, or for good */
			if (e->x)
				e->x->taken = 1;
			return 1;
		}
		if (shim_re_found_done(x)) {
			shim_re_pass(t);
			continue;
		}
		if (x->kind == EXPECT_FORK)
			re->vforked = (u32)x->f2;
		if (x->kind == EXPECT_EXIT && x->f1 != PROPHET_ExitExec && re->th->state != PROPHET_TurnOver)
			return call_differs(e, x, PROPHET_DiffersMore, 0);
		if (x->kind == EXPECT_TOKEN && !runs_routine(e->call)) { /* it was pre-empted before it came here */
			shim_token_here(t);
			continue;
		}
		if (x->kind == EXPECT_MARK || x->kind == EXPECT_FORK || x->kind == EXPECT_EXIT) {
			shim_expect_drop(&re->ex);
			continue;
		}
		if (x->kind == EXPECT_LEFT) {
			if (x->call != e->call || re->handlers) {
				shim_expect_drop(&re->ex); /* a handler jumped out of it */
				continue;
			}
			shim_re_cancelled(t);
			break;
		}
		if (x->kind == EXPECT_BAD)
			return call_differs(e, x, PROPHET_DiffersTrace, 0);
		if (x->kind == EXPECT_END && re->exiter && !shim_family_dies(t->proc))
			return call_differs(e, x, PROPHET_DiffersMore, 0);
		if (x->kind == EXPECT_END && shim_re_flags[e->call] & RE_LETS) {
			re->last = e->call;
			re->x = e->x = x;
			__atomic_store_n(&re->th->state, PROPHET_TurnEnd, __ATOMIC_RELEASE);
			return 1;
		}
		if (x->kind == EXPECT_END && shim_re_flags[e->call] & RE_MAKES && shim_re_makes(t)) {
			re->x = e->x = x; /* it ended inside */
			return 1;
		}
		if (x->kind == EXPECT_END && !(shim_re_flags[e->call] & RE_NESTS)) {
			shim_token_give(t);
			shim_re_end(t);
			return shim_re_off(t), 0;
		}
		if (shim_re_flags[e->call] & RE_NESTS) {
			re->x = e->x = ahead(&re->ex, e->call, (u64)e->pc);
			if (e->x)
				e->x->taken = 1;
			return 1; /* one that the trace does not have will be left, or differ when it is done */
		}
		shim_re_maybe_cancelled(t);
		return call_differs(e, x, PROPHET_DiffersCall, 0);
	}
	if (unlikely(__atomic_load_n(&shim_index->hold, __ATOMIC_ACQUIRE) && shim_re_hold(t, x)))
		return shim_re_off(t), 0;
	if (unlikely(elsewhere(e, x)))
		return call_differs(e, x, PROPHET_DiffersCall, 0);
	x->taken = 1;
	re->x = e->x = x;
	return 1;
}

static int same_bytes(const void *a, const void *b, u64 n)
{
	return __builtin_memcmp(a, b, n) == 0;
}

/* Compares one text of a tail. A path is told from the one before it. */
static int same_text(struct re *re, const struct part *s, const u8 **p, const u8 *end)
{
	const u8 *c = s->p;
	u64 n = s->n > PROPHET_TailMax / 2 ? PROPHET_TailMax / 2 : s->n, shared = 0, len;
	if (s->kind == PART_PATH)
		shared = shim_get_v(p, end);
	len = shim_get_v(p, end);
	if (shared > re->path_len || len > (u64)(end - *p) || shared + len != n)
		return 0;
	if (!same_bytes(c, re->path, shared) || !same_bytes(c + shared, *p, len))
		return 0;
	*p += len;
	return 1;
}

static void keep_path(struct re *re, const struct part *s)
{
	re->path_len = s->n < sizeof re->path ? (u32)s->n : (u32)sizeof re->path;
	shim_copy(re->path, s->p, re->path_len);
}

int shim_re_path(const struct expect *x, char *buf, u64 n)
{
	const struct re *re = shim_self.thr->re;
	const u8 *p = x->tail, *end = p + x->tail_len;
	u64 shared = shim_get_v(&p, end), len = shim_get_v(&p, end);
	if (shared > (x->fresh ? 0 : re->path_len) || len > (u64)(end - p) || shared + len != n)
		return 0;
	shim_copy(buf, re->path, shared);
	shim_copy(buf + shared, p, len);
	return 1;
}

static u32 tail_differs(struct re *re, const struct ev *e, const struct expect *x, const char **text)
{
	const u8 *p = x->tail, *end = p + x->tail_len;
	u32 i;
	if (x->fresh)
		re->path_len = 0;
	for (i = 0; i < e->nparts; i++) {
		const struct part *s = &e->part[i];
		if (s->kind == PART_NUM) {
			u64 v = shim_get_v(&p, end);
			if (v != s->n && !(shim_re_flags[e->call] & RE_SKIP_TAIL))
				return PROPHET_DiffersText;
		} else {
			int same = same_text(re, s, &p, end);
			if (s->kind == PART_PATH)
				keep_path(re, s);
			if (!same && !(shim_re_flags[e->call] & RE_SKIP_TAIL)) {
				*text = s->p;
				return PROPHET_DiffersText;
			}
		}
	}
	return 0;
}

static int same_data(const struct ev *e, const struct expect *x)
{
	u64 n = e->data_len, at = 0;
	const struct iovec *v = e->data;
	if (shim_re_issued(e->t))
		return 1;
	if (x->hashed) {
		struct hash_state h;
		if (!(e->data_kind & DATA_PIECES))
			return shim_hash64(e->data, n, 0) == x->hash;
		shim_hash_begin(&h);
		for (; at < n; v++) {
			u64 m = v->iov_len < n - at ? v->iov_len : n - at;
			shim_hash_more(&h, v->iov_base, m);
			at += m;
		}
		return shim_hash_end(&h) == x->hash;
	}
	if (!x->data)
		return 1;
	if (n > x->data_len && x->note & PROPHET_NoteCut)
		n = x->data_len;
	if (n != x->data_len)
		return 0;
	if (!(e->data_kind & DATA_PIECES))
		return same_bytes(e->data, x->data, n);
	for (; at < n; v++) {
		u64 m = v->iov_len < n - at ? v->iov_len : n - at;
		if (!same_bytes(v->iov_base, x->data + at, m))
			return 0;
		at += m;
	}
	return 1;
}

void shim_re_hashed(struct ev *e)
{
	e->data_kind = 0;
	if (e->x->hashed && e->x->hash != e->hash && !shim_re_issued(e->t))
		shim_re_differs(e->t, e->x, PROPHET_DiffersData, e->call, e->data_len, e->data_len, "");
}

static int failed(i64 ret)
{
	return ret < 0 && ret > -4096;
}

/* What the call was about, when it names a file. */
static const char *path_of(const struct ev *e)
{
	u32 i;
	for (i = 0; i < e->nparts; i++)
		if (e->part[i].kind == PART_PATH)
			return e->part[i].p;
	return "";
}

static NOINLINE int value_differs(struct ev *e, const struct expect *x, u32 what, u64 want, u64 came, const char *text)
{
	struct re *re = e->t->re;
	re->came = e;
	re->whole = 1;
	if (what == PROPHET_DiffersData && x->data && !x->hashed && !(e->data_kind & DATA_PIECES))
		while (re->differs_at < x->data_len && re->differs_at < e->data_len && ((const u8 *)e->data)[re->differs_at] == x->data[re->differs_at])
			re->differs_at++;
	shim_re_differs(e->t, x, what, e->call, want, came, text);
	return 1;
}

/* Another thread may close a descriptor as soon as the call has done its work, so that it is none when it is looked at; or make
 * it, where the call found none. */
static int closed_since(const struct ev *e, const struct expect *x)
{
	return shim_re_flags[e->call] & RE_FD && (e->ret >= 0 || e->ret == -EBADF) && (!e->obj || !x->obj);
}

/* What a handler asks for may have been given its name inside of the call that it interrupted, before which it comes now. */
static int named_since(const struct ev *e, const struct expect *x)
{
	return !e->obj && e->t->re->handlers && x->obj >> 40 == e->t->uid && (x->obj & 0xffffffffffull) > e->t->nobj;
}

/* 0: it is what was expected. */
static int compare(struct ev *e, struct expect *x)
{
	u32 f = shim_re_flags[e->call], what;
	const char *text = "";
	if (unlikely(e->ret != x->ret && !(f & RE_SKIP_RET && failed(e->ret) == failed(x->ret))))
		return value_differs(e, x, PROPHET_DiffersResult, (u64)x->ret, (u64)e->ret, path_of(e));
	if (unlikely(e->seq != x->seq))
		return value_differs(e, x, PROPHET_DiffersTurn, x->seq, e->seq, "");
	if (unlikely(e->obj != x->obj && !(f & RE_SKIP_OBJ) && !closed_since(e, x) && !named_since(e, x)))
		return value_differs(e, x, PROPHET_DiffersObject, x->obj, e->obj, "");
	if (unlikely(e->f1 != x->f1 && !(f & RE_SKIP_F1)))
		return value_differs(e, x, PROPHET_DiffersField, x->f1, e->f1, "1");
	if (unlikely(e->f2 != x->f2 && !(f & RE_SKIP_F2)))
		return value_differs(e, x, PROPHET_DiffersField, x->f2, e->f2, "2");
	if (unlikely(e->f3 != x->f3 && !(f & RE_SKIP_F3)))
		return value_differs(e, x, PROPHET_DiffersField, x->f3, e->f3, "3");
	if (unlikely(x->fresh))
		e->t->re->path_len = 0;
	if (unlikely(e->nparts) && (what = tail_differs(e->t->re, e, x, &text)))
		return value_differs(e, x, what, 0, 0, text);
	if (unlikely(e->data_kind) && !same_data(e, x))
		return value_differs(e, x, PROPHET_DiffersData, x->data_len, e->data_len, "");
	return 0;
}

/* Who waits for what it did. */
static void call_next(const struct ev *e)
{
	if (!(shim_re_flags[e->call] & RE_TURN))
		return;
	if (e->seq | e->turn)
		shim_turn_next(e->obj, e->seq ? e->seq : e->turn);
	else
		shim_turn_all(e->obj);
}

/* Whether the next event may be quick: nothing has to be known of what comes before it, nor done then. Whoever looks at what comes next
 * takes that back. */
static inline int nothing_ahead(struct re *re)
{
	struct expects *x = &re->ex;
	if (unlikely(x->careful || x->head != x->tail || re->handlers || re->step.on || re->th->cancel == 2 || re->th->state != PROPHET_TurnRuns))
		return 0;
	x->near = shim_expect_key(x, x->p, &x->past);
	return x->near != 0;
}

int shim_re_commit(struct ev *e)
{
	struct thr *t = e->t;
	struct re *re = t->re;
	struct expect *x = e->x;
	u64 token, lay, took, over, object;
	i64 ret;
	if (unlikely(__atomic_load_n(&shim_index->diverged, __ATOMIC_RELAXED)))
		shim_re_stop(t, PROPHET_TurnStopped);
	if (unlikely(x != shim_expect(&re->ex) || x->kind == EXPECT_END)) {
		x = shim_expect(&re->ex);
		if (x->kind == EXPECT_SIGNAL && x->call == e->call && (shim_side_lets_first(e->call) || shim_side_over(x, e->call))) {
			call_next(e);
			shim_re_signals(t, e->call);
			if (!(re = t->re))
				return 0;
			x = shim_expect(&re->ex);
		}
		while (x->kind == EXPECT_SIGNAL && shim_re_flags[e->call] & RE_NESTS && !shim_re_is_fault(x)) {
			shim_re_deliver(t); /* it came at its end, behind events of what it called */
			if (!(re = t->re))
				return 0;
			x = shim_expect(&re->ex);
		}
		if (x->kind == EXPECT_END) {
			if (shim_re_flags[e->call] & RE_LETS)
				shim_turn_all(e->obj);
			shim_token_give(t);
			shim_re_end(t);
			return 0;
		}
		if (x->kind != EXPECT_EVENT || x->call != e->call)
			return call_differs(e, x, PROPHET_DiffersCall, 1);
	}
	if (unlikely(compare(e, x)))
		return 0;
	token = x->token;
	lay = shim_expect_pc(x);
	took = x->took, over = x->over, object = x->obj, ret = x->ret;
	call_next(e);
	/* The place is taken, and called; the event itself may have to wait. */
	if (unlikely(__atomic_load_n(&shim_index->hold, __ATOMIC_ACQUIRE)))
		shim_re_hold(t, 0);
	re->x = 0;
	if (unlikely(re->handlers) && !t->depth)
		re->handlers = 0;
	shim_expect_drop(&re->ex);
	re->th->call = 0;
	__atomic_store_n(&re->th->event, re->th->event + 1, __ATOMIC_RELEASE);
	if (unlikely(re->th->starts))
		shim_re_fires(t, re->th->event, 0);
	if (unlikely(re->th->state == PROPHET_TurnOver)) {
		look_left(t);
		killed_here(t);
	}
	if (unlikely(token))
		shim_token_take(t, token);
	if (unlikely(took))
		shim_re_passed(t, e->call, object, ret, over, took);
	if (likely(nothing_ahead(re)))
		return re->busy = 0, 1;
	x = shim_expect(&re->ex);
	if (unlikely(x->kind != EXPECT_EVENT)) {
		re->step.site = (u64)e->pc;
		re->step.moved = (u64)e->pc - lay;
		re->step.returns = 1;
		shim_re_look(t);
		re->step.returns = 0;
	} else if (unlikely(x->call == CALL_syscall)) {
		shim_re_before_wake(t, x);
	}
	re->busy = 0;
	if (!shim_ctl.serial)
		shim_step_go(t);
	if (unlikely(x->kind == EXPECT_EVENT && x->call == CALL_pthread_once))
		shim_re_look(t); /* it may be cancelled at once */
	return 1;
}
