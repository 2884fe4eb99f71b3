/* Marks, and the level of the run: what the program itself says (cabi/prophet.h). */
#include "wrap.h"
#include "prophet.h"
#undef prophet_abi
#undef prophet_mark
#undef prophet_begin
#undef prophet_end
#undef prophet_recording
#undef prophet_start
#undef prophet_stop

static void mark(u32 kind, const char *name)
{
	struct thr *t = shim_ready(CLASS_mark);
	u8 b[320], *p;
	u64 n;
	if (!t)
		return;
	n = name ? shim_len(name) : 0;
	if (n > 255)
		n = 255;
	p = put_v(b, kind);
	p = put_v(p, n);
	shim_copy(p, name ? name : "", n);
	shim_record_at(t, PROPHET_TagMark, b, (u32)(p - b) + (u32)n);
}

EXPORT void prophet_mark(const char *name)
{
	mark(PROPHET_MarkPoint, name);
}

EXPORT void prophet_begin(const char *name)
{
	mark(PROPHET_MarkBegin, name);
}

EXPORT void prophet_end(const char *name)
{
	mark(PROPHET_MarkEnd, name);
}

EXPORT int prophet_recording(void)
{
	return shim_ready(CLASS_mark) != 0;
}

EXPORT int prophet_abi(void)
{
	return PROPHET_ABI;
}

EXPORT const char *prophet_release(void)
{
	return PROPHET_Version;
}

/* A record of the run, in a chunk of its own as `prophet level` writes it. */
static void say_level(u32 level)
{
	struct {
		struct chunk c;
		u8 b[32];
	} out;
	u64 now = shim_ticks(), mask;
	u8 *p;
	shim_zero(&out, sizeof out);
	p = put_v(out.b, PROPHET_TagLevel);
	p = put_v(p, now);
	p = put_v(p, level);
	out.c.magic = PROPHET_ChunkMagic;
	out.c.kind = PROPHET_ChunkControl;
	out.c.len = (u32)(p - out.b);
	out.c.seq = out.c.base = now;
	out.c.version = PROPHET_FormatVersion;
	out.c.sum = shim_hash64(out.b, out.c.len, 0);
	out.c.headsum = shim_hash64(&out.c, 56, 0);
	shim_block(&mask);
	shim_stream_write(&out, PROPHET_ChunkHeader + out.c.len);
	shim_unblock(&mask);
}

/* As runtime/shm has it: nothing is fast that has to look for more than a recording does. */
static u32 fast(u32 level)
{
	if (shim_ctl.serial || shim_ctl.chaos || shim_ctl.delayed || *shim_ctl.index || __atomic_load_n(&shim_ctl.pause, __ATOMIC_ACQUIRE) & 1)
		return 0;
	return __atomic_load_n(&shim_ctl.clocks[PROPHET_ClockMonotonic].offset, __ATOMIC_RELAXED) ? level & ~(1u << CLASS_time) : level;
}

static int set_level(u32 level)
{
	u32 was;
	if (shim_run.state != RUN_ON || shim_ctl.ended)
		return -ENOTSUP;
	was = __atomic_exchange_n(&shim_ctl.level, level, __ATOMIC_ACQ_REL);
	shim_ctl.fast = fast(level);
	if (was == level)
		return 0;
	if (!*shim_ctl.index)
		say_level(level);
	return 1;
}

EXPORT int prophet_start(void)
{
	return set_level(PROPHET_LevelFull);
}

EXPORT int prophet_stop(void)
{
	return set_level(PROPHET_LevelOff);
}

/* One text, so that there is no table of pointers for an exec to relocate. */
EXPORT const char *prophet_reason(int error)
{
	switch (error) {
	case 0:
		return "no error";
	case -EINVAL:
		return "an argument is NULL, or not what it has to be";
	case -ENOENT:
		return "there is no such file";
	case -EACCES:
	case -EPERM:
		return "not allowed";
	case -ENOMEM:
		return "no memory";
	case -EBADMSG:
		return "damaged; the next call goes on behind it";
	case -ENOTSUP:
		return "this process is not being recorded: start it with `prophet record` or LD_PRELOAD";
	case -ENOSYS:
		return "libprophet.so is not loaded, or it or the kernel is too old";
	case -ESRCH:
		return "there is no such thread or process";
	case -ECHILD:
		return "this process's children are waited for by somebody else";
	case -ENAMETOOLONG:
		return "too long a path";
	case -ENOTDIR:
		return "a part of the path is no directory";
	case -EMFILE:
	case -ENFILE:
		return "too many open files";
	case -ETIMEDOUT:
		return "no answer in time";
	case -EPIPE:
		return "replayd has ended";
	case -EPROTO:
		return "replayd refused";
	case -EMSGSIZE:
		return "too long";
	case -EIO:
		return "input/output error";
	default:
		return "failed; see the errno";
	}
}
