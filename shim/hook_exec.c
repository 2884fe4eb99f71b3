/* exec: this process becomes another program. The event is written before, since nothing returns; one that fails is
 * written again with its error. The rings go out, and the slot is handed on to the new program (PROPHET_RUN); in a
 * vforked child the parent's state stays as it is. Shells try each directory of PATH by an exec: where there is no such file
 * the rings stay.
 */
#include "hook_exec.h"
#include "replay.h"
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

extern char **environ;

enum how { BY_PATH, BY_NAME, BY_FD, BY_DIR };

struct exec {
	u32 call, how;
	void *pc;
	int dir, flags;
	const char *path;
	char *const *argv;
};

static int really(const struct exec *x, char *const *env)
{
	switch (x->how) {
	case BY_PATH:
		return REAL(execve)(x->path, x->argv, env);
	case BY_NAME:
		return REAL(execvpe)(x->path, x->argv, env);
	case BY_FD:
		return REAL(fexecve)(x->dir, x->argv, env);
	default:
		return REAL(execveat)(x->dir, x->path, x->argv, env, x->flags);
	}
}

static int written(const struct exec *x, i64 ret, const struct target *g)
{
	struct ev e;
	if (!shim_begin(&e, x->call, CLASS_thread, x->pc))
		return 0;
	shim_end(&e, WRAP_ONCE);
	e.ret = ret;
	e.f1 = x->how == BY_FD || x->how == BY_DIR ? (u64)(i64)x->dir : 0;
	e.f2 = (u64)(u32)x->flags;
	if (x->path) {
		if (!ret && !shim_readable(x->path, 1))
			e.ret = -EFAULT; /* as the kernel will say */
		shim_tail_text(&e, e.ret == -EFAULT ? 0 : x->path, PART_PATH);
	}
	shim_done(&e);
	if (g)
		shim_unseen(e.t, g, e.ret == -EFAULT ? 0 : x->path);
	return 1;
}

static NOINLINE int become(const struct exec *x, char *const *envp)
{
	struct env_plan plan;
	struct target g;
	struct thr *t;
	char **env;
	int vforked, r, err, said = errno;
	if (shim_run.state != RUN_ON || shim_self.off)
		return really(x, envp);
	shim_target(&g, x->how == BY_DIR ? x->dir : AT_FDCWD, x->path, x->how == BY_NAME, x->how == BY_FD ? x->dir : -1);
	written(x, 0, &g);
	t = shim_self.thr;
	vforked = t && t->begun && shim_in_vfork(t);
	if (!vforked) {
		shim_child_next();
		if (!g.absent || shim_replays)
			shim_exit_flush(PROPHET_ExitExec, 0);
	}
	shim_env_plan(&plan, envp, g.lib, !vforked && t && t->begun && t->flags & THR_SHARED_SLOT ? t->index : ~0u);
	env = SHIM_ENV(&plan, t, vforked);
	errno = said;
	r = unlikely(shim_replays) ? shim_re_exec(t, x->call) : 0;
	r = r ? r : really(x, env);
	if (errno == E2BIG && env != (char **)envp)
		r = really(x, envp); /* what we add was too much */
	err = errno;
	SHIM_ENV_BACK(&plan, t, env);
	if (!vforked)
		shim_self.nfork--;
	written(x, -err, 0);
	errno = err;
	return r;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	struct exec x = {CALL_execve, BY_PATH, CALLER(), 0, 0, path, argv};
	return become(&x, envp);
}

EXPORT int execv(const char *path, char *const argv[])
{
	struct exec x = {CALL_execv, BY_PATH, CALLER(), 0, 0, path, argv};
	return become(&x, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	struct exec x = {CALL_execvp, BY_NAME, CALLER(), 0, 0, file, argv};
	return become(&x, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	struct exec x = {CALL_execvpe, BY_NAME, CALLER(), 0, 0, file, argv};
	return become(&x, envp);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	struct exec x = {CALL_fexecve, BY_FD, CALLER(), fd, 0, 0, argv};
	return become(&x, envp);
}

EXPORT int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	struct exec x = {CALL_execveat, BY_DIR, CALLER(), dir, flags, path, argv};
	return become(&x, envp);
}

/* The arguments after the first, as an array on the caller's stack; ap is then at what follows the NULL. */
#define ARGUMENTS(argv, first, ap)                                    \
	do {                                                          \
		va_list count_;                                       \
		u64 n_ = 1, i_;                                       \
		va_copy(count_, ap);                                  \
		while (va_arg(count_, char *))                        \
			n_++;                                         \
		va_end(count_);                                       \
		(argv) = __builtin_alloca((n_ + 1) * sizeof *(argv)); \
		(argv)[0] = (char *)(first);                          \
		for (i_ = 1; i_ <= n_; i_++)                          \
			(argv)[i_] = va_arg(ap, char *);              \
	} while (0)

EXPORT int execl(const char *path, const char *arg, ...)
{
	struct exec x = {CALL_execl, BY_PATH, CALLER(), 0, 0, path, 0};
	char **argv;
	va_list ap;
	va_start(ap, arg);
	ARGUMENTS(argv, arg, ap);
	va_end(ap);
	x.argv = argv;
	return become(&x, environ);
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
	struct exec x = {CALL_execlp, BY_NAME, CALLER(), 0, 0, file, 0};
	char **argv;
	va_list ap;
	va_start(ap, arg);
	ARGUMENTS(argv, arg, ap);
	va_end(ap);
	x.argv = argv;
	return become(&x, environ);
}

EXPORT int execle(const char *path, const char *arg, ...)
{
	struct exec x = {CALL_execle, BY_PATH, CALLER(), 0, 0, path, 0};
	char **argv, *const *envp;
	va_list ap;
	va_start(ap, arg);
	ARGUMENTS(argv, arg, ap);
	envp = va_arg(ap, char *const *);
	va_end(ap);
	x.argv = argv;
	return become(&x, envp);
}
