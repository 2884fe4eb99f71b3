package tests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"prophet/runtime/replay"
)

// processes are scripts that make processes, wait for them and send signals. Each is recorded once and re-executed ten
// times.
var processes = map[string]string{
	"pipelines": `for i in 1 2 3 4 5; do seq 1 $((i * 1000)) | sort -rn | head -3 | tr '\n' ' '; echo "$(printf %s $i | wc -c) ${PIPESTATUS[*]}"; done
yes | head -n 1000 | wc -l; echo ${PIPESTATUS[*]}; (echo a; echo b >&2) 2>&1 | sort; x=$(false; echo $?); echo $x`,
	"jobs": `(sleep 0.05; exit 3) & p=$!; (exit 4) & q=$!; wait $q; echo $?; wait $p; echo $?; sleep 5 & r=$!; kill $r; wait $r; echo $?
trap 'echo usr1' USR1; kill -USR1 $$; (kill -USR1 $$); sh -c 'kill -USR1 $PPID'; echo $$ done; trap 'echo bye' EXIT`,
	"timeout": `timeout 0.2 sleep 5; echo $?; timeout 0.1 sh -c 'while :; do :; done'; echo $?
timeout -s KILL 0.1 sh -c 'trap "" TERM; while :; do :; done'; echo $?`,
	"xargs": `seq 1 24 | xargs -P 4 -n 1 sh -c 'echo $(($0 * 3)) > out.$0'; cat out.* | sort -n | tr '\n' ' '`,
	"dash":  `dash -c 'i=0; while [ $i -lt 30 ]; do (exit $i); [ $? = $i ] || echo bad; i=$((i+1)); done; set -- $(seq 5); echo $# $$; kill -9 $$'; echo $?`,
	// Its signals come while it waits for them: where between two calls one came is not known.
	"perl": `perl -e '
use POSIX;
use Time::HiRes qw(ualarm);
my ($alarms, $ended, $looks) = (0, 0, 0);
my $both = POSIX::SigSet->new(SIGALRM, SIGCHLD);
sigprocmask(SIG_BLOCK, $both);
$SIG{ALRM} = sub { $alarms++ };
$SIG{CHLD} = sub { while ((my $p = waitpid(-1, 1)) > 0) { $ended++ } };
ualarm(2000, 2000);
for (1..5) { my $p = fork; exit 3 if !$p }
while ($ended < 5 || $alarms < 3) { sigsuspend(POSIX::SigSet->new); $looks++ }
ualarm(0);
print "$ended ended, $alarms alarms, looked $looks times\n";
$SIG{CHLD} = "DEFAULT";
$SIG{ALRM} = "IGNORE";
sigprocmask(SIG_UNBLOCK, $both);
local $SIG{USR1} = sub { print "usr1\n" };
kill USR1 => $$;
my $o = ` + "`echo from sh`" + `;
print $o;
system("exit 7");
print $? >> 8, "\n"'`,
	"subprocess": `cat > s.py <<'P'
import os, subprocess
print(subprocess.run(['sh', '-c', 'echo hi; exit 3'], capture_output=True))
p = [subprocess.Popen(['sh', '-c', 'sleep 0.0%d; exit %d' % (i, i)]) for i in range(1, 5)]
print([q.wait() for q in p])
p = subprocess.Popen(['sleep', '5'])
p.terminate()
print(p.pid, p.wait())
try:
    subprocess.run(['sleep', '5'], timeout=0.1)
except subprocess.TimeoutExpired:
    print('timed out')
try:
    subprocess.run(['/not/there'])
except FileNotFoundError as e:
    print(e)
r = os.fork()
if r == 0:
    os._exit(9)
print(r, os.waitstatus_to_exitcode(os.waitpid(r, 0)[1]))
P
python3 s.py`,
	// A thread that has waited for 5 ms asks the one that runs to let it run, by a flag that no call tells of.
	"multiprocessing": `cat > m.py <<'P'
import multiprocessing as mp, sys
sys.setswitchinterval(1000)
def square(x):
    return x * x
if __name__ == '__main__':
    with mp.Pool(3) as p:
        print(sum(p.map(square, range(100))))
    q = mp.Queue()
    ps = [mp.Process(target=q.put, args=(i,)) for i in range(4)]
    for p in ps:
        p.start()
    print([q.get() for _ in ps])
    for p in ps:
        p.join()
    print([(p.pid, p.exitcode) for p in ps])
P
python3 m.py`,
	"make": `for i in 1 2 3; do echo "int f$i(void) { return $i; }" > f$i.c; done
echo 'int f1(void), f2(void), f3(void), printf(const char *, ...); int main(void) { printf("%d\n", f1() + f2() + f3()); return 0; }' > main.c
printf 'prog: f1.o f2.o f3.o main.o\n\tgcc -o $@ $^\n%%.o: %%.c\n\tgcc -O1 -c -o $@ $<\n' > Makefile
make -s -j2 && ./prog`,
}

