package tests

import (
	"slices"
	"strings"
	"testing"
	"time"

	"prophet/runtime/recovery"
	"prophet/runtime/trace"
)

// waited are the sleeps of a trace of tests/predict/backoff.c in microseconds, each by how many tries in a row had failed before it,
// and how often each thread wrote.
func waited(t *testing.T, path string) (sleeps [][]int64, writes []int) {
	t.Helper()
	tr, _, _, err := recovery.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for _, th := range tr.Threads {
		failed, wrote := 0, 0
		it := tr.Iter(th)
		var r trace.Record
		for it.Next(&r) == nil {
			if r.Tag != trace.TagEvent {
				continue
			}
			switch name := r.Row.Name; {
			case strings.HasPrefix(name, "fcntl") && r.Ret < 0:
				failed++
			case strings.HasPrefix(name, "fcntl"):
				failed = 0
			case strings.HasPrefix(name, "pwrite"):
				wrote++
			case name == "usleep" && failed > 0:
				for len(sleeps) <= failed {
					sleeps = append(sleeps, nil)
				}
				sleeps[failed] = append(sleeps[failed], r.F[0])
			}
		}
		writes = append(writes, wrote)
	}
	return sleeps, writes
}

// Who tries for a lock again and again waits as long as the program did after as many tries that failed in a row, however often it has to try
// here; or as long as after the most tries that anybody needed at home. Nobody does more or less with the lock than at home.
func TestIssueBackOff(t *testing.T) {
	t.Run("soon", func(t *testing.T) { backOff(t, "200000") })
	t.Run("late", func(t *testing.T) { backOff(t, "3000000") }) // the lock is often somebody else's when one comes back
}

func backOff(t *testing.T, rest string) {
	t.Helper()
	us := []int64{0, 1000, 2000, 5000, 10000, 15000, 20000}
	// With its threads in a hurry a machine may let none of them wait often: what there is to be known is little then.
	var home string
	var known [][]int64
	var does []int
	for range 5 {
		home = recordedProgram(t, "backoff", "rungs", "5", rest)
		if known, does = waited(t, home); len(known) > 4 {
			break
		}
	}
	if len(known) < 4 {
		t.Fatalf("at home they waited only %v", known)
	}
	for _, scale := range []string{"1", "3"} {
		path, made := issuerTrace(t, home, "--scale", scale, "--limit", "30s")
		sleeps, writes := waited(t, path)
		n := 0
		for failed, list := range sleeps {
			want := us[min(failed, len(known)-1, len(us)-1)]
			for _, s := range list {
				if n++; s != want {
					t.Errorf("with %s times the demand, after %d tries: %d us, not %d", scale, failed, s, want)
				}
			}
		}
		if n < 10 || made.Cut > 0 {
			t.Errorf("with %s times the demand: %d sleeps, %+v", scale, n, made)
		}
		slices.Sort(does)
		if slices.Sort(writes); !slices.Equal(writes, does) {
			t.Errorf("with %s times the demand threads write %v times, and %v at home", scale, writes, does)
		}
	}
}

// A lock of a file that is free at home whenever somebody tries for it, and is not here: nobody goes on as if it had it.
func TestIssueNeverFailed(t *testing.T) {
	var home string
	for try := 0; ; try++ {
		home = recordedProgram(t, "backoff", "late")
		if sleeps, _ := waited(t, home); len(sleeps) > 0 {
			break
		} else if try == 4 {
			t.Fatal("at home nobody waited for the other lock")
		}
	}
	for range 3 {
		r := issueHere(t, home, "--scale", "8", "--limit", "30s")
		if least := r.CPU*8/10 + 300*time.Millisecond; r.Wall < least {
			t.Errorf("it took %v, and one after the other they need %v: %+v", r.Wall, least, r)
		}
	}
}
