package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"prophet/runtime/breakdown"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/predict"
	"prophet/runtime/report"
	"prophet/runtime/run"
	"prophet/runtime/target"
	"prophet/runtime/term"
)

// Where the time of a prediction goes: at home from the recorded run, on the target from the log of an issue; and what would
// change it, from issues of what was changed.

const (
	logTries     = 3                // issues with a log, of which that counts which took most nearly what is predicted
	stretchesMax = 20               // of a critical path that are told
	whatIfMost   = 5                // changes that are issued
	whatIfLeast  = 20 * time.Second // that issuing them may take, or as long as the prediction's issues took
	whatIfBytes  = 1 << 30          // of programs
)

// split is what is known of the recorded run.
type split struct {
	program *breakdown.Program
	home    *breakdown.Split
}

// homeFile is where the compiler says when the recorded run was where.
func (p *predictor) homeFile() string { return filepath.Join(p.work, "home") }

// mapFile is where it says which events of the trace each operation stands for.
func (p *predictor) mapFile() string { return filepath.Join(p.work, "map") }

// compile makes the program of a trace, and what is needed to say where the recorded run's time went.
func (p *predictor) compile() (err error) {
	f, err := os.OpenFile(p.homeFile(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	p.info, err = demand.Compile(p.trace, demand.Options{Record: demand.RecordCost, Home: f, Map: p.mapFile()}, p.program)
	p.split = nil
	return errors.Join(err, f.Close())
}

// splitHome works out where the recorded run's time went, once.
func (p *predictor) splitHome() (*split, error) {
	if p.split != nil {
		return p.split, nil
	}
	f, err := os.Open(p.program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var s split
	if s.program, err = breakdown.Load(f, st.Size()); err != nil {
		return nil, err
	}
	at, err := os.Open(p.homeFile())
	if err != nil {
		return nil, err
	}
	defer at.Close()
	if s.home, err = s.program.Home(at); err != nil {
		return nil, err
	}
	p.split = &s
	return p.split, nil
}

// explain says where the time on a target goes, beside home's, and what would change it. What cannot be worked out is said in the
// notes; the prediction stands without it. seconds are what its issues took.
func (p *predictor) explain(ctx context.Context, at *issuer, f *forecast, seconds []float64) error {
	err := p.breakDown(ctx, at, f, seconds)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	what := "where the time goes is not known: "
	if len(f.Breakdown) > 0 {
		what = "what would change it is not known: "
	}
	f.Notes = append(f.Notes, what+err.Error())
	return nil
}

func (p *predictor) breakDown(ctx context.Context, at *issuer, f *forecast, seconds []float64) error {
	// What is taken of memory for it is nearly all in use: little is to be had by waiting for twice as much.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	s, err := p.splitHome()
	if err != nil {
		return err
	}
	bar := term.NewProgress("where the time goes on " + at.Spec().Text).Keep()
	defer bar.Done()
	log := filepath.Join(p.work, "log")
	took, err := p.logged(ctx, at, predict.Median(seconds), log)
	if err != nil {
		return err
	}
	l, err := issued.Open(log)
	if err != nil {
		return err
	}
	defer l.Close()
	there, err := s.program.Issue(l, at.factor)
	if err != nil {
		return err
	}
	f.Recorded, f.Issued = float64(s.home.NS)/1e9, took
	f.Breakdown = parts(breakdown.Compare(s.home.Threads, there.Threads, p.info.Names))
	f.Path = parts(breakdown.Compare(s.home.On, there.On, p.info.Names))
	f.Critical, f.HomeCritical = p.stretches(there), p.stretches(s.home)
	if there.Cut > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("the log of the issue was full: %s of it are missing, and the time after them counts as computing", plural(int(there.Cut), "operation")))
	}
	if there.Partial || s.home.Partial {
		f.Notes = append(f.Notes, "a critical path does not lead to the beginning of the run: who made one of its threads was not seen")
	}
	changes := s.program.Changes(there, func(n uint32) string { return breakdown.Object(p.trace, p.info, n) })
	return p.whatIf(ctx, at, f, seconds, changes, bar)
}

// logged issues with a log, and keeps the one that took most nearly what all took.
func (p *predictor) logged(ctx context.Context, at *issuer, usual float64, path string) (float64, error) {
	best := math.Inf(1)
	for range logTries {
		r, err := at.logged(ctx, "program", path+".new")
		if err != nil {
			return 0, err
		}
		if math.Abs(r.Seconds-usual) >= math.Abs(best-usual) {
			continue
		}
		best = r.Seconds
		if err := os.Rename(path+".new", path); err != nil {
			return 0, err
		}
		if math.Abs(best/usual-1) < 0.02 {
			break
		}
	}
	return best, nil
}

// parts are times as they are printed.
func parts(list []breakdown.Part) []report.Part {
	var out []report.Part
	for _, x := range list {
		out = append(out, report.Part{Thread: x.Thread, Class: x.Class.String(), Home: float64(x.Home) / 1e9, Target: float64(x.Target) / 1e9})
	}
	return out
}

// stretches are those of a critical path that take longest, in words.
func (p *predictor) stretches(s *breakdown.Split) []report.Critical {
	list := s.Stretch[:min(len(s.Stretch), stretchesMax)]
	var out []report.Critical
	for i, x := range breakdown.Places(p.trace, p.info, list) {
		c := report.Critical{Thread: p.info.Names[list[i].Thread], Class: list[i].Class.String(), Call: x.Call, Object: x.Object, At: x.At,
			Seconds: float64(list[i].NS) / 1e9, Longest: float64(list[i].Longest) / 1e9, Times: list[i].Times}
		out = append(out, c)
	}
	return out
}

// whatIf says how long it would take were resources others. As many of the changes as there is time for are issued, in turn with
// what is not changed: how they differ is measured, with its noise. Of the others the critical path's share is told, which
// is the most that can be won: another path may be nearly as long.
func (p *predictor) whatIf(ctx context.Context, at *issuer, f *forecast, seconds []float64, changes []breakdown.Change, bar *term.Progress) error {
	measured, close, err := p.variants(ctx, at, f, seconds, changes)
	defer close()
	if err != nil {
		return err
	}
	diffs := make([][]float64, len(measured))
	for n := 0; n < p.whatIfs && len(measured) > 0; n++ {
		base, err := at.issue(ctx, "program")
		if err != nil {
			return err
		}
		for i := 0; i < len(measured); i++ {
			v := measured[i]
			r, err := v.at.issue(ctx, v.program)
			if errors.Is(err, target.ErrLost) || ctx.Err() != nil {
				return err
			}
			if err != nil {
				// What is left of the program may not come to its end.
				f.Notes = append(f.Notes, fmt.Sprintf("%s %s is not tried: %v", v.change.Resource, v.change.How, err))
				measured, diffs = slices.Delete(measured, i, i+1), slices.Delete(diffs, i, i+1)
				i--
				continue
			}
			diffs[i] = append(diffs[i], r.Seconds-base.Seconds)
		}
		bar.Set(int64(n+1), int64(p.whatIfs))
	}
	for i, v := range measured {
		f.Sensitivity = append(f.Sensitivity, report.Sensitivity{Resource: v.change.Resource, How: v.change.How, Seconds: predict.Median(diffs[i]),
			Low: predict.Quantile(diffs[i], 0.05), High: predict.Quantile(diffs[i], 0.95), Issues: len(diffs[i])})
	}
	for _, c := range changes {
		if !c.Known || slices.ContainsFunc(measured, func(v variant) bool { return v.change.Resource == c.Resource }) {
			continue
		}
		most := -float64(c.NS) / 1e9
		f.Sensitivity = append(f.Sensitivity, report.Sensitivity{Resource: c.Resource, How: c.How, Seconds: most, Low: most})
	}
	slices.SortStableFunc(f.Sensitivity, func(a, b report.Sensitivity) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return nil
}

// variant is a change that is issued.
type variant struct {
	change  breakdown.Change
	at      *issuer
	program string
}

// variants are the changes that there is time for, and can be issued.
func (p *predictor) variants(ctx context.Context, at *issuer, f *forecast, seconds []float64, changes []breakdown.Change) (list []variant, close func(), err error) {
	var more *issuer
	close = func() {
		if more != nil {
			more.Close()
		}
	}
	if p.whatIfs == 0 {
		return nil, close, nil
	}
	st, err := os.Stat(p.program)
	if err != nil {
		return nil, close, err
	}
	spent := 0.0
	for _, s := range seconds {
		spent += s
	}
	times := max(spent, whatIfLeast.Seconds()) / (predict.Median(seconds) * float64(p.whatIfs))
	most := min(whatIfMost, int(times)-1, whatIfBytes/int(max(st.Size(), 1)))
	for _, c := range changes {
		if len(list) >= most {
			break
		}
		v := variant{c, at, "program"}
		switch {
		case c.Cores:
			s := at.Spec()
			if s.CPUs == 0 || s.CPUs >= run.CPUs() {
				continue // it has them all
			}
			v.change.How = fmt.Sprintf("one more, %d", s.CPUs+1)
			s.CPUs++
			was, err := p.demandOn(ctx, s.CPUs-1)
			if err != nil {
				return nil, close, err
			}
			now, err := p.demandOn(ctx, s.CPUs)
			if err != nil {
				return nil, close, err
			}
			more = &issuer{p: p, factor: at.factor * now / was, loop: at.loop}
			if err := more.open(ctx, s); err != nil {
				more = nil
				return nil, close, err
			}
			v.at = more
		case c.CPU != 1:
			v.at = &issuer{Target: at.Target, p: p, factor: at.factor * c.CPU, loop: at.loop, files: at.files}
		default:
			v.program = fmt.Sprintf("program-%d", len(list))
			path := filepath.Join(p.work, v.program)
			if err := demand.Vary(p.program, path, c.Ops); err != nil {
				return nil, close, err
			}
			if err := at.steady(ctx, func() error { return at.put(ctx, v.program, path) }); err != nil {
				return nil, close, err
			}
		}
		list = append(list, v)
	}
	return list, close, nil
}
