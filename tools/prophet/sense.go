package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"prophet/runtime/replay"
	"prophet/runtime/run"
	"prophet/runtime/sense"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

func senseCmd() *cobra.Command {
	var output string
	var asJSON bool
	var pairs int
	c := &cobra.Command{
		Use:   "sense TRACE [-- program args]",
		Short: "Learn how much more CPU time a program needs when it shares a core or a cache",
		Long: `Re-executes a recorded run several times in turn: undisturbed, on one core, and beside a neighbour that takes the cache
and the memory's bandwidth. CPU demand is not a constant of a program: compressors with large tables need up to half as much
again on one core, others nothing. From the program's CPU times it learns one factor, and looks for the walk of memory with
which the loop that issues CPU demand minds company as much; predictions read it from the trace's directory.

A re-execution keeps the recorded order of locks, so CPU times are compared, not finishing times. About 20 ms of each are
the surroundings' own: programs of less than half a second of CPU time seem to mind less than they do. Other load on the
machine blurs the result; what is smaller than the noise counts as nothing.`,
		Example: "  prophet sense xz.prophet",
		Args: func(cmd *cobra.Command, a []string) error {
			if n := cmd.ArgsLenAtDash(); len(a) < 1 || n > 1 || n < 0 && len(a) != 1 {
				return usage("%s wants a trace, and behind -- the program where the trace's is not to be taken (see `%s --help`)", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the JSON to this `file`; default: "+sense.FileName+" in the trace's directory")
	c.Flags().IntVarP(&pairs, "pairs", "n", 5, "how often each is re-executed")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(_ *cobra.Command, a []string) error {
		if pairs < 1 || pairs > 1000 {
			return usage("--pairs wants 1 to 1000")
		}
		t, live, err := open(a[0])
		if err != nil {
			return err
		}
		threads := len(t.Threads)
		t.Close()
		if live {
			return usage("%s is being recorded; its run has to end first", a[0])
		}
		if output == "" {
			if t.Packed {
				return usage("%s is packed: say with -o where the result goes", a[0])
			}
			output = filepath.Join(a[0], sense.FileName)
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		p := term.NewProgress("re-executing " + a[0]).Keep()
		s, err := senseTrace(ctx, a[0], a[1:], threads, pairs, p.Say)
		p.Done()
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return err
		}
		b, err := s.JSON()
		if err != nil {
			return err
		}
		if err := os.WriteFile(output, b, 0o600); err != nil {
			return err
		}
		if asJSON {
			_, err = os.Stdout.Write(b)
			return err
		}
		saySense(s)
		return nil
	}
	return c
}

func saySense(s *sense.Sense) {
	fmt.Printf("alone      %.3f s of CPU time\n", s.Alone)
	for _, g := range []struct {
		name string
		*sense.Growth
	}{{"one core", s.OneCore}, {"neighbour", s.Neighbour}} {
		if g.Growth != nil {
			fmt.Printf("%-10s %.3f times that; a median of %.3f in %s, %.3f to %.3f\n", g.name, g.Growth.Growth, g.Median, plural(g.Pairs, "pair"), g.Low, g.High)
		}
	}
	switch w := s.Walk; {
	case w != nil:
		fmt.Printf("loop       walks %s: %.3f times\n", bytesText(int64(w.Bytes)), w.Growth)
	case s.OneCore.Matters() || s.Neighbour.Matters():
		fmt.Println("loop       walks no memory: no walk was found that minds as much. Is something else running?")
	default:
		fmt.Println("loop       walks no memory: the program minds less than can be measured")
	}
}

// senseTrace re-executes and fits.
func senseTrace(ctx context.Context, path string, argv []string, threads, pairs int, progress func(how func() string)) (*sense.Sense, error) {
	exe, err := run.FindReplayd()
	if err != nil {
		return nil, err
	}
	s := &sense.Sense{Version: sense.Version, When: time.Now().UTC().Format(time.RFC3339), CPUs: run.CPUs()}
	kinds := []string{"alone", sense.Neighbour}
	if s.CPUs > 1 && threads > 1 {
		kinds = append(kinds, sense.OneCore)
	}
	how := map[string]string{"alone": "undisturbed", sense.Neighbour: "beside a neighbour", sense.OneCore: "on one core"}
	used := map[string][]float64{}
	done, all := 0, pairs*len(kinds)
	for i := range pairs {
		for k := range kinds { // the first of a round is another one each time
			kind := kinds[(i+k)%len(kinds)]
			done++
			progress(func() string { return fmt.Sprintf("%d of %d, %s", done, all, how[kind]) })
			ns, err := reexecuted(ctx, exe, path, argv, kind)
			if err != nil {
				return nil, err
			}
			used[kind] = append(used[kind], ns)
		}
	}
	s.Neighbour, s.OneCore = sense.NewGrowth(used[sense.Neighbour], used["alone"]), sense.NewGrowth(used[sense.OneCore], used["alone"])
	s.Alone = slices.Min(used["alone"]) / 1e9
	// Threads that share a core are what predictions meet. The neighbour stands for it where that cannot be tried, and where nothing was
	// to be seen of it: what one core's threads take from one another may be there the next minute, when others take from both.
	company, g := sense.OneCore, s.OneCore
	if !g.Matters() {
		company, g = sense.Neighbour, s.Neighbour
	}
	if g.Matters() {
		progress(func() string { return "all done; fitting the loop" })
		out, err := exec.CommandContext(ctx, exe, "walk", "--company", company, "--growth", strconv.FormatFloat(g.Growth, 'g', -1, 64)).Output()
		if err != nil {
			return nil, fmt.Errorf("fitting the loop: %w", err)
		}
		if err := json.Unmarshal(out, &s.Walk); err != nil { // null: none
			return nil, fmt.Errorf("fitting the loop: %w", err)
		}
	}
	return s, nil
}

// reexecuted is the CPU time that one re-execution takes.
func reexecuted(ctx context.Context, exe, path string, argv []string, kind string) (float64, error) {
	cpus := run.CPUs()
	switch kind {
	case sense.OneCore:
		cpus = 1
	case sense.Neighbour:
		beside := exec.Command(exe, "neighbour")
		beside.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := run.OnCPUs(-1, beside.Start); err != nil {
			return 0, err
		}
		defer beside.Wait()
		defer beside.Process.Kill()
	}
	cmd := exec.CommandContext(ctx, exe, append([]string{"--json", "--trace", path, "--"}, argv...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := run.OnCPUs(cpus, cmd.Start); err != nil {
		return 0, err
	}
	failed := cmd.Wait() // as the program ended, maybe
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	text := bytes.TrimSpace(errs.Bytes())
	var r replay.Result
	if i := bytes.LastIndexByte(text, '\n'); json.Unmarshal(text[i+1:], &r) != nil {
		return 0, fmt.Errorf("re-executing %s: %w: %.500s", path, failed, text)
	}
	if r.Difference != nil {
		return 0, fmt.Errorf("re-executing %s: %s; `replayd --trace %s` says more", path, trace.Clean(r.Difference.Headline), path)
	}
	if !r.Identical || r.CPUNS <= 0 {
		return 0, fmt.Errorf("re-executing %s: %s", path, trace.Clean(r.Error))
	}
	return float64(r.CPUNS), nil
}
