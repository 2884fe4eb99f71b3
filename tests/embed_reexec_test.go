package tests

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prophet/cabi/client"
)

// TestEmbedReexec: a host hears how a re-execution ended: as recorded, diverged, killed, or not at all.
func TestEmbedReexec(t *testing.T) {
	t.Setenv("PROPHET_LIB", built(t, "libprophet.so"))
	built(t, "replayd")
	file := filepath.Join(t.TempDir(), "input")
	os.WriteFile(file, []byte("one\n"), 0o600)
	rec := Cmd{Argv: []string{"md5sum", file}}.Recorded(t)
	for _, c := range []struct {
		name, content, report string
		trace                 string
		want                  client.Result
	}{
		{"as recorded", "one\n", "replayd: identical: ", rec.Trace, client.Result{Identical: true, Threads: 1, Processes: 1}},
		{"another input", "two\n", "replayd: ", rec.Trace, client.Result{Status: 125}},
		{"no trace", "one\n", "replayd: ", file + ".none", client.Result{Status: 125}},
	} {
		os.WriteFile(file, []byte(c.content), 0o600)
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		got, err := client.Reexecute(t.Context(), c.trace, client.ReexecOptions{Stdout: out})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !strings.Contains(got.Report, c.report) {
			t.Errorf("%s: the report is %q", c.name, got.Report)
		}
		if got.Identical != (got.Events > 0) {
			t.Errorf("%s: identical %v with %d events", c.name, got.Identical, got.Events)
		}
		got.Report, got.Events = "", 0
		if *got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, *got, c.want)
		}
		if text, _ := os.ReadFile(out.Name()); got.Identical && !strings.HasSuffix(string(text), file+"\n") {
			t.Errorf("%s: it wrote %q", c.name, text)
		}
	}
	if _, err := client.StartReexec(rec.Trace, client.ReexecOptions{Replayd: "/nowhere/replayd"}); !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "/nowhere/replayd") {
		t.Errorf("without replayd: %v", err)
	}
}

