package far

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prophet/runtime/target"
)

// The test's own binary stands in for replayd: its target is the real one, its issue does what a test wants of one.
func TestMain(m *testing.M) {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	os.Setenv("PROPHET_REPLAYD", exe)
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "target":
		var o Options
		f := flag.NewFlagSet("target", flag.ExitOnError)
		f.StringVar(&o.Dir, "dir", "", "")
		f.StringVar(&o.Private, "private", "", "")
		f.IntVar(&o.CPUs, "cpus", 0, "")
		f.Float64Var(&o.Quota, "quota", 0, "")
		f.Parse(os.Args[2:])
		err = Keep(o, exe, "target-server")
	case "target-server":
		err = Serve(os.Args[2], os.Args[3], os.Args[4])
	case "issue":
		err = pretend(os.Args[2:])
	case "relay":
		err = relay(os.Args[2], os.Args[3:])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// pretend is `replayd issue` as these tests need it.
func pretend(args []string) error {
	switch args[0] {
	case "say": // what it is given, and what it finds
		for _, a := range args[1:] {
			fmt.Println(a)
		}
		out, _ := exec.Command("nproc").Output()
		fmt.Print("cpus ", string(out))
		fmt.Fprintln(os.Stderr, "on stderr")
		os.Exit(3)
	case "listen":
		fmt.Println("ready")
		s := bufio.NewScanner(os.Stdin)
		for s.Scan() && s.Text() != "stop" {
			fmt.Println("heard", s.Text())
		}
	case "make":
		if err := os.MkdirAll("out/sub", 0o700); err != nil {
			return err
		}
		if err := os.WriteFile("out/sub/file", bytes.Repeat([]byte("x"), 600000), 0o600); err != nil {
			return err
		}
		return os.Symlink("/etc/passwd", "out/link")
	case "fork": // processes that outlive their parents, in sessions of their own; then it stays
		for range 3 {
			if err := exec.Command("/bin/sh", "-c", "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & exit 0").Run(); err != nil {
				return err
			}
		}
		os.WriteFile("left", nil, 0o600)
		fmt.Println("forked")
		if len(args) == 1 {
			time.Sleep(time.Hour)
		}
	case "burn":
		for begin := time.Now(); time.Since(begin) < time.Second; {
		}
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		fmt.Println(u.Utime.Nano() + u.Stime.Nano())
	case "die":
		return syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -ABRT $$"}, nil)
	case "flood":
		line := strings.Repeat("x", 200000)
		for range 20 {
			fmt.Println(line)
		}
	}
	return nil
}

// relay is a connection that can be cut: it copies between its streams and a command's. Its pid is in a file.
func relay(file string, argv []string) error {
	signal.Ignore(syscall.SIGPIPE)
	if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it is on the other machine
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { io.Copy(in, os.Stdin); in.Close() }()
	io.Copy(os.Stdout, out)
	return cmd.Wait()
}

// bench is a target under test: a directory of its own to be left empty.
type bench struct {
	*testing.T
	dir string
	*target.Target
}

func parse(t *testing.T, spec string) target.Spec {
	t.Helper()
	exe, _ := os.Executable()
	s, err := target.Parse(strings.ReplaceAll(spec, "EXE", exe))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t *testing.T, spec string) *bench {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir()}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	if b.Target, err = target.Open(ctx, parse(t, strings.ReplaceAll(spec, "HERE", b.dir))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// mine are the processes that work in this bench's directory or name it, as pids.
func (b *bench) mine() (list []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		pid, _ := strconv.Atoi(filepath.Base(p))
		cwd, _ := os.Readlink(p + "/cwd")
		line, _ := os.ReadFile(p + "/cmdline")
		if pid != os.Getpid() && (strings.HasPrefix(cwd, b.dir) || bytes.Contains(line, []byte(b.dir))) {
			list = append(list, pid)
		}
	}
	return list
}

func argv(pid int) []string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(string(line), "\x00")
}

