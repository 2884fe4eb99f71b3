package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"prophet/runtime/demand"
	"prophet/runtime/predict"
	"prophet/runtime/recovery"
	"prophet/runtime/sense"
	"prophet/runtime/target"
)

// measurer is one run of this program.
type measurer struct {
	work   string // all that is made lies in it
	self   string
	root   string // of the repository
	build  string
	turns  int
	rounds int
	short  bool
	built  map[string]string // programs of ours, by their source
	known  *known            // of the program that was recorded last
}

// known is what is known of a recorded program.
type known struct {
	w     *workload
	trace string
	walk  uint64 // bytes that issues walk, as it minds company
}

// forecast is what is needed of `prophet predict --json`.
type forecast struct {
	Rounds  int          `json:"rounds"`
	Proven  bool         `json:"proven"`
	Share   float64      `json:"unproven_share"`
	Strict  *strictly    `json:"strict"`
	Home    float64      `json:"home_seconds"`
	Unknown uint64       `json:"unknown_ways"`
	Forced  uint64       `json:"forced_waits"`
	Refused string       `json:"refused"`
	Args    []string     `json:"issue_args"`
	Tried   predict.Home `json:"tried_at_home"`
}

// setup builds what is ours, and says what is missing.
func (m *measurer) setup(ctx context.Context, list []*workload) error {
	missing := map[string]bool{}
	need := func(command string) {
		if _, err := exec.LookPath(command); err != nil {
			if p := debian[command]; p != "" {
				command = p
			}
			missing[command] = true
		}
	}
	for _, w := range list {
		for _, c := range w.needs {
			need(c)
		}
		for _, t := range w.targets {
			if t == link {
				need("ip")
				need("tc")
			}
		}
		if w.source != "" {
			need("gcc")
		}
	}
	if len(missing) > 0 {
		var names []string
		for n := range missing {
			names = append(names, n)
		}
		return fmt.Errorf("missing; `tests/setup accuracy` installs them, as does apt-get install %s", strings.Join(names, " "))
	}
	m.built = map[string]string{}
	for _, w := range list {
		if w.source == "" || m.built[w.source] != "" {
			continue
		}
		to := filepath.Join(m.work, strings.TrimSuffix(filepath.Base(w.source), ".c"))
		if err := command(ctx, "gcc", "-O2", "-pthread", "-o", to, filepath.Join(m.root, w.source)); err != nil {
			return err
		}
		m.built[w.source] = to
	}
	return nil
}

// record records a program at home, once.
func (m *measurer) record(ctx context.Context, w *workload) (*known, error) {
	if m.known != nil && m.known.w == w {
		return m.known, nil
	}
	if m.known != nil {
		os.RemoveAll(filepath.Dir(m.known.trace))
		m.known = nil
	}
	dir, err := os.MkdirTemp(m.work, "home-")
	if err != nil {
		return nil, err
	}
	// Once before, so that the program's file is in memory, as it will be.
	if at, err := m.at(ctx, home); err != nil {
		return nil, err
	} else if _, err := m.real(ctx, w, at); err != nil {
		return nil, err
	}
	if err := m.fill(w, dir); err != nil {
		return nil, err
	}
	k := &known{w: w, trace: filepath.Join(dir, "run.prophet")}
	if err := m.prophet(ctx, dir, append([]string{"record", "-o", k.trace, "--"}, w.argv...)...); err != nil {
		return nil, fmt.Errorf("recording %s: %w", w.name, err)
	}
	if w.minds {
		if err := m.prophet(ctx, dir, "sense", k.trace); err != nil {
			fmt.Fprintf(os.Stderr, "accuracy: what %s minds is not known, and issues walk no memory: %v\n", w.name, err)
		}
		s, err := sense.Load(k.trace)
		if err != nil {
			return nil, err
		}
		if s != nil && s.Walk != nil {
			k.walk = s.Walk.Bytes
		}
	}
	m.known = k
	return k, nil
}

