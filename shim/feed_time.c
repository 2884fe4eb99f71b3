/* See feed_time.h. */
#include "feed_time.h"

struct in {
	const u8 *p, *end;
};

static struct in input(const struct expect *x)
{
	struct in in = {x->input, x->input + x->input_len};
	return in;
}

#define V() shim_get_v(&in.p, in.end)

static struct timeval us(u64 v)
{
	struct timeval tv = {(time_t)(v / 1000000u), (suseconds_t)(v % 1000000u)};
	return tv;
}

static struct timespec ns(u64 v)
{
	struct timespec ts = {(time_t)(v / 1000000000u), (long)(v % 1000000000u)};
	return ts;
}

void feed_tms(const struct expect *x, struct tms *t)
{
	struct in in = input(x);
	if (!t || !x->input_len)
		return;
	t->tms_utime = (clock_t)V();
	t->tms_stime = (clock_t)V();
	t->tms_cutime = (clock_t)V();
	t->tms_cstime = (clock_t)V();
}

void feed_rusage(const struct expect *x, struct rusage *u)
{
	struct in in = input(x);
	long *n = &u->ru_maxrss;
	int i;
	if (!x->input_len)
		return;
	u->ru_utime = us(V());
	u->ru_stime = us(V());
	for (i = 0; i < 14; i++)
		n[i] = (long)V();
}

void feed_itimerval(const struct expect *x, struct itimerval *it)
{
	struct in in = input(x);
	if (!it || !x->input_len)
		return;
	it->it_value = us(V());
	it->it_interval = us(V());
}

void feed_itimerspec(const struct expect *x, struct itimerspec *it)
{
	struct in in = input(x);
	if (!it || !x->input_len)
		return;
	it->it_value = ns(V());
	it->it_interval = ns(V());
}

void feed_sysinfo(const struct expect *x, struct sysinfo *i)
{
	struct in in = input(x);
	int k;
	if (!x->input_len)
		return;
	shim_zero(i, sizeof *i);
	i->uptime = (long)V();
	for (k = 0; k < 3; k++)
		i->loads[k] = V();
	i->totalram = V();
	i->freeram = V();
	i->sharedram = V();
	i->bufferram = V();
	i->totalswap = V();
	i->freeswap = V();
	i->procs = (unsigned short)V();
	i->mem_unit = 1;
}

static void word(struct in *in, char *to, u64 room)
{
	u64 n = shim_get_v(&in->p, in->end);
	if (n > (u64)(in->end - in->p) || n >= room)
		return;
	shim_copy(to, in->p, n);
	in->p += n;
}

void feed_utsname(const struct expect *x, struct utsname *u)
{
	struct in in = input(x);
	if (!x->input_len)
		return;
	shim_zero(u, sizeof *u);
	word(&in, u->sysname, sizeof u->sysname);
	word(&in, u->nodename, sizeof u->nodename);
	word(&in, u->release, sizeof u->release);
	word(&in, u->version, sizeof u->version);
	word(&in, u->machine, sizeof u->machine);
	word(&in, u->domainname, sizeof u->domainname);
}

void feed_loads(const struct expect *x, double *loads, int n)
{
	struct in in = input(x);
	int i;
	for (i = 0; i < n && i < 3 && i < x->ret; i++) {
		u64 bits = V();
		__builtin_memcpy(&loads[i], &bits, 8);
	}
}

/* The kernel writes as many bytes as it has processors for; those behind stay. The result of the raw call is not seen
 * here: the C library zeroes the rest. */
void feed_cpus(const struct expect *x, cpu_set_t *set, u64 bytes)
{
	struct in in = input(x);
	u8 *to = (u8 *)set;
	u64 i;
	if (x->ret != 0 || !x->input_len)
		return;
	shim_zero(to, bytes);
	for (i = 0; i + 8 <= bytes && in.p < in.end; i += 8) {
		u64 w = V();
		__builtin_memcpy(to + i, &w, 8);
	}
}

void feed_limit(const struct expect *x, void *lim)
{
	u64 v[2] = {x->f2, x->f3};
	if (x->ret == 0 && lim)
		__builtin_memcpy(lim, v, sizeof v);
}

void feed_limits(const struct expect *x, void *old)
{
	struct in in = input(x);
	u64 given = V(), v[2];
	if (!old || !(given & 2))
		return;
	if (given & 1) {
		V();
		V();
	}
	v[0] = V();
	v[1] = V();
	__builtin_memcpy(old, v, sizeof v);
}

/* The C library gives what fits and an end, or fails. */
void feed_name(const struct expect *x, char *buf, u64 room)
{
	const u8 *p = x->tail, *end = p + x->tail_len;
	u64 n;
	if (x->ret != 0 || !x->tail_len)
		return;
	n = shim_get_v(&p, end);
	if (n > (u64)(end - p) || n >= room)
		return;
	shim_copy(buf, p, n);
	buf[n] = 0;
}

/* The state of the clock is today's, the time the recorded one; nothing is set. */
void feed_timex(const struct expect *x, struct timex *tx, u64 v)
{
	struct timex now;
	if (x->ret < 0)
		return;
	shim_zero(&now, sizeof now);
	if (sys(SYS_adjtimex, &now) < 0)
		return;
	now.modes = tx->modes;
	now.time = us(v);
	*tx = now;
}
