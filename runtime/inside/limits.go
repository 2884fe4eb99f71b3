package inside

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits is what a program inherits beside its environment.
type Limits struct {
	Umask  int         `json:"umask"`
	Nice   int         `json:"nice"`
	Limits [][2]uint64 `json:"limits"` // RLIMIT_…: soft, hard; by number

	Ignored *uint64 `json:"ignored,omitempty"` // signals, 1 << number-1; nil: as we do
}

// ignores reports whether a signal is ignored when the program begins. SIGCHLD is not: who starts it waits for it.
func (l *Limits) ignores(n syscall.Signal) bool {
	if l == nil || l.Ignored == nil {
		return signal.Ignored(n)
	}
	return *l.Ignored>>(n-1)&1 != 0
}

// before sets what must be so when the program is made.
func (l *Limits) before() {
	if l == nil {
		return
	}
	unix.Umask(l.Umask)
	if len(l.Limits) > unix.RLIMIT_STACK {
		set(0, unix.RLIMIT_STACK, l.Limits[unix.RLIMIT_STACK]) // where mappings begin depends on it
	}
}

// after sets the rest before the program's first instruction. What is refused stays as it is.
func (l *Limits) after(pid int) {
	if l == nil {
		return
	}
	for i, v := range l.Limits {
		set(pid, i, v)
	}
	unix.Setpriority(unix.PRIO_PROCESS, pid, l.Nice)
}

// set sets a limit, or the soft one alone where the hard one would have to grow.
func set(pid, which int, v [2]uint64) {
	want := unix.Rlimit{Cur: v[0], Max: v[1]}
	var now unix.Rlimit
	if unix.Prlimit(pid, which, nil, &now) != nil || now == want || unix.Prlimit(pid, which, &want, nil) == nil {
		return
	}
	want = unix.Rlimit{Cur: min(v[0], now.Max), Max: now.Max}
	unix.Prlimit(pid, which, &want, nil)
}
