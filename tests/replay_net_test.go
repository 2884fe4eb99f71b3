package tests

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// served records a server that prints its port first and ends by itself after load, and returns its trace and output.
func served(t *testing.T, load func(addr string), argv ...string) (trace, out string) {
	t.Helper()
	trace = filepath.Join(t.TempDir(), "run.prophet")
	cmd := exec.Command(built(t, "prophet"), append([]string{"record", "-q", "-o", trace, "--"}, argv...)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(pipe)
	port, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	load(net.JoinHostPort("127.0.0.1", strings.TrimSpace(port)))
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return trace, port + string(rest)
}

// alone re-executes a trace n times where there is no network at all, and fails unless each run is identical and writes
// what the recorded one did.
func alone(t *testing.T, n int, trace, out string, argv ...string) {
	t.Helper()
	how := "-rn"
	if os.Geteuid() == 0 {
		how = "-n"
	}
	for i := range n {
		args := append([]string{how, built(t, "replayd"), "--trace", trace, "--"}, argv...)
		cmd := exec.Command("unshare", args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if err != nil || !strings.Contains(stderr.String(), "replayd: identical: ") {
			t.Fatalf("re-execution %d: %v: %s", i, err, clip(stderr.String()))
		}
		compare(t, fmt.Sprintf("standard output of re-execution %d", i), out, stdout.String())
	}
}

// talk sends messages of random lengths over one connection and waits for each to come back.
func talk(addr string, r *rand.Rand) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	for range 6 {
		m := bytes.Repeat([]byte{byte(r.Uint32())}, 1+r.IntN(3000))
		back := make([]byte, len(m))
		if _, err := c.Write(m); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, back); err != nil {
			return err
		}
		if !bytes.Equal(m, back) {
			return fmt.Errorf("%d bytes came back as others", len(m))
		}
	}
	return nil
}

// TestServerAlone re-executes an epoll server with no client and no network: what came is the trace's, descriptors have
// their numbers though many come and go, and what epoll_wait gives are the pointers of the new run.
func TestServerAlone(t *testing.T) {
	for _, workers := range []int{2, 16} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			const connections = 48
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			argv := []string{prog(t, "echo"), fmt.Sprint(workers), fmt.Sprint(connections)}
			trace, out := served(t, func(addr string) {
				var wg sync.WaitGroup
				room := make(chan struct{}, 8)
				for k := range connections {
					wg.Add(1)
					room <- struct{}{}
					go func() {
						defer wg.Done()
						defer func() { <-room }()
						if err := talk(addr, rand.New(rand.NewPCG(seed, uint64(k)))); err != nil {
							t.Error(err)
						}
					}()
				}
				wg.Wait()
			}, argv...)
			if !strings.HasSuffix(out, "left 0\n") {
				t.Fatalf("the server said %q", out)
			}
			alone(t, 10, trace, out, argv...)
		})
	}
}

// TestNumbersAgain: threads that make and close descriptors of all kinds get the numbers that they got, whoever comes first.
func TestNumbersAgain(t *testing.T) {
	for _, threads := range []int{2, 16} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			c := Cmd{Argv: []string{prog(t, "numbers"), fmt.Sprint(threads), "200"}}
			rec := c.Recorded(t)
			for range 5 {
				again := c.Reexecuted(t, rec)
				compare(t, "standard output of the re-execution", rec.Stdout, again.Stdout)
			}
			more := Cmd{Argv: append([]string{"sh", "-c", `exec "$@" 3</dev/null 5</tmp`, "sh", built(t, "replayd"), "--trace", rec.Trace, "--"}, c.Argv...)}
			again := more.Bare(t)
			if !strings.Contains(again.Stderr, "identical") {
				t.Errorf("with more descriptors inherited: %s: %s", again.Status, clip(again.Stderr))
			}
			compare(t, "standard output with more descriptors inherited", rec.Stdout, again.Stdout)
		})
	}
}

// TestNginxAlone re-executes nginx, one process, under a short load, with no client and no network.
func TestNginxAlone(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	conf := fmt.Sprintf(`daemon off; master_process off; error_log stderr; pid %[1]s/pid;
events { worker_connections 64; }
http { access_log off; server { listen %[2]s; location / { return 200 "hello\n"; } } }
`, dir, addr)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	argv := []string{"/usr/sbin/nginx", "-c", filepath.Join(dir, "conf")}
	trace := filepath.Join(t.TempDir(), "run.prophet")
	cmd := exec.Command(built(t, "prophet"), append([]string{"record", "-q", "-o", trace, "--"}, argv...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
			for got, tries := 0, 0; got < 100 && tries < 1000; tries++ {
				r, err := client.Get("http://" + addr + "/")
				if err != nil { // it does not listen yet
					time.Sleep(10 * time.Millisecond)
					continue
				}
				b, err := io.ReadAll(r.Body)
				r.Body.Close()
				if err != nil || string(b) != "hello\n" {
					t.Errorf("%v: %q", err, b)
				}
				got++
			}
			client.CloseIdleConnections()
		}()
	}
	wg.Wait()
	var pid int
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err == nil {
		_, err = fmt.Sscan(string(text), &pid)
	}
	if err != nil || pid <= 0 {
		cmd.Process.Kill()
		t.Fatalf("nginx has no pid: %v", err)
	}
	syscall.Kill(pid, syscall.SIGQUIT)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	alone(t, 10, trace, "", argv...)
}

// TestServerByNumber: a server that makes its calls by number is as much alone as others.
func TestServerByNumber(t *testing.T) {
	argv := []string{prog(t, "numbered"), "4"}
	trace, out := served(t, func(addr string) {
		for k := range 4 {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			c.SetDeadline(time.Now().Add(60 * time.Second))
			if _, err := c.Write(bytes.Repeat([]byte{byte(k + 'a')}, 4+4+32+40)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, 4+4+8+8)); err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
	}, argv...)
	alone(t, 3, trace, out, argv...)
}
