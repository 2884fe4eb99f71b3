package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// stacks measures what stacks cost: the same loop of locks under 25 callers with none, with as many as by default, with as
// many as may be asked for, and by a timer of CPU time too; then real programs. What an event is to cost is in calls, where stacks are on as well.
func (b *bench) stacks() error {
	exe, err := b.build("stacks")
	if err != nil {
		return err
	}
	n := 20_000_000
	if b.quick {
		n /= 10
	}
	const none, usual, most, timer = "0", "99", "1000", "cpu"
	each, secs := map[string][]float64{}, map[string][]float64{}
	for r := -1; r < b.rounds; r++ {
		for _, rate := range []string{none, usual, most, timer, none} { // none twice: how far two like runs lie apart
			p := b.command(wayStacks+rate, b.work, exe, strconv.Itoa(n))
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
	bare := median(each[none])
	noise := spread(each[none])
	b.add(row{Name: "an event, with 99 stacks a second", Value: median(each[usual]) - bare, Unit: "ns", Limit: 0.1 * bare, Bare: bare, Noise: noise, Note: "added to one without stacks"})
	b.add(row{Name: "an event, with --stacks cpu", Value: median(each[timer]) - bare, Unit: "ns", Limit: 0.1 * bare, Bare: bare, Noise: noise, Note: "added to one without stacks"})
	taken := 1000 * median(secs[most])
	b.add(row{Name: "a stack of 25 callers", Value: (median(secs[most]) - median(secs[none])) / taken * 1e6, Unit: "us", Limit: 20, Noise: noise * 2 * float64(n) / taken / 1e3,
		Note: fmt.Sprintf("of %.0f; 99 a second take %.3f%% of a thread's time at the limit", taken, 99*20e-4)})
	for _, name := range []string{"sqlite3", "pbzip2"} { // one that calls much, one that computes
		i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
		if err := b.stacksOf(&workloads[i], wayStacks+none, [2]string{wayStacks + usual, wayStacks + timer}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// stacksLimit is how much CPU time more a program may take with stacks than without, in percent: of what recording may take, eachDefault, a tenth.
const stacksLimit = eachDefault / 10

// stacksOf measures a program without stacks and in two ways with them.
func (b *bench) stacksOf(w *workload, without string, ways [2]string) error {
	if err := need(w.needs...); err != nil {
		return fmt.Errorf("%w (tests/setup installs it)", err)
	}
	dir := filepath.Join(b.work, w.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := w.setup(b, dir); err != nil {
		return err
	}
	s := series{with: map[string][]float64{}}
	for r := -1; r < b.rounds; r++ {
		got := map[string]float64{}
		var bare [2]float64
		for i, way := range []string{without, ways[0], without, ways[1]} {
			v, trace, err := w.run(b, way, dir)
			if err != nil {
				return err
			}
			os.RemoveAll(trace)
			if way == without {
				bare[i/2] = v
			} else {
				got[way] = v
			}
		}
		if r < 0 {
			continue
		}
		s.bare = append(s.bare, bare)
		for way, v := range got {
			s.with[way] = append(s.with[way], v)
		}
	}
	for _, way := range ways {
		b.add(row{Name: w.name + ", " + way, Value: percent(s.ratio(way)), Unit: "% CPU", Limit: stacksLimit, Noise: s.noise() * 100, Note: "against " + without})
	}
	return nil
}

// spread is how far the middle half of like runs lies apart.
func spread(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)*3/4] - v[len(v)/4]
}
