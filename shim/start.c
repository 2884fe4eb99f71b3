/* How a process comes into a run: it makes one (directory, control page, meta.json, rings), or joins the one that its
 * environment names, or is a forked child of one that is in it. */
#include "run_own.h"
#include "replay.h"
#include "sandbox.h"
#include "stack.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/utsname.h>
#include <time.h>

#define ORDER_LEVEL (1u << CLASS_sync | 1u << CLASS_stdio | 1u << CLASS_thread | 1u << CLASS_signal | 1u << CLASS_mark)

static u64 random64(void)
{
	u64 v = 0;
	if (sys(SYS_getrandom, &v, 8, 1 /* GRND_NONBLOCK */) != 8)
		v = shim_ticks() * 0x9E3779B97F4A7C15ull ^ (u64)sys(SYS_getpid);
	return v;
}

static const char *option(const char *opts, const char *name)
{
	size_t n = shim_len(name);
	while (opts && *opts) {
		if (shim_starts(opts, name) && (opts[n] == 0 || opts[n] == ',' || opts[n] == '='))
			return opts + n + (opts[n] == '=');
		while (*opts && *opts != ',')
			opts++;
		opts += *opts == ',';
	}
	return 0;
}

static u64 size_option(const char *s)
{
	const char *e;
	u64 v = shim_parse(s, &e);
	if (*e == 'K' || *e == 'k')
		v <<= 10;
	else if (*e == 'M' || *e == 'm')
		v <<= 20;
	else if (*e == 'G' || *e == 'g')
		v <<= 30;
	return v;
}

