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
