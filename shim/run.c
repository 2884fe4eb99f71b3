/* See run.h. */
#include "run_own.h"
#include "real.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

struct run shim_run;
u32 shim_leaps;
struct wiped *shim_wiped;

/* Boot maps the run's file over this; until then all is off, and nothing may be written there: of what a program may write
 * in private its RLIMIT_DATA takes account, and one that is kept small would not start with this beside it. In assembly,
 * as the compiler must not believe that it is constant. */
#define TEXT(number) TEXT_(number)
#define TEXT_(number) #number
__asm__(".pushsection .control, \"a\"\n.balign 4096\n.globl shim_ctl, control_room\n.hidden shim_ctl, control_room\n"
	".type control_room, %object\n.size control_room, " TEXT(PROPHET_ControlRoom) "\n.set shim_ctl, control_room\n"
										      "control_room: .zero " TEXT(PROPHET_ControlRoom) "\n.popsection");
extern u8 control_room[PROPHET_ControlRoom] HIDDEN;

static u8 *flight;

/* How deep this thread is in parts that no signal may interrupt: only the outermost asks the kernel. It is changed while
 * all is blocked, so no handler sees it but as 0. */
static __thread u32 blocked __attribute__((tls_model("initial-exec")));

void shim_block(u64 *was)
{
	/* But for the one by which the C library has each thread change its user: who sends it waits for all of them, and may
	 * hold what we wait for (pthread_create). Its handler touches nothing of ours. */
	u64 all = ~SIGSET(33);
	*was = all;
	if (!blocked)
		sys(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, was, 8);
	blocked++;
}

