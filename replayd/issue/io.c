/* Operations on files, pipes and sockets. Files are those of the prepared directory; descriptors are mapped. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine.h"

enum { NONE, PLAIN, STREAM };
enum { BUFFER = 8 << 20, OUTSIDE_NS = 100000, SLEEP_MORE = 55000, FULL_STEP = 1 << 20 };

/* What a descriptor of the recorded run is here: the process's, and copied with it. */
static struct {
	int fd;
	unsigned char kind;
	unsigned char cloexec;
	u32 file; /* plus 1; 0: none */
} fds[FDS];

static char *buffer; /* of every thread, as nobody looks at what is in it */

static void set(i64 fd, int to, unsigned char kind, bool cloexec)
{
	if (fd < 0 || fd >= FDS) {
		if (to >= 0)
			close(to);
		return;
	}
	if (fds[fd].kind != NONE)
		close(fds[fd].fd);
	fds[fd].fd = to;
	fds[fd].kind = kind;
	fds[fd].cloexec = cloexec;
	fds[fd].file = 0;
}

static int of(u32 fd, unsigned char *kind)
{
	if (fd >= FDS || fds[fd].kind == NONE) {
		*kind = NONE;
		return -1;
	}
	*kind = fds[fd].kind;
	return fds[fd].fd;
}

void io_begin(void)
{
	buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED)
		buffer = NULL;
	else
		memset(buffer, 'x', BUFFER);
	set(0, open("/dev/zero", O_RDONLY | O_CLOEXEC), PLAIN, false);
	set(1, open("/dev/null", O_RDWR | O_CLOEXEC), PLAIN, false);
	set(2, open("/dev/null", O_RDWR | O_CLOEXEC), PLAIN, false);
}

int io_file_name(u32 n, char *name)
{
	return snprintf(name, 16, "f%u", n);
}

static bool special(const struct progfile *f)
{
	return f->flags & (PROPHET_FileNull | PROPHET_FileZero | PROPHET_FileRandom);
}

/* fill gives a file its blocks, or brings a sparse one into the page cache; one that was not there goes out of it again. */
static int fill(int fd, const struct progfile *f)
{
	if (f->flags & PROPHET_FileFull) {
		for (u64 at = 0; at < f->size;) {
			u64 n = f->size - at < FULL_STEP ? f->size - at : FULL_STEP;
			ssize_t r = pwrite(fd, buffer, n, (off_t)at);
			if (r <= 0)
				return errno ? errno : EIO;
			at += (u64)r;
		}
		if (fsync(fd))
			return errno;
	} else if (ftruncate(fd, (off_t)f->size)) {
		return errno;
	}
	if (f->flags & PROPHET_FileCold)
		return posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	char *page = malloc(FULL_STEP);
	if (!page)
		return ENOMEM;
	for (u64 at = 0; at < f->size; at += FULL_STEP)
		if (pread(fd, page, FULL_STEP, (off_t)at) <= 0)
			break;
	free(page);
	return 0;
}

