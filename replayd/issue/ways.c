/*
 * Which way a thread goes on when an operation had another result than at home: as some thread went on at home after it, in the
 * context that is most like this one.
 *
 * A context is what the thread has done before, operation by operation, with its results: who has done the same is where the
 * thread is, whatever the program keeps in its memory (how often it has tried, what it holds of a file). The longest piece of
 * the past that a thread of home shares with this one decides.
 *
 * Who is on another's way comes back to its own as soon as both do the same from there on: by then nothing is left of what was
 * otherwise, and only its own way tells what it has to do after that.
 */
#include <errno.h>

#include "engine.h"

enum {
	FORWARD = 4096,
	LOCKS = 8,
	AGREE = 64,
	AGREE_NEXT = 8,
	WAYS = 4096,
	TRY = 256,
	TRY_LENGTH = 128,
	AFTER = 4,
	SLEEP_PART = 16,
	OWN = 2 * PAST + 4,
	FILE_UNLOCK = 2
};

/* kind is what of a result decides, and version what else a read has of it (cabi's Kind, VersionOf). */
static i64 kind(i64 result)
{
	return result < 0 ? -(-result & ((1 << PROPHET_ResultBits) - 1)) : 0;
}

static i64 version(i64 result)
{
	return result < 0 ? -result >> PROPHET_ResultBits : 0;
}

/* meets is the version that who had met one finds, or goes on with, by an operation that came to that (cabi's Met). */
static u64 meets(u64 met, const struct progop *op, i64 result)
{
	return op->flags & PROPHET_OpVersion ? (u64)op->site << 32 | (u32)version(result) : met;
}

/* counts tells operations that are part of a context from those of the recorder's and of time. */
static bool counts(const struct progop *op)
{
	switch (op->code) {
	case PROPHET_OpNop:
	case PROPHET_OpCPU:
	case PROPHET_OpThink:
	case PROPHET_OpResident:
	case PROPHET_OpMore:
		return false;
	}
	return true;
}

/* same tells whether two operations are what one place of the program does, in whatever process. */
static bool same(const struct progop *a, const struct progop *b)
{
	if (a->code != b->code || (a->flags ^ b->flags) & PROPHET_OpChoice || a->site != b->site)
		return false;
	switch (a->code) {
	case PROPHET_OpEnd:
	case PROPHET_OpCreate:
	case PROPHET_OpJoin:
	case PROPHET_OpFork:
	case PROPHET_OpWaitpid:
	case PROPHET_OpExit:
		return true;
	case PROPHET_OpSleep: { /* how long tells which try it was; some are as long as home happened to wait */
		i64 d = a->a > b->a ? a->a - b->a : b->a - a->a;
		return d <= a->a / SLEEP_PART;
	}
	case PROPHET_OpRead:
	case PROPHET_OpWrite:
	case PROPHET_OpTake:
	case PROPHET_OpGive:
	case PROPHET_OpTakeGram:
	case PROPHET_OpGiveGram:
		return a->obj == b->obj && a->a == b->a;
	}
	if (a->code >= PROPHET_OpLock && a->code <= PROPHET_OpRelease)
		return a->obj == b->obj;
	return a->obj == b->obj && a->a == b->a && a->b == b->b;
}

/* may_skip tells whether an operation does nothing that others depend on: of such are the ways of trying again. */
static bool may_skip(const struct progop *op)
{
	switch (op->code) {
	case PROPHET_OpNop:
	case PROPHET_OpCPU:
	case PROPHET_OpSleep:
	case PROPHET_OpYield:
	case PROPHET_OpMore:
	case PROPHET_OpFstat:
	case PROPHET_OpLseek:
	case PROPHET_OpStat:
	case PROPHET_OpAccess:
	case PROPHET_OpResident:
	case PROPHET_OpRead:
	case PROPHET_OpPread:
		return true;
	}
	return op->flags & PROPHET_OpChoice && op->code != PROPHET_OpOpen && op->code != PROPHET_OpUnlink;
}

