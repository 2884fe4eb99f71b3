/* What the cleanup of a wrapper needs when an exception or a cancellation passes it, without libgcc_s among the
 * libraries that we need: every exec would pay for loading it (about 60 us). Whoever unwinds through us has it loaded
 * by then, so both functions are found when they are first called. The export map keeps ours to ourselves. */
#include "real.h"
#include <dlfcn.h>
#include <unwind.h>

static void *unwinder(const char *name)
{
	void *(*open)(const char *, int), *(*sym)(void *, const char *), *lib, *f = shim_find(name, 0);
	if (f) /* loaded when the program started */
		return f;
	open = (__typeof__(open))shim_find("dlopen", 0);
	sym = (__typeof__(sym))shim_find("dlsym", 0);
	lib = open && sym ? open("libgcc_s.so.1", RTLD_LAZY) : 0;
	return lib ? sym(lib, name) : 0;
}

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class class, struct _Unwind_Exception *ex,
					 struct _Unwind_Context *context)
{
	static __typeof__(__gcc_personality_v0) *real;
	if (!real)
		real = (__typeof__(real))unwinder("__gcc_personality_v0");
	return real ? real(version, actions, class, ex, context) : _URC_CONTINUE_UNWIND;
}

void __attribute__((noreturn)) _Unwind_Resume(struct _Unwind_Exception *ex)
{
	static __typeof__(_Unwind_Resume) *real;
	if (!real)
		real = (__typeof__(real))unwinder("_Unwind_Resume");
	if (real)
		real(ex);
	__builtin_trap(); /* it ran our cleanup, so there is an unwinder */
}
