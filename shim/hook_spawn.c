/* posix_spawn, system and popen: new programs whose exec happens inside the C library.
 *
 * posix_spawn takes an environment, which is repaired as for exec. system and popen take the program's `environ`:
 * system is done here over posix_spawn, as it is short and POSIX says all that it does. popen belongs to stdio, and
 * fclose ends its streams too, so it stays the C library's; `environ` points to a repaired copy for as long as it
 * runs. The copy is never freed nor on a stack, so another thread's getenv may walk it; where anything changed it or
 * `environ` meanwhile, that stays, and nothing is lost.
 */
#undef __EXCEPTIONS
#include "family.h"
#include "hook_exec.h"
#include "steps_proc.h"
#include <fcntl.h>
#include <paths.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

extern char **environ;

typedef int (*spawn_fn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, char *const *);

static NOINLINE int spawn(spawn_fn real, u32 call, void *pc, int search, pid_t *pid, const char *path, const posix_spawn_file_actions_t *acts,
			  const posix_spawnattr_t *attr, char *const *argv, char *const *envp)
{
	struct env_plan plan;
	struct target g;
	struct ev e;
	pid_t mine = 0;
	char **env;
	int on, r, said = errno;
	if (shim_run.state != RUN_ON || shim_self.off)
		return real(pid, path, acts, attr, argv, envp);
	shim_target(&g, AT_FDCWD, path, search, -1);
	on = shim_begin(&e, call, CLASS_thread, pc);
	shim_child_next();
	shim_env_plan(&plan, envp, g.lib, ~0u);
	env = SHIM_ENV(&plan, shim_self.thr, 0);
	errno = said;
	r = real(&mine, path, acts, attr, argv, env);
	if (r == E2BIG && env != (char **)envp)
		r = real(&mine, path, acts, attr, argv, envp);
	said = errno;
	SHIM_ENV_BACK(&plan, shim_self.thr, env);
	if (r == 0 && pid)
		*pid = mine;
	if (r != 0)
		shim_self.nfork--;
	if (on) {
		shim_end(&e, WRAP_BLOCK);
		e.ret = r;
		e.f1 = (u64)(u32)mine;
		shim_tail_text(&e, path, PART_PATH);
		shim_done(&e);
		if (r == 0)
			shim_fork_record(e.t, shim_self.nfork, (u64)(u32)mine, PROPHET_ProcExeced);
		shim_unseen(e.t, &g, path);
	}
	errno = said;
	return r;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *acts, const posix_spawnattr_t *attr, char *const argv[],
		       char *const envp[])
{
	return spawn(REAL(posix_spawn), CALL_posix_spawn, CALLER(), 0, pid, path, acts, attr, argv, envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *acts, const posix_spawnattr_t *attr, char *const argv[],
			char *const envp[])
{
	return spawn(REAL(posix_spawnp), CALL_posix_spawnp, CALLER(), 1, pid, path, acts, attr, argv, envp);
}

/* system. The first of several at once in a process ignores SIGINT and SIGQUIT, the last one restores them. */
static u32 waiting;
static struct sigaction was_int, was_quit;

struct command {
	pid_t pid;
	int reaped;
};

static void restore(void)
{
	shim_lock(&shim_wiped->system);
	if (--waiting == 0) {
		REAL(sigaction)(SIGINT, &was_int, 0);
		REAL(sigaction)(SIGQUIT, &was_quit, 0);
	}
	shim_unlock(&shim_wiped->system);
}

static void cancelled(void *p)
{
	struct command *c = p;
	if (unlikely(shim_replays))
		shim_family_await(shim_self.thr, (u32)c->pid);
	sys(SYS_kill, c->pid, SIGKILL);
	while (sys(SYS_wait4, c->pid, 0, 0, 0) == -EINTR)
		;
	restore();
}

static NOINLINE int run(const char *line, char *const *env, pid_t *pid)
{
	struct sigaction ignore;
	posix_spawnattr_t attr;
	sigset_t mask, reset;
	struct command c = {0, 0};
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)line, 0};
	int status = -1, r;
	shim_zero(&ignore, sizeof ignore);
	ignore.sa_handler = SIG_IGN;
	sigemptyset(&reset);
	shim_lock(&shim_wiped->system);
	if (waiting++ == 0) {
		REAL(sigaction)(SIGINT, &ignore, &was_int);
		REAL(sigaction)(SIGQUIT, &ignore, &was_quit);
	}
	if (was_int.sa_handler != SIG_IGN)
		sigaddset(&reset, SIGINT);
	if (was_quit.sa_handler != SIG_IGN)
		sigaddset(&reset, SIGQUIT);
	shim_unlock(&shim_wiped->system);
	sigaddset(&ignore.sa_mask, SIGCHLD);
	REAL(sigprocmask)(SIG_BLOCK, &ignore.sa_mask, &mask);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &mask);
	posix_spawnattr_setsigdefault(&attr, &reset);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	r = REAL(posix_spawn)(&c.pid, _PATH_BSHELL, 0, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	if (r == 0) {
		pid_t w;
		*pid = c.pid;
		if (unlikely(shim_replays))
			shim_re_signals(shim_self.thr, CALL_system);
		pthread_cleanup_push(cancelled, &c);
		do
			w = REAL(waitpid)(c.pid, &status, 0);
		while (w == -1 && errno == EINTR);
		if (w != c.pid)
			status = -1;
		pthread_cleanup_pop(0);
	} else {
		status = 127 << 8;
	}
	restore();
	REAL(sigprocmask)(SIG_SETMASK, &mask, 0);
	if (r != 0)
		errno = r;
	return status;
}