// stub is a replayd that does what a test says.
func stub(t *testing.T, script string) string {
	path := filepath.Join(t.TempDir(), "replayd")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEmbedReexecCommand: the command line, environment and directory that replayd gets, and what is left when it ends
// badly.
func TestEmbedReexecCommand(t *testing.T) {
	t.Setenv("PROPHET_LIB", built(t, "libprophet.so"))
	t.Setenv("LD_PRELOAD", "")
	dir := t.TempDir()
	script := `for a in "$@"; do echo "<$a>"; done >&2; pwd >&2; env | sort | grep -e KEPT -e PROPHET -e LD_PRELOAD >&2; exit 7`
	x, err := client.StartReexec("/t.prophet", client.ReexecOptions{Replayd: stub(t, script), Control: true, Flags: []string{"--realtime"},
		Args: []string{"a", "b c"}, Dir: dir, Env: []string{"KEPT=1", "PROPHET_TRACE=x", "PROPHET_RUN=y", "LD_PRELOAD=/x/libprophet.so", "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "<--trace>\n</t.prophet>\n<--control>\n<" + x.Socket() + ">\n<--realtime>\n<-->\n<a>\n<b c>\n" + dir + "\nKEPT=1\n"
	compare(t, "what it was started with", want, res.Report)
	if st, err := os.Stat(filepath.Dir(x.Socket())); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the socket's directory: %v", err)
	}
	if res.Status != 7 || res.Identical {
		t.Errorf("it ended with %+v", res)
	}
	socket := x.Socket()
	x.Close()
	if _, err := os.Stat(filepath.Dir(socket)); err == nil {
		t.Error("the socket's directory is still there")
	}

	// One that says that it was identical and ends with 125 was not; a signal is told apart.
	for _, c := range []struct {
		script string
		want   client.Result
	}{
		{"echo 'replayd: identical: 3 events, 1 threads, 1 processes' >&2; exit 125", client.Result{Status: 125}},
		{"echo 'replayd: identical: 30 events, 2 threads, 1 processes' >&2; exit 9", client.Result{Status: 9, Identical: true, Events: 30, Threads: 2, Processes: 1}},
		{"echo 'replayd: identical: many events' >&2; kill -KILL $$", client.Result{Status: -1, Signal: syscall.SIGKILL}},
	} {
		got, err := client.Reexecute(t.Context(), "/t.prophet", client.ReexecOptions{Replayd: stub(t, c.script)})
		if err != nil {
			t.Fatal(err)
		}
		if got.Report = ""; *got != c.want {
			t.Errorf("%s: %+v, want %+v", c.script, *got, c.want)
		}
	}

	// What does not end by itself is ended, and one that does not listen is killed.
	for _, script := range []string{"exec sleep 100", "trap '' TERM; while :; do sleep 1; done"} {
		x, err := client.StartReexec("/t.prophet", client.ReexecOptions{Replayd: stub(t, script)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		pid := x.PID()
		x.Close()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("%s: letting go took %v", script, took)
		}
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("%s: process %d is still there", script, pid)
		}
	}
}

// TestEmbedReexecAsk: a host's requests reach replayd as the protocol says, and its answers the host; a daemon that is
// late, silent, rude or gone is an error in time.
func TestEmbedReexecAsk(t *testing.T) {
	t.Setenv("PROPHET_LIB", built(t, "libprophet.so"))
	start := func(script string) *client.Reexec {
		x, err := client.StartReexec("/t.prophet", client.ReexecOptions{Replayd: stub(t, script), Control: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.Close() })
		return x
	}
	within := func(d time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		t.Cleanup(cancel)
		return ctx
	}
	long := strings.Repeat("x", 1<<20)
	x := start("exec sleep 100")
	got := make(chan string, 100)
	go func() {
		time.Sleep(100 * time.Millisecond) // it asks before there is a socket
		l, err := net.Listen("unix", x.Socket())
		if err != nil {
			got <- err.Error()
			return
		}
		defer l.Close()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(`{"hello":"prophet","v":1}` + "\n"))
			lines := bufio.NewScanner(c)
			for lines.Scan() {
				got <- lines.Text()
				switch {
				case strings.Contains(lines.Text(), "status"):
					c.Write([]byte(`{"id":1,"ok":true,"status":{"world":"` + long + `"}}` + "\n"))
				case strings.Contains(lines.Text(), "step"):
					c.Write([]byte(`{"id":1,"status":{"ok":true},"ok":false,"error":"no \"such\" thread"}` + "\n"))
				case strings.Contains(lines.Text(), "rude"):
					c.Write([]byte("}}]]\"\\\n"))
				case strings.Contains(lines.Text(), "silent"):
				case strings.Contains(lines.Text(), "gone"):
					c.Close()
				default:
					c.Write([]byte(`{"id":1,"ok":true}` + "\n"))
				}
			}
		}
	}()
	expect := func(line string) {
		t.Helper()
		select {
		case s := <-got:
			if s != line {
				t.Errorf("replayd was asked %s, want %s", s, line)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("nobody asked %s", line)
		}
	}
	if err := x.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(`{"id":1,"do":"pause"}`)
	var answer struct{ Status struct{ World string } }
	if err := x.Ask(within(5*time.Second), map[string]string{"do": "status"}, &answer); err != nil || answer.Status.World != long {
		t.Errorf("status: %v, %d bytes", err, len(answer.Status.World))
	}
	expect(`{"id":2,"do":"status"}`)
	err := x.Ask(t.Context(), map[string]string{"do": "step"}, nil)
	if !errors.Is(err, syscall.EPROTO) || err.Error() != `no "such" thread` {
		t.Errorf("a refusal: %v", err)
	}
	expect(`{"id":3,"do":"step"}`)
	for _, c := range []struct {
		do   string
		want syscall.Errno
	}{{"rude", syscall.EPROTO}, {"silent", syscall.ETIMEDOUT}, {"gone", syscall.EPIPE}} {
		if err := x.Ask(within(300*time.Millisecond), map[string]string{"do": c.do}, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.do, err, c.want)
		}
		<-got
		if err := x.Resume(within(5 * time.Second)); err != nil {
			t.Errorf("after %s: %v", c.do, err)
		}
		<-got
	}
	if err := start("exit 1").Pause(within(5 * time.Second)); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a replayd that ended at once: %v", err)
	}
	began := time.Now()
	if err := start("exec sleep 100").Pause(within(200 * time.Millisecond)); !errors.Is(err, syscall.ETIMEDOUT) || time.Since(began) > 2*time.Second {
		t.Errorf("a replayd without a socket: %v after %v", err, time.Since(began))
	}
}
