/* See run.h. */
#include "run.h"
#include "real.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>

struct run shim_run;
struct wiped *shim_wiped;

/* Boot maps the run's file over this; until then all is off. */
static u8 control_room[PROPHET_ControlRoom] __attribute__((aligned(4096)));
extern struct control shim_ctl __attribute__((alias("control_room")));

static struct ours {
	int fd;
	u32 linked; /* it had a name; some file systems never say so */
	dev_t dev;
	ino_t ino;
} stream = {-1, 0, 0, 0}, rings = {-1, 0, 0, 0}, statm = {-1, 0, 0, 0}, errs = {-1, 0, 0, 0};
static u8 *flight;

void shim_block(u64 *was)
{
	u64 all = ~0ull;
	sys(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, was, 8);
}

void shim_unblock(const u64 *was)
{
	sys(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, was, 0, 8);
}

void shim_lock(struct lock *l)
{
	u64 mask;
	shim_block(&mask);
	while (__atomic_exchange_n(&l->word, 1, __ATOMIC_ACQUIRE))
		sys(SYS_sched_yield);
	l->mask = mask;
}

void shim_unlock(struct lock *l)
{
	u64 mask = l->mask;
	__atomic_store_n(&l->word, 0, __ATOMIC_RELEASE);
	shim_unblock(&mask);
}

/* Whether the descriptor is still ours: a program may close all it finds and open its own under the same numbers. */
static int same_file(const struct ours *o)
{
	struct stat st;
	return o->fd >= 0 && sys(SYS_fstat, o->fd, &st) == 0 && st.st_dev == o->dev && st.st_ino == o->ino;
}

int shim_fd_ours(int fd)
{
	return fd >= 0 && (fd == stream.fd || fd == rings.fd || fd == statm.fd);
}

/* A signal that one of our writes raised is not the program's: SIGXFSZ and SIGPIPE go to the thread that wrote, so with
 * all signals blocked they wait, and are taken back. */
static void take_back(u64 set)
{
	struct timespec now = {0, 0};
	sys(SYS_rt_sigtimedwait, &set, 0, &now, 8);
}

#define SIGSET(sig) (1ull << ((sig)-1))

/* Nobody may read standard error, or nobody may read it any more. */
static void say_quietly(const char *b, u64 len)
{
	struct pollfd out = {2, POLLOUT, 0};
	struct timespec now = {0, 0};
	u64 mask, waiting = 0, raised = 0;
	long r;
	if (sys(SYS_ppoll, &out, 1, &now, 0, 8) != 1 || !(out.revents & POLLOUT))
		return;
	shim_block(&mask);
	sys(SYS_rt_sigpending, &waiting, 8);
	r = sys(SYS_write, 2, b, len);
	if (r > 0)
		shim_run.own_bytes += (u64)r;
	if (r == -EPIPE)
		raised = SIGSET(SIGPIPE);
	else if (r == -EFBIG)
		raised = SIGSET(SIGXFSZ);
	if (raised & ~waiting)
		take_back(raised);
	shim_unblock(&mask);
}

/* strerror may allocate and depends on the locale. */
static void put_error(struct text *t, i64 err)
{
	switch (err) {
	case ENOSPC:
		shim_put(t, "no space left");
		break;
	case EDQUOT:
		shim_put(t, "quota exceeded");
		break;
	case EROFS:
		shim_put(t, "read-only file system");
		break;
	case EACCES:
	case EPERM:
		shim_put(t, "not permitted");
		break;
	case ENOENT:
	case ESTALE:
		shim_put(t, "it is not there");
		break;
	case ENOTDIR:
		shim_put(t, "not a directory");
		break;
	case EFBIG:
		shim_put(t, "file too large");
		break;
	case EMFILE:
	case ENFILE:
		shim_put(t, "too many open files");
		break;
	case ENAMETOOLONG:
		shim_put(t, "name too long");
		break;
	default:
		shim_put(t, "error ");
		shim_putd(t, err);
	}
}

void shim_say(const char *what, const char *about, i64 err)
{
	char b[512];
	struct text t;
	if (shim_run.said >= 4 || (errs.ino && !same_file(&errs)))
		return;
	shim_run.said++;
	shim_text(&t, b, sizeof b);
	shim_put(&t, "prophet: ");
	shim_put(&t, what);
	if (about) {
		shim_put(&t, " ");
		shim_put(&t, about);
	}
	if (err) {
		shim_put(&t, ": ");
		put_error(&t, err < 0 ? -err : err);
	}
	if (t.cut)
		t.len = sizeof b - 2;
	b[t.len++] = '\n';
	say_quietly(b, t.len);
}

/* Moves a descriptor above all that the program may get, so that its own numbers do not change. Above the limit when
 * that may be raised for a moment, else at its upper end. */
static int lift(int fd)
{
	struct rlimit was, up;
	long r, base = 4096;
	int raised = 0;
	if (fd < 0)
		return fd;
	if (sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &was) == 0 && was.rlim_cur <= (u64)base) {
		up.rlim_cur = was.rlim_cur + 16;
		up.rlim_max = was.rlim_max > up.rlim_cur ? was.rlim_max : up.rlim_cur;
		base = (long)was.rlim_cur;
		raised = sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &up, 0) == 0;
		if (!raised)
			base = base > 8 ? base - 8 : 0;
	}
	r = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, base);
	if (raised)
		sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &was, 0);
	if (r < 0)
		r = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
	sys(SYS_close, fd);
	return (int)r;
}

