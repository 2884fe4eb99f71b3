package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a program can see of itself is as without: threads, masks, handlers, descriptors, limits, errno.
func TestUnnoticedState(t *testing.T) {
	t.Parallel()
	needRoot(t, "unshare and seteuid")
	_, r := Same(t, Cmd{Argv: []string{prog(t, "state")}})
	if !strings.Contains(r.Stdout, "Threads:\t1\n") || !strings.Contains(r.Stdout, "unshare 0") {
		t.Errorf("not one thread, or no user namespace:\n%s", r.Stdout)
	}
	sound(t, r.Trace)
}

// The number of descriptors a process may have is the same for itself and for its children, whatever the limit.
func TestUnnoticedFileLimits(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"256:4096", "1024:1024", "1024:1048576", "4000:4000", "65536:65536"} {
		t.Run(limit, func(t *testing.T) {
			need(t, "prlimit")
			_, r := Same(t, Cmd{Argv: []string{"prlimit", "--nofile=" + limit, prog(t, "limits")}})
			sound(t, r.Trace)
		})
	}
}

// Address space as small as 500 MB, data as small as 1 MiB, few processes, small stacks, locked memory, ids changed to and fro.
func TestUnnoticedLimits(t *testing.T) {
	t.Parallel()
	needRoot(t, "seteuid")
	for _, script := range []string{
		"ulimit -v 500000; " + prog(t, "threads"),
		"ulimit -v 500000; echo 'a\nb' | sort | cat",
		"ulimit -s 128; " + prog(t, "state"),
		"ulimit -l 64; echo locked",
		"ulimit -d 1024; ls -d /; echo b a | tr ' ' '\n' | sort; sed -n 1p /etc/passwd; env -i /bin/true; echo $?",
		prog(t, "ids"),
	} {
		t.Run("", func(t *testing.T) {
			_, r := Same(t, Cmd{Argv: []string{"bash", "-c", script}})
			sound(t, r.Trace)
		})
	}
}

// A program that uses all its descriptors gets as many, by the same numbers, as alone; and what it does then is recorded.
func TestUnnoticedAllDescriptors(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"64", "500", "5000"} { // ours begin above the first, below the second, and move on the way to the third
		t.Run(limit, func(t *testing.T) {
			c := Cmd{Argv: []string{prog(t, "allfds"), limit}}
			_, r := Same(t, c)
			sound(t, r.Trace)
			again := c.Reexecuted(t, r)
			compare(t, "standard output of the re-execution", r.Stdout, again.Stdout)
		})
	}
}

// An exec of a file that is not there, of which shells make one for each directory of PATH, ends nothing: neither is the ring
// flushed nor said that the program is over.
func TestUnnoticedAbsent(t *testing.T) {
	t.Parallel()
	c := Cmd{Argv: []string{prog(t, "absent")}}
	_, r := Same(t, c)
	f := sound(t, r.Trace)
	if f.Calls["execve"] != 1001 { // those that failed are written again, with their error
		t.Errorf("%d events of execve", f.Calls["execve"])
	}
	if n := strings.Count(prophet(t, "dump", r.Trace), "exit how=exec"); n != 1 {
		t.Errorf("%d ends by exec are in the trace, not one", n)
	}
	c.Reexecuted(t, r)
}

// valgrind finds no fault with us. It tells people of system calls that look like mistakes, of which how we asked whether memory
// may be read was one.
func TestUnnoticedValgrind(t *testing.T) {
	t.Parallel()
	need(t, "valgrind")
	_, r := Same(t, Cmd{Argv: []string{"valgrind", "-q", "--error-exitcode=9", "ls", "-d", "/"}, Timeout: time.Minute})
	sound(t, r.Trace)
}

