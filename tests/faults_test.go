package tests

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/recovery"
	"prophet/runtime/trace"
)

// oneLine fails where the program's standard error has more than one line more than it had bare, or where that line
// does not say what is wanted of it.
func oneLine(t testing.TB, bare, recorded, wanted string) {
	t.Helper()
	ours := 0
	var rest []string
	for _, l := range strings.SplitAfter(recorded, "\n") {
		if strings.HasPrefix(l, "prophet: ") {
			ours++
			if !strings.Contains(l, wanted) {
				t.Errorf("the line on standard error is %q, want something about %q", l, wanted)
			}
		} else {
			rest = append(rest, l)
		}
	}
	if ours != 1 {
		t.Errorf("%d lines of ours on standard error, want 1: %s", ours, clip(recorded))
	}
	compare(t, "the rest of standard error", bare, strings.Join(rest, ""))
}

// undamaged reads a trace that may have lost something, but of which all that is there can be read.
func undamaged(t testing.TB, path string) *Found {
	t.Helper()
	f := read(t, path)
	for i, d := range append(f.Trace.Damage, f.Damage...) {
		if i < 5 {
			t.Errorf("damage in the trace: %v", d)
		}
	}
	return f
}

// A threaded program is killed at random moments: each thread's events up to then are in the recovered trace.
func TestFaultKill(t *testing.T) {
	t.Parallel()
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	bin := prog(t, "work")
	for i := range 25 {
		dir := t.TempDir()
		counts, path := filepath.Join(dir, "counts"), filepath.Join(dir, "run.prophet")
		cmd := exec.Command(bin, "4", "0", counts)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_TRACE="+path, "PROPHET_OPTIONS=")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rng.Int63n(int64(120 * time.Millisecond))))
		cmd.Process.Kill()
		cmd.Wait()
		compare(t, "standard error", "", errs.String())
		if _, err := os.Stat(path); err != nil {
			continue // it did not get that far
		}
		b, err := os.ReadFile(counts)
		if err != nil || len(b) < 4096 {
			continue
		}
		f := read(t, path)
		for _, d := range append(f.Trace.Damage, f.Damage...) {
			// A flush that the kill cut short is in the shared memory whole, and was saved from there.
			if !strings.Contains(d.Error(), "chunk is cut short") {
				t.Errorf("damage in the trace: %v", d)
			}
		}
		for k := range 4 {
			want := binary.LittleEndian.Uint64(b[8*k:])
			th := f.Trace.ThreadByName(fmt.Sprintf("p0/%d", k+1))
			if th == nil {
				if want > 0 {
					t.Errorf("kill %d: thread %d is not in the trace, and did %d rounds", i, k, want)
				}
				continue
			}
			var unlocks uint64
			if _, err := f.Trace.Walk(1, func(*trace.Thread) trace.Visit {
				return func(r *trace.Record) error {
					if r.Tag == trace.TagEvent && r.Row != nil && r.Row.Name == "pthread_mutex_unlock" {
						unlocks++
					}
					return nil
				}
			}, nil, th); err != nil {
				t.Fatal(err)
			}
			if unlocks != want && unlocks != want+1 {
				t.Errorf("kill %d: thread %d did %d rounds, the trace has %d", i, k, want, unlocks)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// inMounts runs a script as `unshare -m sh -c`, with mounts of its own.
func inMounts(t testing.TB, script string) Run {
	t.Helper()
	needRoot(t, "mounts of its own")
	need(t, "unshare", "mount")
	return Cmd{Argv: []string{"unshare", "-m", "--propagation", "private", "sh", "-c", script}}.Bare(t)
}

// The disk is full: at once, or later. What was written can be read, the program ends as without.
func TestFaultDiskFull(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"64k", "140k", "256k", "1m"} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := inMounts(t, "mkdir "+dir+"/full && mount -t tmpfs -o size="+size+" none "+dir+"/full && "+
				preloaded(t, dir+"/full/run.prophet", "")+" "+prog(t, "work")+" 4 200000 "+dir+"/counts; echo $?; cp -r "+dir+"/full/run.prophet "+dir+"/saved 2>/dev/null; true")
			compare(t, "what it said and how it ended", "worked\n3\n", r.Stdout)
			oneLine(t, "", r.Stderr, dir+"/full")
			if size == "256k" || size == "1m" {
				if f := read(t, dir+"/saved"); f.Events < 1000 {
					t.Errorf("%d events were kept", f.Events)
				}
			}
		})
	}
}

