package predict

import (
	"errors"
	"math"
	"testing"
)

// What issuing at home may be off, and what not.
func TestCheck(t *testing.T) {
	tests := []struct {
		name    string
		home    Home
		refused bool
	}{
		{"as the program", Home{[]float64{1, 1.01, 1}, []float64{1.02, 1, 1.03}, []float64{1, 1, 1}}, false},
		{"slower", Home{[]float64{1, 1, 1}, []float64{1.2, 1.2, 1.2}, []float64{1, 1, 1}}, true},
		{"faster", Home{[]float64{1, 1, 1}, []float64{0.9, 0.9, 0.9}, []float64{1, 1, 1}}, true},
		{"within noise", Home{[]float64{1, 1, 1}, []float64{1.1, 1.1, 1.1}, []float64{1.1, 1.1, 1.1}}, false},
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