// nothing fails unless the target's directory and processes go away.
func (b *bench) nothing() {
	b.Helper()
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		list, err := os.ReadDir(b.dir)
		if err != nil {
			b.Fatal(err)
		}
		procs := b.mine()
		if len(list) == 0 && len(procs) == 0 {
			return
		}
		if time.Now().After(end) {
			for _, pid := range procs {
				b.Logf("%d: %q", pid, argv(pid))
			}
			b.Fatalf("left: files %v, processes %v", list, procs)
		}
	}
}

// pids are those of the keeper and the server.
func (b *bench) pids() (keeper, server int) {
	b.Helper()
	for _, pid := range b.mine() {
		if a := argv(pid); len(a) > 1 {
			switch a[1] {
			case "target":
				keeper = pid
			case "target-server":
				server = pid
			}
		}
	}
	if keeper == 0 || server == 0 {
		b.Fatalf("keeper %d, server %d", keeper, server)
	}
	return
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) issue(line func(string), args ...string) (*target.Result, error) {
	return b.Issue(b.Context(), target.Request{Args: args}, line)
}

// everything is each operation once.
func (b *bench) everything() *target.Info {
	b.Helper()
	ctx := b.Context()
	info, err := b.Hello(ctx, false, nil)
	b.must(err)
	if info.Arch != runtime.GOARCH || info.Free == 0 || info.CPUs < 1 {
		b.Errorf("%+v", info)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 50000)
	b.must(b.Put(ctx, "program", bytes.NewReader(big)))
	b.must(b.Put(ctx, "program", bytes.NewReader(big))) // not again
	b.must(b.Put(ctx, "empty", bytes.NewReader(nil)))
	var lines []string
	r, err := b.issue(func(s string) { lines = append(lines, s) }, "say", "one", "two words")
	b.must(err)
	if r.Status != 3 || r.Seconds <= 0 || !strings.Contains(r.Stderr, "on stderr") || len(lines) != 3 || lines[1] != "two words" || lines[2] != fmt.Sprint("cpus ", info.CPUs) {
		b.Errorf("%+v %q, %d CPUs", r, lines, info.CPUs)
	}
	if _, err := b.issue(nil, "make"); err != nil {
		b.Error(err)
	}
	to := b.TempDir()
	b.must(b.Get(ctx, "out", filepath.Join(to, "tree"), 1<<20))
	got, err := os.ReadFile(filepath.Join(to, "tree/sub/file"))
	if err != nil || len(got) != 600000 {
		b.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := os.Lstat(filepath.Join(to, "tree/link")); err == nil {
		b.Error("a link came")
	}
	b.must(b.Get(ctx, "program", filepath.Join(to, "program"), 1<<20))
	if got, _ := os.ReadFile(filepath.Join(to, "program")); !bytes.Equal(got, big) {
		b.Error("the file came back as another")
	}
	for _, name := range []string{"../lock", "/etc/passwd", "out/link"} {
		if err := b.Get(ctx, name, filepath.Join(to, "stolen"), 1<<20); err == nil {
			b.Errorf("%s came", name)
		}
	}
	b.must(b.Clean(ctx))
	if err := b.Get(ctx, "out", filepath.Join(to, "none"), 1<<20); !errors.Is(err, os.ErrNotExist) {
		b.Errorf("after cleaning: %v", err)
	}
	b.must(b.Get(ctx, "program", filepath.Join(to, "kept"), 1<<20))
	return info
}

func TestLocal(t *testing.T) {
	b := start(t, "local,dir=HERE")
	b.everything()
	b.must(b.Close())
	b.nothing()
}

func TestOneCPU(t *testing.T) {
	b := start(t, "local,cpus=1,dir=HERE")
	if info := b.everything(); info.CPUs != 1 {
		t.Errorf("%d CPUs", info.CPUs)
	}
	b.must(b.Close())
	b.nothing()
	if _, err := target.Open(t.Context(), parse(t, "local,cpus=60000")); err == nil || !strings.Contains(err.Error(), "60000 CPUs are wanted") {
		t.Error(err)
	}
}

// Half a CPU: a busy program uses about half of its time. Who cannot write control groups is told so.
func TestQuota(t *testing.T) {
	b := &bench{T: t, dir: t.TempDir()}
	var err error
	if b.Target, err = target.Open(t.Context(), parse(t, "local,quota=0.5,dir="+b.dir)); err != nil {
		if os.Geteuid() == 0 || !strings.Contains(err.Error(), "no quota of CPU time can be set") {
			t.Error(err)
		}
		return
	}
	defer b.Close()
	info, err := b.Hello(t.Context(), false, nil)
	b.must(err)
	if info.Quota < 0.49 || info.Quota > 0.51 {
		t.Errorf("a quota of %g", info.Quota)
	}
	used := 0.0
	r, err := b.issue(func(s string) { used, _ = strconv.ParseFloat(s, 64) }, "burn")
	b.must(err)
	if share := used / 1e9 / r.Seconds; share <= 0 || share > 0.65 {
		t.Errorf("it used %.2f of a CPU", share)
	}
	b.must(b.Close())
	b.nothing()
	left, _ := filepath.Glob("/sys/fs/cgroup/*/prophet-*")
	for _, dir := range left {
		if n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "prophet-")); syscall.Kill(n, 0) != nil {
			t.Errorf("left: %s", dir)
		}
	}
}

func TestQuotaRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		return // TestQuota has seen it
	}
	exe, _ := os.Executable()
	open := filepath.Join("/tmp", fmt.Sprintf("prophet-far-%d", os.Getpid())) // where others may go
	if err := exec.Command("install", "-m", "755", exe, open).Run(); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(open)
	t.Setenv("PROPHET_REPLAYD", open)
	_, err := target.Open(t.Context(), parse(t, "exec:setpriv --reuid 65534 --regid 65534 --clear-groups {} --quota 0.5"))
	if err == nil || !strings.Contains(err.Error(), "no quota of CPU time can be set") {
		t.Error(err)
	}
}

// unshared is a command in other namespaces, which takes root or a user namespace.
func unshared(flags string) string {
	if os.Geteuid() != 0 {
		flags += " --map-root-user"
	}
	return "unshare " + flags
}

func TestExec(t *testing.T) {
	for name, spec := range map[string]string{
		"plain":   "exec:EXE target --dir HERE",
		"ours":    "exec:{} --dir HERE",
		"shell":   "exec:TMPDIR=HERE sh",
		"greeted": "exec:echo Welcome; printf 'no end'; TMPDIR=HERE sh",
		"net":     "exec:" + unshared("--net") + " {} --dir HERE",
		"world":   "exec:TMPDIR=HERE " + unshared("--pid --fork --mount-proc") + " sh",
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, spec)
			b.everything()
			b.must(b.Close())
			b.nothing()
		})
	}
}

func TestNotATarget(t *testing.T) {
	t.Parallel()
	for spec, says := range map[string]string{
		"exec:exit 7":                         "ended before",
		"exec:echo no such host >&2; exit 1":  "it said: no such host",
		"exec:yes":                            "without a beginning",
		"exec:TMPDIR=/nonexistent sh":         "cannot make a directory",
		"exec:echo prophet-shell-42 vax; cat": `it is a "vax"`,
		"local,dir=/nonexistent":              "/nonexistent",
		"exec:{} --private /tmp":              "not a private directory",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		b, err := target.Open(ctx, parse(t, spec))
		cancel()
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", spec, err)
		}
	}
	// One that says nothing is waited for as long as the caller wants.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := target.Open(ctx, parse(t, "exec:exec sleep 1000")); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 15*time.Second {
		t.Error(err, time.Since(begin))
	}
}