/* works tells whether others may depend on it. */
static bool works(const struct progop *op)
{
	return !may_skip(op) && op->code != PROPHET_OpLock && op->code != PROPHET_OpUnlock;
}

/* held_lock is cabi's HeldLock. */
static u64 held_lock(u32 object)
{
	u64 x = ((u64)object + 1) * PROPHET_HeldFactor;
	return x ^ x >> 29;
}

/* held_file is cabi's HeldFile. */
static u64 held_file(const struct file_lock *l)
{
	const u64 f = PROPHET_HeldFactor;
	u64 x = ((((u64)l->start * f + (u64)l->length) * f + (u64)l->kind) * f + l->fd + 1) * f;
	return x ^ x >> 31;
}

static void drop(struct file_locks *l, u32 i)
{
	l->sum -= held_file(&l->list[i]);
	l->list[i] = l->list[--l->n];
}

/* file_take gives a lock in the place of all that it covers; or takes those away. */
static void file_take(struct file_locks *l, struct file_lock x, bool away)
{
	for (u32 i = l->n; i-- > 0;) {
		const struct file_lock *a = &l->list[i];
		if (a->fd == x.fd && a->start >= x.start && (!x.length || (a->length && (u64)a->start + (u64)a->length <= (u64)x.start + (u64)x.length)))
			drop(l, i);
	}
	if (!away && l->n < PROPHET_HeldFiles) {
		l->list[l->n++] = x;
		l->sum += held_file(&x);
	}
}

/* file_hold is what an operation that came to that does to them. */
static void file_hold(struct file_locks *l, const struct progop *op, i64 result)
{
	switch (op->code) {
	case PROPHET_OpFlock:
		if (result >= 0)
			file_take(l, (struct file_lock){op->obj, -1, 1, (op->a & 3) - 1}, op->a & 8);
		break;
	case PROPHET_OpFcntlLock:
		if (result >= 0 && !(op->flags & PROPHET_OpState))
			file_take(l, (struct file_lock){op->obj, op->b, op[1].a, op->a & 0xff}, (op->a & 0xff) == FILE_UNLOCK);
		break;
	case PROPHET_OpClose:
		for (u32 i = l->n; i-- > 0;)
			if (l->list[i].fd == op->obj)
				drop(l, i);
		break;
	}
}

static void hold(struct self *s, const struct progop *op)
{
	file_hold(&s->files, op, s->result);
	switch (op->code) {
	case PROPHET_OpLock:
	case PROPHET_OpTrylock:
	case PROPHET_OpTimedlock:
	case PROPHET_OpRdlock:
	case PROPHET_OpWrlock:
	case PROPHET_OpTryrdlock:
	case PROPHET_OpTrywrlock:
	case PROPHET_OpSpinlock:
	case PROPHET_OpSpintry:
		if (s->result >= 0)
			s->held += held_lock(op->obj);
		break;
	case PROPHET_OpUnlock:
	case PROPHET_OpRwunlock:
	case PROPHET_OpSpinunlock:
		s->held -= held_lock(op->obj);
		break;
	case PROPHET_OpExec:
		s->held = 0;
		s->met = 0;
	}
}

/* tried tells the results of those that try again. */
static bool tried(i64 result)
{
	return result == -EAGAIN || result == -EBUSY || result == -ETIMEDOUT;
}

/* next_try is which one in a row it is that failed, where a sleep comes now; 0: none did. */
static u32 next_try(const struct tries *t)
{
	return !t->failed ? 0 : t->since > TRY_LENGTH ? 1 : t->n + 1;
}

