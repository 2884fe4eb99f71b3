/* The stand-in for glob: what is found today becomes what was found then. */
#include "feed.h"
#include <glob.h>

/* The program's own, if it has one: it is also who frees. */
static void *(*const again)(void *, size_t) = realloc;
static void (*const release)(void *) = free;

/* Whether the names from there on are the recorded ones. */
static int same(const u8 *p, const u8 *end, char *const *names, u64 n)
{
	for (; p < end && n; names++, n--) {
		u64 len = shim_get_v(&p, end);
		if (len > (u64)(end - p) || shim_len(*names) != len || __builtin_memcmp(*names, p, len) != 0)
			return 0;
		p += len;
	}
	return p >= end && !n;
}

static int found(const struct expect *x, int flags, glob_t *g, u64 from, int r)
{
	const u8 *p = x->input_len ? x->input : x->data, *end = p + (x->input_len ? x->input_len : p ? x->data_len : 0), *q;
	u64 gap = flags & GLOB_DOOFFS ? g->gl_offs : 0, now = r == 0 && g->gl_pathc > from ? g->gl_pathc - from : 0, n = 0, i;
	char **names, **old = now || from ? g->gl_pathv : 0;
	if (x->note & PROPHET_NoteCut || (r == (int)x->ret && same(p, end, old ? old + gap + from : 0, now)))
		return r;
	for (q = p; q < end; n++) {
		u64 len = shim_get_v(&q, end);
		q += len < (u64)(end - q) ? len : (u64)(end - q);
	}
	for (i = 0; i < now; i++)
		release(old[gap + from + i]);
	names = again(old, (gap + from + n + 1) * sizeof *names);
	if (!names)
		return GLOB_NOSPACE;
	for (i = 0; !old && i < gap; i++)
		names[i] = 0;
	for (i = 0; i < n; i++) {
		u64 len = shim_get_v(&p, end);
		char *c = again(0, len + 1);
		if (!c)
			break;
		shim_copy(c, p, len);
		c[len] = 0;
		p += len;
		names[gap + from + i] = c;
	}
	names[gap + from + i] = 0;
	g->gl_pathv = names;
	g->gl_pathc = from + i;
	return (int)x->ret;
}

#define GLOBS(name, type)                                                                                                \
	static int re_##name(const char *restrict pattern, int flags, int (*error)(const char *, int), type *restrict g) \
	{                                                                                                                \
		struct expect *x = shim_re_of(CALL_##name);                                                              \
		u64 from = flags & GLOB_APPEND ? g->gl_pathc : 0;                                                        \
		int r = TRUE(name)(pattern, flags, error, g);                                                            \
		return x ? found(x, flags, (glob_t *)g, from, r) : r;                                                    \
	}                                                                                                                \
	STANDIN(name, re_##name)
GLOBS(glob, glob_t)
GLOBS(glob64, glob64_t)