// The user's quota is used up (of a btrfs group, which needs no tables of users): the same.
func TestFaultQuota(t *testing.T) {
	t.Parallel()
	need(t, "mkfs.btrfs", "btrfs")
	dir := t.TempDir()
	r := inMounts(t, "mkdir "+dir+"/full && truncate -s 128M "+dir+"/disk && mkfs.btrfs -q "+dir+"/disk >/dev/null 2>&1 && mount -o loop "+dir+"/disk "+dir+"/full && "+
		"btrfs quota enable "+dir+"/full && btrfs qgroup limit 1M "+dir+"/full && "+
		preloaded(t, dir+"/full/run.prophet", "")+" "+prog(t, "work")+" 4 400000 "+dir+"/counts; echo $?; cp -r "+dir+"/full/run.prophet "+dir+"/saved; "+
		"{ head -c 2M /dev/zero >"+dir+"/full/more || echo full; } 2>/dev/null")
	compare(t, "what it said and how it ended", "worked\n3\nfull\n", r.Stdout)
	oneLine(t, "", r.Stderr, "cannot write to")
	f := read(t, dir+"/saved")
	if f.Events < 1000 {
		t.Errorf("%d events were kept", f.Events)
	}
	for _, d := range append(f.Trace.Damage, f.Damage...) {
		if !strings.Contains(d.Error(), "are missing before") && !strings.Contains(d.Error(), "is cut short") {
			t.Errorf("damage in the trace: %v", d)
		}
	}
	// Its control file was not on that disk, where a store into it may find no room, and is gone now that somebody has looked.
	list, _ := filepath.Glob("/dev/shm/prophet-0/*.dir")
	for _, link := range list {
		if to, _ := os.Readlink(link); to == dir+"/full/run.prophet" {
			t.Errorf("%s is left", link)
		}
	}
}

// A run on a disk that copies on writing is steered, joined by its children and recovered as any other.
func TestCopyOnWriteDisk(t *testing.T) {
	t.Parallel()
	need(t, "mkfs.btrfs")
	dir := t.TempDir()
	p := built(t, "prophet")
	r := inMounts(t, "mkdir "+dir+"/disk && truncate -s 128M "+dir+"/img && mkfs.btrfs -q "+dir+"/img >/dev/null 2>&1 && mount -o loop "+dir+"/img "+dir+"/disk && cd "+dir+"/disk && "+
		p+" record -q -o run.prophet -- sh -c 'ls /; sleep 100 & readlink ../disk/run.prophet/control >../link; "+p+" level $! order && "+p+" info run.prophet | grep live; kill -9 $!; kill -9 $$' >out; "+
		p+" verify run.prophet && "+p+" dump --call execve run.prophet | grep -c execve; grep live out; ls run.prophet | tr '\\n' ' '; cp -r run.prophet ..")
	link, _ := os.ReadFile(dir + "/link")
	if !strings.HasPrefix(string(link), "/dev/shm/prophet-") {
		t.Fatalf("the control file is not apart: %q; %s", link, clip(r.Stderr))
	}
	if _, err := os.Lstat(strings.TrimSpace(string(link))); err == nil {
		t.Errorf("%s is left", link)
	}
	if !strings.Contains(r.Stdout, "run.prophet is good") || !strings.Contains(r.Stdout, "it is live") || !strings.Contains(r.Stdout, "\nmeta.json ") {
		t.Errorf("%s\n%s", r.Stdout, r.Stderr)
	}
	f := sound(t, dir+"/run.prophet")
	if f.Calls["execve"] < 2 {
		t.Errorf("only %d programs of the shell are in the trace", f.Calls["execve"])
	}
}