static void count_tries(struct tries *t, const struct progop *op, i64 result, u64 locks)
{
	bool choice = op->flags & PROPHET_OpChoice;
	if (op->code == PROPHET_OpSleep) {
		t->n = next_try(t);
		t->failed = false;
		t->since = 0;
		t->locks = locks;
	} else if (choice && tried(result)) {
		if (t->got && t->gave)
			t->n = 0;
		t->failed = true;
		t->site = op->site;
		t->got = t->worked = t->gave = false;
	} else if (choice && op->site == t->site && result >= 0) {
		t->got = true;
	} else if (t->got && works(op)) {
		t->worked = true;
	}
	t->gave |= t->worked && (!locks || locks == t->locks);
	t->since++;
}

void remember(struct self *s, u64 at)
{
	const struct progop *op = &run.ops[at];
	hold(s, op);
	s->met = meets(s->met, op, s->result);
	if (!run.head->jumps || !counts(op))
		return;
	count_tries(&s->tries, op, op->flags & PROPHET_OpChoice ? s->result : 0, s->held + s->files.sum);
	if (s->home && !s->worked && s->pasts >= s->left && works(op)) {
		s->left = s->pasts;
		s->worked = true;
	}
	s->past[s->pasts++ % PAST] = at | (u64)(u16)-kind(op->flags & PROPHET_OpChoice ? s->result : 0) << PAST_RESULT;
}

/* A place in what the thread has done (to, operations back), or in what one of home did before. */
struct back {
	const struct self *own; /* NULL: it is home's */
	u64 first, to;
};

struct done {
	const struct progop *op;
	u32 result; /* without its sign */
	bool moved; /* in tries that were left out the process met what others had written */
};

/* step goes one operation back. */
static bool step(struct back *b, struct done *d)
{
	if (b->own) {
		u64 most = b->own->pasts < PAST ? b->own->pasts : PAST;
		if (b->to >= most)
			return false;
		u64 x = b->own->past[(b->own->pasts - 1 - b->to++) % PAST];
		d->op = &run.ops[x & ((1ull << PAST_RESULT) - 1)];
		d->result = (u32)(x >> PAST_RESULT);
	} else {
		do {
			if (b->to <= b->first)
				return false;
			b->to--;
		} while (!counts(&run.ops[b->to]));
		d->op = &run.ops[b->to];
		d->result = d->op->flags & PROPHET_OpChoice ? (u16)-kind(d->op->want) : 0;
	}
	d->moved = false;
	return true;
}

/* What comes after a place: the nearest first. */
struct after {
	const struct progop *op[AFTER];
	int n;
};

static void follows(struct after *f, const struct progop *op)
{
	for (int i = AFTER - 1; i > 0; i--)
		f->op[i] = f->op[i - 1];
	f->op[0] = op;
	f->n += f->n < AFTER;
}

static bool same_after(const struct after *a, const struct after *b)
{
	for (int i = 0; i < a->n && i < b->n; i++)
		if (!same(a->op[i], b->op[i]))
			return false;
	return b->n >= a->n;
}

/* skip_try goes back from a place behind a sleep, op, to the same place of the try before it, if that failed. */
static bool skip_try(struct back *b, struct done *d, const struct after *f)
{
	struct back c = *b;
	struct done x;
	struct after g = {0};
	bool failed = false, moved = d->moved;
	if (!step(&c, &x) || (x.op->code != PROPHET_OpSleep && x.op->code != PROPHET_OpYield))
		return false;
	for (int i = 0; i < TRY && step(&c, &x); i++) {
		failed |= tried(-(i64)x.result);
		if (failed && same(x.op, d->op) && same_after(f, &g)) {
			*b = c;
			d->moved = moved;
			return true;
		}
		moved |= x.moved || (x.op->code == PROPHET_OpPread && x.op->flags & PROPHET_OpState && x.result);
		follows(&g, x.op);
	}
	return false;
}

/* skip_tries is at an operation as if all that was tried had succeeded at once. */
static void skip_tries(struct back *b, struct done *d, struct after *f)
{
	while (skip_try(b, d, f))
		;
	follows(f, d->op);
}

