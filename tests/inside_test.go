package tests

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prophet/runtime/inside"
	"prophet/runtime/shm"
)

// look prints all that a program can see of the files here, but for times of directories.
const look = `find . \( -type f -printf '%p %y %m %s %T@\n' \) -o -printf '%p %y %m %l\n' | sort; find . -type f | sort | xargs -r sha256sum`

// surroundings are cases of what a run does to files.
var surroundings = []struct {
	name  string
	needs []string
	setup string
	run   string
	late  string // what is different when the run is over; prints something else inside
}{
	{"append", nil, `echo one >a; : >empty; chmod 640 a`, `echo two >>a; echo x >>empty; echo n >>new`, `cat a new`},
	{"truncate", nil, `seq 1000 >a; seq 10 >b`, `: >a; truncate -s 3 b; echo z >c`, `wc -c a b`},
	{"remove", []string{"rm"}, `echo one >a; mkdir -p d/e; echo two >d/e/f; ln -s d/e/f l; mkfifo p`, `rm a l p; rm -r d`, `ls`},
	{"rename", []string{"mv"}, `echo one >a; echo two >b; mkdir d; echo f >d/f`, `mv a c; mv b a; mv d x; echo g >x/g; echo f2 >x/f`, `ls; cat a x/f`},
	{"swap", []string{"mv"}, `echo one >a; echo two >b`, `mv a t; mv b a; mv t b; mv b a`, `cat a`},
	{"directory over", []string{"python3"}, `mkdir d e; echo f >d/f`, `python3 -c 'import os; os.rename("d","e")'`, `ls`},
	{"attributes", []string{"chmod", "touch"}, `echo one >a; mkdir d; chmod 711 d`, `chmod 600 a; touch -d 2001-02-03 a; chmod 755 d`, `stat -c %a a d`},
	{"cp", []string{"cp"}, `seq 100000 >big; echo s >small`, `cp big copy; cp small big; cp -r . ../o 2>/dev/null || :; ln copy hard`, `ls -l`},
	{"tar", []string{"tar"}, `mkdir s; for i in 1 2 3 4 5; do seq $i >s/$i; done; tar cf t.tar s; echo other >s/3; rm s/4`, `tar xf t.tar; rm -r s/1`, `cat s/*`},
	{"sqlite3", []string{"sqlite3"}, `sqlite3 d.db 'create table t(a); insert into t values(1)'`, `sqlite3 d.db 'insert into t values(2); update t set a=a+10'`, `sqlite3 d.db 'select * from t'`},
	{"git", []string{"git"}, `git init -q r 2>/dev/null; cd r; git config user.email a@b; git config user.name n; echo 1 >f; git add f; git commit -qm one; cd ..`,
		`cd r; echo 2 >f; git commit -qam two; git gc -q; cd ..`, `cd r; git log --oneline | wc -l; cd ..`},
	{"gcc", []string{"gcc"}, `echo 'int puts(const char*); int main(void){ puts("built"); return 0; }' >p.c; echo '#!/bin/sh' >p; chmod 755 p`, `gcc -o p p.c && ./p`, `./p`},
	{"pipes and sockets", []string{"python3", "mkfifo"}, `echo keep >k`, `mkfifo f; (echo hi >f &) ; cat f; python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind("s"); s.listen()'`, `ls`},
	{"mmap", []string{"python3"}, `seq 5000 >m`, `python3 -c '
import mmap
with open("m","r+b") as f:
    m = mmap.mmap(f.fileno(), 0); m[0:5] = b"HELLO"; m.flush(); m[9000:9004] = b"BYE!"'`, `head -c 5 m`},
	{"relative", nil, `mkdir -p a/b; echo 1 >a/b/f; ln -s a/b s`, `cd s; echo 2 >f; echo 3 >../g; cd ..; rm -f a/b/f; mkdir -p b/c; cd b/c; echo 4 >h`, `find . -type f`},
	{"handles", []string{"find"}, `mkdir -p d/e d/g; echo 1 >d/e/f; echo 2 >d/g/h`, `find d -type f -delete; find d -depth -type d -empty -delete`, `ls`},
	{"shared memory", []string{"python3"}, `:`, `python3 -c '
from multiprocessing import shared_memory
m = shared_memory.SharedMemory(name="prophet-inside-'$$'", create=True, size=100); m.buf[0] = 1; m.close(); m.unlink()'; echo done >x`, `ls`},
}

