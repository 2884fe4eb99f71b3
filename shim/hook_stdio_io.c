/* What the C library's streams ask of the kernel. Their reads and writes are internal calls that no wrapper sees; but
 * each goes through the stream's table of functions, and those tables are data: shim_stdio_boot puts our functions in the
 * place of glibc's in all of them. glibc checks only that a table lies among its own, which stays true.
 *
 * Where the layout is not the expected one nothing is touched, and the trace says that streams are unseen.
 */
#include "wrap_all.h"
#include "channel.h"
#include "streams.h"
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define REAL_IO(name, type) ((type)shim_real(CALL_##name))
typedef ssize_t (*read_fn)(FILE *, void *, ssize_t);
typedef ssize_t (*write_fn)(FILE *, const void *, ssize_t);
typedef off_t (*seek_fn)(FILE *, off_t, int);
typedef int (*close_fn)(FILE *);
typedef int (*stat_fn)(FILE *, void *);

/* No points of cancellation: so the C library opens what it reads for itself. Programs that ask for it are seen to. */
#define NOT_CANCELLED 2

static u64 stream_object(struct ev *e, FILE *fp)
{
	u64 unopened = unlikely(shim_replays) && e->call == CALL__IO_file_seek ? shim_fd_unopened(e->t) : 0;
	if (unopened)
		return unopened;
	if (unlikely(shim_replays) && fp->_flags2 & NOT_CANCELLED)
		shim_fd_inner(e->t, fp->_fileno);
	return shim_obj_fd(e->t, fp->_fileno);
}

static LEAP ssize_t io_read(FILE *fp, void *buf, ssize_t n)
{
	struct ev e;
	ssize_t r;
	int fd = fp->_fileno;
	if (!shim_begin_fd(&e, CALL__IO_file_read, CLASS_disk, CALLER(), fd))
		return REAL_IO(_IO_file_read, read_fn)(fp, buf, n);
	r = REAL_IO(_IO_file_read, read_fn)(fp, buf, n);
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(r);
	e.obj = stream_object(&e, fp);
	e.f1 = (u64)n;
	shim_data(&e, fd, buf, r);
	shim_done(&e);
	return r;
}

static LEAP ssize_t io_write(FILE *fp, const void *buf, ssize_t n)
{
	struct ev e;
	ssize_t r;
	int fd = fp->_fileno;
	if (!shim_begin_out(&e, CALL__IO_file_write, CLASS_disk, CALLER(), fd, n > 0 ? (u64)n : 0))
		return REAL_IO(_IO_file_write, write_fn)(fp, buf, n);
	r = REAL_IO(_IO_file_write, write_fn)(fp, buf, n);
	shim_end(&e, WRAP_BLOCK);
	e.ret = r <= 0 && n > 0 ? -(i64)errno : r; /* what was written before an error counts */
	e.obj = shim_obj_fd(e.t, fd);
	e.f1 = (u64)n;
	shim_wrote(&e, fd, buf, r);
	shim_done(&e);
	return r;
}

static LEAP off_t io_seek(FILE *fp, off_t off, int whence)
{
	struct ev e;
	off_t r;
	if (unlikely(shim_replays))
		shim_re_appends(fp);
	if (!shim_begin(&e, CALL__IO_file_seek, CLASS_disk, CALLER()))
		return REAL_IO(_IO_file_seek, seek_fn)(fp, off, whence);
	r = REAL_IO(_IO_file_seek, seek_fn)(fp, off, whence);
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	e.obj = stream_object(&e, fp);
	e.f1 = (u64)off;
	e.f2 = (u64)(u32)whence;
	shim_done(&e);
	return r;
}

static LEAP int io_close(FILE *fp)
{
	struct ev e;
	int r, fd = fp->_fileno;
	if (!shim_begin(&e, CALL__IO_file_close, CLASS_disk, CALLER())) {
		shim_fd_gone(fd);
		return REAL_IO(_IO_file_close, close_fn)(fp);
	}
	e.obj = shim_fd_known(fd);
	shim_fd_gone(fd);
	r = REAL_IO(_IO_file_close, close_fn)(fp);
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(r);
	e.f1 = (u64)(i64)fd;
	shim_done(&e);
	return r;
}

static LEAP int io_stat(FILE *fp, void *st)
{
	u8 room[INPUT_ROOM];
	struct ev e;
	int r;
	if (!shim_begin(&e, CALL__IO_file_stat, CLASS_disk, CALLER()))
		return REAL_IO(_IO_file_stat, stat_fn)(fp, st);
	e.inbuf = room;
	r = REAL_IO(_IO_file_stat, stat_fn)(fp, st);
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	e.obj = stream_object(&e, fp);
	shim_input_stat(&e, r, st);
	shim_done(&e);
	return r;
}

/* The part of the C library that is made read-only once it is relocated, when it holds `inside`. */
static int relro(u64 inside, u64 *low, u64 *high)
{
	u64 page = getauxval(AT_PAGESZ);
	const struct link_map *m;
	for (m = _r_debug.r_map; m; m = m->l_next) {
		const ElfW(Ehdr) *h = (const void *)m->l_addr;
		const ElfW(Phdr) * p;
		u32 i;
		/* A shared object begins with its header; the program itself may not, and has no address here. */
		if (!m->l_addr || m->l_addr > inside || inside - m->l_addr > 64u << 20 || __builtin_memcmp(h->e_ident, ELFMAG, SELFMAG))
			continue;
		p = (const void *)(m->l_addr + h->e_phoff);
		for (i = 0; i < h->e_phnum; i++) {
			*low = (m->l_addr + p[i].p_vaddr) & ~(page - 1);
			*high = (m->l_addr + p[i].p_vaddr + p[i].p_memsz) & ~(page - 1);
			if (p[i].p_type == PT_GNU_RELRO && inside >= *low && inside < *high)
				return 1;
		}
	}
	return 0;
}

/* Of a table (struct _IO_jump_t): where read stands; write, seek, close and stat follow. */
#define AT_READ 14
#define TABLES_SPAN 4096 /* all tables lie together, within a few KiB */

static void *theirs(u32 call)
{
	return shim_replays ? shim_true(call) : shim_real(call);
}

static int patch(void)
{
	const struct {
		void *theirs, *ours;
	} swap[] = {
	    {theirs(CALL__IO_file_read), (void *)io_read},   {theirs(CALL__IO_file_write), (void *)io_write}, {theirs(CALL__IO_file_seek), (void *)io_seek},
	    {theirs(CALL__IO_file_close), (void *)io_close}, {theirs(CALL__IO_file_stat), (void *)io_stat},
	};
	void **narrow = shim_find("_IO_file_jumps", 0), **wide = shim_find("_IO_wfile_jumps", 0), **w;
	u64 low, high, from, to, page = getauxval(AT_PAGESZ), first = ~0ull, last = 0;
	u32 i;
	if (!narrow || !wide || !relro((u64)narrow, &low, &high) || (u64)wide < low || (u64)wide >= high)
		return 0;
	for (i = 0; i < 5; i++) {
		if (narrow[AT_READ + i] != swap[i].theirs || wide[AT_READ + i] != swap[i].theirs)
			return 0;
		first = (u64)swap[i].theirs < first ? (u64)swap[i].theirs : first;
		last = (u64)swap[i].theirs > last ? (u64)swap[i].theirs : last;
	}
	from = (u64)(narrow < wide ? narrow : wide) - TABLES_SPAN;
	to = (u64)(narrow < wide ? wide : narrow) + TABLES_SPAN;
	from = from < low ? low : from & ~(page - 1);
	to = to > high ? high : (to + page - 1) & ~(page - 1);
	if (to > high)
		to = high;
	if (sys(SYS_mprotect, from, to - from, PROT_READ | PROT_WRITE) != 0)
		return 0;
	for (w = (void **)from; w < (void **)to; w++)
		for (i = 0; i < 5 && (u64)*w - first <= last - first; i++)
			if (*w == swap[i].theirs)
				__atomic_store_n(w, swap[i].ours, __ATOMIC_RELAXED);
	sys(SYS_mprotect, from, to - from, PROT_READ);
	return 1;
}

void shim_stdio_boot(struct thr *t)
{
	static const char what[] = "streams: the C library's tables are not as known";
	u8 b[96], *p;
	if (patch())
		return;
	p = put_v(b, PROPHET_TagUnseen);
	p = put_v(p, PROPHET_UnseenStdio);
	p = put_v(p, 0);
	p = put_v(p, sizeof what - 1);
	shim_copy(p, what, sizeof what - 1);
	shim_record(t, b, (u32)(p - b) + sizeof what - 1);
}
