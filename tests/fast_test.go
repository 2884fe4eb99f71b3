package tests

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"prophet/cabi"
)

// fastAt is where a control file says which calls may take a fast path.
const fastAt = int64(unsafe.Offsetof(cabi.Control{}.Fast))

// recordedFast records tests/order/fast.c, which the seed alone steers, with fast paths or without.
func recordedFast(t *testing.T, bin string, seed, threads, turns int, fast bool) Run {
	t.Helper()
	r := Run{Trace: filepath.Join(t.TempDir(), "run.prophet"), Dir: t.TempDir()}
	cmd := exec.Command(bin, strconv.Itoa(seed), strconv.Itoa(threads), strconv.Itoa(turns))
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_TRACE="+r.Trace)
	cmd.Dir, cmd.WaitDelay, cmd.Stderr = r.Dir, time.Second, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	var f *os.File
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if f, err = os.OpenFile(filepath.Join(r.Trace, "control"), os.O_RDWR, 0); err == nil {
			break
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatal(err)
		}
	}
	defer f.Close()
	var word [4]byte
	read := func() uint32 {
		if _, err := f.ReadAt(word[:], fastAt); err != nil {
			return 0 // it is being made
		}
		return binary.LittleEndian.Uint32(word[:])
	}
	for begin := time.Now(); read() == 0 && time.Since(begin) < 10*time.Second; time.Sleep(time.Millisecond) {
		// It is written before the run's first event.
	}
	if !fast {
		if _, err := f.WriteAt(make([]byte, 4), fastAt); err != nil {
			t.Fatal(err)
		}
	}
	io.WriteString(in, "\n")
	r.Stdout, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if (read() != 0) != fast {
		t.Fatalf("fast paths were %x in the end", read())
	}
	io.WriteString(in, "\n")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	r.Status = cmd.ProcessState.String()
	return r
}

// What two runs need not have in common: when, how long and whether one waited, where in memory, under which id, what a
// clock or a descriptor from outside showed, and of which events a stack was taken.
var (
	whenLong = regexp.MustCompile(`^[0-9.]+ +| <[0-9.]+>| waited\b| stack .*$| \{dev=.*\}`)
	where    = regexp.MustCompile(`\b(addr|handle|object)=[0-9a-fx]+`)
	told     = regexp.MustCompile(`(clock_gettime\()ns=[0-9]+(, )`)
	parents  = regexp.MustCompile(`(getp*id\(\)) = [0-9]+`)
)

// eventText is the text of each thread's events.
func eventText(t *testing.T, path string) map[string][]string {
	t.Helper()
	out, err := exec.Command(built(t, "prophet"), "dump", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	text := map[string][]string{}
	for l := range strings.Lines(string(out)) {
		l = whenLong.ReplaceAllString(strings.TrimSpace(l), "")
		name, l, ok := strings.Cut(l, " ")
		if l = strings.TrimSpace(l); !ok || !strings.HasPrefix(l, "#") {
			continue
		}
		l = where.ReplaceAllString(l, "$1")
		l = parents.ReplaceAllString(told.ReplaceAllString(l, "$1$2"), "$1")
		text[name] = append(text[name], l)
	}
	return text
}

// Fast paths are another way to the same events: recorded with them, without them and re-executed, a run in which the order
// of everything is decided by a seed has the same text of events, in each thread.
func TestFastPathsText(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "order", "fast.c"))
	visited := 0
	for _, threads := range []int{1, 2, 16} {
		for seed := 1; seed <= 3; seed++ {
			visited++
			t.Run(fmt.Sprintf("%d threads, seed %d", threads, seed), func(t *testing.T) {
				const turns = 120
				fast, slow := recordedFast(t, bin, seed, threads, turns, true), recordedFast(t, bin, seed, threads, turns, false)
				compare(t, "standard output", fast.Stdout, slow.Stdout)
				a, b := eventText(t, fast.Trace), eventText(t, slow.Trace)
				events := 0
				if len(a) != threads+1 || len(b) != len(a) {
					t.Fatalf("%d and %d threads", len(a), len(b))
				}
				for name, lines := range a {
					events += len(lines)
					if len(lines) != len(b[name]) {
						t.Errorf("thread %s has %d events, and %d without fast paths", name, len(lines), len(b[name]))
					}
					for i := range min(len(lines), len(b[name])) {
						if lines[i] != b[name][i] {
							t.Fatalf("thread %s (seed %d):\nfast    %s\nslow    %s", name, seed, lines[i], b[name][i])
						}
					}
				}
				if events < 10*turns {
					t.Errorf("only %d events", events)
				}
				for _, r := range []Run{fast, slow} {
					c := Cmd{Argv: []string{bin, strconv.Itoa(seed), strconv.Itoa(threads), strconv.Itoa(turns)}}
					compare(t, "standard output of the re-execution", r.Stdout, c.Reexecuted(t, r).Stdout)
				}
			})
		}
	}
	if visited != 9 {
		t.Errorf("%d rows visited", visited)
	}
}