static u64 now_ns(int clock)
{
	struct timespec ts = {0, 0};
	sys(SYS_clock_gettime, clock, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

/* A rate, "cpu", or "cpu:" and a rate. */
static void stacks_option(struct control *c, const char *v)
{
	u64 rate = PROPHET_StackRate;
	if (v && shim_starts(v, "cpu")) {
		c->stackcpu = 1;
		v = v[3] == ':' ? v + 4 : 0;
	}
	if (v && *v >= '0' && *v <= '9')
		rate = shim_parse(v, &v);
	c->stackhz = (u32)(rate < PROPHET_StackRateMax ? rate : PROPHET_StackRateMax);
}

/* How many processors it may use, and behind colons how many are online and there are, if that is another number. */
static void cpus_option(struct control *c, const char *v)
{
	u32 i;
	for (i = 0; i < 3; i++) {
		c->told[i] = i && *v != ':' ? c->told[i - 1] : (u32)shim_parse(i ? v + 1 : v, &v) & 0xffff;
		if (!c->told[i])
			c->told[i] = c->told[0];
	}
}

static void options(struct control *c, const char *o)
{
	const char *v;
	c->inputs = PROPHET_InputsDefault;
	if ((v = option(o, "inputs")))
		c->inputs = *v == 'n' ? PROPHET_InputsNone : *v == 'h' ? PROPHET_InputsHash : *v == 'f' ? PROPHET_InputsFull : PROPHET_InputsDefault;
	c->level = PROPHET_LevelFull;
	if ((v = option(o, "level")))
		c->level = shim_starts(v, "off") ? 0 : shim_starts(v, "order") ? ORDER_LEVEL : PROPHET_LevelFull;
	c->serial = option(o, "serial") != 0;
	if ((v = option(o, "chaos"))) {
		c->chaos = 1;
		c->chaosseed = shim_parse(v, &v);
	}
	c->fast = c->serial || c->chaos ? 0 : c->level;
	if ((v = option(o, "cpus")))
		cpus_option(c, v);
	stacks_option(c, option(o, "stacks"));
	if ((v = option(o, "flight")))
		c->flight = (size_option(v) + PROPHET_SlotSize - 1) / PROPHET_SlotSize * PROPHET_SlotSize;
	c->keepmax = (v = option(o, "keep")) ? size_option(v) : 64u << 20;
	c->keepleft = c->keepmax * 4;
	if ((v = option(o, "replay"))) {
		u32 n = 0;
		for (; v[n] && v[n] != ',' && n < sizeof c->index - 1; n++)
			c->index[n] = (u8)v[n];
		c->inputs = PROPHET_InputsReplay;
		c->fast = 0;
		c->keepmax = c->keepleft = 0;
	}
}

char shim_room_at_start[65536] __attribute__((aligned(4096))); /* what it holds is seldom more than a page */
#define META_MAX sizeof shim_room_at_start

#define HANDED_MAX 256 /* descriptors above are seldom handed on */
#define HANDED_FEW 64 /* the kernel's table of descriptors has room for as many at least */

/* Whether there may be descriptors from HANDED_FEW on. select looks no further than the table goes: it finds nothing wrong with
 * any of them where that is a small one, for a quarter of what it costs to poll them. Where the table goes further, one that is
 * not there is an error, and where the first is there they may all be. */
static int handed_high(void)
{
	u64 set[HANDED_MAX / 64], none[2] = {0, 0};
	u32 i;
	for (i = 0; i < HANDED_MAX / 64; i++)
		set[i] = i < HANDED_FEW / 64 ? 0 : ~0ull;
	return sys(SYS_pselect6, HANDED_MAX, set, 0, 0, none, 0) != 0 || sys(SYS_fcntl, HANDED_FEW, F_GETFD, 0) >= 0;
}

/* Descriptors that the program is given, for a re-execution to give it the like: those above standard error, and a standard
 * input that is a file. A few calls say that there are none, as is usual. */
static void handed(struct text *t, u64 limit)
{
	struct pollfd p[HANDED_MAX];
	struct stat st;
	struct {
		u64 dev, ino, flags, off;
		int fd;
	} seen[32];
	u64 none[2] = {0, 0};
	u32 i, k, n = 0, count = limit < HANDED_MAX ? (u32)limit : HANDED_MAX, any = 0;
	const char *between = "";
	if (count > HANDED_FEW && !handed_high())
		count = HANDED_FEW;
	for (i = 0; i < count; i++) {
		p[i].fd = (int)i;
		p[i].events = p[i].revents = 0;
	}
	shim_put(t, ", \"fds\": [");
	if (count > 3 && sys(SYS_ppoll, p + 3, count - 3, none, 0, 0) >= 0)
		for (i = 3; i < count; i++)
			any |= !(p[i].revents & POLLNVAL);
	if (!any)
		count = sys(SYS_fstat, 0, &st) == 0 && S_ISREG(st.st_mode);
	for (i = 0; i < count; i++) {
		char name[512];
		long flags, off;
		if (p[i].revents & POLLNVAL || shim_fd_ours((int)i) || t->len > META_MAX * 7 / 8 || sys(SYS_fstat, i, &st) != 0)
			continue;
		flags = sys(SYS_fcntl, i, F_GETFL, 0) & (O_ACCMODE | O_APPEND | O_NONBLOCK);
		off = S_ISREG(st.st_mode) ? sys(SYS_lseek, i, 0, SEEK_CUR) : 0;
		for (k = 0; k < n && (seen[k].dev != st.st_dev || seen[k].ino != st.st_ino || seen[k].flags != (u64)flags || seen[k].off != (u64)off); k++)
			;
		if (k == n && n < sizeof seen / sizeof *seen) {
			seen[n].dev = st.st_dev;
			seen[n].ino = st.st_ino;
			seen[n].flags = (u64)flags;
			seen[n].off = (u64)off;
			seen[n++].fd = (int)i;
		}
		if (i < 3 && (i || !S_ISREG(st.st_mode)))
			continue;
		*name = 0;
		if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISCHR(st.st_mode))
			shim_fd_path(i, name, sizeof name);
		shim_put(t, between);
		between = ", ";
		shim_put(t, "{\"fd\": ");
		shim_putd(t, (i64)i);
		shim_put(t, ", \"mode\": ");
		shim_putd(t, st.st_mode);
		shim_put(t, ", \"flags\": ");
		shim_putd(t, flags);
		shim_put(t, ", \"offset\": ");
		shim_putd(t, off > 0 ? off : 0);
		shim_put(t, ", \"same\": ");
		shim_putd(t, k < n && seen[k].fd != (int)i ? seen[k].fd : -1);
		shim_put(t, ", \"path\": ");
		shim_putjson(t, name);
		shim_put(t, "}");
	}
	shim_put(t, "]");
}

/* What the program inherits: its environment, and what else a re-execution starts it with. A variable that does not fit
 * is left out, and the file says so. */
static void inherited(struct text *t)
{
	/* What shells, nohup, cron and servers have a program ignore. */
	static const u8 usual[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU};
	u64 lim[2], action[8], ignored = 0, files = 0;
	u32 i, n = 0, cut = 0;
	long mask;
	shim_put(t, ",\n  \"env\": [");
	for (i = 0; shim_run.envp && shim_run.envp[i]; i++) {
		if (t->len + shim_len(shim_run.envp[i]) * 6 > META_MAX * 3 / 4) { /* as JSON it is at most that long */
			cut++;
			continue;
		}
		if (n++)
			shim_put(t, ", ");
		shim_putjson(t, shim_run.envp[i]);
	}
	shim_put(t, "],\n  \"start\": {\"env_cut\": ");
	shim_putd(t, cut);
	shim_put(t, ", \"uid\": ");
	shim_putd(t, sys(SYS_geteuid));
	shim_put(t, ", \"gid\": ");
	shim_putd(t, sys(SYS_getegid));
	mask = sys(SYS_umask, 0);
	sys(SYS_umask, mask);
	shim_put(t, ", \"umask\": ");
	shim_putd(t, mask);
	shim_put(t, ", \"nice\": ");
	shim_putd(t, 20 - sys(SYS_getpriority, PRIO_PROCESS, 0));
	shim_put(t, ", \"personality\": ");
	shim_putd(t, sys(SYS_personality, 0xffffffff));
	for (i = 0; i < sizeof usual; i++)
		if (sys(SYS_rt_sigaction, usual[i], 0, action, 8) == 0 && action[0] == (u64)SIG_IGN)
			ignored |= SIGSET(usual[i]);
	shim_put(t, ", \"ignored\": ");
	shim_putd(t, (i64)ignored);
	shim_put(t, ", \"limits\": [");
	for (i = 0; i < RLIM_NLIMITS && sys(SYS_prlimit64, 0, i, 0, lim) == 0; i++) {
		if (i == RLIMIT_NOFILE)
			files = lim[0];
		shim_put(t, i ? ", [" : "[");
		shim_putd(t, (i64)lim[0]);
		shim_put(t, ", ");
		shim_putd(t, (i64)lim[1]);
		shim_put(t, "]");
	}
	shim_put(t, "]");
	handed(t, files);
	shim_put(t, "}");
}

static void write_meta(int argc, char **argv)
{
	char *buf = shim_room_at_start, path[4200], b[4096];
	struct text t, pt;
	struct utsname u;
	struct {
		long uptime;
		unsigned long loads[3], totalram, freeram, sharedram, bufferram, totalswap, freeswap;
		unsigned short procs, pad;
		unsigned long totalhigh, freehigh;
		unsigned int unit;
		char room[64];
	} si;
	u64 cpus[128];
	long fd, r, n = 0;
	int i;
	shim_text(&t, buf, META_MAX);
	shim_put(&t, "{\n  \"format\": ");
	shim_putd(&t, PROPHET_FormatVersion);
	shim_put(&t, ",\n  \"prophet\": \"" PROPHET_Version "\",\n  \"state\": \"recording\",\n  \"run\": \"");
	shim_putx(&t, shim_ctl.tag, 16);
	shim_put(&t, "\",\n  \"command\": [");
	for (i = 0; i < argc && argv[i] && t.len < META_MAX / 2; i++) {
		if (i)
			shim_put(&t, ", ");
		shim_putjson(&t, argv[i]);
	}
	shim_put(&t, "],\n  \"exe\": ");
	shim_putjson(&t, shim_run.exe);
	shim_put(&t, ",\n  \"cwd\": ");
	r = sys(SYS_getcwd, b, sizeof b);
	if (r <= 0)
		b[0] = 0;
	shim_putjson(&t, b);
	inherited(&t);
	shim_put(&t, ",\n  \"machine\": {");
	shim_zero(&u, sizeof u);
	sys(SYS_uname, &u);
	shim_put(&t, "\"sysname\": ");
	shim_putjson(&t, u.sysname);
	shim_put(&t, ", \"release\": ");
	shim_putjson(&t, u.release);
	shim_put(&t, ", \"version\": ");
	shim_putjson(&t, u.version);
	shim_put(&t, ", \"arch\": ");
	shim_putjson(&t, u.machine);
	shim_put(&t, ", \"nodename\": ");
	shim_putjson(&t, u.nodename);
	shim_zero(cpus, sizeof cpus);
	r = sys(SYS_sched_getaffinity, 0, sizeof cpus, cpus);
	for (i = 0; i < r / 8; i++)
		for (; cpus[i]; cpus[i] &= cpus[i] - 1) /* the compiler's own count would be a call, and a page of code more */
			n++;
	shim_put(&t, ", \"cpus\": ");
	shim_putd(&t, n);
	shim_zero(&si, sizeof si);
	sys(SYS_sysinfo, &si);
	shim_put(&t, ", \"memory_bytes\": ");
	shim_putd(&t, (i64)(si.totalram * (si.unit ? si.unit : 1)));
	shim_put(&t, ", \"page_size\": 4096");
	shim_put(&t, "},\n  \"options\": {\"inputs\": ");
	shim_putjson(&t, shim_ctl.inputs == PROPHET_InputsNone	 ? "none"
			 : shim_ctl.inputs == PROPHET_InputsHash ? "hash"
			 : shim_ctl.inputs == PROPHET_InputsFull ? "full"
								 : "default");
	shim_put(&t, ", \"level\": ");
	shim_putjson(&t, shim_ctl.level == 0 ? "off" : shim_ctl.level == ORDER_LEVEL ? "order" : "full");
	shim_put(&t, shim_ctl.serial ? ", \"serial\": true" : ", \"serial\": false");
	if (shim_ctl.chaos) {
		shim_put(&t, ", \"chaos\": ");
		shim_putd(&t, (i64)shim_ctl.chaosseed);
	}
	for (i = 0; i < 3 && shim_ctl.told[0]; i++) {
		shim_put(&t, i ? ", " : ", \"told_cpus\": [");
		shim_putd(&t, shim_ctl.told[i]);
		shim_put(&t, i == 2 ? "]" : "");
	}
	shim_put(&t, ", \"stacks\": ");
	shim_putd(&t, (i64)shim_ctl.stackhz);
	shim_put(&t, shim_ctl.stackcpu ? ", \"stacks_cpu\": true" : "");
	shim_put(&t, ", \"flight\": ");
	shim_putd(&t, (i64)shim_ctl.flight);
	shim_put(&t, ", \"keep_max\": ");
	shim_putd(&t, (i64)shim_ctl.keepmax);
	shim_put(&t, "},\n  \"start_realtime_ns\": ");
	shim_putd(&t, (i64)shim_ctl.real0);
	shim_put(&t, ",\n  \"ticks_hz\": 0\n}\n");
	fd = sys(SYS_openat, AT_FDCWD, shim_in_dir(&pt, path, sizeof path, "meta.json"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	sys(SYS_write, fd, buf, t.len);
	sys(SYS_close, fd);
	shim_run.own_bytes += t.len;
}

/* An absolute path of `name`, in place. */
static void absolute(struct text *t, const char *name)
{
	char cwd[4096];
	if (*name != '/' && sys(SYS_getcwd, cwd, sizeof cwd) > 0) {
		shim_put(t, cwd);
		shim_put(t, "/");
	}
	shim_put(t, name);
}

static int make_dir(const char *name, const char *suffix)
{
	struct text t;
	shim_text(&t, shim_run.dir, sizeof shim_run.dir);
	absolute(&t, name);
	shim_put(&t, suffix);
	return t.cut ? -ENAMETOOLONG : (int)sys(SYS_mkdirat, AT_FDCWD, shim_run.dir, 0700);
}

/* Makes the directory that was asked for; where it is taken, the next free name. */
static int make_named(const char *wanted)
{
	char suffix[32], base[4096];
	struct text t;
	int r = make_dir(wanted, ""), i;
	shim_text(&t, base, sizeof base);
	shim_put(&t, wanted);
	if (t.len > 8 && shim_same(base + t.len - 8, ".prophet"))
		base[t.len - 8] = 0;
	for (i = 2; r == -EEXIST && i < 1000; i++) {
		shim_text(&t, suffix, sizeof suffix);
		shim_put(&t, ".");
		shim_putd(&t, i);
		shim_put(&t, ".prophet");
		r = make_dir(base, suffix);
	}
	if (r == 0 && i > 2)
		shim_say("the trace's name is taken, recording to", shim_run.dir, 0);
	return r;
}

/* Where no name was asked for, or none of that name could be made. */
static int make_default(const char *program, int refused)
{
	char name[512];
	const char *base = program, *c, *tmp;
	struct text t;
	int r;
	for (c = program; *c; c++)
		if (*c == '/' && c[1])
			base = c + 1;
	shim_text(&t, name, sizeof name);
	shim_putn(&t, base, shim_len(base) < 200 ? shim_len(base) : 200);
	shim_put(&t, ".");
	shim_putd(&t, shim_run.pid);
	shim_put(&t, ".prophet");
	r = make_named(name);
	if (r == 0) {
		if (refused)
			shim_say("the trace cannot be made where PROPHET_TRACE says, recording to", shim_run.dir, 0);
		return 0;
	}
	tmp = shim_getenv(shim_run.envp, "TMPDIR");
	if (!tmp || *tmp != '/')
		tmp = "/tmp";
	{
		char at[4096];
		shim_text(&t, at, sizeof at);
		shim_put(&t, tmp);
		shim_put(&t, "/");
		shim_put(&t, name);
		r = make_named(at);
		if (r == 0)
			shim_say(refused ? "the trace cannot be made where PROPHET_TRACE says, recording to"
					 : "cannot write where the program was started, recording to",
				 shim_run.dir, 0);
	}
	return r;
}

#define CONTROL_FIRST (PROPHET_OwnersAt + PROPHET_OwnersFirst * 4)

#define FS_BTRFS 0x9123683eu
#define FS_BCACHEFS 0xca451a4eu
#define FS_TMPFS 0x01021994u

static u32 fs_of(const char *dir)
{
	struct statfs fs;
	return sys(SYS_statfs, dir, &fs) == 0 ? (u32)fs.f_type : 0;
}

/* As many as there is nothing in the room at start. */
static long zeros(long fd, u64 len)
{
	u64 done = 0;
	while (done < len) {
		u64 n = len - done < sizeof shim_room_at_start ? len - done : sizeof shim_room_at_start;
		long r = sys(SYS_write, fd, shim_room_at_start, n);
		if (r <= 0)
			return done ? (long)done : r;
		done += (u64)r;
	}
	return (long)done;
}

/* Makes and maps the control file. */
static int control_make(const char *path, u32 fs)
{
	char *none = shim_room_at_start;
	struct iovec twice[2] = {{none, 4096}, {none, 4096}};
	u64 len = CONTROL_FIRST;
	u32 rooms = 0;
	long r, fd = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return (int)fd;
	/* Written, not just made long: a full disk says so here and not by SIGBUS, and the first touch of the mapping
	 * finds its page (30 to 300 us cheaper on ext4 than a page that fallocate only promised). What most runs do not
	 * need gets its space when it is needed, where the file system can give it: shim_room. What tmpfs promises is there,
	 * for a third of what it costs to write. */
	r = sys(SYS_fallocate, fd, 0, 0, CONTROL_FIRST);
	if (r == -EOPNOTSUPP) {
		len = PROPHET_ControlSize;
		rooms = PROPHET_RoomOwners | PROPHET_RoomKnown;
	}
	if (r == 0 && fs == FS_TMPFS) {
		r = (long)len;
	} else {
		/* The same page twice, as each that is read costs its first touch. That it will be written again is no further one. */
		*(volatile char *)none = 0;
		r = len == 2 * 4096 ? sys(SYS_writev, fd, twice, 2) : zeros(fd, len);
		if (r > 0)
			shim_run.own_bytes += (u64)r;
		if (r > 0 && r < (long)len) /* why? */
			r = sys(SYS_write, fd, none, 4096);
	}
	r = r == (long)len ? sys(SYS_ftruncate, fd, PROPHET_ControlSize) : r < 0 ? r : -ENOSPC;
	if (r == 0)
		r = shim_control_map((int)fd);
	sys(SYS_close, fd);
	if (r == 0)
		shim_ctl.rooms = rooms;
	if (r)
		sys(SYS_unlinkat, AT_FDCWD, path, 0);
	return (int)r;
}

/* The control file of a new trace lies in its directory, or with its rings and is linked to from there. The directory goes
 * again where neither can be. */
static int control_create(u64 tag)
{
	char path[4200], apart[300];
	struct text t;
	u32 fs = fs_of(shim_run.dir);
	int r = -ENOENT;
	shim_in_dir(&t, path, sizeof path, "control");
	/* Where files are copied on writing a page may need new space though it has its own: a store into a mapping fails
	 * by SIGBUS when the disk or the quota is full. */
	if ((fs == FS_BTRFS || fs == FS_BCACHEFS) && shim_shm_name(tag) == 0 &&
	    sys(SYS_symlinkat, shim_shm_file(apart, sizeof apart, ".control"), AT_FDCWD, path) == 0) {
		r = control_make(apart, 0);
		if (r)
			sys(SYS_unlinkat, AT_FDCWD, path, 0);
		shim_run.apart = r == 0;
	}
	if (r)
		r = control_make(path, fs);
	if (r)
		sys(SYS_unlinkat, AT_FDCWD, shim_run.dir, AT_REMOVEDIR);
	return r;
}

#if SHIM_LEAPS
static NOINLINE void by_return(void)
{
	sys(SYS_getppid);
}

static NOINLINE LEAP void by_leap(void)
{
	sys(SYS_getppid);
}

/* The shortest of a few tries each; one that is no better is worse for those that return after. About 2 us, once a run. */
static u32 leaps(void)
{
	u64 best[2] = {~0ull, ~0ull};
	u32 i, k;
	if (shim_shadowed())
		return 0;
	for (k = 0; k < 2; k++)
		for (i = 0; i < 4; i++) { /* the processor learns a jump in two */
			u64 from = shim_ticks(), took;
			shim_leaps = k;
			if (k)
				by_leap();
			else
				by_return();
			took = shim_ticks() - from;
			if (took < best[k])
				best[k] = took;
		}
	return shim_leaps = best[1] + shim_ticks_per_ms() / 100000 < best[0]; /* 10 ns */
}
#endif

static int create(int argc, char **argv)
{
	struct text t;
	struct control *c = &shim_ctl;
	const char *wanted = shim_getenv(shim_run.envp, "PROPHET_TRACE");
	u64 tag = random64();
	int r = -1, asked = wanted && *wanted;
	if (asked)
		r = make_named(wanted);
	if (r)
		r = make_default(argc > 0 && argv[0] ? argv[0] : "program", asked);
	if (r) {
		shim_say("nothing is recorded, no directory can be made", 0, r);
		return r;
	}
	r = control_create(tag);
	if (r < 0) {
		shim_say("nothing is recorded, cannot write to", shim_run.dir, r);
		return r;
	}
	c->tag = tag;
	c->magic = PROPHET_ControlMagic;
	c->version = PROPHET_FormatVersion;
	c->size = PROPHET_ControlSize;
	c->ticks0 = shim_ticks();
	c->mono0 = now_ns(CLOCK_MONOTONIC);
	c->real0 = now_ns(CLOCK_REALTIME);
	options(c, shim_getenv(shim_run.envp, "PROPHET_OPTIONS"));
#if SHIM_LEAPS
	c->leaps = leaps();
#endif
	shim_text(&t, (char *)c->shmname, sizeof c->shmname);
	shim_putx(&t, c->tag, 16);
	shim_put(&t, ".rings");
	shim_run.how = PROPHET_ProcRoot;
	write_meta(argc, argv);
	shim_rings_open(1);
	return 0;
}

static int join(const char *dir, u64 tag)
{
	struct text t;
	long fd;
	int r;
	u64 head[3];
	shim_text(&t, shim_run.dir, sizeof shim_run.dir);
	shim_put(&t, dir);
	fd = shim_control_open(tag);
	if (fd < 0)
		return (int)fd;
	r = -EINVAL;
	if (shim_own_read(sys(SYS_pread64, fd, head, sizeof head, 0)) == sizeof head && head[0] == PROPHET_ControlMagic && head[2] == tag &&
	    head[1] == ((u64)PROPHET_ControlSize << 32 | PROPHET_FormatVersion))
		r = shim_control_map((int)fd);
	sys(SYS_close, fd);
	if (r)
		return r;
	if (shim_ctl.ended)
		return -EPIPE;
	shim_run.how = PROPHET_ProcExeced;
	shim_rings_open(0);
	return 0;
}

static u64 parse_hex(const char *s)
{
	u64 v = 0;
	for (;; s++) {
		if (*s >= '0' && *s <= '9')
			v = v << 4 | (u64)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			v = v << 4 | (u64)(*s - 'a' + 10);
		else
			return v;
	}
}

/* What of PROPHET_RUN says which PROPHET_TRACE it belongs to: whoever sets another one wants a trace of its own. */
static u64 dir_mark(const char *dir)
{
	return shim_hash64(dir, shim_len(dir), 0) & 0xffffffff;
}

int shim_trace_asked(const char *dir)
{
	return !shim_same(dir, shim_run.dir) && dir_mark(dir) != shim_run.asked;
}

/* PROPHET_RUN is "tag:parent process:parent thread:which fork of it:mark of the directory:the slot that this process had
 * before exec, if it had one". 1: there is no run to join;
 * an error: there is, but this process may not, as it belongs to another user or the trace is gone. */
static int try_join(void)
{
	const char *run = shim_getenv(shim_run.envp, "PROPHET_RUN"), *dir = shim_getenv(shim_run.envp, "PROPHET_TRACE");
	const char *p;
	shim_run.asked = dir ? dir_mark(dir) : 0;
	if (!run || !dir || *dir != '/')
		return 1;
	for (p = run; *p && *p != ':'; p++)
		;
	if (*p == ':') {
		shim_run.parent_proc = (u32)shim_parse(p + 1, &p);
		if (*p == ':')
			shim_run.parent_uid = (u32)shim_parse(p + 1, &p);
		if (*p == ':')
			shim_run.parent_nth = (u32)shim_parse(p + 1, &p);
	}
	if (*p != ':' || shim_parse(p + 1, &p) != dir_mark(dir))
		return 1;
	if (*p == ':') {
		char *hint = (char *)p;
		shim_run.slot_hint = (u32)shim_parse(p + 1, 0);
		while (*hint && *hint != '.')
			*hint++ = '.'; /* it was for this exec only, and differs from run to run */
	}
	return join(dir, parse_hex(run));
}

/* A stack lies below its program's environment, and a re-execution has another directory: our three variables together
 * take a multiple of ENV_STEP bytes, by dots at the end of PROPHET_RUN. */
#define ENV_STEP 512

static u32 run_len(u64 lib, u64 dir)
{
	u64 rest = (lib + dir + RUN_TEXT) % ENV_STEP;
	return (u32)(RUN_TEXT + (rest ? ENV_STEP - rest : 0));
}

static void pad_run(char *run, u32 len)
{
	u32 n = (u32)shim_len(run);
	while (n < len)
		run[n++] = '.';
	run[len] = 0;
}

static void put_run(struct text *t, const char *tag, u32 proc, u32 uid, u32 nth, const char *dir)
{
	shim_put(t, "PROPHET_RUN=");
	shim_put(t, tag);
	shim_put(t, ":");
	shim_putd(t, proc);
	shim_put(t, ":");
	shim_putd(t, uid);
	shim_put(t, ":");
	shim_putd(t, nth);
	shim_put(t, ":");
	shim_putd(t, (i64)dir_mark(dir));
}

void shim_trace_env(char *trace, u32 cap, char *run, u32 slot)
{
	char tag[24];
	struct text t;
	shim_text(&t, tag, sizeof tag);
	shim_putx(&t, shim_ctl.tag, 16);
	shim_text(&t, trace, cap);
	shim_put(&t, "PROPHET_TRACE=");
	shim_put(&t, shim_run.dir);
	shim_text(&t, run, RUN_TEXT);
	put_run(&t, tag, shim_run.proc, shim_self.uid, shim_self.nfork, shim_run.dir);
	if (slot != ~0u) {
		shim_put(&t, ":");
		shim_putd(&t, slot);
	}
	pad_run(run, run_len(shim_len(shim_run.lib), shim_len(shim_run.dir)));
}

/* A forked child is in its parent's pid namespace when it sees its parent under the same number, and so is what a child of a recorded
 * process, or that itself, executes, when it has a parent here at all; else it has to look (12 us). The first process of a run looks
 * when there may be somebody to tell: shim_ns_known. */
static void new_process(u32 parent)
{
	u64 by = __atomic_load_n(&shim_ctl.spawner, __ATOMIC_RELAXED);
	shim_run.pid = (u32)sys(SYS_getpid);
	shim_run.born = shim_ticks();
	shim_run.boottime = now_ns(CLOCK_BOOTTIME);
	shim_run.next_rss = shim_run.born + shim_gap * 250; /* 10 ms: most processes never ask */
	shim_run.ppid = (u32)sys(SYS_getppid);
	if (shim_run.ppid != parent || !shim_run.ns) {
		shim_run.ns = shim_run.how == PROPHET_ProcExeced && shim_run.ppid && ((u32)by == shim_run.ppid || (u32)by == shim_run.pid) ? by >> 32 : 0;
		if (shim_run.how != PROPHET_ProcRoot && !shim_run.ns)
			shim_ns_look();
	}
	if (unlikely(shim_replays))
		shim_run.proc = shim_re_proc(shim_run.parent_proc, shim_run.parent_uid, shim_run.parent_nth, shim_run.how);
	else
		shim_run.proc = __atomic_fetch_add(&shim_ctl.nextproc, 1, __ATOMIC_RELAXED);
}

static int wiped_make(void)
{
	const u64 len = (WIPED_ROOM + sizeof(struct thr) + 4095) & ~4095ull;
	long p = sys(SYS_mmap, 0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p < 0 && p > -4096)
		return (int)p;
	sys(SYS_madvise, p, len, MADV_WIPEONFORK);
	shim_wiped = (struct wiped *)p;
	shim_wiped->alive = 1;
	return 0;
}

/* As in the recorded run: programs print and send their environment. */
static char *recorded_run(const char *preload, const char *dir)
{
	static char run[RUN_ROOM];
	struct text t;
	u32 lib = 0;
	while (preload[lib] && preload[lib] != ':' && preload[lib] != ' ')
		lib++;
	shim_text(&t, run, RUN_TEXT);
	put_run(&t, (const char *)shim_index->run, shim_run.parent_proc, shim_run.parent_uid, shim_run.parent_nth, dir);
	pad_run(run, run_len(lib, shim_len(dir)));
	return run;
}

/* Programs copy their environment, and where its strings differ in length the allocator's state does: they are the
 * recorded ones from here on. What children need is in the run. */
static void recorded_environment(char **envp)
{
	struct replay *x = shim_index;
	u32 from, to = 0;
	for (from = 0; envp && envp[from]; from++) {
		char *e = envp[from];
		if (shim_starts(e, "PROPHET_TRACE=")) {
			e = (char *)(shim_run.how == PROPHET_ProcRoot ? x->trace : x->given);
			if (*e)
				shim_run.asked = dir_mark(e + sizeof "PROPHET_TRACE=" - 1);
		} else if (shim_starts(e, "PROPHET_OPTIONS=")) {
			e = (char *)x->options;
		} else if (shim_starts(e, "LD_PRELOAD=") && *x->preload) {
			e = (char *)x->preload;
		} else if (shim_starts(e, "PROPHET_RUN=") && *x->preload) {
			e = recorded_run((const char *)x->preload + sizeof "LD_PRELOAD=" - 1, (const char *)x->given + sizeof "PROPHET_TRACE=" - 1);
		}
		if (*e)
			envp[to++] = e;
	}
	if (envp)
		envp[to] = 0;
}

/* What /proc/self/exe would lead to, for a quarter of what it costs to ask that: the name that was executed, without its
 * links. 0 where it may be another: what is executed for a script has the script's name among its arguments, and the name of
 * what has none in any directory lies in /dev or /proc. */
static int exe_by_name(int argc, char **argv)
{
	const char *name = (const char *)getauxval(AT_EXECFN);
	char *exe = shim_run.exe, room[2][512];
	u64 n, rest, at = 0;
	u32 links = 0;
	int i;
	if (!name || !getauxval(AT_BASE)) /* the dynamic linker itself was executed */
		return 0;
	for (i = 1; i < argc && i < 16 && argv[i]; i++)
		if (shim_same(argv[i], name))
			return 0;
	while (*name) {
		char *link = room[links % 2] + 1;
		long r;
		for (n = 1; name[n] && name[n] != '/'; n++)
			;
		if (*name != '/' || n < 2 || name[1] == '.' || at + n >= sizeof shim_run.exe)
			return 0;
		shim_copy(exe + at, name, n);
		exe[at + n] = 0;
		if (shim_same(exe, "/dev") || shim_same(exe, "/proc"))
			return 0;
		r = sys(SYS_readlinkat, AT_FDCWD, exe, link, sizeof room[0] - 2);
		name += n;
		if (r == -EINVAL) { /* no link */
			at += n;
			continue;
		}
		rest = shim_len(name);
		if (r <= 0 || links++ == 8 || (u64)r + rest >= sizeof room[0] - 2)
			return 0;
		shim_copy(link + r, name, rest + 1);
		if (*link == '/')
			at = 0;
		else
			*--link = '/';
		name = link;
	}
	return 1;
}

static int run_open(char **envp, int argc, char **argv)
{
	int r;
	if (!exe_by_name(argc, argv)) {
		long n = sys(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", shim_run.exe, sizeof shim_run.exe - 1);
		shim_run.exe[n > 0 ? n : 0] = 0;
	}
	shim_run.envp = envp;
	shim_run.slot_hint = ~0u;
	shim_run.pid = (u32)sys(SYS_getpid);
	if ((shim_run.blind = (u32)shim_sandbox_blind()) != 0)
		return -EPERM;
	shim_ring_rate(shim_ticks_per_ms());
	shim_say_where();
	if (wiped_make())
		return -ENOMEM;
	r = try_join();
	if (r == 1)
		r = create(argc, argv);
	if (r)
		return r;
#if SHIM_LEAPS
	shim_leaps = shim_ctl.leaps && !shim_shadowed();
#endif
	shim_stack_rate();
	if (shim_ctl.index[0] && (r = shim_re_boot((const char *)shim_ctl.index)) != 0) {
		shim_say("nothing is re-executed, the index cannot be read", (const char *)shim_ctl.index, r);
		return r;
	}
	if (shim_index)
		recorded_environment(envp);
	new_process(0);
	shim_run.stream_index = shim_run.proc % PROPHET_StreamFiles;
	r = shim_stream_open();
	if (r) {
		shim_say("nothing is recorded, cannot write to", shim_run.dir, r);
		return r;
	}
	shim_run.state = RUN_ON;
	return 0;
}

/* Limits that our files meet raise signals that are not the program's. */
int shim_run_open(char **envp, int argc, char **argv)
{
	u64 mask, before = 0, after = 0;
	int r;
	shim_block(&mask);
	sys(SYS_rt_sigpending, &before, 8);
	r = run_open(envp, argc, argv);
	sys(SYS_rt_sigpending, &after, 8);
	if (after & ~before & SIGSET(SIGXFSZ))
		shim_take_back(SIGSET(SIGXFSZ));
	shim_unblock(&mask);
	return r;
}

void shim_run_forked(void)
{
	shim_run.parent_proc = shim_run.proc;
	shim_run.parent_uid = shim_self.uid;
	shim_run.parent_nth = shim_self.nfork;
	shim_run.how = PROPHET_ProcForked;
	shim_run.forked_from_threads = shim_run.threads > 1;
	shim_run.threads = 1;
	shim_run.exiting = shim_run.left = 0;
	shim_run.own_bytes = shim_run.own_read = 0;
	new_process(shim_run.pid);
}