func TestReexecuteProcesses(t *testing.T) {
	visited := 0
	for name, script := range processes {
		visited++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rerun(t, 10, script, nil)
		})
	}
	if visited < 9 {
		t.Errorf("only %d scripts", visited)
	}
}

// signalled are C programs whose signals and ends are the point. What each prints, and how it ends, must come again.
var signalled = map[string]struct{ text, status string }{
	// Faults are never sent: they happen again, each at its place.
	"barrier": {`
static char *page; static volatile int faults;
static void fault(int s, siginfo_t *si, void *c) { faults++; mprotect((void *)((long)si->si_addr & ~4095l), 4096, PROT_READ | PROT_WRITE); }
int main(void) {
	struct sigaction a = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
	int i;
	page = mmap(0, 64 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &a, 0);
	for (i = 0; i < 64; i++) { page[i * 4096] = i; if (i % 7 == 0) mprotect(page + i * 4096, 4096, PROT_READ), page[i * 4096]++; }
	printf("%d faults\n", faults);
	return 0;
}`, "exit status 0"},
	// All that a handler is told of its signal.
	"told": {`
static void told(int s, siginfo_t *si, void *c) { printf("%d %d %d %d %d %p\n", s, si->si_code, si->si_pid, (int)si->si_uid, s == SIGCHLD ? si->si_status : 0, s == SIGCHLD ? 0 : si->si_value.sival_ptr); }
int main(void) {
	struct sigaction a = {.sa_sigaction = told, .sa_flags = SA_SIGINFO};
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2, .sigev_value.sival_ptr = (void *)0x123456789abcl};
	struct itimerspec at = {.it_value.tv_nsec = 1000000};
	sigset_t set; siginfo_t si; timer_t timer;
	sigaction(SIGUSR1, &a, 0); sigaction(SIGUSR2, &a, 0); sigaction(SIGCHLD, &a, 0);
	sigqueue(getpid(), SIGUSR1, (union sigval){.sival_ptr = (void *)0x1122334455667788l});
	timer_create(CLOCK_MONOTONIC, &e, &timer); timer_settime(timer, 0, &at, 0); pause();
	if (fork() == 0) _exit(5);
	pause(); wait(0);
	sigemptyset(&set); sigaddset(&set, SIGUSR1); sigprocmask(SIG_BLOCK, &set, 0);
	sigqueue(getpid(), SIGUSR1, (union sigval){.sival_ptr = (void *)0x99aabbccddeel});
	printf("%d", sigwaitinfo(&set, &si)); printf(" %d %d %p\n", si.si_code, si.si_pid, si.si_value.sival_ptr);
	return 0;
}`, "exit status 0"},
	// A child that a signal ends on its way to its own end: by what the C library still writes, in a handler of ours or of
	// nobody, before it came to say that it ends, or when its parent does not ask how.
	"late": {`
static void burn(long n) { volatile long i; for (i = 0; i < n; i++); }
static ssize_t raises(void *c, const char *b, size_t n) { kill(getpid(), SIGTERM); return n; }
static ssize_t spins(void *c, const char *b, size_t n) { for (;;); }
static void computes(void) { burn(30000000); }
int main(void) {
	int way, st, p[2], q[2]; char b;
	for (way = 0; way < 5; way++) {
		pid_t c;
		pipe(p); pipe(q);
		if ((c = fork()) == 0) {
			cookie_io_functions_t io = {.write = way == 1 ? raises : spins};
			FILE *f = way == 0 ? fdopen(p[1], "w") : way == 3 ? 0 : fopencookie(0, "w", io);
			close(p[0]); close(q[1]);
			if (f) fputs("left", f);
			if (way == 3) atexit(computes);
			if (way == 4) fflush(f);
			read(q[0], &b, 1);
			return 0;
		}
		close(p[0]); close(q[0]); close(q[1]);
		if (way == 2 || way == 4) { usleep(30000); kill(c, SIGTERM); }
		if (way == 3) { usleep(2000); kill(c, SIGTERM); burn(200000000); }
		close(p[1]);
		if (waitpid(c, way == 4 ? 0 : &st, 0) == c) printf("%d\n", way == 4 ? -1 : st);
	}
	return 0;
}`, "exit status 0"},
	// A signal that comes while nothing is called, for which the program waits by computing.
	"spins": {`
static volatile int over; static volatile long turns;
static void end(int s) { over++; }
int main(void) {
	signal(SIGALRM, end);
	ualarm(20000, 0);
	while (!over) turns++;
	printf("over %d\n", over);
	ualarm(20000, 0);
	while (over < 2) turns++;
	return 7;
}`, "exit status 7"},
	// The other threads are where they were when one brings all down.
	"asserts": {`
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int n;
static void *counts(void *p) { for (;;) { pthread_mutex_lock(&m); n++; assert(n < 3000); pthread_mutex_unlock(&m); } return 0; }
int main(void) { pthread_t t[4]; int i; for (i = 0; i < 4; i++) pthread_create(&t[i], 0, counts, 0); pthread_join(t[0], 0); return 0; }
`, "exit status 134"},
	"crashes": {`
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int n;
static void *counts(void *p) { for (;;) { pthread_mutex_lock(&m); if (++n == 3000) *(volatile int *)8 = n; pthread_mutex_unlock(&m); } return 0; }
int main(void) { pthread_t t[4]; int i; for (i = 0; i < 4; i++) pthread_create(&t[i], 0, counts, 0); pthread_join(t[0], 0); return 0; }
`, "exit status 139"},
}

