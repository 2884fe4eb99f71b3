// Command bench measures what recording costs: every row of the price table, each against its bare run and its limit,
// in one run. Bare and recorded runs alternate, so that whatever else the machine does meets both; medians are printed,
// and beside them the noise: how far two bare runs lie apart (A/A).
//
//	go run ./bench [-n ROUNDS] [--only NAME[,NAME…]] [--json] [--quick] [--build DIR]
//
// Lines that begin with "Benchmark" are benchstat's format. Exit status: 0 all limits held, 1 one did not, 2 usage.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// part is one group of rows that is measured together.
type part struct {
	name string
	what string
	run  func(b *bench) error
}

var parts = []part{
	{"calls", "one intercepted call", (*bench).calls},
	{"stacks", "stacks at events", (*bench).stacks},
	{"programs", "real programs under load", (*bench).programs},
	{"start", "a process and a thread", (*bench).start},
	{"readers", "prophet verify, info and dump", (*bench).readers},
	{"views", "what shows a trace, of 10^8 events", (*bench).views},
	{"replay", "re-executing locks and programs", (*bench).replay},
	{"pause", "pausing and resuming a live run", (*bench).pause},
	{"demand", "the loop that issues CPU demand, and calibrations", (*bench).demand},
	{"compile", "compiling traces for the engine", (*bench).compile},
	{"issue", "issuing a recorded run's demand at home, against the program", (*bench).issue},
	{"bugs", "how often seeded bugs show, plain and under chaos", (*bench).bugs},
	{"peers", "other tracers, for comparison", (*bench).peers},
}

// row is one price.
type row struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Limit float64 `json:"limit,omitempty"` // 0: none, a figure to compare with
	Least bool    `json:"least,omitempty"` // the limit is a lower one
	Bare  float64 `json:"bare,omitempty"`
	Noise float64 `json:"noise,omitempty"` // of the value, in its unit
	Note  string  `json:"note,omitempty"`
}

func (r *row) verdict() string {
	switch {
	case r.Limit == 0:
		return ""
	case r.Least && r.Value >= r.Limit, !r.Least && r.Value <= r.Limit:
		return "PASS"
	}
	return "FAIL"
}

type bench struct {
	rounds int
	quick  bool
	json   bool
	only   []string
	lib    string // libprophet.so
	tool   string // prophet
	src    string // this directory
	work   string // on tmpfs
	home   string // on disk, where tmpfs would not do
	rows   []row
	traces int
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == compileName {
		if err := compileOne(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	b := &bench{}
	only, build := "", ""
	flag.IntVar(&b.rounds, "n", 5, "rounds")
	flag.StringVar(&only, "only", "", "parts or programs to measure, separated by commas (replay/xz: of re-executions that of xz): "+names())
	flag.BoolVar(&b.json, "json", false, "print JSON")
	flag.BoolVar(&b.quick, "quick", false, "a tenth of the work, to see that all runs")
	flag.StringVar(&build, "build", "build", "where libprophet.so and prophet are")
	flag.Parse()
	if flag.NArg() > 0 || b.rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if only != "" {
		b.only = strings.Split(only, ",")
	}
	os.Exit(b.main(build))
}

func names() string {
	var s []string
	for _, p := range parts {
		s = append(s, p.name)
	}
	return strings.Join(s, ", ")
}

func (b *bench) main(build string) int {
	if err := b.setup(build); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	defer b.clean()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		b.clean()
		os.Exit(130)
	}()
	failed := 0
	fmt.Printf("goos: %s\ngoarch: %s\npkg: prophet/bench\ncpu: %s\n", runtime.GOOS, runtime.GOARCH, cpuModel())
	for _, p := range parts {
		if !b.wanted(p.name) {
			continue
		}
		b.say("%s: %s", p.name, p.what)
		if err := p.run(b); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", p.name, err)
			failed++
		}
	}
	for i := range b.rows {
		if b.rows[i].verdict() == "FAIL" {
			failed++
		}
	}
	b.print()
	if failed > 0 {
		return 1
	}
	return 0
}

// wanted reports whether a part is asked for, itself or one of its programs.
func (b *bench) wanted(name string) bool {
	if b.only == nil {
		return true
	}
	for _, o := range b.only {
		if o == name {
			return true
		}
		if name == "replay" && strings.HasPrefix(o, "replay/") {
			return true
		}
		if name == "issue" && slices.ContainsFunc(issuedPrograms, func(p issued) bool { return p.name == o }) {
			return true
		}
		if name == "programs" {
			for _, p := range workloads {
				if o == p.name {
					return true
				}
			}
		}
	}
	return false
}

func (b *bench) setup(build string) error {
	var err error
	if b.lib, err = filepath.Abs(filepath.Join(build, "libprophet.so")); err != nil {
		return err
	}
	b.tool = filepath.Join(filepath.Dir(b.lib), "prophet")
	for _, f := range []string{b.lib, b.tool} {
		if _, err := os.Stat(f); err != nil {
			return fmt.Errorf("%w; run `make` first", err)
		}
	}
	if b.src, err = filepath.Abs("bench"); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(b.src, "progs", "price.c")); err != nil {
		return fmt.Errorf("%w; run from the top of the repository", err)
	}
	if b.work, err = os.MkdirTemp("/dev/shm", "prophet-bench-"); err != nil {
		return err
	}
	if b.home, err = os.MkdirTemp("", "prophet-bench-"); err != nil {
		return err
	}
	return os.Chmod(b.work, 0o755)
}

func (b *bench) clean() {
	os.RemoveAll(b.work)
	os.RemoveAll(b.home)
}

// say tells a person at stderr where we are.
func (b *bench) say(format string, a ...any) { fmt.Fprintf(os.Stderr, "# "+format+"\n", a...) }

// sample prints one measurement in benchstat's format.
func (b *bench) sample(name string, n int, value float64, unit string) {
	if !b.json {
		fmt.Printf("Benchmark%s \t%8d\t%14.4f %s\n", name, n, value, unit)
	}
}

func (b *bench) add(r row) { b.rows = append(b.rows, r) }

func (b *bench) print() {
	if b.json {
		type out struct {
			row
			Verdict string `json:"verdict,omitempty"`
		}
		list := []out{}
		for _, r := range b.rows {
			list = append(list, out{r, r.verdict()})
		}
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		_ = e.Encode(list)
		return
	}
	fmt.Printf("\n%-34s %12s %12s %12s %-9s %10s  %s\n", "price", "bare", "added", "limit", "unit", "A/A noise", "verdict")
	for i := range b.rows {
		r := &b.rows[i]
		limit := ""
		if r.Limit != 0 {
			limit = map[bool]string{true: ">= ", false: "<= "}[r.Least] + number(r.Limit)
		}
		fmt.Printf("%-34s %12s %12s %12s %-9s %10s  %s\n", r.Name, blank(r.Bare), number(r.Value), limit, r.Unit, blank(r.Noise), strings.TrimSpace(r.verdict()+" "+r.Note))
	}
}

func blank(v float64) string {
	if v == 0 {
		return ""
	}
	return number(v)
}

func number(v float64) string {
	switch {
	case v >= 1000 || v <= -1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for _, l := range strings.Split(string(b), "\n") {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}
