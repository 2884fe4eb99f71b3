// Package calibrate says how fast a machine is and how fast another one is beside it: the figures that `replayd calibrate`
// measures, their JSON, and the factor by which CPU demand recorded here grows there. It measures nothing itself.
package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"prophet/runtime/predict"
)

// Kinds of work, in nanoseconds a unit (Machine.Speed).
const (
	Integer   = "integer"   // 64-bit arithmetic
	Float     = "float"     // double
	Branch    = "branch"    // sorting and searching
	String    = "string"    // text, byte by byte
	Crypto    = "crypto"    // rotations and exclusive ors
	Cache     = "cache"     // dependent loads in 1 MiB
	Latency   = "latency"   // dependent loads in 64 MiB
	Bandwidth = "bandwidth" // 64 MiB in order
)

// Kinds are all of them.
var Kinds = []string{Integer, Float, Branch, String, Crypto, Cache, Latency, Bandwidth}

// Costs of the kernel's services, in nanoseconds (Machine.Costs).
const (
	ClockCost    = "clock"
	CPUClockCost = "cpu_clock"
	SyscallCost  = "syscall"
	SleepCost    = "sleep_late" // by how much a sleep of 100 us is late
	WakeCost     = "wake"       // one thread wakes another
)

// Costs are all of them.
var Costs = []string{ClockCost, CPUClockCost, SyscallCost, SleepCost, WakeCost}

// Calls on a disk, in nanoseconds (Disk.Calls).
const (
	WriteCall    = "write_4k"      // into the page cache
	FsyncCall    = "fsync_4k"      // fsync after a write of 4 KiB
	FsyncBigCall = "fsync_1m"      // fsync after a write of 1 MiB
	CachedCall   = "read_4k"       // from the page cache
	UncachedCall = "read_4k_disk"  // at a place by chance, not in the page cache
	StreamCall   = "read_1m_disk"  // in order, not in the page cache
	CreateCall   = "create_unlink" // a file made and removed
)

// Calls are all of them.
var Calls = []string{WriteCall, FsyncCall, FsyncBigCall, CachedCall, UncachedCall, StreamCall, CreateCall}

// Version of the JSON. 1: the first.
const Version = 1

// Max bounds the JSON of a machine.
const Max = 64 << 10

// A Machine is what was measured.
type Machine struct {
	Version int               `json:"version"`
	When    string            `json:"when"` // RFC 3339
	Host    string            `json:"host"`
	Arch    string            `json:"arch"` // as Go names it
	CPU     string            `json:"cpu"`
	CPUs    int               `json:"cpus"`  // that we may run on
	Quota   float64           `json:"quota"` // of CPU time, in CPUs; 0: all
	Memory  int64             `json:"memory_bytes"`
	Kernel  string            `json:"kernel"`
	Speed   map[string]Figure `json:"speed_ns"`
	Costs   map[string]Figure `json:"costs_ns"`
	Disk    *Disk             `json:"disk,omitempty"`
	Loop    *Loop             `json:"loop,omitempty"`
}

// A Disk is what a directory is on.
type Disk struct {
	Dir        string            `json:"dir"`
	Filesystem string            `json:"filesystem"`
	Free       int64             `json:"free_bytes"`
	Calls      map[string]Figure `json:"calls_ns"`
}

// A Loop is the loop that issues CPU demand.
type Loop struct {
	IterNs float64 `json:"iter_ns"`
	CallNs float64 `json:"call_ns"`
	Spread float64 `json:"spread"`
	Errors Decades `json:"errors,omitempty"`
}

// A Figure is a repeated measurement.
type Figure struct {
	Median float64 `json:"median"`
	Spread float64 `json:"spread"` // between the quartiles, as a share of the median
	P90    float64 `json:"p90"`
	Runs   int     `json:"runs"`
}

// NewFigure sums up runs.
func NewFigure(runs []float64) Figure {
	if len(runs) == 0 {
		return Figure{}
	}
	f := Figure{Median: digits(predict.Quantile(runs, 0.5)), P90: digits(predict.Quantile(runs, 0.9)), Runs: len(runs)}
	if f.Median != 0 {
		f.Spread = digits((predict.Quantile(runs, 0.75) - predict.Quantile(runs, 0.25)) / math.Abs(f.Median))
	}
	return f
}

// digits keeps five of a figure: more would be noise in the file.
func digits(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	return v
}

// A Decade is the error of the loop over segments of one power of ten.
type Decade struct {
	FromNs float64 `json:"from_ns"`
	N      int     `json:"segments"`
	Mean   float64 `json:"mean_error"` // of the sizes of the errors, each a share of its segment
	Bias   float64 `json:"bias"`       // of the errors
	Max    float64 `json:"max_error"`
}

// Decades are in ascending order.
type Decades []Decade

// Add counts one segment.
func (d *Decades) Add(ns, error float64) {
	if ns < 1 {
		return
	}
	// A rounding error at the border is no other decade.
	from := math.Pow(10, math.Floor(math.Log10(ns)+1e-9))
	i, ok := slices.BinarySearchFunc(*d, from, func(d Decade, from float64) int {
		return int(math.Round(math.Log10(d.FromNs) - math.Log10(from)))
	})
	if !ok {
		*d = slices.Insert(*d, i, Decade{FromNs: from})
	}
	e := &(*d)[i]
	n := float64(e.N)
	e.N++
	e.Mean = (e.Mean*n + math.Abs(error)) / (n + 1)
	e.Bias = (e.Bias*n + error) / (n + 1)
	e.Max = max(e.Max, math.Abs(error))
}

