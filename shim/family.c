/* See family.h. */
#include "family.h"
#include "minlibc.h"
#include "pids.h"
#include <errno.h>
#include <signal.h>
#include <time.h>

#define GONE (~0ull)

static struct replayid *table(void)
{
	return (struct replayid *)((u8 *)shim_index + shim_index->idsat);
}

static inline u32 home(u64 key)
{
	return (u32)(key * 0x9E3779B97F4A7C15ull >> 32) & (shim_index->ids - 1);
}

static struct replayid *find(u64 key)
{
	struct replayid *t = table();
	u32 i, at = home(key);
	for (i = 0; i < shim_index->ids; i++, at = (at + 1) & (shim_index->ids - 1)) {
		u64 k = __atomic_load_n(&t[at].key, __ATOMIC_ACQUIRE);
		if (k == key)
			return &t[at];
		if (!k)
			return 0;
	}
	return 0;
}

void shim_id_is(u32 kind, u64 was, u64 now)
{
	u64 key = (u64)kind << 32 | (was & 0xffffffff);
	struct replayid *t = table(), *e = find(key);
	u32 i, at = home(key);
	for (i = 0; !e && i < shim_index->ids; i++, at = (at + 1) & (shim_index->ids - 1)) {
		u64 k = __atomic_load_n(&t[at].key, __ATOMIC_ACQUIRE);
		if ((!k || k == GONE) && __atomic_compare_exchange_n(&t[at].key, &k, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			e = &t[at];
	}
	if (e)
		__atomic_store_n(&e->now, now + 1, __ATOMIC_RELEASE);
}

u64 shim_id_now(u32 kind, u64 was)
{
	struct replayid *e = find((u64)kind << 32 | (was & 0xffffffff));
	return e ? __atomic_load_n(&e->now, __ATOMIC_ACQUIRE) - 1 : ~0ull;
}

void shim_id_gone(u32 kind, u64 was, u64 now)
{
	struct replayid *e = find((u64)kind << 32 | (was & 0xffffffff));
	if (e && __atomic_load_n(&e->now, __ATOMIC_ACQUIRE) == now + 1) {
		__atomic_store_n(&e->now, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&e->key, GONE, __ATOMIC_RELEASE);
	}
}

u64 *shim_moved(u64 a, u64 b, int make)
{
	u64 w[2] = {a, b}, key = shim_hash64(w, sizeof w, 0) | 1;
	struct replaymoved *m;
	u32 i;
	if (likely(!shim_index || !shim_index->moved))
		return 0;
	m = (struct replaymoved *)((u8 *)shim_index + shim_index->movedat);
	for (i = 0; i < 64; i++) {
		struct replaymoved *e = &m[((key >> 32) + i) & (shim_index->moved - 1)];
		u64 none = 0;
		if (__atomic_load_n(&e->key, __ATOMIC_ACQUIRE) == key)
			return &e->dev;
		if (!__atomic_load_n(&e->key, __ATOMIC_ACQUIRE)) {
			if (!make)
				return 0;
			if (__atomic_compare_exchange_n(&e->key, &none, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || none == key)
				return &e->dev;
		}
	}
	return 0;
}

struct replayproc *shim_family_proc(u32 was)
{
	struct replayproc *p = shim_index_procs(), *found = 0;
	u32 i;
	for (i = 0; i < shim_index->procs; i++)
		if (p[i].pid == was && (!found || p[i].death || !found->death))
			found = &p[i];
	return found;
}

/* Where the trace was cut its end is not the process's. */
static int goes_on(void)
{
	return shim_index->flags & PROPHET_ReplayCut || shim_re_detached();
}

u32 shim_family_death(u32 proc)
{
	const struct replayproc *p = shim_index_procs();
	u32 i;
	if (goes_on())
		return 0;
	for (i = 0; i < shim_index->procs; i++)
		if (p[i].number == proc)
			return p[i].death;
	return 0;
}

int shim_family_dies(u32 proc)
{
	const struct replayproc *p = shim_index_procs();
	u32 i;
	for (i = 0; i < shim_index->procs; i++)
		if (p[i].number == proc)
			return p[i].death || (p[i].how == PROPHET_ProcRoot && shim_index->flags & PROPHET_ReplayKilled);
	return 0;
}

void shim_family_came(struct replayproc *p)
{
	u32 now = (u32)sys(SYS_getpid);
	__atomic_store_n(&p->now, now, __ATOMIC_RELEASE);
	shim_id_is(PROPHET_IDTask, p->pid, now);
}

int shim_family_over(u32 proc, u32 but)
{
	struct replaythread *th = shim_index_threads();
	u32 i, state, spent;
	for (i = 1; i < shim_index->threads; i++) {
		if (!th[i].uid || th[i].proc != proc || i == but)
			continue;
		state = __atomic_load_n(&th[i].state, __ATOMIC_ACQUIRE);
		spent = __atomic_load_n(&th[i].spent, __ATOMIC_ACQUIRE);
		if (state == PROPHET_TurnEnd || (state == PROPHET_TurnOver && !th[i].left) || spent == 1)
			continue;
		if (th[i].how == PROPHET_ThreadFound && th[i].now && sys(SYS_tkill, th[i].now, 0) == -ESRCH)
			continue; /* no routine of ours sees its end */
		return 0;
	}
	return 1;
}

int shim_family_end(const struct replayproc *p)
{
	u32 now = __atomic_load_n(&p->now, __ATOMIC_ACQUIRE);
	if (!p->death || !now || goes_on() || !shim_family_over(p->number, 0))
		return 0;
	sys(SYS_kill, now, p->death);
	return 1;
}

void shim_family_await(struct thr *t, u32 now)
{
	const struct replayproc *p = shim_index_procs();
	struct timespec ts = {0, 200000};
	u32 i, was = 0;
	for (i = 0; i < shim_index->procs; i++)
		if (p[i].parent == t->proc && p[i].uid == t->uid && p[i].nth == shim_self.nfork && p[i].how == PROPHET_ProcExeced)
			was = p[i].pid;
	for (i = 0; was && i < shim_index->procs; i++) /* each program that it became */
		while (p[i].pid == was && !(__atomic_load_n(&p[i].now, __ATOMIC_ACQUIRE) == now && shim_family_over(p[i].number, 0)))
			shim_re_nap(t, was, 0, 0, &ts);
}

void shim_family_begin(const char *index)
{
	char path[4200];
	struct text t;
	u64 n = shim_len(index);
	while (n && index[n - 1] != '/')
		n--;
	shim_text(&t, path, sizeof path);
	shim_putn(&t, index, n);
	shim_put(&t, "pids");
	shim_pids_open(path);
}

int shim_family_want(i64 was)
{
	return was > 0 && shim_pid_want((u32)was) == 0;
}

i64 shim_family_born(int wanted, i64 was, i64 now)
{
	if (wanted)
		shim_pid_done(now);
	if (now <= 0)
		return now;
	if (now != was)
		__atomic_add_fetch(&shim_index->pids, 1, __ATOMIC_RELAXED);
	if (was > 0)
		shim_id_is(PROPHET_IDTask, (u64)was, (u64)now);
	return was > 0 ? was : now;
}
