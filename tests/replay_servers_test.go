package tests

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What libraries' constructors did before ours ran was not in the trace: jemalloc reads its clock there, and gave memory back
// at other times than recorded. And a library lay elsewhere when it is long in memory and short as a file, and so did
// the thread's data, whose address seeds jemalloc's random numbers.
func TestReexecEarly(t *testing.T) {
	dir := t.TempDir()
	source, bin := filepath.Join(top, "tests", "replay", "early.c"), filepath.Join(dir, "early")
	for _, args := range [][]string{
		{"-D_GNU_SOURCE", "-DLIBRARY", "-O1", "-fPIC", "-shared", "-o", filepath.Join(dir, "libearly.so"), source},
		{"-D_GNU_SOURCE", "-O1", "-o", bin, source, "-L" + dir, "-learly", "-Wl,-rpath," + dir},
	} {
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc %v: %v\n%s", args, err, out)
		}
	}
	path := filepath.Join(t.TempDir(), "run.prophet")
	rec := Cmd{Argv: []string{built(t, "prophet"), "record", "-q", "-o", path, "--", bin}}.Bare(t)
	rec.Trace = path
	if lines := strings.Fields(rec.Stdout); len(lines) != 4 || rec.Status != "exit status 0" {
		t.Fatalf("%s: %q %q", rec.Status, rec.Stdout, rec.Stderr)
	}
	again(t, Cmd{Argv: []string{bin}}, rec, 3)
}

// Several threads wait for one eventfd or pipe: each was told that there is something to read, and one of them took it. Who
// took it earlier than recorded left the others waiting for ever.
func TestReexecHerd(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "replay", "herd.c"))
	visited := 0
	for _, options := range []string{"", "serial"} {
		for _, n := range []int{2, 16} {
			visited++
			t.Run(fmt.Sprint(options, n), func(t *testing.T) {
				cmd := Cmd{Argv: []string{bin, fmt.Sprint(n)}, Options: options}
				again(t, cmd, cmd.Recorded(t), 3)
			})
		}
	}
	if visited != 4 {
		t.Errorf("%d visited", visited)
	}
}

