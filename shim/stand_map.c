/* Mappings in a re-execution: really made, at the recorded addresses where those are free, so that what a program
 * computes from addresses comes out the same. What the C library maps by itself (threads' stacks, its heaps) comes where the
 * kernel puts it: where that depends on who was first, addresses may differ.
 */
#include "feed.h"
#include <stdarg.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

typedef void *(*mmap_fn)(void *, size_t, int, int, int, off_t);

static void *map(const struct expect *x, mmap_fn real, void *addr, size_t n, int prot, int flags, int fd, off_t off)
{
	void *r;
	if (!x)
		return real(addr, n, prot, flags, fd, off);
	if (x->ret < 0 && x->ret > -4096) {
		errno = (int)-x->ret;
		return MAP_FAILED;
	}
	if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		return real(addr, n, prot, flags, fd, off);
	r = real((void *)x->ret, n, prot, flags | MAP_FIXED_NOREPLACE, fd, off);
	return r == MAP_FAILED ? real(addr, n, prot, flags, fd, off) : r;
}

#define MAP(name)                                                                                                    \
	static void *re_##name(void *addr, size_t n, int prot, int flags, int fd, off_t off)                         \
	{                                                                                                            \
		return map(shim_re_of(CALL_##name), (mmap_fn)shim_true(CALL_##name), addr, n, prot, flags, fd, off); \
	}                                                                                                            \
	STANDIN(name, re_##name)
MAP(mmap)
MAP(mmap64)

/* One that moved goes to where it went when there is room. */
static void *re_mremap(void *addr, size_t n, size_t newn, int flags, ...)
{
	struct expect *x = shim_re_of(CALL_mremap);
	void *to, *r;
	long room;
	va_list ap;
	va_start(ap, flags);
	to = va_arg(ap, void *);
	va_end(ap);
	if (!x || flags & MREMAP_FIXED)
		return TRUE(mremap)(addr, n, newn, flags, to);
	if (x->ret < 0 && x->ret > -4096) {
		errno = (int)-x->ret;
		return MAP_FAILED;
	}
	if (x->ret != (i64)addr && flags & MREMAP_MAYMOVE) {
		room = sys(SYS_mmap, x->ret, newn, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (room == x->ret) {
			r = TRUE(mremap)(addr, n, newn, flags | MREMAP_FIXED, (void *)room);
			if (r != MAP_FAILED)
				return r;
			sys(SYS_munmap, room, newn);
		} else if (!(room < 0 && room > -4096)) {
			sys(SYS_munmap, room, newn);
		}
	}
	return TRUE(mremap)(addr, n, newn, flags, to);
}
STANDIN(mremap, re_mremap)