func TestReexecuteSignals(t *testing.T) {
	const headers = "#define _GNU_SOURCE\n#include <assert.h>\n#include <pthread.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/mman.h>\n#include <sys/wait.h>\n#include <time.h>\n#include <unistd.h>\n"
	for name, p := range signalled {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := filepath.Join(t.TempDir(), name+".c")
			if err := os.WriteFile(source, []byte(headers+p.text), 0o644); err != nil {
				t.Fatal(err)
			}
			bin, trace := compile(t, source), filepath.Join(t.TempDir(), "run.prophet")
			run := func(argv ...string) (out, errs, status string) {
				var o, e strings.Builder
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &o, &e
				cmd.Run() // how it ended is compared
				return o.String(), e.String(), cmd.ProcessState.String()
			}
			out, errs, status := run(built(t, "prophet"), "record", "-q", "-o", trace, "--", bin)
			if status != p.status {
				t.Fatalf("the recorded run: %s: %s", status, clip(errs))
			}
			for i := range 10 {
				out2, errs2, status2 := run(built(t, "replayd"), "--trace", trace, "--", bin)
				if !strings.Contains(errs2, "replayd: identical: ") || status2 != status || out2 != out {
					t.Fatalf("re-execution %d: %s: %s\nit prints %q, the recorded run %q", i, status2, clip(errs2), out2, out)
				}
			}
		})
	}
}

// storms are programs that see where between two calls a signal comes: at each of some hundred one thing or another is done. What
// they count on the way there must be the same, too.
const storm = `#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int got; static volatile long done;
static void handler(int s) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); got = 1; done = done * 31 + s; }
int main(void) {
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct itimerval t = {{0, 300}, {0, 300}};
	unsigned long rounds = 0, sum = 0, i = 0, j;
#ifdef REFUSED
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog p = {4, f};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) return 1;
#endif
#ifdef ACTION
	struct sigaction a = {.sa_handler = handler};
	sigaction(SIGALRM, &a, 0);
#else
	signal(SIGALRM, handler);
#endif
	setitimer(ITIMER_REAL, &t, 0);
	while (i < SIGNALS) {
		struct timespec ts;
		pthread_mutex_lock(&m);
		clock_gettime(CLOCK_MONOTONIC, &ts);
		pthread_mutex_unlock(&m);
		for (j = 0; j < 20; j++) sum += j ^ (unsigned long)got * rounds;
		rounds++;
		if (got) { got = 0; i++; getppid(); sum = sum * 31 + rounds; }
	}
	t = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &t, 0);
	printf("%lu rounds %lu %ld\n", rounds, sum, done);
	return 0;
}
`

// placesTold counts the signals of a trace that came between two calls, and the places that it tells of them.
func placesTold(t *testing.T, trace string) (between, places int) {
	t.Helper()
	dump := exec.Command(built(t, "prophet"), "dump", trace)
	out, err := dump.StdoutPipe()
	must(t, err)
	must(t, dump.Start())
	follows := false                                    // a place is told of a signal within a call, too, if that was over
	for lines := bufio.NewScanner(out); lines.Scan(); { // of some hundred megabytes
		switch line := lines.Bytes(); {
		case bytes.Contains(line, []byte(" during=")):
			if follows = bytes.Contains(line, []byte(" during=none ")); follows {
				between++
			}
		case follows && bytes.Contains(line, []byte(" place pc=")):
			places++
		}
	}
	must(t, dump.Wait())
	return between, places
}

