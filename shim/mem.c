/* memcpy and its kin, for the library alone. The C library's may be replaced in the program, by AddressSanitizer for
 * one, which then looks at our stack and our rings and finds what it did not lay out itself.
 *
 * The compiler turns loops that copy or fill into calls of these very functions: barrier() keeps it from that.
 */
#include "platform.h"

typedef u64 wide __attribute__((vector_size(16), aligned(1), may_alias));
typedef u64 word __attribute__((aligned(1), may_alias));
typedef u32 half __attribute__((aligned(1), may_alias));

HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t n);
HIDDEN void *memmove(void *to, const void *from, size_t n);
HIDDEN void *memset(void *to, int c, size_t n);
HIDDEN int memcmp(const void *a, const void *b, size_t n);
HIDDEN size_t strlen(const char *s);

/* Everything is loaded before anything is stored, so that the two may overlap. */
static inline void small(u8 *d, const u8 *s, size_t n)
{
	if (n >= 8) {
		u64 a = *(const word *)s, z = *(const word *)(s + n - 8);
		*(word *)d = a;
		*(word *)(d + n - 8) = z;
	} else if (n >= 4) {
		u32 a = *(const half *)s, z = *(const half *)(s + n - 4);
		*(half *)d = a;
		*(half *)(d + n - 4) = z;
	} else if (n) {
		u8 a = s[0], m = s[n / 2], z = s[n - 1];
		d[0] = a;
		d[n / 2] = m;
		d[n - 1] = z;
	}
}

static inline __attribute__((always_inline)) void *move(void *to, const void *from, size_t n)
{
	u8 *d = to;
	const u8 *s = from;
	if (n <= 16) {
		small(d, s, n);
	} else if ((size_t)(d - s) >= n) { /* the end of one does not lie in the other, or d is below s */
		wide last = *(const wide *)(s + n - 16);
		u8 *end = d + n - 16;
		for (; d < end; d += 16, s += 16) {
			wide v = *(const wide *)s;
			barrier();
			*(wide *)d = v;
		}
		*(wide *)end = last;
	} else {
		wide first = *(const wide *)s;
		for (; n > 16; n -= 16) {
			wide v = *(const wide *)(s + n - 16);
			barrier();
			*(wide *)(d + n - 16) = v;
		}
		*(wide *)d = first;
	}
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	return move(to, from, n);
}

/* Not by way of memmove: the compiler would make that a call of memcpy. */
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	return move(to, from, n);
}

void *memset(void *to, int c, size_t n)
{
	u8 *d = to, *end = d + n;
	u64 v = (u8)c * 0x0101010101010101ull;
	wide w = {v, v};
	if (n >= 16) {
		for (; d < end - 16; d += 16) {
			*(wide *)d = w;
			barrier();
		}
		*(wide *)(end - 16) = w;
		return to;
	}
	for (; d < end; d++) {
		*d = (u8)c;
		barrier();
	}
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *p = a, *q = b;
	for (; n; n--, p++, q++)
		if (*p != *q)
			return *p - *q;
	return 0;
}

size_t strlen(const char *s)
{
	const char *e = s;
	while (*e) {
		e++;
		barrier();
	}
	return (size_t)(e - s);
}
