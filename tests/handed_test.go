package tests

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prophet/runtime/trace"
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

// Descriptors are found however far up they are, and those in a row, too.
func TestHandedHigh(t *testing.T) {
	t.Parallel()
	f, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, fds := range [][]int{{}, {63}, {64}, {130}, {3, 255}, {64, 65, 66, 67}} {
		dir := filepath.Join(t.TempDir(), "run.prophet")
		c := exec.Command("/bin/true")
		c.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_TRACE="+dir)
		for _, fd := range fds {
			for len(c.ExtraFiles) < fd-3 {
				c.ExtraFiles = append(c.ExtraFiles, nil)
			}
			c.ExtraFiles = append(c.ExtraFiles, f)
		}
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
		m := metaOf(t, dir)
		if m.Start == nil || m.Start.Handed == nil {
			t.Fatalf("%v: %+v", fds, m.Start)
		}
		var found []int
		for _, h := range *m.Start.Handed {
			found = append(found, h.FD)
		}
		for _, fd := range fds {
			if !slices.Contains(found, fd) {
				t.Errorf("%v were handed on, the trace has %v", fds, found)
			}
		}
	}
}

// The trace names the program that the kernel names, by whatever name it was started.
func TestExeNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := func(to, name string) string {
		name = filepath.Join(dir, name)
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	real, err := exec.LookPath("readlink")
	if err != nil {
		t.Fatal(err)
	}
	over := link(link(filepath.Dir(real), "bin"), "over")
	relative, err := filepath.Rel(dir, real)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script") // its interpreter's link, and its own name, which is none
	if err := os.WriteFile(script, []byte("#!"+real+" /proc/self/exe\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	copyFile(t, real, filepath.Join(dir, ".hidden"), 0o755)
	file, err := elf.Open(real)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	loader, err := file.Section(".interp").Data()
	if err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(real)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	const what = "/proc/self/exe"
	for _, argv := range [][]string{
		{real, what},
		{"/bin/../bin/readlink", what},
		{"/bin//readlink", what},
		{filepath.Join(over, "readlink"), what},
		{link(real, "absolute"), what},
		{link(relative, "relative"), what},
		{link("absolute", "twice"), what},
		{link("/proc/self/fd/3", "held"), what},
		{filepath.Join(dir, ".hidden"), what},
		{script},
		{string(bytes.TrimRight(loader, "\x00")), real, what},
	} {
		to := filepath.Join(t.TempDir(), "run.prophet")
		c := exec.Command(argv[0], argv[1:]...)
		c.ExtraFiles = []*os.File{held}
		c.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_TRACE="+to)
		out, _ := c.Output() // of the script it cannot say where its second name leads to
		want, _, _ := strings.Cut(string(out), "\n")
		if m := metaOf(t, to); want == "" || m.Exe != want {
			t.Errorf("%v: the trace says %q, the kernel %q", argv, m.Exe, want)
		}
	}
}

func metaOf(t testing.TB, dir string) (m trace.Meta) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}