// Each signal comes where it came: the program asks for something else where one is missed by a round, and prints sums
// that tell whether one came a turn of a loop before or later.
func TestReexecuteSignalStorm(t *testing.T) {
	for _, c := range []struct{ name, define, serial string }{
		{"plain", "", ""}, {"serial", "", "--serial"}, {"action", "#define ACTION 1\n", ""}, {"action serial", "#define ACTION 1\n", "--serial"},
		{"no breakpoints", "#define REFUSED 1\n", ""},
	} {
		signals := uint32(300)
		if c.name == "no breakpoints" { // a trap after each instruction takes its time
			signals = 100
		}
		t.Run(c.name, func(t *testing.T) {
			source, trace := filepath.Join(t.TempDir(), "storm.c"), filepath.Join(t.TempDir(), "run.prophet")
			if err := os.WriteFile(source, fmt.Appendf(nil, "%s#define SIGNALS %d\n%s", c.define, signals, storm), 0o644); err != nil {
				t.Fatal(err)
			}
			bin := compile(t, source)
			argv := []string{built(t, "prophet"), "record", "-q", "-o", trace}
			if c.serial != "" {
				argv = append(argv, c.serial)
			}
			out, err := exec.Command(argv[0], append(argv[1:], "--", bin)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			// Wherever in our own code one came, too: which may be deep, as where an event fills a chunk.
			if between, places := placesTold(t, trace); between == 0 || between != places {
				t.Errorf("of %d signals between two calls %d are told where they came", between, places)
			}
			for i := range 3 {
				var again, said strings.Builder
				cmd := exec.Command(built(t, "replayd"), "--json", "--trace", trace, "--", bin)
				cmd.Stdout, cmd.Stderr = &again, &said
				if err := cmd.Run(); err != nil || again.String() != string(out) {
					t.Fatalf("re-execution %d: %v: %s\nit prints %q, the recorded run %q", i, err, clip(said.String()), again.String(), out)
				}
				var r replay.Result
				if err := json.Unmarshal([]byte(said.String()), &r); err != nil || !r.Identical {
					t.Fatalf("%v: %s", err, clip(said.String()))
				}
				if runtime.GOARCH == "amd64" && r.Placed < signals*2/3 {
					t.Errorf("of %d signals only %d came where they had, %d elsewhere", signals, r.Placed, r.Signals)
				}
			}
		})
	}
}

// What small programs did that came out otherwise: threads that were cancelled while they computed, or in system(); commands that
// ended themselves, or signalled who waited for them; calls by number; locks that could not be destroyed;
// signals at the end of calls that called others, or of quick ones that free something; children that were ended before they did anything;
// signals from outside on the way to one of the trace, or as a call was over; streams opened to append beside threads that open; /proc of
// processes outside; what is left of a time.
func TestReexecuteSmall(t *testing.T) {
	for _, name := range []string{"cancelled", "piped", "bynumber", "busy", "onced", "unborn", "freed", "nested", "append", "moved", "exits", "strangers", "over", "remains"} {
		for _, options := range []string{"", "serial"} {
			t.Run(name+options, func(t *testing.T) {
				t.Parallel()
				cmd := Cmd{Argv: []string{compile(t, filepath.Join(top, "tests", "replay", name+".c"))}, Options: options}
				rec := cmd.Recorded(t)
				if rec.Status != "exit status 0" {
					t.Fatalf("%s: %s", rec.Status, clip(rec.Stderr))
				}
				again(t, cmd, rec, 3)
			})
		}
	}
}

// Signals that a handler lets through as it jumps away come within the jump, which is the C library's: where the addresses are the same.
// And those that come as a fork returns, out of which a handler jumps.
func TestReexecuteJumped(t *testing.T) {
	for _, name := range []string{"jumped", "forkjump"} {
		bin := compile(t, filepath.Join(top, "tests", "replay", name+".c"))
		for _, serial := range []string{"--serial=false", "--serial"} {
			for range 3 {
				path := filepath.Join(t.TempDir(), "run.prophet")
				if out, err := exec.Command(built(t, "prophet"), "record", "-q", serial, "-o", path, "--", bin).CombinedOutput(); err != nil {
					t.Fatalf("%s %s: %v: %s", name, serial, err, out)
				}
				if out, err := exec.Command(built(t, "replayd"), "--trace", path).CombinedOutput(); err != nil {
					t.Errorf("%s %s: %v: %s", name, serial, err, out)
				}
			}
		}
	}
}

func TestReexecuteGivenBack(t *testing.T) {
	for _, options := range []string{"", "serial"} {
		cmd := Cmd{Argv: []string{compile(t, filepath.Join(top, "tests", "replay", "givenback.c"))}, Options: options}
		_, rec := Same(t, cmd)
		again(t, cmd, rec, 1)
	}
}
