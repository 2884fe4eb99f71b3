/* Reading directories. The C library asks the kernel by itself, a buffer at a time; what is recorded is each entry
 * that the program takes. In /proc/self/fd the recorder's own descriptors are passed over.
 */
#include "wrap_all.h"
#include <errno.h>
#include <linux/magic.h>

int shim_dir_fd(DIR *d)
{
	static int (*real)(DIR *);
	__asm__("" : "+r"(d)); /* closedir(NULL) is an error, not the impossibility that its header states */
	if (unlikely(!real))
		real = (__typeof__(real))shim_find("dirfd", 0);
	return real && d ? real(d) : -1;
}

/* Whether an entry of the directory at dirfd (or at path in it) is a descriptor of ours. Asks the kernel only for names
 * that are numbers of ours. */
static int ours(int dirfd, const char *path, const char *name)
{
	char a[256], b[256], at[FD_LINK];
	struct statfs fs;
	const char *end;
	u64 n;
	long la, lb, d = dirfd;
	int yes = 0;
	if (*name < '1' || *name > '9')
		return 0;
	n = shim_parse(name, &end);
	if (*end || n > 0x7fffffff || !shim_fd_ours((int)n))
		return 0;
	if (path && (d = sys(SYS_openat, dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0)) < 0)
		return 0;
	if (sys(SYS_fstatfs, d, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC) {
		la = sys(SYS_readlinkat, d, name, a, sizeof a);
		lb = sys(SYS_readlinkat, AT_FDCWD, shim_fd_link(at, (i64)n), b, sizeof b);
		if (la > 0) {
			yes = la == lb && !__builtin_memcmp(a, b, (size_t)la);
		} else { /* fdinfo holds files */
			lb = sys(SYS_readlinkat, AT_FDCWD, shim_fd_link(at, d), b, sizeof b);
			yes = la == -EINVAL && lb > 7 && !__builtin_memcmp(b + lb - 7, "/fdinfo", 7);
		}
	}
	if (path)
		sys(SYS_close, d);
	return yes;
}

#define READDIR(name, type)                                                                  \
	static type *name##_next(DIR *d)                                                     \
	{                                                                                    \
		type *r;                                                                     \
		do                                                                           \
			r = REAL(name)(d);                                                   \
		while (r && unlikely(ours(shim_dir_fd(d), 0, r->d_name)));                   \
		return r;                                                                    \
	}                                                                                    \
	EXPORT type *name(DIR *d)                                                            \
	{                                                                                    \
		u8 room[INPUT_ROOM];                                                         \
		struct ev e;                                                                 \
		type *r;                                                                     \
		int was = errno;                                                             \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER()))                      \
			return name##_next(d);                                               \
		e.inbuf = room;                                                              \
		r = name##_next(d);                                                          \
		shim_end(&e, WRAP_BLOCK);                                                    \
		e.ret = r ? 1 : errno != was ? -(i64)errno : 0; /* at the end errno stays */ \
		e.obj = shim_obj_fd(e.t, shim_dir_fd(d));                                    \
		if (r)                                                                       \
			shim_input_dirent(&e, (const struct dirent64 *)r);                   \
		shim_done(&e);                                                               \
		return r;                                                                    \
	}
READDIR(readdir, struct dirent)
READDIR(readdir64, struct dirent64)
_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one struct dirent");

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define READDIR_R(name, type)                                                                \
	static int name##_next(DIR *d, type *at, type **out)                                 \
	{                                                                                    \
		int r;                                                                       \
		do                                                                           \
			r = REAL(name)(d, at, out);                                          \
		while (r == 0 && *out && unlikely(ours(shim_dir_fd(d), 0, (*out)->d_name))); \
		return r;                                                                    \
	}                                                                                    \
	EXPORT int name(DIR *d, type *at, type **out)                                        \
	{                                                                                    \
		u8 room[INPUT_ROOM];                                                         \
		struct ev e;                                                                 \
		int r;                                                                       \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER()))                      \
			return name##_next(d, at, out);                                      \
		e.inbuf = room;                                                              \
		r = name##_next(d, at, out);                                                 \
		shim_end(&e, WRAP_BLOCK);                                                    \
		e.ret = r;                                                                   \
		e.obj = shim_obj_fd(e.t, shim_dir_fd(d));                                    \
		if (r == 0 && *out)                                                          \
			shim_input_dirent(&e, (const struct dirent64 *)*out);                \
		shim_done(&e);                                                               \
		return r;                                                                    \
	}
