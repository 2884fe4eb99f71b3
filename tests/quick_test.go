package tests

import (
	"fmt"
	"testing"
)

// The quick path of mutexes once took keys of two bytes for keys of one: redis under jemalloc, whose chunks had more than
// 128 keys, left chunks that no reader could read.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "keys")}})
	f := sound(t, r.Trace)
	if got := fmt.Sprintf("%d events\n", f.Calls["pthread_mutex_lock"]+f.Calls["pthread_mutex_unlock"]); got != r.Stdout {
		t.Errorf("the trace has %sof a program that made %s", got, r.Stdout)
	}
}

// Calls that the wrapper asks the kernel for by itself are still cancellation points, also of the only thread.
func TestSelfCancel(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"-no-pie", "-fno-pie"}} {
		_, r := Same(t, Cmd{Argv: []string{prog(t, "selfcancel", flags...)}})
		sound(t, r.Trace)
	}
}
