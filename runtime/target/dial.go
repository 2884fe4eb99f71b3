package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"prophet/runtime/run"
)

// Words that a shell there says to us. The first cannot come from a terminal's echo of what asks for it.
const (
	shellHere  = "prophet-shell-42"
	askShell   = "\necho prophet-shell-$((6*7)) $(uname -m)\n" // junk to whoever is no shell
	shellReady = "prophet-ready"
	shellNot   = "prophet-cannot"
)

// A link is one connection: the command that leads to the target, and what it says.
type link struct {
	cmd  *exec.Cmd
	in   io.Closer
	wire *Wire
	said tail // its stderr

	gone chan struct{} // closed when the command has ended
	stop chan struct{} // closed when the link is given up
	once sync.Once
}

// dial connects to a target, starts `replayd target` there and leaves the link where the frames begin.
func dial(ctx context.Context, s Spec) (*link, error) {
	cmd, err := s.command()
	if err != nil {
		return nil, err
	}
	l := &link{cmd: cmd, gone: make(chan struct{}), stop: make(chan struct{})}
	// A signal from the terminal is ours to answer: the target ends in order when we are done.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = &l.said
	cmd.WaitDelay = time.Second // its stderr may be held by what it left
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	l.in, l.wire = in, NewWire(out, in)
	ready := make(chan error, 1)
	go func() { ready <- l.handshake(s) }()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = ctx.Err()
		defer func() { <-ready }() // its reads end with the command
	}
	if err != nil {
		l.kill()
		if ctx.Err() == nil {
			err = fmt.Errorf("target %s: %w%s", s.Text, starting(err), l.said.quote())
		}
		return nil, err
	}
	return l, nil
}

// starting puts the end of a stream into words.
func starting(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return errors.New("it ended before replayd was running there")
	}
	return err
}

// command is what leads to the target.
func (s Spec) command() (*exec.Cmd, error) {
	if s.Host != "" {
		argv := strings.Fields(os.Getenv("PROPHET_SSH"))
		if len(argv) == 0 {
			argv = []string{"ssh"}
		}
		argv = append(argv, "-T")
		if s.Port != 0 {
			argv = append(argv, "-p", strconv.Itoa(s.Port))
		}
		if s.User != "" {
			argv = append(argv, "-l", s.User)
		}
		return exec.Command(argv[0], append(argv[1:], "--", s.Host, "exec /bin/sh")...), nil
	}
	exe, err := run.FindReplayd()
	if err != nil {
		return nil, err
	}
	if s.Command != "" {
		return exec.Command("/bin/sh", "-c", strings.ReplaceAll(s.Command, "{}", quote(exe)+" target")), nil
	}
	cmd := exec.Command(exe, "target", "--dir", s.Dir)
	if s.CPUs != 0 {
		cmd.Args = append(cmd.Args, "--cpus", strconv.Itoa(s.CPUs))
	}
	if s.Quota != 0 {
		cmd.Args = append(cmd.Args, "--quota", strconv.FormatFloat(s.Quota, 'g', -1, 64))
	}
	return cmd, nil
}

// quote makes one word of a shell's of s.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (l *link) handshake(s Spec) error {
	if err := l.wire.Say(askShell); err != nil {
		return err
	}
	line, err := l.wire.Await(Banner, shellHere)
	if err != nil {
		return err
	}
	if strings.HasPrefix(line, shellHere) {
		if err := l.bootstrap(s, strings.TrimSpace(strings.TrimPrefix(line, shellHere))); err != nil {
			return err
		}
	}
	return l.wire.Say(Greeting + "\n")
}

// bootstrap brings replayd to a machine of which we have a shell. Each step waits for the last one's answer: a shell may read
// ahead, and what it has read a command of it would not get.
func (l *link) bootstrap(s Spec, machine string) error {
	exe, err := replaydFor(machine)
	if err != nil {
		return err
	}
	f, err := os.Open(exe)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	dir := `"${TMPDIR:-/tmp}"`
	if s.Dir != "" {
		dir = quote(s.Dir)
	}
	// What replayd leaves of the directory when it is killed, the shell removes.
	script := fmt.Sprintf(`umask 077; d=$(mktemp -d %[1]s/%[2]sXXXXXXXX) || { echo %[3]s make a directory in %[1]s; exit 1; }; `+
		`trap 'rm -rf "$d"' 0; trap 'exit 1' 1 2 13 15; echo %[4]s; head -c %[5]d >"$d/replayd"; `+
		`[ "$(wc -c <"$d/replayd")" -eq %[5]d ] || { echo %[3]s write %[5]d bytes to "$d"; exit 1; }; `+
		`chmod 700 "$d/replayd"; "$d/replayd" target --private "$d" || echo %[3]s run "$d/replayd": status $?; exit`+"\n",
		dir, DirPrefix, shellNot, shellReady, st.Size())
	if err := l.wire.Say(script); err != nil {
		return err
	}
	line, err := l.wire.Await(shellReady, shellNot)
	if err == nil && strings.HasPrefix(line, shellReady) {
		sending := l.wire.SayAll(io.LimitReader(f, st.Size()))
		if line, err = l.wire.Await(Banner, shellNot); err != nil && sending != nil { // what it says of that is better
			err = sending
		}
	}
	if err == nil && strings.HasPrefix(line, shellNot) {
		err = fmt.Errorf("its shell cannot%s", strings.TrimPrefix(line, shellNot))
	}
	return err
}

// DirPrefix begins the names of the directories that targets make.
const DirPrefix = "prophet-target-"

// replaydFor is replayd for a machine, as uname names it: this one's, or beside it in a directory named by the architecture.
func replaydFor(machine string) (string, error) {
	exe, err := run.FindReplayd()
	if err != nil {
		return "", err
	}
	arch := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine]
	switch arch {
	case "":
		return "", fmt.Errorf("it is a %.40q; replayd runs on x86_64 and aarch64", machine)
	case runtime.GOARCH:
		return exe, nil
	}
	other := filepath.Join(filepath.Dir(exe), arch, "replayd")
	if _, err := os.Stat(other); err != nil {
		return "", fmt.Errorf("it is an %s: put replayd for it at %s (make %s)", machine, other, arch)
	}
	return other, nil
}

// grace is how long a command may take to end when nobody speaks with it any more. A target here tidies up without it.
const grace = 2 * time.Second

// kill ends the command and all that it started here, and waits for it.
func (l *link) kill() {
	l.once.Do(func() {
		close(l.stop)
		l.in.Close()
		// With its streams closed the far side ends by itself; a command that does not is ended.
		timer := time.AfterFunc(grace, func() { syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL) })
		l.cmd.Wait()
		timer.Stop()
		close(l.gone)
	})
	<-l.gone
}

// tail keeps the last part of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailMax = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if n := len(t.b); n > tailMax {
		t.b = append([]byte(nil), t.b[n-tailMax:]...)
	}
	return len(b), nil
}

// quote is the text behind an error's: what the command said, if it said anything.
func (t *tail) quote() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := bytes.TrimSpace(t.b); len(b) > 0 {
		return fmt.Sprintf(" (it said: %s)", strings.ToValidUTF8(strings.ReplaceAll(string(b), "\n", "; "), "?"))
	}
	return ""
}
