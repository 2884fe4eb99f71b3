/* See steps_time.h. */
#include "wrap_all.h"

static void input_is(struct ev *e, const u8 *end)
{
	e->inlen = (u32)(end - e->inbuf);
}

/* V user, V system, V children's user, V children's system: clock ticks. */
void shim_input_tms(struct ev *e, const struct tms *t)
{
	u8 *p = e->inbuf;
	if (e->ret == -1 || !t)
		return;
	p = put_v(p, (u64)t->tms_utime);
	p = put_v(p, (u64)t->tms_stime);
	p = put_v(p, (u64)t->tms_cutime);
	input_is(e, put_v(p, (u64)t->tms_cstime));
}

/* V user us, V system us, then the 14 counts as the kernel has them. */
void shim_input_rusage(struct ev *e, const struct rusage *u)
{
	u8 *p = e->inbuf;
	const long *n = &u->ru_maxrss;
	int i;
	if (e->ret != 0)
		return;
	p = put_v(p, shim_timeval_us(0, &u->ru_utime));
	p = put_v(p, shim_timeval_us(0, &u->ru_stime));
	for (i = 0; i < 14; i++)
		p = put_v(p, (u64)n[i]);
	input_is(e, p);
}
_Static_assert(sizeof(struct rusage) == 2 * sizeof(struct timeval) + 14 * sizeof(long), "14 counts");

void shim_input_itimerval(struct ev *e, const struct itimerval *it)
{
	if (it && e->ret == 0)
		input_is(e, put_v(put_v(e->inbuf, shim_timeval_us(0, &it->it_value)), shim_timeval_us(0, &it->it_interval)));
}

const char *shim_name_if(int r, const char *name, u64 n)
{
	u64 i;
	if (r != 0 || !name)
		return 0;
	for (i = 0; i < n; i++)
		if (!name[i])
			return name;
	return 0;
}

/* V uptime, V three loads, then what there is of memory, in bytes, and the number of processes. */
void shim_input_sysinfo(struct ev *e, const struct sysinfo *i)
{
	u64 unit = i && e->ret == 0 && i->mem_unit ? i->mem_unit : 1;
	u8 *p = e->inbuf;
	int k;
	if (e->ret != 0)
		return;
	p = put_v(p, (u64)i->uptime);
	for (k = 0; k < 3; k++)
		p = put_v(p, i->loads[k]);
	p = put_v(p, i->totalram * unit);
	p = put_v(p, i->freeram * unit);
	p = put_v(p, i->sharedram * unit);
	p = put_v(p, i->bufferram * unit);
	p = put_v(p, i->totalswap * unit);
	p = put_v(p, i->freeswap * unit);
	input_is(e, put_v(p, i->procs));
}

static u8 *put_word(u8 *p, const char *s, u64 most)
{
	u64 n = 0;
	while (n < most && s[n])
		n++;
	p = put_v(p, n);
	shim_copy(p, s, n);
	return p + n;
}

/* S system, S node, S release, S version, S machine, S domain. */
void shim_input_utsname(struct ev *e, const struct utsname *u)
{
	u8 *p = e->inbuf;
	if (e->ret < 0)
		return;
	p = put_word(p, u->sysname, 16);
	p = put_word(p, u->nodename, 64);
	p = put_word(p, u->release, 64);
	p = put_word(p, u->version, 64);
	p = put_word(p, u->machine, 16);
	input_is(e, put_word(p, u->domainname, 64));
}

/* V each load's bits. */
void shim_input_loads(struct ev *e, const double *loads, int n)
{
	u8 *p = e->inbuf;
	int i;
	for (i = 0; i < n && i < 3; i++)
		p = put_v(p, shim_bits(loads[i]));
	if (n > 0)
		input_is(e, p);
}

/* Of those that it may use as many as it is told of, the first ones; where these are too few, others from 0 on. */
const cpu_set_t *shim_told_set(const struct ev *e, cpu_set_t *set, u64 bytes)
{
	u64 *w = (u64 *)set, left = shim_told(e, TOLD_MAY), i;
	if (!left || e->ret != 0 || !set)
		return set;
	for (i = 0; i < bytes / 8 * 64; i++)
		if (w[i / 64] >> i % 64 & 1) {
			if (left)
				left--;
			else
				w[i / 64] &= ~(1ull << i % 64);
		}
	for (i = 0; left && i < bytes / 8 * 64; i++)
		if (!(w[i / 64] >> i % 64 & 1)) {
			w[i / 64] |= 1ull << i % 64;
			left--;
		}
	return set;
}

/* V each word of 64 processors, down to the last that is not empty. */
void shim_input_cpus(struct ev *e, const cpu_set_t *set, u64 bytes)
{
	const u64 *w = (const u64 *)set;
	u64 n = bytes / 8, i;
	u8 *p = e->inbuf;
	if (e->ret != 0 || !set)
		return;
	while (n > 1 && !w[n - 1])
		n--;
	if (n > 32) {
		n = 32;
		e->note |= PROPHET_NoteCut;
	}
	for (i = 0; i < n; i++)
		p = put_v(p, w[i]);
	input_is(e, p);
}

/* V what is given (1 new, 2 old), V soft, V hard of each. */
void shim_input_limits(struct ev *e, const void *set, const void *old)
{
	u8 *p;
	if (e->ret != 0 || !(set || old))
		return;
	p = put_v(e->inbuf, (set ? 1 : 0) | (old ? 2 : 0));
	if (set)
		p = put_v(put_v(p, shim_limit(0, set, 0)), shim_limit(0, set, 1));
	if (old)
		p = put_v(put_v(p, shim_limit(0, old, 0)), shim_limit(0, old, 1));
	input_is(e, p);
}

/* V each group. */
void shim_input_groups(struct ev *e, const gid_t *list, int n)
{
	u8 *p = e->inbuf;
	i64 i;
	if (e->ret <= 0 || n <= 0)
		return;
	for (i = 0; i < e->ret; i++) {
		if (p > e->inbuf + INPUT_ROOM - INPUT_ITEM) {
			e->note |= PROPHET_NoteCut;
			break;
		}
		p = put_v(p, list[i]);
	}
	input_is(e, p);
}
