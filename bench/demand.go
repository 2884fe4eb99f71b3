package main

import (
	"fmt"
	"math"
	"os/exec"

	"prophet/runtime/calibrate"
)

// The loop that issues CPU demand: how far segments of 1 us to 10 ms are off on a core that is otherwise idle; and how far
// calibrations of one machine lie apart, which is the noise of a factor between two.

func (b *bench) demand() error {
	var all []float64
	decades := map[float64][]float64{}
	var machines []*calibrate.Machine
	for range b.rounds {
		args := []string{"calibrate", "--json"}
		if !b.quick {
			args = append(args, "--check-loop")
		}
		out, err := exec.Command(b.tool, args...).Output()
		if err != nil {
			return fmt.Errorf("prophet calibrate: %w", err)
		}
		m, err := calibrate.Parse(out)
		if err != nil {
			return err
		}
		all = append(all, 100*m.Loop.Errors.Mean())
		for _, d := range m.Loop.Errors {
			decades[d.FromNs] = append(decades[d.FromNs], 100*d.Mean)
		}
		machines = append(machines, m)
	}
	b.add(row{Name: "loop/error", Value: median(all), Unit: "%", Limit: 1, Note: "mean over 1,000 segments from 1 us to 10 ms"})
	for _, from := range []float64{1e3, 1e4, 1e5, 1e6} {
		if v := decades[from]; len(v) > 0 {
			b.add(row{Name: fmt.Sprintf("loop/error/from-%gus", from/1e3), Value: median(v), Unit: "%"})
		}
	}
	var apart []float64
	for i := 1; i < len(machines); i++ {
		apart = append(apart, 100*math.Abs(calibrate.Scale(machines[i-1], machines[i], nil).Factor-1))
	}
	if len(apart) > 0 {
		b.add(row{Name: "calibrate/apart", Value: median(apart), Unit: "%", Limit: 5, Note: "factor between two calibrations in a row"})
	}
	return nil
}
