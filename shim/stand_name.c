/* Answers to questions for names: hosts, interfaces. The C library would ask servers and read files; the trace has what
 * came of it. What the program gives back to the C library is allocated as the C library does it.
 */
#include "token.h"
#include "channel.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <resolv.h>

/* The program's own, if it has one: it is also who frees. Reached through the linker's table, as from the C library. */
static void *(*const allocate)(size_t) = malloc;

static void *zeroed(u64 n)
{
	void *p = allocate(n);
	if (p)
		shim_zero(p, n);
	return p;
}

/* Where the C library may have read its configuration for the first time it does so now, unrecorded: other questions,
 * which are really asked, rely on that. */
static void configured(void)
{
	static u32 done;
	int was = errno;
	if (__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
		return;
	shim_self.off++;
	sethostent(0);
	endhostent();
	shim_self.off--;
	errno = was;
}

/* What the C library did with streams to find the answer, and what modules of the name service called, was recorded
 * before it. That is not done again, but the names that it gave are. */
static const struct expect *alone(struct expect *x)
{
	struct thr *t = shim_self.thr;
	struct expects *ex = &t->re->ex;
	struct expect *first;
	u32 i;
	if (shim_expect(ex) == x)
		return x;
	while ((first = shim_expect(ex)) != x) {
		if (first->kind == EXPECT_EVENT)
			shim_re_pass(t); /* with its turn of the token, if it has one */
		else if (!shim_token_here(t))
			break;
	}
	if (!shim_ctl.serial)
		configured();
	if (first != x || x->named <= t->nobj)
		return x;
	for (i = ex->nfds > EXPECT_FDS ? ex->nfds - EXPECT_FDS : 0; i < ex->nfds; i++) {
		u64 number = ex->fds[i % EXPECT_FDS].number;
		if (number > t->nobj && number <= x->named)
			shim_fd_named((int)ex->fds[i % EXPECT_FDS].fd, (u64)t->uid << 40 | number);
	}
	t->nobj = x->named;
	return x;
}

/* Servers are asked that nobody can connect to, as the C library keeps memory for each that it has asked; those with long
 * addresses, which it has elsewhere, are left out. */
static void mute(struct asked *a, res_state of)
{
	int i;
	a->of = of;
	a->servers = of->nscount;
	__builtin_memcpy(a->list, of->nsaddr_list, sizeof a->list);
	for (i = 0; i < of->nscount && i < MAXNS; i++) {
		if (of->nsaddr_list[i].sin_family != AF_INET) {
			of->nscount = 0;
			return;
		}
		of->nsaddr_list[i].sin_addr.s_addr = INADDR_BROADCAST;
	}
}

void shim_ask(struct asked *a, struct expect *x, const char *host, const char *service, const struct addrinfo *hints)
{
	u8 address[16];
	alone(x);
	a->errno_was = errno;
	shim_self.off++;
	a->muted = host && !shim_same(host, "localhost") && !inet_pton(AF_INET, host, address) && !inet_pton(AF_INET6, host, address); /* else it asks nobody */
	if (!a->muted)
		return;
	if (!(_res.options & RES_INIT)) { /* in the order in which the C library looks for what it needs */
		char space[1024];
		struct hostent h, *found;
		struct addrinfo *list;
		int herr;
		if (!hints)
			TRUE(gethostbyname_r)("127.0.0.1", &h, space, sizeof space, &found, &herr);
		else if (TRUE(getaddrinfo)("localhost", service, hints, &list) == 0)
			freeaddrinfo(list);
	}
	mute(a, &_res);
}

/* A state that is not ready asks nobody whom we know. */
void shim_ask_resolver(struct asked *a, struct expect *x, res_state of)
{
	unsigned char query[64];
	alone(x);
	a->errno_was = errno;
	shim_self.off++;
	if (of == &_res && !(of->options & RES_INIT))
		TRUE(res_mkquery)(0, "localhost", 1, 1, 0, 0, 0, query, sizeof query);
	a->muted = (of->options & RES_INIT) != 0;
	if (a->muted)
		mute(a, of);
}

void shim_ask_over(const struct asked *a)
{
	if (a->muted) {
		__builtin_memcpy(a->of->nsaddr_list, a->list, sizeof a->list);
		a->of->nscount = a->servers;
	}
	shim_self.off--;
	errno = a->errno_was;
}

/* Whether an answer is the recorded one. */
static int recorded(const struct expect *x, const struct ev *e)
{
	return e->inlen == x->input_len && (x->input_len || !x->data) && __builtin_memcmp(e->inbuf, x->input, x->input_len) == 0;
}

/* A text of the tail, not NUL-terminated. */
static const u8 *text(const u8 **p, const u8 *end, u64 *n)
{
	const u8 *s;
	*n = shim_get_v(p, end);
	if (*n > (u64)(end - *p))
		*n = (u64)(end - *p);
	s = *p;
	*p += *n;
	return s;
}

static char *copy_of(const u8 *s, u64 n)
{
	char *c = zeroed(n + 1);
	if (c)
		shim_copy(c, s, n);
	return c;
}

/* As shim_input_list wrote it: in the event, or as its data. */
static const u8 *listed(const struct expect *x, const u8 **end)
{
	const u8 *p = x->input_len ? x->input : x->data;
	*end = p + (x->input_len ? x->input_len : p ? x->data_len : 0);
	return p;
}

int shim_re_answer(struct expect *x, res_state of, unsigned char *answer, int n)
{
	alone(x);
	feed_data(x, answer, n > 0 ? (u64)n : 0);
	if (x->ret < 0) {
		of->res_h_errno = (int)feed_tail(x, 0);
		h_errno = of->res_h_errno;
	}
	return (int)x->ret;
}

/* For each address V type of socket, V protocol, V family, S address; the canonical name is the tail's third text. */
int shim_re_addrs(struct expect *x, const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
	const u8 *end, *p = listed(alone(x), &end), *tail = x->tail, *tail_end = tail + x->tail_len, *canon;
	struct addrinfo *first = 0, **next = &first;
	u64 n;
	text(&tail, tail_end, &n);
	text(&tail, tail_end, &n);
	canon = text(&tail, tail_end, &n);
	if (shim_ctl.serial) {
		struct addrinfo *now;
		static const struct addrinfo none;
		struct asked a;
		u8 room[INPUT_ROOM];
		struct ev e = {.inbuf = room};
		int r;
		shim_ask(&a, x, hints && hints->ai_flags & AI_NUMERICHOST ? 0 : node, service, hints ? hints : &none);
		r = TRUE(getaddrinfo)(node, service, hints, &now);
		shim_ask_over(&a);
		if (r == 0) {
			shim_input_addrs(&e, &now, r);
			if (x->ret == 0 && recorded(x, &e))
				return *res = now, 0;
			freeaddrinfo(now);
		}
	}
	if (x->ret != 0)
		return (int)x->ret;
	while (p < end) {
		u8 addr[130];
		int type = (int)shim_get_v(&p, end), protocol = (int)shim_get_v(&p, end);
		u32 len = shim_re_addr(&p, end, addr);
		struct addrinfo *a = zeroed(sizeof *a + len);
		if (!a)
			return EAI_MEMORY;
		a->ai_flags = hints ? hints->ai_flags : AI_V4MAPPED | AI_ADDRCONFIG;
		a->ai_family = addr[0] | addr[1] << 8;
		a->ai_socktype = type;
		a->ai_protocol = protocol;
		a->ai_addrlen = len;
		a->ai_addr = (struct sockaddr *)(a + 1);
		shim_copy(a->ai_addr, addr, len);
		if (next == &first && n)
			a->ai_canonname = copy_of(canon, n);
		*next = a;
		next = &a->ai_next;
	}
	*res = first;
	return 0;
}

static void give(const u8 **p, const u8 *end, char *to, u64 room)
{
	u64 n;
	const u8 *s = text(p, end, &n);
	if (to && room > n) {
		shim_copy(to, s, n);
		to[n] = 0;
	}
}

int shim_re_nameinfo(struct expect *x, char *host, u64 hostlen, char *serv, u64 servlen)
{
	const u8 *p = alone(x)->tail, *end = p + x->tail_len;
	if (x->ret == 0) {
		give(&p, end, host, hostlen);
		give(&p, end, serv, servlen);
	}
	return (int)x->ret;
}

/* The last number of a tail of texts and one number. */
static int herr_of(const struct expect *x, int texts)
{
	const u8 *p = x->tail, *end = p + x->tail_len;
	u64 n;
	while (texts--)
		text(&p, end, &n);
	return (int)shim_get_v(&p, end);
}

static int texts_of(u32 call)
{
	return call != CALL_gethostbyaddr && call != CALL_gethostbyaddr_r && call != CALL_gethostent && call != CALL_gethostent_r;
}

/* S name, V family, then S each address: into space, as the C library lays it out. 0: there is too little. */
static int host(const struct expect *x, struct hostent *h, char *space, u64 room)
{
	const u8 *end, *p = listed(x, &end), *q, *s;
	u64 n, addrs = 0, at = 0, k;
	char **list;
	s = text(&p, end, &n);
	if (n + 1 > room)
		return 0;
	shim_copy(space, s, n);
	space[n] = 0;
	h->h_name = space;
	at = n + 1;
	h->h_addrtype = (int)shim_get_v(&p, end);
	h->h_length = 0;
	for (q = p; q < end; addrs++) {
		text(&q, end, &n);
		h->h_length = (int)n;
	}
	at += -(u64)(space + at) & 7;
	if (at + (addrs + 2) * sizeof *list + addrs * 16 > room)
		return 0;
	list = (char **)(space + at);
	at += (addrs + 2) * sizeof *list;
	for (k = 0; k < addrs; k++) {
		s = text(&p, end, &n);
		n = n < 16 ? n : 16;
		list[k] = space + at;
		shim_copy(list[k], s, n);
		at += 16;
	}
	list[addrs] = list[addrs + 1] = 0;
	h->h_addr_list = list;
	h->h_aliases = list + addrs + 1;
	return 1;
}

struct hostent *shim_re_host(struct expect *x)
{
	static struct hostent h;
	static char space[4096];
	alone(x);
	if (x->ret > 0 && host(x, &h, space, sizeof space))
		return &h;
	if (x->ret < 0)
		errno = (int)-x->ret;
	h_errno = herr_of(x, texts_of(x->call));
	return 0;
}

int shim_re_host_r(struct expect *x, struct hostent *buf, char *space, u64 n, struct hostent **h, int *herr)
{
	alone(x);
	*h = 0;
	if (x->ret == 0 && (x->input_len || x->data) && host(x, buf, space, n))
		*h = buf;
	if (!*h)
		*herr = herr_of(x, texts_of(x->call));
	return (int)x->ret;
}

u32 shim_re_index(struct expect *x)
{
	return (u32)alone(x)->ret;
}

char *shim_re_interface(struct expect *x, char *name)
{
	const u8 *p = alone(x)->tail;
	if (x->ret <= 0) {
		errno = (int)-x->ret;
		return 0;
	}
	give(&p, p + x->tail_len, name, IF_NAMESIZE);
	return name;
}

/* For each V index, S name. */
struct if_nameindex *shim_re_interfaces(struct expect *x)
{
	const u8 *end, *p = listed(alone(x), &end), *q;
	struct if_nameindex *list;
	u64 n, count = 0, k;
	if (shim_ctl.serial) {
		struct if_nameindex *now;
		struct asked a;
		u8 room[INPUT_ROOM];
		struct ev e = {.inbuf = room};
		shim_ask(&a, x, 0, 0, 0);
		now = TRUE(if_nameindex)();
		shim_ask_over(&a);
		if (now) {
			shim_input_interfaces(&e, now);
			if (x->ret > 0 && recorded(x, &e))
				return now;
			if_freenameindex(now);
		}
	}
	if (x->ret <= 0) {
		errno = (int)-x->ret;
		return 0;
	}
	for (q = p; q < end; count++) {
		shim_get_v(&q, end);
		text(&q, end, &n);
	}
	list = zeroed((count + 1) * sizeof *list);
	for (k = 0; list && k < count; k++) {
		const u8 *s;
		list[k].if_index = (u32)shim_get_v(&p, end);
		s = text(&p, end, &n);
		list[k].if_name = copy_of(s, n);
	}
	return list;
}

struct one {
	struct ifaddrs i;
	u8 addr[130], mask[130], far[130];
	char name[IF_NAMESIZE + 1];
};

/* Where the interface can reach all of its net at once, that address follows from the others. */
static void masked(struct one *o, u64 bits)
{
	u64 family = o->addr[0], at = family == AF_INET6 ? 8 : 4, len = family == AF_INET6 ? 16 : 4, k;
	shim_copy(o->mask, o->addr, 2);
	shim_copy(o->far, o->addr, sizeof o->far);
	for (k = 0; k < len; k++) {
		u64 left = bits > k * 8 ? bits - k * 8 : 0;
		o->mask[at + k] = (u8)(left >= 8 ? 0xff : 0xff00 >> left);
		o->far[at + k] |= (u8)~o->mask[at + k];
	}
	o->i.ifa_netmask = (struct sockaddr *)o->mask;
	if (family == AF_INET && o->i.ifa_flags & IFF_BROADCAST)
		o->i.ifa_broadaddr = (struct sockaddr *)o->far;
}

/* For each S name, V flags and mask, V family, S address. One piece of memory: freeifaddrs frees the first alone. */
int shim_re_ifaddrs(struct expect *x, struct ifaddrs **list)
{
	const u8 *end, *p = listed(alone(x), &end), *q;
	struct one *all;
	u64 n, count = 0, k;
	u8 addr[130];
	if (shim_ctl.serial) {
		struct ifaddrs *now;
		struct asked a;
		u8 room[INPUT_ROOM];
		struct ev e = {.inbuf = room};
		int r;
		shim_ask(&a, x, 0, 0, 0);
		r = TRUE(getifaddrs)(&now);
		shim_ask_over(&a);
		if (r == 0) {
			shim_input_ifaddrs(&e, &now, r);
			if (x->ret == 0 && recorded(x, &e))
				return *list = now, 0;
			freeifaddrs(now);
		}
	}
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	for (q = p; q < end; count++) {
		text(&q, end, &n);
		shim_get_v(&q, end);
		shim_re_addr(&q, end, addr);
	}
	*list = 0;
	if (!count)
		return 0;
	all = zeroed(count * sizeof *all);
	if (!all)
		return -1;
	for (k = 0; k < count; k++) {
		struct one *o = &all[k];
		const u8 *s = text(&p, end, &n);
		u64 flags;
		shim_copy(o->name, s, n < IF_NAMESIZE ? n : IF_NAMESIZE);
		o->i.ifa_name = o->name;
		flags = shim_get_v(&p, end);
		o->i.ifa_flags = (u32)flags;
		if (shim_re_addr(&p, end, o->addr))
			o->i.ifa_addr = (struct sockaddr *)o->addr;
		if (o->i.ifa_addr && flags >> 32)
			masked(o, (flags >> 32) - 1);
		o->i.ifa_next = k + 1 < count ? &all[k + 1].i : 0;
	}
	*list = &all->i;
	return 0;
}