// as is a user that tests run programs as.
type as struct {
	name string
	argv []string
	own  func(dir string) error
}

var users = []as{
	{"root", nil, func(string) error { return nil }},
	{"user", []string{"setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"}, func(dir string) error {
		return exec.Command("chown", "-R", "1000:1000", dir).Run()
	}},
}

// room makes a directory that any user may work in, with our programs.
func room(t *testing.T, u as) (dir, bin string) {
	t.Helper()
	top, err := os.MkdirTemp("", "prophet-room")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	dir, bin = filepath.Join(top, "work", "dir"), filepath.Join(top, "bin")
	for _, d := range []string{dir, bin} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"libprophet.so", "replayd", "prophet"} {
		if out, err := exec.Command("cp", built(t, f), bin).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	os.Chmod(top, 0o755)
	if err := u.own(top); err != nil {
		t.Fatal(err)
	}
	return dir, bin
}

// sh runs a line as that user.
func sh(t *testing.T, u as, dir, line string, env ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	argv := append(append([]string{}, u.argv...), "env", "HOME="+filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1")
	argv = append(append(argv, env...), "sh", "-c", line)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.Run()
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// quote makes one word of a line.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func TestInside(t *testing.T) {
	needRoot(t, "runs as other users")
	for _, u := range users {
		for _, c := range surroundings {
			t.Run(u.name+"/"+c.name, func(t *testing.T) {
				need(t, c.needs...)
				dir, bin := room(t, u)
				trace := filepath.Join(filepath.Dir(dir), "run.prophet")
				if _, errs, status := sh(t, u, dir, c.setup); status != 0 {
					t.Fatalf("setting up: %s", errs)
				}
				before, _, _ := sh(t, u, dir, look)
				if _, errs, status := sh(t, u, dir, c.run, "LD_PRELOAD="+bin+"/libprophet.so", "PROPHET_TRACE="+trace); status != 0 {
					t.Fatalf("recording: %s", errs)
				}
				after, _, _ := sh(t, u, dir, look)
				late, _, _ := sh(t, u, dir, c.late)
				in := bin + "/replayd inside " + trace + " -- sh -c "
				got, errs, status := sh(t, u, dir, in+quote(look))
				if status != 0 || errs != "" {
					t.Errorf("looking: status %d, %s", status, errs)
				}
				compare(t, "what was there before the run", before, got)
				again, errs, status := sh(t, u, dir, in+quote("("+c.run+"\n)\necho ==\n"+c.late))
				if _, tail, _ := strings.Cut(again, "==\n"); tail != late || status != 0 || errs != "" {
					t.Errorf("the same again: status %d, %s\n%s\nwant %s", status, errs, tail, late)
				}
				still, _, _ := sh(t, u, dir, look)
				compare(t, "outside", after, still)
				nothingLeft(t)
			})
		}
	}
}

// nothingLeft fails where a world has left something.
func nothingLeft(t *testing.T) {
	t.Helper()
	var left []string
	for i := 0; i < 50; i++ {
		left = nil
		for _, d := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
			all, _ := filepath.Glob(d + "/prophet-inside.*")
			for _, a := range all {
				if f, err := os.Open(a + "/lock"); err == nil {
					if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
						left = append(left, a)
					}
					f.Close()
				}
			}
		}
		mounts, _ := os.ReadFile("/proc/self/mountinfo")
		if strings.Contains(string(mounts), "prophet-inside") {
			left = append(left, "a mount")
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("left behind: %v", left)
}

// running finds processes with this word on their command line.
func running(word string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		b, _ := os.ReadFile(f)
		if bytes.Contains(b, []byte(word)) {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

func gone(t *testing.T, word string) {
	t.Helper()
	for i := 0; len(running(word)) > 0; i++ {
		if i > 100 {
			t.Fatalf("still running: %v", running(word))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestInsideWrites(t *testing.T) {
	needRoot(t, "runs as other users")
	for _, u := range users {
		t.Run(u.name, func(t *testing.T) {
			dir, bin := room(t, u)
			trace := dir + "/../run.prophet"
			sh(t, u, dir, "echo one >a; echo two >b; echo three >c; mkdir d")
			if _, errs, status := sh(t, u, dir, "echo more >>a; rm b; echo n >d/n", "LD_PRELOAD="+bin+"/libprophet.so", "PROPHET_TRACE="+trace); status != 0 {
				t.Fatal(errs)
			}
			kept := filepath.Dir(dir) + "/kept"
			line := bin + "/replayd inside --writes " + kept + " " + trace + " -- sh -c 'echo more >>a; rm b; mkdir e; echo x >e/x; echo n >d/n; chmod 600 d/n; rm c'"
			_, errs, status := sh(t, u, dir, line)
			if want := "replayd: removed: " + dir + "/b\nreplayd: removed: " + dir + "/c\n"; status != 0 || errs != want {
				t.Errorf("status %d, said %q, want %q", status, errs, want)
			}
			got, _, _ := sh(t, u, filepath.Join(kept, dir), "find . -type f -printf '%p %m\n' | sort; cat a d/n e/x")
			compare(t, "what was written", "./a 644\n./d/n 600\n./e/x 644\none\nmore\nn\nx\n", got)
			if out, _, _ := sh(t, u, kept, "find . -type c"); out != "" {
				t.Errorf("device files are left in it: %s", out)
			}
			sh(t, u, dir, bin+"/replayd inside --writes real "+trace+" -- sh -c 'echo real >r; ls /proc/self >/dev/null; test $$ -lt 100 && rm a'")
			if out, _, _ := sh(t, u, dir, "cat r; ls a"); out != "real\n" {
				t.Errorf("--writes real wrote %q", out)
			}
			nothingLeft(t)
		})
	}
}

// Whatever is killed, nothing stays.
func TestInsideKilled(t *testing.T) {
	needRoot(t, "runs as other users")

	for _, u := range users {
		for _, who := range []string{"replayd", "process 1", "the program", "its child"} {
			t.Run(u.name+"/"+who, func(t *testing.T) {

				dir, bin := room(t, u)
				trace := dir + "/../run.prophet"
				sh(t, u, dir, "echo one >a", "LD_PRELOAD="+bin+"/libprophet.so", "PROPHET_TRACE="+trace)
				word := fmt.Sprintf("7%d", time.Now().UnixNano()%1e9)
				argv := append(append([]string{}, u.argv...), bin+"/replayd", "inside", trace, "--", "sh", "-c", "echo big >big; sleep "+word+" & echo $$ >/dev/shm/x; wait; exit 5")
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Dir = dir
				var errs bytes.Buffer
				cmd.Stderr = &errs
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				defer cmd.Process.Kill()
				var shell, sleep, first int
				for i := 0; i < 300 && (sleep == 0 || shell == 0); i++ {
					time.Sleep(10 * time.Millisecond)
					shell, sleep, first = 0, 0, 0
					for _, pid := range running(word) {
						b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
						switch {
						case bytes.HasPrefix(b, []byte("sleep\x00")):
							sleep = pid
						case bytes.HasPrefix(b, []byte("sh\x00")):
							shell = pid
							st, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
							f := strings.Fields(string(st))
							first, _ = strconv.Atoi(f[3])
						}
					}
				}
				if sleep == 0 || shell == 0 || first == 0 {
					t.Fatalf("it did not begin: %s", errs.String())
				}
				want := 125
				switch who {
				case "replayd":
					cmd.Process.Kill()
					want = -1
				case "process 1":
					syscall.Kill(first, syscall.SIGKILL)
				case "the program":
					syscall.Kill(shell, syscall.SIGKILL)
					want = -1
					time.Sleep(100 * time.Millisecond) // its child goes on until it is killed, too
					syscall.Kill(sleep, syscall.SIGKILL)
				case "its child":
					syscall.Kill(sleep, syscall.SIGKILL)
					want = 5
				}
				cmd.Wait()
				if got := cmd.ProcessState.ExitCode(); got != want {
					t.Errorf("status %d, want %d: %s", got, want, errs.String())
				}
				gone(t, word)
				if who == "replayd" { // the next one finds what is left
					sh(t, u, dir, bin+"/replayd inside "+trace+" -- true")
				}
				nothingLeft(t)
				if _, err := os.Stat(dir + "/big"); err == nil {
					t.Error("it wrote outside")
				}
				if _, err := os.Stat("/dev/shm/x"); err == nil {
					t.Error("it wrote to the shared memory outside")
				}
			})
		}
	}
}

// Where the kernel gives no namespaces that is said, with what to do, and nothing is run.
func TestInsideRefused(t *testing.T) {
	needRoot(t, "makes a user namespace")
	need(t, "unshare", "setpriv")
	dir, bin := room(t, users[0])
	sh(t, users[0], dir, "echo one >a", "LD_PRELOAD="+bin+"/libprophet.so", "PROPHET_TRACE="+dir+"/../run.prophet")
	line := "unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set -all --inh-caps -all " + bin + "/replayd inside ../run.prophet -- sh -c \"echo no >out\"'"
	_, errs, status := sh(t, users[0], dir, line)
	if status != 125 || !strings.Contains(errs, "namespaces are refused") || !strings.Contains(errs, "sysctl user.max_user_namespaces=") || !strings.Contains(errs, "--writes real") {
		t.Errorf("status %d: %s", status, errs)
	}
	if _, err := os.Stat(dir + "/out"); err == nil {
		t.Error("it wrote all the same")
	}
	real := strings.Replace(line, "inside ../run", "inside --writes real ../run", 1)
	if _, errs, status := sh(t, users[0], dir, real); status != 0 || !strings.Contains(errs, "process ids are as they come") {
		t.Errorf("--writes real: status %d: %s", status, errs)
	}
	if _, err := os.Stat(dir + "/out"); err != nil {
		t.Error("--writes real did not write")
	}
	nothingLeft(t)
}

// A mount whose server is gone is left out, wherever it lies.
func TestInsideDeadMount(t *testing.T) {
	needRoot(t, "mounts a file system")
	dir, bin := room(t, users[0])
	sh(t, users[0], dir, "echo one >a", "LD_PRELOAD="+bin+"/libprophet.so", "PROPHET_TRACE="+dir+"/../run.prophet")
	dead := filepath.Join(t.TempDir(), "dead")
	if err := os.Mkdir(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Mount("prophet-test", dead, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd))
	unix.Close(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dead, unix.MNT_DETACH)
	if out, errs, status := sh(t, users[0], dir, bin+"/replayd inside ../run.prophet -- echo here"); status != 0 || out != "here\n" || !strings.Contains(errs, dead+" does not answer") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	nothingLeft(t)
}

// A stage need not begin again, as its threads have high numbers: that made worlds slow to begin. Overlays whose end does not wait for
// the disk, as re-executions have them, are not for programs that are measured.
func TestInsideQuick(t *testing.T) {
	needRoot(t, "runs as another user, too")
	for _, u := range users {
		dir, bin := room(t, u)
		trace := dir + "/t.prophet"
		if out, errs, status := sh(t, u, dir, bin+"/prophet record -q -o "+trace+" -- true"); status != 0 {
			t.Fatalf("%s: %s%s", u.name, out, errs)
		}
		out, errs, status := sh(t, u, dir, bin+"/replayd inside "+trace+` -- sh -c 'tr "\\0" "\n" </proc/1/cmdline | head -n 1; grep volatile /proc/mounts | grep -c upperdir='`)
		if want := "prophet-inside-stage\n0\n"; out != want || status != 1 { // predictions measure programs there, whose syncs take their time
			t.Errorf("%s: %q and %d, want %q: %s", u.name, out, status, want, errs)
		}
	}
	nothingLeft(t)
}

// The program has the process id that it had.
func TestInsidePID(t *testing.T) {
	for _, pid := range []int{2, 3, 7, 4242, 31999} {
		r, wr, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		w, err := inside.Start(context.Background(), inside.Spec{Path: "/bin/sh", Argv: []string{"sh", "-c", "echo $$; cat /proc/self/personality; umask; ulimit -c; exit 3"}, Env: os.Environ(), Dir: "/",
			PID: pid, Files: [3]*os.File{nil, wr, nil}, Limits: &inside.Limits{Umask: 0o27, Limits: [][2]uint64{{1 << 40, 1 << 40}, {1 << 40, 1 << 40}, {1 << 40, 1 << 40}, {8 << 20, 1 << 40}, {4096, 1 << 40}}}})
		wr.Close()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		out.ReadFrom(r)
		r.Close()
		status, err := w.Wait()
		if want := fmt.Sprintf("%d\n00040000\n0027\n8\n", pid); out.String() != want || status.Code != 3 || err != nil || !w.Exact || w.PID != pid {
			t.Errorf("%d: printed %q, want %q; %+v, %v, exact %v", pid, out.String(), want, status, err, w.Exact)
		}
		if _, err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	nothingLeft(t)
}

// Threads and processes get the ids that are wanted, whoever the program has become.
func TestPids(t *testing.T) {
	needRoot(t, "gives up root's rights")
	bin := prog(t, "pids")
	for _, uid := range []string{"", "1000"} {
		dir := t.TempDir()
		page := filepath.Join(dir, "pids")
		if err := shm.MakePids(page); err != nil {
			t.Fatal(err)
		}
		r, wr, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		argv := []string{"pids", page, "5000"}
		if uid != "" {
			argv = append(argv, uid)
		}
		w, err := inside.Start(context.Background(), inside.Spec{Path: bin, Argv: argv, Env: os.Environ(), Dir: "/", PID: 600, Pids: page, Share: []string{dir}, Files: [3]*os.File{nil, wr, nil}})
		wr.Close()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		out.ReadFrom(r)
		r.Close()
		status, err := w.Wait()
		if want := "wrong 0, refused 0, in the child 0\n"; out.String() != want || status.Code != 0 || err != nil {
			t.Errorf("as %q: printed %q, want %q; %+v, %v", uid, out.String(), want, status, err)
		}
		if _, err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	nothingLeft(t)
}

// `record` starts programs with the same addresses in each run, and the trace says what the program was started with.
func TestRecordAddresses(t *testing.T) {
	for _, c := range []struct {
		flags []string
		same  bool
	}{{nil, true}, {[]string{"--aslr"}, false}} {
		var maps []string
		for i := range 3 {
			dir := t.TempDir()
			argv := append(append([]string{"record", "-o", dir + "/t.prophet"}, c.flags...), "--", "sh", "-c", "umask 027; cat /proc/self/maps; cat /proc/self/personality")
			cmd := exec.Command(built(t, "prophet"), argv...)
			cmd.Env = append(os.Environ(), "PROPHET_LIB="+built(t, "libprophet.so"), "ODD=a\"b\\c\td=e\nf", fmt.Sprintf("RUN=%d", i))
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var stacks []string
			for _, l := range strings.Split(string(out), "\n") {
				if strings.HasSuffix(l, "[stack]") || strings.HasSuffix(l, "[heap]") || strings.HasSuffix(l, "/cat") {
					stacks = append(stacks, l)
				}
			}
			maps = append(maps, strings.Join(stacks, "\n"))
			if yes := strings.Contains(string(out), "00040000"); yes != c.same {
				t.Errorf("%v: personality: %s", c.flags, out[max(0, len(out)-20):])
			}
			m := sound(t, dir+"/t.prophet").Trace.Meta
			if m.Start.SameAddresses() != c.same || m.Start.EnvCut != 0 || len(m.Start.Limits) < 16 || m.Start.UID != uint32(os.Geteuid()) {
				t.Errorf("%v: %+v", c.flags, m.Start)
			}
			if !slices.Contains(m.Env, "ODD=a\"b\\c\td=e\nf") || !slices.Contains(m.Env, fmt.Sprintf("RUN=%d", i)) {
				t.Errorf("the environment is %q", m.Env)
			}
		}
		if same := maps[0] == maps[1] && maps[1] == maps[2]; same != c.same {
			t.Errorf("%v: addresses the same: %v\n%s\n%s", c.flags, same, maps[0], maps[1])
		}
	}
}

// A re-execution starts with the directory, environment (our own variables of children and of what is exec'd, too), limits
// and umask of the recording, whatever they are now, and changes nothing outside; as root and as an ordinary user.
func TestReexecStartsAlike(t *testing.T) {
	needRoot(t, "runs as other users")
	for _, u := range users {
		t.Run(u.name, func(t *testing.T) {
			dir, bin := room(t, u)
			sh(t, u, dir, "echo one >a")
			line := `ulimit -n 333; umask 027; exec ` + bin + `/prophet record -q -o ../run.prophet -- sh -c 'echo "$ODD"; pwd; ulimit -n; umask; echo $$; echo two >>a; read x <a; echo $x; : >new; echo *; env; exec env'`
			out, errs, status := sh(t, u, dir, line, "ODD=a b\"c")
			if status != 0 || !strings.HasPrefix(out, "a b\"c\n") {
				t.Fatalf("recording: %d %q %s", status, out, errs)
			}
			after, _, _ := sh(t, u, dir, look)
			for range 3 {
				again, errs, status := sh(t, u, filepath.Dir(dir), "ulimit -n 200; umask 0; "+bin+"/replayd --trace run.prophet", "ODD=other", "MORE=1")
				if again != out || status != 0 || !strings.Contains(errs, "identical") {
					t.Errorf("status %d, printed %q, want %q: %s", status, again, out, errs)
				}
			}
			still, _, _ := sh(t, u, dir, look)
			compare(t, "outside", after, still)
			nothingLeft(t)
		})
	}
}

// What the C library says to the system's log is not said again.
func TestReexecMute(t *testing.T) {
	needRoot(t, "listens at "+systemLog)
	bin := compile(t, filepath.Join(top, "tests", "replay", "logs.c"))
	if _, err := os.Lstat(systemLog); err == nil {
		cmd := Cmd{Argv: []string{bin}} // somebody else listens: what he hears nobody can tell here
		cmd.Reexecuted(t, cmd.Recorded(t))
		return
	}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: systemLog, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(systemLog)
	defer l.Close()
	heard := func() (n int) {
		b := make([]byte, 1000)
		for {
			l.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			k, _, err := l.ReadFromUnix(b)
			if err != nil {
				return n
			}
			if strings.Contains(string(b[:k]), "heard") {
				n++
			}
		}
	}
	cmd := Cmd{Argv: []string{bin}}
	rec := cmd.Recorded(t)
	if n := heard(); n != 1 {
		t.Fatalf("recorded: heard %d times", n)
	}
	compare(t, "standard output", rec.Stdout, cmd.Reexecuted(t, rec).Stdout)
	if n := heard(); n != 0 {
		t.Errorf("re-executed: heard %d times", n)
	}
}

// What sets the machine is not written again, what is the process's own is.
func TestReexecMachine(t *testing.T) {
	needRoot(t, "sets the machine")
	const setting = "/proc/sys/fs/lease-break-time"
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Fatal(err)
	}
	set := func() {
		if err := os.WriteFile(setting, before, 0); err != nil {
			t.Error(err)
		}
	}
	defer set()
	cmd := Cmd{Argv: []string{"sh", "-c", "echo 39 >" + setting + "; cat " + setting + "; echo 7 >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj"}}
	rec := cmd.Recorded(t)
	if rec.Stdout != "39\n7\n" {
		t.Fatalf("the recorded run could not set it: %q %s", rec.Stdout, clip(rec.Stderr))
	}
	set()
	compare(t, "standard output", rec.Stdout, cmd.Reexecuted(t, rec).Stdout)
	after, err := os.ReadFile(setting)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "setting", string(before), string(after))
}

// Processes outside are left alone.
func TestReexecOthers(t *testing.T) {
	other := exec.Command("sh", "-c", "trap 'echo signalled' USR1; echo ready; while :; do read x && echo $x; done")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	r := bufio.NewReader(out)
	said := func() string {
		line, _ := r.ReadString('\n')
		return strings.TrimSpace(line)
	}
	compare(t, "start", "ready", said())
	cmd := Cmd{Argv: []string{compile(t, filepath.Join(top, "tests", "replay", "others.c")), strconv.Itoa(other.Process.Pid)}}
	rec := cmd.Recorded(t)
	in.Write([]byte("one\n"))
	compare(t, "recorded", "signalled one", said()+" "+said())
	if !strings.Contains(rec.Stdout, "priority 1") {
		t.Fatalf("the recorded run: %q %s", rec.Stdout, clip(rec.Stderr))
	}
	compare(t, "standard output", rec.Stdout, cmd.Reexecuted(t, rec).Stdout)
	in.Write([]byte("two\n"))
	compare(t, "re-executed", "two", said())
	if n, err := unix.Getpriority(unix.PRIO_PROCESS, other.Process.Pid); err != nil || n != 19 { // the system call's 20 less
		t.Errorf("priority %d, %v: the re-execution set it", n, err)
	}
}

const systemLog = "/dev/log"

// A signal that comes while a world is being made, or removed, leaves nothing of it.
func TestInsideEnded(t *testing.T) {
	trace := Cmd{Argv: []string{"true"}}.Recorded(t).Trace
	dir := t.TempDir()
	for i := range 60 {
		cmd := exec.Command(built(t, "replayd"), "inside", trace, "--", "sleep", "0.02")
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 500 * time.Microsecond)
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		nothingIn(t, dir)
	}
}
