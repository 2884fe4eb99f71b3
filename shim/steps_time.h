/* Helpers of the steps `obj`, `input`, `pre`, `do` and `post` of Rec (cabi/calls.go) for clocks, random sources and
 * the machine's shape. As everywhere, results are read only after a success.
 */
#ifndef SHIM_STEPS_TIME_H
#define SHIM_STEPS_TIME_H

#include "steps_net.h"
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#define ntp_gettime ntp_gettime_renamed /* the header makes it another name of ntp_gettimex */
#include <sys/timex.h>
#undef ntp_gettime
#include <sys/utsname.h>
#include <time.h>

/* Clocks */

struct timeb { /* <sys/timeb.h> warns about itself */
	time_t time;
	unsigned short millitm;
	short timezone, dstflag;
};
int ftime(struct timeb *tb);
int __gettimeofday(struct timeval *restrict tv, void *restrict tz);
int __adjtimex(struct timex *tx);
int ntp_gettime(struct ntptimeval *tv);
int __nanosleep(const struct timespec *ts, struct timespec *left);

static inline u64 shim_timeval_us(int r, const struct timeval *tv)
{
	return r == 0 && tv ? (u64)tv->tv_sec * 1000000u + (u64)tv->tv_usec : 0;
}

static inline u64 shim_timespec_ns(int r, const struct timespec *ts)
{
	return r == 0 && ts ? shim_ns(ts) : 0;
}

static inline u64 shim_timeb_ms(int r, const struct timeb *tb)
{
	return r == 0 ? (u64)tb->time * 1000u + tb->millitm : 0;
}

static inline u64 shim_timex_modes(const struct ev *e, const struct timex *tx)
{
	return e->ret >= 0 ? tx->modes : 0;
}

static inline u64 shim_timex_us(const struct ev *e, const struct timex *tx)
{
	return e->ret >= 0 ? (u64)tx->time.tv_sec * 1000000u + (u64)tx->time.tv_usec : 0;
}

static inline u64 shim_ntp_us(const struct ev *e, const struct ntptimeval *tv)
{
	return e->ret >= 0 ? (u64)tv->time.tv_sec * 1000000u + (u64)tv->time.tv_usec : 0;
}

/* A sleep has read its time when it slept; it tells what is left when it was interrupted. */
static inline int shim_slept(const struct ev *e)
{
	return e->ret == 0 || e->ret == -EINTR || e->ret == EINTR;
}

static inline u64 shim_slept_ns(const struct ev *e, const struct timespec *ts)
{
	return shim_slept(e) && ts ? shim_ns(ts) : 0;
}

static inline u64 shim_left_ns(const struct ev *e, const struct timespec *left)
{
	return shim_slept(e) && e->ret != 0 && left ? shim_ns(left) : 0;
}

static inline u64 shim_itimer_us(int r, const struct itimerval *it, int interval)
{
	return shim_timeval_us(it ? r : -1, interval ? &it->it_interval : &it->it_value);
}

HIDDEN void shim_input_tms(struct ev *e, const struct tms *t);
HIDDEN void shim_input_rusage(struct ev *e, const struct rusage *u);
HIDDEN void shim_input_itimerval(struct ev *e, const struct itimerval *it);

/* Timers */

static inline u64 shim_obj_timer(struct thr *t, timer_t id)
{
	return shim_object(t, PROPHET_ObjTimer, id)->id;
}

static inline u64 shim_obj_timer_new(struct thr *t, int r, const timer_t *id)
{
	if (r != 0)
		return 0;
	shim_object_gone(PROPHET_ObjTimer, *id);
	return shim_obj_timer(t, *id);
}

static inline void shim_do_timer_gone(struct ev *e, timer_t id)
{
	if (e->ret == 0)
		shim_object_gone(PROPHET_ObjTimer, id);
}

static inline u64 shim_sigev_notify(int r, const struct sigevent *sev)
{
	return r == 0 && sev ? (u64)sev->sigev_notify : SIGEV_SIGNAL;
}

static inline u64 shim_sigev_signo(int r, const struct sigevent *sev)
{
	return r != 0 ? 0 : sev ? (u64)sev->sigev_signo : SIGALRM;
}

/* Random numbers */

/* Always kept, whatever is kept of other inputs. */
static inline void shim_random_data(struct ev *e, const void *buf, i64 len)
{
	if (len > 0)
		shim_data_slow(e, PROPHET_InputsFull, buf, (u64)len);
}

static inline u64 shim_bits(double x)
{
	u64 v;
	__builtin_memcpy(&v, &x, 8);
	return v;
}

static inline u64 shim_out32(int r, const void *p)
{
	u32 v = 0;
	if (r == 0)
		__builtin_memcpy(&v, p, 4);
	return v;
}