// prophet is a command of ours, whose output nobody wants.
func (m *measurer) prophet(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(m.build, "prophet"), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PROPHET_REPLAYD="+filepath.Join(m.build, "replayd"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// ask predicts, as anybody would, and keeps what was issued in the end.
// strictMost is how many strict rounds are made at most: they would take hours, and how far they come tells how many there would be.
const strictMost = "20"

func (m *measurer) ask(ctx context.Context, k *known, at *place, program string, strict bool) (*forecast, error) {
	runs := "3"
	if m.short {
		runs = "1"
	}
	// What has to be given in any case is said beside it that it would be refused.
	cmd := exec.CommandContext(ctx, filepath.Join(m.build, "prophet"), "predict", k.trace, "--target", at.spec.Text, "--json", "--force", "-n", "2", "--what-if", "0", "--home-runs", runs, "--rounds", strconv.Itoa(m.rounds), "--keep", program)
	if strict {
		cmd.Args = append(cmd.Args, "--strict="+strictMost)
	}
	cmd.Env = append(os.Environ(), "PROPHET_REPLAYD="+filepath.Join(m.build, "replayd"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	f := &forecast{}
	if bad := json.Unmarshal(out, f); bad != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(strings.TrimSpace(said.String()), "prophet: "))
	}
	if err != nil && f.Refused == "" {
		return nil, fmt.Errorf("prophet predict: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return f, nil
}

// issuer issues compiled traces on a target.
type issuer struct {
	*target.Target
	args []string
}

func (i *issuer) put(ctx context.Context, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return i.Put(ctx, name, f)
}

func (i *issuer) issue(ctx context.Context, name string) (float64, error) {
	var r struct {
		Wall int64 `json:"wall_ns"`
	}
	res, err := i.Issue(ctx, target.Request{Args: append([]string{"--program", name, "--json", "--dir", "."}, i.args...)}, func(line string) {
		json.Unmarshal([]byte(line), &r)
	})
	if err != nil {
		return 0, err
	}
	if res.Status != 0 || r.Wall <= 0 {
		return 0, errors.New(strings.TrimSpace(res.Stderr))
	}
	return float64(r.Wall) / 1e9, nil
}

// compile compiles a trace for one of the ways that predictions are compared with.
func compile(trace, program string, way demand.Path) error {
	t, _, _, err := recovery.Open(trace, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	_, err = demand.Compile(t, demand.Options{Record: demand.RecordCost, Path: way}, program)
	return err
}

// beside is how many of the turns have the ways in them that predictions are compared with; of runs longer than
// besideMost seconds two.
const (
	beside     = 5
	besideMost = 1.5
)

// turnsMost is how many times the turns that were wanted are made of pairs whose medians are not sure by then, in turnsTime at
// most. (One core of a machine that others share: xz takes 0.36 to 0.73 s there, some ten runs of one length after one another.)
const (
	turnsMost = 4
	turnsTime = time.Minute
)

// pair predicts a program for a target, and then runs the program there and issues its demand in turn. What cannot be done there
// is the pair's error; an error of ours ends all.
func (m *measurer) pair(ctx context.Context, w *workload, name string) (*pair, error) {
	p := &pair{Program: w.name, Target: name, When: time.Now().UTC().Truncate(time.Second)}
	at, err := m.at(ctx, name)
	if err != nil {
		p.Error = err.Error()
		return p, ctx.Err()
	}
	defer at.down()
	k, err := m.record(ctx, w)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(filepath.Dir(k.trace), "compiled")
	f, err := m.ask(ctx, k, at, program, w.strict && name == cpus1 && !m.short)
	if err != nil {
		p.Error = err.Error()
		return p, ctx.Err()
	}
	p.Home, p.Refused, p.Tried = f.Home, f.Refused, f.Tried
	p.Strict, p.Walk = f.Strict, k.walk
	p.Rounds, p.Proven, p.Share, p.Unknown, p.Forced = f.Rounds, f.Proven, 1-f.Share, f.Unknown, f.Forced
	os.Setenv("PROPHET_REPLAYD", filepath.Join(m.build, "replayd"))
	on, err := target.Open(ctx, at.spec)
	if err != nil {
		p.Error = err.Error()
		return p, ctx.Err()
	}
	i := &issuer{on, f.Args}
	defer i.Close()
	programs := map[string]string{"program": program}
	if w.threads {
		for way, of := range map[string]demand.Path{"order": demand.PathHome, "think": demand.PathThink} {
			programs[way] = program + "." + way
			if err := compile(k.trace, programs[way], of); err != nil {
				return nil, err
			}
		}
	}
	for name, path := range programs {
		if err := i.put(ctx, name, path); err != nil {
			return nil, err
		}
	}
	turns := m.turns
	if w.tail > 0 && name == home && !m.short {
		turns, p.Tail = max(turns, w.tail), true
	}
	begin := time.Now()
	for n := 0; n < turns || n < turnsMost*turns && !m.short && time.Since(begin) < turnsTime && !p.sure(); n++ {
		more := w.threads && (n < 2 || n < beside && p.real() < besideMost)
		if err := m.turn(ctx, p, w, at, i, more); err != nil {
			p.Error = err.Error()
			return p, ctx.Err()
		}
	}
	return p, nil
}

// turn is the real program, an issue, and the real program again; what they are compared with comes last.
func (m *measurer) turn(ctx context.Context, p *pair, w *workload, at *place, i *issuer, more bool) error {
	one := func(list *[]float64, get func() (float64, error)) error {
		s, err := get()
		if err == nil {
			*list = append(*list, s)
		}
		return err
	}
	real := func() (float64, error) { return m.real(ctx, w, at) }
	steps := []func() error{
		func() error { return one(&p.Real, real) },
		func() error { return one(&p.Issued, func() (float64, error) { return i.issue(ctx, "program") }) },
		func() error { return one(&p.Again, real) },
	}
	if more {
		steps = append(steps,
			func() error { return one(&p.Order, func() (float64, error) { return i.issue(ctx, "order") }) },
			func() error { return one(&p.Think, func() (float64, error) { return i.issue(ctx, "think") }) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
