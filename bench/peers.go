package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Peers: what other tracers add to the same calls, in the same run. They have no limit; they are here to compare with.

type peer struct {
	name  string
	needs []string
	loop  string
	calls int
	cc    []string // compiler flags of their own
	wrap  func(dir string) []string
	env   []string
}

var peerList = []peer{
	{name: "LTTng-UST pthread wrapper", needs: []string{"lttng", "lttng-sessiond"}, loop: "mutex", calls: 2_000_000, env: []string{"LD_PRELOAD=liblttng-ust-pthread-wrapper.so"}},
	{name: "uftrace", needs: []string{"uftrace"}, loop: "mutex", calls: 2_000_000, cc: []string{"-pg"},
		wrap: func(dir string) []string { return []string{"uftrace", "record", "-d", filepath.Join(dir, "data")} }},
	{name: "ltrace", needs: []string{"ltrace"}, loop: "mutex", calls: 4000,
		wrap: func(dir string) []string {
			return []string{"ltrace", "-e", "pthread_mutex_lock+pthread_mutex_unlock", "-o", filepath.Join(dir, "out")}
		}},
	{name: "strace -f", needs: []string{"strace"}, loop: "write", calls: 20_000,
		wrap: func(dir string) []string { return []string{"strace", "-f", "-o", filepath.Join(dir, "out")} }},
}

func (b *bench) peers() error {
	for _, p := range peerList {
		unit := map[string]string{"mutex": "ns/event", "write": "ns/call"}[p.loop]
		if err := need(p.needs...); err != nil {
			b.add(row{Name: p.name, Unit: unit, Note: err.Error()})
			continue
		}
		if err := b.peer(&p, unit); err != nil {
			b.say("  %s: %v", p.name, err)
			b.add(row{Name: p.name, Unit: unit, Note: "did not run: " + strings.SplitN(err.Error(), "\n", 2)[0]})
		}
	}
	return nil
}

func (b *bench) peer(p *peer, unit string) error {
	dir := filepath.Join(b.work, "peer")
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	exe, err := b.build("price", p.cc...)
	if err != nil {
		return err
	}
	if strings.HasPrefix(p.name, "LTTng") {
		stop, err := b.lttng(dir)
		if err != nil {
			return err
		}
		defer stop()
	}
	one := func(with bool) (float64, error) {
		share := map[string]int{"write": 16}[p.loop]
		argv := []string{exe, strconv.Itoa(p.calls * max(share, 1)), "1", p.loop, strconv.Itoa(lastCPU())}
		var env []string
		if with {
			if p.wrap != nil {
				argv = append(p.wrap(dir), argv...)
			}
			env = p.env
		}
		c := b.command(wayBare, dir, argv...)
		c.cmd.Env = append(append(c.cmd.Env, "HOME="+dir), env...)
		var out strings.Builder
		c.cmd.Stdout = &out
		if _, err := c.run(); err != nil {
			return 0, err
		}
		f := strings.Fields(out.String())
		if len(f) < 2 || f[0] != p.loop {
			return 0, fmt.Errorf("price said %q", out.String())
		}
		return strconv.ParseFloat(f[1], 64)
	}
	s := series{with: map[string][]float64{}}
	var added []float64
	for r := -1; r < min(b.rounds, 3); r++ {
		var v [3]float64
		for i, with := range []bool{false, true, false} {
			if v[i], err = one(with); err != nil {
				return err
			}
		}
		if r < 0 {
			continue
		}
		s.bare = append(s.bare, [2]float64{v[0], v[2]})
		added = append(added, v[1]-(v[0]+v[2])/2)
		b.sample("Peer/"+strings.ReplaceAll(p.name, " ", "_")+"/"+p.loop, p.calls, v[1], "ns/op")
	}
	b.add(row{Name: p.name, Value: median(added), Unit: unit, Bare: s.bareMedian(), Noise: s.noise() * s.bareMedian()})
	return nil
}

// lttng starts a session that records the wrapper's events, with daemons of its own.
func (b *bench) lttng(dir string) (stop func(), err error) {
	ask := func(argv ...string) error {
		c := b.command(wayBare, dir, argv...)
		c.cmd.Env = append(c.cmd.Env, "HOME="+dir)
		_, err := c.run()
		return err
	}
	daemon := b.command(wayBare, dir, "lttng-sessiond", "--no-kernel")
	daemon.cmd.Env = append(daemon.cmd.Env, "HOME="+dir)
	if err := daemon.cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = ask("lttng", "destroy", "bench")
		_ = daemon.cmd.Process.Signal(os.Interrupt)
		_, _ = daemon.wait()
	}
	err = until("lttng-sessiond", func() bool { return ask("lttng", "create", "bench", "--output", filepath.Join(dir, "lttng")) == nil })
	for _, argv := range [][]string{
		{"lttng", "enable-channel", "-u", "c", "--subbuf-size", "4M", "--num-subbuf", "4"},
		{"lttng", "enable-event", "-u", "-c", "c", "lttng_ust_pthread:*"},
		{"lttng", "start"},
	} {
		if err == nil {
			err = ask(argv...)
		}
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}