// Mean is the mean error of all segments.
func (d Decades) Mean() float64 {
	sum, n := 0.0, 0
	for _, e := range d {
		sum += e.Mean * float64(e.N)
		n += e.N
	}
	return sum / float64(max(n, 1))
}

// Parse reads the JSON of a machine, which may come from anywhere.
func Parse(b []byte) (*Machine, error) {
	if len(b) > Max {
		return nil, fmt.Errorf("a calibration of %d bytes: at most %d are read", len(b), Max)
	}
	var m Machine
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("a calibration: %w", err)
	}
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("a calibration: %w", err)
	}
	return &m, nil
}

// Check says what is wrong with a machine that came from elsewhere.
func (m *Machine) Check() error {
	if m.Version < 1 || m.Version > Version {
		return fmt.Errorf("version %d; this program knows up to %d", m.Version, Version)
	}
	if m.CPUs < 1 || m.CPUs > 1<<20 || m.Memory < 0 || !(m.Quota >= 0 && m.Quota < 1<<20) {
		return fmt.Errorf("%d CPUs, a quota of %g, %d bytes of memory", m.CPUs, m.Quota, m.Memory)
	}
	for _, kind := range Kinds {
		f, ok := m.Speed[kind]
		if !ok {
			return fmt.Errorf("the speed of %s is missing", kind)
		}
		if !f.positive() {
			return fmt.Errorf("the speed of %s is %g", kind, f.Median)
		}
	}
	tables := []map[string]Figure{m.Speed, m.Costs}
	if m.Disk != nil {
		tables = append(tables, m.Disk.Calls)
	}
	for _, t := range tables {
		for name, f := range t {
			if !f.finite() {
				return fmt.Errorf("%s is no figure", name)
			}
		}
	}
	if l := m.Loop; l != nil && !(l.IterNs > 0 && l.IterNs < 1e9 && l.CallNs >= 0 && l.CallNs < 1e9) {
		return errors.New("the loop's figures are none")
	}
	return nil
}

const most = 1e15 // ns, more than anything takes

func (f Figure) finite() bool {
	return math.Abs(f.Median) < most && math.Abs(f.P90) < most && f.Spread >= 0 && f.Spread < most && f.Runs >= 0
}

func (f Figure) positive() bool { return f.finite() && f.Median > 1e-6 }

// JSON is the machine's file.
func (m *Machine) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

// A Mix says which kinds of work a program's CPU time is spent on: weights by kind, of any sum.
type Mix map[string]float64

// DefaultMix is taken where nothing is known of a program: what compiled programs do most. Memory is left out: how much of
// it a program walks is what `prophet sense` learns.
var DefaultMix = Mix{Integer: 1, Branch: 1, String: 1, Crypto: 1}

// ParseMix reads a mix as people write it: float or integer=2,float=1.
func ParseMix(s string) (Mix, error) {
	m := Mix{}
	for part := range strings.SplitSeq(s, ",") {
		kind, weight, given := strings.Cut(strings.TrimSpace(part), "=")
		w := 1.0
		if given {
			if _, err := fmt.Sscanf(weight, "%g", &w); err != nil || !(w >= 0 && w < 1e6) {
				return nil, fmt.Errorf("the weight %q of %s is no number", weight, kind)
			}
		}
		if !slices.Contains(Kinds, kind) {
			return nil, fmt.Errorf("%q is no kind of work; there are %s", kind, strings.Join(Kinds, ", "))
		}
		m[kind] += w
	}
	if m.sum() <= 0 {
		return nil, fmt.Errorf("the mix %q weighs nothing", s)
	}
	return m, nil
}

func (x Mix) sum() (sum float64) {
	for _, w := range x {
		sum += w
	}
	return
}

// A Factor is by how much CPU demand grows from one machine to another.
type Factor struct {
	Factor float64            `json:"factor"`
	Noise  float64            `json:"noise"` // of it, as a share: the spread of the figures that it comes from
	Kinds  map[string]float64 `json:"kinds"` // by kind of work
}

// Scale compares two machines: the geometric mean of the kinds of a mix, by its weights. nil: DefaultMix.
func Scale(home, target *Machine, mix Mix) Factor {
	if mix.sum() <= 0 {
		mix = DefaultMix
	}
	f := Factor{Kinds: map[string]float64{}}
	sum, noise := 0.0, 0.0
	for _, kind := range Kinds {
		h, t := home.Speed[kind], target.Speed[kind]
		f.Kinds[kind] = t.Median / h.Median
		if w := mix[kind]; w > 0 {
			w /= mix.sum()
			sum += w * math.Log(f.Kinds[kind])
			noise += w * w * (h.Spread*h.Spread + t.Spread*t.Spread)
		}
	}
	f.Factor, f.Noise = math.Exp(sum), math.Sqrt(noise)
	return f
}
