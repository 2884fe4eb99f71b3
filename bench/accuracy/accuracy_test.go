package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// measured is a pair whose real runs take about 1 s and whose prediction is off by a share.
func measured(program, target string, off, noise float64) *pair {
	return &pair{Program: program, Target: target, When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Home: 0.5, Rounds: 2, Proven: true,
		Real: []float64{1, 1, 1}, Again: []float64{1 + noise, 1 + noise, 1 + noise}, Issued: []float64{0.98 * (1 + off), 1 + off, 1.02 * (1 + off)}}
}

func TestSummary(t *testing.T) {
	r := &results{Machine: "2 CPUs", Whole: true}
	near := measured("pigz-p2", home, 0.01, 0)
	far := measured("pigz-p2", cpus1, -0.5, 0)
	near.Strict, far.Strict = &strictly{Rounds: 7, Proven: true}, &strictly{Rounds: 20, Unproven: 0.75}
	far.Order, far.Think = []float64{1.6}, []float64{0.2}
	refused := measured("xz-T2", home, 0.4, 0)
	refused.Refused = "the prediction is refused: it is | too far off"
	lost := &pair{Program: "xz-T2", Target: half, Error: "no quota of CPU time can be set\nmore"}
	for _, p := range []*pair{lost, refused, far, near} {
		r.put(p)
	}
	r.put(near)
	r.sort()
	if names := []string{r.Pairs[0].name(), r.Pairs[3].name()}; len(r.Pairs) != 4 || names[0] != "pigz-p2@home" || names[1] != "xz-T2@half" {
		t.Errorf("sorted: %v", names)
	}
	s := r.summary()
	if s.pairs != 2 || s.refused != 1 || s.failed != 1 || math.Abs(s.most-0.5) > 1e-9 || s.worst != "pigz-p2@cpus1" || s.cover != 0.5 {
		t.Errorf("%+v", s)
	}
	if p := measured("pigz-p2", home, 0.05, 0.04); math.Abs(p.noise()-0.04/1.02) > 1e-9 || math.Abs(p.beyond()-(0.03/1.02-0.04/1.02)) > 1e-9 && p.beyond() != 0 {
		t.Errorf("noise %g, beyond it %g", p.noise(), p.beyond())
	}
	table := string(r.table())
	for _, want := range []string{"| pigz-p2 | cpus1 | 0.500 s | 1.000 s | 0.500 s |", "60.0 % | 80.0 %", "refused: the prediction is refused: it is \\| too far off", "no quota of CPU time can be set |",
		"**not held**", "2026-01-02", "2, proven; strictly 7 |", "2, proven; strictly more than 20, which prove 25.0 % |", "Of the 1 pairs away from home"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
}

// The plot is XML, and has a mark for each pair that was measured.
func TestPlot(t *testing.T) {
	for _, r := range []*results{{}, {Pairs: []*pair{measured("pigz-p2", home, 0.01, 0), measured("pigz-p2", link, 3, 0), {Program: "x", Error: "none"}}}} {
		d := xml.NewDecoder(strings.NewReader(string(r.plot())))
		titles := -1 // its own
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := tok.(xml.StartElement); ok {
				if e.Name.Local == "title" {
					titles++
				}
				for _, a := range e.Attr {
					if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
						t.Errorf("%s %s=%q", e.Name.Local, a.Name.Local, a.Value)
					}
				}
			}
		}
		if want := max(len(r.Pairs)-1, 0); titles != want {
			t.Errorf("%d marks, not %d", titles, want)
		}
	}
}

// What is kept is read back, and not taken for another machine's.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	r := &results{Machine: machine(), Run: "now"}
	if err := r.save(dir); err != nil {
		t.Fatal(err)
	}
	r.put(measured("pigz-p2", home, 0.01, 0))
	r.put(measured("pigz-p2", half, 0.01, 0))
	if err := r.save(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "accuracy.json")
	got, err := load(path)
	if err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%v: %+v", err, got)
	}
	b, _ := os.ReadFile(path)
	os.WriteFile(path, []byte(strings.Replace(string(b), "CPUs", "other CPUs", 1)), 0o600)
	if got, err := load(path); err != nil || len(got.Pairs) > 0 {
		t.Errorf("%v: %+v", err, got)
	}
	os.WriteFile(path, []byte("{"), 0o600)
	if _, err := load(path); err == nil {
		t.Error("half a file was taken")
	}
}

// The plan names nothing that there is not.
func TestPlan(t *testing.T) {
	seen, short := 0, 0
	names := map[string]bool{}
	for _, w := range plan {
		if names[w.name] {
			t.Errorf("two programs are called %s", w.name)
		}
		names[w.name] = true
		for _, in := range w.inputs {
			if makers[in] == nil {
				t.Errorf("%s: nothing makes %s", w.name, in)
			}
		}
		if w.source != "" {
			if _, err := os.Stat(filepath.Join("..", "..", w.source)); err != nil {
				t.Error(err)
			}
		}
		for _, target := range w.targets {
			seen++
			if !slices.ContainsFunc(how, func(h [2]string) bool { return h[0] == target }) {
				t.Errorf("%s: nobody says how %s is made", w.name, target)
			}
			if !slices.ContainsFunc(marks, func(m struct{ target, colour, shape string }) bool { return m.target == target }) {
				t.Errorf("%s: %s has no mark in the plot", w.name, target)
			}
		}
	}
	if short = len(chosen("", true)); seen < 80 || short < 5 || short > 8 || len(chosen("pigz-p2@cpus1,@half", false)) < 12 || len(chosen("nothing", false)) > 0 {
		t.Errorf("%d pairs, %d in short", seen, short)
	}
}

// Programs that are started do not get the descriptor of the filesystem in user space.
func TestKeepOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	flags := func() int {
		f, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		return int(f)
	}
	if flags()&syscall.FD_CLOEXEC != 0 {
		t.Fatal("it is closed before")
	}
	if keepOwn(path); flags()&syscall.FD_CLOEXEC == 0 {
		t.Error("a program that is started gets it")
	}
}

func TestSure(t *testing.T) {
	calm := []float64{1, 1.01, 0.99, 1.02, 0.98, 1, 1.01, 0.99, 1, 1}
	wild := []float64{1, 2, 1, 2, 1.5, 1, 2, 1.4, 1.6, 2}
	for _, c := range []struct {
		p    pair
		sure bool
	}{
		{pair{Real: calm, Again: calm, Issued: calm}, true},
		{pair{Real: calm, Again: calm, Issued: wild}, false},
		{pair{Real: wild, Again: wild, Issued: calm}, false},
		{pair{Real: calm, Again: calm, Issued: []float64{3, 3, 3}}, true}, // far away, and sure of it
	} {
		if got := c.p.sure(); got != c.sure {
			t.Errorf("%+v: sure is %v", c.p, got)
		}
	}
}
