/* See hook_exec.h. */
#include "hook_exec.h"
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PRELOAD "LD_PRELOAD="
#define TRACE "PROPHET_TRACE="
#define RUN "PROPHET_RUN="
#define ENTRIES_MAX (1u << 22)
#define SPARE_ENTRIES 4

/* The program's own `environ` is not doubted; of another array each page, and each page of its strings, is asked for. */
static int readable(char *const *envp)
{
	extern char **environ;
	u64 i, of_array = 1, of_strings = 1; /* pages known to be readable */
	if (envp == environ)
		return 1;
	for (i = 0; i < ENTRIES_MAX; i++) {
		u64 at = (u64)&envp[i] & ~4095ull;
		if (at != of_array && !shim_readable(&envp[i], sizeof *envp))
			return 0;
		of_array = at;
		if (!envp[i])
			return 1;
		at = (u64)envp[i] & ~4095ull;
		if (at != of_strings && !shim_readable(envp[i], 1))
			return 0;
		of_strings = at;
	}
	return 0;
}

static int is_preload(const char *s)
{
	return shim_starts(s, PRELOAD);
}

static int is_ours(const char *s)
{
	return shim_starts(s, TRACE) || shim_starts(s, RUN);
}

void shim_env_plan(struct env_plan *p, char *const *envp, u32 lib, u32 slot)
{
	u64 n = 0;
	p->from = envp;
	p->preload = 0;
	p->bytes = 0;
	p->lib = lib;
	p->slot = slot;
	p->other = 0;
	if (shim_run.state != RUN_ON || (envp && !readable(envp)))
		return;
	for (; envp && envp[n]; n++) {
		if (is_preload(envp[n]))
			p->preload = envp[n] + sizeof PRELOAD - 1; /* the last one counts for the dynamic linker */
		else if (shim_starts(envp[n], TRACE))
			p->other = (u32)shim_trace_asked(envp[n] + sizeof TRACE - 1);
	}
	p->entries = n;
	p->bytes = (n + SPARE_ENTRIES) * sizeof *envp + sizeof PRELOAD + sizeof TRACE + RUN_ROOM + 2 + shim_len(shim_run.lib) +
		   (p->preload ? shim_len(p->preload) : 0) + shim_len(shim_run.dir);
}

/* Whether this entry of LD_PRELOAD is our library, under whatever path. */
static int names_us(const char *s, u64 n)
{
	static const char base[] = "libprophet.so";
	u64 k = sizeof base - 1, i;
	if (n == shim_len(shim_run.lib)) {
		for (i = 0; i < n && s[i] == shim_run.lib[i]; i++)
			;
		if (i == n)
			return 1;
	}
	if (n < k || (n > k && s[n - k - 1] != '/'))
		return 0;
	for (i = 0; i < k; i++)
		if (s[n - k + i] != base[i])
			return 0;
	return 1;
}

/* "LD_PRELOAD=…"; returns its end. */
static char *put_preload(const struct env_plan *p, char *to)
{
	struct text t;
	const char *s = p->preload, *e;
	shim_text(&t, to, (u32)(sizeof PRELOAD + 2 + shim_len(shim_run.lib) + (s ? shim_len(s) : 0)));
	shim_put(&t, PRELOAD);
	if (p->lib)
		shim_put(&t, shim_run.lib);
	while (s && *s) {
		for (e = s; *e && *e != ':' && *e != ' '; e++)
			;
		if (e != s && !names_us(s, (u64)(e - s))) {
			if (to[t.len - 1] != '=')
				shim_put(&t, ":");
			shim_putn(&t, s, (u64)(e - s));
		}
		s = *e ? e + 1 : e;
	}
	return to + t.len + 1;
}