// Files may not grow: no SIGXFSZ, whatever the limit, and a program that is to get it still gets it.
func TestFaultFileSize(t *testing.T) {
	t.Parallel()
	for _, kb := range []string{"0", "8", "100", "200", "1000"} {
		t.Run(kb, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			counts := dir + "/counts"
			if err := os.WriteFile(counts, make([]byte, 4096), 0o600); err != nil {
				t.Fatal(err)
			}
			script := "ulimit -f " + kb + "; " + prog(t, "work") + " 4 200000 " + counts + "; echo $?"
			bare := Cmd{Argv: []string{"bash", "-c", script}}.Bare(t)
			rec := Cmd{Argv: []string{"bash", "-c", "ulimit -f " + kb + "; " + preloaded(t, dir+"/run.prophet", "") + " " + prog(t, "work") + " 4 200000 " + counts + "; echo $?"}}.Bare(t)
			compare(t, "what it said and how it ended", bare.Stdout, rec.Stdout)
			oneLine(t, bare.Stderr, rec.Stderr, "")
			if kb == "200" || kb == "1000" {
				f := read(t, dir+"/run.prophet")
				if f.Events < 1000 {
					t.Errorf("%d events were kept", f.Events)
				}
				for _, d := range append(f.Trace.Damage, f.Damage...) {
					if !strings.Contains(d.Error(), "are missing before") {
						t.Errorf("damage in the trace: %v", d)
					}
				}
			}
		})
	}
	_, r := Same(t, Cmd{Argv: []string{"sh", "-c", "ulimit -f 8; head -c 100000 /dev/zero > big; echo $?; ls -l big | cut -d' ' -f5"}})
	if !strings.Contains(r.Stdout, "153") {
		t.Errorf("the program's own SIGXFSZ did not come: %s", r.Stdout)
	}
}

// Nothing can be written where the trace is to be: it is made elsewhere, or nowhere.
func TestFaultReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work := prog(t, "work") + " 2 1000 /dev/shm/prophet-test-counts-$$; echo $?; rm -f /dev/shm/prophet-test-counts-$$"
	ro := "mkdir " + dir + "/ro && mount -t tmpfs -o ro none " + dir + "/ro && "
	r := inMounts(t, ro+"cd "+dir+" && "+preloaded(t, dir+"/ro/run.prophet", "")+" "+work)
	compare(t, "what it said and how it ended", "worked\n3\n", r.Stdout)
	oneLine(t, "", r.Stderr, dir+"/work.")
	found, _ := filepath.Glob(dir + "/work.*.prophet")
	if len(found) != 1 {
		t.Fatalf("no trace where the program was started: %v", found)
	}
	sound(t, found[0])
	os.RemoveAll(dir + "/ro")
	r = inMounts(t, ro+"cd "+dir+"/ro && TMPDIR="+dir+"/ro "+preloaded(t, dir+"/ro/run.prophet", "")+" "+work)
	compare(t, "what it said and how it ended", "worked\n3\n", r.Stdout)
	oneLine(t, "", r.Stderr, "nothing is recorded")
}

// Shared memory is full, tiny, or cannot be written: rings are private then, and the trace is whole.
func TestFaultSharedMemory(t *testing.T) {
	t.Parallel()
	for name, mount := range map[string]string{
		"tiny":      "mount -t tmpfs -o size=64k none /dev/shm",
		"small":     "mount -t tmpfs -o size=300k none /dev/shm",
		"full":      "mount -t tmpfs -o size=1m none /dev/shm && { head -c 2m /dev/zero > /dev/shm/full 2>/dev/null; true; }",
		"read only": "mount -t tmpfs -o ro none /dev/shm",
		"none":      "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := inMounts(t, mount+" && "+preloaded(t, dir+"/run.prophet", "")+" "+prog(t, "work")+" 16 20000 "+dir+"/counts; echo $?")
			compare(t, "what it said and how it ended", "worked\n3\n", r.Stdout)
			compare(t, "standard error", "", r.Stderr)
			if f := undamaged(t, dir+"/run.prophet"); f.Calls["pthread_mutex_lock"] != 320000 {
				t.Errorf("%d of 320000 locks are in the trace", f.Calls["pthread_mutex_lock"])
			}
		})
	}
}

// Shared memory is as small as in a container, 64 MiB, for more threads than have room there: those that come late have
// private rings, and no trace is less whole for it.
func TestFaultSmallSharedMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := inMounts(t, "mount -t tmpfs -o size=64m,nosuid,nodev,noexec none /dev/shm && "+preloaded(t, dir+"/run.prophet", "")+" "+prog(t, "many")+" 5000; echo $?; df --output=avail /dev/shm | tail -1 >"+dir+"/left")
	bare := Cmd{Argv: []string{"sh", "-c", prog(t, "many") + " 5000; echo $?"}}.Bare(t)
	compare(t, "what it said and how it ended", bare.Stdout, r.Stdout)
	compare(t, "standard error", "", r.Stderr)
	if f := undamaged(t, dir+"/run.prophet"); f.Calls["pthread_create"] != 5000 {
		t.Errorf("%d of 5000 threads are in the trace", f.Calls["pthread_create"])
	}
}

