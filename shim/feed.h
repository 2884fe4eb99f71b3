/* What the statements of rows' Feed call: each gives the caller a part of what the expected event x has. A program's
 * memory is written only where the recording wrote it.
 */
#ifndef SHIM_FEED_H
#define SHIM_FEED_H

#include "replay.h"
#include "wrap_all.h"
#include "feed_disk.h"
#include "feed_time.h"
#include <sys/time.h>
#include <limits.h>
#include <resolv.h>
#include <time.h>

/* Input data; its length is the recorded one. */
static inline void feed_data(const struct expect *x, void *buf, u64 room)
{
	if (x->data && x->data_len <= room)
		shim_copy(buf, x->data, x->data_len);
}

static inline void feed_timespec(int good, struct timespec *ts, u64 ns)
{
	if (good && ts) {
		ts->tv_sec = (time_t)(ns / 1000000000u);
		ts->tv_nsec = (long)(ns % 1000000000u);
	}
}

static inline void feed_timeval(int good, struct timeval *tv, u64 us)
{
	if (good && tv) {
		tv->tv_sec = (time_t)(us / 1000000u);
		tv->tv_usec = (suseconds_t)(us % 1000000u);
	}
}

/* A sleep takes its time only where that is asked for (stand_sleep.c). */
HIDDEN void shim_re_sleep(const struct expect *x, u64 ns);

HIDDEN void shim_feed_siginfo(const struct expect *x, siginfo_t *si);

static inline u64 feed_tail(const struct expect *x, u32 nth)
{
	const u8 *p = x->tail, *end = p + x->tail_len;
	u64 v = 0;
	if (!x->tail_len)
		return 0;
	do
		v = shim_get_v(&p, end);
	while (nth--);
	return v;
}

/* The file's offset is where the call left it. */
static inline void feed_offset(const struct expect *x, int fd)
{
	if (x->ret >= 0)
		sys(SYS_lseek, fd, x->ret, SEEK_SET);
}

/* For a wrapper that takes a place in an order by itself: waits until it is its turn. */
HIDDEN void shim_re_turn(const struct expect *x, struct object_entry *o);

/* A lock of a file: its turn, then the lock, for which nobody waits longer than its holder needs to let go. */
HIDDEN int shim_re_lock_file(const struct expect *x, int fd, int cmd, unsigned long arg);

static inline void feed_timer(const struct expect *x, struct itimerspec *it, u64 value_ns, u64 interval_ns)
{
	if (it) {
		feed_timespec(x->ret == 0, &it->it_value, value_ns);
		feed_timespec(x->ret == 0, &it->it_interval, interval_ns);
	}
}

/* Answers to questions for names (stand_name.c). Under --serial a program's memory is to have its recorded addresses, so the C
 * library allocates what it allocated then: it is asked, unrecorded, and only its answer is not believed. The servers that it
 * asks are as many as it knows, and nobody can connect to them. */
struct asked {
	struct __res_state *of; /* whose servers */
	int errno_was, servers, muted, pad;
	struct sockaddr_in list[MAXNS];
};
HIDDEN void shim_ask(struct asked *a, struct expect *x, const char *host, const char *service, const struct addrinfo *hints);
HIDDEN void shim_ask_over(const struct asked *a);
#define RE_ASK(host, question)               \
	do {                                 \
		struct asked a;              \
		if (!shim_ctl.serial)        \
			break;               \
		shim_ask(&a, x, host, 0, 0); \
		question;                    \
		shim_ask_over(&a);           \
	} while (0)
HIDDEN void shim_ask_resolver(struct asked *a, struct expect *x, struct __res_state *of);
#define RE_RESOLVE(state, question)                \
	do {                                       \
		struct asked a;                    \
		if (!shim_ctl.serial)              \
			break;                     \
		shim_ask_resolver(&a, x, (state)); \
		question;                          \
		shim_ask_over(&a);                 \
	} while (0)
HIDDEN int shim_re_answer(struct expect *x, struct __res_state *of, unsigned char *answer, int n);
HIDDEN int shim_re_addrs(struct expect *x, const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res);
HIDDEN int shim_re_nameinfo(struct expect *x, char *host, u64 hostlen, char *serv, u64 servlen);
HIDDEN struct hostent *shim_re_host(struct expect *x);
HIDDEN int shim_re_host_r(struct expect *x, struct hostent *buf, char *space, u64 n, struct hostent **h, int *herr);
HIDDEN u32 shim_re_index(struct expect *x);
HIDDEN char *shim_re_interface(struct expect *x, char *name);
HIDDEN struct if_nameindex *shim_re_interfaces(struct expect *x);
HIDDEN int shim_re_ifaddrs(struct expect *x, struct ifaddrs **list);

static inline double feed_double(u64 bits)
{
	double d;
	__builtin_memcpy(&d, &bits, 8);
	return d;
}

#endif