/* step_tries goes one operation back like that. */
static bool step_tries(struct back *b, struct done *d, struct after *f)
{
	if (!step(b, d))
		return false;
	skip_tries(b, d, f);
	return true;
}

/* begun tells whether both have been followed back to where they began: what they share is all that there is. */
static bool begun(struct back own, struct back home)
{
	struct done d;
	return own.own->pasts < PAST && !step(&own, &d) && !step(&home, &d);
}

/* alike is how many operations before the choice `at`, of a thread of home, are those that the thread has done last: their beginning
   counts as one. */
static u64 alike(const struct self *s, const struct progthread *t, u64 at, bool tries)
{
	struct back own = {.own = s}, home = {.first = t->first, .to = at}, was_own, was_home;
	struct after own_after = {0}, home_after = {0};
	struct done a = {.op = &run.ops[at]}, b = a;
	u64 n = 0;
	if (tries) {
		skip_tries(&own, &a, &own_after);
		skip_tries(&home, &b, &home_after);
		if (a.moved != b.moved)
			return 0;
	}
	was_own = own;
	was_home = home;
	while (n < PAST && (tries ? step_tries(&own, &a, &own_after) && step_tries(&home, &b, &home_after) : step(&own, &a) && step(&home, &b)) &&
	       same(a.op, b.op) && a.result == b.result && a.moved == b.moved) {
		n++;
		was_own = own;
		was_home = home;
	}
	return n + begun(was_own, was_home);
}

/* agree tells whether two ways are one from here on: as far as one looks, or until they met different things. */
static bool agree(u64 a, u64 b, u32 most)
{
	if (a == b)
		return true;
	for (u32 n = 0; n < most; n++, a++, b++) {
		while (a < run.head->ops && !counts(&run.ops[a]))
			a++;
		while (b < run.head->ops && !counts(&run.ops[b]))
			b++;
		if (a >= run.head->ops || b >= run.head->ops || !same(&run.ops[a], &run.ops[b]))
			return false;
		const struct progop *x = &run.ops[a], *y = &run.ops[b];
		if (x->code == PROPHET_OpEnd || x->code == PROPHET_OpExit || (x->flags & PROPHET_OpChoice && kind(x->want) != kind(y->want)))
			return true;
	}
	return true;
}

/* What a thread has done since it left its own way, of what others may depend on. */
struct instead {
	const struct self *s;
	u64 at; /* of its past */
};

/* once tells whether others count how often it is done. Of files it matters what they hold then: who tries again makes sure of that. */
static bool once(const struct progop *op)
{
	switch (op->code) {
	case PROPHET_OpOpen:
	case PROPHET_OpClose:
	case PROPHET_OpPwrite:
	case PROPHET_OpFsync:
	case PROPHET_OpFdatasync:
	case PROPHET_OpSyncfs:
	case PROPHET_OpSyncrange:
	case PROPHET_OpTruncate:
	case PROPHET_OpTruncateName:
	case PROPHET_OpFallocate:
	case PROPHET_OpFadvise:
	case PROPHET_OpDup:
	case PROPHET_OpCloexec:
	case PROPHET_OpFlock:
	case PROPHET_OpFcntlLock:
	case PROPHET_OpUnlink:
		return false;
	}
	return works(op);
}

static const struct progop *next_done(struct instead *x)
{
	return &run.ops[x->s->past[x->at++ % PAST] & ((1ull << PAST_RESULT) - 1)];
}

/* did tells whether the thread has done what an operation of its own way does, of what it has not been asked for yet. */
static bool did(struct instead *x, const struct progop *op)
{
	while (x->at < x->s->pasts) {
		const struct progop *done = next_done(x);
		if (works(done) && done->code == op->code && done->obj == op->obj)
			return true;
		if (once(done))
			return false;
	}
	return false;
}

/* did_more tells whether it has done more than that. */
static bool did_more(struct instead x)
{
	while (x.at < x.s->pasts)
		if (once(next_done(&x)))
			return true;
	return false;
}

