/* See minlibc.h. */
#include "minlibc.h"
#include <fcntl.h>

void shim_text(struct text *t, char *buf, u32 cap)
{
	t->buf = buf;
	t->cap = cap;
	t->len = t->cut = 0;
	buf[0] = 0;
}

void shim_putn(struct text *t, const char *s, size_t n)
{
	if (n >= t->cap - t->len) {
		n = t->cap - t->len - 1;
		t->cut = 1;
	}
	shim_copy(t->buf + t->len, s, n);
	t->len += n;
	t->buf[t->len] = 0;
}

void shim_put(struct text *t, const char *s)
{
	shim_putn(t, s, shim_len(s));
}

void shim_putd(struct text *t, i64 v)
{
	char b[24], *p = b + sizeof b;
	u64 u = v < 0 ? 0 - (u64)v : (u64)v;
	do
		*--p = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		*--p = '-';
	shim_putn(t, p, (size_t)(b + sizeof b - p));
}

const char *shim_fd_link(char link[FD_LINK], i64 fd)
{
	struct text t;
	shim_text(&t, link, FD_LINK);
	shim_put(&t, "/proc/self/fd/");
	shim_putd(&t, fd);
	return link;
}

long shim_fd_path(i64 fd, char *path, u64 size)
{
	char link[FD_LINK];
	long r = sys(SYS_readlinkat, AT_FDCWD, shim_fd_link(link, fd), path, size - 1);
	path[r > 0 ? r : 0] = 0;
	return r;
}

void shim_putx(struct text *t, u64 v, int digits)
{
	char b[16];
	int i;
	for (i = digits - 1; i >= 0; i--, v >>= 4)
		b[i] = "0123456789abcdef"[v & 15];
	shim_putn(t, b, (size_t)digits);
}

void shim_putjson(struct text *t, const char *s)
{
	const char *from = s;
	shim_putn(t, "\"", 1);
	for (;; s++) {
		u8 c = (u8)*s;
		if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
			continue;
		shim_putn(t, from, (size_t)(s - from)); /* all that needs nothing at once */
		from = s + 1;
		if (!c)
			break;
		if (c == '"' || c == '\\') {
			shim_putn(t, "\\", 1);
			shim_putn(t, s, 1);
		} else {
			shim_put(t, "\\u00");
			shim_putx(t, c, 2);
		}
	}
	shim_putn(t, "\"", 1);
}

u64 shim_parse(const char *s, const char **end)
{
	u64 v = 0;
	while (*s >= '0' && *s <= '9')
		v = v * 10 + (u64)(*s++ - '0');
	if (end)
		*end = s;
	return v;
}

const char *shim_getenv(char **envp, const char *name)
{
	size_t n = shim_len(name);
	if (!envp)
		return 0;
	for (; *envp; envp++)
		if (shim_starts(*envp, name) && (*envp)[n] == '=')
			return *envp + n + 1;
	return 0;
}

/* XXH64, from its published description. */
#define P1 0x9E3779B185EBCA87ull
#define P2 0xC2B2AE3D27D4EB4Full
#define P3 0x165667B19E3779F9ull
#define P4 0x85EBCA77C2B2AE63ull
#define P5 0x27D4EB2F165667C5ull

static inline u64 rotl(u64 x, int r)
{
	return x << r | x >> (64 - r);
}

static inline u64 load64(const u8 *p)
{
	u64 v;
	__builtin_memcpy(&v, p, 8);
	return v;
}

static inline u64 mix(u64 acc, u64 in)
{
	return rotl(acc + in * P2, 31) * P1;
}

static inline u64 fold(u64 h, u64 v)
{
	return (h ^ mix(0, v)) * P1 + P4;
}

static inline const u8 *stripes(u64 acc[4], const u8 *p, const u8 *last)
{
	u64 a = acc[0], b = acc[1], c = acc[2], d = acc[3];
	for (; p <= last; p += 32) {
		a = mix(a, load64(p));
		b = mix(b, load64(p + 8));
		c = mix(c, load64(p + 16));
		d = mix(d, load64(p + 24));
	}
	acc[0] = a, acc[1] = b, acc[2] = c, acc[3] = d;
	return p;
}

static inline u64 converge(const u64 acc[4])
{
	u64 h = rotl(acc[0], 1) + rotl(acc[1], 7) + rotl(acc[2], 12) + rotl(acc[3], 18);
	return fold(fold(fold(fold(h, acc[0]), acc[1]), acc[2]), acc[3]);
}

/* The last bytes, fewer than 32, and the avalanche. */
static u64 finish(u64 h, const u8 *p, const u8 *end)
{
	for (; end - p >= 8; p += 8)
		h = rotl(h ^ mix(0, load64(p)), 27) * P1 + P4;
	if (end - p >= 4) {
		u32 w;
		__builtin_memcpy(&w, p, 4);
		h = rotl(h ^ (w * P1), 23) * P2 + P3;
		p += 4;
	}
	for (; p < end; p++)
		h = rotl(h ^ (*p * P5), 11) * P1;
	h = (h ^ h >> 33) * P2;
	h = (h ^ h >> 29) * P3;
	return h ^ h >> 32;
}

u64 shim_hash64(const void *data, size_t n, u64 seed)
{
	const u8 *p = data, *end = p + n;
	u64 h = seed + P5;
	if (n >= 32) {
		u64 acc[4] = {seed + P1 + P2, seed + P2, seed, seed - P1};
		p = stripes(acc, p, end - 32);
		h = converge(acc);
	}
	return finish(h + n, p, end);
}

void shim_hash_begin(struct hash_state *h)
{
	h->acc[0] = P1 + P2;
	h->acc[1] = P2;
	h->acc[2] = 0;
	h->acc[3] = 0 - P1;
	h->total = 0;
	h->have = 0;
}

void shim_hash_more(struct hash_state *h, const void *data, size_t n)
{
	const u8 *p = data, *end = p + n;
	h->total += n;
	if (h->have) {
		size_t k = 32 - h->have < n ? 32 - h->have : n;
		shim_copy(h->rest + h->have, p, k);
		h->have += (u32)k;
		p += k;
		if (h->have < 32)
			return;
		stripes(h->acc, h->rest, h->rest);
		h->have = 0;
	}
	if (end - p >= 32)
		p = stripes(h->acc, p, end - 32);
	h->have = (u32)(end - p);
	shim_copy(h->rest, p, h->have);
}

u64 shim_hash_end(const struct hash_state *h)
{
	return finish((h->total >= 32 ? converge(h->acc) : P5) + h->total, h->rest, h->rest + h->have);
}