void shim_unblock(const u64 *was)
{
	if (--blocked == 0)
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

const char *shim_in_dir(struct text *t, char *buf, u32 cap, const char *name)
{
	shim_text(t, buf, cap);
	shim_put(t, shim_run.dir);
	shim_put(t, "/");
	shim_put(t, name);
	return buf;
}

static long open_stream(char *path, u32 cap, int flags)
{
	char name[16];
	struct text t, n;
	shim_text(&n, name, sizeof name);
	shim_put(&n, "stream-");
	shim_putd(&n, shim_run.stream_index / 10);
	shim_putd(&n, shim_run.stream_index % 10);
	return sys(SYS_openat, AT_FDCWD, shim_in_dir(&t, path, cap, name), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

int shim_stream_open(void)
{
	long fd = open_stream(shim_room_at_start, sizeof shim_room_at_start, O_CREAT);
	return fd < 0 ? (int)fd : shim_ours_keep(&shim_stream, (int)fd);
}

static long stream_again(void)
{
	long path = sys(SYS_mmap, 0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), fd; /* programs have small stacks */
	if (path < 0 && path > -4096)
		return path;
	fd = open_stream((char *)path, 2 * 4096, 0);
	sys(SYS_munmap, path, 2 * 4096);
	return fd;
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

struct writing {
	const struct iovec *v;
	u64 len;
	u32 n, begun; /* begun: there was a descriptor to write to */
};

static long write_chunk(int fd, void *arg)
{
	struct writing *w = arg;
	struct rlimit lim;
	long r;
	w->begun = 1;
	if (shim_stream.gone) /* it would fill the disk with what nobody can read */
		return -ENOENT;
	/* Writing past RLIMIT_FSIZE would raise SIGXFSZ, and leave a part of a chunk. */
	if (sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY) {
		r = sys(SYS_lseek, fd, 0, SEEK_END);
		if (r >= 0 && (u64)r + w->len > lim.rlim_cur)
			return -EFBIG;
	}
	r = w->n == 1 ? sys(SYS_write, fd, w->v[0].iov_base, w->v[0].iov_len) : sys(SYS_writev, fd, w->v, w->n);
	if (r > 0)
		__atomic_fetch_add(&shim_run.own_bytes, (u64)r, __ATOMIC_RELAXED);
	if (r == -EFBIG) /* another process was faster */
		shim_take_back(SIGSET(SIGXFSZ));
	return r == (long)w->len ? 0 : r < 0 ? r : -ENOSPC;
}

int shim_stream_writev(const struct iovec *v, int n, u64 len)
{
	struct writing w = {v, len, (u32)n, 0};
	long r;
	if (shim_ctl.ended)
		return EPIPE;
	if (shim_ctl.flight)
		return flight_write(v, n, len);
	r = shim_ours_use(&shim_stream, stream_again, write_chunk, &w);
	if (w.begun && r == -ENOENT) {
		shim_ctl.level = shim_ctl.fast = 0;
		return lost("nothing more is recorded, there is no longer", ENOENT);
	}
	if (r == 0)
		return 0;
	return lost(!w.begun	  ? "events are lost, a descriptor was closed that leads to"
		    : r == -EFBIG ? "events are lost, the file size limit is reached in"
				  : "events are lost, cannot write to",
		    r);
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
	struct stat st;
	if (!shim_run.ns || !shim_ours_same(&shim_rings) || sys(SYS_fstat, shim_rings.fd, &st) != 0)
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
		/* Killed between taking the slot and giving it memory: to look there would be SIGBUS. */
		if ((u64)st.st_size < (u64)i * PROPHET_SlotSize + PROPHET_SlotFirst)
			continue;
		p = sys(SYS_mmap, 0, PROPHET_SlotSize, PROT_READ | PROT_WRITE, MAP_SHARED, shim_rings.fd, (u64)i * PROPHET_SlotSize);
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
		do { /* the table below slotsend has its space */
			i = __atomic_load_n(&shim_ctl.slotsend, __ATOMIC_RELAXED);
			if (i + n > PROPHET_SlotsMax || (i + n > PROPHET_OwnersFirst && !shim_room(PROPHET_RoomOwners)))
				return -ENOSPC;
		} while (!__atomic_compare_exchange_n(&shim_ctl.slotsend, &i, i + n, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
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

const char *shim_shm_file(char *buf, u32 cap, const char *suffix)
{
	struct text t;
	shim_text(&t, buf, cap);
	shim_put(&t, shim_run.shm);
	shim_put(&t, suffix);
	return buf;
}

/* `.dir` links to the trace, so that what a killed run left can be told from what a live one needs. What most first processes do
 * is over before it would be of use: until they are 10 ms old, or have others, what they leave is kept for a day. */
static u32 linked;

static void link_dir(void)
{
	char path[300];
	if (linked || !shim_rings.ino)
		return;
	linked = 1;
	sys(SYS_symlinkat, shim_run.dir, AT_FDCWD, shim_shm_file(path, sizeof path, ".dir"));
}

void shim_run_left(void)
{
	char path[300];
	u64 mask;
	u32 i, *own = owners(), end = shim_ctl.slotsend, last = 0;
	if (!shim_rings.ino)
		return;
	if (__atomic_load_n(&shim_ctl.live, __ATOMIC_ACQUIRE)) {
		for (i = 0; i < end && i < PROPHET_SlotsMax; i++)
			if (own[i] && own[i] != shim_run.pid && own[i] != last && sys(SYS_kill, last = own[i], 0) != -ESRCH)
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
	sys(SYS_unlinkat, AT_FDCWD, shim_shm_file(path, sizeof path, ".rings"), 0);
	if (shim_ctl.flight)
		sys(SYS_unlinkat, AT_FDCWD, shim_shm_file(path, sizeof path, ".flight"), 0);
	if (linked && !shim_run.apart) /* else it says whose .control is, which stays until a command has completed the trace */
		sys(SYS_unlinkat, AT_FDCWD, shim_shm_file(path, sizeof path, ".dir"), 0);
	shim_unblock(&mask);
}

int shim_private(void *at)
{
	long p = sys(SYS_mmap, at, PROPHET_SlotSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return p < 0 && p > -4096 ? (int)p : 0;
}

static long rings_again(void)
{
	char path[300];
	return sys(SYS_openat, AT_FDCWD, shim_shm_file(path, sizeof path, ".rings"), O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
}

/* Slots that get memory, and an address; or the rest of one that has its first part. */
struct slots {
	void *at;
	u64 off, len;
	u32 n;
};

/* Past a full tmpfs the first touch would be SIGBUS; fallocate tells in time. Signals are blocked. */
static long back(int fd, void *arg)
{
	const struct slots *s = arg;
	long r = 0;
	u32 i;
	for (i = 0; i < s->n && r == 0; i++)
		r = sys(SYS_fallocate, fd, 0, s->off + (u64)i * PROPHET_SlotSize, s->len);
	if (r == -EFBIG)
		shim_take_back(SIGSET(SIGXFSZ));
	return r;
}

static long map(int fd, void *arg)
{
	const struct slots *s = arg;
	if (back(fd, arg) != 0)
		return 0;
	return sys(SYS_mmap, s->at, (u64)s->n * PROPHET_SlotSize, PROT_READ | PROT_WRITE, MAP_SHARED | (s->at ? MAP_FIXED : 0), fd, s->off);
}

int shim_slot_grow(u32 index)
{
	struct slots s = {0, (u64)index * PROPHET_SlotSize + PROPHET_SlotFirst, PROPHET_SlotSize - PROPHET_SlotFirst, 1};
	return (int)shim_ours_use(&shim_rings, rings_again, back, &s);
}

void *shim_slots_map(void *at, u32 first, u32 n)
{
	struct slots s = {at, (u64)first * PROPHET_SlotSize, PROPHET_SlotFirst, n};
	long p = shim_ours_use(&shim_rings, rings_again, map, &s);
	return p < 0 && p > -4096 ? 0 : (void *)p;
}

void shim_ns_look(void)
{
	struct stat st;
	link_dir();
	shim_run.ns = sys(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &st, 0) == 0 ? (u32)st.st_ino : 0;
}

void shim_ns_known(void)
{
	if (shim_run.ns)
		return;
	shim_ns_look();
	if (shim_self.thr)
		shim_self.thr->slot->ns = shim_run.ns; /* there is no other thread yet */
}

static u32 statm_pid; /* whose it is: a forked child's is its parent's at first */

void shim_rss_ready(void)
{
	u64 mask;
	long fd;
	if (statm_pid == shim_run.pid)
		return;
	shim_block(&mask);
	shim_ours_close(&shim_statm);
	statm_pid = shim_run.pid;
	shim_ns_known();
	fd = sys(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0)
		shim_ours_keep(&shim_statm, (int)fd);
	shim_unblock(&mask);
}

u64 shim_rss(u64 now)
{
	char b[96];
	const char *p;
	long r;
	if (now < shim_run.next_rss)
		return 0;
	shim_run.next_rss = now + shim_gap * 1250; /* 50 ms: one costs 30 us */
	if (shim_run.threads < 2)
		shim_rss_ready();
	if (statm_pid != shim_run.pid || !shim_ours_same(&shim_statm))
		return 0;
	r = sys(SYS_pread64, shim_statm.fd, b, sizeof b - 1, 0);
	if (r <= 0)
		return 0;
	shim_own_read(r);
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
	*rchar = number_after(b, "rchar: ") + (u64)shim_own_read(r); /* which the kernel counts after it has told */
	*wchar = number_after(b, "wchar: ");
}

long shim_control_open(u64 tag)
{
	char path[4200];
	struct text t;
	long fd = sys(SYS_openat, AT_FDCWD, shim_in_dir(&t, path, sizeof path, "control"), O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd == -ELOOP && (shim_run.shm[0] || shim_shm_name(tag) == 0)) {
		fd = sys(SYS_openat, AT_FDCWD, shim_shm_file(path, sizeof path, ".control"), O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
		shim_run.apart = fd >= 0;
	}
	return fd;
}

int shim_control_map(int fd)
{
	long p = sys(SYS_mmap, control_room, PROPHET_ControlRoom, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	return p < 0 && p > -4096 ? (int)p : 0;
}

/* Per-user directory of rings; 0 when it is ours and private. */
static int shm_dir(struct text *t)
{
	struct stat st;
	u32 uid = (u32)sys(SYS_geteuid);
	shim_text(t, shim_run.shm, sizeof shim_run.shm);
	shim_put(t, "/dev/shm/prophet-");
	shim_putd(t, uid);
	if (sys(SYS_newfstatat, AT_FDCWD, shim_run.shm, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		if (sys(SYS_mkdirat, AT_FDCWD, shim_run.shm, 0700) == 0)
			return 0;
		if (sys(SYS_newfstatat, AT_FDCWD, shim_run.shm, &st, AT_SYMLINK_NOFOLLOW) != 0) /* nor has another process made it */
			return -ENOENT;
	}
	return S_ISDIR(st.st_mode) && st.st_uid == uid && !(st.st_mode & 077) ? 0 : -EPERM;
}

int shim_shm_name(u64 tag)
{
	struct text t;
	int r = shm_dir(&t);
	shim_put(&t, "/");
	shim_putx(&t, tag, 16);
	return r;
}

void shim_rings_open(int create)
{
	char path[300];
	long fd;
	if (shim_shm_name(shim_ctl.tag))
		return;
	fd = sys(SYS_openat, AT_FDCWD, shim_shm_file(path, sizeof path, ".rings"), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	shim_ours_keep(&shim_rings, (int)fd);
	linked = !create;
	if (shim_run.apart || shim_ctl.flight)
		link_dir();
	if (!shim_ctl.flight)
		return;
	fd = sys(SYS_openat, AT_FDCWD, shim_shm_file(path, sizeof path, ".flight"), O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
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

int shim_room(u32 part)
{
	struct rlimit lim;
	u64 tag = 0, low, end;
	long fd, r;
	if (likely(__atomic_load_n(&shim_ctl.rooms, __ATOMIC_ACQUIRE) & part))
		return 1;
	low = part == PROPHET_RoomOwners ? PROPHET_OwnersAt + PROPHET_OwnersFirst * 4 : part == PROPHET_RoomKnown ? PROPHET_KnownAt : PROPHET_ControlSize;
	end = part == PROPHET_RoomOwners ? PROPHET_KnownAt : part == PROPHET_RoomKnown ? PROPHET_ControlSize : PROPHET_ControlRoom;
	fd = shim_control_open(shim_ctl.tag);
	if (fd < 0)
		return 0;
	/* Growing past RLIMIT_FSIZE would kill the program with SIGXFSZ, touching what is not there with SIGBUS. */
	r = sys(SYS_pread64, fd, &tag, 8, offsetof(struct control, tag)) == 8 && tag == shim_ctl.tag ? 0 : -EINVAL;
	if (r == 0 && sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &lim) == 0 && lim.rlim_cur < end)
		r = -EFBIG;
	if (r == 0)
		r = sys(SYS_fallocate, fd, 0, low, end - low);
	sys(SYS_close, fd);
	if (r < 0)
		return 0;
	__atomic_fetch_or(&shim_ctl.rooms, part, __ATOMIC_RELEASE);
	return 1;
}

void *shim_shared_room(void)
{
	return shim_room(PROPHET_RoomShared) ? control_room + PROPHET_ControlSize : 0;
}
