/* See feed_disk.h. */
#include "feed_disk.h"
#include "family.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

struct in {
	const u8 *p, *end;
};

static struct in input(const struct expect *x)
{
	struct in in = {x->input, x->input + x->input_len};
	return in;
}

#define V() shim_get_v(&in.p, in.end)
#define Z() shim_get_z(&in.p, in.end)

static struct timespec at(u64 ns)
{
	struct timespec ts = {(time_t)((i64)ns / 1000000000), (long)((i64)ns % 1000000000)};
	if (ts.tv_nsec < 0) {
		ts.tv_nsec += 1000000000;
		ts.tv_sec--;
	}
	return ts;
}

/* What the file that a name or a descriptor leads to is called here. A trace that was made of what a target did does not say how
 * long files were there: they are as long as they are. */
static int is_here(int dirfd, const char *path, int flags, struct stat *now)
{
	return shim_index->moved && sys(SYS_newfstatat, dirfd, path, now, flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) == 0;
}

/* Whether a name's file was empty decides what the program does, and nothing keeps who looks and who writes in order: that the issue knows. */
static int emptied(const char *path, u64 was, u64 now)
{
	return *path && !was != !now;
}

void feed_stat(const struct expect *x, void *to, int dirfd, const char *path, int flags)
{
	struct in in = input(x);
	struct stat *st = to, now;
	const u64 *as;
	if (x->ret == 0 && !x->input_len && is_here(dirfd, path, flags, st) && (as = shim_moved(st->st_dev, st->st_ino, 0))) {
		st->st_dev = (dev_t)as[0];
		st->st_ino = (ino_t)as[1];
	}
	if (x->ret != 0 || !x->input_len)
		return;
	shim_zero(st, sizeof *st);
	st->st_dev = (dev_t)V();
	st->st_ino = (ino_t)V();
	st->st_mode = (mode_t)V();
	st->st_nlink = (nlink_t)V();
	st->st_uid = (uid_t)V();
	st->st_gid = (gid_t)V();
	st->st_rdev = (dev_t)V();
	st->st_size = (off_t)V();
	st->st_blksize = (blksize_t)V();
	st->st_blocks = (blkcnt_t)V();
	st->st_atim = at(V());
	st->st_mtim = at(V());
	st->st_ctim = at(V());
	if (unlikely(is_here(dirfd, path, flags, &now))) {
		shim_re_moves(now.st_dev, now.st_ino, st->st_dev, st->st_ino);
		if (shim_re_issued(shim_self.thr) && S_ISREG(now.st_mode) && !emptied(path, (u64)st->st_size, (u64)now.st_size)) {
			st->st_size = now.st_size;
			st->st_blocks = now.st_blocks;
		}
	}
}

static struct statx_timestamp statx_at(u64 ns)
{
	struct timespec ts = at(ns);
	struct statx_timestamp t = {.tv_sec = ts.tv_sec, .tv_nsec = (u32)ts.tv_nsec};
	return t;
}

void feed_statx(const struct expect *x, struct statx *st, int dirfd, const char *path, int flags)
{
	struct in in = input(x);
	struct stat now;
	u64 v;
	if (x->ret != 0 || !x->input_len)
		return;
	shim_zero(st, sizeof *st);
	st->stx_mask = (u32)V();
	v = V();
	st->stx_dev_major = (u32)(v >> 32);
	st->stx_dev_minor = (u32)v;
	st->stx_ino = V();
	st->stx_mode = (u16)V();
	st->stx_nlink = (u32)V();
	st->stx_uid = (u32)V();
	st->stx_gid = (u32)V();
	v = V();
	st->stx_rdev_major = (u32)(v >> 32);
	st->stx_rdev_minor = (u32)v;
	st->stx_size = V();
	st->stx_blksize = (u32)V();
	st->stx_blocks = V();
	st->stx_attributes = V();
	st->stx_attributes_mask = V();
	st->stx_atime = statx_at(V());
	st->stx_mtime = statx_at(V());
	st->stx_ctime = statx_at(V());
	st->stx_btime = statx_at(V());
	if (unlikely(is_here(dirfd, path, flags, &now))) {
		shim_re_moves(now.st_dev, now.st_ino, makedev(st->stx_dev_major, st->stx_dev_minor), st->stx_ino);
		if (shim_re_issued(shim_self.thr) && S_ISREG(now.st_mode) && !emptied(path, st->stx_size, (u64)now.st_size)) {
			st->stx_size = (u64)now.st_size;
			st->stx_blocks = (u64)now.st_blocks;
		}
	}
}

