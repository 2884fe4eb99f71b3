/* Marks: what the program itself says (cabi/prophet.h). */
#include "wrap.h"

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