// What is being issued hears lines; long lines come whole; how it ended is told.
func TestIssue(t *testing.T) {
	b := start(t, "local,dir=HERE")
	ctx := t.Context()
	if err := b.Tell(ctx, "x"); err == nil {
		t.Error("nobody was told")
	}
	var lines []string
	r, err := b.issue(func(s string) {
		if lines = append(lines, s); s != "ready" {
			return
		}
		go func() {
			b.Tell(ctx, "pause")
			if err := b.Tell(ctx, "two\nlines"); err == nil {
				t.Error("two lines were told")
			}
			if _, err := b.Hello(ctx, true, nil); err == nil || !strings.Contains(err.Error(), "being issued") {
				t.Errorf("measured beside it: %v", err)
			}
			if err := b.Clean(ctx); err == nil {
				t.Error("cleaned under it")
			}
			b.Tell(ctx, "stop")
		}()
	}, "listen")
	b.must(err)
	if r.Status != 0 || r.Stopped || strings.Join(lines, ",") != "ready,heard pause" {
		t.Errorf("%+v %q", r, lines)
	}
	r, err = b.issue(nil, "die")
	if err != nil || r.Signal != "SIGABRT" || r.Status != -1 {
		t.Errorf("%+v %v", r, err)
	}
	sum := 0
	if _, err = b.issue(func(s string) { sum += len(s) }, "flood"); err != nil || sum != 20*200000 {
		t.Errorf("%d bytes of long lines, %v", sum, err)
	}
	if _, err := b.issue(nil, "nul\x00"); !errors.Is(err, target.ErrLost) {
		t.Errorf("an argument with a zero byte: %v", err)
	}
	b.nothing()
}

// An issue that ends, or is stopped, leaves no process behind, however it forked.
func TestIssueEnds(t *testing.T) {
	b := start(t, "local,dir=HERE")
	before := len(b.mine())
	r, err := b.issue(nil, "fork", "and go")
	if err != nil || r.Status != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	if n := len(b.mine()); n != before {
		t.Errorf("%d processes were left by an issue", n-before)
	}
	// Whoever waits when somebody connects anew hears of it.
	heard := make(chan error, 1)
	go func() {
		_, err := b.issue(func(string) { heard <- nil }, "listen")
		heard <- err
	}()
	<-heard
	b.must(b.Reconnect(t.Context()))
	if err := <-heard; !errors.Is(err, target.ErrLost) {
		t.Errorf("connected anew under an issue: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err = b.Issue(ctx, target.Request{Args: []string{"fork"}}, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := len(b.mine()); n != before {
		t.Errorf("%d processes were left by an issue that was stopped", n-before)
	}
	b.must(b.Clean(t.Context())) // it still listens
	b.must(b.Close())
	b.nothing()
}

// Whoever is killed in the middle of an issue: nothing stays, home hears of it, and can begin anew.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"server", "keeper", "both"} {
		t.Run(who, func(t *testing.T) {
			b := start(t, "local,dir=HERE")
			keeper, server := b.pids()
			_, err := b.issue(func(string) {
				switch who {
				case "server":
					syscall.Kill(server, syscall.SIGKILL)
				case "keeper":
					syscall.Kill(keeper, syscall.SIGKILL)
				case "both": // so that neither sees the other end
					syscall.Kill(keeper, syscall.SIGSTOP)
					syscall.Kill(server, syscall.SIGKILL)
					syscall.Kill(keeper, syscall.SIGKILL)
				}
			}, "fork")
			if !errors.Is(err, target.ErrLost) {
				t.Fatal(err)
			}
			if who != "both" {
				b.nothing()
			}
			time.Sleep(100 * time.Millisecond)
			for _, pid := range b.mine() { // of both: what forked twice has no parent of ours any more
				if a := argv(pid); a[0] != "sleep" && a[0] != "sh" && a[0] != "setsid" {
					t.Errorf("%q is left", a)
				}
				syscall.Kill(pid, syscall.SIGKILL)
			}
			b.must(b.Reconnect(t.Context()))
			if list, _ := os.ReadDir(b.dir); len(list) != 1 {
				t.Errorf("after the next began: %v", list)
			}
			if _, err := b.issue(nil, "say"); err != nil {
				t.Error(err)
			}
			b.must(b.Close())
			b.nothing()
		})
	}
}

