/* glob by hand: it calls the program, and what it finds comes behind what it was given. */
#include "wrap_all.h"
#include <glob.h>

/* Each S name. */
static u8 *put_names(u8 *p, u8 *end, const void *what, u64 n)
{
	char *const *names = what;
	for (; n; names++, n--) {
		u64 len = shim_len(*names);
		if ((u64)(end - p) < len + 16)
			return 0;
		p = put_v(p, len);
		shim_copy(p, *names, len);
		p += len;
	}
	return p;
}

static void globbed(struct ev *e, const char *pattern, int flags, const glob_t *g, u64 from, int r)
{
	u64 n = r == 0 && g->gl_pathc > from ? g->gl_pathc - from : 0, most = 64, i;
	char *const *names = n ? g->gl_pathv + (flags & GLOB_DOOFFS ? g->gl_offs : 0) + from : 0;
	e->ret = r;
	e->f1 = (u64)(u32)flags;
	shim_tail_text(e, pattern, PART_PATH);
	for (i = 0; i < n; i++)
		most += shim_len(names[i]) + 16;
	if (n)
		shim_input_list(e, put_names, names, n, most);
	shim_done(e);
}

#define GLOBS(name, type)                                                                                           \
	EXPORT int name(const char *restrict pattern, int flags, int (*error)(const char *, int), type *restrict g) \
	{                                                                                                           \
		struct ev e;                                                                                        \
		u8 room[INPUT_ROOM];                                                                                \
		u64 from;                                                                                           \
		int r;                                                                                              \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER()))                                             \
			return REAL(name)(pattern, flags, error, g);                                                \
		from = flags & GLOB_APPEND ? g->gl_pathc : 0;                                                       \
		shim_pre_nested(&e);                                                                                \
		r = REAL(name)(pattern, flags, error, g);                                                           \
		shim_end(&e, WRAP_BLOCK);                                                                           \
		e.inbuf = room;                                                                                     \
		globbed(&e, pattern, flags, (const glob_t *)g, from, r);                                            \
		return r;                                                                                           \
	}
GLOBS(glob, glob_t)
GLOBS(glob64, glob64_t)
