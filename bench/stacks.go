package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// stacks measures what stacks cost: the same loop of locks under 25 callers with none, with as many as by default, and with
// as many as may be asked for. What an event is to cost is in calls, where stacks are on as well.
func (b *bench) stacks() error {
	exe, err := b.build("stacks")
	if err != nil {
		return err
	}
	n := 20_000_000
	if b.quick {
		n /= 10
	}
	rates := []int{0, 99, 1000}
	each, secs := map[int][]float64{}, map[int][]float64{}
	for r := -1; r < b.rounds; r++ {
		for _, rate := range append(rates, 0) { // none twice: how far two like runs lie apart
			p := b.command(wayStacks+strconv.Itoa(rate), b.work, exe, strconv.Itoa(n))
			var out strings.Builder
			p.cmd.Stdout = &out
			if _, err := p.run(); err != nil {
				return err
			}
			os.RemoveAll(p.trace)
			var ns, s float64
			if _, err := fmt.Sscan(out.String(), &ns, &s); err != nil {
				return fmt.Errorf("stacks said %q: %w", out.String(), err)
			}
			if r >= 0 {
				each[rate], secs[rate] = append(each[rate], ns), append(secs[rate], s)
			}
		}
	}
	none := median(each[0])
	noise := spread(each[0])
	b.add(row{Name: "an event, with 99 stacks a second", Value: median(each[99]) - none, Unit: "ns", Limit: 0.1 * none, Bare: none, Noise: noise, Note: "added to one without stacks"})
	taken := 1000 * median(secs[1000])
	b.add(row{Name: "a stack of 25 callers", Value: (median(secs[1000]) - median(secs[0])) / taken * 1e6, Unit: "us", Limit: 20, Noise: noise * 2 * float64(n) / taken / 1e3,
		Note: fmt.Sprintf("of %.0f; 99 a second take %.3f%% of a thread's time at the limit", taken, 99*20e-4)})
	return nil
}

// spread is how far the middle half of like runs lies apart.
func spread(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)*3/4] - v[len(v)/4]
}