// A connection that is cut, and one that goes dead without a word.
func TestCut(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"cut": syscall.SIGKILL, "dead": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			pidfile := filepath.Join(t.TempDir(), "pid")
			b := start(t, "exec:exec EXE relay "+pidfile+" EXE target --dir HERE")
			text, _ := os.ReadFile(pidfile)
			pid, _ := strconv.Atoi(string(text))
			if pid == 0 {
				t.Fatal("no relay")
			}
			var cut time.Time
			_, err := b.issue(func(string) {
				syscall.Kill(pid, sig)
				cut = time.Now()
			}, "fork")
			if !errors.Is(err, target.ErrLost) {
				t.Fatal(err)
			}
			if took := time.Since(cut); took > target.LostAfter+5*time.Second || sig == syscall.SIGKILL && took > 5*time.Second {
				t.Errorf("home noticed after %v", took)
			}
			b.nothing()
		})
	}
}

// Home is killed: its ends of the streams close, and nobody says a word.
func TestHomeKilled(t *testing.T) {
	b := &bench{T: t, dir: t.TempDir()}
	exe, _ := os.Executable()
	cmd := exec.Command(exe, "target", "--dir", b.dir)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	b.must(cmd.Start())
	w := target.NewWire(out, in)
	_, err := w.Await(target.Banner)
	b.must(err)
	b.must(w.Say(target.Greeting + "\n"))
	b.must(w.Write(target.Header{Op: target.OpIssue, ID: 1, Args: []string{"fork"}}, nil))
	for {
		h, _, err := w.Read()
		b.must(err)
		if h.Text == "forked" {
			break
		}
	}
	in.Close()
	out.Close()
	cmd.Wait()
	b.nothing()
}

// A disk that is full is an error that says so, found before the file is sent; what fits goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	far := unshared("--mount")
	b := start(t, "exec:"+far+" sh -c 'mount -t tmpfs -o size=2m none HERE && exec EXE target --dir HERE'")
	ctx := t.Context()
	if err := b.Put(ctx, "big", bytes.NewReader(make([]byte, 8<<20))); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("8 MiB on a disk of 2: %v", err)
	}
	b.must(b.Put(ctx, "small", bytes.NewReader(make([]byte, 1<<20))))
	if info, err := b.Hello(ctx, false, nil); err != nil || info.Filesystem != "tmpfs" || info.Free > 1<<20 {
		t.Errorf("%+v %v", info, err)
	}
	if _, err := b.issue(nil, "say"); err != nil {
		t.Error(err)
	}
	b.must(b.Close())
	b.nothing()
	_, err := target.Open(ctx, parse(t, "exec:"+far+" sh -c 'mount -t tmpfs -o size=1m none "+b.dir+" && TMPDIR="+b.dir+" exec sh'"))
	if err == nil || !strings.Contains(err.Error(), "cannot write") {
		t.Errorf("replayd on a disk of 1 MiB: %v", err)
	}
}

// sshd starts a server of the test's own, for this user; it returns its port.
func sshd(t *testing.T) (port string) {
	t.Helper()
	dir := t.TempDir()
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s (is openssh-server installed? see tests/packages)", err, out)
		}
	}
	if os.Geteuid() == 0 {
		os.MkdirAll("/run/sshd", 0o755)
	}
	port = strconv.Itoa(20000 + os.Getpid()%20000)
	config := filepath.Join(dir, "sshd_config")
	text := fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %[2]s/host\nAuthorizedKeysFile %[2]s/user.pub\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n", port, dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
	errs, _ := cmd.StderrPipe()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (is openssh-server installed? see tests/packages)", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s := bufio.NewScanner(errs)
	for s.Scan() && !strings.Contains(s.Text(), "listening on") {
		t.Log(s.Text())
	}
	go io.Copy(io.Discard, errs)
	t.Setenv("PROPHET_SSH", "ssh -F none -i "+filepath.Join(dir, "user")+" -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR")
	return port
}

