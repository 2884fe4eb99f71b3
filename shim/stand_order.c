/* Turns of wrappers that take their places by themselves: streams, generators of random numbers, locks of files. */
#include "feed.h"
#include "streams.h"

static u64 away(const void *object, const struct expect *x)
{
	return x->seq - 1 - __atomic_load_n(&((const struct object_entry *)object)->seq, __ATOMIC_ACQUIRE);
}

void shim_re_turn(const struct expect *x, struct object_entry *o)
{
	shim_turn(shim_self.thr, x, x->obj, x->seq, away, o);
}

/* A call that is left has no event. The first place is taken by who names the stream, which it does when it has it. */
void shim_re_stream(const struct expect *x, FILE *fp)
{
	if (x && x->seq > 1)
		shim_re_turn(x, shim_object(shim_self.thr, PROPHET_ObjStdio, fp));
}

/* A failed try fails at once, another waits for its turn. */
static int re_ftrylockfile(FILE *fp)
{
	struct expect *x = shim_re_of(CALL_ftrylockfile);
	if (!x)
		return TRUE(ftrylockfile)(fp);
	if (x->ret)
		return (int)x->ret;
	shim_re_stream(x, fp);
	TRUE(flockfile)(fp);
	return 0;
}
STANDIN(ftrylockfile, re_ftrylockfile)
