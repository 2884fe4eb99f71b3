package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"prophet/runtime/predict"
)

// results is what is kept: every pair as it was measured last.
type results struct {
	Machine string  `json:"machine"` // its shape, not its name
	Run     string  `json:"run"`     // when the run began that is under way, or was the last
	Whole   bool    `json:"whole"`   // it came to its end
	Pairs   []*pair `json:"pairs"`
}

// strictly is what predict says of strict rounds.
type strictly struct {
	Rounds   int     `json:"rounds"`
	Proven   bool    `json:"proven"`
	Unproven float64 `json:"unproven_share"`
}

// pair is a program on a target. Times are seconds; the lists have what was measured in turn, so the nth of each were neighbours.
type pair struct {
	Program string       `json:"program"`
	Target  string       `json:"target"`
	Run     string       `json:"run"`
	When    time.Time    `json:"when"`
	Home    float64      `json:"home"`           // the program at home, in the recorded run
	Real    []float64    `json:"real,omitempty"` // the program there: before each issue,
	Again   []float64    `json:"again,omitempty"`
	Issued  []float64    `json:"issued,omitempty"`
	Order   []float64    `json:"order,omitempty"` // the strawman: home's path in home's order
	Think   []float64    `json:"think,omitempty"` // home's times between calls, and no locks
	Tried   predict.Home `json:"tried"`           // what predict itself tried at home
	Rounds  int          `json:"rounds"`
	Proven  bool         `json:"proven"`
	Share   float64      `json:"proven_share"`
	Strict  *strictly    `json:"strict,omitempty"`     // the thesis's way, beside ours
	Walk    uint64       `json:"walk_bytes,omitempty"` // of memory that issues walked, as sense had found
	Unknown uint64       `json:"unknown_ways"`
	Forced  uint64       `json:"forced_waits"`
	Refused string       `json:"refused,omitempty"`
	Error   string       `json:"error,omitempty"` // why it could not be measured
	Tail    bool         `json:"tail,omitempty"`  // measured often enough for quantiles
}

func (p *pair) name() string { return p.Program + "@" + p.Target }

func (p *pair) real() float64      { return predict.Median(slices.Concat(p.Real, p.Again)) }
func (p *pair) predicted() float64 { return predict.Median(p.Issued) }

// off is by how much a prediction is from the real median, as a share of it.
func (p *pair) off(predicted []float64) float64 {
	return math.Abs(predict.Median(predicted)-p.real()) / p.real()
}

// noise is how far the real program is from itself, measured the same way.
func (p *pair) noise() float64 {
	return math.Abs(predict.Median(p.Real)-predict.Median(p.Again)) / p.real()
}

func (p *pair) beyond() float64 { return max(0, p.off(p.Issued)-p.noise()) }

func (p *pair) interval() (low, high float64) { return predict.Interval(p.Issued, &p.Tried) }

// sure tells whether the medians of the real program and of its issues are known well enough to be compared. How far the
// program and its prediction are apart has no say in it.
func (p *pair) sure() bool {
	const enough = 0.03
	return unsure(slices.Concat(p.Real, p.Again)) <= enough && unsure(p.Issued) <= enough
}

// unsure is the standard error of a list's median, as a share of it: from how far half of the list is from the median, as a
// normal distribution has it.
func unsure(list []float64) float64 {
	median := predict.Median(list)
	far := make([]float64, len(list))
	for i, v := range list {
		far[i] = math.Abs(v - median)
	}
	return 1.2533 * 1.4826 * predict.Median(far) / math.Sqrt(float64(len(list))) / median
}

func (p *pair) covered() bool {
	low, high := p.interval()
	return low <= p.real() && p.real() <= high
}

func (p *pair) measured() bool { return p.Error == "" && len(p.Issued) > 0 && len(p.Real) > 0 }

func key(program, target string) string { return program + "@" + target }

// put keeps a pair in the place of the one before.
func (r *results) put(p *pair) {
	for i := range r.Pairs {
		if r.Pairs[i].name() == p.name() {
			r.Pairs[i] = p
			return
		}
	}
	r.Pairs = append(r.Pairs, p)
}

func (r *results) find(name string) *pair {
	for _, p := range r.Pairs {
		if p.name() == name {
			return p
		}
	}
	return nil
}

// load reads what was kept; nothing, if there is nothing, or if it is of another machine.
func load(path string) (*results, error) {
	empty := &results{Machine: machine()}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return nil, err
	}
	r := &results{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Machine != empty.Machine {
		return empty, nil
	}
	return r, nil
}

// save writes all three files: what was measured, the table and the plot. Each is replaced whole.
func (r *results) save(dir string) error {
	r.sort()
	b, err := r.text()
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{"accuracy.json", b}, {"accuracy.md", r.table()}, {"accuracy.svg", r.plot()}} {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path+".new", f.text, 0o644); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}

// text is JSON, a pair a line, so that changes of it can be read.
func (r *results) text() ([]byte, error) {
	head := *r
	head.Pairs = nil
	b, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	out := strings.TrimSuffix(string(b), "null}") + "["
	for i, p := range r.Pairs {
		b, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out += ","
		}
		out += "\n" + string(b)
	}
	return []byte(out + "\n]}\n"), nil
}

// sort puts pairs as the plan has them; what it does not have any more goes.
func (r *results) sort() {
	var list []*pair
	for _, w := range plan {
		for _, t := range w.targets {
			if p := r.find(key(w.name, t)); p != nil {
				list = append(list, p)
			}
		}
	}
	r.Pairs = list
}

// machine is the shape of this machine.
func machine() string {
	mem := 0.0
	b, _ := os.ReadFile("/proc/meminfo")
	fmt.Sscanf(string(b), "MemTotal: %g kB", &mem)
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	kernel, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	return fmt.Sprintf("%d CPUs, %s, %.0f GiB, Linux %s", runtime.NumCPU(), runtime.GOARCH, mem/(1<<20), kernel)
}

// The bars that are to be held, of the error beyond noise, and of how many real medians lie in the interval.
const (
	barMedian   = 0.03
	barP95      = 0.08
	barMost     = 0.15
	coverLeast  = 0.80
	coverAtMost = 0.97
)

// summary is what all pairs come to that were measured and not refused.
type summary struct {
	pairs, refused, failed int
	median, p95, most      float64
	worst                  string
	cover                  float64
}

func (r *results) summary() summary {
	var s summary
	var all []float64
	covered := 0
	for _, p := range r.Pairs {
		switch {
		case !p.measured():
			s.failed++
		case p.Refused != "":
			s.refused++
		default:
			s.pairs++
			all = append(all, p.beyond())
			if p.beyond() >= s.most {
				s.most, s.worst = p.beyond(), p.name()
			}
			if p.covered() {
				covered++
			}
		}
	}
	s.median, s.p95 = predict.Median(all), predict.Quantile(all, 0.95)
	if s.pairs > 0 {
		s.cover = float64(covered) / float64(s.pairs)
	}
	return s
}