char **shim_env_make(const struct env_plan *p, void *room)
{
	char **env = room, *text = (char *)(env + p->entries + SPARE_ENTRIES), *preload = text, *trace, *run;
	u64 i, k = 0;
	int had_preload = 0, had_trace = 0, had_run = 0, any;
	if (!room)
		return (char **)p->from;
	trace = put_preload(p, text);
	any = preload[sizeof PRELOAD - 1] != 0;
	run = trace + sizeof TRACE + shim_len(shim_run.dir);
	shim_trace_env(trace, (u32)(run - trace), run, p->slot);
	for (i = 0; i < p->entries; i++) {
		char *s = p->from[i];
		if (is_preload(s)) {
			if (!had_preload++ && any)
				env[k++] = preload;
		} else if (p->other || !is_ours(s)) {
			env[k++] = s;
		} else if (shim_starts(s, TRACE) ? !had_trace++ : !had_run++) {
			env[k++] = shim_starts(s, TRACE) ? trace : run;
		}
	}
	if (!had_preload && any)
		env[k++] = preload;
	if (!had_trace && !p->other)
		env[k++] = trace;
	if (!had_run && !p->other)
		env[k++] = run;
	env[k] = 0;
	return env;
}

/* What a vforked child maps its parent keeps, so the parent takes it back at its next event. */
void *shim_env_room(struct thr *t, u64 bytes, int vforked)
{
	long p = sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p < 0 && p > -4096)
		return 0;
	if (vforked && t && !t->env) {
		t->env = (void *)p;
		t->env_len = bytes;
	}
	return (void *)p;
}

void shim_env_room_back(struct thr *t, void *room, u64 bytes)
{
	if (t && t->env == room)
		t->env = 0;
	sys(SYS_munmap, room, bytes);
}

/* Targets. */

static void look(struct target *g, int fd, u32 depth);

static void at_path(struct target *g, int dir, const char *path, u32 depth)
{
	struct stat st;
	long fd;
	u64 caps[3];
	long r = sys(SYS_newfstatat, dir, path, &st, 0);
	if (!depth)
		g->absent = *path && (r == -ENOENT || r == -ENOTDIR);
	if (r != 0 || !S_ISREG(st.st_mode))
		return;
	if (!depth) {
		u32 uid = (u32)sys(SYS_geteuid), gid = (u32)sys(SYS_getegid);
		if ((st.st_mode & S_ISUID && st.st_uid != uid) || ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != gid) ||
		    (uid && dir == AT_FDCWD && sys(SYS_getxattr, path, "security.capability", caps, sizeof caps) > 0))
			g->unseen = PROPHET_UnseenSetuid;
	}
	fd = sys(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	if (fd < 0)
		return; /* may be executed, but not read */
	look(g, (int)fd, depth);
	sys(SYS_close, fd);
}

static void script(struct target *g, char *b, long n, u32 depth)
{
	char *s = b + 2, *e;
	b[n - 1] = 0;
	while (*s == ' ' || *s == '\t')
		s++;
	for (e = s; *e && *e != ' ' && *e != '\t' && *e != '\n'; e++)
		;
	*e = 0;
	if (*s == '/' && depth < 4)
		at_path(g, AT_FDCWD, s, depth + 1);
}

static int go_note(int fd, const Elf64_Phdr *ph)
{
	u32 n[4];
	return ph->p_filesz >= 16 && shim_own_read(sys(SYS_pread64, fd, n, 16, ph->p_offset)) == 16 && n[0] == 4 && n[2] == 4 && n[3] == 0x6f47 /* "Go" */;
}

