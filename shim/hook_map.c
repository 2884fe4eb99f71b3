/* Mappings. Of a file: disk. Of nothing: memory, which allocators ask for often, so it is kept cheap. */
#include "wrap_all.h"
#include <stdarg.h>

#define MAP(name)                                                                                 \
	EXPORT void *name(void *addr, size_t n, int prot, int flags, int fd, off_t off)           \
	{                                                                                         \
		struct ev e;                                                                      \
		int file = fd >= 0 && !(flags & MAP_ANONYMOUS);                                   \
		int on = shim_begin(&e, CALL_##name, file ? CLASS_disk : CLASS_memory, CALLER()); \
		void *r = REAL(name)(addr, n, prot, flags, fd, off);                              \
		shim_note_mmap(r, n, prot, flags, fd, (u64)off);                                  \
		if (!on)                                                                          \
			return r;                                                                 \
		shim_end(&e, WRAP_ONCE);                                                          \
		e.ret = shim_ret_errno((i64)r);                                                   \
		e.obj = file ? shim_obj_fd(e.t, fd) : 0;                                          \
		e.f1 = n;                                                                         \
		e.f2 = (u64)(u32)prot;                                                            \
		e.f3 = (u64)(u32)flags;                                                           \
		if (file)                                                                         \
			shim_tail_num(&e, (u64)off);                                              \
		shim_done(&e);                                                                    \
		return r;                                                                         \
	}
MAP(mmap)
MAP(mmap64)

EXPORT void *mremap(void *addr, size_t n, size_t newn, int flags, ...)
{
	struct ev e;
	void *r, *to;
	int on;
	va_list ap;
	va_start(ap, flags);
	to = va_arg(ap, void *);
	va_end(ap);
	on = shim_begin(&e, CALL_mremap, CLASS_memory, CALLER());
	r = REAL(mremap)(addr, n, newn, flags, to);
	if (r != MAP_FAILED)
		shim_object_moved(addr, n, r, newn);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno((i64)r);
	e.f1 = (u64)addr;
	e.f2 = n;
	e.f3 = newn;
	shim_tail_num(&e, (u64)(u32)flags);
	shim_done(&e);
	return r;
}

EXPORT int munmap(void *addr, size_t n)
{
	struct ev e;
	int r, on = shim_begin(&e, CALL_munmap, CLASS_memory, CALLER());
	r = REAL(munmap)(addr, n);
	if (r == 0)
		shim_object_unmapped(addr, n);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	e.f1 = (u64)addr;
	e.f2 = n;
	shim_done(&e);
	return r;
}
