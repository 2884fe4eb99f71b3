package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"prophet/runtime/calibrate"
	"prophet/runtime/run"
	"prophet/runtime/term"
)

func calibrateCmd() *cobra.Command {
	var output, dir, against, mix string
	var asJSON, long bool
	c := &cobra.Command{
		Use:   "calibrate [-o FILE] [--dir DIR]",
		Short: "Measure how fast this machine is, for predictions and to compare",
		Long: `Measures this machine for about three seconds: the speed of one thread over several kinds of work, what clocks, system
calls and waking a thread cost, and with --dir the latencies of a disk. The ratio of two machines' figures is the factor by
which CPU demand takes longer there: the geometric mean of integer, branch, string and crypto work, unless a prediction is
told another mix. Each figure is a median with its noise: half of the distance between its quartiles.

Other load on the machine makes the figures worse than the machine is.`,
		Example: "  prophet calibrate -o here.json --dir .\n  prophet calibrate --against there.json",
		Args:    args(0, "no arguments"),
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the JSON to this `file`")
	c.Flags().StringVar(&dir, "dir", "", "measure fsync, reads and writes in this `directory`, too")
	c.Flags().StringVar(&against, "against", "", "compare with the machine of this `file`, which an earlier calibration wrote")
	c.Flags().StringVar(&mix, "mix", "", "with --against: the `kinds` of work that matter, by weight, as float=2,integer=1")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&long, "check-loop", false, "check the loop that issues CPU demand with 1,000 segments from 1 us to 10 ms")
	c.RunE = func(*cobra.Command, []string) error {
		var home *calibrate.Machine
		var kinds calibrate.Mix
		if mix != "" {
			var err error
			if kinds, err = calibrate.ParseMix(mix); err != nil {
				return usage("--mix: %v", err)
			}
			if against == "" {
				return usage("--mix weighs a comparison: say --against what")
			}
		}
		if against != "" {
			var err error
			if home, err = readMachine(against); err != nil {
				return err
			}
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		p := term.NewProgress("measuring this machine")
		m, err := measureMachine(ctx, dir, long, p.Set)
		p.Done()
		if err != nil {
			return err
		}
		b, err := m.JSON()
		if err != nil {
			return err
		}
		if output != "" {
			if err := os.WriteFile(output, b, 0o600); err != nil {
				return err
			}
		}
		if asJSON {
			_, err = os.Stdout.Write(b)
			return err
		}
		fmt.Print(m.Text(home, kinds))
		return nil
	}
	return c
}

func readMachine(path string) (*calibrate.Machine, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usage("there is no calibration %s", path)
		}
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, calibrate.Max+1))
	if err != nil {
		return nil, err
	}
	m, err := calibrate.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// measureMachine has replayd measure: the kernels are C, and the same file travels to targets.
func measureMachine(ctx context.Context, dir string, long bool, progress func(done, all int64)) (*calibrate.Machine, error) {
	exe, err := run.FindReplayd()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "calibrate", "--dir", dir)
	if long {
		cmd.Args = append(cmd.Args, "--check-loop")
	}
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var m *calibrate.Machine
	var bad error
	for d := json.NewDecoder(out); ; {
		var v struct {
			Done, All int64
			Machine   json.RawMessage
		}
		if bad = d.Decode(&v); bad != nil {
			if errors.Is(bad, io.EOF) {
				bad = nil
			}
			break
		}
		if v.Machine != nil {
			m, bad = calibrate.Parse(v.Machine)
			break
		}
		progress(v.Done, v.All)
	}
	switch err := cmd.Wait(); {
	case ctx.Err() != nil:
		return nil, errors.New("interrupted")
	case err != nil:
		return nil, &status{exitDamaged, nil} // replayd has said why
	case bad != nil:
		return nil, bad
	case m == nil:
		return nil, errors.New("replayd ended without a result")
	}
	return m, nil
}