/* wrote tells whether it has written at a place of a file. */
static bool wrote(struct instead x)
{
	while (x.at < x.s->pasts)
		if (next_done(&x)->code == PROPHET_OpPwrite)
			return true;
	return false;
}

/* The locks that a thread takes and gives back on a piece of its way: uneven says how many of them it does not have as before. */
struct evens {
	struct {
		u32 obj;
		int depth;
	} held[LOCKS];
	u32 locks;
	int uneven;
};

/* even goes over a lock or unlock; false: there are too many to know. */
static bool even(struct evens *e, const struct progop *op)
{
	u32 k = 0;
	while (k < e->locks && e->held[k].obj != op->obj)
		k++;
	if (k == LOCKS)
		return false;
	if (k == e->locks)
		e->held[e->locks++].obj = op->obj;
	e->uneven -= e->held[k].depth != 0;
	e->held[k].depth += op->code == PROPHET_OpLock ? 1 : -1;
	e->uneven += e->held[k].depth != 0;
	return true;
}

/* looks tells choices by what a file holds or whether it is there. What comes of it may be only behind more of what is the same in both
   cases; of other choices, which try to get something, it comes at once. */
static bool looks(const struct progop *op)
{
	return op->code == PROPHET_OpPread || op->code == PROPHET_OpStat || op->code == PROPHET_OpOpen;
}

/* settled tells whether what was read before a place no longer matters there: nothing is written until it is read again. */
static bool settled(u64 at)
{
	for (u64 i = at; i < run.head->ops && i < at + FORWARD; i++) {
		const struct progop *op = &run.ops[i];
		if (op->code == PROPHET_OpEnd || op->code == PROPHET_OpExit || op->flags & PROPHET_OpVersion)
			return true;
		if (op->code == PROPHET_OpPwrite)
			return false;
	}
	return false;
}

/* own_way finds where on its own way, from the choice on at which the thread left it, it goes on as at `next`, behind a choice with
   this result: what lies between and matters to others the thread has done instead, and nothing more that others count. Where nothing does,
   it is the same piece of work that was tried then, however others went on after theirs; but not where the thread left at a look at a file.
   Who left as the file had another version writes what that asks for, where its own way writes, and comes back where that has the same
   version, too, or where it no longer matters. ~0: nowhere near. */
static u64 own_way(const struct self *s, u64 from, const struct progop *now, u64 next)
{
	i64 got = kind(s->result);
	struct evens evens = {0};
	struct instead instead = {s, s->home && s->worked ? s->left : s->pasts};
	struct file_locks files = s->home ? s->files_then : s->files;
	bool other = run.ops[from].flags & PROPHET_OpVersion, worked = looks(&run.ops[from]);
	bool has_written = wrote(instead), had_written = false;
	u64 met = meets(0, &run.ops[from], run.ops[from].want);
	if (s->pasts - instead.at > PAST || (s->home && s->held != s->held_then)) /* longer ago than it remembers, or with other locks */
		return ~0ull;
	for (u64 i = from; i < run.head->ops && i < from + FORWARD; i++) {
		const struct progop *op = &run.ops[i];
		met = meets(met, op, op->want);
		if (op->site == now->site && op->flags & PROPHET_OpChoice && kind(op->want) == got && !evens.uneven && files.sum == s->files.sum &&
		    !did_more(instead) && (!other || has_written == had_written) &&
		    (now->flags & PROPHET_OpVersion ? s->home || i != from
		     : other			    ? agree(i + 1, next, AGREE_NEXT) && (met == s->met || settled(i + 1))
						    : !worked || agree(i + 1, next, AGREE)))
			return i + 1;
		file_hold(&files, op, op->want);
		if (i == from)
			continue;
		if (op->code == PROPHET_OpLock || op->code == PROPHET_OpUnlock) {
			if (!even(&evens, op))
				return ~0ull;
		} else if (op->code == PROPHET_OpEnd || op->code == PROPHET_OpExit || (works(op) && !(other && !once(op)) && !did(&instead, op))) {
			return ~0ull;
		}
		worked |= works(op);
		had_written |= op->code == PROPHET_OpPwrite;
	}
	return ~0ull;
}