// A set-uid program ignores the library's variables: it runs as without and records nothing.
func TestUnnoticedSetUID(t *testing.T) {
	t.Parallel()
	needRoot(t, "to make a set-uid program")
	dir := publicDir(t)
	bin := filepath.Join(dir, "suid")
	copyFile(t, prog(t, "setuid"), bin, 0o755)
	if err := os.Chown(bin, 65533, 65533); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(bin, 0o755|os.ModeSetuid|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(dir, "libprophet.so")
	copyFile(t, built(t, "libprophet.so"), lib, 0o755)
	for _, preload := range []string{lib, built(t, "libprophet.so")} {
		cmd := exec.Command(bin)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+preload, "PROPHET_TRACE="+filepath.Join(dir, "evil.prophet"), "PROPHET_OPTIONS=inputs=full")
		out, err := cmd.CombinedOutput()
		if want := "secure 1, uid differs 1, a control page is mapped: 0\n"; string(out) != want || err != nil {
			t.Errorf("a set-uid program said %q, %v; want %q", out, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "evil.prophet")); err == nil {
		t.Errorf("a set-uid program made a trace where its caller said")
	}
}

// Calls before any constructor of ours, from the program's preinit_array, a library's constructor and an IFUNC resolver.
func TestUnnoticedEarly(t *testing.T) {
	t.Parallel()
	lib := prog(t, "earlylib", "-shared", "-fPIC", "-Wl,-z,now")
	with := prog(t, "early", "-Wl,--no-as-needed", lib)
	_, r := Same(t, Cmd{Argv: []string{prog(t, "early")}})
	sound(t, r.Trace)
	_, r = Same(t, Cmd{Argv: []string{with}})
	sound(t, r.Trace)
	for _, preload := range []string{lib + ":" + built(t, "libprophet.so"), built(t, "libprophet.so") + ":" + lib} {
		bare := Cmd{Argv: []string{prog(t, "early")}, Env: []string{"LD_PRELOAD=" + lib}}.Bare(t)
		rec := Cmd{Argv: []string{prog(t, "early")}}.With(t, preload)
		compare(t, "exit status", bare.Status, rec.Status)
		compare(t, "standard output", bare.Stdout, rec.Stdout)
		compare(t, "standard error", bare.Stderr, rec.Stderr)
		sound(t, rec.Trace)
	}
}

// Calls after our destructors, and while other threads still run.
func TestUnnoticedLate(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "late")}})
	f := sound(t, r.Trace)
	if n := f.Calls["write"]; n != strings.Count(r.Stdout, "\n")-1 && n != strings.Count(r.Stdout, "\n") {
		t.Errorf("%d writes are in the trace of a program that printed\n%s", n, r.Stdout)
	}
	_, r = Same(t, Cmd{Argv: []string{prog(t, "late"), "threads"}})
	sound(t, r.Trace)
}

// Threads that return, exit or are cancelled, with destructors that lock; main that ends by pthread_exit. Threads that all take
// part when one changes the user, while others are created.
func TestUnnoticedThreads(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"threads", "setids"} {
		_, r := Same(t, Cmd{Argv: []string{prog(t, name)}})
		sound(t, r.Trace)
	}
}

// Reads and writes that wait for nobody are asked of the kernel without the C library, where there are threads, too; who waits
// can be cancelled as ever.
func TestUnnoticedHurry(t *testing.T) {
	t.Parallel()
	c := Cmd{Argv: []string{prog(t, "hurry")}}
	_, r := Same(t, c)
	sound(t, r.Trace)
	compare(t, "standard output of the re-execution", r.Stdout, c.Reexecuted(t, r).Stdout)
}

// Stacks that lead nowhere: what is read of them is never more than is there.
func TestUnnoticedWildStack(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "wildstack")}})
	sound(t, r.Trace)
}

// A timer at 10 kHz interrupts the recorder everywhere; every event of both sides is in the trace, whole and counted.
func TestUnnoticedStorm(t *testing.T) {
	t.Parallel()
	for _, options := range []string{"", "inputs=none", "inputs=full"} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			counts := filepath.Join(t.TempDir(), "counts")
			_, r := Same(t, Cmd{Argv: []string{prog(t, "storm"), "1500000", counts}, Options: options})
			f := sound(t, r.Trace)
			b, err := os.ReadFile(counts)
			if err != nil {
				t.Fatal(err)
			}
			var locks, writes, clocks, handled int
			fmt.Sscan(string(b), &locks, &writes, &clocks, &handled)
			if got := f.Calls["pthread_mutex_lock"]; got != locks {
				t.Errorf("%d locks recorded of %d", got, locks)
			}
			if got := f.Calls["pthread_mutex_unlock"]; got != locks {
				t.Errorf("%d unlocks recorded of %d", got, locks)
			}
			if got := f.Calls["write"]; got != writes {
				t.Errorf("%d writes recorded of %d", got, writes)
			}
			if got := f.Calls["clock_gettime"]; got != clocks {
				t.Errorf("%d clocks recorded of %d", got, clocks)
			}
			if int(f.Signals) != handled {
				t.Errorf("%d signals recorded of %d", f.Signals, handled)
			}
		})
	}
}

// siglongjmp out of handlers, in and between calls; handlers on alternate stacks as small as they may be.
func TestUnnoticedJumps(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "jump")}})
	sound(t, r.Trace)
}

