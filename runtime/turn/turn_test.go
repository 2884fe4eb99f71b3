package turn

import (
	"fmt"
	"testing"
)

// drive goes through every interleaving and returns how many states there are and why one is wrong.
func drive(start State, f Faults) (states int, wrong string) {
	seen := map[string]bool{}
	todo := []State{start}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		key := fmt.Sprint(s)
		if seen[key] {
			continue
		}
		seen[key] = true
		moved := false
		for i := range s.Threads {
			n, ok := s.Next(i, f)
			if !ok {
				continue
			}
			moved = true
			if s.Threads[i].At == Take {
				a := s.Threads[i].Todo[0]
				if s.Held[a.Object] != 0 || s.Seq[a.Object] != a.Place-1 {
					return len(seen), fmt.Sprintf("thread %d takes place %d out of turn: %+v", i, a.Place, s)
				}
			}
			todo = append(todo, n)
		}
		if !moved && !s.Over() {
			return len(seen), fmt.Sprintf("nobody can go on: %+v", s)
		}
	}
	return len(seen), ""
}

// world gives the places of each object to threads in the order of a number's digits.
func world(threads int, orders [2][]int, overflow, early uint) State {
	s := State{Threads: make([]Thread, threads)}
	at := [2]int{}
	// Threads take from both objects in turn, so that they meet at both.
	for at[0] < len(orders[0]) || at[1] < len(orders[1]) {
		for o := range orders {
			if at[o] < len(orders[o]) {
				t := orders[o][at[o]]
				at[o]++
				s.Threads[t].Todo = append(s.Threads[t].Todo, Acquisition{int8(o), int8(at[o])})
			}
		}
	}
	for i := range s.Threads {
		s.Threads[i].Overflow = overflow&(1<<i) != 0
		if early&(1<<i) != 0 && !s.Threads[i].Overflow {
			s.Threads[i].Early = 1
		}
		if len(s.Threads[i].Todo) == 0 {
			s.Threads[i].At = Done
		}
	}
	return s
}

// orders are all ways to give n places to so many threads.
func orders(threads, n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, head := range orders(threads, n-1) {
		for t := range threads {
			all = append(all, append(append([]int{}, head...), t))
		}
	}
	return all
}

func TestEveryInterleaving(t *testing.T) {
	worlds, states := 0, 0
	for _, row := range []struct{ threads, first, second int }{{2, 4, 0}, {2, 2, 2}, {3, 3, 0}, {3, 2, 1}} {
		for _, a := range orders(row.threads, row.first) {
			for _, b := range orders(row.threads, row.second) {
				for kind := range uint(3) { // all with room of their own; one without; one that wants to be called early
					var overflow, early uint
					if kind == 1 {
						overflow = 1
					} else if kind == 2 {
						early = 3
					}
					n, wrong := drive(world(row.threads, [2][]int{a, b}, overflow, early), Faults{})
					if wrong != "" {
						t.Fatalf("%d threads, orders %v and %v, kind %d: %s", row.threads, a, b, kind, wrong)
					}
					worlds++
					states += n
				}
			}
		}
	}
	if worlds < 150 || states < 10000 {
		t.Fatalf("only %d worlds and %d states", worlds, states)
	}
	t.Logf("%d worlds, %d states", worlds, states)
}

// The model is worth something only when it notices what would be wrong.
func TestFaultsAreNoticed(t *testing.T) {
	for name, f := range map[string]Faults{"check before store": {CheckBeforeStore: true}, "no second look": {NoAgain: true}} {
		noticed := 0
		for _, a := range orders(2, 3) {
			if _, wrong := drive(world(2, [2][]int{a, nil}, 0, 0), f); wrong != "" {
				noticed++
			}
		}
		if noticed == 0 {
			t.Errorf("%s goes unnoticed", name)
		}
	}
}
