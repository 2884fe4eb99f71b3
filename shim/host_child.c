/* Programs of ours that a host starts: found beside the library, started without a trace of us in their environment,
 * waited for. Raw system calls, so that a host that is being recorded records none of it. */
#include "host.h"
#include "run.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

#define SIGNALS 64
#define SELF "libprophet.so"

struct kernel_action {
	void *handler;
	u64 flags;
	void *restorer;
	u64 mask;
};

static HOST int runnable(const struct text *t)
{
	struct stat st;
	return !t->cut && sys(SYS_faccessat, AT_FDCWD, t->buf, 1 /* X_OK */) == 0 && sys(SYS_newfstatat, AT_FDCWD, t->buf, &st, 0) == 0 && S_ISREG(st.st_mode);
}

HOST int host_find(char *path, const char *name, const char *variable)
{
	const char *v = shim_getenv(environ, variable), *p = shim_run.lib, *end = p + shim_len(p);
	struct text t;
	u32 i;
	if (v && *v) {
		shim_text(&t, path, HOST_PATH);
		shim_put(&t, v);
		return t.cut ? -ENAMETOOLONG : 0;
	}
	while (end > p && end[-1] != '/')
		end--;
	for (i = 0; i < 2 && end > p; i++) {
		shim_text(&t, path, HOST_PATH);
		shim_putn(&t, p, (u64)(end - p));
		shim_put(&t, i ? "../bin/" : "");
		shim_put(&t, name);
		if (runnable(&t))
			return 0;
	}
	for (p = shim_getenv(environ, "PATH"); p && *p; p = *end ? end + 1 : end) {
		for (end = p; *end && *end != ':'; end++)
			;
		shim_text(&t, path, HOST_PATH);
		shim_putn(&t, p, (u64)(end - p));
		shim_put(&t, end > p ? "/" : "./");
		shim_put(&t, name);
		if (runnable(&t))
			return 0;
	}
	return -ENOENT;
}

/* Whether this piece of LD_PRELOAD is our library. */
static HOST int is_self(const char *s, const char *end)
{
	const char *base = s;
	for (; s < end; s++)
		if (*s == '/')
			base = s + 1;
	return (u64)(end - base) == sizeof SELF - 1 && shim_starts(base, SELF);
}

/* The environment for a program of ours: not part of a run, nor preloaded. */
static HOST char **environment(struct room *room, char *const *from)
{
	static const char ours[][16] = {"PROPHET_TRACE=", "PROPHET_RUN=", "PROPHET_REPLAY="};
	u64 n = 0, bytes = 16, i, k = 0;
	struct text t;
	char **out;
	for (; from && from[n]; n++)
		if (shim_starts(from[n], "LD_PRELOAD="))
			bytes += shim_len(from[n]) + 1;
	out = host_grow(room, (n + 1) * sizeof *out + bytes);
	if (!out)
		return 0;
	for (i = 0; i < n; i++) {
		const char *s = from[i], *end;
		u32 o, skip = 0;
		for (o = 0; o < sizeof ours / sizeof *ours; o++)
			skip |= (u32)shim_starts(s, ours[o]);
		if (skip)
			continue;
		if (!shim_starts(s, "LD_PRELOAD=")) {
			out[k++] = from[i];
			continue;
		}
		out[k++] = (char *)(out + n + 1);
		shim_text(&t, (char *)(out + n + 1), (u32)bytes);
		shim_put(&t, "LD_PRELOAD=");
		for (s += t.len; *s; s = *end ? end + 1 : end) {
			for (end = s; *end && *end != ':' && *end != ' '; end++)
				;
			if (end > s && !is_self(s, end)) {
				if (t.buf[t.len - 1] != '=')
					shim_put(&t, ":");
				shim_putn(&t, s, (u64)(end - s));
			}
		}
		if (t.buf[t.len - 1] == '=')
			k--; /* nothing is left of it */
	}
	out[k] = 0;
	return out;
}

