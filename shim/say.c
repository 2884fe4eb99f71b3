/* The one line on standard error that a failure of ours costs, and nothing else: no signal, no wait, and never into a
 * file that the program opened under the same number. */
#include "run_own.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

static struct ours errs = {.fd = -1};

void shim_say_where(void)
{
	struct stat st;
	if (sys(SYS_fstat, 2, &st) == 0) {
		errs.fd = 2;
		errs.dev = st.st_dev;
		errs.ino = st.st_ino;
	} else {
		shim_run.said = 1000; /* nothing to say it on */
	}
}

/* A signal that one of our writes raised is not the program's: SIGXFSZ and SIGPIPE go to the thread that wrote, so with
 * all signals blocked they wait, and are taken back. */
void shim_take_back(u64 set)
{
	struct timespec now = {0, 0};
	sys(SYS_rt_sigtimedwait, &set, 0, &now, 8);
}

/* Nobody may read standard error, or nobody may read it any more. */
static void say_quietly(const char *b, u64 len)
{
	struct pollfd out = {2, POLLOUT, 0};
	struct timespec now = {0, 0};
	u64 mask, waiting = 0, raised = 0;
	long r;
	if (sys(SYS_ppoll, &out, 1, &now, 0, 8) != 1 || !(out.revents & POLLOUT))
		return;
	shim_block(&mask);
	sys(SYS_rt_sigpending, &waiting, 8);
	r = sys(SYS_write, 2, b, len);
	if (r == -EPIPE)
		raised = SIGSET(SIGPIPE);
	else if (r == -EFBIG)
		raised = SIGSET(SIGXFSZ);
	if (raised & ~waiting)
		shim_take_back(raised);
	shim_unblock(&mask);
}

/* strerror may allocate and depends on the locale. */
static void put_error(struct text *t, i64 err)
{
	switch (err) {
	case ENOSPC:
		shim_put(t, "no space left");
		break;
	case EDQUOT:
		shim_put(t, "quota exceeded");
		break;
	case EROFS:
		shim_put(t, "read-only file system");
		break;
	case EACCES:
	case EPERM:
		shim_put(t, "not permitted");
		break;
	case ENOENT:
	case ESTALE:
		shim_put(t, "it is not there");
		break;
	case ENOTDIR:
		shim_put(t, "not a directory");
		break;
	case EFBIG:
		shim_put(t, "file too large");
		break;
	case EMFILE:
	case ENFILE:
		shim_put(t, "too many open files");
		break;
	case ENAMETOOLONG:
		shim_put(t, "name too long");
		break;
	default:
		shim_put(t, "error ");
		shim_putd(t, err);
	}
}

void shim_say(const char *what, const char *about, i64 err)
{
	char b[512];
	struct text t;
	if (shim_run.said >= 4 || (errs.ino && !shim_ours_same(&errs)))
		return;
	shim_run.said++;
	shim_text(&t, b, sizeof b);
	shim_put(&t, "prophet: ");
	shim_put(&t, what);
	if (about) {
		shim_put(&t, " ");
		shim_put(&t, about);
	}
	if (err) {
		shim_put(&t, ": ");
		put_error(&t, err < 0 ? -err : err);
	}
	if (t.cut)
		t.len = sizeof b - 2;
	b[t.len++] = '\n';
	say_quietly(b, t.len);
}
