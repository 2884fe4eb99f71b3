package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// bugRuns is how often each program of tests/bugs runs in each way in one round.
const bugRuns = 40

// bugs measures how often programs with known bugs fail, plain and under chaos, one run of each in turn.
func (b *bench) bugs() error {
	dir := filepath.Join(filepath.Dir(b.src), "tests", "bugs")
	list, err := filepath.Glob(filepath.Join(dir, "*.c"))
	if err != nil || len(list) == 0 {
		return fmt.Errorf("no programs in %s: %w", dir, err)
	}
	runs := bugRuns * b.rounds
	if b.quick {
		runs = max(4, runs/10)
	}
	// Rates of the set: the mean of its programs', and the variance of that.
	var mean, variance [2]float64
	for _, source := range list {
		name := strings.TrimSuffix(filepath.Base(source), ".c")
		exe := filepath.Join(b.work, "bug-"+name)
		if _, err := b.output(b.work, "gcc", "-O1", "-g0", "-w", "-D_GNU_SOURCE", "-pthread", "-Wl,-z,now", "-o", exe, source); err != nil {
			return err
		}
		var failed [2]int
		for i := range runs {
			for way := range failed {
				bad, err := b.fails(exe, way == 1, i+1)
				if err != nil {
					return err
				}
				if bad {
					failed[way]++
				}
			}
		}
		var rate [2]float64
		for way, n := range failed {
			rate[way] = float64(n) / float64(runs)
			low, high := wilson(n, runs)
			mean[way] += rate[way] / float64(len(list))
			variance[way] += math.Pow((high-low)/(2*1.96), 2) / float64(len(list)*len(list))
		}
		low, high := wilson(failed[1], runs)
		plainLow, plainHigh := wilson(failed[0], runs)
		b.sample("Bug/"+name+"/plain", runs, 100*rate[0], "%fails")
		b.sample("Bug/"+name+"/chaos", runs, 100*rate[1], "%fails")
		b.add(row{Name: "bug " + name, Bare: 100 * rate[0], Value: 100 * rate[1], Unit: "% fail",
			Note: fmt.Sprintf("95%% of %d runs: plain %.1f to %.1f, chaos %.1f to %.1f", runs, 100*plainLow, 100*plainHigh, 100*low, 100*high)})
	}
	if mean[0] == 0 {
		mean[0] = 1 / float64(runs*len(list)) // one more than was seen
	}
	ratio := mean[1] / mean[0]
	// Of a ratio, by its logarithm.
	spread := 1.96 * math.Sqrt(variance[0]/(mean[0]*mean[0])+variance[1]/(mean[1]*mean[1]))
	b.add(row{Name: "bugs under chaos", Bare: 100 * mean[0], Value: ratio, Unit: "times", Limit: 3, Least: true,
		Note: fmt.Sprintf("95%%: %.1f to %.1f times as often", ratio*math.Exp(-spread), ratio*math.Exp(spread))})
	return nil
}

// fails reports whether one run of a program fails, or is stuck.
func (b *bench) fails(exe string, chaos bool, seed int) (bool, error) {
	cmd := exec.Command(exe)
	cmd.Env, _ = b.env(wayBare)
	if chaos {
		var trace string
		cmd.Env, trace = b.env(wayDefault)
		cmd.Env = append(cmd.Env, fmt.Sprintf("PROPHET_OPTIONS=chaos=%d", seed)) // the last one counts
		defer os.RemoveAll(trace)
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	limit := time.AfterFunc(time.Second, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	return cmd.Wait() != nil, nil
}

// wilson is where the rate of something that happened k of n times lies, 19 times of 20.
func wilson(k, n int) (low, high float64) {
	const z = 1.96
	p, m := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, mid-half), min(1, mid+half)
}
