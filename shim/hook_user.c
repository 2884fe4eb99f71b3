/* prctl by hand, as it takes what its option says. */
#include "sandbox.h"
#include <stdarg.h>
#include <sys/prctl.h>

#define NAME_MOST 15 /* of a thread's name; the kernel reads no more of a longer one */

EXPORT int prctl(int option, ...)
{
	struct ev e;
	va_list ap;
	unsigned long a, b, c, d;
	char name[NAME_MOST + 1];
	int r, on;
	va_start(ap, option);
	a = va_arg(ap, unsigned long);
	b = va_arg(ap, unsigned long);
	c = va_arg(ap, unsigned long);
	d = va_arg(ap, unsigned long);
	va_end(ap);
	shim_sandbox_prctl(option, (long)a, (const void *)b);
	on = shim_begin(&e, CALL_prctl, CLASS_thread, CALLER());
	r = REAL(prctl)(option, a, b, c, d);
	if (on) {
		shim_end(&e, WRAP_ONCE);
		e.ret = shim_ret_errno(r);
		e.f1 = (u64)(u32)option;
		e.f2 = option == PR_SET_NAME || option == PR_GET_NAME ? 0 : a;
		if (r == 0 && (option == PR_SET_NAME || option == PR_GET_NAME)) {
			u32 i;
			for (i = 0; i < NAME_MOST && ((const char *)a)[i]; i++)
				name[i] = ((const char *)a)[i];
			name[i] = 0;
			shim_tail_text(&e, name, PART_STR);
		}
		shim_done(&e);
	}
	return r;
}
