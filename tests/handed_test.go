package tests

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program that was given descriptors, by a shell, a service manager or its parent, is given the like again: files where they
// stood, what stands for pipes and sockets with what came through them, and nothing that replayd has by chance.
func TestHanded(t *testing.T) {
	t.Parallel()
	bin := compile(t, filepath.Join(top, "tests", "replay", "handed.c"))
	dir := t.TempDir()
	write := func(name, text string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o644)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err == nil {
			_, err = f.Seek(4, io.SeekStart)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	file, input, output := write("file", "not yet: this file"), write("input", "not this"), write("output", "old content")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	io.WriteString(w, "from a pipe")
	w.Close()
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	io.WriteString(other, "socket")
	socket, err := c.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	trace := filepath.Join(dir, "run.prophet")
	record := exec.Command(built(t, "prophet"), "record", "-q", "-o", trace, "--", bin)
	record.Dir, record.Stdin = dir, input
	record.ExtraFiles = []*os.File{nil, nil, file, r, socket, output, file}
	out, err := record.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5 is open, 2", "6 is open, 0", "8 is open", "5: 6 yet: t", "6: 6 from a", "7: 6 socket", "9: his", "0: this", "next 3"} {
		if !strings.Contains(string(out), want+"\n") && !strings.Contains(string(out), want) {
			t.Errorf("the recorded run does not say %q:\n%s", want, out)
		}
	}
	after, err := os.ReadFile(output.Name())
	if err != nil || string(after) != "old written" {
		t.Fatalf("%q %v", after, err)
	}
	for _, sh := range []string{`exec "$@" </dev/null`, `exec "$@" 3</etc/passwd 4</etc/group 9</dev/null`, `echo other | "$@"`} {
		var errs strings.Builder
		again := exec.Command("sh", "-c", sh, "sh", built(t, "replayd"), "--trace", trace)
		again.Stderr = &errs
		is, err := again.Output()
		if err != nil || !strings.Contains(errs.String(), "replayd: identical: ") {
			t.Errorf("%s: %v: %s", sh, err, clip(errs.String()))
		}
		compare(t, "standard output by "+sh, string(out), string(is))
	}
	if now, err := os.ReadFile(output.Name()); err != nil || string(now) != string(after) {
		t.Errorf("the file was changed: %q %v", now, err)
	}
}
