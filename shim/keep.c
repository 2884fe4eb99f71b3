/* See keep.h. */
#include "keep.h"
#include "fdtab.h"
#include "run.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define PROBES 128
#define LINK_MIN (64u << 10) /* a smaller file is copied, so that its count of links stays what the program expects */

u32 shim_files_known(void)
{
	return shim_ctl.rooms & PROPHET_RoomKnown ? (u32)*shim_known_files() : 0;
}

u64 shim_file_id(u64 dev, u64 ino)
{
	u64 w[2] = {dev, ino};
	return shim_hash64(w, sizeof w, 0) | 1;
}

static u64 *place(u64 id, u32 i)
{
	return &shim_known_files()[1 + ((id >> 32) + i) % (PROPHET_KnownFiles - 1)];
}

int shim_file_known(u64 id)
{
	u32 i;
	if (!(shim_ctl.rooms & PROPHET_RoomKnown))
		return 0;
	for (i = 0; i < PROBES; i++) {
		u64 was = __atomic_load_n(place(id, i), __ATOMIC_RELAXED);
		if (was == id)
			return 1;
		if (!was)
			return 0;
	}
	return 0;
}

int shim_file_add(u64 id)
{
	u32 i;
	if (!shim_room(PROPHET_RoomKnown))
		return -1;
	for (i = 0; i < PROBES; i++) {
		u64 was = __atomic_load_n(place(id, i), __ATOMIC_RELAXED);
		if (!was && __atomic_compare_exchange_n(place(id, i), &was, id, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_fetch_add(shim_known_files(), 1, __ATOMIC_RELAXED);
			return 1;
		}
		if (was == id)
			return 0;
	}
	return -1;
}

/* Files through which this process has had a POSIX lock. */
static u64 locked[64];
static u32 nlocked;

static int is_locked(u64 id)
{
	u32 i;
	for (i = 0; i < nlocked && i < 64; i++)
		if (locked[i] == id)
			return 1;
	return nlocked > 64; /* too many to tell */
}

void shim_keep_locked(int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	struct stat st;
	u64 id;
	u32 n;
	if (!i || i->flags & FD_LOCKED || sys(SYS_fstat, fd, &st) != 0)
		return;
	i->flags |= FD_LOCKED;
	id = shim_file_id(st.st_dev, st.st_ino);
	if (nlocked <= 64 && is_locked(id))
		return;
	n = __atomic_fetch_add(&nlocked, 1, __ATOMIC_RELAXED);
	if (n < 64)
		locked[n] = id;
	else
		nlocked = 65;
}

static void say(struct thr *t, const struct stat *st, u32 how, const char *path)
{
	u64 n = shim_len(path);
	u8 b[480], *p = put_v(b, PROPHET_TagKept);
	t->ours = 1;
	if (n > 400)
		n = 400;
	p = put_v(p, st->st_dev);
	p = put_v(p, st->st_ino);
	p = put_v(p, (u64)st->st_size);
	p = put_v(p, how);
	p = put_v(p, n);
	shim_copy(p, path, n);
	shim_record(t, b, (u32)(p - b) + (u32)n);
}

/* What a file, directory or link is before the run changes it: comes before its KEPT, or before the call that removes it. */
static void was(struct thr *t, const struct stat *st, const char *link, u64 n)
{
	u8 b[480], *p = put_v(b, PROPHET_TagWas);
	t->ours = 1;
	p = put_v(p, st->st_dev);
	p = put_v(p, st->st_ino);
	p = put_v(p, st->st_mode);
	p = put_v(p, st->st_uid);
	p = put_v(p, st->st_gid);
	p = put_v(p, (u64)st->st_mtim.tv_sec * 1000000000u + (u64)st->st_mtim.tv_nsec);
	p = put_v(p, n);
	shim_copy(p, link, n);
	shim_record(t, b, (u32)(p - b) + (u32)n);
}

/* A call on a path in the directory kept/, which is made on first use. */
static long in_kept(const char *name, long (*f)(const char *path, int arg), int arg)
{
	static char path[sizeof shim_run.dir + 48]; /* no stack has to hold it */
	struct text s;
	u32 end;
	long r;
	shim_lock(&shim_wiped->files);
	shim_text(&s, path, sizeof path);
	shim_put(&s, shim_run.dir);
	shim_put(&s, "/kept");
	end = s.len;
	shim_put(&s, "/");
	shim_put(&s, name);
	r = f(path, arg);
	if (r == -ENOENT) {
		path[end] = 0;
		sys(SYS_mkdirat, AT_FDCWD, path, 0700);
		path[end] = '/';
		r = f(path, arg);
	}
	shim_unlock(&shim_wiped->files);
	return r;
}

static long made(const char *path, int unused)
{
	(void)unused;
	return sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static long linked(const char *path, int from)
{
	char link[FD_LINK];
	return sys(SYS_linkat, AT_FDCWD, shim_fd_link(link, from), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static long removed(const char *path, int unused)
{
	(void)unused;
	return sys(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* Takes size bytes of what may still be kept. */
static int budget(u64 size)
{
	u64 left = __atomic_load_n(&shim_ctl.keepleft, __ATOMIC_RELAXED);
	struct rlimit lim;
	if (size > shim_ctl.keepmax)
		return 0;
	if (sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &lim) == 0 && size > lim.rlim_cur)
		return 0; /* SIGXFSZ would kill the program */
	do
		if (size > left)
			return 0;
	while (!__atomic_compare_exchange_n(&shim_ctl.keepleft, &left, left - size, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 1;
}

static int copy(int from, int to, u64 size)
{
	i64 at = 0;
	long r;
	while ((u64)at < size && (r = sys(SYS_copy_file_range, from, &at, to, 0, size - (u64)at, 0)) > 0)
		;
	while ((u64)at < size && (r = sys(SYS_sendfile, to, from, &at, size - (u64)at)) > 0)
		;
	__atomic_fetch_add(&shim_run.own_bytes, (u64)at, __ATOMIC_RELAXED);
	__atomic_fetch_add(&shim_run.own_read, (u64)at, __ATOMIC_RELAXED);
	return (u64)at == size;
}

/* Keeps the content of what `from` is open on. */
static u32 keep_into(int from, const char *name, const struct stat *st, int may_link)
{
	static u32 no_clones; /* the trace's file system has none */
	u32 how = PROPHET_KeptFailed;
	long to, r = -EOPNOTSUPP;
	if (may_link && (u64)st->st_size >= LINK_MIN && in_kept(name, linked, from) == 0)
		return PROPHET_KeptCopy;
	to = in_kept(name, made, 0);
	if (to < 0)
		return PROPHET_KeptFailed;
	if (!__atomic_load_n(&no_clones, __ATOMIC_RELAXED) && (r = sys(SYS_ioctl, to, FICLONE, from)) == -EOPNOTSUPP)
		__atomic_store_n(&no_clones, 1, __ATOMIC_RELAXED);
	if (r == 0)
		how = PROPHET_KeptClone;
	else if (copy(from, (int)to, (u64)st->st_size))
		how = PROPHET_KeptCopy;
	sys(SYS_close, to);
	if (how == PROPHET_KeptFailed)
		in_kept(name, removed, 0);
	return how;
}

/* Whether the last part of the trace's name, which was given to a directory, is one of the two that lie above the file of this name. */
static int like_trace(const char *name, long len)
{
	const char *dir = shim_run.dir, *of;
	u64 end = shim_len(dir), n;
	int levels;
	while (end && dir[end - 1] == '/')
		end--;
	for (n = 0; n < end && dir[end - n - 1] != '/';)
		n++;
	of = dir + end - n;
	for (levels = 0; levels < 3; levels++) {
		long at = len;
		while (at > 0 && name[at - 1] != '/')
			at--;
		if (levels && (u64)(len - at) == n && !__builtin_memcmp(name + at, of, n))
			return 1;
		if (at < 2)
			break;
		len = at - 1;
	}
	return 0;
}

/* Whether the file of this name lies in the trace itself. */
static int of_trace(char *name, long len)
{
	struct stat trace, dir;
	int levels, is = 0;
	if (!like_trace(name, len))
		return 0;
	if (sys(SYS_newfstatat, AT_FDCWD, shim_run.dir, &trace, 0) != 0)
		return 1;
	for (levels = 0; levels < 2 && !is; levels++) {
		while (len > 1 && name[len - 1] != '/')
			len--;
		if (len < 2)
			break;
		name[--len] = 0;
		is = sys(SYS_newfstatat, AT_FDCWD, name, &dir, AT_SYMLINK_NOFOLLOW) == 0 && dir.st_dev == trace.st_dev && dir.st_ino == trace.st_ino;
		name[len] = '/';
	}
	return is;
}

/* Signals are blocked; from is closed here. */
static void keep(struct thr *t, int from, const struct stat *st, const char *path, int may_link)
{
	char name[40], full[400];
	struct text s;
	struct stat now;
	u32 how = PROPHET_KeptFailed;
	long r;
	if (from < 0 || sys(SYS_fstat, from, &now) != 0 || now.st_dev != st->st_dev || now.st_ino != st->st_ino) {
		was(t, st, "", 0);
		say(t, st, st->st_size ? PROPHET_KeptFailed : PROPHET_KeptCopy, path);
		if (from >= 0)
			sys(SYS_close, from);
		return;
	}
	r = shim_fd_path(from, full, sizeof full);
	if (of_trace(full, r)) {
		sys(SYS_close, from);
		return;
	}
	if (st->st_size == 0) {
		how = PROPHET_KeptCopy; /* that it was there is all there is to know */
	} else if (!budget((u64)st->st_size)) {
		how = PROPHET_KeptNot;
	} else {
		shim_text(&s, name, sizeof name);
		shim_putx(&s, st->st_dev, 16);
		shim_put(&s, "-");
		shim_putx(&s, st->st_ino, 16);
		how = keep_into(from, name, st, may_link);
	}
	sys(SYS_close, from);
	was(t, st, "", 0);
	say(t, st, how, r > 0 ? full : path);
}

static long open_to_read(int dirfd, const char *path, int flags)
{
	long fd = sys(SYS_openat, dirfd, path, flags | O_RDONLY | O_NOATIME | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	return fd == -EPERM ? sys(SYS_openat, dirfd, path, flags | O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0) : fd;
}

/* Whether the file is to be kept now; adds it to the known ones. */
static int claims(struct thr *t, const struct stat *st, const char *path)
{
	u64 id;
	int added;
	if (!S_ISREG(st->st_mode))
		return 0;
	id = shim_file_id(st->st_dev, st->st_ino);
	added = shim_file_add(id);
	if (added == 0)
		return 0;
	if (added < 0 || is_locked(id)) {
		was(t, st, "", 0);
		say(t, st, PROPHET_KeptNot, path);
		return 0;
	}
	return 1;
}

void shim_keep_before(struct thr *t, int dirfd, const char *path, int at_flags, int gone)
{
	struct stat st;
	u64 mask;
	if (!shim_keeping() || sys(SYS_newfstatat, dirfd, path, &st, at_flags) != 0)
		return;
	if (gone && !S_ISREG(st.st_mode)) {
		char link[400];
		long n = S_ISLNK(st.st_mode) ? sys(SYS_readlinkat, dirfd, path, link, sizeof link) : 0;
		was(t, &st, link, n > 0 ? (u64)n : 0);
		return;
	}
	if (!claims(t, &st, path))
		return;
	shim_block(&mask);
	keep(t, (int)open_to_read(dirfd, path, at_flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0), &st, path, gone);
	shim_unblock(&mask);
}

void shim_keep_empty(struct thr *t, int dirfd, const char *path, int at_flags)
{
	struct stat st;
	if (shim_keeping() && sys(SYS_newfstatat, dirfd, path, &st, at_flags) == 0 && st.st_size == 0)
		shim_keep_before(t, dirfd, path, at_flags, 0);
}

void shim_keep_attributes(struct thr *t, int fd, const char *path, int at_flags)
{
	struct stat st;
	if (shim_keeping() && (path ? sys(SYS_newfstatat, fd, path, &st, at_flags) : sys(SYS_fstat, fd, &st)) == 0 &&
	    !shim_file_known(shim_file_id(st.st_dev, st.st_ino)))
		was(t, &st, "", 0);
}

static void keep_open(struct thr *t, int fd, const struct stat *st)
{
	char at[FD_LINK];
	u64 mask;
	if (!claims(t, st, ""))
		return;
	shim_block(&mask);
	keep(t, (int)open_to_read(AT_FDCWD, shim_fd_link(at, fd), 0), st, at, 0);
	shim_unblock(&mask);
}

void shim_keep_opened(struct thr *t, int fd, int flags)
{
	struct stat st;
	if (!shim_keeping() || fd < 0 || sys(SYS_fstat, fd, &st) != 0)
		return;
	shim_fd_is(fd, &st);
	if (flags & O_TRUNC || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) || (flags & O_TMPFILE) == O_TMPFILE || (flags & O_CREAT && st.st_size == 0)) {
		if (S_ISREG(st.st_mode))
			shim_file_add(shim_file_id(st.st_dev, st.st_ino)); /* made by this call, or kept before it */
		return;
	}
	keep_open(t, fd, &st);
}

void shim_keep_fd(struct thr *t, int fd)
{
	struct stat st;
	if (shim_keeping() && sys(SYS_fstat, fd, &st) == 0)
		keep_open(t, fd, &st);
}