EXPORT int system(const char *line)
{
	struct env_plan plan;
	struct target g = {0, 1, 0, 0};
	struct ev e;
	pid_t pid = 0;
	char **env;
	i64 was = 0;
	int on, r, said = errno, wanted = 0;
	if (shim_run.state != RUN_ON || shim_self.off)
		return REAL(system)(line);
	on = shim_begin(&e, CALL_system, CLASS_thread, CALLER());
	shim_child_next();
	shim_target(&g, AT_FDCWD, _PATH_BSHELL, 0, -1);
	shim_env_plan(&plan, environ, g.lib, ~0u);
	env = SHIM_ENV(&plan, shim_self.thr, 0);
	if (unlikely(shim_replays) && on && e.x) {
		was = (i64)e.x->f1;
		wanted = shim_family_want(was);
	}
	errno = said;
	r = run(line ? line : "exit 0", env, &pid);
	said = errno;
	if (unlikely(shim_replays) && on)
		pid = (pid_t)shim_family_born(wanted, was, pid);
	SHIM_ENV_BACK(&plan, shim_self.thr, env);
	if (!pid)
		shim_self.nfork--;
	if (!line)
		r = r == 0;
	if (on) {
		shim_end(&e, WRAP_BLOCK);
		e.ret = r;
		e.f1 = (u64)(u32)pid;
		if (line)
			shim_tail_bytes(&e, line, shim_len(line), PART_STR);
		shim_done(&e);
		if (pid)
			shim_fork_record(e.t, shim_self.nfork, (u64)(u32)pid, PROPHET_ProcExeced);
	}
	errno = said;
	return r;
}

/* popen's environment. */
static struct {
	u32 busy;
	u64 bytes;
	void *room;
} lent;

static char **lend(char **was)
{
	struct env_plan plan;
	char **env;
	shim_env_plan(&plan, was, 1, ~0u);
	if (!plan.bytes || __atomic_exchange_n(&lent.busy, 1, __ATOMIC_ACQUIRE))
		return 0; /* the child does without; its parent is then not named */
	if (plan.bytes > lent.bytes) {
		long p;
		lent.bytes = (plan.bytes * 2 + 4095) & ~4095ull;
		p = sys(SYS_mmap, 0, lent.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		lent.room = p < 0 && p > -4096 ? 0 : (void *)p;
		if (!lent.room)
			lent.bytes = 0;
	}
	env = lent.room ? shim_env_make(&plan, lent.room) : 0;
	if (env)
		__atomic_store_n(&environ, env, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&lent.busy, 0, __ATOMIC_RELEASE);
	return env;
}

static u64 sum(char **env)
{
	u64 n = 0;
	while (env[n])
		n++;
	return shim_hash64(env, n * sizeof *env, n);
}

static NOINLINE FILE *open_pipe(FILE *(*real)(const char *, const char *), u32 call, void *pc, const char *line, const char *mode)
{
	struct ev e;
	char **was = environ, **env;
	u64 before = 0;
	FILE *f;
	int on, said = errno;
	if (shim_run.state != RUN_ON || shim_self.off)
		return real(line, mode);
	on = shim_begin(&e, call, CLASS_thread, pc);
	shim_child_next();
	env = lend(was);
	if (env)
		before = sum(env);
	errno = said;
	f = real(line, mode);
	said = errno;
	if (env) {
		if (environ == env && sum(env) == before)
			environ = was;
		else
			lent.room = 0, lent.bytes = 0; /* it is the program's now */
		__atomic_store_n(&lent.busy, 0, __ATOMIC_RELEASE);
	}
	if (!f)
		shim_self.nfork--;
	if (on) {
		errno = said;
		shim_end(&e, WRAP_BLOCK);
		e.ret = shim_ret_ptr(f);
		e.f1 = f ? (u64)(u32)f->_fileno : 0;
		if (f)
			shim_tail_bytes(&e, line, shim_len(line), PART_STR);
		shim_done(&e);
		if (f)
			shim_fork_record(e.t, shim_self.nfork, 0, PROPHET_ProcExeced);
	}
	if (f)
		shim_fd_gone(f->_fileno); /* another file than the one we knew under this number */
	errno = said;
	return f;
}

EXPORT FILE *popen(const char *line, const char *mode)
{
	return open_pipe(REAL(popen), CALL_popen, CALLER(), line, mode);
}

EXPORT FILE *_IO_popen(const char *line, const char *mode)
{
	return open_pipe(REAL(_IO_popen), CALL__IO_popen, CALLER(), line, mode);
}
