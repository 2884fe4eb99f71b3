package pausemodel

import "testing"

// search goes through all worlds that can be reached.
func search(t *testing.T, first World, most int) int {
	t.Helper()
	seen := map[World]World{first: {}}
	queue := []World{first}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		w.Successors(func(n World) {
			if _, ok := seen[n]; ok {
				return
			}
			seen[n] = w
			if bug := n.Check(); bug != "" {
				t.Errorf("%s", bug)
				for x := n; x != first; x = seen[x] {
					t.Logf("%+v", x)
				}
				t.FailNow()
			}
			queue = append(queue, n)
		})
		if len(seen) > most {
			t.Fatalf("more than %d worlds", most)
		}
	}
	return len(seen)
}

// Every interleaving of small worlds, with controllers that are killed at any step and others that take over.
func TestAllInterleavings(t *testing.T) {
	rows := []struct {
		threads, procs int
		pauses, kills  uint8
		ends           int8
	}{
		{1, 1, 2, 0, 4}, {1, 1, 2, 2, 3}, {2, 1, 1, 0, 3}, {2, 1, 1, 1, 2}, {2, 2, 1, 1, 2},
	}
	visited := 0
	for _, r := range rows {
		n := search(t, New(r.threads, r.procs, r.pauses, r.kills, r.ends), 5_000_000)
		t.Logf("%d threads, %d processes, %d pauses, %d kills: %d worlds", r.threads, r.procs, r.pauses, r.kills, n)
		if n < 1000 {
			t.Errorf("only %d worlds", n)
		}
		visited++
	}
	if visited != 5 {
		t.Errorf("%d worlds searched", visited)
	}
}

// The search finds what it is there for: each change breaks a rule.
func TestModelCanFail(t *testing.T) {
	broken := []func(World) World{
		func(w World) World { // nobody is woken
			if w.C.At == FreeWake {
				w.C.At = FreeSignal
			}
			return w
		},
		func(w World) World { // the offset is forgotten
			if w.C.At == FreeWord {
				w.Offset = w.Was + 2*(w.Now-w.StopAt)
			}
			return w
		},
		func(w World) World { // SIGCONT is forgotten
			if w.C.At == FreeSignal {
				w.C.At = Idle
			}
			return w
		},
		func(w World) World { // a pause is claimed without looking
			if w.C.At == Look {
				w.C.At = Paused
			}
			return w
		},
	}
	for i, b := range broken {
		first := New(2, 1, 1, 0, 3)
		seen, queue, found := map[World]bool{first: true}, []World{first}, false
		for len(queue) > 0 && !found {
			w := queue[0]
			queue = queue[1:]
			w.Successors(func(n World) {
				if n = b(n); !seen[n] {
					seen[n] = true
					found = found || n.Check() != ""
					queue = append(queue, n)
				}
			})
		}
		if !found {
			t.Errorf("change %d breaks no rule in %d worlds", i, len(seen))
		}
	}
}
