/* See fdtab.h. */
#include "fdtab.h"
#include "object.h"
#include "run.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct fdinfo *shim_fd_pages[FD_PAGES];

static struct fdinfo *make(int fd)
{
	struct fdinfo **at, *was = 0;
	long p;
	if ((u32)fd >= FDS_PER_PAGE * FD_PAGES)
		return 0;
	at = &shim_fd_pages[(u32)fd / FDS_PER_PAGE];
	if (!__atomic_load_n(at, __ATOMIC_ACQUIRE)) {
		p = sys(SYS_mmap, 0, FDS_PER_PAGE * sizeof **at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p < 0 && p > -4096)
			return 0;
		if (!__atomic_compare_exchange_n(at, &was, (struct fdinfo *)p, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			sys(SYS_munmap, p, FDS_PER_PAGE * sizeof **at);
	}
	return *at + (u32)fd % FDS_PER_PAGE;
}

static void classify(struct fdinfo *i, const struct stat *st)
{
	u32 in = shim_ctl.inputs == PROPHET_InputsDefault ? PROPHET_InputsFull : shim_ctl.inputs;
	u32 files = shim_ctl.inputs == PROPHET_InputsDefault ? PROPHET_InputsHash : shim_ctl.inputs;
	i->out = shim_ctl.inputs ? PROPHET_InputsHash : 0;
	if (S_ISREG(st->st_mode)) {
		i->kind = FD_FILE;
		i->in = (u8)files;
	} else if (S_ISDIR(st->st_mode)) {
		i->kind = FD_DIR;
		i->in = (u8)files;
	} else if (S_ISSOCK(st->st_mode)) {
		i->kind = FD_SOCKET;
		i->in = (u8)in;
	} else if (S_ISFIFO(st->st_mode)) {
		i->kind = FD_PIPE;
		i->in = (u8)in;
	} else if (S_ISCHR(st->st_mode)) {
		u32 major = major(st->st_rdev), minor = minor(st->st_rdev);
		if (major == 1 && (minor == 3 || minor == 5 || minor == 7)) { /* null, zero, full: nothing to learn */
			i->kind = FD_NULL;
			i->in = i->out = 0;
		} else {
			i->kind = major == 1 && (minor == 8 || minor == 9) ? FD_RANDOM : FD_TTY;
			i->in = (u8)in;
		}
	} else {
		i->kind = FD_ANON;
		i->in = (u8)in;
	}
}

static u64 look(struct thr *t, int fd, const char *path)
{
	struct stat st;
	struct fdinfo *i;
	char name[1024], at[32];
	struct text s;
	long r;
	if (fd < 0 || sys(SYS_fstat, fd, &st) != 0 || !(i = make(fd)))
		return 0;
	classify(i, &st);
	if (!path) {
		shim_text(&s, at, sizeof at);
		shim_put(&s, "/proc/self/fd/");
		shim_putd(&s, fd);
		r = sys(SYS_readlinkat, AT_FDCWD, at, name, sizeof name - 1);
		name[r > 0 ? r : 0] = 0;
		path = name;
	}
	i->obj = shim_object_new(t, PROPHET_ObjFd, (u64)fd, path);
	return i->obj;
}

u64 shim_fd_slow(struct thr *t, int fd)
{
	return look(t, fd, 0);
}

void shim_fd_new(struct thr *t, int fd, const char *path)
{
	look(t, fd, path);
}

void shim_fd_same(struct thr *t, int fd, int of)
{
	struct fdinfo *a = shim_fdinfo(of), *b = make(fd);
	if (!b)
		return;
	if (!a || !a->obj) {
		look(t, fd, 0);
		return;
	}
	b->kind = a->kind;
	b->in = a->in;
	b->out = a->out;
	b->obj = shim_object_new(t, PROPHET_ObjFd, (u64)fd, "dup");
}

void shim_fd_gone(int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	if (i)
		i->obj = 0;
}

void shim_fd_written(int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	if (i && i->kind == FD_FILE && shim_ctl.inputs == PROPHET_InputsDefault)
		i->in = PROPHET_InputsFull;
}

void shim_data_slow(struct ev *e, u32 policy, const void *buf, u64 len)
{
	if (policy == PROPHET_InputsHash) {
		e->hash = shim_hash64(buf, len, 0);
		e->data_kind = DATA_HASH;
		return;
	}
	if (len > PROPHET_ChunkMax) {
		len = PROPHET_ChunkMax;
		e->note |= PROPHET_NoteCut;
	}
	e->data = buf;
	e->data_len = len;
	if (len <= PROPHET_InlineData) {
		e->data_kind = DATA_INLINE;
	} else {
		e->hash = shim_data_chunk(e->t, buf, len);
		e->data_kind = DATA_BIG;
	}
}
