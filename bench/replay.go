package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Re-execution: the lock benchmark against its recorded run, programs against their bare run, by the wall clock. A
// re-execution's time is that of the whole command, with all that replayd prepares and removes.

var replayLocks = []struct {
	threads int
	turns   int
	limit   float64 // of the recorded run
}{{1, 50_000_000, 1.5}, {2, 20_000_000, 3}, {16, 20_000_000, 3}}

// replayPrograms read in.bin or words.txt in their directory.
var replayPrograms = []struct {
	name string
	argv []string
}{
	{"xz -T2", []string{"xz", "-T2", "-k", "-c", "in.bin"}},
	{"pigz -p2", []string{"pigz", "-p2", "-k", "-c", "in.bin"}},
	{"pbzip2 -p2", []string{"pbzip2", "-p2", "-k", "-c", "in.bin"}},
	{"sort --parallel=2", []string{"sort", "--parallel=2", "words.txt"}},
	{"sqlite3", []string{"sqlite3", "t.db", "create table t(a); with recursive c(x) as (select 1 union all select x+1 from c where x<300000) insert into t select x from c; select sum(a) from t;"}},
}

func (b *bench) replay() error {
	exe, err := b.build("locks")
	if err != nil {
		return err
	}
	for _, l := range replayLocks {
		turns := l.turns
		if b.quick {
			turns /= 10
		}
		argv := []string{exe, fmt.Sprint(l.threads), fmt.Sprint(turns)}
		bare, ratio, err := b.replays("", argv, false)
		if err != nil {
			return err
		}
		b.add(row{Name: fmt.Sprintf("re-execute locks, %d threads, of the recorded run", l.threads), Value: ratio, Unit: "x", Limit: l.limit, Bare: bare})
	}
	dir := filepath.Join(b.home, "replay")
	if err := replayFiles(dir, b.quick); err != nil {
		return err
	}
	for _, p := range replayPrograms {
		bare, ratio, err := b.replays(dir, p.argv, true)
		if err != nil {
			b.add(row{Name: "re-execute " + p.name + ", of its bare run", Value: 0, Unit: "x", Note: strings.ReplaceAll(err.Error(), "\n", " ")})
			continue
		}
		b.add(row{Name: "re-execute " + p.name + ", of its bare run", Value: ratio, Unit: "x", Limit: 1.2, Bare: bare})
	}
	return nil
}

// replayFiles makes what the programs read: our own binaries, several times.
func replayFiles(dir string, quick bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	times := 6
	if quick {
		times = 1
	}
	var words strings.Builder
	seed := uint64(1)
	for range 400_000 * times {
		seed = seed*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&words, "%x\n", seed>>33)
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "in.bin"), []byte(strings.Repeat(string(data), times)), 0o644),
		os.WriteFile(filepath.Join(dir, "words.txt"), []byte(words.String()), 0o644))
}

// replays returns the median wall time of the bare runs, and that of a re-execution over the recorded run's or, where
// that is asked for, the bare one's.
func (b *bench) replays(dir string, argv []string, ofBare bool) (bare, ratio float64, err error) {
	var bares, ratios []float64
	timed := func(env []string, argv ...string) (float64, error) {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = dir, env
		var errs strings.Builder
		cmd.Stderr = &errs
		if dir != "" {
			os.Remove(filepath.Join(dir, "t.db"))
		}
		start := time.Now()
		err := cmd.Run()
		took := time.Since(start).Seconds()
		if err != nil {
			return 0, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, lastLines(errs.String(), 3))
		}
		return took, nil
	}
	for range b.rounds {
		env, _ := b.env(wayBare)
		plain, err := timed(env, argv...)
		if err != nil {
			return 0, 0, err
		}
		with, trace := b.env(wayDefault)
		rec, err := timed(with, argv...)
		if err != nil {
			return 0, 0, err
		}
		if _, err := b.output("", b.tool, "recover", trace); err != nil { // as prophet record does at the end of the run
			return 0, 0, err
		}
		re, err := timed(env, append([]string{filepath.Join(filepath.Dir(b.lib), "replayd"), "--trace", trace, "--"}, argv...)...)
		os.RemoveAll(trace)
		if err != nil {
			return 0, 0, err
		}
		bares = append(bares, plain)
		if ofBare {
			ratios = append(ratios, re/plain)
		} else {
			ratios = append(ratios, re/rec)
		}
	}
	return median(bares), median(ratios), nil
}