// Ten thousand threads at once.
func TestFaultManyThreads(t *testing.T) {
	_, r := Same(t, Cmd{Argv: []string{prog(t, "many"), "10000"}, Timeout: 120 * time.Second})
	f := undamaged(t, r.Trace)
	if f.Threads != 10001 {
		t.Errorf("%d threads are in the trace, want 10001", f.Threads)
	}
}

// A storm of forks: children that exit, that are killed, that do nothing; the shared memory does not run out.
func TestFaultForks(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want int // processes in the trace
	}{
		{[]string{"20000", "8", "exit"}, 20001},
		{[]string{"4000", "50", "kill"}, 4001},
		{[]string{"5000", "4", "quiet"}, 0},
	} {
		t.Run(c.argv[2], func(t *testing.T) {
			_, r := Same(t, Cmd{Argv: append([]string{prog(t, "forks")}, c.argv...), Timeout: 120 * time.Second})
			f := undamaged(t, r.Trace)
			if c.want > 0 && f.Processes != c.want {
				t.Errorf("%d processes are in the trace, want %d", f.Processes, c.want)
			}
			for _, l := range f.Lost {
				t.Errorf("lost: %d %s", l.N, l.What)
			}
		})
	}
}

// The trace is removed while it is written: the program goes on, one line says so, and no trace comes back.
func TestFaultRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := dir + "/run.prophet"
	script := prog(t, "work") + " 1 10000 " + dir + "/counts; rm -rf " + path + "; " + prog(t, "work") + " 4 100000 " + dir + "/counts; echo $?"
	cmd := Cmd{Argv: []string{"sh", "-c", preloaded(t, path, "") + " sh -c '" + script + "'"}}
	r := cmd.Bare(t)
	compare(t, "what it said and how it ended", "worked\nworked\n3\n", r.Stdout)
	if n := strings.Count(r.Stderr, "\n"); n > 1 || strings.Count(r.Stderr, "prophet: ") != n {
		t.Errorf("standard error: %q", r.Stderr)
	}
	if found, _ := filepath.Glob(dir + "/*.prophet"); len(found) != 0 {
		t.Errorf("traces came back: %v", found)
	}
	// The process that writes when it is removed says so.
	os.Remove(dir + "/counts")
	run := exec.Command(prog(t, "work"), "4", "400000", dir+"/counts")
	run.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_TRACE="+path)
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond)
	os.RemoveAll(path)
	run.Wait()
	compare(t, "output", "worked\n", out.String())
	compare(t, "status", "exit status 3", run.ProcessState.String())
	oneLine(t, "", errs.String(), path)
}

// Damaged traces: every command that reads says which file, where and why, ends with 1, and reads the rest.
func TestFaultDamage(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "work"), "3", "60000", "counts"}})
	whole := sound(t, r.Trace)
	stream := "stream-00"
	good, err := os.ReadFile(filepath.Join(r.Trace, stream))
	if err != nil {
		t.Fatal(err)
	}
	if len(good) < 4*cabi.SlotSize {
		t.Fatalf("the stream is too short for this test: %d bytes", len(good))
	}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	spoil := map[string]func(b []byte) []byte{
		"truncated": func(b []byte) []byte { return b[:len(b)-1000] },
		"half":      func(b []byte) []byte { return b[:len(b)/2+17] },
		"bit":       func(b []byte) []byte { b[rng.Intn(len(b))] ^= 1 << rng.Intn(8); return b },
		"ten bits": func(b []byte) []byte {
			for range 10 {
				b[rng.Intn(len(b))] ^= 1 << rng.Intn(8)
			}
			return b
		},
		"magic":   func(b []byte) []byte { b[rng.Intn(4)] ^= 32; return b }, // a packed trace's is 16 bytes
		"head":    func(b []byte) []byte { b[rng.Intn(cabi.ChunkHeader)] ^= 16; return b },
		"zeroes":  func(b []byte) []byte { clear(b[len(b)/3 : len(b)/3+5000]); return b },
		"cut out": func(b []byte) []byte { return append(b[:len(b)/3], b[len(b)/3+777:]...) },
		"put in": func(b []byte) []byte {
			return append(append(bytes.Clone(b[:len(b)/3]), "something else"...), b[len(b)/3:]...)
		},
		"begins with": func(b []byte) []byte { return append([]byte("junk"), b...) },
	}
	for name, f := range spoil {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, packed := range []bool{false, true} {
				dir := filepath.Join(t.TempDir(), "bad.prophet")
				if err := os.CopyFS(dir, os.DirFS(r.Trace)); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(dir, stream)
				reads := dir
				if packed {
					reads = dir + ".packed"
					if out, err := exec.Command(built(t, "prophet"), "pack", "-o", reads, dir).CombinedOutput(); err != nil {
						t.Fatalf("pack: %v\n%s", err, out)
					}
					file = reads
				}
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, f(b), 0o600); err != nil {
					t.Fatal(err)
				}
				commands := [][]string{{"verify", reads}, {"info", reads}, {"dump", reads}}
				if !packed {
					commands = append(commands, []string{"pack", "-o", dir + ".again", reads})
				}
				for _, argv := range commands {
					cmd := exec.Command(built(t, "prophet"), argv...)
					var out, errs bytes.Buffer
					cmd.Stdout, cmd.Stderr = &out, &errs
					cmd.Run()
					if code := cmd.ProcessState.ExitCode(); code != 1 {
						t.Errorf("packed %v: %s ended with %v, want 1: %s", packed, argv[0], cmd.ProcessState, clip(errs.String()))
					}
					if said := errs.String() + out.String(); !strings.Contains(said, filepath.Base(file)) && !strings.Contains(said, stream) || !strings.Contains(said, "offset") {
						t.Errorf("packed %v: %s does not say which file and where: %s", packed, argv[0], clip(errs.String()))
					}
					if lines := strings.Count(out.String(), "\n"); argv[0] == "dump" && name != "half" && name != "ten bits" && !packed && lines < int(whole.Events)/3 {
						t.Errorf("packed %v: dump printed %d lines of %d events", packed, lines, whole.Events)
					}
				}
			}
		})
	}
}

