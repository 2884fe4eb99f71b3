/* Stand-ins for handles of files. An overlay gives none, and those of another disk would be others: a handle of a
 * re-execution is a number of the process's own, for the name that the file had. Who hands one to another process, which
 * cannot know the number, gets the kernel's answer.
 */
#include "channel.h"
#include "minlibc.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>

#define HANDLES 64
#define HANDLE_TYPE 0x5072

static struct named {
	u64 number; /* 0: free */
	char path[504];
} handles[HANDLES];
static u64 numbers;

static int re_name_to_handle_at(int dirfd, const char *path, struct file_handle *h, int *mount, int flags)
{
	struct expect *x = shim_re_of(CALL_name_to_handle_at);
	struct statx st;
	char link[FD_LINK];
	struct named *n;
	u64 number;
	long fd, r;
	if (!x)
		return TRUE(name_to_handle_at)(dirfd, path, h, mount, flags);
	if (x->ret == -EOVERFLOW)
		h->handle_bytes = sizeof number;
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	if (h->handle_bytes < sizeof number) {
		errno = EOVERFLOW;
		return -1;
	}
	if (flags & AT_EMPTY_PATH && !path[0])
		fd = sys(SYS_openat, AT_FDCWD, shim_fd_link(link, dirfd), O_PATH | O_CLOEXEC, 0);
	else
		fd = sys(SYS_openat, dirfd, path, O_PATH | O_CLOEXEC | (flags & AT_SYMLINK_FOLLOW ? 0 : O_NOFOLLOW), 0);
	if (fd < 0) {
		errno = (int)-fd;
		return -1;
	}
	number = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
	n = &handles[number % HANDLES];
	r = shim_fd_path(fd, n->path, sizeof n->path);
	n->number = r > 0 && r < (long)sizeof n->path - 1 ? number : 0;
	shim_zero(&st, sizeof st);
	sys(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st);
	sys(SYS_close, fd);
	h->handle_bytes = sizeof number;
	h->handle_type = HANDLE_TYPE;
	__builtin_memcpy(h->f_handle, &number, sizeof number);
	*mount = (int)st.stx_mnt_id;
	return 0;
}
STANDIN(name_to_handle_at, re_name_to_handle_at)

static int re_open_by_handle_at(int mount, struct file_handle *h, int flags)
{
	struct expect *x = shim_re_of(CALL_open_by_handle_at);
	const struct named *n;
	u64 number;
	if (!x)
		return TRUE(open_by_handle_at)(mount, h, flags);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	__builtin_memcpy(&number, h->f_handle, sizeof number);
	n = &handles[number % HANDLES];
	if (h->handle_type != HANDLE_TYPE || h->handle_bytes != sizeof number || n->number != number)
		return TRUE(open_by_handle_at)(mount, h, flags);
	shim_re_fd_turn(x->ret);
	return shim_re_fd(TRUE(open)(n->path, flags), x->ret);
}
STANDIN(open_by_handle_at, re_open_by_handle_at)
