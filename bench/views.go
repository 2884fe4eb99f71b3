package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// views: everything that shows a trace, of 10^8 events: each in at most two minutes and a GiB. On disk, as CSV of it is
// 10 GB.
func (b *bench) views() error {
	exe, err := b.build("views")
	if err != nil {
		return err
	}
	const events = 100_000_000
	p := b.command(wayDefault, b.work, exe, strconv.Itoa(b.scale(events)))
	if _, err := p.run(); err != nil {
		return err
	}
	defer os.RemoveAll(p.trace)
	out := filepath.Join(b.home, "views")
	for _, c := range []struct {
		name string
		argv []string
	}{
		{"info", []string{"info", p.trace}},
		{"report", []string{"report", p.trace, "-o", out}},
		{"diff", []string{"diff", p.trace, p.trace}},
		{"pprof", []string{"export", p.trace, "--pprof", out}},
		{"folded", []string{"export", p.trace, "--folded", out}},
		{"wait-for", []string{"export", p.trace, "--folded", out, "--wait-for"}},
		{"perfetto", []string{"export", p.trace, "--perfetto", out}},
		{"parquet", []string{"export", p.trace, "--parquet", out}},
		{"csv", []string{"export", p.trace, "--csv", out}},
		{"scrub", []string{"scrub", p.trace, "-o", out}},
	} {
		v := b.command(wayBare, b.work, append([]string{b.tool}, c.argv...)...)
		from := time.Now()
		if _, err := v.run(); err != nil {
			return err
		}
		took := time.Since(from).Seconds()
		if err := os.RemoveAll(out); err != nil {
			return err
		}
		most := float64(v.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
		b.add(row{Name: c.name + " of 10^8 events", Value: took * events / float64(b.scale(events)), Unit: "s", Limit: 120})
		b.add(row{Name: c.name + " of them, resident", Value: most, Unit: "MiB", Limit: 1024})
	}
	return nil
}