// The recorder dies with the program only: SIGSEGV, SIGABRT and the like keep their meaning.
func TestFaultSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGKILL, syscall.SIGXFSZ} {
		b, r := Same(t, Cmd{Argv: []string{"python3", "-c", fmt.Sprintf("import os, signal\nsignal.signal(%d, signal.SIG_DFL) if %d != 9 else None\nos.kill(os.getpid(), %d)", sig, sig, sig)}})
		if !strings.HasPrefix(b.Status, "signal") {
			t.Errorf("the program was to be ended by %v: %s", sig, b.Status)
		}
		undamaged(t, r.Trace)
	}
}

// TestFaultKilledBetween: whoever ends last saves what killed processes left, wherever in the table that is; it took
// itself for another that lives where its slots lay on both sides of theirs.
func TestFaultKilledBetween(t *testing.T) {
	_, rec := Same(t, Cmd{Argv: []string{compile(t, filepath.Join(top, "tests", "progs", "killbetween.c"))}})
	rep, err := recovery.Recover(rec.Trace, recovery.Options{})
	if err != nil || rep.Tails != 0 {
		t.Errorf("%d tails were left, %v", rep.Tails, err)
	}
}

// TestFaultKilledYoung: a child that was killed between taking its slot and giving it memory cost its parent a SIGBUS
// at exit, when the parent looked at what the dead had left.
func TestFaultKilledYoung(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "progs", "killslot.c"))
	for alive := range 200 {
		Same(t, Cmd{Argv: []string{bin, strconv.Itoa(alive * 1500)}})
	}
}

// A process that is number 1 of its own namespace, and ended unseen, is not taken for the number 1 that everybody sees: the
// trace has ended, too, and has what it did.
func TestFaultEndedInside(t *testing.T) {
	t.Parallel()
	needRoot(t, "a pid namespace")
	_, r := Same(t, Cmd{Argv: []string{prog(t, "inner")}})
	if r.Stdout != "one\ntwo\n7\n" {
		t.Fatalf("it wrote %q", r.Stdout)
	}
	if f := undamaged(t, r.Trace); f.Calls["write"] < 2 {
		t.Errorf("%d writes are in the trace", f.Calls["write"])
	}
	if _, err := os.Stat(filepath.Join(r.Trace, "control")); !os.IsNotExist(err) {
		t.Errorf("the trace is held to be live: %v", err)
	}
}

// A process whose first thread ended by system call ends with its last thread, and says so: the kernel's counts are known.
func TestFaultLeft(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "left")}})
	f := undamaged(t, r.Trace)
	if n := f.Cover.NoExit; n != 0 {
		t.Errorf("%d of %d processes do not say how they ended", n, f.Processes)
	}
}
