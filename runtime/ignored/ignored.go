// Package ignored knows which signals the process ignored when it began, and keeps it so for the programs that it starts.
//
// Go's runtime takes most signals before any Go code runs, and what it has taken is at its default in a program that is
// started: `trap "" PIPE` in a shell would not reach a program behind `prophet record`. So the process begins in entry, a
// few instructions that look and go on to where Go begins. A program is linked with `-E prophet/runtime/ignored.entry` for that; one
// that has C in it begins in C, and says what it saw there (Began). Any other has ignored nothing, as far as is known.
package ignored

import (
	"os/signal"
	"syscall"
)

var mask uint64 // bit n-1: signal n; written by entry

func entry()

var _ = entry // the linker's flag alone names it

// Began says what was ignored at the start, for who began in C.
func Began(m uint64) { mask = m }

// Keep has what was ignored at the start ignored by this process, so that what it starts from now on ignores it, too. Not
// SIGCHLD: who waits for a child cannot ignore it.
func Keep() {
	const runtimes = 1<<(syscall.SIGCHLD-1) | 1<<(syscall.SIGURG-1)
	for n := range 64 {
		if (mask&^runtimes)>>n&1 != 0 {
			signal.Ignore(syscall.Signal(n + 1))
		}
	}
}