void feed_statfs(const struct expect *x, void *to)
{
	struct in in = input(x);
	struct statfs *st = to;
	u64 fsid;
	if (x->ret != 0 || !x->input_len)
		return;
	shim_zero(st, sizeof *st);
	st->f_type = (__typeof__(st->f_type))V();
	st->f_bsize = (__typeof__(st->f_bsize))V();
	st->f_blocks = V();
	st->f_bfree = V();
	st->f_bavail = V();
	st->f_files = V();
	st->f_ffree = V();
	fsid = V();
	__builtin_memcpy(&st->f_fsid, &fsid, sizeof fsid);
	st->f_namelen = (__typeof__(st->f_namelen))V();
	st->f_frsize = (__typeof__(st->f_frsize))V();
	st->f_flags = (__typeof__(st->f_flags))V();
}

void feed_statvfs(const struct expect *x, void *to)
{
	struct in in = input(x);
	struct statvfs *st = to;
	if (x->ret != 0 || !x->input_len)
		return;
	shim_zero(st, sizeof *st);
	st->f_bsize = V();
	st->f_frsize = V();
	st->f_blocks = V();
	st->f_bfree = V();
	st->f_bavail = V();
	st->f_files = V();
	st->f_ffree = V();
	st->f_favail = V();
	st->f_fsid = V();
	st->f_flag = V();
	st->f_namemax = V();
}

/* The text of an input that is one, or NULL. */
static const u8 *text(const struct expect *x, u64 *n)
{
	struct in in = input(x);
	if (!x->input_len || x->note & PROPHET_NoteCut)
		return 0;
	*n = V();
	return *n <= (u64)(in.end - in.p) ? in.p : 0;
}

int feed_text(const struct expect *x, void *buf, u64 room)
{
	u64 n;
	const u8 *s = text(x, &n);
	if (!s || n > room)
		return 0;
	shim_copy(buf, s, n);
	return 1;
}

char *feed_cstr(const struct expect *x, char *buf, u64 room)
{
	static void *(*allocate)(size_t);
	u64 n;
	const u8 *s = text(x, &n);
	if (!s)
		return 0;
	if (!buf) {
		if (!allocate)
			allocate = (__typeof__(allocate))shim_find("malloc", 0);
		if (!allocate || !(buf = allocate(n + 1)))
			return 0;
	} else if (n + 1 > room) {
		return 0;
	}
	shim_copy(buf, s, n);
	buf[n] = 0;
	return buf;
}

/* The C library asks for room for any name, and gives back what is too much: where the rest is left counts for what is allocated next. */
char *feed_cwd(const struct expect *x, char *buf, u64 room)
{
	static void *(*allocate)(size_t), *(*shrink)(void *, size_t);
	char *s;
	if (buf)
		return feed_cstr(x, buf, room);
	if (!allocate) {
		shrink = (__typeof__(shrink))shim_find("realloc", 0);
		allocate = (__typeof__(allocate))shim_find("malloc", 0);
	}
	if (!allocate || !shrink || !(buf = allocate(room ? room : PATH_MAX)))
		return 0;
	s = feed_cstr(x, buf, room ? room : PATH_MAX);
	return s && !room ? shrink(s, shim_len(s) + 1) : s;
}

void feed_flock(const struct expect *x, struct flock *l)
{
	struct in in = input(x);
	if (!x->input_len)
		return;
	l->l_type = (short)V();
	l->l_whence = (short)V();
	l->l_start = Z();
	l->l_len = Z();
	l->l_pid = (pid_t)Z();
}

int feed_dirent(const struct expect *x, struct dirent64 *d)
{
	struct in in = input(x);
	u64 n;
	if (!x->input_len)
		return 0;
	d->d_ino = V();
	d->d_off = (off64_t)V();
	d->d_type = (u8)V();
	n = V();
	if (n > sizeof d->d_name - 1 || n > (u64)(in.end - in.p))
		return 0;
	shim_copy(d->d_name, in.p, n);
	d->d_name[n] = 0;
	d->d_reclen = (u16)((offsetof(struct dirent64, d_name) + n + 1 + 7) & ~7ul);
	return 1;
}
