// Package report makes of a trace, in one pass and in bounded memory, what a person wants to see of it: where the time
// went, who waited for which lock and who held it, which calls were slow, what went through which file, and what is not
// known. Compare sets such reports of two sides against each other. The results are values that go into JSON; package
// page makes a file for a browser of them. It does no I/O of its own and reads no clock.
package report

import (
	"time"

	"prophet/runtime/trace"
)

// Format is the version of the JSON; fields are added without a new one.
const Format = 1

// Report is what Of finds. Times are ns; those of places in the run count from its start.
type Report struct {
	Format     int         `json:"format"`
	Run        Run         `json:"run"`
	Totals     Totals      `json:"totals"`
	Groups     []GroupTime `json:"time"`     // all groups, in their order
	Findings   []string    `json:"findings"` // in plain words, the weightiest first
	Warnings   []string    `json:"warnings"`
	LeftOut    []string    `json:"left_out"`
	Damage     []string    `json:"damage"`
	Damaged    int         `json:"damaged"`
	Coverage   []Cover     `json:"coverage"`
	Procs      []Proc      `json:"processes"`
	Threads    []Thread    `json:"threads"`
	Locks      []Lock      `json:"locks"`
	Slow       []SlowCall  `json:"slow_calls"`
	Calls      []Call      `json:"calls"`
	Files      []File      `json:"files"`
	Conns      []File      `json:"connections"`
	Prediction *Prediction `json:"prediction,omitempty"`
	Timeline   *Timeline   `json:"timeline"`
}

// Run is what ran, where and how.
type Run struct {
	Command   string    `json:"command"`
	Cwd       string    `json:"cwd"`
	Trace     string    `json:"trace"`
	Start     time.Time `json:"start"`
	NS        int64     `json:"duration_ns"`
	End       string    `json:"end"` // in words
	Live      bool      `json:"live"`
	Host      string    `json:"host"`
	System    string    `json:"system"`
	CPUs      int       `json:"cpus"`
	Memory    int64     `json:"memory_bytes"`
	Recorded  string    `json:"recorded"` // options, in words
	Calibrate bool      `json:"calibrated"`
}

// Totals are counts over the whole run.
type Totals struct {
	Processes int    `json:"processes"`
	Threads   int    `json:"threads"`
	Events    uint64 `json:"events"`
	Timed     uint64 `json:"timed_calls"` // calls with an end of their own
	CPUNS     int64  `json:"cpu_ns"`
	ThreadNS  int64  `json:"thread_ns"` // lives of all threads together
	Bytes     int64  `json:"trace_bytes"`
	Signals   int64  `json:"signals"`
	Marks     int64  `json:"marks"`
	PeakBytes uint64 `json:"peak_resident_bytes"`
}

// GroupTime is the time of one group.
type GroupTime struct {
	Group string `json:"group"`
	NS    int64  `json:"ns"`
	Calls uint64 `json:"calls"`
}

// Cover is how much of what the kernel counted the events explain.
type Cover struct {
	What string `json:"what"` // read, written, cpu
	Seen uint64 `json:"explained"`
	All  uint64 `json:"counted"`
}

// Proc is a process.
type Proc struct {
	Name    string `json:"name"`
	Parent  int    `json:"parent"` // index; -1: none
	PID     uint32 `json:"pid"`
	Command string `json:"command"`
	Exe     string `json:"exe"`
	How     string `json:"how"`
	Start   int64  `json:"start_ns"`
	NS      int64  `json:"duration_ns"`
	End     string `json:"end"`
	Threads int    `json:"threads"`
	Events  uint64 `json:"events"`
	CPUNS   int64  `json:"cpu_ns"`
	Peak    uint64 `json:"peak_resident_bytes"`
}

// Thread is a thread and where its time went.
type Thread struct {
	Name   string        `json:"name"`
	Label  string        `json:"label,omitempty"` // that the program gave it
	Proc   int           `json:"process"`         // index
	Start  int64         `json:"start_ns"`
	NS     int64         `json:"duration_ns"`
	Events uint64        `json:"events"`
	CPUNS  int64         `json:"cpu_ns"`
	Time   [groups]int64 `json:"time"`                 // by group
	Open   bool          `json:"unfinished,omitempty"` // its process ended long after its last event, and it had not: what it did last is not known
}