bool io_prepare(void)
{
	char name[16];
	for (u32 i = 0; i < run.head->files; i++) {
		const struct progfile *f = &run.files[i];
		if (!(f->flags & PROPHET_FileExists) || special(f))
			continue;
		io_file_name(i, name);
		if (f->flags & PROPHET_FileDir) {
			if (mkdirat(run.dir, name, 0700)) {
				fail(errno);
				return false;
			}
			continue;
		}
		/* What is read from outside of the cache must have blocks there. */
		struct progfile full = *f;
		if (f->flags & PROPHET_FileCold)
			full.flags |= PROPHET_FileFull;
		int fd = openat(run.dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		int err = fd < 0 ? errno : fill(fd, &full);
		if (fd >= 0)
			close(fd);
		if (err) {
			fail(err);
			return false;
		}
	}
	return true;
}

void io_remove(void)
{
	char name[16];
	for (u32 i = 0; i < run.head->files; i++) {
		io_file_name(i, name);
		if (unlinkat(run.dir, name, 0) && errno == EISDIR)
			unlinkat(run.dir, name, AT_REMOVEDIR);
	}
}

/* open_flags turns the trace's flags, which are amd64's, into this machine's. What would wait or follow is left out. */
static int open_flags(i64 f)
{
	int fl = (int)(f & (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DSYNC | O_SYNC));
	if (f & 0x4000)
		fl |= O_DIRECT;
	if (f & 0x10000)
		fl |= O_DIRECTORY;
	return fl | O_CLOEXEC;
}

static i64 open_file(const struct progop *op)
{
	const struct progfile *f = &run.files[op->b];
	char name[16];
	int fl = open_flags(op->a), fd;
	if (special(f)) {
		fd = open(f->flags & PROPHET_FileNull ? "/dev/null" : f->flags & PROPHET_FileZero ? "/dev/zero" : "/dev/urandom", O_RDWR | O_CLOEXEC);
	} else {
		io_file_name((u32)op->b, name);
		fd = openat(run.dir, name, fl, 0600);
		if (fd < 0 && errno == EINVAL && fl & O_DIRECT)
			fd = openat(run.dir, name, fl & ~O_DIRECT, 0600);
	}
	if (fd < 0)
		return -errno;
	i64 as = op->want < 0 ? -1 : (i64)op->obj;
	set(as, fd, PLAIN, op->a & 02000000);
	if (as >= 0 && as < FDS)
		fds[as].file = (u32)op->b + 1;
	return 0;
}

static void outside(struct self *s, const struct progop *op)
{
	if (op->b > OUTSIDE_NS) {
		s->state->outside += (u64)op->b;
		sleep_for(op->b - SLEEP_MORE);
	} else if (op->b > 0) {
		burn(&run.burn, s->burn, (u64)op->b);
	}
}

/* take reads what home read of a stream: as many bytes, however they come; at its end nothing. */
static i64 take(int fd, i64 want)
{
	i64 got = 0;
	if (want < 0)
		return want;
	for (;;) {
		u64 n = want ? (u64)(want - got) : BUFFER;
		ssize_t r = read(fd, buffer, n < BUFFER ? n : BUFFER);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		got += want ? r : 0;
		if (want && got >= want)
			break;
	}
	return got;
}

static i64 give(int fd, i64 want)
{
	i64 done = 0;
	while (done < want) {
		u64 n = (u64)(want - done);
		ssize_t r = write(fd, buffer, n < BUFFER ? n : BUFFER);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : done;
		done += r;
	}
	return want < 0 ? want : done;
}

/* transfer reads or writes n bytes of a file, in one call where the buffer is large enough for it. */
static i64 transfer(int fd, const struct progop *op)
{
	i64 done = 0;
	while (done < op->a || !done) {
		u64 n = (u64)(op->a - done);
		ssize_t r;
		if (n > BUFFER)
			n = BUFFER;
		switch (op->code) {
		case PROPHET_OpRead:
		case PROPHET_OpTake:
			r = read(fd, buffer, n);
			break;
		case PROPHET_OpWrite:
		case PROPHET_OpGive:
			r = write(fd, buffer, n);
			break;
		case PROPHET_OpPread:
			r = pread(fd, buffer, n, op->b + done);
			break;
		default:
			r = pwrite(fd, buffer, n, op->b + done);
		}
		if (r < 0)
			return done ? done : -errno;
		done += r;
		if (r < (ssize_t)n || !n)
			break;
	}
	return done;
}

static void no_space(const struct progop *op, i64 result)
{
	if ((result == -ENOSPC || result == -EDQUOT || result == -EIO) && result != op->want)
		fail((int)-result);
}

static i64 file_lock(int fd, const struct progop *op)
{
	struct flock l = {.l_type = (short)(op->a & 0xff), .l_whence = (short)op[1].b, .l_start = op->b, .l_len = op[1].a};
	i64 cmd = op->a >> 8;
	if (op->flags & PROPHET_OpState) /* who has it is asked for */
		return fcntl(fd, cmd == 5 ? F_GETLK : F_OFD_GETLK, &l) ? -errno : l.l_type == F_UNLCK ? 0 : -PROPHET_ResultHeld;
	int c = cmd == 6 ? F_SETLK : cmd == 7 ? F_SETLKW : cmd == 37 ? F_OFD_SETLK : F_OFD_SETLKW;
	while (fcntl(fd, c, &l))
		if (errno != EINTR)
			return -(errno == EACCES ? EAGAIN : errno);
	return 0;
}

/* A datagram is sent by whatever socket: whose it is nobody asks. One that has no room any more is dropped there as here. */
static i64 give_gram(const struct progop *op)
{
	ssize_t r = sendto(run.grams[op->obj], buffer, (size_t)op->a, 0, (const struct sockaddr *)&run.gram_at[op->obj], sizeof *run.gram_at);
	return r < 0 ? -errno : op->want;
}

/* take_gram waits for the next one; its socket looks up now and then. */
static i64 take_gram(struct self *s, const struct progop *op)
{
	u32 relax = atomic_load_explicit(&run.shared->relax, memory_order_relaxed);
	while (recv(run.grams[op->obj], buffer, BUFFER, MSG_TRUNC) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (atomic_load_explicit(&run.shared->stop, memory_order_relaxed))
			break;
		if (atomic_load_explicit(&run.shared->relax, memory_order_relaxed) != relax) {
			s->state->forced++;
			s->guessed = true;
			break;
		}
	}
	return op->want;
}

static i64 connect_to(const struct progop *op)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = run.ports[op->a], .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a)) {
		int err = errno;
		if (fd >= 0)
			close(fd);
		return -err;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	set(op->obj, fd, STREAM, false);
	return 0;
}