/* unknown_way says in the log, too, that nobody went on so at home. */
void unknown_way(struct self *s)
{
	s->state->unknown++;
	if (s->logged)
		s->log[s->logged - 1].op |= PROPHET_LogUnknown;
}

u32 end_on(u64 at)
{
	while (run.ops[at].code != PROPHET_OpEnd && run.ops[at].code != PROPHET_OpExit)
		at++; /* every thread has its end (check.c) */
	return run.ops[at].obj;
}

/* slept goes back to the sleep before, of the same tries; moved says whether there was work in between. */
static bool slept(struct back *b, struct done *d)
{
	bool worked = false;
	for (int i = 0; i < TRY_LENGTH && step(b, d); i++) {
		if (d->op->code == PROPHET_OpSleep) {
			d->moved = worked;
			return true;
		}
		worked |= works(d->op);
	}
	return false;
}

/* first_way is the first way on that is known of a place after a result: those that follow are of it, too, as long as they say so. */
static u64 first_way(u32 site, i64 got)
{
	u64 low = 0, high = run.head->jumps;
	while (low < high) {
		u64 mid = (low + high) / 2;
		const struct progjump *j = &run.jumps[mid];
		if (j->site < site || (j->site == site && j->result < got))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* waited tells whether a thread of home had waited as often, as long, as this one has. */
static bool waited(const struct self *s, const struct progjump *j, bool work)
{
	struct back own = {.own = s}, home = {.first = run.threads[j->thread].first, .to = j->at - 1};
	struct done a, b;
	for (;;) {
		bool more = slept(&own, &a);
		if (more != slept(&home, &b))
			return false;
		if (!more)
			return true;
		if (!same(a.op, b.op) || (work && a.moved != b.moved))
			return false;
	}
}

enum { FEWER, AS_OFTEN, THIS, AS_LONG, ALIKE };

/* as_this is how much the sleep of a way is like the one that comes at `at` after that many tries. */
static int as_this(const struct self *s, u64 at, u32 nth, const struct progjump *j)
{
	if (run.ops[j->at - 1].b < nth)
		return FEWER;
	if (waited(s, j, true))
		return ALIKE;
	if (waited(s, j, false))
		return AS_LONG;
	return j->at - 1 == at ? THIS : AS_OFTEN;
}

/* Who tries again waits longer each time, whatever it was that failed: as long as who had waited as often, as long, waited then; or who had
   failed as often; or as often as anybody has. Who has worked in between may begin anew. */
u64 sleep_as(const struct self *s, u64 at)
{
	const struct progop *op = &run.ops[at];
	u64 best = at;
	u32 nth = next_try(&s->tries);
	int how = -1;
	if (!op->site || (!s->home && op->b == nth))
		return at;
	for (u64 i = first_way(op->site, 0); i < run.head->jumps && run.jumps[i].site == op->site && !run.jumps[i].result; i++) {
		u64 sleep = run.jumps[i].at - 1;
		const struct progop *o = &run.ops[sleep];
		if (o->code != PROPHET_OpSleep || o->b > nth)
			continue;
		int is = as_this(s, at, nth, &run.jumps[i]);
		if (is > how || (is == FEWER && how == FEWER && o->b > run.ops[best].b)) {
			best = sleep;
			how = is;
		}
		if (how == ALIKE)
			break;
	}
	return best;
}

/* donor finds who had this result here in the context most like this one: what it did next, or ~0. How often was tried decides what
   who tries again does, but hardly what comes after that. Where its own way has such a context it is the next one on that: what a
   thread has been told to do its past may not show yet. Who had other locks then would take one that this one has. Who had read the same
   version last comes before all others: what a file held says more than what the thread had done. exact: only those. */
static u64 donor(const struct self *s, u64 at, i64 got, bool exact)
{
	u32 site = run.ops[at].site;
	u64 low = first_way(site, got), best = ~0ull, how = 0, length = 0, from = s->home ? (u64)(s->home - run.ops) : at;
	bool tries = !tried(got), found = exact || !tries;
	/* The choice at which it left its own way: of contexts that come again and again only the first ones are listed. */
	if (s->home && s->home->site == site && kind(s->home->want) == got && s->held == s->held_then && s->files.sum == s->files_then.sum &&
	    (!exact || meets(0, s->home, s->home->want) == s->met)) {
		best = from + 1;
		length = alike(s, &run.threads[s->as], from, tries);
		how = OWN;
		found |= !(s->home->flags & PROPHET_OpVersion) || meets(0, s->home, s->home->want) == s->met;
	}
	for (int i = 0; i < WAYS && low < run.head->jumps && run.jumps[low].site == site && run.jumps[low].result == got; i++, low++) {
		const struct progjump *j = &run.jumps[low];
		const struct progthread *t = &run.threads[j->thread];
		bool same_met = j->met == s->met || !tries;
		if (j->held != s->held + s->files.sum || (found && !same_met))
			continue;
		u64 n = alike(s, t, j->at - 1, tries);
		bool nearer = best == ~0ull || (same_met && !found);
		if (!nearer && n < length)
			continue;
		bool own = j->thread == s->as && j->at > from;
		u64 a = own ? OWN : 2 * alike(s, t, j->at - 1, !tries) + (t->proc == s->proc);
		if (nearer || n > length || a > how || (own && j->at < best)) {
			best = j->at;
			length = n;
			how = a;
			found |= same_met;
		}
	}
	return best;
}

/* over tells whether the thread has tried this before, and that is over now: until then it was with who had tried as often, wherever. */
static bool over(const struct self *s, const struct progop *op, i64 got)
{
	struct back b = {.own = s};
	struct done d;
	if (got < 0 || !s->home)
		return false;
	for (int i = 0; i < TRY && step(&b, &d); i++)
		if (d.op->site == op->site && d.op->flags & PROPHET_OpChoice)
			return tried(-(i64)d.result);
	return false;
}

static bool empty_or_not(const struct progop *op, i64 got)
{
	return op->code == PROPHET_OpStat && (got == 0 || got == -PROPHET_ResultEmpty) && (op->want >= 0 || op->want == -PROPHET_ResultEmpty);
}

/* counted tells operations that take one of what others give, one after the other: each time that a thread gets one is the next time on
   its own way, however often it had to try before. */
static bool counted(const struct progop *op)
{
	return op->code == PROPHET_OpWait || op->code == PROPHET_OpSemtry || op->code == PROPHET_OpSemtimed;
}

/* next_got is where on its own way a thread goes on that got, or did not get, what it tried to take: where it got it at home, if that
   was sooner here, and back at the place that it left its way at, once that goes as at home. ~0: nowhere. */
static u64 next_got(const struct self *s, u64 at, i64 got)
{
	const struct progop *op = &run.ops[at];
	if (s->home) {
		bool back = s->home->code == op->code && s->home->site == op->site && s->held == s->held_then && got == kind(s->home->want);
		return back ? (u64)(s->home - run.ops) + 1 : ~0ull;
	}
	if (got < 0)
		return ~0ull;
	struct evens evens = {0};
	u64 left_out = 0;
	for (u64 i = at + 1; i < run.head->ops && i < at + FORWARD; i++) {
		const struct progop *x = &run.ops[i];
		left_out += x->code == PROPHET_OpWait && x->a == op->a;
		if (x->code == op->code && x->site == op->site && x->flags & PROPHET_OpChoice && kind(x->want) == got && !evens.uneven) {
			if (op->code == PROPHET_OpWait && run.preds[op->a].kind == PROPHET_PredRows)
				run.pred[op->a].arrived += left_out; /* its mutex is held */
			return i + 1;
		}
		if (x->code == PROPHET_OpLock || x->code == PROPHET_OpUnlock ? !even(&evens, x) : works(x))
			return ~0ull;
	}
	return ~0ull;
}

enum { AGAIN = 24 };

/* try_again is a sleep after which a lock of a file is tried once more that could not be had, where at home it always could: what the
   program does then nobody knows, but not that it goes on as if it had it. ~0: it never tried anything again, or this has been tried often enough. */
static u64 try_again(struct self *s, const struct progop *op, i64 got)
{
	u64 best = ~0ull;
	if (got != -EAGAIN || op->flags & PROPHET_OpState || (op->code != PROPHET_OpFcntlLock && op->code != PROPHET_OpFlock) || s->back != ~0ull ||
	    s->again == AGAIN) {
		s->again = 0;
		return best;
	}
	s->again++;
	for (u64 i = 0; i < run.head->jumps; i++) {
		const struct progjump *j = &run.jumps[i];
		const struct progop *o = &run.ops[j->at - 1];
		if (o->code != PROPHET_OpSleep || !o->b)
			continue;
		if (best == ~0ull || j->thread == s->as)
			best = j->at - 1;
		if (j->thread == s->as)
			break;
	}
	return best;
}

static u64 other_way(struct self *s, u64 at, i64 got)
{
	const struct progop *op = &run.ops[at];
	bool takes = counted(op) && (!s->home || s->home->code == op->code);
	if (takes) {
		u64 on = next_got(s, at, got);
		if (on != ~0ull) {
			s->state->other += !s->home;
			s->home = NULL;
			return on;
		}
	}
	u64 next = got == kind(op->want) && !over(s, op, got) ? at + 1 : donor(s, at, got, false);
	bool other = op->flags & PROPHET_OpVersion && version(s->result) != version(op->want);
	if (next == at + 1 && other) {
		u64 known = donor(s, at, got, true);
		if (known != ~0ull)
			next = known;
		else if (!s->home)
			return next;
	}
	if (next == ~0ull) {
		/* Who read other data, or found a file of another size, goes on as at home: whether that is so the program says there. */
		if (op->code == PROPHET_OpPread || empty_or_not(op, got))
			s->state->other++;
		else
			unknown_way(s);
		if (s->logged && empty_or_not(op, got))
			s->log[s->logged - 1].result = op->want;
		u64 sleep = try_again(s, op, got);
		if (sleep == ~0ull)
			return at + 1;
		s->back = at;
		s->stop = sleep + 1;
		return sleep;
	}
	s->again = 0;
	s->state->other += next != at + 1;
	u64 own = takes ? ~0ull : own_way(s, s->home ? (u64)(s->home - run.ops) : at, op, next);
	if (own != ~0ull && op->flags & PROPHET_OpVersion && version(run.ops[own - 1].want) != version(s->result) &&
	    meets(0, &run.ops[next - 1], run.ops[next - 1].want) == s->met) {
		/* That is where it is, but the file has another version than it had there. */
		s->home = NULL;
		op = &run.ops[own - 1];
		own = ~0ull;
	}
	if (own != ~0ull) {
		s->home = NULL;
		return own;
	}
	s->away += next != at + 1;
	if (!s->home) {
		s->home = op;
		s->away = 0;
		s->left = s->pasts + 1;
		s->worked = false;
		s->held_then = s->held;
		s->files_then = s->files;
	}
	return next;
}

u64 way_on(struct self *s, u64 at)
{
	i64 got = kind(s->result);
	s->met = meets(s->met, &run.ops[at], s->result);
	if (!s->home && got == kind(run.ops[at].want) && version(s->result) == version(run.ops[at].want)) {
		s->again = 0;
		return at + 1;
	}
	u64 t = now_ns(), next = other_way(s, at, got);
	owe(s->burn, (double)(now_ns() - t));
	return next;
}