// Where is a place in the program: a call site, or a stack that begins with it.
type Where struct {
	Site  string   `json:"site"`
	Stack []string `json:"stack,omitempty"` // the innermost frame first
	Times uint64   `json:"times"`
	NS    int64    `json:"ns"`
	place place
}

// Who is a thread's part in the waits at a lock.
type Who struct {
	Thread string `json:"thread"`
	Times  uint64 `json:"times"`
	NS     int64  `json:"ns"`
}

// Lock is an object that threads waited at.
type Lock struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Taken   uint64   `json:"taken"`
	Waits   uint64   `json:"waits"`
	NS      int64    `json:"wait_ns"`
	MaxNS   int64    `json:"max_ns"`
	MaxAt   int64    `json:"max_at_ns"`
	P50     uint64   `json:"p50_ns"`
	P99     uint64   `json:"p99_ns"`
	HeldNS  int64    `json:"held_ns"`
	MaxHeld int64    `json:"max_held_ns"`
	Waiters []Who    `json:"waiters"`
	Causes  []Who    `json:"causes"` // who had it, or woke the waiters, by the time that was waited for them
	At      []Where  `json:"waited_at"`
	CauseAt []Where  `json:"caused_at"` // where they had taken it, or woke
	Buckets []Bucket `json:"buckets"`
	hist    *Hist
}

// SlowCall is one of the slowest calls of its group.
type SlowCall struct {
	Group  string   `json:"group"`
	Call   string   `json:"call"`
	NS     int64    `json:"ns"`
	At     int64    `json:"at_ns"`
	Thread string   `json:"thread"`
	N      uint64   `json:"event"`
	What   string   `json:"what"` // the file, connection or lock
	Text   string   `json:"text"` // as dump prints it
	Site   string   `json:"site"`
	Stack  []string `json:"stack,omitempty"`
	stack  Stack
}

// Call is how long calls of a kind took.
type Call struct {
	Call    string   `json:"call"`
	On      string   `json:"on,omitempty"` // file, socket, pipe …
	Group   string   `json:"group"`
	Class   string   `json:"class"`
	N       uint64   `json:"count"`
	Failed  uint64   `json:"failed"`
	Timed   uint64   `json:"timed"` // those with an end of their own; the others took no time to speak of
	NS      int64    `json:"ns"`
	P50     uint64   `json:"p50_ns"`
	P90     uint64   `json:"p90_ns"`
	P99     uint64   `json:"p99_ns"`
	MaxNS   uint64   `json:"max_ns"`
	Buckets []Bucket `json:"buckets"`

	hist      *Hist
	inflation float64 // see blocks
}

// File is what went through a file, or through connections of one kind.
type File struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Opens   uint64 `json:"opens"`
	Calls   uint64 `json:"calls"`
	Reads   uint64 `json:"reads"`
	Read    uint64 `json:"read_bytes"`
	Writes  uint64 `json:"writes"`
	Written uint64 `json:"written_bytes"`
	Syncs   uint64 `json:"syncs"`
	SyncNS  int64  `json:"sync_ns"`
	NS      int64  `json:"ns"`
	MaxNS   int64  `json:"max_ns"`
}

// Options bounds what a report keeps; zero fields mean the defaults.
type Options struct {
	Slices  int // of the timeline, at most; the longest are kept
	Lanes   int // threads drawn in the timeline
	Slow    int // calls of each group
	Locks   int
	Files   int // and as many kinds of connections
	Calls   int
	Threads int // that are listed, and as many processes
	Live    bool
	Workers int
	Name    func([]Stack) [][]string // functions of each stack, innermost first; nil: call sites stay module and offset
}

// Stack is return addresses in a process, innermost first: the first is a call site.
type Stack struct {
	Proc *trace.Proc
	PCs  []uint64
}

func (o *Options) fill() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Slices, 500_000)
	def(&o.Lanes, 1000)
	def(&o.Slow, 25)
	def(&o.Locks, 100)
	def(&o.Files, 500)
	def(&o.Calls, 300)
	def(&o.Threads, 5000)
	def(&o.Workers, 1)
}

// Clean is text of the program's as it is kept in a report: what could disturb a terminal or turn text around is written out.
func clean(s string) string {
	const most = 512
	if len(s) > most {
		s = s[:most] + "…"
	}
	return trace.Clean(s)
}
