package sense

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGrowth(t *testing.T) {
	ones := []float64{1, 1, 1, 1, 1}
	for _, c := range []struct {
		company, alone []float64
		growth         float64
		matters        bool
	}{
		{[]float64{1.3, 1.2, 1.25, 1.22, 1.4}, ones, 1.2, true},
		{[]float64{1.0, 0.99, 1.01, 1.0, 1.02}, ones, 0.99, false},
		{[]float64{1.1, 0.9, 1.3, 0.95, 1.2}, ones, 0.9, false},                            // noise with a median above 1
		{[]float64{1.3, 1.2, 1.25, 1.9, 1.21}, []float64{1.4, 1, 1, 1.5, 1.02}, 1.2, true}, // noise in both
		{[]float64{1.2, 1.2, 1.2}, []float64{1.3, 1.3, 1}, 1.2, false},                     // one run alone that was faster
		{[]float64{1.015, 1.015, 1.016}, ones[:3], 1.015, false},
		{[]float64{1.5}, ones[:1], 1.5, true},
	} {
		g := NewGrowth(c.company, c.alone)
		if g.Growth != c.growth || g.Matters() != c.matters || g.Low > g.Median || g.High < g.Median {
			t.Errorf("%v: %+v, matters %v", c.company, g, g.Matters())
		}
	}
	if g := NewGrowth(nil, nil); g != nil || g.Matters() {
		t.Error("nothing grows")
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if s, err := Load(dir); s != nil || err != nil {
		t.Error(s, err)
	}
	s := &Sense{Version: 1, CPUs: 2, OneCore: NewGrowth([]float64{1.2}, []float64{1}), Walk: &Walk{Company: OneCore, Bytes: 2 << 20, Growth: 1.21}}
	b, _ := s.JSON()
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Load(dir); err != nil || s.Walk.Bytes != 2<<20 || s.OneCore.Growth != 1.2 {
		t.Error(s, err)
	}
	if s, err := Load(path); s != nil || err != nil { // a packed trace has none
		t.Error(s, err)
	}
	for _, c := range [][2]string{{`"version": 1`, `"version": 9`}, {`"bytes": 2097152`, `"bytes": 1e30`}, {`"growth": 1.2,`, `"growth": 0,`}, {`"growth": 1.21`, `"growth": -1`}} {
		if !strings.Contains(string(b), c[0]) {
			t.Fatalf("%s is not in it", c[0])
		}
		if s, err := Parse([]byte(strings.Replace(string(b), c[0], c[1], 1))); err == nil {
			t.Errorf("%s: %+v", c[1], s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"walk":{"bytes":1,"growth":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := Parse(b); err == nil && s.Walk != nil && (s.Walk.Bytes > 1<<30 || !(s.Walk.Growth > 0)) {
			t.Errorf("%+v", s.Walk)
		}
	})
}
