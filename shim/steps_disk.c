/* See steps_disk.h: results of calls on files, in the form that runtime/trace/inputs_disk.go reads. */
#include "family.h"
#include "wrap_all.h"
#include <sys/sysmacros.h>

static u64 ns(i64 s, i64 n)
{
	return (u64)s * 1000000000u + (u64)n;
}

/* What a program that was re-executed up to here knows a file as. */
static const u64 *known_as(const struct ev *e, u64 dev, u64 ino)
{
	const u64 *m = shim_index && !e->t->re ? shim_moved(dev, ino, 0) : 0;
	return m && m[1] ? m : 0;
}

void shim_input_stat(struct ev *e, i64 r, struct stat *st)
{
	const u64 *as;
	u8 *p = e->inbuf;
	if (r != 0)
		return;
	if (unlikely((as = known_as(e, st->st_dev, st->st_ino)) != 0)) {
		st->st_dev = (dev_t)as[0];
		st->st_ino = (ino_t)as[1];
	}
	p = put_v(p, st->st_dev);
	p = put_v(p, st->st_ino);
	p = put_v(p, st->st_mode);
	p = put_v(p, st->st_nlink);
	p = put_v(p, st->st_uid);
	p = put_v(p, st->st_gid);
	p = put_v(p, st->st_rdev);
	p = put_v(p, (u64)st->st_size);
	p = put_v(p, (u64)st->st_blksize);
	p = put_v(p, (u64)st->st_blocks);
	p = put_v(p, ns(st->st_atim.tv_sec, st->st_atim.tv_nsec));
	p = put_v(p, ns(st->st_mtim.tv_sec, st->st_mtim.tv_nsec));
	p = put_v(p, ns(st->st_ctim.tv_sec, st->st_ctim.tv_nsec));
	e->inlen = (u32)(p - e->inbuf);
}

void shim_input_statx(struct ev *e, i64 r, struct statx *st)
{
	const u64 *as;
	u8 *p = e->inbuf;
	if (r != 0)
		return;
	if (unlikely((as = known_as(e, makedev(st->stx_dev_major, st->stx_dev_minor), st->stx_ino)) != 0)) {
		st->stx_dev_major = major(as[0]);
		st->stx_dev_minor = minor(as[0]);
		st->stx_ino = as[1];
	}
	p = put_v(p, st->stx_mask);
	p = put_v(p, (u64)st->stx_dev_major << 32 | st->stx_dev_minor);
	p = put_v(p, st->stx_ino);
	p = put_v(p, st->stx_mode);
	p = put_v(p, st->stx_nlink);
	p = put_v(p, st->stx_uid);
	p = put_v(p, st->stx_gid);
	p = put_v(p, (u64)st->stx_rdev_major << 32 | st->stx_rdev_minor);
	p = put_v(p, st->stx_size);
	p = put_v(p, st->stx_blksize);
	p = put_v(p, st->stx_blocks);
	p = put_v(p, st->stx_attributes);
	p = put_v(p, st->stx_attributes_mask);
	p = put_v(p, ns(st->stx_atime.tv_sec, st->stx_atime.tv_nsec));
	p = put_v(p, ns(st->stx_mtime.tv_sec, st->stx_mtime.tv_nsec));
	p = put_v(p, ns(st->stx_ctime.tv_sec, st->stx_ctime.tv_nsec));
	p = put_v(p, ns(st->stx_btime.tv_sec, st->stx_btime.tv_nsec));
	e->inlen = (u32)(p - e->inbuf);
}

void shim_input_statfs(struct ev *e, i64 r, const struct statfs *st)
{
	u8 *p = e->inbuf;
	u64 fsid;
	if (r != 0)
		return;
	__builtin_memcpy(&fsid, &st->f_fsid, sizeof fsid);
	p = put_v(p, (u64)st->f_type);
	p = put_v(p, (u64)st->f_bsize);
	p = put_v(p, st->f_blocks);
	p = put_v(p, st->f_bfree);
	p = put_v(p, st->f_bavail);
	p = put_v(p, st->f_files);
	p = put_v(p, st->f_ffree);
	p = put_v(p, fsid);
	p = put_v(p, (u64)st->f_namelen);
	p = put_v(p, (u64)st->f_frsize);
	p = put_v(p, (u64)st->f_flags);
	e->inlen = (u32)(p - e->inbuf);
}

void shim_input_statvfs(struct ev *e, i64 r, const struct statvfs *st)
{
	u8 *p = e->inbuf;
	if (r != 0)
		return;
	p = put_v(p, st->f_bsize);
	p = put_v(p, st->f_frsize);
	p = put_v(p, st->f_blocks);
	p = put_v(p, st->f_bfree);
	p = put_v(p, st->f_bavail);
	p = put_v(p, st->f_files);
	p = put_v(p, st->f_ffree);
	p = put_v(p, st->f_favail);
	p = put_v(p, st->f_fsid);
	p = put_v(p, st->f_flag);
	p = put_v(p, st->f_namemax);
	e->inlen = (u32)(p - e->inbuf);
}

void shim_input_text(struct ev *e, const void *text, i64 n)
{
	u8 *p;
	if (n < 0 || !text)
		return;
	if (n > INPUT_ROOM - 9) {
		n = INPUT_ROOM - 9;
		e->note |= PROPHET_NoteCut;
	}
	p = put_v(e->inbuf, (u64)n);
	shim_copy(p, text, (size_t)n);
	e->inlen = (u32)(p - e->inbuf) + (u32)n;
}

void shim_input_cstr(struct ev *e, const char *text)
{
	if (text)
		shim_input_text(e, text, (i64)shim_len(text));
}

void shim_input_flock(struct ev *e, const struct flock *l)
{
	u8 *p = e->inbuf;
	p = put_v(p, (u64)l->l_type);
	p = put_v(p, (u64)l->l_whence);
	p = put_z(p, l->l_start);
	p = put_z(p, l->l_len);
	p = put_z(p, l->l_pid);
	e->inlen = (u32)(p - e->inbuf);
}

void shim_input_dirent(struct ev *e, const struct dirent64 *d)
{
	u8 *p = e->inbuf;
	u64 n = shim_len(d->d_name);
	if (n > 255)
		n = 255;
	p = put_v(p, d->d_ino);
	p = put_v(p, (u64)d->d_off);
	p = put_v(p, d->d_type);
	p = put_v(p, n);
	shim_copy(p, d->d_name, n);
	e->inlen = (u32)(p - e->inbuf) + (u32)n;
}
