package predict

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// What issuing at home may be off, and what not.
func TestCheck(t *testing.T) {
	tests := []struct {
		name    string
		home    Home
		refused bool
	}{
		{"as the program", Home{First: []float64{1, 1.01, 1}, Issued: []float64{1.02, 1, 1.03}, Again: []float64{1, 1, 1}}, false},
		{"slower", Home{First: []float64{1, 1, 1}, Issued: []float64{1.2, 1.2, 1.2}, Again: []float64{1, 1, 1}}, true},
		{"faster", Home{First: []float64{1, 1, 1}, Issued: []float64{0.9, 0.9, 0.9}, Again: []float64{1, 1, 1}}, true},
		{"within noise", Home{First: []float64{1, 1, 1}, Issued: []float64{1.1, 1.1, 1.1}, Again: []float64{1.1, 1.1, 1.1}}, false},
		{"not measured", Home{}, false},
	}
	visited := 0
	for _, x := range tests {
		visited++
		if err := x.home.Check(); errors.Is(err, ErrRefused) != x.refused {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	if visited != 5 {
		t.Errorf("%d rows", visited)
	}
	if Cover(79, 100) == nil || Cover(80, 100) != nil || Cover(0, 0) != nil {
		t.Error("coverage")
	}
}

// What was tried at home says little where the program is over at once, or its own runs lie apart.
func TestDoubts(t *testing.T) {
	for _, x := range []struct {
		home Home
		want []string
	}{
		{Home{First: []float64{1, 1.01}, Issued: []float64{1, 1}, Again: []float64{1, 1}}, nil},
		{Home{First: []float64{0.05}, Issued: []float64{0.05}, Again: []float64{0.05}}, []string{"takes 50 ms"}},
		{Home{First: []float64{1}, Issued: []float64{1}, Again: []float64{1.5}}, []string{"40 % apart"}},
		{Home{First: []float64{0.01}, Issued: []float64{0.02}, Again: []float64{0.02}}, []string{"takes 15 ms", "67 % apart"}},
		{Home{}, []string{"not tried"}},
	} {
		got := x.home.Doubts()
		if len(got) != len(x.want) {
			t.Errorf("%+v: %q", x.home, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], x.want[i]) {
				t.Errorf("%+v: %q", x.home, got)
			}
		}
	}
}

// The demand is corrected until issues take the CPU time of the program, whatever their calls take beside it; within bounds.
func TestDemand(t *testing.T) {
	for _, x := range []struct{ recorded, calls, program, want float64 }{
		{1, 0, 0.9, 0.9}, {1, 0.2, 0.9, 0.7}, {0.5, 0.3, 1, 1.4}, {0, 0.1, 1, 1}, {1, 0, 5, demandMost}, {1, 0.1, 0.4, 0.3}, {1, 0.2, 0.2, demandLeast},
	} {
		h := &Home{}
		for range 3 {
			f := h.Demand(x.recorded)
			h.CPU = append(h.CPU, CPU{Program: x.program, Issued: f*x.recorded + x.calls, Factor: f})
		}
		if got := h.Demand(x.recorded); math.Abs(got-x.want) > 1e-9 {
			t.Errorf("%+v: %g", x, got)
		}
	}
	// One turn that something else ran in does not decide.
	h := &Home{CPU: []CPU{{1, 1, 1}, {2, 1, 1}, {1.02, 1.02, 1}}}
	if got := h.Demand(1); got != 1 {
		t.Errorf("a turn that was disturbed: %g", got)
	}
	if got := (&Home{}).Demand(1); got != 1 {
		t.Errorf("not measured: %g", got)
	}
}

// Of a program whose CPU time differs from run to run more turns are wanted than of one whose does not; not where that is little of what it takes.
func TestSure(t *testing.T) {
	home := func(wall float64, cpu ...float64) *Home {
		h := &Home{First: []float64{wall}}
		for _, c := range cpu {
			h.CPU = append(h.CPU, CPU{Program: c, Issued: 1, Factor: 1})
		}
		return h
	}
	for _, x := range []struct {
		h    *Home
		want bool
	}{
		{home(1, 1, 1.01, 1, 0.99), true}, {home(1, 1, 1.4, 0.8, 1.1), false}, {home(100, 1, 1.4, 0.8, 1.1), true}, {&Home{}, false},
		{home(1, 1, 1.1, 0.9, 1, 1.1, 0.9, 1, 1, 1, 1, 1.01, 0.99, 1, 1, 1, 1), true},
	} {
		if got := x.h.Sure(1); got != x.want {
			t.Errorf("%+v: %v", x.h, got)
		}
	}
	if !(&Home{}).Sure(0) {
		t.Error("a program without demand")
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{3, 1, 2, 4}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4, 0.05: 1.15} {
		if got := Quantile(v, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("%g: %g, not %g", q, got, want)
		}
	}
	if v[0] != 3 || Median(nil) != 0 {
		t.Error("the list was sorted, or nothing has a median")
	}
}

// Of medians of real runs nine in ten lie within, whether it is the machine or the model that errs.
func TestInterval(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	runs := func(n int, mean, scatter float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = mean * math.Exp(scatter*r.NormFloat64())
			if r.IntN(20) == 0 {
				v[i] *= 1.5 // something else ran
			}
		}
		return v
	}
	visited := 0
	for _, x := range []struct{ scatter, drift, model float64 }{{0.01, 0.005, 0.025}, {0.05, 0.01, 0.02}, {0.1, 0.02, 0.025}, {0.02, 0.03, 0.02}, {0.02, 0.01, 0.04}} {
		visited++
		within := 0
		const times = 2000
		for range times {
			// What the model is off by there need not be what it is off by at home.
			off, there, h := math.Exp(x.model*r.NormFloat64()), math.Exp(x.model*r.NormFloat64()), Home{}
			drift := func() float64 { return math.Exp(x.drift * r.NormFloat64()) }
			h.First, h.Again, h.Issued = runs(5, drift(), x.scatter), runs(5, drift(), x.scatter), runs(5, off, x.scatter)
			low, high := Interval(runs(10, there, x.scatter), &h)
			if m := Median(runs(10, drift(), x.scatter)); low <= m && m <= high {
				within++
			}
		}
		share := float64(within) / times
		t.Logf("%+v: %.1f %%", x, share*100)
		if share < 0.8 || share > 0.97 {
			t.Errorf("%+v: %.1f %% lie within", x, share*100)
		}
	}
	if visited != 5 {
		t.Errorf("%d machines", visited)
	}
	for _, v := range [][]float64{nil, {0}, {1}, {1, 1}, {1, 1, 1}} {
		low, high := Interval(v, &Home{})
		if m := Median(v); low > m || high < m || m > 0 && (low > 0.97*m || low < 0.8*m) || math.IsNaN(low+high) {
			t.Errorf("%v: %g to %g", v, low, high)
		}
	}
}
