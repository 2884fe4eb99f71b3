/* Stand-ins for calls on names and descriptors whose answer is partly the outside's: random names become the recorded
 * ones, directories have the recorded entries in the recorded order, what asks about terminals is answered from the
 * trace, and copies inside of the kernel are as long as they were.
 */
#include "channel.h"
#include <asm/ioctls.h>
#include <errno.h>
#include <linux/fs.h>
#include <stdarg.h>

/* Random names. The recorded one is put where the template was, and made. */

static int made_as(struct expect *x, char *path, int flags)
{
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	if (!shim_re_path(x, path, shim_len(path))) {
		errno = EINVAL;
		return -1;
	}
	shim_re_fd_turn(x->ret);
	return shim_re_fd(TRUE(open)(path, flags | O_RDWR | O_CREAT | O_EXCL, 0600), x->ret);
}

#define TEMP(name, params, args, flags)                               \
	static int re_##name params                                   \
	{                                                             \
		struct expect *x = shim_re_of(CALL_##name);           \
		return x ? made_as(x, path, flags) : TRUE(name) args; \
	}                                                             \
	STANDIN(name, re_##name)
TEMP(mkstemp, (char *path), (path), 0)
TEMP(mkstemp64, (char *path), (path), 0)
TEMP(mkostemp, (char *path, int flags), (path, flags), flags & ~O_ACCMODE)
TEMP(mkostemp64, (char *path, int flags), (path, flags), flags & ~O_ACCMODE)
TEMP(mkstemps, (char *path, int suffix), (path, suffix), 0)
TEMP(mkstemps64, (char *path, int suffix), (path, suffix), 0)
TEMP(mkostemps, (char *path, int suffix, int flags), (path, suffix, flags), flags & ~O_ACCMODE)
TEMP(mkostemps64, (char *path, int suffix, int flags), (path, suffix, flags), flags & ~O_ACCMODE)

static char *re_mkdtemp(char *path)
{
	struct expect *x = shim_re_of(CALL_mkdtemp);
	if (!x)
		return TRUE(mkdtemp)(path);
	if (x->ret < 0) {
		errno = (int)-x->ret;
		return 0;
	}
	return shim_re_path(x, path, shim_len(path)) && TRUE(mkdir)(path, 0700) == 0 ? path : 0;
}
STANDIN(mkdtemp, re_mkdtemp)

/* Directories. An entry stays good until the next of the same directory is asked for, so each has a place of its own. */

struct place {
	DIR *of; /* NULL: free */
	struct dirent64 entry;
};
#define PLACES ((PAGE - 8) / sizeof(struct place))
#define PAGE 16384
struct places {
	struct places *next;
	struct place place[PLACES];
};
_Static_assert(sizeof(struct places) <= PAGE, "a page of places");
static struct places *places;

static struct place *place_of(DIR *d)
{
	struct places *p;
	u32 i;
	for (p = __atomic_load_n(&places, __ATOMIC_ACQUIRE); p; p = p->next)
		for (i = 0; i < PLACES; i++)
			if (__atomic_load_n(&p->place[i].of, __ATOMIC_ACQUIRE) == d)
				return &p->place[i];
	return 0;
}

static struct place *place_for(DIR *d)
{
	struct place *at = place_of(d);
	while (!at) {
		struct places *more, *first = __atomic_load_n(&places, __ATOMIC_ACQUIRE);
		DIR *none = 0;
		long p;
		if ((at = place_of(0))) {
			if (__atomic_compare_exchange_n(&at->of, &none, d, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return at;
			at = 0;
			continue;
		}
		p = sys(SYS_mmap, shim_apart(PAGE), PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p < 0 && p > -4096)
			return 0;
		more = (struct places *)p;
		do
			more->next = first;
		while (!__atomic_compare_exchange_n(&places, &first, more, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	}
	return at;
}

static struct dirent64 *next_entry(struct expect *x, DIR *d)
{
	struct place *p;
	if (x->ret <= 0) {
		if (x->ret < 0)
			errno = (int)-x->ret;
		return 0;
	}
	p = place_for(d);
	return p && feed_dirent(x, &p->entry) ? &p->entry : 0;
}

#define READDIR(name, type)                                                                               \
	static type *re_##name(DIR *d)                                                                    \
	{                                                                                                 \
		struct expect *x = shim_re_of(CALL_##name);                                               \
		return x ? (type *)next_entry(x, d) : TRUE(name)(d);                                      \
	}                                                                                                 \
	STANDIN(name, re_##name)                                                                          \
	static int re_##name##_r(DIR *d, type *at, type **out)                                            \
	{                                                                                                 \
		struct expect *x = shim_re_of(CALL_##name##_r);                                           \
		if (!x)                                                                                   \
			return ((int (*)(DIR *, type *, type **))shim_true(CALL_##name##_r))(d, at, out); \
		if (x->ret == 0)                                                                          \
			*out = feed_dirent(x, (struct dirent64 *)at) ? at : 0;                            \
		return (int)x->ret;                                                                       \
	}                                                                                                 \
	STANDIN(name##_r, re_##name##_r)
READDIR(readdir, struct dirent)
READDIR(readdir64, struct dirent64)

static int re_closedir(DIR *d)
{
	struct place *p = d ? place_of(d) : 0;
	if (p)
		__atomic_store_n(&p->of, (DIR *)0, __ATOMIC_RELEASE);
	return TRUE(closedir)(d);
}
STANDIN(closedir, re_closedir)

/* Copies inside of the kernel: as much as then. Another file system may copy in smaller steps, or not at all. */

static i64 copied_by_hand(int in, off_t *off, int out, off_t *outoff, u64 n)
{
	u8 buf[1024];
	u64 done = 0;
	while (done < n) {
		u64 m = n - done < sizeof buf ? n - done : sizeof buf;
		long r = off ? sys(SYS_pread64, in, buf, m, *off) : sys(SYS_read, in, buf, m), w = 0, k;
		if (r <= 0)
			break;
		for (; w < r; w += k) {
			k = outoff ? sys(SYS_pwrite64, out, buf + w, r - w, *outoff) : sys(SYS_write, out, buf + w, r - w);
			if (k <= 0)
				return (i64)done + w;
			if (outoff)
				*outoff += k;
		}
		if (off)
			*off += r;
		done += (u64)r;
	}
	return (i64)done;
}

static ssize_t re_copy_file_range(int in, off_t *off, int out, off_t *outoff, size_t n, unsigned flags)
{
	struct expect *x = shim_re_of(CALL_copy_file_range);
	i64 done = 0, r;
	if (!x)
		return TRUE(copy_file_range)(in, off, out, outoff, n, flags);
	while (done < x->ret && (r = sys(SYS_copy_file_range, in, off, out, outoff, (u64)(x->ret - done), flags)) > 0)
		done += r;
	if (done < x->ret)
		done += copied_by_hand(in, off, out, outoff, (u64)(x->ret - done));
	return x->ret <= 0 ? shim_re_ret(x) : done;
}
STANDIN(copy_file_range, re_copy_file_range)

/* Devices and terminals. */

static int is_tty_change(unsigned long request)
{
	return request == TCSETS || request == TCSETSW || request == TCSETSF || request == TIOCSWINSZ || request == TCXONC || request == TCFLSH ||
	       request == TIOCSCTTY || request == TIOCNOTTY || request == TIOCSPGRP || request == TIOCSPTLCK || request == TIOCPKT;
}

static int re_ioctl(int fd, unsigned long request, ...)
{
	struct expect *x = shim_re_of(CALL_ioctl);
	va_list ap;
	unsigned long arg;
	struct stat st;
	off_t from = 0, to = 0;
	int was = errno;
	va_start(ap, request);
	arg = va_arg(ap, unsigned long);
	va_end(ap);
	if (!x)
		return TRUE(ioctl)(fd, request, arg);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	if (request == FICLONE) { /* what shared its blocks there may have to be copied here */
		if (sys(SYS_ioctl, fd, request, arg) != 0 && sys(SYS_fstat, (int)arg, &st) == 0)
			copied_by_hand((int)arg, &from, fd, &to, (u64)st.st_size);
	} else if (x->input_len) {
		feed_text(x, (void *)arg, x->input_len);
	} else if (request == FIOASYNC) {
		; /* its signals come from the trace */
	} else if (request == FIONBIO || request == FIOCLEX || request == FIONCLEX) {
		return TRUE(ioctl)(fd, request, arg);
	} else if (is_tty_change(request)) {
		TRUE(ioctl)(fd, request, arg);
		errno = was;
	} else {
		return TRUE(ioctl)(fd, request, arg);
	}
	return (int)x->ret;
}
STANDIN(ioctl, re_ioctl)

static int changes(int cmd)
{
	return cmd == F_SETFD || cmd == F_ADD_SEALS || cmd == F_GETOWN_EX || (cmd >= F_GET_RW_HINT && cmd <= F_SET_FILE_RW_HINT);
}

static int fcntl_as(struct expect *x, u32 call, int fd, int cmd, unsigned long arg)
{
	int (*real)(int, int, ...) = (__typeof__(real))shim_true(call);
	if (!x)
		return real(fd, cmd, arg);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	if (cmd == F_GETFL)
		return feed_open_flags((u64)x->ret);
	if (cmd == F_GETLK || cmd == F_OFD_GETLK)
		feed_flock(x, (struct flock *)arg);
	else if (cmd == F_SETFL)
		return real(fd, cmd, arg & ~(unsigned long)O_ASYNC); /* its signals come from the trace */
	else if (cmd == F_SETPIPE_SZ && !shim_index->token) /* see shim_channel_room */
		sys(SYS_fcntl, fd, cmd, arg);
	else if (cmd == F_SETLK || cmd == F_SETLKW || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW)
		return shim_re_lock_file(x, fd, cmd, arg);
	else if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
		shim_re_fd_turn(x->ret);
		return shim_re_fd(real(fd, cmd, arg), x->ret);
	} else if (changes(cmd))
		return real(fd, cmd, arg);
	return (int)x->ret;
}

#define FCNTL(name)                                                                  \
	static int re_##name(int fd, int cmd, ...)                                   \
	{                                                                            \
		va_list ap;                                                          \
		unsigned long arg;                                                   \
		va_start(ap, cmd);                                                   \
		arg = va_arg(ap, unsigned long);                                     \
		va_end(ap);                                                          \
		return fcntl_as(shim_re_of(CALL_##name), CALL_##name, fd, cmd, arg); \
	}                                                                            \
	STANDIN(name, re_##name)
FCNTL(fcntl)
FCNTL(fcntl64)
FCNTL(__fcntl)
