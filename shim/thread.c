/* See thread.h. */
#include "scrub.h"
#include "stamps.h"
#include "thread.h"
#include "boot.h"
#include "cfi.h"
#include "chaos.h"
#include "modules.h"
#include "replay.h"
#include "pause.h"
#include "real.h"
#include "stack.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

__thread struct self shim_self __attribute__((tls_model("initial-exec")));

#define BATCH 16 /* threads that get their memory together, once there are as many */
#define THR_SIZE ((sizeof(struct thr) + 4095) & ~4095ul)

static void *private_pages(u64 len)
{
	long p = sys(SYS_mmap, 0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p < 0 && p > -4096 ? 0 : (void *)p;
}

/* n threads' state and rings; put on the spare list. Called with the threads' lock held. */
static int more(u32 n)
{
	u8 *state, *ring = 0;
	u32 first = 0, i, flags = THR_SHARED_SLOT, at_start = !shim_run.threads;
	state = at_start ? (u8 *)shim_wiped + WIPED_ROOM : private_pages(n * THR_SIZE);
	if (!state)
		return -ENOMEM;
	if (!at_start)
		sys(SYS_madvise, state, n * THR_SIZE, MADV_WIPEONFORK);
	if (shim_slot_take(n, &first) == 0) {
		ring = shim_slots_map(0, first, n);
		if (!ring)
			for (i = 0; i < n; i++)
				shim_slot_free(first + i);
	}
	if (!ring) {
		flags = THR_PRIVATE_RING;
		ring = private_pages((u64)n * PROPHET_SlotSize);
		if (!ring) {
			if (!at_start)
				sys(SYS_munmap, state, n * THR_SIZE);
			return -ENOMEM;
		}
	}
	for (i = 0; i < n; i++) {
		struct thr *t = (struct thr *)(state + (n - 1 - i) * THR_SIZE);
		u32 k = n - 1 - i;
		t->own = t->slot = (struct slot *)(ring + (u64)k * PROPHET_SlotSize);
		t->ring = (u8 *)t->slot + PROPHET_SlotHeader + PROPHET_ChunkHeader;
		t->index = flags & THR_SHARED_SLOT ? first + k : ~0u;
		t->flags = flags;
		t->room = t->limit = flags & THR_SHARED_SLOT ? PROPHET_FirstLimit : PROPHET_RingLimit;
		t->next = shim_wiped->spare;
		shim_wiped->spare = t;
	}
	return 0;
}

static void enlist(struct thr *t)
{
	t->prev = 0;
	t->next = shim_wiped->list;
	if (t->next)
		t->next->prev = t;
	shim_wiped->list = t;
	shim_run.threads++;
}

static void unlist(struct thr *t)
{
	if (t->next)
		t->next->prev = t->prev;
	if (t->prev)
		t->prev->next = t->next;
	else
		shim_wiped->list = t->next;
}

/* The state is a new thread's, which has recorded nothing yet. */
static void fresh(struct thr *t, u32 parent, u32 nth, u32 how)
{
	struct slot *s = t->slot;
	t->uid = unlikely(shim_replays) ? shim_re_uid(parent, nth, how) : __atomic_add_fetch(&shim_ctl.nextuid, 1, __ATOMIC_RELAXED);
	t->proc = shim_run.proc;
	t->parent = parent;
	t->nth = nth;
	t->how = how;
	t->nobj = t->ndata = 0;
	t->gate = t->writing = t->mute = t->muted = t->side_len = t->side_depth = 0;
	t->depth = t->vfork = t->lost = t->begun = t->tid = 0;
	t->nthread = t->nfork = 0;
	t->chaos.state = 0;
	t->cursor = 0;
	t->handled = t->hidden = 0;
	t->last = t->lastcpu = shim_ticks(); /* it has used next to nothing */
	shim_stack_begin(t);
	s->owner = shim_run.pid;
	s->uid = t->uid;
	s->proc = t->proc;
	s->pos = ((s->pos >> 32) + 1) << 32; /* as a flush leaves it */
	s->seq = 0;
	s->base = t->last;
	s->start = shim_run.boottime;
	s->ns = shim_run.ns;
	s->tid = 0;
	s->call = s->parked = 0;
	shim_predict_nothing(t);
	__atomic_store_n(&s->state, PROPHET_SlotLive, __ATOMIC_RELEASE);
}

/* Takes a spare state and makes it a thread's; the stream begins with who it is. */
static struct thr *take(u32 parent, u32 nth, u32 how)
{
	struct thr *t;
	shim_lock(&shim_wiped->threads);
	if (!shim_wiped->spare)
		more(shim_run.threads < 2 ? 1 : shim_run.threads < BATCH ? shim_run.threads : BATCH);
	t = shim_wiped->spare;
	if (t) {
		shim_wiped->spare = t->next;
		enlist(t);
	}
	shim_unlock(&shim_wiped->threads);
	if (t)
		fresh(t, parent, nth, how);
	return t;
}

static void say_thread(struct thr *t)
{
	u8 b[64], *p = put_v(b, PROPHET_TagThread);
	p = put_v(p, t->uid);
	p = put_v(p, t->parent);
	p = put_v(p, t->nth);
	p = put_v(p, t->tid);
	p = put_v(p, t->how);
	if (t->flags & THR_PRIVATE_RING) {
		p = put_v(p, PROPHET_TagLost);
		p = put_v(p, PROPHET_LostRing);
		p = put_v(p, 1);
	}
	shim_record(t, b, (u32)(p - b));
}

static void clock_record(struct thr *t)
{
	struct timespec m = {0, 0}, r = {0, 0};
	u8 b[64], *p;
	u64 a, z;
	a = shim_ticks();
	sys(SYS_clock_gettime, CLOCK_MONOTONIC, &m);
	z = shim_ticks();
	sys(SYS_clock_gettime, CLOCK_REALTIME, &r);
	p = put_v(b, PROPHET_TagClock);
	p = put_v(p, a + (z - a) / 2);
	p = put_v(p, (u64)m.tv_sec * 1000000000u + (u64)m.tv_nsec);
	p = put_v(p, (u64)r.tv_sec * 1000000000u + (u64)r.tv_nsec);
	shim_record(t, b, (u32)(p - b));
}

static u32 proc_head(u8 *rec, u32 body)
{
	u8 *p = put_v(rec, PROPHET_TagProc);
	p = put_v(p, shim_run.proc);
	p = put_v(p, shim_run.parent_proc);
	p = put_v(p, shim_run.parent_uid);
	p = put_v(p, shim_run.parent_nth);
	p = put_v(p, shim_run.pid);
	p = put_v(p, shim_run.ppid);
	p = put_v(p, shim_run.how);
	return (u32)(put_v(p, body) - rec);
}

#define PROC_MAX 6000

/* A new program: which one, where, with which arguments. */
static void proc_record(struct thr *t, int argc, char **argv)
{
	u8 start[96]; /* goes right before the rest, whose length it tells */
	char *body = shim_room_at_start + sizeof start;
	struct text s;
	u32 head;
	long r;
	int i;
	shim_text(&s, body, PROC_MAX);
	shim_putn(&s, shim_run.exe, shim_len(shim_run.exe) + 1);
	r = sys(SYS_getcwd, body + s.len, PROC_MAX / 3);
	s.len += r > 0 ? (u32)r - 1 : 0;
	shim_putn(&s, "", 1);
	for (i = 0; i < argc && argv[i] && !s.cut; i++)
		shim_putn(&s, argv[i], shim_len(argv[i]) + 1);
	head = proc_head(start, s.len);
	shim_copy(body - head, start, head);
	shim_record(t, (u8 *)body - head, head + s.len);
}

static void tls_is(struct thr *t, u32 tid)
{
	t->tid = t->slot->tid = tid;
	shim_self.uid = t->uid;
	shim_self.proc = t->proc;
	shim_self.nfork = 0;
	shim_self.slot = t->slot;
	shim_self.thr = t;
}

/* The calling thread is t from now on; its stream begins with who it is. Signals are blocked. */
static void begun(struct thr *t)
{
	if (unlikely(shim_replays) && shim_re_thread(t) != 0) {
		shim_re_unknown(t);
		shim_record_no_more();
		return;
	}
	say_thread(t);
	t->begun = 1;
	t->gate = ~0u;
}

int shim_thread_boot(int argc, char **argv)
{
	u64 mask;
	struct thr *t = take(shim_run.parent_uid, 0, PROPHET_ThreadMain);
	if (!t)
		return -ENOMEM;
	shim_block(&mask);
	tls_is(t, (u32)sys(SYS_gettid));
	clock_record(t);
	proc_record(t, argc, argv);
	begun(t);
	shim_modules(t);
	shim_stack_timer(t, &mask);
	shim_unblock(&mask);
	shim_serial_boot();
	shim_stamps_boot();
	shim_scrub_boot();
	if (shim_ctl.serial)
		shim_serial_take(1);
	shim_timers_boot();
	shim_park();
	return 0;
}

/* A forked child's thread keeps the addresses that its state and ring had in the parent, so that a chain of forks
 * maps no more than one process does, and code that a handler forked from finds the child's own state. */
static struct thr *again(void)
{
	struct thr *t = shim_self.thr;
	struct slot *s = shim_self.slot;
	u32 index = ~0u;
	if (!t || !s)
		return take(shim_self.uid, shim_self.nfork, PROPHET_ThreadForked);
	t->flags = THR_SHARED_SLOT;
	if (shim_slot_take(1, &index) != 0 || !shim_slots_map(s, index, 1)) {
		shim_slot_free(index);
		index = ~0u;
		t->flags = THR_PRIVATE_RING;
		if (shim_private(s) != 0)
			return 0;
	}
	t->index = index;
	t->room = t->limit = t->flags & THR_SHARED_SLOT ? PROPHET_FirstLimit : PROPHET_RingLimit;
	t->own = t->slot = s;
	t->ring = (u8 *)s + PROPHET_SlotHeader + PROPHET_ChunkHeader;
	enlist(t);
	fresh(t, shim_self.uid, shim_self.nfork, PROPHET_ThreadForked);
	return t;
}

void shim_forked(void)
{
	u64 mask;
	struct thr *t;
	int new = !shim_wiped->alive;
	shim_block(&mask);
	if (!shim_wiped->alive) {
		shim_wiped->alive = 1;
		shim_run_forked();
		t = again();
		if (!t) {
			shim_self.thr = 0;
			shim_self.off = 1;
		} else {
			u8 rec[96];
			shim_run.threads = 1;
			tls_is(t, shim_run.pid); /* the one thread of its process */
			clock_record(t);
			shim_record(t, rec, proc_head(rec, 0));
			begun(t);
			shim_stack_timer(t, &mask);
		}
	}
	shim_unblock(&mask);
	if (new &&shim_ctl.serial && shim_self.thr)
		shim_serial_take(1);
}

void shim_child(void)
{
	struct thr *t = shim_self.thr;
	if (shim_run.state != RUN_ON || shim_self.off)
		return;
	if (shim_wiped->alive && (u32)sys(SYS_getpid) != shim_run.pid) { /* the kernel does not wipe: emulators */
		u64 mask;
		shim_block(&mask);
		if (t)
			shim_zero(t, sizeof *t);
		shim_zero(shim_wiped, sizeof *shim_wiped);
		shim_unblock(&mask);
	}
	/* In a serial run its turn is in its stream, so that it has one, whatever it does. */
	if (shim_ctl.serial && (!shim_replays || shim_re_forks(shim_run.proc, shim_self.uid, shim_self.nfork)))
		shim_forked();
}

struct thr *shim_thread_new(struct thr *parent)
{
	if (shim_run.threads < 2)
		shim_rss_ready();
	return take(parent->uid, ++parent->nthread, PROPHET_ThreadCreated);
}

void shim_thread_begin(struct thr *t)
{
	u64 mask;
	shim_block(&mask);
	tls_is(t, (u32)sys(SYS_gettid));
	t->last = shim_ticks();
	t->slot->base = t->last;
	begun(t);
	shim_stack_timer(t, t->quiet ? &t->mask : &mask);
	shim_unblock(t->quiet ? &t->mask : &mask);
	shim_thread_starts(t);
}

void shim_thread_starts(struct thr *t)
{
	if (unlikely(t->re != 0)) {
		shim_re_came(t);
		shim_re_starts(t, 0);
	}
	if (shim_ctl.chaos)
		shim_chaos(t);
	if (shim_ctl.serial)
		shim_serial_take(1);
	shim_park();
}

/* Whether every other thread that we know of is at its end. */
static int last_one(const struct thr *t)
{
	const struct thr *o;
	int last = 1;
	shim_lock(&shim_wiped->threads);
	for (o = shim_wiped->list; o; o = o->next)
		last &= o == t || __atomic_load_n(&o->slot->state, __ATOMIC_SEQ_CST) == PROPHET_SlotEnding;
	shim_unlock(&shim_wiped->threads);
	return last;
}

void shim_thread_ending(struct thr *t)
{
	if (!t || shim_self.thr != t || !t->slot || t->slot->state != PROPHET_SlotLive || shim_run.state != RUN_ON)
		return;
	if (unlikely(t->re != 0))
		shim_re_ending(t);
	shim_stack_timer_end(t);
	shim_cpu(t);
	__atomic_store_n(&t->slot->state, PROPHET_SlotEnding, __ATOMIC_SEQ_CST);
	t->ended = __atomic_load_n(&shim_wiped->ended, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&shim_wiped->ended, &t->ended, t, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	/* Where a thread ended by system call the C library still counts it, and does not call exit for the last one. */
	if (unlikely(shim_run.left) && last_one(t))
		shim_process_over(PROPHET_ExitQuick, shim_run.left_status);
	else if (shim_ctl.serial)
		shim_serial_give();
}

void shim_thread_again(struct thr *t)
{
	u8 rec[96];
	t->last = t->lastcpu = shim_ticks();
	t->slot->base = t->last;
	shim_predict_nothing(t);
	clock_record(t);
	shim_record(t, rec, proc_head(rec, 0));
	say_thread(t);
	if (!shim_run.forked_from_threads)
		shim_modules(t);
	shim_cpu(t);
}

static void recycle(struct thr *t)
{
	unlist(t);
	t->slot->state = PROPHET_SlotFree;
	t->next = shim_wiped->spare;
	shim_wiped->spare = t;
}

void shim_thread_drop(struct thr *t)
{
	if (unlikely(shim_replays))
		shim_re_uncreated(t->uid);
	shim_lock(&shim_wiped->threads);
	recycle(t);
	shim_unlock(&shim_wiped->threads);
}

#define REAP_MAX 16 /* looked at in one go */

/* A thread whose routine is over is gone once the kernel no longer knows its tid. */
void shim_reap(void)
{
	struct thr *t, *stay = 0;
	u32 n;
	if (!shim_wiped || (!__atomic_load_n(&shim_wiped->ended, __ATOMIC_RELAXED) && !shim_wiped->reaping))
		return;
	shim_lock(&shim_wiped->threads);
	if (!shim_wiped->reaping)
		shim_wiped->reaping = __atomic_exchange_n(&shim_wiped->ended, 0, __ATOMIC_ACQUIRE);
	for (n = 0; n < REAP_MAX && (t = shim_wiped->reaping); n++) {
		shim_wiped->reaping = t->ended;
		if (sys(SYS_tgkill, shim_run.pid, t->tid, 0) != -ESRCH) {
			t->ended = stay;
			stay = t;
			continue;
		}
		shim_flush(t, PROPHET_ChunkLast);
		recycle(t);
	}
	while ((t = stay)) {
		stay = t->ended;
		t->ended = shim_wiped->reaping;
		shim_wiped->reaping = t;
	}
	shim_unlock(&shim_wiped->threads);
}

/* Whether the innermost handler that we know of still runs: its frame is then deeper than ours, on this stack. One
 * on another stack is told apart by the distance, or by the kernel. */
#define STACK_MAX (64ul << 20)

int shim_in_handler(struct thr *t, u64 here)
{
	while (t->depth) {
		struct under *u = &t->under[(t->depth - 1) % UNDER_MAX];
		u8 b[32], *p;
		u64 now;
		if (t->depth > UNDER_MAX || (u->frame > here && u->frame - here < STACK_MAX))
			return 1;
		/* It was left by a jump, and with it the call that it interrupted. */
		t->depth--;
		if (t->side_depth > t->depth)
			shim_aside_over(t);
		if (t->mute > t->depth)
			t->mute = 0;
		now = shim_ticks();
		p = put_v(b, u->call);
		p = put_v(p, u->call && now > u->begin ? now - u->begin : 0);
		shim_record_at(t, PROPHET_TagLeft, b, (u32)(p - b));
	}
	return 0;
}

void shim_fork_record(struct thr *t, u32 nth, u64 pid, u32 how)
{
	u8 b[32], *p = put_v(b, nth);
	p = put_v(p, pid);
	p = put_v(p, how);
	shim_record_at(t, PROPHET_TagFork, b, (u32)(p - b));
}

void shim_record_no_more(void)
{
	struct thr *o;
	shim_run.state = RUN_OFF;
	shim_lock(&shim_wiped->threads);
	for (o = shim_wiped->list; o; o = o->next)
		o->gate = 0;
	shim_unlock(&shim_wiped->threads);
}

/* Something of this thread's state was shared with a child; is it still? */
static int vforked(struct thr *t)
{
	if (!shim_in_vfork(t)) {
		if (t->vfork != VFORK_SHARED) {
			t->vfork = VFORK_NONE;
			if (t->env)
				sys(SYS_munmap, t->env, t->env_len);
			t->env = 0;
		}
		return 0;
	}
	if (t->vfork == VFORK_BEGUN) {
		t->vfork = VFORK_SEEN;
		shim_fork_record(t, shim_self.nfork, (u64)sys(SYS_getpid), PROPHET_ProcForked);
	}
	return t->vfork == VFORK_SHARED;
}

/* After shim_process_over our slot may be another process's: what is still recorded, at once, needs other memory. */
static struct slot parting;

static int after_over(struct thr *t)
{
	if (t->flags & THR_SHARED_SLOT && t->index == ~0u) {
		u64 mask;
		int r;
		shim_block(&mask);
		r = shim_private(t->slot);
		if (r == 0) {
			*t->slot = parting;
			t->flags = THR_PRIVATE_RING;
			t->room = t->limit = PROPHET_RingLimit;
		}
		shim_unblock(&mask);
		return r;
	}
	return 0;
}

/* The calling thread, which nobody has said anything of. */
struct thr *shim_thread_found(u32 nth)
{
	u64 mask;
	struct thr *t;
	shim_block(&mask);
	t = shim_self.thr;
	if (!t && (t = take(0, nth, PROPHET_ThreadFound))) {
		tls_is(t, (u32)sys(SYS_gettid));
		begun(t);
		shim_stack_timer(t, &mask);
	}
	shim_unblock(&mask);
	return t;
}

struct thr *shim_ready_slow(u32 cls)
{
	struct self *me = &shim_self;
	struct thr *t;
	if (unlikely(shim_run.state == RUN_NONE))
		shim_boot_early();
	if (shim_run.state != RUN_ON || me->off)
		return 0;
	if (unlikely(!shim_wiped->alive))
		shim_forked();
	t = me->thr;
	if (unlikely(!t)) {
		if (me->off)
			return 0;
		t = shim_thread_found(0);
		if (!t)
			return 0;
	}
	if (unlikely(!t->begun)) /* a handler of a child that is being made */
		return 0;
	if (unlikely(t->vfork) && vforked(t))
		return 0;
	if (unlikely(t->depth))
		shim_in_handler(t, (u64)__builtin_frame_address(0));
	if (unlikely(shim_run.exiting) && after_over(t))
		return 0;
	t->gate = t->vfork || t->depth || shim_run.exiting ? 0 : ~0u;
	if (unlikely(shim_paused()))
		shim_park();
	if (unlikely(~shim_ctl.level & (1u << CLASS_disk | 1u << CLASS_net)))
		shim_fd_blind();
	return shim_ctl.level & 1u << cls && !t->mute ? t : 0;
}

int shim_in_vfork(struct thr *t)
{
	return t->vfork && (u32)sys(SYS_gettid) != t->tid;
}

u64 shim_object_new(struct thr *t, u32 type, u64 addr, const char *detail)
{
	/* In one instruction, as a signal handler may name objects, too. */
	u64 n = __atomic_add_fetch(&t->nobj, 1, __ATOMIC_RELAXED), id = (u64)t->uid << 40 | (n & 0xffffffffffull);
	shim_object_say(t, id, type, addr, detail);
	return id;
}

void shim_object_say(struct thr *t, u64 id, u32 type, u64 addr, const char *detail)
{
	u64 len = detail ? shim_len(detail) : 0;
	u8 b[64], *p;
	if (len > 1000)
		len = 1000;
	p = put_v(b, PROPHET_TagObject);
	p = put_v(p, id >> 40);
	p = put_v(p, id & 0xffffffffffull);
	p = put_v(p, type);
	p = put_v(p, addr);
	p = put_v(p, len);
	shim_record_text(t, b, (u32)(p - b), detail ? detail : "", (u32)len);
}

/* The kernel's counts, with what the flush of this ring will add to them: it is ours, and what follows in this process
 * after an exec, or in its parent once it has been waited for, counts it too. */
/* A new process's first look at its own /proc costs as much as fork itself. The kernel adds what a child counted to its
 * parent's counts, so a child of less than ten milliseconds can leave it there; only our own bytes are told apart. */
static int short_lived(void)
{
	return shim_run.how == PROPHET_ProcForked && shim_ticks() - shim_run.born < shim_gap * 250;
}

static void exit_record(struct thr *t, u32 how, i64 status)
{
	struct rusage self, kids;
	u64 r, w, cpu, kcpu, now, flush = 0;
	u8 *start, *p;
	int done;
	r = 0;
	w = shim_run.own_bytes;
	if (!short_lived()) {
		shim_io_counts(&r, &w);
		r -= r < shim_run.own_read ? r : shim_run.own_read;
	}
	shim_zero(&self, sizeof self);
	shim_zero(&kids, sizeof kids);
	sys(SYS_getrusage, RUSAGE_SELF, &self);
	sys(SYS_getrusage, RUSAGE_CHILDREN, &kids);
	cpu = (u64)(self.ru_utime.tv_sec + self.ru_stime.tv_sec) * 1000000000u + (u64)(self.ru_utime.tv_usec + self.ru_stime.tv_usec) * 1000u;
	kcpu = (u64)(kids.ru_utime.tv_sec + kids.ru_stime.tv_sec) * 1000000000u + (u64)(kids.ru_utime.tv_usec + kids.ru_stime.tv_usec) * 1000u;
	if (unlikely(shim_replays)) {
		shim_re_record(t, PROPHET_TagExit);
		return;
	}
	/* How long the flush is hangs on the record, and that on how long the flush is: both grow with each other, a few bytes at most. */
	do {
		u64 pos = shim_place(t), last = shim_cursor(t), was;
		now = shim_ticks();
		if (now < last)
			now = last;
		start = t->ring + (u32)pos;
		do {
			was = flush;
			p = put_v(start, PROPHET_TagExit);
			p = put_v(p, now - last);
			p = put_v(p, how);
			p = put_z(p, status);
			p = put_v(p, r);
			p = put_v(p, w + flush);
			p = put_v(p, shim_run.own_bytes + flush);
			p = put_v(p, cpu);
			p = put_v(p, kcpu);
			if (!shim_ctl.flight)
				flush = PROPHET_ChunkHeader + (u32)pos + (u64)(p - start);
		} while (flush != was);
		t->last = now;
		done = shim_commit_at(&t->slot->pos, pos, pos + (u64)(p - start));
	} while (!done);
	t->writing = 0;
}

/* The rings go out: our own, and what other threads have written so far. After that a record is written at once,
 * since nothing of ours runs when the C library ends the process. */
void shim_exit_flush(u32 how, i64 status)
{
	struct thr *t = shim_self.thr, *o;
	if (shim_run.state != RUN_ON || shim_self.off || !shim_wiped->alive || !t || !t->begun || shim_in_vfork(t))
		return;
	/* The others' first: their bytes are ours too, and the record counts them. */
	if (shim_run.threads > 1) {
		shim_lock(&shim_wiped->threads);
		for (o = shim_wiped->list; o; o = o->next)
			if (o != t)
				shim_flush_for(o);
		shim_unlock(&shim_wiped->threads);
	}
	if (how == PROPHET_ExitExec || !short_lived()) {
		shim_cpu(t);
		clock_record(t);
	}
	if (how == PROPHET_ExitNormal && !t->re && !shim_run.forked_from_threads)
		shim_modules(t); /* what was loaded and called nothing that is recorded: a re-execution maps it again */
	exit_record(t, how, status);
	shim_flush(t, how == PROPHET_ExitExec ? 0 : PROPHET_ChunkLast);
	if (shim_ctl.serial)
		shim_serial_give();
}

/* The C library is about to end the process; what it still asks of the kernel goes out at once. Slots of other
 * threads stay ours, as these may still run: whoever needs them takes them when our pid is gone. A forked child that
 * has recorded nothing has nothing to say. */
void shim_process_over(u32 how, i64 status)
{
	struct thr *t = shim_self.thr, *o;
	u64 mask;
	if (shim_run.state != RUN_ON || shim_self.off || !shim_wiped->alive || !t || !t->begun || shim_in_vfork(t) || shim_run.exiting)
		return;
	if (unlikely(t->re != 0))
		shim_re_exit(t, how, status);
	shim_block(&mask);
	shim_run.exiting = t->tid;
	t->gate = 0;
	shim_exit_flush(how, status);
	shim_lock(&shim_wiped->threads);
	for (o = shim_wiped->spare; o; o = o->next)
		shim_slot_free(o->index);
	shim_wiped->spare = 0;
	shim_unlock(&shim_wiped->threads);
	if (t->flags & THR_SHARED_SLOT) {
		parting = *t->slot;
		t->slot->state = PROPHET_SlotFree;
		shim_slot_free(t->index);
		t->index = ~0u;
	}
	shim_run_left();
	shim_unblock(&mask);
}
