package inside

import (
	"os"
	"runtime"
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
