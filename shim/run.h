/* The run that this process belongs to: its directory, its control page, its files, and what is said about it.
 *
 * run.c owns the files and slots, ours.c the descriptors, start.c how a process comes in, say.c the line on stderr. The descriptors
 * stand above the program's (shim_fd_ours tells them apart) and are checked before each use, as a program may close all it finds and
 * open others under the same numbers.
 */
#ifndef SHIM_RUN_H
#define SHIM_RUN_H

#include "ring.h"

struct run {
	u32 state; /* RUN_… */
	u32 pid, ppid; /* ppid: when the process began */
	u32 proc, parent_proc, parent_uid, parent_nth;
	u32 how;
	u32 threads; /* ever started in this process: 1 means that nobody races us for the lowest descriptor */
	u64 boottime;
	u64 next_rss;
	u64 born; /* ticks at the first event of a forked child */
	u64 asked; /* mark of the PROPHET_TRACE that this process was started with */
	u32 slot_hint; /* the slot that this process had before exec; ~0: none */
	u32 valgrind; /* which runs the program, and tells people of system calls that it holds for mistakes */
	u64 own_bytes, own_read; /* written and read by us, for coverage */
	u32 stream_index;
	u32 said;
	u32 forked_from_threads;
	u32 exiting; /* the thread that has run at_end (boot.c): every record goes out at once */
	u32 ns; /* our pid namespace, 0 when not known */
	u32 left; /* a thread has ended by system call, */
	i32 left_status; /* with this status if it was the first, which is the process's then */
	u32 blind; /* the program has forbidden itself to read the time stamp counter; nothing is recorded then */
	char **envp;
	const char *lib; /* where we are, for children */
	/* In this order, as what most runs need of them is then on one page. */
	int apart; /* 1: the file control lies with the rings */
	char shm[256];
	char exe[2048]; /* what /proc/self/exe led to when this program began; as much as fits */
	char dir[4096];
};
enum { RUN_NONE, RUN_OFF, RUN_ON };
extern struct run shim_run HIDDEN;
extern u32 shim_leaps HIDDEN; /* Control.Leaps, for the assembly */

/* What a call of ours has read, if it did: the kernel counts it as the program's. */
static inline long shim_own_read(long r)
{
	if (r > 0)
		__atomic_fetch_add(&shim_run.own_read, (u64)r, __ATOMIC_RELAXED);
	return r;
}

/* A stamp where nothing may be recorded. */
static inline u64 shim_moment(void)
{
	return unlikely(shim_run.blind) ? 0 : shim_ticks();
}

HIDDEN int shim_run_open(char **envp, int argc, char **argv); /* 0: recording */
extern char shim_room_at_start[65536] HIDDEN; /* for texts, while the process has one thread and the program has not begun; then for other threads' rings */
HIDDEN void shim_run_forked(void); /* in a new child */
HIDDEN void shim_block(u64 *was); /* all signals of the program */
HIDDEN void shim_unblock(const u64 *was);
HIDDEN int shim_stream_write(const void *p, u64 len); /* 0 or errno; signals are blocked */
HIDDEN int shim_stream_writev(const struct iovec *v, int n, u64 len);
HIDDEN void *
shim_slots_map(void *at, u32 first,
	       u32 n); /* shared, the first PROPHET_SlotFirst of each backed by real memory, at this address if not NULL; NULL when there is none */
HIDDEN int shim_slot_grow(u32 index); /* memory for all of it; 0 or -errno; signals are blocked */
HIDDEN int shim_private(void *at); /* a slot's memory becomes this process's own; 0 or -errno */
HIDDEN int shim_slot_take(u32 n, u32 *first); /* n slots in a row for this process */
HIDDEN void shim_slot_free(u32 index);
HIDDEN void shim_run_left(void); /* this process has freed its slots: the last one cleans up */
HIDDEN void *shim_shared_room(void); /* the table of shared objects; NULL when it has no space */
HIDDEN void shim_ns_look(void);
HIDDEN void shim_ns_known(void); /* before there may be other threads or processes: to look costs 14 us, and most that are first have none */
HIDDEN void shim_rss_ready(void); /* before other threads could see the lowest descriptor taken for a moment */
HIDDEN u64 shim_rss(u64 now); /* pages, or 0 when it is not time yet */
HIDDEN void shim_say(const char *what, const char *about, i64 err); /* the one line */
HIDDEN int shim_fd_ours(int fd);
HIDDEN int shim_fd_ours_from(u32 first); /* the lowest of ours from there on; -1: none */
HIDDEN void shim_fd_yield(int fd); /* ours moves elsewhere: the program wants the number */
extern u32 shim_fd_near HIDDEN; /* from here on the program comes near ours: */
HIDDEN void shim_fd_far(u32 fd); /* they go further up, or make room */
HIDDEN void shim_fd_blind(void); /* they go far up: we do not see which it gets */
HIDDEN int shim_room(u32 part); /* PROPHET_Room…: gives a part of the control mapping its space; 0: there is none to be had */
HIDDEN u64 *shim_known_files(void); /* PROPHET_KnownFiles words in the control mapping; the first counts the others */
HIDDEN void shim_take_back(u64 set); /* pending signals of that set */
HIDDEN void shim_ring_rate(u64 ticks_per_ms);
HIDDEN void shim_io_counts(u64 *rchar, u64 *wchar);
HIDDEN int shim_trace_asked(const char *dir); /* another trace than ours is wanted */
#define RUN_TEXT 96 /* longest PROPHET_RUN, without what makes it longer */
#define RUN_ROOM 640
HIDDEN void shim_trace_env(char *trace, u32 cap, char *run, u32 slot); /* what children need; run has room for RUN_ROOM */

/* A lock of ours. Signals are blocked while it is held; fork wipes it. */
struct lock {
	u32 word;
	u32 pad;
	u64 mask;
};
HIDDEN void shim_lock(struct lock *l);
HIDDEN void shim_unlock(struct lock *l);

/* Process state that a forked child must not inherit. */
struct wiped {
	u32 alive; /* 0: we are a forked child that has not been seen yet */
	u32 users; /* of the descriptors that we keep (ours.c) */
	struct lock threads, modules, objects, timers, files;
	u32 draw[2]; /* the tid that draws a random number: hook_rand.c */
	struct thr *list; /* every thread's */
	struct thr *spare;
	struct thr *ended; /* threads whose routine is over: pushed by themselves, */
	struct thr *reaping; /* taken from there by shim_reap */
	struct lock system;
};
extern struct wiped *shim_wiped HIDDEN;
#define WIPED_ROOM 512 /* the first thread's struct thr follows */
_Static_assert(WIPED_ROOM % 64 == 0 && sizeof(struct wiped) <= WIPED_ROOM, "wiped state and the first thread's share their pages");

#endif
