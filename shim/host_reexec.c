/* Re-executions that a host starts: one replayd each, whose standard error is kept in memory, as it ends with what
 * replayd says about the run. */
#include "host.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define REPORT (64u << 10)
#define FLAGS_MAX 4096
#define GRACE_MS 2000
#define ANSWER_MAX (16u << 20) /* as in replayd/proto, */
#define REQUEST_MAX (64u << 10)
#define ANSWER_MS 10000

struct prophet_reexec {
	struct room self, report, argv, line, request;
	int pid, ended, status, waited, err, sock;
	u64 have, line_len, asked; /* bytes of line; of the answer in it; requests so far */
	char dir[HOST_PATH];
	char socket[sizeof((struct sockaddr_un *)0)->sun_path];
	struct text error;
	char error_text[512];
};

static HOST int refuse(prophet_reexec *x, int error, const char *what, const char *about)
{
	shim_text(&x->error, x->error_text, sizeof x->error_text);
	shim_put(&x->error, what);
	shim_put(&x->error, about);
	shim_put(&x->error, ": ");
	shim_put(&x->error, prophet_reason(error));
	return error;
}

/* replayd --trace T [--control SOCKET] FLAGS… [-- ARGV…] */
static HOST const char **command(prophet_reexec *x, const char *replayd, const char *trace, const char *const *flags, const char *const *argv)
{
	u64 nf = 0, na = 0, i, k = 0;
	const char **out;
	while (flags && flags[nf] && nf < FLAGS_MAX)
		nf++;
	while (argv && argv[na])
		na++;
	out = host_grow(&x->argv, (nf + na + 8) * sizeof *out);
	if (!out)
		return 0;
	out[k++] = replayd;
	out[k++] = "--trace";
	out[k++] = trace;
	if (*x->socket) {
		out[k++] = "--control";
		out[k++] = x->socket;
	}
	for (i = 0; i < nf; i++)
		out[k++] = flags[i];
	if (argv)
		out[k++] = "--";
	for (i = 0; i < na; i++)
		out[k++] = argv[i];
	out[k] = 0;
	return out;
}

EXPORT HOST int prophet_reexec_start(const char *trace, const char *const *argv, const struct prophet_reexec_options *given, prophet_reexec **out)
{
	struct prophet_reexec_options o = {sizeof o, 0, -1, -1, 0, 0, 0, 0};
	struct room self = {0, 0};
	struct child c = {0, -1, -1, -1, 0, 0};
	char replayd[HOST_PATH];
	const char **args;
	prophet_reexec *x;
	struct text t;
	int r;
	if (!trace || !out || (given && given->size < 8))
		return -EINVAL;
	*out = x = host_grow(&self, sizeof *x);
	if (!x)
		return -ENOMEM;
	x->self = self;
	x->err = x->sock = -1;
	shim_text(&x->error, x->error_text, sizeof x->error_text);
	if (given)
		shim_copy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	if (o.replayd) {
		shim_text(&t, replayd, sizeof replayd);
		shim_put(&t, o.replayd);
	} else {
		r = host_find(replayd, "replayd", "PROPHET_REPLAYD");
		if (r)
			return refuse(x, r, "replayd", "");
	}
	if (o.control) {
		r = host_temporary(x->dir);
		if (r) {
			x->dir[0] = 0;
			return refuse(x, r, "no directory can be made for the control socket", "");
		}
		shim_text(&t, x->socket, sizeof x->socket);
		shim_put(&t, x->dir);
		shim_put(&t, "/control");
		if (t.cut) {
			x->socket[0] = 0;
			return refuse(x, -ENAMETOOLONG, "the control socket in ", x->dir);
		}
	}
	args = command(x, replayd, trace, o.flags, argv);
	if (!args)
		return refuse(x, -ENOMEM, "the command", "");
	x->err = (int)sys(SYS_memfd_create, "prophet-report", MFD_CLOEXEC);
	if (x->err < 0)
		return refuse(x, x->err, "memory for the report", "");
	/* Two writers, replayd and the program, each at the end. */
	sys(SYS_fcntl, x->err, F_SETFL, O_APPEND);
	c.in = o.in;
	c.out = o.out;
	c.err = x->err;
	c.dir = o.dir;
	c.env = o.env;
	r = host_spawn(&c, replayd, args);
	if (r)
		return refuse(x, r, replayd, "");
	x->pid = c.pid;
	return 0;
}

