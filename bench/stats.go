package main

import (
	"math"
	"slices"
)

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Clone(v)
	slices.Sort(s)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// series is one thing measured round after round: bare twice a round, and in its ways of being recorded.
type series struct {
	bare [][2]float64
	with map[string][]float64
}

func (s *series) bareMedian() float64 {
	var all []float64
	for _, p := range s.bare {
		all = append(all, p[0], p[1])
	}
	return median(all)
}

// noise is how far the two bare runs of a round typically lie apart, as a ratio.
func (s *series) noise() float64 {
	var d []float64
	for _, p := range s.bare {
		d = append(d, math.Abs(p[0]-p[1])/((p[0]+p[1])/2))
	}
	return median(d)
}

// ratio is recorded over bare, round by round, so that slow drift cancels.
func (s *series) ratio(way string) float64 {
	var r []float64
	for i, v := range s.with[way] {
		r = append(r, v/((s.bare[i][0]+s.bare[i][1])/2))
	}
	return median(r)
}

func geomean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(v)))
}
