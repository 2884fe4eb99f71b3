/* The start and the end: our constructor, the Go runtime asleep and woken, and what runs last in a process.
 *
 * Go's entry in .init_array would start its runtime in every program. After the link tools/asleep cuts it off, together
 * with the 4,400 relocations that only Go needs; shim_wake_go, which the Go-backed functions of the C ABI call first,
 * makes up for both.
 */
#include "thread.h"
#include "scrub.h"
#include "boot.h"
#include "real.h"
#include "streams.h"
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>

extern const char __ehdr_start[] HIDDEN;

static int go_argc;
static char **go_argv, **go_envp;

/* Written by tools/asleep: addresses from where we are loaded. */
static const volatile struct asleep {
	char magic[24];
	u64 relocations, count, entry;
} asleep = {"prophet: Go is asleep", 0, 0, 0};

/* What the dynamic linker would have done for Go at load. */
static void relocate_go(void)
{
	const ElfW(Rela) *r = (const void *)(__ehdr_start + asleep.relocations);
	u64 base = (u64)__ehdr_start, i;
	for (i = 0; i < asleep.count; i++)
		*(u64 *)(base + r[i].r_offset) = base + (u64)r[i].r_addend;
}

void shim_wake_go(void)
{
	static u32 state; /* 0 asleep, 1 waking, 2 awake */
	u32 was = 0;
	u64 mask;
	void (*entry)(int, char **, char **) = (__typeof__(entry))(__ehdr_start + asleep.entry);
	if (!asleep.count || __atomic_load_n(&state, __ATOMIC_ACQUIRE) == 2)
		return;
	if (!__atomic_compare_exchange_n(&state, &was, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == 1)
			sys(SYS_sched_yield);
		return;
	}
	/* Go's threads take over this thread's mask: with all blocked they get none of the program's signals. */
	shim_block(&mask);
	relocate_go();
	shim_self.off++;
	entry(go_argc, go_argv, go_envp);
	shim_self.off--;
	shim_unblock(&mask);
	__atomic_store_n(&state, 2, __ATOMIC_RELEASE);
}

/* Whether a path, or one of a list of paths, is of a file of our name. */
static int names_us(const char *s)
{
	static const char name[] = "libprophet.so";
	const char *at;
	for (; s && *s; s++) {
		at = s + sizeof name - 1;
		if (shim_starts(s, name) && (!*at || *at == ':' || *at == ' '))
			return 1;
	}
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

/* Whether the program itself names us among what it needs: then it calls us, which does not mean that it wants to be
 * recorded. */
static int needed(void)
{
	const struct link_map *m = _r_debug.r_map;
	const ElfW(Dyn) * d;
	const char *text = 0;
	for (d = m->l_ld; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			text = (const char *)(d->d_un.d_ptr < m->l_addr ? m->l_addr + d->d_un.d_ptr : d->d_un.d_ptr);
	for (d = m->l_ld; d && text && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && names_us(text + d->d_un.d_val))
			return 1;
	return 0;
}

/* Absolute, as children may be started elsewhere. And whether valgrind's libraries are there. */
static void our_path(void)
{
	static char path[4096];
	const struct link_map *m;
	struct text t;
	for (m = _r_debug.r_map; m; m = m->l_next) {
		const char *c = m->l_name;
		for (; c && *c; c++)
			shim_run.valgrind |= *c == '/' && shim_starts(c, "/vgpreload_");
		if (m->l_addr == (ElfW(Addr))__ehdr_start) {
			shim_run.lib = m->l_name;
			if (*m->l_name == '/' || sys(SYS_getcwd, path, sizeof path) <= 0)
				continue;
			shim_run.lib = path;
			shim_text(&t, path + shim_len(path), sizeof path - (u32)shim_len(path));
			shim_put(&t, "/");
			shim_put(&t, m->l_name);
		}
	}
}

/* The last of what exit runs: registered before the dynamic linker's own, so after all destructors. */
static void at_end(int status, void *unused)
{
	(void)unused;
	shim_process_over(PROPHET_ExitNormal, status);
}

static void start(int argc, char **argv, char **envp)
{
	int (*on_exit)(void (*)(int, void *), void *);
	u64 since = shim_ticks();
	shim_scope_fix();
	our_path();
	if (!preloaded() || getauxval(AT_SECURE) || (needed() && !names_us(shim_getenv(envp, "LD_PRELOAD")))) {
		shim_run.state = RUN_OFF;
		return;
	}
	if (shim_run_open(envp, argc, argv) || shim_thread_boot(argc, argv)) {
		shim_run.state = RUN_OFF;
		return;
	}
	shim_stdio_boot(shim_self.thr);
	on_exit = (__typeof__(on_exit))shim_find("on_exit", 0);
	if (on_exit)
		on_exit(at_end, 0);
	if (shim_self.thr)
		shim_ours_record(shim_self.thr, shim_ticks() - since);
}

/* Constructors of libraries run before ours, and what they ask may be kept for long: an allocator's clock, the seed of a
 * table. So the first call that reaches us begins the run, once all objects are relocated. What ld.so gives constructors
 * lies on the stack where the kernel put it. */
void shim_boot_early(void)
{
	static u32 tried;
	const struct r_debug *d = &_r_debug;
	u64 **end;
	u64 *sp;
	__asm__("" : "+r"(d)); /* see real.c */
	if (!d || d->r_state != RT_CONSISTENT || tried || sys(SYS_gettid) != sys(SYS_getpid))
		return;
	tried = 1; /* also while it is at work */
	end = shim_find("__libc_stack_end", 0);
	sp = end ? *end : 0;
	if (sp && *sp < 1u << 31 && !sp[1 + *sp])
		start((int)*sp, (char **)(sp + 1), (char **)(sp + 2 + *sp));
}

__attribute__((constructor(101))) static void boot(int argc, char **argv, char **envp)
{
	go_argc = argc;
	barrier(); /* a page that is read first is touched twice */
	go_argv = argv;
	go_envp = envp;
	if (shim_run.state == RUN_NONE)
		start(argc, argv, envp);
	if (shim_run.state == RUN_ON && shim_ctl.serial)
		shim_scrub_guard();
}