static HOST void nap(i64 ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	sys(SYS_nanosleep, &ts, 0);
}

static HOST i64 now_ms(void)
{
	struct timespec ts;
	sys(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

EXPORT HOST const char *prophet_reexec_report(prophet_reexec *x)
{
	char *b;
	i64 size, from, n;
	if (!x || x->err < 0)
		return "";
	b = host_grow(&x->report, REPORT + 1);
	size = sys(SYS_lseek, x->err, 0, SEEK_END);
	if (!b || size < 0)
		return "";
	from = size > REPORT ? size - REPORT : 0;
	n = sys(SYS_pread64, x->err, b, REPORT, from);
	b[n < 0 ? 0 : n] = 0;
	return b;
}

/* The last line "replayd: identical: E events, T threads, P processes" of the report. */
static HOST int identical(prophet_reexec *x, u64 n[3])
{
	static const char words[][12] = {" events, ", " threads, ", " processes"};
	const char *s = prophet_reexec_report(x), *end;
	int found = 0, i;
	for (; *s; s++) {
		u64 v[3];
		if (!shim_starts(s, "replayd: identical: "))
			continue;
		for (s += 20, i = 0; i < 3; i++) {
			v[i] = shim_parse(s, &end);
			if (end == s)
				break;
			s = end;
			if (shim_starts(s, words[i]))
				s += shim_len(words[i]);
			else if (v[i] == 1 && i < 2 && shim_starts(s, i ? " thread, " : " event, "))
				s += i ? 9 : 8;
			else if (v[i] != 1 || i < 2 || !shim_starts(s, " process"))
				break;
		}
		if (i == 3) {
			found = 1;
			shim_copy(n, v, sizeof v);
		}
		s--;
	}
	return found;
}

EXPORT HOST int prophet_reexec_wait(prophet_reexec *x, int timeout_ms, struct prophet_result *out)
{
	struct prophet_result e;
	u64 n[3] = {0, 0, 0};
	i64 end, step = 1;
	int r;
	if (!x || !x->pid || (out && out->size < 8))
		return -EINVAL;
	for (end = timeout_ms < 0 ? 0 : now_ms() + timeout_ms; !x->ended;) {
		r = host_wait(x->pid, timeout_ms < 0 ? 0 : WNOHANG, &x->status);
		if (r < 0) {
			x->ended = 1;
			x->waited = r;
		} else if (r) {
			x->ended = 1;
		} else {
			i64 left = end - now_ms();
			if (left <= 0)
				return 0;
			nap(step < left ? step : left);
			step = step < 10 ? step + 1 : step;
		}
	}
	if (x->waited)
		return refuse(x, x->waited, "the exit status of replayd", "");
	if (!out)
		return 1;
	shim_zero(&e, sizeof e);
	e.size = out->size < sizeof e ? out->size : (u32)sizeof e;
	e.status = WIFEXITED(x->status) ? WEXITSTATUS(x->status) : -1;
	e.signal = WIFSIGNALED(x->status) ? WTERMSIG(x->status) : 0;
	e.identical = e.status != 125 && identical(x, n);
	if (e.identical) {
		e.events = n[0];
		e.threads = (u32)n[1];
		e.processes = (u32)n[2];
	}
	shim_copy(out, &e, e.size);
	return 1;
}

EXPORT HOST const char *prophet_reexec_error(const prophet_reexec *x)
{
	return x ? x->error_text : "";
}

EXPORT HOST int prophet_reexec_pid(const prophet_reexec *x)
{
	return x ? x->pid : -EINVAL;
}

EXPORT HOST const char *prophet_reexec_socket(const prophet_reexec *x)
{
	return x ? x->socket : "";
}

static HOST void hang_up(prophet_reexec *x)
{
	if (x->sock >= 0)
		sys(SYS_close, x->sock);
	x->sock = -1;
	x->have = x->line_len = 0;
}

/* ms until then; -1 for ever. */
static HOST int left(i64 end)
{
	i64 n;
	if (end < 0)
		return -1;
	n = end - now_ms();
	return n < 0 ? 0 : (int)n;
}

static HOST int ready(prophet_reexec *x, short events, i64 end)
{
	struct pollfd p = {x->sock, events, 0};
	int ms = left(end);
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	long r;
	do
		r = sys(SYS_ppoll, &p, 1, ms < 0 ? 0 : &ts, 0, 8);
	while (r == -EINTR);
	return r < 0 ? (int)r : r ? 0 : -ETIMEDOUT;
}

/* The next line of replayd, ended by NUL: the first line_len bytes of x->line. */
static HOST int next_line(prophet_reexec *x, i64 end)
{
	u8 *b = x->line.at;
	u64 i = 0;
	long n;
	int r;
	x->have -= x->line_len;
	if (x->have)
		__builtin_memmove(b, b + x->line_len, x->have);
	x->line_len = 0;
	for (;;) {
		for (; i < x->have; i++)
			if (b[i] == '\n') {
				b[i] = 0;
				x->line_len = i + 1;
				return 0;
			}
		if (x->have >= ANSWER_MAX)
			return -EMSGSIZE;
		b = host_grow(&x->line, x->have + 4096);
		if (!b)
			return -ENOMEM;
		r = ready(x, POLLIN, end);
		if (r)
			return r;
		n = sys(SYS_recvfrom, x->sock, b + x->have, x->line.bytes - x->have, MSG_DONTWAIT, 0, 0);
		if (n == 0)
			return -EPIPE;
		if (n < 0 && n != -EAGAIN && n != -EINTR)
			return n == -ECONNRESET ? -EPIPE : (int)n;
		x->have += n > 0 ? (u64)n : 0;
	}
}

/* Connects once replayd listens, and hears its first line. */
static HOST int dial(prophet_reexec *x, i64 end)
{
	struct sockaddr_un a = {AF_UNIX, {0}};
	int r;
	shim_copy(a.sun_path, x->socket, sizeof a.sun_path);
	for (;;) {
		x->sock = (int)sys(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (x->sock < 0)
			return x->sock;
		r = (int)sys(SYS_connect, x->sock, &a, sizeof a);
		if (!r)
			return next_line(x, end);
		hang_up(x);
		if (r != -ENOENT && r != -ECONNREFUSED)
			return r;
		r = prophet_reexec_wait(x, 0, 0);
		if (r)
			return -EPIPE;
		if (!left(end))
			return -ETIMEDOUT;
		nap(2);
	}
}

static HOST int send_all(prophet_reexec *x, const char *s, u64 n, i64 end)
{
	while (n) {
		long r = sys(SYS_sendto, x->sock, s, n, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
		if (r == -EAGAIN) {
			r = ready(x, POLLOUT, end);
			if (r)
				return (int)r;
		} else if (r < 0 && r != -EINTR) {
			return (int)r;
		}
		if (r > 0) {
			s += r;
			n -= (u64)r;
		}
	}
	return 0;
}

/* What replayd says of a request that it refuses. */
static HOST int refused(prophet_reexec *x, const char *line)
{
	const char *s = host_json(line, 0, "error");
	shim_text(&x->error, x->error_text, sizeof x->error_text);
	if (!s || *s != '"')
		shim_put(&x->error, "replayd's answer is none");
	else
		for (s++; *s && *s != '"'; s++) {
			s += *s == '\\' && s[1];
			shim_putn(&x->error, s, 1);
		}
	return -EPROTO;
}

EXPORT HOST int prophet_reexec_ask(prophet_reexec *x, const char *request, int timeout_ms, const char **answer)
{
	const char *line, *ok;
	struct text t;
	i64 end;
	int r = 0;
	if (!x || !x->pid || !request || *request != '{')
		return -EINVAL;
	if (!*x->socket)
		return refuse(x, -EINVAL, "it was started without control", "");
	end = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
	if (!host_grow(&x->request, REQUEST_MAX))
		return refuse(x, -ENOMEM, "the request", "");
	shim_text(&t, x->request.at, REQUEST_MAX);
	shim_put(&t, "{\"id\":");
	shim_putd(&t, (i64)++x->asked);
	shim_put(&t, ",");
	shim_put(&t, request + 1);
	shim_put(&t, "\n");
	if (t.cut)
		return refuse(x, -EMSGSIZE, "the request", "");
	if (x->sock < 0)
		r = dial(x, end);
	if (!r)
		r = send_all(x, t.buf, t.len, end);
	if (!r)
		r = next_line(x, end);
	if (r) {
		hang_up(x); /* a late answer must not be taken for that of the next request */
		return refuse(x, r, "asking replayd", "");
	}
	line = x->line.at;
	if (answer)
		*answer = line;
	ok = host_json(line, 0, "ok");
	return ok && shim_starts(ok, "true") ? 0 : refused(x, line);
}

EXPORT HOST int prophet_reexec_status(prophet_reexec *x, const char **answer)
{
	return prophet_reexec_ask(x, "{\"do\":\"status\"}", ANSWER_MS, answer);
}

EXPORT HOST int prophet_reexec_pause(prophet_reexec *x)
{
	return prophet_reexec_ask(x, "{\"do\":\"pause\"}", ANSWER_MS, 0);
}

EXPORT HOST int prophet_reexec_resume(prophet_reexec *x)
{
	return prophet_reexec_ask(x, "{\"do\":\"resume\"}", ANSWER_MS, 0);
}

/* {"do":DO,"thread":THREAD,NAME:VALUE} */
static HOST int ask_thread(prophet_reexec *x, const char *what, const char *thread, const char *name, u64 value)
{
	char room[1024];
	struct text t;
	shim_text(&t, room, sizeof room);
	shim_put(&t, "{\"do\":\"");
	shim_put(&t, what);
	if (thread) {
		shim_put(&t, "\",\"thread\":");
		shim_putjson(&t, thread);
	} else {
		shim_put(&t, "\"");
	}
	shim_put(&t, ",\"");
	shim_put(&t, name);
	shim_put(&t, "\":");
	shim_putd(&t, (i64)(value & ~(1ull << 63)));
	shim_put(&t, "}");
	return t.cut ? -EINVAL : prophet_reexec_ask(x, room, -1, 0);
}

EXPORT HOST int prophet_reexec_step(prophet_reexec *x, const char *thread, u64 count)
{
	return ask_thread(x, "step", thread, "count", count);
}

EXPORT HOST int prophet_reexec_run_to(prophet_reexec *x, const char *thread, u64 event)
{
	return thread ? ask_thread(x, "run-to", thread, "event", event) : -EINVAL;
}

EXPORT HOST void prophet_reexec_free(prophet_reexec *x)
{
	struct room self;
	if (!x)
		return;
	if (x->pid && !x->ended && !prophet_reexec_wait(x, 0, 0)) {
		sys(SYS_kill, x->pid, SIGTERM);
		if (!prophet_reexec_wait(x, GRACE_MS, 0)) {
			sys(SYS_kill, x->pid, SIGKILL);
			prophet_reexec_wait(x, -1, 0);
		}
	}
	if (*x->dir)
		host_remove(x->dir);
	if (x->err >= 0)
		sys(SYS_close, x->err);
	host_drop(&x->report);
	if (x->sock >= 0)
		sys(SYS_close, x->sock);
	host_drop(&x->argv);
	host_drop(&x->line);
	host_drop(&x->request);
	self = x->self;
	host_drop(&self);
}