// server records a server under load until stop has ended it, and returns its trace and command.
func server(t *testing.T, options []string, argv func(dir, port string) []string, load func(addr string) error, stop func(port string, p *os.Process) error) (trace string, command []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	trace, command = filepath.Join(t.TempDir(), "run.prophet"), argv(t.TempDir(), port)
	cmd := exec.Command(built(t, "prophet"), append(append(append([]string{"record", "-q"}, options...), "-o", trace, "--"), command...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up := false
	for i := 0; i < 400 && !up; i++ {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			up = true
		} else {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if err = fmt.Errorf("%v does not listen", command); up {
		err = load(addr)
	}
	if err2 := stop(port, cmd.Process); err == nil {
		err = err2
	}
	if err2 := cmd.Wait(); err == nil {
		err = err2
	}
	if err != nil {
		t.Fatal(err)
	}
	return trace, command
}

// TestRedisAlone re-executes redis. Its memory comes from jemalloc, whose threads count pages in atomics: with them a
// recording is exact under --serial.
func TestRedisAlone(t *testing.T) {
	for _, row := range []struct{ options, args []string }{{nil, []string{"--jemalloc-bg-thread", "no"}}, {[]string{"--serial"}, nil}} {
		t.Run(strings.Join(row.options, ""), func(t *testing.T) {
			trace, argv := server(t, row.options, func(dir, port string) []string {
				return append([]string{"/usr/bin/redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--logfile", filepath.Join(dir, "log")}, row.args...)
			}, func(addr string) error {
				_, port, _ := net.SplitHostPort(addr)
				out, err := exec.Command("redis-benchmark", "-p", port, "-n", "1000", "-c", "10", "-q").CombinedOutput()
				if err != nil {
					err = fmt.Errorf("redis-benchmark: %w: %s", err, clip(string(out)))
				}
				return err
			}, func(port string, _ *os.Process) error {
				return exec.Command("redis-cli", "-p", port, "shutdown", "nosave").Run()
			})
			alone(t, 5, trace, "", argv...)
		})
	}
}

// TestNginxFiles re-executes nginx with its workers under wrk, where the kernel moves files to clients: without those it failed
// as soon as a socket that stands for one was full or closed.
func TestNginxFiles(t *testing.T) {
	need(t, "/usr/sbin/nginx", "wrk")
	trace, argv := server(t, nil, func(dir, port string) []string {
		as := ""
		if os.Getuid() == 0 {
			as = "user root; " // else its workers cannot look into our directory
		}
		conf := as + fmt.Sprintf(`daemon off; worker_processes 2; pid %[1]s/pid; error_log stderr warn; events { worker_connections 64; }
http { access_log %[1]s/access; sendfile on; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2; fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
server { listen 127.0.0.1:%[2]s; root %[1]s; } }`, dir, port)
		for name, text := range map[string]string{"conf": conf, "page": strings.Repeat("a page ", 3000)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return []string{"/usr/sbin/nginx", "-e", "stderr", "-c", filepath.Join(dir, "conf")}
	}, func(addr string) error {
		out, err := exec.Command("wrk", "-t1", "-c8", "-d1s", "http://"+addr+"/page").CombinedOutput()
		if err == nil && (!strings.Contains(string(out), " requests in ") || strings.Contains(string(out), "Non-2xx")) {
			err = fmt.Errorf("wrk: %s", clip(string(out)))
		}
		return err
	}, func(_ string, p *os.Process) error { return p.Signal(syscall.SIGTERM) })
	alone(t, 3, trace, "", argv...)
}

// TestMemcachedAlone re-executes memcached, whose threads share counters without a lock: recorded under --serial.
func TestMemcachedAlone(t *testing.T) {
	client := func(addr string, seed uint64) error {
		r := rand.New(rand.NewPCG(seed, 0))
		for range 6 {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				return err
			}
			c.SetDeadline(time.Now().Add(20 * time.Second))
			var b strings.Builder
			for range 20 {
				switch key := r.IntN(200); r.IntN(5) {
				case 0, 1:
					v := strings.Repeat("v", 1+r.IntN(9000))
					fmt.Fprintf(&b, "set k%d 0 0 %d\r\n%s\r\n", key, len(v), v)
				case 2, 3:
					fmt.Fprintf(&b, "get k%d\r\n", key)
				default:
					fmt.Fprintf(&b, "add n%d 0 0 1\r\n1\r\nincr n%d 1\r\n", key%5, key%5)
				}
			}
			b.WriteString("stats\r\nversion\r\n")
			if _, err := c.Write([]byte(b.String())); err != nil {
				return err
			}
			for lines, line := bufio.NewReader(c), ""; !strings.HasPrefix(line, "VERSION"); {
				if line, err = lines.ReadString('\n'); err != nil {
					return err
				}
			}
			c.Close()
		}
		return nil
	}
	trace, argv := server(t, []string{"--serial"}, func(_, port string) []string {
		return []string{"/usr/bin/memcached", "-u", "nobody", "-p", port, "-l", "127.0.0.1", "-U", "0", "-t", strconv.Itoa(4)}
	}, func(addr string) error {
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Add(1)
			go func() {
				defer wg.Done()
				errs[i] = client(addr, uint64(i))
			}()
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}, func(_ string, p *os.Process) error { return p.Signal(syscall.SIGTERM) })
	alone(t, 5, trace, "", argv...)
}

// TestX264Serial re-executes x264, whose workers read their pool's exit flag without its lock.
func TestX264Serial(t *testing.T) {
	in := make([]byte, 12*152064)
	r := rand.New(rand.NewPCG(1, 0))
	for i := range in {
		in[i] = byte(r.Uint32())
	}
	cmd := Cmd{Argv: []string{"/usr/bin/x264", "--quiet", "--threads", "3", "--no-progress", "--input-res", "352x288", "--fps", "25", "--demuxer", "raw", "--preset", "fast", "--muxer", "raw", "-o", "-", "in.yuv"}, Options: "serial",
		Setup: func(dir string) error { return os.WriteFile(filepath.Join(dir, "in.yuv"), in, 0o644) }}
	rec := cmd.Recorded(t)
	if rec.Status != "exit status 0" || len(rec.Stdout) < 10000 {
		t.Fatalf("%s: %d bytes: %s", rec.Status, len(rec.Stdout), clip(rec.Stderr))
	}
	again(t, cmd, rec, 3)
}

// TestSortParallel re-executes sort, whose merging threads read how far others have come under no lock in common: it is exact
// under --serial, and the report of a plain one names the cause where that comes out otherwise, as it mostly does.
func TestSortParallel(t *testing.T) {
	cmd := Cmd{Argv: []string{"/usr/bin/sort", "--parallel=2", "-S", "100M", "in"}, Setup: func(dir string) error {
		r := rand.New(rand.NewPCG(1, 0))
		var b strings.Builder
		for i := range 200000 {
			fmt.Fprintln(&b, r.IntN(1e9), i)
		}
		return os.WriteFile(filepath.Join(dir, "in"), []byte(b.String()), 0o644)
	}}
	serial := cmd
	serial.Options = "serial"
	rec := serial.Recorded(t)
	again(t, serial, rec, 3)
	out := rec.Stdout
	for range 3 {
		rec := cmd.Recorded(t)
		re := cmd
		re.dir, re.Argv = rec.Dir, append([]string{built(t, "replayd"), "--trace", rec.Trace, "--"}, cmd.Argv...)
		switch r := re.Bare(t); {
		case strings.Contains(r.Stderr, "replayd: identical: "):
			compare(t, "standard output", out, r.Stdout)
		case r.Status != "exit status 125" || !strings.Contains(r.Stderr, "cause     unguarded data: "):
			t.Errorf("%s: %s", r.Status, clip(r.Stderr))
		}
	}
}
