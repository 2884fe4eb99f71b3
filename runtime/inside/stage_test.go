package inside

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestEvict: a thread of the runtime's that has a number that is wanted can be made to end.
func TestEvict(t *testing.T) {
	for range 20 {
		tids, held := make(chan int), make(chan bool)
		for range 4 { // each on a thread of its own
			go func() {
				runtime.LockOSThread()
				tids <- unix.Gettid()
				<-held
				runtime.UnlockOSThread()
			}()
		}
		var tid int
		for range 4 {
			if id := <-tids; id != os.Getpid() { // the first one cannot end
				tid = id
			}
		}
		close(held)
		evict(tid)
		for until := time.Now().Add(5 * time.Second); unix.Tgkill(os.Getpid(), tid, 0) == nil; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("thread %d is still there", tid)
			}
		}
	}
}

// TestSpare: threads are in store when spare returns, however busy the machine is: one that is on its way there is not found,
// and the one that is made in its place takes a number that the program wants.
func TestSpare(t *testing.T) {
	if os.Getenv("PROPHET_TEST_SPARE") != "" {
		threads := func() int {
			list, _ := os.ReadDir("/proc/self/task")
			return len(list)
		}
		spare()
		before := threads()
		var here, held sync.WaitGroup
		held.Add(1)
		here.Add(6)
		for range 6 {
			go func() {
				runtime.LockOSThread()
				here.Done()
				held.Wait()
			}()
		}
		here.Wait()
		if after := threads(); after > before {
			t.Errorf("%d threads, and %d after six were wanted", before, after)
		}
		held.Done()
		return
	}
	for range 4 {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		defer busy.Wait()
		defer busy.Process.Kill()
	}
	for range 20 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestSpare$")
		cmd.Env = append(os.Environ(), "PROPHET_TEST_SPARE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}
