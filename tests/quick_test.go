package tests

import (
	"fmt"
	"sync/atomic"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
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

// A place in an order that is not the predicted one is told on the quick path, too: however far from it, and by any number of bytes.
func TestSitesInTurn(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "sites")}})
	f := sound(t, r.Trace)
	var places, told uint64
	if _, err := f.Trace.Walk(1, func(*trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			if r.Tag != trace.TagEvent || r.Row == nil || r.Row.Name != "pthread_mutex_lock" {
				return nil
			}
			places++
			if r.Seq != places || r.F[0] == 0 || r.Ret != 0 || r.Note != 0 || r.Timed {
				return fmt.Errorf("place %d is %+v", places, *r)
			}
			if r.Mask == cabi.MaskSeq {
				told++
			}
			return nil
		}
	}, nil); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%d events\n", 2*places); got != r.Stdout || told < 60000 {
		t.Errorf("the trace has %s of which %d tell their places, of a program that made %s", got, told, r.Stdout)
	}
}

// A key keeps its place while others are used: with one place for each, redis defined a key anew at every sixth event.
func TestKeysKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	_, r := Same(t, Cmd{Argv: []string{prog(t, "fdkeys")}})
	f := sound(t, r.Trace)
	var keys, events atomic.Int64
	if _, err := f.Trace.Walk(1, func(*trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			switch r.Tag {
			case cabi.TagKey:
				keys.Add(1)
			case trace.TagEvent:
				events.Add(1)
			}
			return nil
		}
	}, nil); err != nil {
		t.Fatal(err)
	}
	if events.Load() < 12000 || keys.Load() > events.Load()/10 {
		t.Errorf("%d keys were defined for %d events", keys.Load(), events.Load())
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