static void look(struct target *g, int fd, u32 depth)
{
	union {
		char b[64 + 16 * sizeof(Elf64_Phdr)];
		Elf64_Ehdr h;
	} u;
	char interp[64];
	long n = shim_own_read(sys(SYS_pread64, fd, u.b, sizeof u.b, 0)), i, k;
	const Elf64_Phdr *ph;
	int dynamic = 0, go = 0, glibc = 0;
	if (n > 2 && u.b[0] == '#' && u.b[1] == '!') {
		script(g, u.b, n, depth);
		return;
	}
	if (n < 64 || u.b[0] != 0x7f || u.b[1] != 'E' || u.b[2] != 'L' || u.b[3] != 'F')
		return;
	if (u.b[4] != ELFCLASS64 || u.h.e_machine != SHIM_ELF_MACHINE) {
		g->unseen = PROPHET_UnseenForeign;
		g->lib = 0;
		return;
	}
	ph = (const Elf64_Phdr *)(u.b + u.h.e_phoff);
	k = u.h.e_phoff <= 64 && u.h.e_phentsize == sizeof *ph ? (n - (long)u.h.e_phoff) / (long)sizeof *ph : 0;
	if (!k)
		return;
	for (i = 0; i < u.h.e_phnum && i < k; i++) {
		if (ph[i].p_type == PT_INTERP) {
			long m = shim_own_read(sys(SYS_pread64, fd, interp, sizeof interp - 1, ph[i].p_offset)), c;
			dynamic = 1;
			interp[m > 0 ? m : 0] = 0;
			for (c = 0; interp[c]; c++)
				glibc |= shim_starts(interp + c, "ld-linux");
		} else if (ph[i].p_type == PT_DYNAMIC && u.h.e_type == ET_DYN && !dynamic) {
			dynamic = -1; /* the dynamic linker itself, or static and position-independent */
		} else if (ph[i].p_type == PT_NOTE) {
			go |= go_note(fd, &ph[i]);
		}
	}
	if (dynamic == 1 && !glibc) {
		g->unseen = PROPHET_UnseenForeign; /* another C library: it could not load ours */
		g->lib = 0;
	} else if (go) {
		g->unseen = PROPHET_UnseenGoLike;
	} else if (!dynamic && u.h.e_phnum <= k) {
		g->unseen = PROPHET_UnseenStatic;
	}
}

/* As execvp looks: the first directory of PATH that has it. */
static void searched(struct target *g, const char *name)
{
	extern char **environ;
	const char *path = shim_getenv(environ, "PATH"), *e;
	char at[1024];
	struct stat st;
	struct text t;
	u32 cut = 0;
	if (!path)
		path = "/bin:/usr/bin";
	for (;; path = e + 1) {
		for (e = path; *e && *e != ':'; e++)
			;
		shim_text(&t, at, sizeof at);
		shim_putn(&t, path, (u64)(e - path));
		if (e != path)
			shim_put(&t, "/");
		shim_put(&t, name);
		cut |= t.cut;
		if (!t.cut && sys(SYS_newfstatat, AT_FDCWD, at, &st, 0) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111) {
			at_path(g, AT_FDCWD, at, 0);
			return;
		}
		if (!*e)
			break;
	}
	g->absent = !cut;
}

static int has_slash(const char *s)
{
	for (; *s; s++)
		if (*s == '/')
			return 1;
	return 0;
}

#define READ_OK 4
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

void shim_target(struct target *g, int dir, const char *path, int search, int fd)
{
	long r = sys(SYS_faccessat2, AT_FDCWD, shim_run.lib, READ_OK, AT_EACCESS);
	g->unseen = g->absent = 0;
	g->lib = r == 0 || r == -ENOSYS || r == -EPERM; /* gone after chroot, or not ours to read: the linker would complain */
	if (fd >= 0) {
		look(g, fd, 0);
		return;
	}
	if (!path || !shim_readable(path, 1))
		return;
	if (search && !has_slash(path))
		searched(g, path);
	else
		at_path(g, dir, path, 0);
}

/* Once for each path and process; what a path did not fit is told again. */
void shim_unseen(struct thr *t, const struct target *g, const char *path)
{
	static u64 told[16];
	u64 n, h;
	u8 b[1100], *p;
	if (!g->unseen || !path)
		return;
	n = shim_len(path);
	if (n > 1000)
		n = 1000;
	h = shim_hash64(path, n, g->unseen) | 1;
	if (told[h % 16] == h)
		return;
	told[h % 16] = h;
	p = put_v(b, PROPHET_TagUnseen);
	p = put_v(p, g->unseen);
	p = put_v(p, 0);
	p = put_v(p, n);
	shim_copy(p, path, n);
	shim_record(t, b, (u32)(p - b) + (u32)n);
}
