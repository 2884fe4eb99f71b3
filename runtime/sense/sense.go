// Package sense is what `prophet sense` learns of a program: how much more CPU time it needs when its threads share a core, or
// when a neighbour takes the cache and the memory's bandwidth; and which walk of memory makes the loop that issues its CPU
// demand mind company as much. The file is read by predictions; this package runs nothing.
package sense

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"prophet/runtime/predict"
)

// FileName is the file's name in a trace's directory.
const FileName = "sense.json"

// Version of the JSON. 1: the first.
const Version = 1

// Max bounds the JSON.
const Max = 64 << 10

// A Sense is what was learnt.
type Sense struct {
	Version   int     `json:"version"`
	When      string  `json:"when"`              // RFC 3339
	CPUs      int     `json:"cpus"`              // of the machine it was learnt on
	Alone     float64 `json:"alone_cpu_seconds"` // of the program, undisturbed: the median
	OneCore   *Growth `json:"one_core,omitempty"`
	Neighbour *Growth `json:"neighbour,omitempty"`
	Walk      *Walk   `json:"walk,omitempty"` // nil: company costs the program nothing that could be measured, or no walk costs the same
}

// A Growth is by how much CPU time grows in company. Other load on the machine only adds to a run's CPU time, so the least
// of the runs in company is compared with the least of those alone; the pairs of neighbouring runs say how sure that is.
type Growth struct {
	Growth float64 `json:"growth"`
	Median float64 `json:"median"` // of the pairs
	Low    float64 `json:"low"`    // 90 % of the pairs lie between
	High   float64 `json:"high"`
	Pairs  int     `json:"pairs"`
	most   float64 // three of five pairs lie above
}

// A Walk is what the issuing loop walks.
type Walk struct {
	Company string  `json:"company"` // in which it was fitted: one_core or neighbour
	Bytes   uint64  `json:"bytes"`   // of each thread
	Growth  float64 `json:"growth"`  // of the loop's CPU time in that company
}

// Companies of a walk.
const (
	OneCore   = "one_core"
	Neighbour = "neighbour"
)

// NewGrowth sums up runs in company and alone, as many and in turn; nil when there are none.
func NewGrowth(company, alone []float64) *Growth {
	if len(company) == 0 || len(company) != len(alone) {
		return nil
	}
	pairs := make([]float64, len(company))
	for i := range pairs {
		pairs[i] = company[i] / alone[i]
	}
	return &Growth{Growth: slices.Min(company) / slices.Min(alone), Median: predict.Quantile(pairs, 0.5), Low: predict.Quantile(pairs, 0.05), High: predict.Quantile(pairs, 0.95),
		Pairs: len(pairs), most: predict.Quantile(pairs, 0.4)}
}

// least is the growth below which a program counts as one that does not mind: what the noise of a good machine makes of none.
const least = 1.02

// Matters reports whether the growth is more than noise: the least runs and the median of the pairs say so, and three of
// five pairs have some.
func (g *Growth) Matters() bool {
	return g != nil && min(g.Growth, g.Median) >= least && g.most > 1
}

// Parse reads the JSON, which may come from anywhere.
func Parse(b []byte) (*Sense, error) {
	if len(b) > Max {
		return nil, fmt.Errorf("a sense of %d bytes: at most %d are read", len(b), Max)
	}
	var s Sense
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("a sense: %w", err)
	}
	if s.Version < 1 || s.Version > Version {
		return nil, fmt.Errorf("a sense of version %d; this program knows up to %d", s.Version, Version)
	}
	good := func(v float64) bool { return v > 0 && v < 1e6 && !math.IsNaN(v) }
	for _, g := range []*Growth{s.OneCore, s.Neighbour} {
		if g != nil && !(good(g.Growth) && good(g.Median) && good(g.Low) && good(g.High)) {
			return nil, fmt.Errorf("a sense with a growth of %g, %g to %g", g.Growth, g.Low, g.High)
		}
	}
	if w := s.Walk; w != nil && !(good(w.Growth) && w.Bytes > 0 && w.Bytes <= 1<<30) {
		return nil, fmt.Errorf("a sense with a walk of %d bytes that grows %g times", w.Bytes, w.Growth)
	}
	return &s, nil
}

// Load reads what was learnt of a trace in a directory; nil without an error: nothing has been.
func Load(trace string) (*Sense, error) {
	f, err := os.Open(filepath.Join(trace, FileName))
	if err != nil {
		if st, e := os.Stat(trace); errors.Is(err, fs.ErrNotExist) || e == nil && !st.IsDir() {
			return nil, nil
		}
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, Max+1))
	if err != nil {
		return nil, err
	}
	s, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return s, nil
}

// JSON is the file.
func (s *Sense) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}
