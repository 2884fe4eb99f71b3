/* See fdtab.h. */
#include "fdtab.h"
#include "replay.h"
#include "keep.h"
#include "object.h"
#include "run.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

struct fdinfo *shim_fd_pages[FD_PAGES];

static struct fdinfo *make(int fd)
{
	struct fdinfo **at, *was = 0;
	long p;
	if ((u32)fd >= FDS_PER_PAGE * FD_PAGES)
		return 0;
	at = &shim_fd_pages[(u32)fd / FDS_PER_PAGE];
	if (!__atomic_load_n(at, __ATOMIC_ACQUIRE)) {
		p = sys(SYS_mmap, 0, FDS_PER_PAGE * sizeof **at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p < 0 && p > -4096)
			return 0;
		if (!__atomic_compare_exchange_n(at, &was, (struct fdinfo *)p, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			sys(SYS_munmap, p, FDS_PER_PAGE * sizeof **at);
	}
	if (unlikely((u32)fd >= shim_fd_near))
		shim_fd_far((u32)fd);
	return *at + (u32)fd % FDS_PER_PAGE;
}

/* Whether we run on the memory of a parent whose descriptors are not ours. */
static int anothers(void)
{
	struct thr *t = shim_self.thr;
	return unlikely(t && t->vfork) && shim_in_vfork(t);
}

/* How much is kept of what comes through a descriptor of this kind. Files: a hash, as they can be kept themselves;
 * the kernel's own files cannot. */
static void policy(struct fdinfo *i, u32 kind, int kernels)
{
	u32 full = shim_ctl.inputs == PROPHET_InputsDefault ? PROPHET_InputsFull : shim_ctl.inputs;
	u32 files = shim_ctl.inputs == PROPHET_InputsDefault ? PROPHET_InputsHash | FD_ASK : shim_ctl.inputs;
	i->seen = 0;
	i->kind = (u8)kind;
	i->in = (u8)(kind == FD_FILE && !kernels ? files : full);
	i->out = shim_ctl.inputs ? PROPHET_InputsHash : 0;
	if (kind == FD_NULL) /* nothing to learn */
		i->in = i->out = 0;
}

/* Whether a file lies in /proc, /sys or the like, where what is read tells about the machine, or is a queue. Asked once for each of
 * the few file systems without a device. */
static int kernels_file(int fd, const struct stat *st)
{
	static u64 known[8]; /* device << 1 | answer; any thread stores whole words */
	static u32 next;
	struct statfs fs;
	u64 dev = st->st_dev, yes;
	u32 i;
	if (major(dev) != 0)
		return 0;
	for (i = 0; i < 8; i++)
		if (known[i] >> 1 == dev)
			return known[i] & 1;
	if (sys(SYS_fstatfs, fd, &fs) != 0)
		return 0;
	switch ((u32)fs.f_type) {
	case 0x9fa0: /* proc */
	case 0x62656572: /* sysfs */
	case 0x63677270: /* cgroup2 */
	case 0x27e0eb: /* cgroup */
	case 0x64626720: /* debugfs */
	case 0x74726163: /* tracefs */
	case 0x73636673: /* securityfs */
	case 0x6165676c: /* pstore */
	case 0xde5e81e4: /* efivarfs */
	case 0x19800202: /* mqueue: who of several gets which message */
	case 0x65735546: /* fuse: lxcfs gives containers their /proc */
		yes = 1;
		break;
	default:
		yes = 0;
	}
	known[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 8] = dev << 1 | yes;
	return (int)yes;
}

/* Of the kernel's files only those of processes are inside a re-execution's world. */
static int machines_file(int fd)
{
	static const char procs[] = "/proc/";
	char at[64];
	struct statfs fs;
	if (shim_index->flags & PROPHET_ReplayWrites || sys(SYS_fstatfs, fd, &fs) != 0)
		return 0;
	switch ((u32)fs.f_type) {
	case 0x19800202: /* mqueue */
	case 0x65735546: /* fuse */
		return 0;
	case 0x9fa0:
		return shim_fd_path(fd, at, sizeof at) <= 0 || !shim_starts(at, procs) || at[sizeof procs - 1] < '0' || at[sizeof procs - 1] > '9';
	}
	return 1;
}

int shim_fd_machines(int fd)
{
	const struct fdinfo *i = shim_fdinfo(fd);
	return i && i->kind == FD_FILE && i->flags & FD_MACHINES;
}

void shim_fd_outside(void)
{
	struct stat st;
	int fd;
	for (fd = 0; fd < 256 && shim_index->outsides < sizeof shim_index->outside / sizeof *shim_index->outside; fd++)
		if (!shim_fd_ours(fd) && sys(SYS_fstat, fd, &st) == 0) {
			struct replayoutside *o = &shim_index->outside[shim_index->outsides];
			o->dev = st.st_dev;
			o->ino = st.st_ino;
			o->fd = (u64)fd;
			shim_index->outsides++;
		}
}

static u64 strangers[4];

void shim_fd_strangers(void)
{
	struct stat st;
	u32 i;
	for (i = 0; i < shim_index->outsides; i++) {
		const struct replayoutside *o = &shim_index->outside[i];
		if (o->fd < 256 && sys(SYS_fstat, o->fd, &st) == 0 && st.st_dev == o->dev && st.st_ino == o->ino)
			strangers[o->fd / 64] |= 1ull << (o->fd % 64);
	}
}

int shim_fd_stranger(int fd)
{
	return (u32)fd < 256 && __atomic_load_n(&strangers[fd / 64], __ATOMIC_RELAXED) >> (fd % 64) & 1;
}

void shim_fd_known_now(int fd)
{
	if (shim_fd_stranger(fd))
		__atomic_and_fetch(&strangers[fd / 64], ~(1ull << (fd % 64)), __ATOMIC_RELAXED);
}

/* A descriptor that we did not see come to be is the first process's, or was handed on by a program of the run: then
 * pipes have both ends in it, and so have sockets that are joined, as those to others only stand for them. */
static u32 side(u32 kind, int fd, const struct stat *st)
{
	u8 peer[128];
	u32 k, len = sizeof peer;
	struct statfs fs;
	for (k = 0; k < shim_index->outsides; k++)
		if (shim_index->outside[k].dev == st->st_dev && shim_index->outside[k].ino == st->st_ino)
			return FD_OUTSIDE;
	if (kind == FD_PIPE && sys(SYS_fstatfs, fd, &fs) == 0 && (u32)fs.f_type == 0x50495045)
		return FD_INSIDE;
	if (kind == FD_SOCKET && sys(SYS_getpeername, fd, peer, &len) == 0)
		return FD_INSIDE;
	return 0;
}

void shim_fd_named(int fd, u64 name)
{
	struct fdinfo *i = fd < 0 || anothers() ? 0 : make(fd);
	if (i && (!i->name || i->named != (u16)shim_run.proc)) {
		i->name = name;
		i->named = (u16)shim_run.proc;
	}
}

void shim_fd_inside(int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	if (unlikely(shim_replays) && i && i->obj)
		i->flags |= FD_INSIDE;
}

static void classify(struct fdinfo *i, int fd, const struct stat *st)
{
	u32 major = major(st->st_rdev), minor = minor(st->st_rdev);
	i->file = S_ISREG(st->st_mode) ? shim_file_id(st->st_dev, st->st_ino) : 0;
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		policy(i, FD_FILE, kernels_file(fd, st));
		break;
	case S_IFDIR:
		policy(i, FD_DIR, 0);
		break;
	case S_IFSOCK:
		policy(i, FD_SOCKET, 0);
		break;
	case S_IFIFO:
		policy(i, FD_PIPE, 0);
		break;
	case S_IFCHR:
		if (major == 1 && (minor == 3 || minor == 5 || minor == 7)) /* null, zero, full */
			policy(i, FD_NULL, 0);
		else
			policy(i, major == 1 && (minor == 8 || minor == 9) ? FD_RANDOM : FD_TTY, 0);
		break;
	default:
		policy(i, FD_ANON, 0);
	}
	if (unlikely(shim_replays) && i->kind == FD_FILE)
		i->flags = (u8)((i->flags & ~FD_MACHINES) | (kernels_file(fd, st) && machines_file(fd) ? FD_MACHINES : 0));
	if (unlikely(shim_replays) && i->kind != FD_FILE && i->kind != FD_DIR)
		i->flags = (u8)((i->flags & ~(FD_INSIDE | FD_OUTSIDE)) | side(i->kind, fd, st));
}

static int has_name(const struct fdinfo *i)
{
	return __atomic_load_n(&i->name, __ATOMIC_ACQUIRE) && i->named == (u16)shim_run.proc;
}

/* In a re-execution: whether this thread gave the number its name, which happens once, so that it is enough to look at
 * all that it names next. Where it did not, another thread had: with a stream of the C library's own, which got that
 * number then and need not have it now. */
static int names(const struct thr *t, int fd)
{
	struct expects *ex = &t->re->ex;
	u32 k;
	if (shim_expect(ex)->kind == EXPECT_END)
		return 1;
	k = ex->nfds > EXPECT_FDS ? ex->nfds - EXPECT_FDS : 0;
	if (k && ex->fds[k % EXPECT_FDS].number > t->nobj)
		return 1;
	for (; k < ex->nfds; k++)
		if (ex->fds[k % EXPECT_FDS].fd == (u64)fd && ex->fds[k % EXPECT_FDS].number > t->nobj)
			return 1;
	return 0;
}

/* The name of a number, said the first time. */
static u64 name_of(struct thr *t, struct fdinfo *i, int fd, const char *detail)
{
	if (unlikely(shim_replays) && t->re && !shim_ctl.serial && !has_name(i) && !names(t, fd))
		while (!has_name(i) && !shim_re_detached())
			shim_re_yield(t, 0);
	if (!has_name(i)) {
		i->name = shim_object_new(t, PROPHET_ObjFd, (u64)fd, detail);
		i->named = (u16)shim_run.proc;
	}
	return i->name;
}

/* Whether another thread is to make this descriptor, or to use it first; it has when this comes back. */
static u64 others(struct thr *t, int fd)
{
	struct expect *x = t->re ? t->re->x : 0;
	struct fdinfo *i = shim_fdinfo(fd);
	if (!x || x->kind != EXPECT_EVENT || !x->obj || fd < 0 || shim_re_mine(t) || (i && has_name(i)))
		return 0;
	while (!(i = shim_fdinfo(fd)) || !__atomic_load_n(&i->obj, __ATOMIC_ACQUIRE)) {
		if (shim_re_detached())
			return 0;
		shim_re_yield(t, x->obj);
	}
	return i->obj;
}

/* Where the thread is to give that name next it does, to the number that had it. */
static void named_then(struct thr *t, u64 obj)
{
	const struct expects *ex = &t->re->ex;
	struct fdinfo *of;
	u32 k;
	if (obj >> 40 != t->uid || (obj & 0xffffffffffull) != t->nobj + 1)
		return;
	for (k = ex->nfds > EXPECT_FDS ? ex->nfds - EXPECT_FDS : 0; k < ex->nfds; k++)
		if (ex->fds[k % EXPECT_FDS].number == t->nobj + 1 && (of = make((int)ex->fds[k % EXPECT_FDS].fd))) {
			name_of(t, of, (int)ex->fds[k % EXPECT_FDS].fd, "");
			return;
		}
}

static const struct expect *event_from(struct expects *ex, u32 *i)
{
	const struct expect *x;
	while ((x = shim_expect_at(ex, *i)) && x->kind != EXPECT_EVENT && x->kind != EXPECT_END && x->kind != EXPECT_BAD)
		++*i;
	++*i;
	return x && x->kind == EXPECT_EVENT ? x : 0;
}

const struct expect *shim_fd_opening(struct thr *t)
{
	u32 i = 0;
	const struct expect *x = event_from(&t->re->ex, &i), *o = x && x->call == CALL__IO_file_seek ? event_from(&t->re->ex, &i) : 0;
	return o && o->taken && (o->call == CALL_fopen || o->call == CALL_fopen64 || o->call == CALL_freopen || o->call == CALL_freopen64) ? o : 0;
}

u64 shim_fd_unopened(struct thr *t)
{
	const struct expect *x = t->re ? t->re->x : 0;
	if (!x || x != shim_expect(&t->re->ex) || !shim_fd_opening(t))
		return 0;
	named_then(t, x->obj);
	return x->obj;
}

/* The C library's own streams get whichever numbers are free while several threads look things up, and no event tells
 * which: what its event says in the recording is what it is. That number's name is given here when it was there. */
void shim_fd_inner(struct thr *t, int fd)
{
	const struct expect *x = t->re ? t->re->x : 0;
	struct fdinfo *i = make(fd);
	if (!i || __atomic_load_n(&i->obj, __ATOMIC_ACQUIRE) || !x || x->kind != EXPECT_EVENT || !x->obj || anothers())
		return;
	named_then(t, x->obj);
	i->kind = FD_UNKNOWN;
	i->in = i->out = FD_ASK;
	i->flags = 0;
	i->file = 0;
	i->obj = x->obj;
}

u64 shim_fd_slow(struct thr *t, int fd)
{
	struct stat st;
	struct fdinfo *i;
	char name[400];
	long r;
	u64 named;
	if (unlikely(shim_replays) && (named = others(t, fd)))
		return named;
	if (fd < 0 || shim_fd_ours(fd) || sys(SYS_fstat, fd, &st) != 0 || !(i = make(fd)))
		return 0;
	i->flags = 0;
	classify(i, fd, &st);
	shim_fd_known_now(fd);
	r = shim_fd_path(fd, name, sizeof name);
	if (has_name(i))
		shim_object_say(t, i->name, PROPHET_ObjFd, (u64)fd, r > 0 ? name : "?");
	i->obj = name_of(t, i, fd, r > 0 ? name : "?");
	return i->obj;
}

void shim_fd_new(struct thr *t, int fd, const char *detail)
{
	struct fdinfo *i;
	if (fd < 0 || anothers() || !(i = make(fd)))
		return;
	i->kind = FD_UNKNOWN;
	i->in = i->out = FD_ASK;
	i->flags = 0;
	i->file = 0;
	i->obj = name_of(t, i, fd, detail);
}

static u32 doubles; /* there may be two numbers for one */

/* What is said of one number holds for all that stand for the same, and which these are is not known: each is believed to
 * wait again when one does. */
void shim_fd_hurry(int fd, int on)
{
	struct fdinfo *i = shim_fdinfo(fd);
	u32 page, k;
	if (on) {
		if (i && i->obj && !anothers())
			__atomic_fetch_or(&i->flags, FD_HURRIES, __ATOMIC_RELAXED);
		return;
	}
	if (i)
		__atomic_fetch_and(&i->flags, (u8)~FD_HURRIES, __ATOMIC_RELAXED);
	for (page = 0; page < FD_PAGES && __atomic_load_n(&doubles, __ATOMIC_RELAXED); page++)
		for (k = 0; shim_fd_pages[page] && k < FDS_PER_PAGE; k++)
			if (shim_fd_pages[page][k].flags & FD_HURRIES)
				__atomic_fetch_and(&shim_fd_pages[page][k].flags, (u8)~FD_HURRIES, __ATOMIC_RELAXED);
}

void shim_fd_same(struct thr *t, int fd, int of)
{
	struct fdinfo *a = shim_fdinfo(of), *b;
	if (fd < 0 || fd == of || anothers() || !(b = make(fd)))
		return;
	doubles = 1;
	if (a && a->obj) {
		b->kind = a->kind;
		b->in = a->in;
		b->out = a->out;
		b->file = a->file;
		b->seen = a->seen;
		b->flags = a->flags;
	} else {
		b->kind = FD_UNKNOWN;
		b->in = b->out = FD_ASK;
		b->flags = 0;
		b->file = 0;
	}
	b->obj = name_of(t, b, fd, "");
}

u64 shim_fd_made(struct thr *t, int fd, u32 kind, const char *detail)
{
	struct fdinfo *i = fd < 0 || anothers() ? 0 : make(fd);
	if (!i)
		return 0;
	i->flags = 0;
	i->file = 0;
	policy(i, kind, 0);
	return i->obj = name_of(t, i, fd, detail);
}

void shim_fd_gone(int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	if (i && i->obj && !anothers())
		i->obj = 0;
}

void shim_fd_gone_from(u32 first, u32 last)
{
	u32 page, k;
	if (anothers())
		return;
	for (page = first / FDS_PER_PAGE; page < FD_PAGES && page <= last / FDS_PER_PAGE; page++)
		for (k = 0; shim_fd_pages[page] && k < FDS_PER_PAGE; k++)
			if (page * FDS_PER_PAGE + k >= first && page * FDS_PER_PAGE + k <= last)
				shim_fd_pages[page][k].obj = 0;
}

void shim_fd_is(int fd, const struct stat *st)
{
	struct fdinfo *i = shim_fdinfo(fd);
	if (i && i->obj && !anothers())
		classify(i, fd, st);
}

static struct fdinfo *asked(int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	struct stat st;
	if (!i || !i->obj)
		return 0;
	if (i->kind == FD_UNKNOWN) {
		if (sys(SYS_fstat, fd, &st) != 0)
			return 0;
		classify(i, fd, &st);
	}
	return i;
}

struct fdinfo *shim_fd_look(int fd, struct fdinfo *room)
{
	struct fdinfo *i = asked(fd);
	struct stat st;
	if (i)
		return i;
	if (sys(SYS_fstat, fd, &st) != 0)
		return 0;
	shim_zero(room, sizeof *room);
	classify(room, fd, &st);
	return room;
}

u32 shim_fd_kind(int fd)
{
	struct fdinfo *i = asked(fd);
	return i ? i->kind : FD_UNKNOWN;
}

u32 shim_fd_policy(int fd, int out)
{
	struct fdinfo *i = asked(fd);
	u16 n;
	if (!i)
		return 0;
	if (out)
		return i->out;
	if (i->in & FD_ASK && (n = (u16)shim_files_known()) != i->seen) {
		i->seen = n;
		if (shim_file_known(i->file))
			i->in = PROPHET_InputsFull;
	}
	return i->in & ~FD_ASK;
}

/* So many bytes take long enough to be hashed or kept for that to be told (TagOurs). */
#define DATA_LONG 1024

void shim_data_slow(struct ev *e, u32 policy, const void *buf, u64 len)
{
	if (unlikely(shim_replays)) {
		e->data = buf;
		e->data_len = len;
		e->data_kind = DATA_INLINE;
		return;
	}
	if (len >= DATA_LONG)
		e->t->ours = 1;
	if (policy == PROPHET_InputsHash) {
		e->hash = shim_hash64(buf, len, 0);
		e->data_kind = DATA_HASH;
		return;
	}
	if (len > PROPHET_ChunkMax) {
		len = PROPHET_ChunkMax;
		e->note |= PROPHET_NoteCut;
	}
	e->data = buf;
	e->data_len = len;
	if (len <= shim_inline_max(e->t)) {
		e->data_kind = DATA_INLINE;
	} else {
		e->hash = shim_data_chunk(e->t, buf, len);
		e->data_kind = DATA_BIG;
	}
}

void shim_data_iov_slow(struct ev *e, u32 policy, const struct iovec *v, u64 n, u64 len)
{
	u64 have = 0, i;
	if (n == 1 && v->iov_len >= len) {
		shim_data_slow(e, policy, v->iov_base, len);
		return;
	}
	for (i = 0; i < n && have < len; i++)
		have += v[i].iov_len;
	if (have < len) /* the program has changed it since the kernel read it */
		len = have;
	if (!len)
		return;
	if (unlikely(shim_replays)) {
		e->data = v;
		e->data_len = len;
		e->data_kind = DATA_INLINE | DATA_PIECES;
		return;
	}
	if (len >= DATA_LONG)
		e->t->ours = 1;
	if (policy == PROPHET_InputsHash) {
		struct hash_state h;
		u64 left = len;
		shim_hash_begin(&h);
		for (i = 0; left; i++) {
			u64 m = v[i].iov_len < left ? v[i].iov_len : left;
			shim_hash_more(&h, v[i].iov_base, m);
			left -= m;
		}
		e->hash = shim_hash_end(&h);
		e->data_kind = DATA_HASH;
		return;
	}
	if (len > PROPHET_ChunkMax) {
		len = PROPHET_ChunkMax;
		e->note |= PROPHET_NoteCut;
	}
	e->data_len = len;
	if (len <= shim_inline_max(e->t)) {
		e->data = v;
		e->data_kind = DATA_INLINE | DATA_PIECES;
	} else {
		e->hash = shim_data_chunkv(e->t, v, n, len);
		e->data_kind = DATA_BIG;
	}
}
