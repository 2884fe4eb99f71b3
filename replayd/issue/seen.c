/*
 * What a process has seen of files that several write. A program whose processes share a file looks whether others have written
 * there since, and goes on otherwise then (a database drops the pages that it holds): that is a result that a choice depends on,
 * although the call returned the same.
 *
 * Who calls: io.c, after reads and writes at a place of a file.
 * Rules:  versions grow only, and lie where all processes have them; what was seen is the process's own, copied by fork. Both are
 *         tables without chains: a part that found its slot taken counts as never seen, one that shares a version as written.
 *         runtime/demand's looks (looks.go) is the same, of home.
 */
#include <stdatomic.h>

#include "engine.h"

enum { PART = 4096, SPAN = 16, SEEN = 1 << 14 };

static _Atomic u64 seen[SEEN]; /* which part it is, above the version that it had */

static u64 part_of(u32 file, i64 part)
{
	u64 h = ((u64)file + 1) * 0x9e3779b97f4a7c15ull + (u64)part * 0xbf58476d1ce4e5b9ull;
	h ^= h >> 29;
	h *= 0x94d049bb133111ebull;
	return h ^ (h >> 32);
}

static u64 known(u64 h, u32 version)
{
	return ((h | 1ull << 32) & 0xffffffff00000000ull) | version;
}

static i64 parts(i64 at, i64 bytes)
{
	i64 n = (at + bytes - 1) / PART - at / PART + 1;
	return n < SPAN ? n : SPAN;
}

/* seen_wrote notes that the process has written bytes at a place: others have not seen that. */
void seen_wrote(u32 file, i64 at, i64 bytes)
{
	if (at < 0 || bytes <= 0)
		return;
	for (i64 i = 0, n = parts(at, bytes); i < n; i++) {
		u64 h = part_of(file, at / PART + i);
		u32 v = atomic_fetch_add(&run.versions[h % VERSIONS], 1) + 1;
		atomic_store_explicit(&seen[h % SEEN], known(h, v), memory_order_relaxed);
	}
}

/* seen_read tells, as the result of a choice, whether others have written where the process has read, since it looked there last; and
   with versions how often anybody has. */
i64 seen_read(u32 file, i64 at, i64 bytes, bool versions)
{
	i64 moved = 0, version = 0;
	if (at < 0 || bytes <= 0)
		return 0;
	for (i64 i = 0, n = parts(at, bytes); i < n; i++) {
		u64 h = part_of(file, at / PART + i);
		u32 v = atomic_load(&run.versions[h % VERSIONS]);
		u64 now = known(h, v), was = atomic_load_explicit(&seen[h % SEEN], memory_order_relaxed);
		if (was >> 32 == now >> 32 && was != now)
			moved = -PROPHET_ResultMoved;
		version += v;
		atomic_store_explicit(&seen[h % SEEN], now, memory_order_relaxed);
	}
	return versions ? moved - ((version & (i64)PROPHET_VersionMost) << PROPHET_ResultBits) : moved;
}

/* seen_forget is for another program in the process. */
void seen_forget(void)
{
	for (u32 i = 0; i < SEEN; i++)
		atomic_store_explicit(&seen[i], 0, memory_order_relaxed);
}
