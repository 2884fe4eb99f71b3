package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Re-execution: the lock benchmark against its recorded run, programs against their bare run, by the wall clock. A
// re-execution's time is that of the whole command, with all that replayd prepares and removes. Programs are in
// replay_programs.go.

var replayLocks = []struct {
	threads int
	turns   int
	limit   float64 // of the recorded run
}{{1, 50_000_000, 1.5}, {2, 20_000_000, 3}, {16, 20_000_000, 3}}

func (b *bench) replay() error {
	if b.wantedReplay("locks") {
		if err := b.replaysLocks(); err != nil {
			return err
		}
	}
	var failed error
	for i := range replayPrograms {
		p := &replayPrograms[i]
		if !b.wantedReplay(p.name) {
			continue
		}
		b.say("  %s", p.name)
		if err := b.replaysProgram(p); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return failed
}

// wantedReplay reports whether a program, or the lock benchmark, is asked for: as a part of "replay", or as "replay/NAME".
func (b *bench) wantedReplay(name string) bool {
	return b.only == nil || slices.Contains(b.only, "replay") || slices.Contains(b.only, "replay/"+name)
}

func (b *bench) replaysLocks() error {
	exe, err := b.build("locks")
	if err != nil {
		return err
	}
	for _, l := range replayLocks {
		p := replayProgram{argv: func(string, int) []string { return []string{exe, fmt.Sprint(l.threads), fmt.Sprint(b.scale(l.turns))} }}
		t, err := b.replays(&p, b.work)
		if err != nil {
			return err
		}
		b.add(row{Name: fmt.Sprintf("re-execute locks, %d threads, of the recorded run", l.threads), Value: t.of(again, recorded), Unit: "x", Limit: l.limit, Bare: median(t[bare])})
	}
	return nil
}

func (b *bench) replaysProgram(p *replayProgram) error {
	if err := need(p.needs...); err != nil {
		return fmt.Errorf("%w (tests/setup installs it)", err)
	}
	dir := filepath.Join(b.home, "replay")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(b.home, 0o755); err != nil { // servers run as somebody else
		return err
	}
	if p.setup != nil {
		if err := p.setup(b, dir); err != nil {
			return err
		}
	}
	t, err := b.replays(p, dir)
	if err != nil {
		return err
	}
	r := row{Name: "re-execute " + p.name + ", of its bare run", Value: t.of(again, bare), Unit: "x", Limit: 1.2, Bare: median(t[bare]),
		Note: fmt.Sprintf("recorded %.2f x", t.of(recorded, bare))}
	if p.serial {
		r.Name, r.Limit = "re-execute "+p.name+", under --serial, of its bare run", 0
	}
	b.add(r)
	return nil
}

// The three ways that a program runs in turn; walls has the seconds of each, for the same work.
const (
	bare = iota
	recorded
	again
)

type walls [3][]float64

// of is the median of one way over another, round by round, so that slow drift cancels.
func (w *walls) of(way, than int) float64 {
	var r []float64
	for i, v := range w[way] {
		r = append(r, v/w[than][i])
	}
	return median(r)
}

// replays runs a program bare, recorded and executed again, round after round.
func (b *bench) replays(p *replayProgram, dir string) (t walls, err error) {
	traces := filepath.Join(b.home, "traces")
	if err := errors.Join(os.MkdirAll(traces, 0o777), os.Chmod(traces, 0o777)); err != nil {
		return t, err
	}
	for range b.rounds {
		port, err := freePort()
		if err != nil {
			return t, err
		}
		argv := p.argv(dir, port)
		b.traces++
		trace := filepath.Join(traces, fmt.Sprintf("%d.prophet", b.traces))
		record := []string{b.tool, "record", "-q", "-o", trace}
		if p.serial {
			record = append(record, "--serial")
		}
		work := [3]float64{}
		for way, argv := range [][]string{argv, append(append(record, "--"), argv...), {filepath.Join(filepath.Dir(b.lib), "replayd"), "--trace", trace}} {
			if p.before != nil && way != again {
				if err := p.before(dir); err != nil {
					return t, err
				}
			}
			served := p.serve
			if way == again {
				served = nil
			}
			took, done, err := b.timed(p, dir, port, served, argv)
			if err != nil {
				os.RemoveAll(trace)
				return t, err
			}
			if work[way] = done; way == again {
				work[way] = work[recorded]
			}
			t[way] = append(t[way], took/work[way]*work[bare])
		}
		os.RemoveAll(trace)
	}
	return t, nil
}

// timed runs a program once and returns its wall time and how much work it did: 1 where that is the same each time.
func (b *bench) timed(p *replayProgram, dir string, port int, serve func(b *bench, dir string, port int) (float64, error), argv []string) (took, work float64, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, _ = b.env(wayBare)
	cmd.Dir = dir
	if p.user != nil {
		cmd.SysProcAttr = p.user()
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	limit := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	work = 1
	var bad error
	if serve != nil {
		work, bad = serve(b, dir, port)
		_ = cmd.Process.Signal(p.stop)
	}
	if err := cmd.Wait(); err != nil && bad == nil {
		bad = err
	}
	if bad != nil {
		return 0, 0, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), bad, lastLines(errs.String(), 12))
	}
	return time.Since(start).Seconds(), work, nil
}
