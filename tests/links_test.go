package tests

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prophet/runtime/links"
	"prophet/runtime/trace"
)

var digits = regexp.MustCompile("[0-9]+")

// linksOf is every link of a trace as text: kind, call of the cause, call of the effect; for an end that is no event,
// what it is of.
func linksOf(t *testing.T, path string) (list []string, all []links.Link) {
	t.Helper()
	tr, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	k, m := links.New(tr), tr.Merge()
	end := func(p *links.Point) string {
		if p.Call == 0 {
			return digits.ReplaceAllString(p.Thread.Name, "N")
		}
		return p.Row().Name
	}
	take := func(ls []links.Link) {
		for i := range ls {
			l := &ls[i]
			if l.Cause > l.Effect {
				t.Errorf("%v: cause at %d, after its effect at %d", l.Kind, l.Cause, l.Effect)
			}
			s := fmt.Sprintf("%v %s %s", l.Kind, end(&l.From), end(&l.To))
			if l.Held.Thread != nil {
				s += " held by " + end(&l.Held)
			}
			if l.Bytes > 0 {
				s += fmt.Sprintf(" %d", l.Bytes)
			}
			if l.Kind == links.Lock && l.From.Row().Obj == "cond" && l.Object == l.From.Obj {
				t.Errorf("a lock let go of by a wait is named after the condition: %s", s)
			}
			list = append(list, s)
			all = append(all, *l)
		}
	}
	for {
		r, err := m.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		take(k.Add(r))
	}
	take(k.Finish())
	if k.Forgot() != 0 {
		t.Errorf("%d things were forgotten", k.Forgot())
	}
	return list, all
}

func TestLinks(t *testing.T) {
	t.Parallel()
	r := Cmd{Argv: []string{prog(t, "links", "-pthread")}}.Recorded(t)
	if r.Status != "exit status 0" || r.Stderr != "" {
		t.Fatal(r.Status, r.Stderr)
	}
	got, _ := linksOf(t, r.Trace)
	slices.Sort(got)
	want := []string{
		"lock pthread_mutex_unlock pthread_mutex_lock held by pthread_mutex_lock",
		"wake pthread_cond_signal pthread_cond_wait",
		"wake pthread_cond_broadcast pthread_cond_wait",
		"wake pthread_cond_broadcast pthread_cond_wait",
		// Who was woken waits for the mutex: of who woke it, and of the other who was.
		"lock pthread_mutex_unlock pthread_cond_wait held by pthread_mutex_lock",
		"lock pthread_mutex_unlock pthread_cond_wait held by pthread_mutex_lock",
		"lock pthread_mutex_unlock pthread_cond_wait held by pthread_cond_wait",
		"lock pthread_rwlock_unlock pthread_rwlock_rdlock held by pthread_rwlock_wrlock",
		"lock pthread_rwlock_unlock pthread_rwlock_wrlock held by pthread_rwlock_rdlock",
		"post sem_post sem_wait",
		"barrier pthread_barrier_wait pthread_barrier_wait",
		"barrier pthread_barrier_wait pthread_barrier_wait",
		"once pthread_once pthread_once",
		"data write read 8",
		"data write recv 2", // looked at
		"data write recv 2", // and taken
		"data send recv 1",
		"data send recv 1",
		"data eventfd_write read 1",
		"connect connect accept",
		"data send recv 3",
		"data send recv 2",
		"data send recv 3",
		"connect connect accept",
		"data write recv 5",
		"data send read 3",
		"data write read 1", // the shell reads byte by byte
		"data write read 1",
		"data write read 1",
		"data write read 1",
		"data write read 1",
		"data write read 1", // to itself
		"start fork pN.N",
		"start fork pN.N",
		"start execl pN.N+",
		"exit pN.N waitpid",
		"exit pN.N+ waitpid",
	}
	for range 16 {
		want = append(want, "start pthread_create pN/N")
	}
	for _, last := range []string{"pthread_mutex_unlock", "pthread_mutex_unlock", "pthread_mutex_unlock", "pthread_mutex_unlock", "pthread_rwlock_unlock",
		"pthread_rwlock_unlock", "sem_wait", "pthread_barrier_wait", "pthread_barrier_wait", "pthread_once", "pthread_once", "recv", "recv", "read", "close", "close"} {
		want = append(want, "exit "+last+" pthread_join")
	}
	slices.Sort(want)
	// On a machine that is busy, threads may wait for a lock once more.
	extra := map[string]int{}
	for _, s := range want {
		extra[s]--
	}
	got = slices.DeleteFunc(got, func(s string) bool {
		extra[s]++
		return extra[s] > 0 && strings.HasPrefix(s, "lock pthread_")
	})
	if !slices.Equal(got, want) {
		t.Errorf("links differ:\n%s", diffLines(want, got))
	}
}

// diffLines is what two sorted lists do not share.
func diffLines(want, got []string) string {
	var b strings.Builder
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case j == len(got) || i < len(want) && want[i] < got[j]:
			fmt.Fprintf(&b, "missing: %s\n", want[i])
			i++
		case i == len(want) || got[j] < want[i]:
			fmt.Fprintf(&b, "not expected: %s\n", got[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	return b.String()
}
