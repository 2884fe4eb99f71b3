package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A process and a thread: milliseconds and memory that recording adds.

func (b *bench) start() error {
	exe, err := b.build("start")
	if err != nil {
		return err
	}
	traces := filepath.Join(b.work, "spawned")
	if err := os.MkdirAll(traces, 0o755); err != nil {
		return err
	}
	// A run of its own, as a person starts it; and a child of a run that is recorded already, as make starts gcc.
	if err := b.spawns(exe, "/bin/true, a run of its own", 0.3, traces, "LD_PRELOAD="+b.lib); err != nil {
		return err
	}
	run, stop, err := b.liveRun()
	if err != nil {
		return err
	}
	err = b.spawns(exe, "/bin/true, child of a run", 0.3, "", append(run, "LD_PRELOAD="+b.lib)...)
	stop()
	if err != nil {
		return err
	}
	if err := b.memory(exe, "/bin/true, resident", 700, "resident", "/bin/true"); err != nil {
		return err
	}
	return b.memory(exe, "a thread, resident", 128, "threads", "32")
}

func (b *bench) spawns(exe, name string, limit float64, traces string, vars ...string) error {
	n := b.scale(2000) / b.rounds
	s := series{with: map[string][]float64{}}
	var added []float64
	for r := -1; r < b.rounds; r++ {
		out, err := b.output(b.work, append([]string{exe, "spawn", strconv.Itoa(n), "/bin/true", traces}, vars...)...)
		if err != nil {
			return err
		}
		var bare, with float64
		if _, err := fmt.Sscan(out, &bare, &with); err != nil {
			return fmt.Errorf("start said %q: %w", out, err)
		}
		if r < 0 {
			continue
		}
		b.sample("Start/true/bare", n, bare*1e3, "ns/op")
		b.sample("Start/true/recorded", n, with*1e3, "ns/op")
		s.bare = append(s.bare, [2]float64{bare, bare})
		added = append(added, (with-bare)/1e3)
	}
	// The noise: how far the bare medians of the rounds lie apart.
	spread := 0.0
	for _, p := range s.bare {
		spread += math.Abs(p[0]-s.bareMedian()) / float64(len(s.bare)) / 1e3
	}
	b.add(row{Name: name, Value: median(added), Unit: "ms", Limit: limit, Bare: s.bareMedian() / 1e3, Noise: spread})
	return nil
}

// liveRun keeps a recorded process running and returns the variables with which others join its run: those that its
// children get.
func (b *bench) liveRun() (vars []string, stop func(), err error) {
	p := b.command(wayDefault, b.work, "sh", "-c", "env; exec cat")
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() { in.Close(); _, _ = p.wait(); os.RemoveAll(p.trace) }
	_, _ = io.WriteString(in, "that is all\n")
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "that is all"; {
		if l := lines.Text(); strings.HasPrefix(l, "PROPHET_TRACE=") || strings.HasPrefix(l, "PROPHET_RUN=") {
			vars = append(vars, l)
		}
	}
	if len(vars) < 2 {
		stop()
		return nil, nil, errors.New("a recorded shell does not tell its children of the run")
	}
	return vars, stop, nil
}

// memory runs a mode of start.c bare and recorded.
func (b *bench) memory(exe, name string, limit float64, argv ...string) error {
	one := func(way string) (float64, error) {
		p := b.command(way, b.work, append([]string{exe}, argv...)...)
		if argv[0] == "resident" && way != wayBare { // the program is recorded, start.c itself is not
			p = b.command(wayBare, b.work, append([]string{"env", "LD_PRELOAD=" + b.lib, "PROPHET_TRACE=" + filepath.Join(b.work, "resident")}, append([]string{exe}, argv...)...)...)
		}
		var out strings.Builder
		p.cmd.Stdout = &out
		if _, err := p.run(); err != nil {
			return 0, err
		}
		os.RemoveAll(p.trace)
		var v float64
		_, err := fmt.Sscan(out.String(), &v)
		if err == io.EOF {
			err = p.failed(err)
		}
		return v, err
	}
	var added, all []float64
	for range b.rounds {
		bare, err := one(wayBare)
		if err != nil {
			return err
		}
		with, err := one(wayDefault)
		if err != nil {
			return err
		}
		added = append(added, with-bare)
		all = append(all, bare)
	}
	b.sample("Memory/"+argv[0], 1, median(added), "KiB")
	b.add(row{Name: name, Value: median(added), Unit: "KiB", Limit: limit, Bare: median(all)})
	return nil
}
