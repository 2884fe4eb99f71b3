// Package predict works out the answer of a prediction from what was measured: how long issues of a trace's demand took on the
// target and at home, and how long the program itself took at home, in turn with them. It is pure.
package predict

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Tolerance is how far issuing at home may be from the program at home, beyond noise, for a prediction to be given.
const Tolerance = 0.05

// Home is what was measured at home, in turn: the program, an issue, the program again.
type Home struct {
	First  []float64 `json:"first"` // seconds of the program
	Issued []float64 `json:"issued"`
	Again  []float64 `json:"again"` // the program once more: how far it is from itself is the noise
	CPU    []CPU     `json:"cpu"`   // what CPU time they took, and before the first turn a program and an issue that do not count
}

// CPU is what CPU time a turn took, in seconds.
type CPU struct {
	Program float64 `json:"program"` // the mean of its runs
	Issued  float64 `json:"issued"`
	Factor  float64 `json:"factor"` // what the recorded demand was multiplied by
}

// Bounds of how the demand is corrected: what differs by more did something else. It is corrected down by far more than up, as what it took
// to keep what calls read and wrote is in it: where they are of 64 KiB that is two thirds of it.
const (
	demandLeast = 0.1
	demandMost  = 3
)

// Demand is what the recorded CPU demand, of so many seconds, has to be multiplied by for an issue at home to take the CPU time that the
// program takes there. The recorded run was made at another time, with the recorder in every process, and is only one; and what lies before
// a program's first event and behind its last is not in it. What the calls of an issue take beside the demand stays as it is.
func (h *Home) Demand(recorded float64) float64 {
	factors := h.factors(recorded)
	if len(factors) == 0 {
		return 1
	}
	return min(max(Median(factors), demandLeast), demandMost)
}

// factors are what each turn says of the demand.
func (h *Home) factors(recorded float64) (list []float64) {
	for _, c := range h.CPU {
		if recorded > 0 && c.Program > 0 && c.Issued > 0 {
			list = append(list, c.Factor+(c.Program-c.Issued)/recorded)
		}
	}
	return list
}

// SureWithin is how well the demand has to be known, as a share of what the program takes.
const SureWithin = 0.015

// Sure reports whether the demand is known well enough: of a program whose CPU time differs from run to run, as that of threads that
// take each other's caches, it takes more turns.
func (h *Home) Sure(recorded float64) bool {
	f := h.factors(recorded)
	if len(f) == 0 {
		return recorded <= 0
	}
	off := (Quantile(f, 0.84) - Quantile(f, 0.16)) / 2 * 1.25 / math.Sqrt(float64(len(f)))
	return off*recorded <= SureWithin*h.Median()
}

// Noise is how far the program's runs are from one another as a share: the medians of the two runs of each turn.
func (h *Home) Noise() float64 {
	if len(h.First) == 0 || len(h.Again) == 0 {
		return 0
	}
	return math.Abs(Median(h.First)-Median(h.Again)) / h.Median()
}

// Median of all runs of the program.
func (h *Home) Median() float64 { return Median(slices.Concat(h.First, h.Again)) }

// Off is by how much issuing differs from the program, as a share.
func (h *Home) Off() float64 { return Median(h.Issued)/h.Median() - 1 }

// ErrRefused is wrapped by the reason why a prediction is not given.
var ErrRefused = errors.New("the prediction is refused")

// Check refuses where issuing at home does not do what the program does at home.
func (h *Home) Check() error {
	if len(h.Issued) == 0 {
		return nil
	}
	if off := h.Off(); math.Abs(off) > Tolerance+h.Noise() {
		return fmt.Errorf("%w: issued at home it takes %.3f s, the program %.3f s: %+.1f %%, and at most %.0f %% beyond the noise of %.1f %% may be; --force gives it nevertheless",
			ErrRefused, Median(h.Issued), h.Median(), off*100, Tolerance*100, h.Noise()*100)
	}
	return nil
}

// What is tried at home says little from there on: of a run that is over before that, what starts it and what else the machine does are
// a large part; where its own runs differ by more, issues may as well.
const (
	ShortMost = 0.1 // seconds
	NoiseMost = 0.1 // share
)

// Doubts are why the answer may mean little, though issuing at home did what the program did.
func (h *Home) Doubts() []string {
	var list []string
	if len(h.Issued) == 0 {
		return append(list, "issuing was not tried at home: nobody can tell how far off the answer may be")
	}
	if m := h.Median(); m < ShortMost {
		list = append(list, fmt.Sprintf("the program takes %.0f ms at home: of so short a run starting it is a large part, which says little of the target; predict a longer one", m*1000))
	}
	if n := h.Noise(); n > NoiseMost {
		list = append(list, fmt.Sprintf("the program's own runs at home are %.0f %% apart: no answer can be nearer than that; try it when the machine does nothing else, or more often (--home-runs)", n*100))
	}
	return list
}

// CoverLeast is which share of the program's CPU time events have to explain.
const CoverLeast = 0.8

// Cover refuses where the trace explains too little.
func Cover(cpuSeen, cpu uint64) error {
	if cpu > 0 && float64(cpuSeen) < CoverLeast*float64(cpu) {
		return fmt.Errorf("%w: the trace explains %.0f %% of the program's CPU time, and %.0f %% are needed; `prophet info` says what was not seen; --force gives it nevertheless",
			ErrRefused, 100*float64(cpuSeen)/float64(cpu), CoverLeast*100)
	}
	return nil
}

// Unproven is which share of what was issued lies behind the first event that the program did not ask for.
func Unproven(identical, events uint64) float64 {
	if events == 0 {
		return 1
	}
	return 1 - float64(min(identical, events))/float64(events)
}

// Median of a list; 0 of none.
func Median(v []float64) float64 { return Quantile(v, 0.5) }

// Quantile of a list, between its neighbours; 0 of none.
func Quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Clone(v)
	slices.Sort(s)
	at := q * float64(len(s)-1)
	i := int(at)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}
