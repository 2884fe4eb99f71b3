/* The start and the end: our constructor, the Go runtime put to sleep, and what runs last in a process.
 *
 * Go's entry in .init_array would start its runtime in every program. This constructor has a priority, so it runs
 * before that entry; it puts a function that does nothing in its place and keeps the original for shim_wake_go, which
 * the Go-backed functions of the C ABI call first. Only constructors with a priority may exist here, so that Go's
 * entry stays the last one.
 */
#include "thread.h"
#include "boot.h"
#include "real.h"
#include "streams.h"
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>

typedef void (*init_fn)(int, char **, char **);

extern ElfW(Dyn) _DYNAMIC[] HIDDEN;
extern const char __ehdr_start[] HIDDEN;

static init_fn go_entry;
static int go_argc;
static char **go_argv, **go_envp;

static void nothing(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	(void)envp;
}

static void put_go_to_sleep(int argc, char **argv, char **envp)
{
	const ElfW(Dyn) * d;
	init_fn *entries = 0, *last;
	u64 bytes = 0, page;
	for (d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_INIT_ARRAY)
			entries = (init_fn *)(__ehdr_start + d->d_un.d_ptr);
		else if (d->d_tag == DT_INIT_ARRAYSZ)
			bytes = d->d_un.d_val;
	}
	if (!entries || bytes < 2 * sizeof *entries)
		return;
	last = entries + bytes / sizeof *entries - 1;
	page = (u64)last & ~4095ull;
	if (sys(SYS_mprotect, page, 4096, PROT_READ | PROT_WRITE) != 0)
		return;
	go_entry = *last;
	*last = nothing;
	sys(SYS_mprotect, page, 4096, PROT_READ);
	go_argc = argc;
	go_argv = argv;
	go_envp = envp;
}

int shim_wake_go(void)
{
	static u32 state; /* 0 asleep, 1 waking, 2 awake */
	u32 was = 0;
	u64 mask;
	if (!go_entry || __atomic_load_n(&state, __ATOMIC_ACQUIRE) == 2)
		return 0;
	if (!__atomic_compare_exchange_n(&state, &was, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != 2)
			sys(SYS_sched_yield);
		return 0;
	}
	/* Go's threads take over this thread's mask: with all blocked they get none of the program's signals. */
	shim_block(&mask);
	shim_self.off++;
	go_entry(go_argc, go_argv, go_envp);
	shim_self.off--;
	shim_unblock(&mask);
	__atomic_store_n(&state, 2, __ATOMIC_RELEASE);
	return 0;
}

/* Whether the program's calls reach us: we stand before the C library only when we were preloaded. */
static int preloaded(void)
{
	const struct link_map *m;
	for (m = _r_debug.r_map; m; m = m->l_next) {
		const char *c = m->l_name, *base = c;
		if (m->l_addr == (ElfW(Addr))__ehdr_start)
			return 1;
		for (; *c; c++)
			if (*c == '/')
				base = c + 1;
		if (shim_starts(base, "libc.so."))
			return 0;
	}
	return 0;
}

/* Absolute, as children may be started elsewhere. */
static void our_path(void)
{
	const struct link_map *m;
	struct text t;
	shim_text(&t, shim_run.lib, sizeof shim_run.lib);
	for (m = _r_debug.r_map; m; m = m->l_next)
		if (m->l_addr == (ElfW(Addr))__ehdr_start) {
			if (*m->l_name != '/' && sys(SYS_getcwd, shim_run.lib, sizeof shim_run.lib) > 0) {
				t.len = (u32)shim_len(shim_run.lib);
				shim_put(&t, "/");
			}
			shim_put(&t, m->l_name);
		}
}

/* The last of what exit runs: registered before the dynamic linker's own, so after all destructors. */
static void at_end(int status, void *unused)
{
	(void)unused;
	shim_process_over(PROPHET_ExitNormal, status);
}

__attribute__((constructor(101))) static void boot(int argc, char **argv, char **envp)
{
	int (*on_exit)(void (*)(int, void *), void *);
	put_go_to_sleep(argc, argv, envp);
	shim_scope_fix();
	if (!preloaded() || getauxval(AT_SECURE)) {
		shim_run.state = RUN_OFF;
		return;
	}
	our_path();
	if (shim_run_open(envp, argc, argv) || shim_thread_boot(argc, argv)) {
		shim_run.state = RUN_OFF;
		return;
	}
	shim_stdio_boot(shim_self.thr);
	on_exit = (__typeof__(on_exit))shim_find("on_exit", 0);
	if (on_exit)
		on_exit(at_end, 0);
}