static i64 accept_from(const struct progop *op)
{
	int fd, one = 1;
	while ((fd = accept4(run.listeners[op->obj], NULL, NULL, SOCK_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	set(op->a, fd, STREAM, false);
	return 0;
}

static void make_pipe(struct self *s, const struct progop *op)
{
	int p[2];
	int bad = op->code == PROPHET_OpPipe ? pipe2(p, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p);
	if (bad) {
		fail(errno);
		return;
	}
	set(op->obj, p[0], STREAM, op->b);
	set(op->a, p[1], STREAM, op->b);
	s->result = 0;
}

static void close_range_of(const struct progop *op)
{
	i64 end = op->b ? op->b - 1 : (i64)op->obj;
	for (i64 i = op->obj; i <= end && i < FDS; i++)
		set(i, -1, NONE, false);
}

static i64 at_name(const struct progop *op)
{
	char a[16], b[16];
	struct stat st;
	int r = 0;
	io_file_name(op->obj, a);
	switch (op->code) {
	case PROPHET_OpStat:
		r = special(&run.files[op->obj]) ? 0 : fstatat(run.dir, a, &st, 0);
		if (!r && op->flags & PROPHET_OpState && !special(&run.files[op->obj]) && S_ISREG(st.st_mode) && !st.st_size)
			return -PROPHET_ResultEmpty;
		break;
	case PROPHET_OpAccess:
		r = special(&run.files[op->obj]) ? 0 : faccessat(run.dir, a, F_OK, 0);
		break;
	case PROPHET_OpUnlink:
		r = unlinkat(run.dir, a, 0);
		break;
	case PROPHET_OpMkdir:
		r = mkdirat(run.dir, a, 0700);
		break;
	case PROPHET_OpRmdir:
		r = unlinkat(run.dir, a, AT_REMOVEDIR);
		break;
	case PROPHET_OpTruncateName: {
		int fd = openat(run.dir, a, O_WRONLY | O_CLOEXEC);
		r = fd < 0 ? -1 : ftruncate(fd, op->a);
		if (fd >= 0)
			close(fd);
		break;
	}
	default:
		io_file_name((u32)op->a, b);
		r = op->code == PROPHET_OpRename ? renameat(run.dir, a, run.dir, b) : linkat(run.dir, a, run.dir, b, 0);
	}
	return r ? -errno : 0;
}

void io_issue(struct self *s, const struct progop *op)
{
	unsigned char kind;
	int fd = of(op->obj, &kind), to;
	struct stat st;
	switch (op->code) {
	case PROPHET_OpOpen:
		s->result = open_file(op);
		no_space(op, s->result);
		return;
	case PROPHET_OpClose:
		close_range_of(op);
		return;
	case PROPHET_OpPipe:
	case PROPHET_OpSocketpair:
		make_pipe(s, op);
		return;
	case PROPHET_OpAccept:
		s->result = accept_from(op);
		return;
	case PROPHET_OpConnect:
		s->result = connect_to(op);
		return;
	case PROPHET_OpGiveGram:
		s->result = give_gram(op);
		return;
	case PROPHET_OpTakeGram:
		s->result = take_gram(s, op);
		return;
	case PROPHET_OpExec:
		seen_forget();
		for (u32 i = 0; i < FDS; i++)
			if (fds[i].kind != NONE && fds[i].cloexec)
				set(i, -1, NONE, false);
		return;
	case PROPHET_OpCloexec:
		if (op->obj < FDS)
			fds[op->obj].cloexec = op->a != 0;
		return;
	case PROPHET_OpStat:
	case PROPHET_OpAccess:
	case PROPHET_OpUnlink:
	case PROPHET_OpMkdir:
	case PROPHET_OpRmdir:
	case PROPHET_OpTruncateName:
	case PROPHET_OpRename:
	case PROPHET_OpLink:
		s->result = at_name(op);
		no_space(op, s->result);
		return;
	case PROPHET_OpSyncfs:
		if (op->obj == ~0u)
			fd = run.dir;
		break;
	}
	if (fd < 0) {
		if (op->code == PROPHET_OpRead || op->code == PROPHET_OpWrite || op->code == PROPHET_OpTake || op->code == PROPHET_OpGive)
			outside(s, op);
		return;
	}
	if (kind == STREAM)
		atomic_store_explicit(&s->state->code, PROPHET_OpTake, memory_order_relaxed);
	switch (op->code) {
	case PROPHET_OpRead:
	case PROPHET_OpTake:
		s->result = kind == STREAM ? take(fd, op->want) : transfer(fd, op);
		break;
	case PROPHET_OpWrite:
	case PROPHET_OpGive:
		s->result = kind == STREAM ? give(fd, op->want) : transfer(fd, op);
		no_space(op, s->result);
		break;
	case PROPHET_OpPread:
		s->result = transfer(fd, op);
		if (fds[op->obj].file && s->result > 0) {
			i64 met = seen_read(fds[op->obj].file - 1, op->b, s->result, op->flags & PROPHET_OpVersion);
			if (op->flags & PROPHET_OpState)
				s->result = met;
		}
		break;
	case PROPHET_OpPwrite:
		s->result = transfer(fd, op);
		no_space(op, s->result);
		if (fds[op->obj].file)
			seen_wrote(fds[op->obj].file - 1, op->b, s->result);
		break;
	case PROPHET_OpLseek:
		s->result = lseek(fd, op->a, (int)op->b) < 0 ? -errno : 0;
		break;
	case PROPHET_OpFsync:
		s->result = fsync(fd) ? -errno : 0;
		break;
	case PROPHET_OpFdatasync:
		s->result = fdatasync(fd) ? -errno : 0;
		break;
	case PROPHET_OpSyncfs:
		s->result = syncfs(fd) ? -errno : 0;
		break;
	case PROPHET_OpSyncrange:
		s->result = sync_file_range(fd, op->a, op->b, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) ? -errno : 0;
		break;
	case PROPHET_OpTruncate:
		s->result = ftruncate(fd, op->a) ? -errno : 0;
		break;
	case PROPHET_OpFallocate:
		s->result = fallocate(fd, 0, op->a, op->b) ? -errno : 0;
		no_space(op, s->result);
		break;
	case PROPHET_OpFstat:
		s->result = fstat(fd, &st) ? -errno : 0;
		break;
	case PROPHET_OpFadvise:
		posix_fadvise(fd, 0, 0, (int)op->a);
		break;
	case PROPHET_OpDup:
		to = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (to >= 0)
			set(op->a, to, kind, op->b);
		if (to >= 0 && op->a >= 0 && op->a < FDS)
			fds[op->a].file = fds[op->obj].file;
		break;
	case PROPHET_OpFlock:
		while ((s->result = flock(fd, (int)op->a) ? -errno : 0) == -EINTR)
			;
		break;
	case PROPHET_OpFcntlLock:
		s->result = file_lock(fd, op);
		break;
	case PROPHET_OpSendfile:
	case PROPHET_OpCopyrange: {
		unsigned char other;
		to = of((u32)op->a, &other);
		if (to >= 0 && op->b > 0)
			s->result =
			    op->code == PROPHET_OpSendfile ? sendfile(to, fd, NULL, (size_t)op->b) : copy_file_range(fd, NULL, to, NULL, (size_t)op->b, 0);
		break;
	}
	case PROPHET_OpShutdown:
		shutdown(fd, (int)op->a);
		break;
	}
}
