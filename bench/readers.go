package main

import (
	"os"
	"strconv"
	"time"
)

// The readers: events a second on one core, of the commands themselves, over a trace of locks and one of a database.

func (b *bench) readers() error {
	exe, err := b.build("price")
	if err != nil {
		return err
	}
	p := b.command(wayDefault, b.work, exe, strconv.Itoa(b.scale(40_000_000)), "1", "mutex")
	if _, err := p.run(); err != nil {
		return err
	}
	if err := b.read("locks", p.trace); err != nil {
		return err
	}
	p = b.command(wayDefault, b.work, exe, strconv.Itoa(b.scale(40_000_000)), "4") // all loops, many kinds of events
	if _, err := p.run(); err != nil {
		return err
	}
	return b.read("all loops", p.trace)
}

func (b *bench) read(what, path string) error {
	defer os.RemoveAll(path)
	z, err := b.sizes(path)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name  string
		limit float64
		argv  []string
	}{
		{"verify", 20, []string{"verify", "-j1", path}},
		{"info", 20, []string{"info", path}},
		{"dump", 3, []string{"dump", path}},
	} {
		var rates []float64
		rounds := min(b.rounds, 3)
		for range rounds {
			p := b.command(wayBare, b.work, append([]string{b.tool}, c.argv...)...)
			p.cmd.Env = append(p.cmd.Env, "GOMAXPROCS=1")
			from := time.Now()
			if _, err := p.run(); err != nil {
				return err
			}
			took := time.Since(from).Seconds()
			b.sample("Read/"+c.name, int(z.events), took*1e9/float64(z.events), "ns/op")
			rates = append(rates, float64(z.events)/took/1e6)
		}
		b.add(row{Name: "prophet " + c.name + ", " + what, Value: median(rates), Unit: "M/s", Limit: c.limit, Least: true})
	}
	return nil
}
