/* Helpers of the steps `obj`, `input`, `pre`, `do` and `post` of Rec (cabi/calls.go) for threads, processes and signals. */
#ifndef SHIM_STEPS_PROC_H
#define SHIM_STEPS_PROC_H

#include "wrap.h"
#include <dlfcn.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>

/* What the C library exports but no header has, or not without a warning. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
extern int __setpgid(pid_t pid, pid_t pgid);
extern pid_t __wait(int *st);
extern pid_t __waitpid(pid_t pid, int *st, int options);
extern int __sigsuspend(const sigset_t *set);
extern int __sigpause(int sigormask, int is_sig);
extern int __xpg_sigpause(int sig);
extern int pidfd_open(pid_t pid, unsigned flags);
extern int pidfd_send_signal(int fd, int sig, siginfo_t *si, unsigned flags);

/* A thread as an object: number 0 of its own. */
static inline u64 shim_thread_object(u32 uid)
{
	return (u64)uid << 40;
}

HIDDEN u32 shim_uid_created(pthread_t th); /* by its creator's memory; 0 when that is lost */

/* Which of our threads a handle stands for. A pthread_t is the thread's own pointer, from which shim_self is as far
 * as it is from ours. One that has not begun yet is asked of its creator. Only where the C library is about to follow the handle, too. */
static inline u32 shim_uid_of(pthread_t th)
{
	const char *me = (const char *)&shim_self - (u64)pthread_self();
	u32 uid = th ? ((const struct self *)((u64)me + (u64)th))->uid : 0;
	return uid ? uid : shim_uid_created(th);
}

static inline void shim_pre_thread(struct ev *e, pthread_t th)
{
	e->obj = shim_thread_object(shim_uid_of(th));
}

static inline void shim_post_reap(struct ev *e, int r)
{
	(void)e;
	if (r == 0)
		shim_reap();
}

/* Signal 1 is bit 0. */
static inline u64 shim_set(const sigset_t *s)
{
	u64 v = 0;
	if (s)
		__builtin_memcpy(&v, s, 8);
	return v;
}

static inline u64 shim_set_if(int r, const sigset_t *s)
{
	return r == 0 ? shim_set(s) : 0;
}

static inline u64 shim_obj_thread(struct thr *t, u64 object)
{
	(void)t;
	return object;
}

static inline void shim_pre_popened(struct ev *e, FILE *f)
{
	e->f1 = f ? (u64)(u32)f->_fileno : 0;
}

/* Z signal, Z code, V pid, V uid, Z status, value or descriptor, V the upper half of the value if it has one */
static inline void shim_input_siginfo(struct ev *e, int ok, const siginfo_t *si)
{
	u8 *p = e->inbuf;
	if (!ok || !si)
		return;
	p = put_z(p, si->si_signo);
	p = put_z(p, si->si_code);
	p = put_v(p, (u64)(u32)si->si_pid);
	p = put_v(p, (u64)si->si_uid);
	p = put_z(p, si->si_signo == SIGCHLD ? si->si_status : si->si_value.sival_int); /* which lies where si_fd does; 0 where there is neither */
	if (si->si_signo != SIGCHLD && (u64)si->si_value.sival_ptr >> 32)
		p = put_v(p, (u64)si->si_value.sival_ptr >> 32);
	e->inlen = (u32)(p - e->inbuf);
}

/* What wait3 and wait4 tell about a child: V user ns, V system ns, V resident KiB at most, V minor, V major faults,
 * V blocks in, V blocks out, V voluntary, V other switches */
static inline void shim_input_usage(struct ev *e, int ok, const struct rusage *u)
{
	u8 *p = e->inbuf;
	if (!ok || !u)
		return;
	p = put_v(p, (u64)u->ru_utime.tv_sec * 1000000000u + (u64)u->ru_utime.tv_usec * 1000u);
	p = put_v(p, (u64)u->ru_stime.tv_sec * 1000000000u + (u64)u->ru_stime.tv_usec * 1000u);
	p = put_v(p, (u64)u->ru_maxrss);
	p = put_v(p, (u64)u->ru_minflt);
	p = put_v(p, (u64)u->ru_majflt);
	p = put_v(p, (u64)u->ru_inblock);
	p = put_v(p, (u64)u->ru_oublock);
	p = put_v(p, (u64)u->ru_nvcsw);
	p = put_v(p, (u64)u->ru_nivcsw);
	e->inlen = (u32)(p - e->inbuf);
}

HIDDEN void shim_post_unloaded(struct ev *e); /* modules.c */

/* The program uses the signal of stack_cpu.c. */
HIDDEN void shim_pre_sigprof_set(struct ev *e, const sigset_t *set);
HIDDEN void shim_pre_sigprof_timer(struct ev *e, int which);
HIDDEN void shim_pre_sigprof_event(struct ev *e, const struct sigevent *ev);

#endif
