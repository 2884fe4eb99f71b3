package shm

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Default has the kernel do with a signal what it does in a new process. Go's own handler, which signal.Reset leaves there, ends
// no process by SIGALRM or SIGUSR1.
func Default(sig unix.Signal) {
	var action [4]uintptr // the kernel's: handler, flags, restorer, mask; all 0 is SIG_DFL
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}
