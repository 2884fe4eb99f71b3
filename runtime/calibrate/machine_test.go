package calibrate

import (
	"math"
	"strings"
	"testing"
)

func machine(ns float64) *Machine {
	m := &Machine{Version: 1, CPUs: 2, Arch: "amd64", Speed: map[string]Figure{}, Costs: map[string]Figure{ClockCost: {Median: 30, Runs: 3}}}
	for i, kind := range Kinds {
		m.Speed[kind] = Figure{Median: ns * float64(i+1), P90: ns * float64(i+2), Spread: 0.01, Runs: 15}
	}
	return m
}

func TestFigure(t *testing.T) {
	f := NewFigure([]float64{5, 1, 4, 2, 3})
	if f.Median != 3 || f.Runs != 5 || math.Abs(f.Spread-2.0/3) > 1e-5 || math.Abs(f.P90-4.6) > 1e-9 {
		t.Errorf("%+v", f)
	}
	if f := NewFigure(nil); f != (Figure{}) {
		t.Errorf("of nothing: %+v", f)
	}
	if f := NewFigure([]float64{7}); f.Median != 7 || f.P90 != 7 || f.Spread != 0 {
		t.Errorf("of one: %+v", f)
	}
}

func TestDecades(t *testing.T) {
	var d Decades
	for _, s := range [][2]float64{{1e6, 0.01}, {1000, -0.02}, {9999, 0.04}, {10000, 0}, {1e5, 0.5}} {
		d.Add(s[0], s[1])
	}
	if len(d) != 4 || d[0].FromNs != 1000 || d[0].N != 2 || math.Abs(d[0].Mean-0.03) > 1e-12 || math.Abs(d[0].Bias-0.01) > 1e-12 || d[0].Max != 0.04 {
		t.Errorf("%+v", d)
	}
	if m := d.Mean(); math.Abs(m-0.114) > 1e-12 {
		t.Errorf("mean %g", m)
	}
}

// The factor is the ratio where all kinds agree, and follows the mix where they do not.
func TestScale(t *testing.T) {
	home, target := machine(1), machine(2)
	f := Scale(home, target, nil)
	if math.Abs(f.Factor-2) > 1e-12 || f.Noise < 0.001 || f.Noise > 0.02 {
		t.Errorf("%+v", f)
	}
	slow := target.Speed[Float]
	slow.Median *= 4
	target.Speed[Float] = slow
	if f := Scale(home, target, nil); math.Abs(f.Factor-2) > 1e-12 {
		t.Errorf("float is not in the default mix: %+v", f)
	}
	if f := Scale(home, target, Mix{Float: 3, Integer: 1}); math.Abs(f.Factor-2*math.Pow(4, 0.75)) > 1e-9 {
		t.Errorf("%+v", f)
	}
}

func TestParseMix(t *testing.T) {
	m, err := ParseMix("integer=2, float")
	if err != nil || m[Integer] != 2 || m[Float] != 1 {
		t.Errorf("%v %v", m, err)
	}
	for _, bad := range []string{"", "gpu", "float=x", "float=-1", "float=0", "float=NaN"} {
		if m, err := ParseMix(bad); err == nil {
			t.Errorf("%q is %v", bad, m)
		}
	}
}

func TestParse(t *testing.T) {
	b, err := machine(3).JSON()
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(b)
	if err != nil || m.Speed[Crypto].Median != 15 {
		t.Fatalf("%v %v", m, err)
	}
	for _, c := range [][2]string{
		{`"version": 1`, `"version": 2`}, {`"cpus": 2`, `"cpus": 0`}, {`"integer"`, `"other"`}, {`"median": 15`, `"median": 0`}, {`"median": 15`, `"median": 1e300`},
		{`"median": 30`, `"median": "x"`},
	} {
		if !strings.Contains(string(b), c[0]) {
			t.Fatalf("%s is not in it", c[0])
		}
		if _, err := Parse([]byte(strings.Replace(string(b), c[0], c[1], 1))); err == nil {
			t.Errorf("with %s it is good", c[1])
		}
	}
	if _, err := Parse(make([]byte, Max+1)); err == nil {
		t.Error("a long one is good")
	}
}

func FuzzParse(f *testing.F) {
	b, _ := machine(1).JSON()
	f.Add(b)
	f.Add([]byte(`{"version":1,"cpus":1,"speed_ns":{"integer":{"median":1}}}`))
	home := machine(1)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		s := Scale(home, m, nil)
		if !(s.Factor > 0) || math.IsInf(s.Factor, 0) {
			t.Errorf("a factor of %g", s.Factor)
		}
		if _, err := m.JSON(); err != nil {
			t.Error(err)
		}
	})
}
