package shm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// tickNS is the unit of a process's start time in /proc: USER_HZ is 100 on every machine that Prophet runs on.
const tickNS = 10_000_000

// slackNS is how much later than the recorder's first look a process may seem to have started.
const slackNS = 5 * tickNS

// Alive reports whether the process of that pid that the recorder saw at this time (CLOCK_BOOTTIME ns; 0: unknown) still
// runs. One that started later is another one; a zombie whose other threads are gone has ended.
func Alive(pid uint32, seen uint64) bool {
	if pid == 0 || pid > 1<<30 {
		return false
	}
	if err := unix.Kill(int(pid), 0); err == unix.ESRCH {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err)
	}
	state, start, ok := parseStat(b)
	if !ok {
		return true
	}
	if seen != 0 && start*tickNS > seen+slackNS {
		return false
	}
	if state == 'X' || state == 'Z' && !otherThreads(pid) {
		return false
	}
	return true
}

// parseStat finds state and start time in /proc/PID/stat, whose second field may hold anything.
func parseStat(b []byte) (state byte, start uint64, ok bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0, 0, false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 || len(f[0]) != 1 {
		return 0, 0, false
	}
	start, err := strconv.ParseUint(f[19], 10, 64) // field 22; the first one here is field 3
	return f[0][0], start, err == nil
}

func otherThreads(pid uint32) bool {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false
	}
	for _, e := range list {
		if e.Name() == strconv.Itoa(int(pid)) {
			continue
		}
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(int(pid)), "task", e.Name(), "stat"))
		if err != nil {
			continue
		}
		if state, _, ok := parseStat(b); ok && state != 'Z' && state != 'X' {
			return true
		}
	}
	return false
}

// Watch remembers who is alive, so that a run with many threads asks once a process. Not for long use: answers go stale.
type Watch struct {
	mu   sync.Mutex
	seen map[[3]uint64]int
	own  uint32
	far  map[[2]uint32]int // processes of other pid namespaces, by namespace (0: it does not tell) and number there: their pids here
}

// Alive is Alive for a process whose pid is a number in the pid namespace ns (0: not known), remembered. It says which pid
// that process has here. Namespaces that are not below ours have no processes here: theirs count as gone.
func (w *Watch) Alive(pid, ns uint32, seen uint64) (here int, ok bool) {
	k := [3]uint64{uint64(pid), uint64(ns), seen}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[[3]uint64]int{}
		w.own = PIDNamespace()
	}
	here, ok = w.seen[k]
	if !ok {
		here = int(pid)
		if ns != 0 && w.own != 0 && ns != w.own {
			here = w.below(pid, ns)
		}
		if !Alive(uint32(here), seen) {
			here = 0
		}
		w.seen[k] = here
	}
	return here, here != 0
}

// below is the pid here of a process of a namespace below ours, 0 when there is none.
func (w *Watch) below(pid, ns uint32) int {
	if w.far == nil {
		w.far = map[[2]uint32]int{}
		list, _ := os.ReadDir("/proc")
		for _, e := range list {
			here, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			num := numbersOf("/proc/" + e.Name() + "/status")
			if len(num) < 2 {
				continue
			}
			there, err := strconv.ParseUint(num[len(num)-1], 10, 32)
			if err != nil {
				continue
			}
			var st unix.Stat_t
			if unix.Stat("/proc/"+e.Name()+"/ns/pid", &st) != nil { // another user's
				st.Ino = 0
			}
			w.far[[2]uint32{uint32(st.Ino), uint32(there)}] = here
		}
	}
	if here := w.far[[2]uint32{ns, pid}]; here != 0 {
		return here
	}
	return w.far[[2]uint32{0, pid}]
}
