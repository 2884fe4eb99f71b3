package issue

import (
	"cmp"
	"os"
	"slices"

	"prophet/runtime/breakdown"
	"prophet/runtime/issued"
)

// Part is the time that a thread of the engine spent with things of one class (runtime/breakdown).
type Part struct {
	UID     uint32  `json:"uid"` // of the recorded thread
	Class   string  `json:"class"`
	Seconds float64 `json:"seconds"`
}

// PartsMax bounds how many parts are said: those of the longest time.
const PartsMax = 4000

// Parts splits an issue, whose CPU demand was scaled, by thread and class: the longest first.
func Parts(program string, log *issued.Log, scale float64) ([]Part, error) {
	f, err := os.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p, err := breakdown.Load(f, st.Size())
	if err != nil {
		return nil, err
	}
	s, err := p.Issue(log, scale)
	if err != nil {
		return nil, err
	}
	var list []Part
	for n := range s.Threads {
		for c, ns := range s.Threads[n] {
			if ns > 0 {
				list = append(list, Part{p.UID(n), breakdown.Class(c).String(), float64(ns) / 1e9})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Part) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return list[:min(len(list), PartsMax)], nil
}