READDIR_R(readdir_r, struct dirent)
READDIR_R(readdir64_r, struct dirent64)
#pragma GCC diagnostic pop

EXPORT int closedir(DIR *d)
{
	struct ev e;
	int r, fd = shim_dir_fd(d);
	if (!shim_begin(&e, CALL_closedir, CLASS_disk, CALLER())) {
		shim_fd_gone(fd);
		return REAL(closedir)(d);
	}
	shim_pre_nested(&e);
	e.obj = shim_fd_known(fd);
	shim_fd_gone(fd);
	r = REAL(closedir)(d);
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(r);
	shim_done(&e);
	return r;
}

/* Takes our own out of what scandir found. */
static int without_ours(int dirfd, const char *path, struct dirent64 **list, int n)
{
	static void (*release)(void *);
	int i, k = 0;
	if (n > 0 && !release)
		release = (__typeof__(release))shim_find("free", 0);
	for (i = 0; i < n; i++) {
		if (unlikely(ours(dirfd, path, list[i]->d_name)) && release)
			release(list[i]);
		else
			list[k++] = list[i];
	}
	return k;
}

#define SCANDIR(name, type, args, call, dir)                                                      \
	EXPORT int name args                                                                      \
	{                                                                                         \
		struct ev e;                                                                      \
		int r;                                                                            \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER())) {                         \
			r = REAL(name) call;                                                      \
			return without_ours(dir, path, r > 0 ? (struct dirent64 **)*list : 0, r); \
		}                                                                                 \
		shim_pre_nested(&e);                                                              \
		r = REAL(name) call;                                                              \
		if (r > 0)                                                                        \
			r = without_ours(dir, path, (struct dirent64 **)*list, r);                \
		shim_end(&e, WRAP_BLOCK);                                                         \
		e.ret = shim_ret_errno(r);                                                        \
		e.obj = shim_obj_dirfd(e.t, dir);                                                 \
		shim_tail_text(&e, path, PART_PATH);                                              \
		shim_done(&e);                                                                    \
		return r;                                                                         \
	}
#define FILTERS(type) type ***list, int (*filter)(const type *), int (*compare)(const type **, const type **)
SCANDIR(scandir, struct dirent, (const char *path, FILTERS(struct dirent)), (path, list, filter, compare), AT_FDCWD)
SCANDIR(scandir64, struct dirent64, (const char *path, FILTERS(struct dirent64)), (path, list, filter, compare), AT_FDCWD)
SCANDIR(scandirat, struct dirent, (int dirfd, const char *path, FILTERS(struct dirent)), (dirfd, path, list, filter, compare), dirfd)
SCANDIR(scandirat64, struct dirent64, (int dirfd, const char *path, FILTERS(struct dirent64)), (dirfd, path, list, filter, compare), dirfd)

/* Closes the gaps where our own entries were. */
static ssize_t compact(int fd, u8 *buf, ssize_t n)
{
	ssize_t from = 0, to = 0;
	while (from < n) {
		const struct dirent64 *d = (const void *)(buf + from);
		u32 len = d->d_reclen;
		if (!len)
			break;
		if (!ours(fd, 0, d->d_name)) {
			if (from != to)
				__builtin_memmove(buf + to, buf + from, len);
			to += len;
		}
		from += len;
	}
	return to;
}

static ssize_t entries(int fd, void *buf, size_t n)
{
	ssize_t r, k;
	do {
		r = REAL(getdents64)(fd, buf, n);
		k = r > 0 ? compact(fd, buf, r) : r;
	} while (r > 0 && k == 0); /* nothing but our own: not the end yet */
	return k;
}

EXPORT ssize_t getdents64(int fd, void *buf, size_t n)
{
	struct ev e;
	ssize_t r;
	if (!shim_begin(&e, CALL_getdents64, CLASS_disk, CALLER()))
		return entries(fd, buf, n);
	r = entries(fd, buf, n);
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(r);
	e.obj = shim_obj_fd(e.t, fd);
	e.f1 = n;
	shim_data(&e, fd, buf, r);
	shim_done(&e);
	return r;
}
