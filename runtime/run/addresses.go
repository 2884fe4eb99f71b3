package run

import (
	"os/exec"
	"runtime"

	"prophet/runtime/inside"
)

// start starts a command, with the same addresses in each run unless they are to be random. Where that is refused, as in
// some containers, it starts as usual; meta.json says which it was.
func start(cmd *exec.Cmd, random bool) error {
	if random {
		return cmd.Start()
	}
	runtime.LockOSThread() // what is changed is this thread's, and what it forks has it
	defer runtime.UnlockOSThread()
	undo, _ := inside.SameAddresses()
	defer undo()
	return cmd.Start()
}
