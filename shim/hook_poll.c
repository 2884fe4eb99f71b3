/* select and pselect by hand: their sets are asked and answered in the same memory, so what was asked is encoded
 * before the call. The kernel must be the one to refuse a bad pointer: nothing is read before that may fault.
 */
#include "wrap_all.h"

#define SET_ROOM (INPUT_ROOM / 2 - 16)

/* A set as runs: V how many, then V gap, V length. A set that does not fit is cut: its count tells only what follows. */
static u8 *put_set(u8 *p, u8 *end, const u64 *words, u32 n, u32 *note)
{
	u8 *start = p++;
	u32 runs = 0, from = 0, i = 0, k;
	while (words && i < n) {
		u64 w = words[i / 64] >> (i % 64);
		if (!w) {
			i = (i / 64 + 1) * 64;
			continue;
		}
		i += (u32)__builtin_ctzll(w);
		for (k = i; k < n && words[k / 64] >> (k % 64) & 1; k++)
			;
		if (i >= n)
			break;
		if (runs == 120 || end - p < 24) {
			*note |= PROPHET_NoteCut;
			break;
		}
		p = put_v(p, i - from);
		p = put_v(p, k - i);
		runs++;
		from = i = k;
	}
	*start = (u8)(runs << 1 | 1); /* a varint of one byte */
	return p;
}

static const u64 *set_of(const fd_set *s, u32 n)
{
	return s && n && shim_may_read(s, (n + 63) / 64 * 8) ? (const u64 *)s : 0;
}

/* What is asked, into the event's room. */
static u8 *asked(struct ev *e, u8 *p, int n, fd_set *r, fd_set *w, fd_set *x)
{
	u32 bits = n > 0 ? (u32)n : 0;
	u8 *end = p + SET_ROOM;
	p = put_set(p, end - 48, set_of(r, bits), bits, &e->note);
	p = put_set(p, end - 24, set_of(w, bits), bits, &e->note);
	return put_set(p, end, set_of(x, bits), bits, &e->note);
}

static void answered(struct ev *e, u8 *p, int n, fd_set *r, fd_set *w, fd_set *x)
{
	u8 *end = e->inbuf + INPUT_ROOM;
	u32 bits = n > 0 ? (u32)n : 0;
	if (e->ret > 0) {
		p = put_set(p, end - 48, (const u64 *)r, bits, &e->note);
		p = put_set(p, end - 24, (const u64 *)w, bits, &e->note);
		p = put_set(p, end, (const u64 *)x, bits, &e->note);
	}
	e->inlen = (u32)(p - e->inbuf);
}

static u64 timeval_ns(const struct timeval *tv)
{
	return tv ? (u64)tv->tv_sec * 1000000000u + (u64)tv->tv_usec * 1000u : ~0ull;
}

typedef int (*select_fn)(int, fd_set *, fd_set *, fd_set *, struct timeval *);

static LEAP int selected(select_fn real, u32 call, void *pc, int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *tmo)
{
	u8 room[INPUT_ROOM], *p;
	struct ev e;
	int got;
	if (!shim_begin(&e, call, CLASS_net, pc))
		return real(n, r, w, x, tmo);
	e.inbuf = room;
	p = asked(&e, room, n, r, w, x);
	e.f2 = tmo && shim_may_read(tmo, sizeof *tmo) ? timeval_ns(tmo) : ~0ull;
	got = real(n, r, w, x, tmo);
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(got);
	e.f1 = (u64)n;
	if (got >= 0)
		e.f3 = timeval_ns(tmo);
	answered(&e, p, n, r, w, x);
	shim_done(&e);
	return got;
}

EXPORT LEAP int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, struct timeval *restrict tmo)
{
	return selected((select_fn)REAL(select), CALL_select, CALLER(), n, r, w, x, tmo);
}

EXPORT LEAP int __select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, struct timeval *restrict tmo)
{
	return selected((select_fn)REAL(__select), CALL___select, CALLER(), n, r, w, x, tmo);
}

EXPORT LEAP int pselect(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, const struct timespec *restrict tmo, const sigset_t *restrict mask)
{
	u8 room[INPUT_ROOM], *p;
	struct ev e;
	int got;
	if (!shim_begin(&e, CALL_pselect, CLASS_net, CALLER()))
		return REAL(pselect)(n, r, w, x, tmo, mask);
	e.inbuf = room;
	p = asked(&e, room, n, r, w, x);
	got = REAL(pselect)(n, r, w, x, tmo, mask);
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(got);
	e.f1 = (u64)n;
	e.f2 = shim_timespec(&e, tmo);
	e.f3 = shim_mask(&e, mask);
	answered(&e, p, n, r, w, x);
	shim_done(&e);
	return got;
}
