package shm

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What /proc says of processes and threads. They may be gone at any moment: then there is nothing.

func stat(pid, tid int) []byte {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/stat")
	return b
}

// StateOf is the kernel's letter for what a thread does: R, S, D, T, t, Z, X; 0 when there is none.
func StateOf(pid, tid int) byte {
	state, _, _ := parseStat(stat(pid, tid))
	return state
}

// ParentOf is the pid of a process's parent.
func ParentOf(pid int) int {
	b := string(stat(pid, pid))
	f := strings.Fields(b[strings.LastIndexByte(b, ')')+1:])
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

// Tasks are the threads of a process.
func Tasks(pid int) (tids []int) {
	list, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	for _, e := range list {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, n)
		}
	}
	return tids
}

// Children are a process's children, of all its threads. Empty where the kernel does not tell.
func Children(pid int) (pids []int) {
	for _, tid := range Tasks(pid) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, tid))
		for _, s := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(s); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// Catches reports whether a process has a handler for a signal.
func Catches(pid int, sig unix.Signal) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, ok := strings.Cut(string(b), "\nSigCgt:\t")
	if !ok || len(rest) < 16 {
		return false
	}
	set, err := strconv.ParseUint(rest[:16], 16, 64)
	return err == nil && set>>(sig-1)&1 != 0
}

// PIDNamespace is the number of the namespace that our pids are in, 0 when not known.
func PIDNamespace() uint32 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil {
		return 0
	}
	return uint32(st.Ino)
}

// World is where a run's processes are seen under other pids than we see them by.
type World struct {
	Init  int // the process that all of them descend from; it is none of them
	start uint64
	depth int // of its pid namespace, from ours

	tids map[uint32][2]uint32 // by the tid inside: pid and tid here
	pids map[uint32]uint32    // by the pid here: the one inside
}

func numbersOf(path string) []string {
	b, _ := os.ReadFile(path)
	_, rest, ok := strings.Cut(string(b), "\nNSpid:\t")
	if !ok {
		return nil
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Fields(line)
}

// WorldOf is the world of the processes that have the control file of this directory mapped; nil when they are in our own
// pid namespace, or when there is none.
func WorldOf(dir string) *World {
	want, err := realPath(dir)
	if err != nil {
		return nil
	}
	line := " " + controlPath(want) + "\n"
	var w *World
	eachMaps(func(pid string, maps string) bool {
		if !strings.Contains(maps, line) {
			return true
		}
		depth := len(numbersOf("/proc/" + pid + "/status"))
		at, err := strconv.Atoi(pid)
		if depth < 2 || err != nil {
			return true
		}
		for at > 1 && len(numbersOf(fmt.Sprintf("/proc/%d/status", at))) >= depth {
			up := ParentOf(at)
			if len(numbersOf(fmt.Sprintf("/proc/%d/status", up))) < 2 { // in our namespace: at is process 1 of the world
				break
			}
			at = up
		}
		_, start, _ := parseStat(stat(at, at))
		w = &World{Init: at, start: start, depth: 2}
		return false
	})
	return w
}

// Look reads which threads there are now: none when the world has ended, whoever has its pid now.
func (w *World) Look() {
	w.tids, w.pids = map[uint32][2]uint32{}, map[uint32]uint32{}
	if _, start, ok := parseStat(stat(w.Init, w.Init)); !ok || start != w.start {
		return
	}
	var walk func(pid int)
	walk = func(pid int) {
		for _, child := range Children(pid) {
			for _, tid := range Tasks(child) {
				n := numbersOf(fmt.Sprintf("/proc/%d/task/%d/status", child, tid))
				if len(n) < w.depth {
					continue
				}
				in, err := strconv.ParseUint(n[w.depth-1], 10, 32)
				if err != nil {
					continue
				}
				w.tids[uint32(in)] = [2]uint32{uint32(child), uint32(tid)}
				if tid == child {
					w.pids[uint32(child)] = uint32(in)
				}
			}
			walk(child)
		}
	}
	walk(w.Init)
}

// Processes are the world's pids here, as of the last Look.
func (w *World) Processes() (pids []uint32) {
	for pid := range w.pids {
		pids = append(pids, pid)
	}
	return pids
}

// Here is the pid and the tid here of a tid inside, as of the last Look. On a nil World they are the same.
func (w *World) Here(tid uint32) (pid, here uint32, ok bool) {
	if w == nil {
		return 0, tid, true
	}
	t, ok := w.tids[tid]
	return t[0], t[1], ok
}

// Inside is the pid inside of a pid here.
func (w *World) Inside(pid uint32) uint32 {
	if w == nil {
		return pid
	}
	return w.pids[pid]
}
