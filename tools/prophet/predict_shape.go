package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"prophet/cabi"
	"prophet/runtime/run"
	"prophet/runtime/target"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

// Programs ask how many CPUs there are, and start as many threads. Where a target has another number than the recorded run was told of,
// the program is recorded anew at home, in the surroundings of the recorded run, and is told the target's: what it does
// then is the path that is issued there. A program that does not ask does the same anywhere.

// shapeRuns is how many recordings there are of which one counts: that with the median of the CPU times.
const shapeRuns = 3

// as is the predictor for a target with so many CPUs.
func (p *predictor) as(ctx context.Context, there trace.CPUs) (*predictor, error) {
	if q := p.shapes[there]; q != nil {
		return q, nil
	}
	was, err := p.toldOf(ctx)
	if err != nil || was == there {
		return p, err
	}
	asks, err := asksForCPUs(p.trace)
	differs := false
	for i := range asks {
		differs = differs || asks[i] && was[i] != there[i]
	}
	if err != nil || !differs {
		return p, err
	}
	if err := p.trace.Meta.Whole(); err != nil {
		return nil, fmt.Errorf("its program asks how many CPUs there are, and has to be asked anew for a target with other ones: %w", err)
	}
	q := *p
	q.told, q.split, q.targets = &there, nil, 0
	q.work = filepath.Join(p.work, fmt.Sprint("cpus-", len(p.shapes)))
	if err := os.Mkdir(q.work, 0o700); err != nil {
		return nil, err
	}
	if q.program = p.keep; q.program == "" {
		q.program = filepath.Join(q.work, "program")
	}
	if err := q.recordAs(ctx); err != nil {
		return nil, fmt.Errorf("recording the program for a target with %d CPUs: %w", there[0], err)
	}
	if p.shapes == nil {
		p.shapes = map[trace.CPUs]*predictor{}
	}
	p.shapes[there] = &q
	return &q, q.compile()
}

// toldOf is what CPUs the recorded run was told of: home's, unless its recorder said others.
func (p *predictor) toldOf(ctx context.Context) (trace.CPUs, error) {
	m := p.trace.Meta
	if m.Options.Told != nil {
		return *m.Options.Told, nil
	}
	if p.here == nil {
		t, err := target.Open(ctx, target.Spec{Text: "local"})
		if err != nil {
			return trace.CPUs{}, err
		}
		info, err := t.Hello(ctx, false, nil)
		t.Close()
		if err != nil {
			return trace.CPUs{}, err
		}
		p.here = &trace.CPUs{info.CPUs, info.Online, info.Configured}
	}
	is := *p.here
	if m.Machine.CPUs > 0 {
		is[0] = m.Machine.CPUs
	}
	return is, nil
}

// closeShapes gives back what predictors for other machines have open.
func (p *predictor) closeShapes() {
	for _, q := range p.shapes {
		q.trace.Close()
	}
}

// What the calls ask for by which programs learn how many CPUs there are, as trace.CPUs has it; of sysconf its names say it.
var (
	cpuCalls = map[string]int{"sched_getaffinity": 0, "pthread_getaffinity_np": 0, "get_nprocs": 1, "get_nprocs_conf": 2}
	cpuConfs = map[int64]int{84: 1, 83: 2} // _SC_NPROCESSORS_ONLN, _SC_NPROCESSORS_CONF
)

// asksForCPUs tells whether the recorded run asked how many CPUs it may use, are online, are there.
func asksForCPUs(t *trace.Trace) (asks [3]bool, err error) {
	_, err = t.WalkOnly(cabi.SetOf(cabi.Shape), 1, func(*trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			if r.Tag != trace.TagEvent || r.Row == nil {
				return nil
			}
			which, ok := cpuCalls[r.Row.Name]
			if strings.HasSuffix(r.Row.Name, "sysconf") {
				which, ok = cpuConfs[r.F[0]]
			}
			if ok {
				asks[which] = true
			}
			return nil
		}
	})
	return asks, err
}

// recordAs records the program where all is as before the recorded run, and tells it how many CPUs there are.
func (p *predictor) recordAs(ctx context.Context) error {
	runs := min(max(p.homeRuns, 1), shapeRuns)
	bar := term.NewProgress(fmt.Sprintf("recording with %d CPUs", p.told[0])).Keep()
	defer bar.Done()
	made := map[uint64]string{} // by CPU time
	for i := range runs {
		out := filepath.Join(p.work, fmt.Sprintf("%d.prophet", i))
		cpu, err := p.record1(ctx, out)
		if err != nil {
			return err
		}
		made[cpu] = out
		bar.Set(int64(i+1), int64(runs))
	}
	times := slices.Sorted(maps.Keys(made))
	path := made[times[len(times)/2]]
	for _, other := range made {
		if other != path {
			os.RemoveAll(other)
		}
	}
	t, live, err := open(path)
	if err != nil {
		return err
	}
	if live {
		t.Close()
		return errors.New("the program left processes that have not ended")
	}
	p.path, p.trace = path, t
	return nil
}

// record1 records the program once, and says how much CPU time it took.
func (p *predictor) record1(ctx context.Context, out string) (uint64, error) {
	replayd, err := run.FindReplayd()
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if len(p.trace.Procs) == 0 || len(p.trace.Procs[0].Args) == 0 || p.trace.Procs[0].Exe == "" {
		return 0, errors.New("the trace does not say what was run")
	}
	first, o := p.trace.Procs[0], p.trace.Meta.Options
	argv := slices.Clone(first.Args)
	if found, err := exec.LookPath(argv[0]); err == nil {
		found, err = filepath.EvalSymlinks(found)
		if err != nil || found != first.Exe {
			argv[0] = first.Exe
		}
	} else {
		argv[0] = first.Exe
	}
	abs, err := filepath.Abs(p.path)
	if err != nil {
		return 0, err
	}
	args := []string{"inside", "--share", p.work, abs, "--", self, "record", "--quiet", "--cpus", p.told.String(), "--stacks", "0", "-o", out}
	if o.Inputs != "" {
		args = append(args, "--inputs", o.Inputs)
	}
	cmd := exec.CommandContext(ctx, replayd, append(append(args, "--"), argv...)...)
	cmd.Dir = first.Cwd
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var said strings.Builder
	cmd.Stderr = &said
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	t, _, openErr := open(out)
	if openErr != nil {
		return 0, fmt.Errorf("%w: %s", openErr, trace.Clean(strings.TrimSpace(said.String())))
	}
	defer t.Close()
	was, is := p.trace.Meta.Ended, t.Meta.Ended
	if was == nil || is == nil || was.How != is.How || was.Status != is.Status {
		return 0, fmt.Errorf("it did not end as it did when it was recorded: what it needs is not there as it was: %s", trace.Clean(strings.TrimSpace(said.String())))
	}
	if t.Meta.Cover == nil {
		return 0, nil
	}
	return uint64(t.Meta.Cover.CPUNS), nil
}