// Children of every kind, and those of a thread; programs that are started without an environment are recorded too.
func TestUnnoticedProcesses(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "processes")}})
	f := sound(t, r.Trace)
	echoes := 0
	for _, p := range f.Trace.Procs {
		if filepath.Base(p.Exe) == "echo" {
			echoes++
		}
	}
	if echoes != 8 {
		t.Errorf("%d of 8 runs of echo are in the trace", echoes)
	}
}

// A daemon that closes all descriptors, changes root and user keeps being recorded.
func TestUnnoticedDaemon(t *testing.T) {
	t.Parallel()
	needRoot(t, "chroot and setuid")
	dir := publicDir(t)
	var logs [2]string
	var trace string
	for i := range logs {
		log := filepath.Join(dir, "log"+strconv.Itoa(i))
		c := Cmd{Argv: []string{prog(t, "daemon"), log, dir}}
		if i == 0 {
			c.Bare(t)
		} else {
			trace = c.Recorded(t).Trace
		}
		time.Sleep(100 * time.Millisecond)
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		logs[i] = string(b)
	}
	compare(t, "the daemon's log", logs[0], logs[1])
	f := sound(t, trace)
	if n := f.Calls["pthread_mutex_lock"]; n != 80000 {
		t.Errorf("%d of its 80000 locks are in the trace", n)
	}
}

// Exceptions pass through wrappers that call back into the program.
func TestUnnoticedExceptions(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "throw")}})
	sound(t, r.Trace)
}

// Libraries that come and go, with constructors, threads and destructors.
func TestUnnoticedPlugins(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "plugins"), prog(t, "plugin", "-shared", "-fPIC")}})
	sound(t, r.Trace)
}

// Other allocators, preloaded before and after us and linked.
func TestUnnoticedAllocators(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"libjemalloc.so.2", "libtcmalloc_minimal.so.4"} {
		lib := filepath.Join("/usr/lib/x86_64-linux-gnu", name)
		if _, err := os.Stat(lib); err != nil {
			t.Fatalf("%s is missing: run tests/setup", lib)
		}
		for _, c := range []Cmd{
			{Argv: []string{prog(t, "threads")}},
			{Argv: []string{prog(t, "processes")}},
			{Argv: []string{"python3", "-c", "import threading\nfor i in range(20):\n t=threading.Thread(target=lambda:[str(x) for x in range(1000)]); t.start(); t.join()\nprint('ok')"}},
		} {
			bare := c
			bare.Env = append([]string{"LD_PRELOAD=" + lib}, c.Env...)
			want := bare.Bare(t)
			for _, preload := range []string{lib + ":" + built(t, "libprophet.so"), built(t, "libprophet.so") + ":" + lib} {
				got := c.With(t, preload)
				compare(t, "exit status under "+preload, want.Status, got.Status)
				compare(t, "standard output", want.Stdout, got.Stdout)
				compare(t, "standard error", want.Stderr, got.Stderr)
				sound(t, got.Trace)
			}
		}
		_, r := Same(t, Cmd{Argv: []string{prog(t, "threads", "-Wl,--no-as-needed", lib)}})
		sound(t, r.Trace)
	}
}

// AddressSanitizer refuses whatever is preloaded before it; told not to look, it works.
func TestUnnoticedSanitizers(t *testing.T) {
	t.Parallel()
	asan := prog(t, "threads", "-fsanitize=address", "-g")
	r := Cmd{Argv: []string{asan}}.Recorded(t)
	if !strings.Contains(r.Stderr, "ASan runtime does not come first") {
		t.Errorf("AddressSanitizer did not refuse: %s %s", r.Status, clip(r.Stderr))
	}
	_, r = Same(t, Cmd{Argv: []string{asan}, Env: []string{"ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"}})
	sound(t, r.Trace)
	_, r = Same(t, Cmd{Argv: []string{prog(t, "threads", "-fsanitize=undefined", "-g")}})
	sound(t, r.Trace)
}

// Standard descriptors that are closed stay closed, and what the program opens gets their numbers.
func TestUnnoticedClosed(t *testing.T) {
	t.Parallel()
	for _, closed := range []string{"2>&-", "1>&-", "<&-", "<&- 1>&- 2>&-"} {
		_, r := Same(t, Cmd{Argv: []string{"bash", "-c", prog(t, "state") + " " + closed + "; echo $?; (cat /nonexistent; echo x) " + closed + "; echo $?"}})
		sound(t, r.Trace)
	}
}

