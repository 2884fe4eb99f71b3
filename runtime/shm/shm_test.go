package shm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prophet/cabi"
)

func TestParseStat(t *testing.T) {
	const rest = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21"
	rows := 0
	for _, c := range []struct {
		in    string
		state byte
		start uint64
		ok    bool
	}{
		{"12 (cat) S" + rest, 'S', 4242, true},
		{"12 (a) b) (c) Z" + rest, 'Z', 4242, true},
		{"12 (cat S 1", 0, 0, false},
		{"12 (cat) S 1 2", 0, 0, false},
		{"", 0, 0, false},
	} {
		state, start, ok := parseStat([]byte(c.in))
		if ok != c.ok || ok && (state != c.state || start != c.start) {
			t.Errorf("%q: %c %d %v", c.in, state, start, ok)
		}
		rows++
	}
	if rows != 5 {
		t.Fatalf("%d rows visited", rows)
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("12 (cat) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20"))
	f.Fuzz(func(t *testing.T, b []byte) { parseStat(b) })
}

func TestAlive(t *testing.T) {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	self := uint32(os.Getpid())
	if !Alive(self, uint64(ts.Nano())) || !Alive(self, 0) {
		t.Error("this process is not alive")
	}
	if Alive(self, 1) {
		t.Error("a process that started long after it was seen is the same one")
	}
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := uint32(c.Process.Pid)
	c.Process.Kill()
	for i := 0; Alive(pid, 0); i++ { // a zombie now
		if i > 200 {
			t.Fatal("a zombie counts as alive")
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.Wait()
	if Alive(pid, 0) || Alive(0, 0) || Alive(1<<31, 0) {
		t.Error("the dead live")
	}
}

// A pid is a number in a namespace: process 1 of one is not ours.
func TestAliveBelow(t *testing.T) {
	c := exec.Command("sleep", "60")
	c.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/pid", c.Process.Pid), &st); err != nil {
		t.Fatal(err)
	}
	ns := uint32(st.Ino)
	var w Watch
	if here, ok := w.Alive(1, ns, 0); !ok || here != c.Process.Pid {
		t.Errorf("process 1 of a namespace is %d here, %v; want %d", here, ok, c.Process.Pid)
	}
	if here, ok := w.Alive(uint32(os.Getpid()), PIDNamespace(), 0); !ok || here != os.Getpid() {
		t.Errorf("this process is %d here, %v", here, ok)
	}
	if here, ok := w.Alive(uint32(os.Getpid()), ns, 0); ok {
		t.Errorf("our number in another namespace is %d", here)
	}
	c.Process.Kill()
	c.Wait()
	w = Watch{}
	if here, ok := w.Alive(1, ns, 0); ok {
		t.Errorf("process 1 of a namespace that has ended is %d", here)
	}
}

func TestControlRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenControl(dir); err != ErrNoControl {
		t.Error(err)
	}
	path := filepath.Join(dir, "control")
	rows := 0
	for _, size := range []int{0, 100, cabi.ControlSize} {
		os.WriteFile(path, make([]byte, size), 0o600)
		if c, err := OpenControl(dir); err == nil {
			c.Close()
			t.Errorf("%d zero bytes are a control file", size)
		}
		rows++
	}
	if rows != 3 {
		t.Fatalf("%d rows visited", rows)
	}
	os.Remove(path)
	os.Symlink("/etc/passwd", path)
	if c, err := OpenControl(dir); err == nil || !strings.Contains(err.Error(), "symbolic links") {
		t.Error("followed a link", c, err)
	}
}

func TestTicks(t *testing.T) {
	a := Now()
	time.Sleep(5 * time.Millisecond)
	b := Now()
	if b.Ticks <= a.Ticks || b.Mono-a.Mono < 5e6 || b.Real < 1e18 {
		t.Errorf("%+v %+v", a, b)
	}
}

// A process is told to be of a run by its rings, also where its number may belong to somebody else.
func TestRecords(t *testing.T) {
	const tag = 0x0123456789abcdef
	if Records(os.Getpid(), tag) {
		t.Errorf("we have no rings, and are told to be recorded")
	}
	if !Records(1<<22+1, tag) { // above every pid
		t.Errorf("a process that has ended is told to be another's")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), RingsName(tag)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	if !Records(os.Getpid(), tag) {
		t.Errorf("we have the rings mapped, and are told to be another's")
	}
}