static int keep(struct ours *o, int fd)
{
	struct stat st;
	o->fd = lift(fd);
	if (o->fd < 0)
		return o->fd;
	if (sys(SYS_fstat, o->fd, &st) == 0) {
		o->dev = st.st_dev;
		o->ino = st.st_ino;
		o->linked = st.st_nlink != 0;
	}
	return 0;
}

int shim_fd_ours_from(u32 first)
{
	const int all[] = {stream.fd, rings.fd, statm.fd};
	int low = -1;
	u32 i;
	for (i = 0; i < 3; i++)
		if (all[i] >= 0 && (u32)all[i] >= first && (low < 0 || all[i] < low))
			low = all[i];
	return low;
}

/* The new number is in force before the old one is free, so that another thread's flush finds one of them. */
void shim_fd_yield(int fd)
{
	struct ours *all[] = {&stream, &rings, &statm};
	u64 mask;
	long to;
	u32 i;
	shim_block(&mask);
	for (i = 0; i < 3; i++)
		if (all[i]->fd == fd) {
			to = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, fd + 1);
			if (to < 0)
				to = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
			__atomic_store_n(&all[i]->fd, (int)to, __ATOMIC_RELEASE);
			sys(SYS_close, fd);
		}
	shim_unblock(&mask);
}

static const char *in_dir(struct text *t, char *buf, u32 cap, const char *name)
{
	shim_text(t, buf, cap);
	shim_put(t, shim_run.dir);
	shim_put(t, "/");
	shim_put(t, name);
	return buf;
}

static char stream_path[4200];