func TestSSH(t *testing.T) {
	port := sshd(t)
	b := start(t, "ssh://127.0.0.1:"+port+"HERE")
	b.everything()
	b.must(b.Close())
	b.nothing()

	// Its server is killed; the keeper and the shell above it tidy up.
	b.must(b.Reconnect(t.Context()))
	_, server := b.pids()
	_, err := b.issue(func(string) { syscall.Kill(server, syscall.SIGKILL) }, "fork")
	if !errors.Is(err, target.ErrLost) {
		t.Error(err)
	}
	b.nothing()

	// The connection is cut in the middle of an issue.
	b.must(b.Reconnect(t.Context()))
	_, err = b.issue(func(string) {
		all, _ := filepath.Glob("/proc/[0-9]*")
		for _, p := range all {
			pid, _ := strconv.Atoi(filepath.Base(p))
			if a := argv(pid); a[0] == "ssh" && strings.Contains(strings.Join(a, " "), " -p "+port+" ") {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}, "fork")
	if !errors.Is(err, target.ErrLost) {
		t.Error(err)
	}
	b.nothing()

	for spec, says := range map[string]string{"ssh://nobody-here@127.0.0.1:" + port: "Permission denied", "ssh://127.0.0.1:1": "refused"} {
		if _, err := target.Open(t.Context(), parse(t, spec)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// Requests of any kind and order are answered, or end the connection; nothing is made outside the directory.
func FuzzServer(f *testing.F) {
	add := func(list ...target.Header) {
		b, _ := json.Marshal(list)
		f.Add(b, []byte("data"))
	}
	sum := strings.Repeat("0", 64)
	add(target.Header{Op: target.OpPut, ID: 1, Name: "x", Size: 4, Sum: sum}, target.Header{Op: target.OpData, ID: 1}, target.Header{Op: target.OpGet, ID: 2, Name: "x"})
	add(target.Header{Op: target.OpPut, ID: 1, Name: "../x", Size: 4, Sum: sum}, target.Header{Op: target.OpGet, ID: 2, Name: "../../etc/passwd"})
	add(target.Header{Op: target.OpPut, ID: 1, Name: "x", Have: true, Sum: sum}, target.Header{Op: target.OpTell, Text: "x"},
		target.Header{Op: target.OpStop}, target.Header{Op: target.OpClean}, target.Header{Op: target.OpHello}, target.Header{Op: "other"})
	f.Fuzz(func(t *testing.T, headers, payload []byte) {
		var list []target.Header
		if json.Unmarshal(headers, &list) != nil || len(list) > 50 || len(payload) > target.PayloadMax {
			return
		}
		dir := t.TempDir()
		files := filepath.Join(dir, "files")
		if err := os.Mkdir(files, 0o700); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(files)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		s := &server{wire: target.NewWire(strings.NewReader(""), io.Discard), dir: dir, root: root, put: map[string]string{}}
		for _, h := range list {
			if h.Op == target.OpIssue || h.Calibrate || h.Size > 1<<20 || h.Size < 0 {
				continue
			}
			if s.request(h, payload) != nil {
				break
			}
		}
		for s.aside.Load() != 0 {
			time.Sleep(time.Millisecond)
		}
		if s.receiving != nil && s.receiving.f != nil {
			s.receiving.f.Close()
		}
		if list, _ := os.ReadDir(dir); len(list) != 1 {
			t.Errorf("%v", list)
		}
	})
}
