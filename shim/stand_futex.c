/* Futexes of the program's own. They have no order that is known, and the word that they are about changes unseen: who
 * looks at it too late finds no reason to wait. So a thread whose next call woke somebody waits for him to be there
 * before it goes on to change the word, and then wakes him; both for a while only, as all of this is a guess. Who was woken
 * waits until he is, or has no more reason to.
 */
#include "replay.h"
#include <linux/futex.h>
#include <time.h>

#define ROUNDS 200
#define FUTEX 202 /* the number on amd64, as recorded */

static u32 there[64]; /* threads of this process that wait, by the name of the futex */

static inline u32 *place(u64 name)
{
	return &there[name * 0x9E3779B97F4A7C15ull >> 58];
}

static inline int woke(u32 op)
{
	op &= FUTEX_CMD_MASK;
	return op == FUTEX_WAKE || op == FUTEX_WAKE_BITSET;
}

static void moment(struct thr *t, u64 name, u32 round)
{
	struct timespec ts = {0, round < 6 ? 20000 << round : 1000000};
	shim_re_nap(t, name, 0, 0, &ts);
}

void shim_re_before_wake(struct thr *t, const struct expect *x)
{
	u64 name = x->obj;
	i64 want = x->ret;
	u32 round;
	if (x->f1 != FUTEX || !woke((u32)x->f3) || !(x->f3 & FUTEX_PRIVATE_FLAG) || want <= 0 || t->re->ex.serial)
		return; /* of one between processes it is not known who is there */
	for (round = 0; round < ROUNDS && (i64)__atomic_load_n(place(name), __ATOMIC_ACQUIRE) < want; round++)
		moment(t, name, round);
}

static long waits(struct thr *t, const struct expect *x, const long *a)
{
	struct timespec soon = {0, 1000000};
	u32 round = 0;
	long r;
	__atomic_add_fetch(place(x->obj), 1, __ATOMIC_ACQ_REL);
	do
		r = sys(SYS_futex, a[0], (a[1] & FUTEX_PRIVATE_FLAG) | FUTEX_WAIT, a[2], &soon);
	while ((r == -ETIMEDOUT || r == -EINTR) && !shim_re_detached() && (moment(t, x->obj, round++), 1));
	__atomic_sub_fetch(place(x->obj), 1, __ATOMIC_ACQ_REL);
	return x->ret;
}

long shim_re_futex(const struct expect *x, const long *a)
{
	struct thr *t = shim_self.thr;
	u32 op = (u32)a[1] & FUTEX_CMD_MASK, round;
	long r, woken = 0;
	if (x->ret < 0)
		return shim_re_ret(x);
	if (woke(op)) {
		for (round = 0; woken < x->ret && round < ROUNDS; round++) {
			r = sys(SYS_futex, a[0], a[1], x->ret - woken, 0, 0, a[5]);
			woken += r > 0 ? r : 0;
			if (woken < x->ret)
				moment(t, x->obj, round);
		}
		return x->ret;
	}
	if (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET)
		return ((long (*)(long, ...))shim_true(CALL_syscall))(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
	return waits(t, x, a);
}
