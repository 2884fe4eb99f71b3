package calibrate

import (
	"fmt"
	"strings"
)

// Text is a machine for people, beside another where there is one, compared by a mix (nil: DefaultMix).
func (m *Machine) Text(home *Machine, mix Mix) string {
	var b strings.Builder
	cpus := fmt.Sprintf("%d CPUs", m.CPUs)
	if m.CPUs == 1 {
		cpus = "1 CPU"
	}
	if m.Quota > 0 {
		cpus += fmt.Sprintf(", at most %.3g of CPU time", m.Quota)
	}
	fmt.Fprintf(&b, "machine    %s, %s, %s, %s, %.1f GiB, %s\n", m.Host, m.Arch, m.CPU, cpus, float64(m.Memory)/(1<<30), m.Kernel)
	table := func(title string, names []string, figures, others map[string]Figure) {
		for _, name := range names {
			f, ok := figures[name]
			if !ok {
				continue
			}
			fmt.Fprintf(&b, "%-10s %-14s %12s  ±%-5s 90%% below %s", title, name, duration(f.Median), fmt.Sprintf("%.1f%%", 50*f.Spread), duration(f.P90))
			if o, ok := others[name]; ok && o.Median > 0 {
				fmt.Fprintf(&b, "   %.3f of home's", f.Median/o.Median)
			}
			b.WriteByte('\n')
			title = ""
		}
	}
	var speed, costs, calls map[string]Figure
	if home != nil {
		speed, costs = home.Speed, home.Costs
		if home.Disk != nil {
			calls = home.Disk.Calls
		}
	}
	table("a unit of", Kinds, m.Speed, speed)
	table("kernel", Costs, m.Costs, costs)
	if m.Disk != nil {
		fmt.Fprintf(&b, "disk       %s, %s, %.1f GiB free\n", m.Disk.Dir, m.Disk.Filesystem, float64(m.Disk.Free)/(1<<30))
		table("", Calls, m.Disk.Calls, calls)
	}
	if m.Loop != nil && len(m.Loop.Errors) > 0 {
		fmt.Fprintf(&b, "loop       its mean error is %.2f%%", 100*m.Loop.Errors.Mean())
		for i, d := range m.Loop.Errors {
			sep := ";"
			if i > 0 {
				sep = ","
			}
			fmt.Fprintf(&b, "%s from %s %.2f%%", sep, duration(d.FromNs), 100*d.Mean)
		}
		b.WriteByte('\n')
	}
	if home != nil {
		f := Scale(home, m, mix)
		fmt.Fprintf(&b, "factor     CPU demand takes %.3f ± %.3f of the time at home\n", f.Factor, f.Factor*f.Noise)
	}
	return b.String()
}

func duration(ns float64) string {
	switch {
	case ns >= 1e9:
		return fmt.Sprintf("%.3f s", ns/1e9)
	case ns >= 1e6:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	case ns >= 1e3:
		return fmt.Sprintf("%.3g us", ns/1e3)
	}
	return fmt.Sprintf("%.3g ns", ns)
}
