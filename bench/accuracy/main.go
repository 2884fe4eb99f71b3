// Command accuracy measures how good predictions are: each program of its plan is recorded at home, predicted for each of its
// targets, and run there, too, in turn with issues of its demand. Targets of other speed are made on this machine.
//
//	go run ./bench/accuracy [--short] [--only PROGRAM[@TARGET],…] [--turns N] [--rounds N] [--out DIR] [--build DIR]
//
// What was measured is kept as it comes, in DIR/accuracy.json, with a table (accuracy.md) and a plot (accuracy.svg): a run that was
// interrupted goes on where it was, and --only measures some pairs again. Exit status: 0 measured, 1 something could not be, 2 usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == realName {
		os.Exit(realMain(os.Args[2:]))
	}
	m := &measurer{}
	only, out := "", ""
	list := false
	flag.BoolVar(&m.short, "short", false, "a few programs and turns, to see that all works")
	flag.StringVar(&only, "only", "", "`pairs` to measure (again), separated by commas: PROGRAM@TARGET, PROGRAM or @TARGET")
	flag.IntVar(&m.turns, "turns", 10, "how often a program, an issue and the program again are run in turn")
	flag.IntVar(&m.rounds, "rounds", 3, "in how many rounds at most a path is to be proven, as prophet predict has it; 0: the recorded one is issued")
	flag.StringVar(&out, "out", "bench", "where results are kept")
	flag.StringVar(&m.build, "build", "build", "where prophet and replayd are")
	flag.BoolVar(&list, "list", false, "say what would be measured")
	flag.Parse()
	if flag.NArg() > 0 || m.turns < 1 || m.rounds < 0 {
		flag.Usage()
		os.Exit(2)
	}
	if m.short {
		m.turns = min(m.turns, 2)
	}
	todo := chosen(only, m.short)
	if len(todo) == 0 {
		fmt.Fprintf(os.Stderr, "accuracy: no pair is called %q; --list says which there are\n", only)
		os.Exit(2)
	}
	if list {
		for _, c := range todo {
			fmt.Println(key(c.w.name, c.target))
		}
		return
	}
	os.Setenv("LC_ALL", "C") // how long sort takes hangs on it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := m.main(ctx, todo, out, only != ""); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

type choice struct {
	w      *workload
	target string
}

// chosen are the pairs to be measured.
func chosen(only string, short bool) []choice {
	var list []choice
	for _, w := range plan {
		for _, t := range w.targets {
			want := !short || w.short && shortTargets[t]
			if only != "" {
				want = slices.ContainsFunc(strings.Split(only, ","), func(o string) bool { return o == key(w.name, t) || o == w.name || o == "@"+t })
			}
			if want {
				list = append(list, choice{w, t})
			}
		}
	}
	return list
}

func (m *measurer) main(ctx context.Context, todo []choice, out string, again bool) error {
	var err error
	if m.root, err = filepath.Abs("."); err != nil {
		return err
	}
	if m.build, err = filepath.Abs(m.build); err != nil {
		return err
	}
	for _, f := range []string{filepath.Join(m.build, "prophet"), filepath.Join(m.build, "replayd"), filepath.Join(m.root, "bench", "accuracy")} {
		if _, err := os.Stat(f); err != nil {
			return fmt.Errorf("%w; run `make` first, at the top of the repository", err)
		}
	}
	if m.self, err = os.Executable(); err != nil {
		return err
	}
	if m.work, err = os.MkdirTemp("", "prophet-accuracy-"); err != nil {
		return err
	}
	defer os.RemoveAll(m.work)
	kept, err := load(filepath.Join(out, "accuracy.json"))
	if err != nil {
		return err
	}
	if kept.Run == "" || kept.Whole && !again {
		kept.Run, kept.Whole = time.Now().UTC().Format(time.RFC3339), false
	}
	if !again {
		todo = slices.DeleteFunc(todo, func(c choice) bool {
			p := kept.find(key(c.w.name, c.target))
			return p != nil && p.Run == kept.Run
		})
	}
	var programs []*workload
	for _, c := range todo {
		if !slices.Contains(programs, c.w) {
			programs = append(programs, c.w)
		}
	}
	if err := m.setup(ctx, programs); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	begin := time.Now()
	for n, c := range todo {
		fmt.Fprintf(os.Stderr, "[%d/%d] %-24s ", n+1, len(todo), key(c.w.name, c.target))
		p, err := m.pair(ctx, c.w, c.target)
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr)
			return errors.New("interrupted; what was measured is kept, and the next run goes on from there")
		}
		if err != nil {
			return err
		}
		p.Run = kept.Run
		kept.put(p)
		kept.Whole = !again && n == len(todo)-1 || kept.Whole
		if err := kept.save(out); err != nil {
			return err
		}
		left := time.Duration(float64(time.Since(begin)) / float64(n+1) * float64(len(todo)-n-1))
		fmt.Fprintf(os.Stderr, "%s; %v left\n", p.words(), left.Round(time.Second))
	}
	fmt.Print(string(kept.bars()))
	for _, c := range todo {
		if p := kept.find(key(c.w.name, c.target)); !p.measured() {
			return fmt.Errorf("%s could not be measured: %s", p.name(), p.Error)
		}
	}
	return nil
}
