package issue

import (
	"math"
	"slices"
	"syscall"
	"testing"
	"time"
)

// typical is the median of the segments' errors, as sizes and with their signs: what interrupts a segment here says nothing of the loop.
func typical(list []BurnSegment) (size, bias float64) {
	sizes, errors := make([]float64, len(list)), make([]float64, len(list))
	for i, s := range list {
		sizes[i], errors[i] = math.Abs(s.Error), s.Error
	}
	slices.Sort(sizes)
	slices.Sort(errors)
	return sizes[len(list)/2], errors[len(list)/2]
}

// The loop takes the time that is demanded. The benchmarks hold the mean to one per cent on an idle core; here others run beside it
// and take its cache, so the typical segment counts, it has many tries, and more is let pass.
func TestBurnTakesItsTime(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes uint64
		most  float64
	}{{"plain", 0, 0.03}, {"walking", 512 << 10, 0.15}} {
		t.Run(c.name, func(t *testing.T) {
			best := math.Inf(1)
			for range 20 {
				b, err := CalibrateBurn(c.bytes)
				if err != nil {
					t.Fatal(err)
				}
				if b.IterNs <= 0 || b.IterNs > 1000 || b.CallNs < 0 || b.CallNs > 1000 {
					t.Fatalf("an iteration takes %g ns and a call %g", b.IterNs, b.CallNs)
				}
				if b.Bytes != c.bytes {
					t.Errorf("asked for %d bytes, it walks %d", c.bytes, b.Bytes)
				}
				list, err := b.Check(1e3, 1e6, 100)
				if err != nil {
					t.Fatal(err)
				}
				size, bias := typical(list)
				t.Logf("typical error %.2f %%, bias %.2f %%", 100*size, 100*bias)
				if best = min(best, size); best < c.most {
					return
				}
			}
			t.Errorf("the typical error of segments from 1 us to 1 ms is %.1f %% at best", 100*best)
		})
	}
}

// A walk of more memory than can be had is an error, not a crash.
func TestBurnWithoutMemory(t *testing.T) {
	if b, err := CalibrateBurn(1 << 50); err == nil {
		t.Errorf("it walks %d bytes", b.Bytes)
	}
}

// Calibrating is what each issue begins with. Counted is CPU time: other tests run beside this one.
func TestBurnCalibratesQuickly(t *testing.T) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begin := used()
	if _, err := CalibrateBurn(1 << 20); err != nil {
		t.Fatal(err)
	}
	if took := used() - begin; took > 200*time.Millisecond {
		t.Errorf("it took %v of CPU time", took)
	}
}

// Plain arithmetic does not mind company; walking memory does, when another walker has the caches meanwhile. Others run on
// this machine, too, so each has a few tries.
func TestBurnInCompany(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes uint64
		good  func(growth float64) bool
	}{
		{"plain", 0, func(g float64) bool { return g > 0.97 && g < 1.03 }},
		{"walking", 2 << 20, func(g float64) bool { return g > 1.03 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen []float64
			for range 4 {
				b, err := CalibrateBurn(c.bytes)
				if err != nil {
					t.Fatal(err)
				}
				g, err := b.Growth(false)
				if err != nil {
					t.Fatal(err)
				}
				if seen = append(seen, g); c.good(g) {
					return
				}
			}
			t.Errorf("it grew %.3f times", seen)
		})
	}
}