static int stream_open(void)
{
	char name[16];
	struct text t, n;
	long fd;
	shim_text(&n, name, sizeof name);
	shim_put(&n, "stream-");
	shim_putd(&n, shim_run.stream_index / 10);
	shim_putd(&n, shim_run.stream_index % 10);
	fd = sys(SYS_openat, AT_FDCWD, in_dir(&t, stream_path, sizeof stream_path, name), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? (int)fd : keep(&stream, (int)fd);
}

/* The program has closed the stream's descriptor. Only the very same file will do: behind a chroot, or when the trace
 * was removed, there may be another one of its name. */
static int stream_again(void)
{
	struct ours was = stream;
	long fd = sys(SYS_openat, AT_FDCWD, stream_path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0);
	int r = fd < 0 ? (int)fd : keep(&stream, (int)fd);
	if (r == 0 && stream.dev == was.dev && stream.ino == was.ino)
		return 0;
	if (r == 0)
		sys(SYS_close, stream.fd);
	stream = was;
	stream.fd = -1;
	return r ? r : -ESTALE;
}

/* Said once a run. */
static int lost(const char *what, i64 err)
{
	if (__atomic_fetch_add(&shim_ctl.lost, 1, __ATOMIC_RELAXED) == 0)
		shim_say(what, shim_run.dir, err);
	return (int)(err < 0 ? -err : err);
}

static int flight_write(const struct iovec *v, int n, u64 len)
{
	u64 places = shim_ctl.flight / PROPHET_SlotSize, at;
	u8 *p;
	int i;
	if (!flight || len > PROPHET_SlotSize)
		return EFBIG;
	at = __atomic_fetch_add(&shim_ctl.flightpos, 1, __ATOMIC_RELAXED) % places;
	p = flight + at * PROPHET_SlotSize;
	for (i = 0; i < n; p += v[i].iov_len, i++)
		shim_copy(p, v[i].iov_base, v[i].iov_len);
	return 0;
}

int shim_stream_writev(const struct iovec *v, int n, u64 len)
{
	struct rlimit lim;
	struct stat st;
	long r;
	if (shim_ctl.ended)
		return EPIPE;
	if (shim_ctl.flight)
		return flight_write(v, n, len);
	if (sys(SYS_fstat, stream.fd, &st) != 0 || st.st_dev != stream.dev || st.st_ino != stream.ino) {
		r = stream_again();
		if (r)
			return lost("events are lost, a descriptor was closed that leads to", r);
	} else if (stream.linked && !st.st_nlink) {
		/* It would fill the disk with what nobody can read. */
		shim_ctl.level = shim_ctl.fast = 0;
		return lost("nothing more is recorded, there is no longer", ENOENT);
	}
	/* Writing past RLIMIT_FSIZE would raise SIGXFSZ, and leave a part of a chunk. */
	if (sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY) {
		r = sys(SYS_lseek, stream.fd, 0, SEEK_END);
		if (r >= 0 && (u64)r + len > lim.rlim_cur)
			return lost("events are lost, the file size limit is reached in", EFBIG);
	}
	r = n == 1 ? sys(SYS_write, stream.fd, v[0].iov_base, v[0].iov_len) : sys(SYS_writev, stream.fd, v, n);
	if (r > 0)
		shim_run.own_bytes += (u64)r;
	if (r == (long)len)
		return 0;
	if (r == -EFBIG) /* another process was faster */
		take_back(SIGSET(SIGXFSZ));
	return lost("events are lost, cannot write to", r < 0 ? r : -ENOSPC);
}

int shim_stream_write(const void *p, u64 len)
{
	struct iovec v = {(void *)p, len};
	return shim_stream_writev(&v, 1, len);
}

static u32 *owners(void)
{
	return (u32 *)(control_room + PROPHET_OwnersAt);
}

u64 *shim_known_files(void)
{
	return (u64 *)(control_room + PROPHET_KnownAt);
}

/* n free slots in a row below the highest one that was ever used. */
static int slots_again(u32 n, u32 *first)
{
	u32 *own = owners(), i, k, end = shim_ctl.slotsend;
	if (end > PROPHET_SlotsMax)
		end = PROPHET_SlotsMax;
	for (i = shim_ctl.nextslot; i + n <= end; i += k + 1) {
		for (k = 0; k < n && !own[i + k]; k++) {
			u32 none = 0;
			if (!__atomic_compare_exchange_n(&own[i + k], &none, shim_run.pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				break;
		}
		if (k == n) {
			if (n == 1)
				shim_ctl.nextslot = i + 1;
			*first = i;
			return 1;
		}
		while (k)
			__atomic_store_n(&own[i + --k], 0, __ATOMIC_RELEASE);
		for (k = 0; i + k < end && !own[i + k]; k++) /* too few in a row */
			;
	}
	return 0;
}

/* Slots of processes that were killed: what is in them is saved, and they are free again. Only where the owner's number
 * means the same to us as to itself. The caller holds the threads' lock. */
static void slots_reap(void)
{
	u32 *own = owners(), i, end = shim_ctl.slotsend, alive = shim_run.pid;
	if (!shim_run.ns || !same_file(&rings))
		return;
	for (i = 0; i < end && i < PROPHET_SlotsMax; i++) {
		u32 pid = own[i];
		struct slot *s;
		long p;
		if (!pid || pid == alive)
			continue;
		if (sys(SYS_kill, pid, 0) != -ESRCH) {
			alive = pid;
			continue;
		}
		p = sys(SYS_mmap, 0, PROPHET_SlotSize, PROT_READ | PROT_WRITE, MAP_SHARED, rings.fd, (u64)i * PROPHET_SlotSize);
		if (p < 0 && p > -4096)
			return;
		s = (struct slot *)p;
		if (s->owner == pid && s->ns == shim_run.ns &&
		    __atomic_compare_exchange_n(&own[i], &pid, shim_run.pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			if (s->state != PROPHET_SlotFree)
				shim_flush_dead(s);
			shim_slot_free(i);
		}
		sys(SYS_munmap, p, PROPHET_SlotSize);
	}
}

int shim_slot_take(u32 n, u32 *first)
{
	u32 *own = owners(), i, k, tries, hint = shim_run.slot_hint;
	shim_run.slot_hint = ~0u;
	if (n == 1 && hint < PROPHET_SlotsMax && own[hint] == shim_run.pid) { /* ours since before exec */
		*first = hint;
		return 0;
	}
	for (tries = 0; tries < 8; tries++) {
		if (slots_again(n, first))
			goto taken;
		i = shim_ctl.slotsend;
		if (i >= 64 && ((i ^ (i + n)) & ~63u || i + n > PROPHET_SlotsMax) && tries == 0) {
			slots_reap();
			continue;
		}
		i = __atomic_fetch_add(&shim_ctl.slotsend, n, __ATOMIC_RELAXED);
		if (i + n > PROPHET_SlotsMax) {
			__atomic_fetch_sub(&shim_ctl.slotsend, n, __ATOMIC_RELAXED);
			return -ENOSPC;
		}
		/* Others see these as free as soon as slotsend has grown. */
		for (k = 0; k < n; k++) {
			u32 none = 0;
			if (!__atomic_compare_exchange_n(&own[i + k], &none, shim_run.pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				break;
		}
		*first = i;
		if (k == n)
			goto taken;
		while (k)
			__atomic_store_n(&own[i + --k], 0, __ATOMIC_RELEASE);
	}
	return -EAGAIN;
taken:
	__atomic_fetch_add(&shim_ctl.live, n, __ATOMIC_RELAXED);
	return 0;
}

void shim_slot_free(u32 index)
{
	if (index >= PROPHET_SlotsMax)
		return;
	__atomic_store_n(&owners()[index], 0, __ATOMIC_RELEASE);
	if (index < shim_ctl.nextslot)
		shim_ctl.nextslot = index;
	__atomic_sub_fetch(&shim_ctl.live, 1, __ATOMIC_ACQ_REL);
}

/* What the flight recorder holds becomes the streams. */
static void flight_land(void)
{
	u64 places = shim_ctl.flight / PROPHET_SlotSize, n = shim_ctl.flightpos, i = n > places ? n - places : 0;
	if (!flight)
		return;
	shim_ctl.flight = 0;
	for (; i < n; i++) {
		const struct chunk *c = (const void *)(flight + i % places * PROPHET_SlotSize);
		if (c->magic == PROPHET_ChunkMagic && c->len <= PROPHET_RingCap)
			shim_stream_write(c, PROPHET_ChunkHeader + c->len);
	}
}

/* The file of this run in the per-user directory that ends in `suffix`. */
static const char *shm_file(char *buf, u32 cap, const char *suffix)
{
	struct text t;
	shim_text(&t, buf, cap);
	shim_put(&t, shim_run.shm);
	shim_put(&t, suffix);
	return buf;
}

void shim_run_left(void)
{
	static const char *const suffixes[] = {".rings", ".dir", ".flight"};
	char path[300];
	u64 mask;
	u32 i, n = shim_ctl.flight ? 3 : 2, *own = owners(), end = shim_ctl.slotsend, last = shim_run.pid;
	if (rings.fd < 0)
		return;
	if (__atomic_load_n(&shim_ctl.live, __ATOMIC_ACQUIRE)) {
		for (i = 0; i < end && i < PROPHET_SlotsMax; i++)
			if (own[i] && own[i] != last && sys(SYS_kill, last = own[i], 0) != -ESRCH)
				return;
		shim_lock(&shim_wiped->threads);
		slots_reap(); /* of those that were killed */
		shim_unlock(&shim_wiped->threads);
		for (i = 0; i < end && i < PROPHET_SlotsMax; i++)
			if (own[i] && own[i] != shim_run.pid)
				return;
	}
	shim_block(&mask);
	if (shim_ctl.flight)
		flight_land();
	for (i = 0; i < n; i++)
		sys(SYS_unlinkat, AT_FDCWD, shm_file(path, sizeof path, suffixes[i]), 0);
	shim_unblock(&mask);
}

int shim_private(void *at)
{
	long p = sys(SYS_mmap, at, PROPHET_SlotSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return p < 0 && p > -4096 ? (int)p : 0;
}

void *shim_slots_map(void *at, u32 first, u32 n)
{
	u64 off = (u64)first * PROPHET_SlotSize, len = (u64)n * PROPHET_SlotSize;
	long p;
	if (!same_file(&rings))
		return 0;
	/* Past a full tmpfs the first touch would be SIGBUS; fallocate tells in time. */
	p = sys(SYS_fallocate, rings.fd, 0, off, len);
	if (p == -EFBIG)
		take_back(SIGSET(SIGXFSZ)); /* signals are blocked: we hold the threads' lock */
	if (p)
		return 0;
	p = sys(SYS_mmap, at, len, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), rings.fd, off);
	return p < 0 && p > -4096 ? 0 : (void *)p;
}

static u32 statm_pid;

static void statm_open(void)
{
	long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
	statm.fd = -1;
	statm_pid = shim_run.pid;
	if (fd >= 0)
		keep(&statm, (int)fd);
}

u64 shim_rss(u64 now)
{
	char b[96];
	const char *p;
	long r;
	if (now < shim_run.next_rss)
		return 0;
	shim_run.next_rss = now + shim_gap * 250; /* 10 ms */
	if (!same_file(&statm))
		return 0;
	if (statm_pid != shim_run.pid) { /* our parent's */
		sys(SYS_close, statm.fd);
		statm_open();
	}
	r = sys(SYS_pread64, statm.fd, b, sizeof b - 1, 0);
	if (r <= 0)
		return 0;
	b[r] = 0;
	shim_parse(b, &p);
	return *p ? shim_parse(p + 1, 0) : 0;
}

static u64 number_after(const char *b, const char *name)
{
	for (; *b; b++)
		if (shim_starts(b, name))
			return shim_parse(b + shim_len(name), 0);
	return 0;
}

void shim_io_counts(u64 *rchar, u64 *wchar)
{
	char b[512];
	long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/io", O_RDONLY | O_CLOEXEC, 0), r;
	*rchar = *wchar = 0;
	if (fd < 0)
		return;
	r = sys(SYS_read, fd, b, sizeof b - 1);
	sys(SYS_close, fd);
	if (r <= 0)
		return;
	b[r] = 0;
	*rchar = number_after(b, "rchar: ");
	*wchar = number_after(b, "wchar: ");
}

static u64 random64(void)
{
	u64 v = 0;
	if (sys(SYS_getrandom, &v, 8, 1 /* GRND_NONBLOCK */) != 8)
		v = shim_ticks() * 0x9E3779B97F4A7C15ull ^ (u64)sys(SYS_getpid);
	return v;
}

static const char *option(const char *opts, const char *name)
{
	size_t n = shim_len(name);
	while (opts && *opts) {
		if (shim_starts(opts, name) && (opts[n] == 0 || opts[n] == ',' || opts[n] == '='))
			return opts + n + (opts[n] == '=');
		while (*opts && *opts != ',')
			opts++;
		opts += *opts == ',';
	}
	return 0;
}

static u64 size_option(const char *s)
{
	const char *e;
	u64 v = shim_parse(s, &e);
	if (*e == 'K' || *e == 'k')
		v <<= 10;
	else if (*e == 'M' || *e == 'm')
		v <<= 20;
	else if (*e == 'G' || *e == 'g')
		v <<= 30;
	return v;
}

static u64 now_ns(int clock)
{
	struct timespec ts = {0, 0};
	sys(SYS_clock_gettime, clock, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

#define ORDER_LEVEL (1u << CLASS_sync | 1u << CLASS_stdio | 1u << CLASS_thread | 1u << CLASS_signal | 1u << CLASS_mark)

static void options(struct control *c, const char *o)
{
	const char *v;
	c->inputs = PROPHET_InputsDefault;
	if ((v = option(o, "inputs")))
		c->inputs = *v == 'n' ? PROPHET_InputsNone : *v == 'h' ? PROPHET_InputsHash : *v == 'f' ? PROPHET_InputsFull : PROPHET_InputsDefault;
	c->level = PROPHET_LevelFull;
	if ((v = option(o, "level")))
		c->level = shim_starts(v, "off") ? 0 : shim_starts(v, "order") ? ORDER_LEVEL : PROPHET_LevelFull;
	c->serial = option(o, "serial") != 0;
	c->fast = c->serial ? 0 : c->level;
	if ((v = option(o, "flight")))
		c->flight = (size_option(v) + PROPHET_SlotSize - 1) / PROPHET_SlotSize * PROPHET_SlotSize;
	c->keepmax = (v = option(o, "keep")) ? size_option(v) : 64u << 20;
	c->keepleft = c->keepmax * 4;
}

static int map_control(int fd)
{
	long p = sys(SYS_mmap, control_room, PROPHET_ControlRoom, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	return p < 0 && p > -4096 ? (int)p : 0;
}

static void write_meta(int argc, char **argv)
{
	static char buf[65536];
	char path[4200], b[4096];
	struct text t, pt;
	struct utsname u;
	struct {
		long uptime;
		unsigned long loads[3], totalram, freeram, sharedram, bufferram, totalswap, freeswap;
		unsigned short procs, pad;
		unsigned long totalhigh, freehigh;
		unsigned int unit;
		char room[64];
	} si;
	u64 cpus[128];
	long fd, r, n = 0;
	int i;
	shim_text(&t, buf, sizeof buf);
	shim_put(&t, "{\n  \"format\": ");
	shim_putd(&t, PROPHET_FormatVersion);
	shim_put(&t, ",\n  \"prophet\": \"" PROPHET_Version "\",\n  \"state\": \"recording\",\n  \"run\": \"");
	shim_putx(&t, shim_ctl.tag, 16);
	shim_put(&t, "\",\n  \"command\": [");
	for (i = 0; i < argc && argv[i] && t.len < sizeof buf / 2; i++) {
		if (i)
			shim_put(&t, ", ");
		shim_putjson(&t, argv[i]);
	}
	shim_put(&t, "],\n  \"exe\": ");
	r = sys(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", b, sizeof b - 1);
	b[r > 0 ? r : 0] = 0;
	shim_putjson(&t, b);
	shim_put(&t, ",\n  \"cwd\": ");
	r = sys(SYS_getcwd, b, sizeof b);
	if (r <= 0)
		b[0] = 0;
	shim_putjson(&t, b);
	shim_put(&t, ",\n  \"env\": [");
	for (i = 0; shim_run.envp && shim_run.envp[i] && t.len < sizeof buf * 3 / 4; i++) {
		const char *e = shim_run.envp[i];
		u32 k;
		for (k = 0; e[k] && e[k] != '=' && k < 255; k++)
			b[k] = e[k];
		b[k] = 0;
		if (i)
			shim_put(&t, ", ");
		shim_putjson(&t, b);
	}
	shim_put(&t, "],\n  \"machine\": {");
	shim_zero(&u, sizeof u);
	sys(SYS_uname, &u);
	shim_put(&t, "\"sysname\": ");
	shim_putjson(&t, u.sysname);
	shim_put(&t, ", \"release\": ");
	shim_putjson(&t, u.release);
	shim_put(&t, ", \"version\": ");
	shim_putjson(&t, u.version);
	shim_put(&t, ", \"arch\": ");
	shim_putjson(&t, u.machine);
	shim_put(&t, ", \"nodename\": ");
	shim_putjson(&t, u.nodename);
	shim_zero(cpus, sizeof cpus);
	r = sys(SYS_sched_getaffinity, 0, sizeof cpus, cpus);
	for (i = 0; i < r / 8; i++)
		n += __builtin_popcountll(cpus[i]);
	shim_put(&t, ", \"cpus\": ");
	shim_putd(&t, n);
	shim_zero(&si, sizeof si);
	sys(SYS_sysinfo, &si);
	shim_put(&t, ", \"memory_bytes\": ");
	shim_putd(&t, (i64)(si.totalram * (si.unit ? si.unit : 1)));
	shim_put(&t, ", \"page_size\": 4096, \"boot_id\": ");
	b[0] = 0;
	fd = sys(SYS_openat, AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0) {
		r = sys(SYS_read, fd, b, 36);
		b[r > 0 ? r : 0] = 0;
		sys(SYS_close, fd);
	}
	shim_putjson(&t, b);
	shim_put(&t, "},\n  \"options\": {\"inputs\": ");
	shim_putjson(&t, shim_ctl.inputs == PROPHET_InputsNone	 ? "none"
			 : shim_ctl.inputs == PROPHET_InputsHash ? "hash"
			 : shim_ctl.inputs == PROPHET_InputsFull ? "full"
								 : "default");
	shim_put(&t, ", \"level\": ");
	shim_putjson(&t, shim_ctl.level == 0 ? "off" : shim_ctl.level == ORDER_LEVEL ? "order" : "full");
	shim_put(&t, shim_ctl.serial ? ", \"serial\": true" : ", \"serial\": false");
	shim_put(&t, ", \"flight\": ");
	shim_putd(&t, (i64)shim_ctl.flight);
	shim_put(&t, ", \"keep_max\": ");
	shim_putd(&t, (i64)shim_ctl.keepmax);
	shim_put(&t, "},\n  \"start_realtime_ns\": ");
	shim_putd(&t, (i64)shim_ctl.real0);
	shim_put(&t, ",\n  \"ticks_hz\": 0\n}\n");
	fd = sys(SYS_openat, AT_FDCWD, in_dir(&pt, path, sizeof path, "meta.json"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	sys(SYS_write, fd, buf, t.len);
	sys(SYS_close, fd);
	shim_run.own_bytes += t.len;
}

/* Per-user directory of rings; 0 when it is ours and private. */
static int shm_dir(struct text *t)
{
	struct stat st;
	u32 uid = (u32)sys(SYS_geteuid);
	shim_text(t, shim_run.shm, sizeof shim_run.shm);
	shim_put(t, "/dev/shm/prophet-");
	shim_putd(t, uid);
	if (sys(SYS_mkdirat, AT_FDCWD, shim_run.shm, 0700) == 0)
		return 0;
	if (sys(SYS_newfstatat, AT_FDCWD, shim_run.shm, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -ENOENT;
	return S_ISDIR(st.st_mode) && st.st_uid == uid && !(st.st_mode & 077) ? 0 : -EPERM;
}

/* `.dir` links to the trace, so that what a killed run left can be told from what a live one needs. */
static void rings_open(int create)
{
	struct text t;
	char path[300];
	long fd;
	rings.fd = -1;
	if (shm_dir(&t))
		return;
	shim_put(&t, "/");
	shim_putx(&t, shim_ctl.tag, 16);
	fd = sys(SYS_openat, AT_FDCWD, shm_file(path, sizeof path, ".rings"), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	keep(&rings, (int)fd);
	if (create)
		sys(SYS_symlinkat, shim_run.dir, AT_FDCWD, shm_file(path, sizeof path, ".dir"));
	if (!shim_ctl.flight)
		return;
	fd = sys(SYS_openat, AT_FDCWD, shm_file(path, sizeof path, ".flight"), O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
	if (fd >= 0) {
		long p = sys(SYS_fallocate, fd, 0, 0, shim_ctl.flight);
		if (p == 0)
			p = sys(SYS_mmap, 0, shim_ctl.flight, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		flight = p < 0 && p > -4096 ? 0 : p ? (u8 *)p : 0;
		sys(SYS_close, fd);
	}
	if (!flight) {
		shim_say("no shared memory for the flight recorder, recording to", shim_run.dir, 0);
		shim_ctl.flight = 0;
	}
}

/* An absolute path of `name`, in place. */
static void absolute(struct text *t, const char *name)
{
	char cwd[4096];
	if (*name != '/' && sys(SYS_getcwd, cwd, sizeof cwd) > 0) {
		shim_put(t, cwd);
		shim_put(t, "/");
	}
	shim_put(t, name);
}

static int make_dir(const char *name, const char *suffix)
{
	struct text t;
	shim_text(&t, shim_run.dir, sizeof shim_run.dir);
	absolute(&t, name);
	shim_put(&t, suffix);
	return t.cut ? -ENAMETOOLONG : (int)sys(SYS_mkdirat, AT_FDCWD, shim_run.dir, 0700);
}

/* Makes the directory that was asked for; where it is taken, the next free name. */
static int make_named(const char *wanted)
{
	char suffix[32], base[4096];
	struct text t;
	int r = make_dir(wanted, ""), i;
	shim_text(&t, base, sizeof base);
	shim_put(&t, wanted);
	if (t.len > 8 && shim_same(base + t.len - 8, ".prophet"))
		base[t.len - 8] = 0;
	for (i = 2; r == -EEXIST && i < 1000; i++) {
		shim_text(&t, suffix, sizeof suffix);
		shim_put(&t, ".");
		shim_putd(&t, i);
		shim_put(&t, ".prophet");
		r = make_dir(base, suffix);
	}
	if (r == 0 && i > 2)
		shim_say("the trace's name is taken, recording to", shim_run.dir, 0);
	return r;
}

/* Where no name was asked for, or none of that name could be made. */
static int make_default(const char *program, int refused)
{
	char name[512];
	const char *base = program, *c, *tmp;
	struct text t;
	int r;
	for (c = program; *c; c++)
		if (*c == '/' && c[1])
			base = c + 1;
	shim_text(&t, name, sizeof name);
	shim_putn(&t, base, shim_len(base) < 200 ? shim_len(base) : 200);
	shim_put(&t, ".");
	shim_putd(&t, shim_run.pid);
	shim_put(&t, ".prophet");
	r = make_named(name);
	if (r == 0) {
		if (refused)
			shim_say("the trace cannot be made where PROPHET_TRACE says, recording to", shim_run.dir, 0);
		return 0;
	}
	tmp = shim_getenv(shim_run.envp, "TMPDIR");
	if (!tmp || *tmp != '/')
		tmp = "/tmp";
	{
		char at[4096];
		shim_text(&t, at, sizeof at);
		shim_put(&t, tmp);
		shim_put(&t, "/");
		shim_put(&t, name);
		r = make_named(at);
		if (r == 0)
			shim_say(refused ? "the trace cannot be made where PROPHET_TRACE says, recording to"
					 : "cannot write where the program was started, recording to",
				 shim_run.dir, 0);
	}
	return r;
}

/* The mapped control file of a new trace. Its directory goes again where that fails. */
static int control_create(void)
{
	char path[4200];
	struct text t;
	long r, fd = sys(SYS_openat, AT_FDCWD, in_dir(&t, path, sizeof path, "control"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		sys(SYS_unlinkat, AT_FDCWD, shim_run.dir, AT_REMOVEDIR);
		return (int)fd;
	}
	/* Written, not just made long: a full disk says so here and not by SIGBUS, and the first touch of the mapping
	 * finds its page (30 to 300 us cheaper on ext4 than a page that fallocate only promised). The table of shared
	 * objects behind it gets its space when there is one: shim_shared_room. */
	r = sys(SYS_write, fd, control_room, PROPHET_ControlSize);
	if (r > 0)
		shim_run.own_bytes += (u64)r;
	if (r > 0 && r < PROPHET_ControlSize) /* why? */
		r = sys(SYS_write, fd, control_room, PROPHET_ControlSize);
	r = r == PROPHET_ControlSize ? 0 : r < 0 ? r : -ENOSPC;
	if (r == 0)
		r = map_control((int)fd);
	sys(SYS_close, fd);
	if (r) {
		sys(SYS_unlinkat, AT_FDCWD, path, 0);
		sys(SYS_unlinkat, AT_FDCWD, shim_run.dir, AT_REMOVEDIR);
	}
	return (int)r;
}

static int create(int argc, char **argv)
{
	struct text t;
	struct control *c = &shim_ctl;
	const char *wanted = shim_getenv(shim_run.envp, "PROPHET_TRACE");
	int r = -1, asked = wanted && *wanted;
	if (asked)
		r = make_named(wanted);
	if (r)
		r = make_default(argc > 0 && argv[0] ? argv[0] : "program", asked);
	if (r) {
		shim_say("nothing is recorded, no directory can be made", 0, r);
		return r;
	}
	r = control_create();
	if (r < 0) {
		shim_say("nothing is recorded, cannot write to", shim_run.dir, r);
		return r;
	}
	c->magic = PROPHET_ControlMagic;
	c->version = PROPHET_FormatVersion;
	c->size = PROPHET_ControlSize;
	c->tag = random64();
	c->ticks0 = shim_ticks();
	c->mono0 = now_ns(CLOCK_MONOTONIC);
	c->real0 = now_ns(CLOCK_REALTIME);
	options(c, shim_getenv(shim_run.envp, "PROPHET_OPTIONS"));
	shim_text(&t, (char *)c->shmname, sizeof c->shmname);
	shim_putx(&t, c->tag, 16);
	shim_put(&t, ".rings");
	shim_run.how = PROPHET_ProcRoot;
	write_meta(argc, argv);
	rings_open(1);
	return 0;
}

void *shim_shared_room(void)
{
	if (unlikely(!__atomic_load_n(&shim_ctl.shared, __ATOMIC_ACQUIRE))) {
		char path[512];
		struct text t;
		long fd = sys(SYS_openat, AT_FDCWD, in_dir(&t, path, sizeof path, "control"), O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0), r;
		struct rlimit lim;
		u64 tag = 0;
		if (fd < 0)
			return 0;
		/* Growing past RLIMIT_FSIZE would kill the program with SIGXFSZ, touching what is not there with SIGBUS. */
		r = sys(SYS_pread64, fd, &tag, 8, offsetof(struct control, tag)) == 8 && tag == shim_ctl.tag ? 0 : -EINVAL;
		if (r == 0 && sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &lim) == 0 && lim.rlim_cur < PROPHET_ControlRoom)
			r = -EFBIG;
		if (r == 0)
			r = sys(SYS_fallocate, fd, 0, PROPHET_ControlSize, PROPHET_ControlRoom - PROPHET_ControlSize);
		sys(SYS_close, fd);
		if (r < 0)
			return 0;
		__atomic_store_n(&shim_ctl.shared, 1, __ATOMIC_RELEASE);
	}
	return control_room + PROPHET_ControlSize;
}

static int join(const char *dir, u64 tag)
{
	char path[4200];
	struct text t;
	long fd;
	int r;
	u64 head[3];
	shim_text(&t, shim_run.dir, sizeof shim_run.dir);
	shim_put(&t, dir);
	fd = sys(SYS_openat, AT_FDCWD, in_dir(&t, path, sizeof path, "control"), O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0)
		return (int)fd;
	r = -EINVAL;
	if (sys(SYS_pread64, fd, head, sizeof head, 0) == sizeof head && head[0] == PROPHET_ControlMagic && head[2] == tag &&
	    head[1] == ((u64)PROPHET_ControlSize << 32 | PROPHET_FormatVersion))
		r = map_control((int)fd);
	sys(SYS_close, fd);
	if (r)
		return r;
	if (shim_ctl.ended)
		return -EPIPE;
	shim_run.how = PROPHET_ProcExeced;
	rings_open(0);
	return 0;
}

static u64 parse_hex(const char *s)
{
	u64 v = 0;
	for (;; s++) {
		if (*s >= '0' && *s <= '9')
			v = v << 4 | (u64)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			v = v << 4 | (u64)(*s - 'a' + 10);
		else
			return v;
	}
}

/* What of PROPHET_RUN says which PROPHET_TRACE it belongs to: whoever sets another one wants a trace of its own. */
static u64 dir_mark(const char *dir)
{
	return shim_hash64(dir, shim_len(dir), 0) & 0xffffffff;
}

int shim_trace_asked(const char *dir)
{
	return !shim_same(dir, shim_run.dir) && dir_mark(dir) != shim_run.asked;
}

/* PROPHET_RUN is "tag:parent process:parent thread:which fork of it:mark of the directory:the slot that this process had
 * before exec, if it had one". 1: there is no run to join;
 * an error: there is, but this process may not, as it belongs to another user or the trace is gone. */
static int try_join(void)
{
	const char *run = shim_getenv(shim_run.envp, "PROPHET_RUN"), *dir = shim_getenv(shim_run.envp, "PROPHET_TRACE");
	const char *p;
	shim_run.asked = dir ? dir_mark(dir) : 0;
	if (!run || !dir || *dir != '/')
		return 1;
	for (p = run; *p && *p != ':'; p++)
		;
	if (*p == ':') {
		shim_run.parent_proc = (u32)shim_parse(p + 1, &p);
		if (*p == ':')
			shim_run.parent_uid = (u32)shim_parse(p + 1, &p);
		if (*p == ':')
			shim_run.parent_nth = (u32)shim_parse(p + 1, &p);
	}
	if (*p != ':' || shim_parse(p + 1, &p) != dir_mark(dir))
		return 1;
	if (*p == ':')
		shim_run.slot_hint = (u32)shim_parse(p + 1, 0);
	return join(dir, parse_hex(run));
}

void shim_trace_env(char *trace, u32 cap, char *run, u32 slot)
{
	struct text t;
	shim_text(&t, trace, cap);
	shim_put(&t, "PROPHET_TRACE=");
	shim_put(&t, shim_run.dir);
	shim_text(&t, run, 96);
	shim_put(&t, "PROPHET_RUN=");
	shim_putx(&t, shim_ctl.tag, 16);
	shim_put(&t, ":");
	shim_putd(&t, shim_run.proc);
	shim_put(&t, ":");
	shim_putd(&t, shim_self.uid);
	shim_put(&t, ":");
	shim_putd(&t, shim_self.nfork);
	shim_put(&t, ":");
	shim_putd(&t, (i64)dir_mark(shim_run.dir));
	if (slot != ~0u) {
		shim_put(&t, ":");
		shim_putd(&t, slot);
	}
}

static void stderr_identity(void)
{
	struct stat st;
	if (sys(SYS_fstat, 2, &st) == 0) {
		errs.fd = 2;
		errs.dev = st.st_dev;
		errs.ino = st.st_ino;
	} else {
		shim_run.said = 1000; /* nothing to say it on */
	}
}

static void new_process(void)
{
	struct stat st;
	shim_run.pid = (u32)sys(SYS_getpid);
	shim_run.boottime = now_ns(CLOCK_BOOTTIME);
	shim_run.ns = sys(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &st, 0) == 0 ? (u32)st.st_ino : 0;
	shim_run.proc = __atomic_fetch_add(&shim_ctl.nextproc, 1, __ATOMIC_RELAXED);
}

static int wiped_make(void)
{
	long p = sys(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p < 0 && p > -4096)
		return (int)p;
	sys(SYS_madvise, p, 4096, MADV_WIPEONFORK);
	shim_wiped = (struct wiped *)p;
	shim_wiped->alive = 1;
	return 0;
}

static int run_open(char **envp, int argc, char **argv)
{
	int r;
	shim_run.envp = envp;
	shim_run.slot_hint = ~0u;
	shim_run.pid = (u32)sys(SYS_getpid);
	shim_ring_rate(shim_ticks_per_ms());
	stderr_identity();
	if (wiped_make())
		return -ENOMEM;
	r = try_join();
	if (r == 1)
		r = create(argc, argv);
	if (r)
		return r;
	new_process();
	shim_run.stream_index = shim_run.proc % PROPHET_StreamFiles;
	r = stream_open();
	if (r) {
		shim_say("nothing is recorded, cannot write to", shim_run.dir, r);
		return r;
	}
	statm_open();
	shim_run.state = RUN_ON;
	return 0;
}

/* Limits that our files meet raise signals that are not the program's. */
int shim_run_open(char **envp, int argc, char **argv)
{
	u64 mask, before = 0, after = 0;
	int r;
	shim_block(&mask);
	sys(SYS_rt_sigpending, &before, 8);
	r = run_open(envp, argc, argv);
	sys(SYS_rt_sigpending, &after, 8);
	if (after & ~before & SIGSET(SIGXFSZ))
		take_back(SIGSET(SIGXFSZ));
	shim_unblock(&mask);
	return r;
}

void shim_run_forked(void)
{
	shim_run.parent_proc = shim_run.proc;
	shim_run.parent_uid = shim_self.uid;
	shim_run.parent_nth = shim_self.nfork;
	shim_run.how = PROPHET_ProcForked;
	shim_run.threads = 1;
	shim_run.next_rss = shim_ticks() + shim_gap * 250;
	shim_run.exiting = 0;
	shim_run.own_bytes = 0;
	new_process();
}
