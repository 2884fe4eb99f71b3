/* The few functions of a libc that we may use anywhere. See rules.h, 3. */
#ifndef SHIM_MINLIBC_H
#define SHIM_MINLIBC_H

#include "platform.h"

static inline size_t shim_len(const char *s)
{
	size_t n = 0;
	while (s[n])
		n++;
	return n;
}

static inline int shim_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* Whether s begins with prefix. */
static inline int shim_starts(const char *s, const char *prefix)
{
	while (*prefix)
		if (*s++ != *prefix++)
			return 0;
	return 1;
}

static inline void shim_copy(void *to, const void *from, size_t n)
{
	__builtin_memcpy(to, from, n);
}

static inline void shim_zero(void *to, size_t n)
{
	__builtin_memset(to, 0, n);
}

/* A bounded text that is built piece by piece and always NUL-terminated; cut says that something did not fit. */
struct text {
	char *buf;
	u32 cap, len, cut;
};

HIDDEN void shim_text(struct text *t, char *buf, u32 cap);
HIDDEN void shim_put(struct text *t, const char *s);
HIDDEN void shim_putn(struct text *t, const char *s, size_t n);
HIDDEN void shim_putd(struct text *t, i64 v);
HIDDEN void shim_putx(struct text *t, u64 v, int digits);
HIDDEN void shim_putjson(struct text *t, const char *s); /* quoted and escaped */

/* The kernel's name for a descriptor; and where it leads, cut off at size: the length. */
#define FD_LINK 32
HIDDEN const char *shim_fd_link(char link[FD_LINK], i64 fd);
HIDDEN long shim_fd_path(i64 fd, char *path, u64 size);

HIDDEN u64 shim_parse(const char *s, const char **end);
HIDDEN u64 shim_hash64(const void *p, size_t n, u64 seed); /* XXH64 */

/* The same hash of data that comes in pieces. */
struct hash_state {
	u64 acc[4], total;
	u32 have, pad;
	u8 rest[32];
};
HIDDEN void shim_hash_begin(struct hash_state *h);
HIDDEN void shim_hash_more(struct hash_state *h, const void *p, size_t n);
HIDDEN u64 shim_hash_end(const struct hash_state *h); /* shim_hash64 of the whole, seed 0 */
HIDDEN const char *shim_getenv(char **envp, const char *name);

#endif