/* The child, in its parent's memory but on a frame of its own: the parent waits until exec. */
static NOINLINE HOST __attribute__((noreturn)) void become(const struct child *c, const char *path, const char *const *argv, char **env, const u64 *mask,
							   long *error)
{
	const int to[3] = {c->in, c->out, c->err};
	struct kernel_action a;
	int i, fd[3];
	for (i = 1; i <= SIGNALS; i++) {
		if (sys(SYS_rt_sigaction, i, 0, &a, 8) == 0 && a.handler != (void *)SIG_IGN && a.handler != (void *)SIG_DFL) {
			a.handler = (void *)SIG_DFL;
			sys(SYS_rt_sigaction, i, &a, 0, 8);
		}
	}
	for (i = 0; i < 3; i++) /* above those that are about to be replaced */
		fd[i] = to[i] < 0 ? -1 : (int)sys(SYS_fcntl, to[i], F_DUPFD_CLOEXEC, 3);
	for (i = 0; i < 3; i++)
		if (fd[i] >= 0)
			sys(SYS_dup3, fd[i], i, 0);
	sys(SYS_rt_sigprocmask, SIG_SETMASK, mask, 0, 8);
	if (c->dir)
		*error = sys(SYS_chdir, c->dir);
	if (!*error)
		*error = sys(SYS_execve, path, argv, env);
	for (;;)
		sys(SYS_exit_group, 127);
}

HOST int host_spawn(struct child *c, const char *path, const char *const *argv)
{
	struct room room = {0, 0};
	char **env = environment(&room, c->env ? (char *const *)c->env : environ);
	volatile long error = 0;
	u64 mask;
	long pid;
	int status;
	if (!env)
		return -ENOMEM;
	shim_block(&mask);
	pid = sys(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		become(c, path, argv, env, &mask, (long *)&error);
	shim_unblock(&mask);
	host_drop(&room);
	if (pid < 0)
		return (int)pid;
	c->pid = (int)pid;
	if (error) {
		host_wait((int)pid, 0, &status);
		return (int)error;
	}
	return 0;
}

HOST int host_wait(int pid, int options, int *status)
{
	long r;
	do
		r = sys(SYS_wait4, pid, status, options, 0);
	while (r == -EINTR);
	return (int)r;
}

HOST int host_temporary(char *dir)
{
	const char *in = shim_getenv(environ, "TMPDIR");
	int tries, r = -EEXIST;
	struct text t;
	u64 random;
	for (tries = 0; tries < 100 && r == -EEXIST; tries++) {
		if (sys(SYS_getrandom, &random, sizeof random, 0) != sizeof random)
			return -EIO;
		shim_text(&t, dir, HOST_PATH);
		shim_put(&t, in && *in ? in : "/tmp");
		shim_put(&t, "/prophet-");
		shim_putx(&t, random, 12);
		if (t.cut)
			return -ENAMETOOLONG;
		r = (int)sys(SYS_mkdirat, AT_FDCWD, dir, 0700);
	}
	return r;
}

/* What is in a directory, and that of its directories down to a depth. */
static HOST void empty(int dir, int depth)
{
	struct entry {
		u64 ino;
		i64 off;
		u16 len;
		u8 type;
		char name[];
	};
	u64 room[512];
	long n, i;
	while ((n = sys(SYS_getdents64, dir, room, sizeof room)) > 0)
		for (i = 0; i < n;) {
			const struct entry *e = (const struct entry *)((const char *)room + i);
			i += e->len;
			if (shim_same(e->name, ".") || shim_same(e->name, ".."))
				continue;
			if (sys(SYS_unlinkat, dir, e->name, 0) == -EISDIR && depth) {
				int sub = (int)sys(SYS_openat, dir, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
				if (sub >= 0) {
					empty(sub, depth - 1);
					sys(SYS_close, sub);
				}
				sys(SYS_unlinkat, dir, e->name, AT_REMOVEDIR);
			}
		}
}

HOST void host_remove(const char *path)
{
	int dir = (int)sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (dir >= 0) {
		empty(dir, 2);
		sys(SYS_close, dir);
	}
	sys(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}
