/* The Go-backed part of the C ABI: wake Go, then ask it. */
#include "boot.h"
#include "platform.h"
#include "zlayout.h"
#include "_cgo_export.h"

EXPORT const char *prophet_version(void)
{
	static char *text;
	char *was = 0, *now = __atomic_load_n(&text, __ATOMIC_ACQUIRE);
	if (now)
		return now;
	shim_wake_go();
	now = goVersion();
	/* Two threads may ask at once: the text of one of them stays. */
	return __atomic_compare_exchange_n(&text, &was, now, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? now : was;
}