// Nobody reads standard error any more, and there is something to say: no SIGPIPE.
func TestUnnoticedBrokenStderr(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "taken.prophet"), 0o700)
	r := Cmd{Argv: []string{"bash", "-c", "(sleep 0.3; " + preloaded(t, filepath.Join(dir, "taken.prophet"), "") + " /bin/sh -c 'exit 7'; echo $?) 2> >(exec true)"}}.Bare(t)
	compare(t, "status", "7\n", r.Stdout)
	if _, err := os.Stat(filepath.Join(dir, "taken.2.prophet")); err != nil {
		t.Error(err)
	}
}

// A trace's name that is taken: the next free one, and one line about it.
func TestUnnoticedTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "run.prophet"), 0o700)
	r := Cmd{Argv: []string{"sh", "-c", preloaded(t, filepath.Join(dir, "run.prophet"), "") + " ls -d /"}}.Bare(t)
	compare(t, "output", "/\n", r.Stdout)
	if !strings.Contains(r.Stderr, "run.2.prophet") || strings.Count(r.Stderr, "\n") != 1 {
		t.Errorf("standard error: %q", r.Stderr)
	}
	sound(t, filepath.Join(dir, "run.2.prophet"))
}

// Where the program was started cannot be written: the trace is under TMPDIR, and one line says so.
func TestUnnoticedReadOnlyCwd(t *testing.T) {
	t.Parallel()
	needRoot(t, "to become another user")
	tmp := publicDir(t)
	lib := filepath.Join(tmp, "libprophet.so")
	copyFile(t, built(t, "libprophet.so"), lib, 0o755)
	cmd := exec.Command("/bin/ls", "-d", "/")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+lib, "TMPDIR="+tmp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	compare(t, "output", "/\n", out.String())
	found, _ := filepath.Glob(filepath.Join(tmp, "ls.*.prophet"))
	if len(found) != 1 || !strings.Contains(errs.String(), tmp) || strings.Count(errs.String(), "\n") != 1 {
		t.Fatalf("found %v, standard error %q", found, errs.String())
	}
	if st, err := os.Stat(found[0]); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("a trace is private: %v, %v", st.Mode(), err)
	}
	sound(t, found[0])
}

// Another user's process is started from a recorded one: it runs as without, and is not part of the trace.
func TestUnnoticedOtherUser(t *testing.T) {
	t.Parallel()
	needRoot(t, "to become another user")
	need(t, "setpriv")
	_, r := Same(t, Cmd{Argv: []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/bin/sh", "-c", "id -u; cat /nonexistent; exit 4"}})
	sound(t, r.Trace)
}

// publicDir is a directory that other users may use.
func publicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(progs.dir, "public")
	if err == nil {
		err = os.Chmod(dir, 0o1777)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyFile(t testing.TB, from, to string, mode os.FileMode) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// preloaded is the shell's prefix of a command that runs it recorded.
func preloaded(t testing.TB, trace, options string) string {
	return "env LD_PRELOAD=" + built(t, "libprophet.so") + " PROPHET_TRACE=" + trace + " PROPHET_OPTIONS=" + options
}

// With runs the command with this LD_PRELOAD, recorded.
func (c Cmd) With(t testing.TB, preload string) Run {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "run.prophet")
	r := c.run(t, []string{"LD_PRELOAD=" + preload, "PROPHET_TRACE=" + trace, "PROPHET_OPTIONS=" + c.Options})
	r.Trace = trace
	return r
}

// Signals that whoever starts it ignores stay ignored in the program, behind prophet, too, and when it is executed again.
func TestUnnoticedIgnored(t *testing.T) {
	t.Parallel()
	const script = "grep SigIgn /proc/self/status; yes 2>/dev/null | head -n 1; echo ${PIPESTATUS[0]}"
	for _, trap := range []string{"PIPE", "HUP PIPE USR1", "INT QUIT TERM", ""} {
		trapped := func(argv ...string) Cmd {
			return Cmd{Argv: append([]string{"bash", "-c", "trap '' " + trap + "; exec \"$@\"", "-"}, argv...)}
		}
		bare := trapped("bash", "-c", script).Bare(t)
		for _, program := range []string{"prophet", "replayd"} {
			trace := filepath.Join(t.TempDir(), "run.prophet")
			rec := trapped(built(t, program), "record", "-q", "-o", trace, "--", "bash", "-c", script).Bare(t)
			compare(t, program+" record, ignoring "+trap, bare.Stdout, rec.Stdout)
			again := Cmd{Argv: []string{built(t, "replayd"), "--trace", trace}}.Bare(t)
			compare(t, "executed again, ignoring "+trap, bare.Stdout, again.Stdout)
			if !strings.Contains(again.Stderr, "identical") {
				t.Errorf("ignoring %s: %s", trap, clip(again.Stderr))
			}
		}
	}
}