/* Capabilities: of a header its version, and how much the kernel has put into data. */
HIDDEN int shim_may_read(const void *p, u64 n);

static inline u64 shim_caps_version(const u32 *head)
{
	return shim_may_read(head, 8) ? *head : 0;
}

static inline i64 shim_caps_len(int r, const u32 *head, const void *data)
{
	return r != 0 || !data ? 0 : *head == 0x19980330 ? 12 : 24; /* the first version has half of the bits */
}

/* The machine's shape */

/* told is how many processors the program is told of instead of those that there are; 0: of these. What a re-execution
 * answers the trace says. */
enum { TOLD_MAY, TOLD_ONLINE, TOLD_THERE };

static inline u32 shim_told(const struct ev *e, u32 which)
{
	return unlikely(shim_ctl.told[which]) && !e->t->re ? shim_ctl.told[which] : 0;
}

static inline void shim_do_told_cpus(struct ev *e, u32 which, int *r)
{
	u32 n = shim_told(e, which);
	if (n && *r > 0)
		e->ret = *r = (int)n;
}

static inline void shim_do_told_conf(struct ev *e, int name, long *r)
{
	u32 n = name == _SC_NPROCESSORS_ONLN ? shim_told(e, TOLD_ONLINE) : name == _SC_NPROCESSORS_CONF ? shim_told(e, TOLD_THERE) : 0;
	if (n && *r > 0)
		e->ret = *r = (long)n;
}

/* The one that it is on is one of those that are online. */
static inline void shim_do_told_cpu(struct ev *e, int *r)
{
	u32 n = shim_told(e, TOLD_ONLINE);
	if (n && *r > 0)
		e->ret = *r %= (int)n;
}

static inline u64 shim_told_in(const struct ev *e, int r, unsigned int *cpu)
{
	u32 n = shim_told(e, TOLD_ONLINE);
	if (r != 0 || !cpu)
		return 0;
	if (n)
		*cpu %= n;
	return *cpu;
}

HIDDEN const cpu_set_t *shim_told_set(const struct ev *e, cpu_set_t *set, u64 bytes);

long int __sysconf(int name);
int __getpagesize(void);
int __gethostname_chk(char *name, size_t n, size_t space);
int __getdomainname_chk(char *name, size_t n, size_t space);
int __sched_getparam(pid_t pid, struct sched_param *p);
int __sched_getscheduler(pid_t pid);
int __sched_setscheduler(pid_t pid, int policy, const struct sched_param *p);
int __sched_get_priority_max(int policy);
int __sched_get_priority_min(int policy);
pid_t __getpid(void);
int __getgroups_chk(int n, gid_t *list, size_t space);
int __getlogin_r_chk(char *name, size_t n, size_t space);
int __ttyname_r_chk(int fd, char *name, size_t n, size_t space);

static inline u64 shim_outu(int r, const unsigned int *p)
{
	return r == 0 && p ? *p : 0;
}

static inline u64 shim_priority(int r, const struct sched_param *p)
{
	return r == 0 && p ? (u64)(i64)p->sched_priority : 0;
}

/* The 64-bit form is the same on 64-bit machines. */
static inline u64 shim_limit(int r, const void *lim, int hard)
{
	u64 v[2] = {0, 0};
	if (r == 0 && lim)
		__builtin_memcpy(v, lim, sizeof v);
	return v[hard];
}
_Static_assert(sizeof(struct rlimit) == 16 && sizeof(struct rlimit64) == 16, "one form of limits");

/* A name that came back: whole, or cut without an end. */
HIDDEN const char *shim_name_if(int r, const char *name, u64 n);

static inline u64 shim_pw_uid(const struct passwd *p)
{
	return p ? p->pw_uid : 0;
}

static inline const char *shim_pw_name(const struct passwd *p)
{
	return p ? p->pw_name : 0;
}

static inline u64 shim_gr_gid(const struct group *g)
{
	return g ? g->gr_gid : 0;
}

static inline const char *shim_gr_name(const struct group *g)
{
	return g ? g->gr_name : 0;
}

HIDDEN void shim_input_sysinfo(struct ev *e, const struct sysinfo *i);
HIDDEN void shim_input_utsname(struct ev *e, const struct utsname *u);
HIDDEN void shim_input_loads(struct ev *e, const double *loads, int n);
HIDDEN void shim_input_cpus(struct ev *e, const cpu_set_t *set, u64 bytes);
HIDDEN void shim_input_limits(struct ev *e, const void *set, const void *old);
HIDDEN void shim_input_groups(struct ev *e, const gid_t *list, int n);

#endif
