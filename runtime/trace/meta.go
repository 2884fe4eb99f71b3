package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MetaMax bounds meta.json; a longer one is damage.
const MetaMax = 16 << 20

// States of a trace.
const (
	StateRecording = "recording"
	StateComplete  = "complete"
)

// Meta is meta.json. The first process of the run writes it up to TicksHz; who completes the trace adds the rest.
type Meta struct {
	Format  int      `json:"format"`
	Prophet string   `json:"prophet"`
	State   string   `json:"state"`
	Run     string   `json:"run"` // tag, 16 hex digits
	Command []string `json:"command"`
	Exe     string   `json:"exe"`
	Cwd     string   `json:"cwd"`
	Env     []string `json:"env"` // NAME=value; in traces of early versions the names alone
	Start   *Start   `json:"start,omitempty"`
	Machine Machine  `json:"machine"`
	Options Options  `json:"options"`
	StartNS int64    `json:"start_realtime_ns"`
	TicksHz uint64   `json:"ticks_hz"` // 0: not known
	Ended   *Ended   `json:"ended,omitempty"`
	Totals  *Totals  `json:"totals,omitempty"`
	Cover   *Cover   `json:"coverage,omitempty"`

	Scrubbed *Scrubbed `json:"scrubbed,omitempty"`
	Issued   *Issued   `json:"issued,omitempty"`
	Beside   *Beside   `json:"beside,omitempty"`
}

// Beside says that other runs of the program lie in the trace, whose threads never began in its own: all from these numbers on.
type Beside struct {
	UID  uint32 `json:"threads_from"`
	Proc uint32 `json:"processes_from"`
}

// Issued says that the trace is of an issue of another trace's demand: in the order and at the times of that, with what the program
// was given in the other.
type Issued struct {
	Run    string `json:"run"`              // of the other trace
	Target string `json:"target,omitempty"` // where it was issued
	Cut    uint64 `json:"operations_cut"`   // that are missing, as nobody knows what the program does there

	Upto map[uint32]uint64 `json:"events,omitempty"` // of each thread, by UID, so many first events; nil: all are of the issue

	Scale float64 `json:"cpu_factor,omitempty"` // CPU time that these took there for one second of the other trace's; 0: 1
}

// Events is how many first events of a thread are of the issue.
func (i *Issued) Events(uid uint32) uint64 {
	switch {
	case i == nil:
		return 0
	case i.Upto == nil:
		return 1<<63 - 1
	}
	return i.Upto[uid]
}

// Scrubbed says that the trace is what `prophet scrub` made of another.
type Scrubbed struct {
	Removed []string `json:"removed"` // kinds of private things of which not all stayed
}

// Whole returns an error for who needs the trace as it was recorded.
func (m *Meta) Whole() error {
	if m.Scrubbed == nil {
		return nil
	}
	return fmt.Errorf("it has been scrubbed (%s), and can be looked at but not executed again: that takes the trace it was made of", strings.Join(m.Scrubbed.Removed, ", "))
}

// Start is what the first process inherited beside its environment.
type Start struct {
	EnvCut      int        `json:"env_cut"` // variables that were too long
	UID         uint32     `json:"uid"`     // effective ones
	GID         uint32     `json:"gid"`
	Umask       int        `json:"umask"`
	Nice        int        `json:"nice"`
	Personality uint64     `json:"personality"`
	Ignored     *uint64    `json:"ignored,omitempty"` // signals, 1 << number-1; nil: not known
	Limits      [][2]int64 `json:"limits"`            // RLIMIT_… by number: soft, hard; -1: none
	Handed      *[]Handed  `json:"fds,omitempty"`     // nil: not known
}

// Handed is a descriptor that the program was given: one above standard error, or a standard input that is a file.
type Handed struct {
	FD     int    `json:"fd"`
	Mode   uint32 `json:"mode"`
	Flags  int    `json:"flags"` // of how it is open: for reading or writing, O_APPEND, O_NONBLOCK
	Offset int64  `json:"offset"`
	Same   int    `json:"same"` // a lower one that it is a duplicate of, or -1
	Path   string `json:"path"` // of what has one
}

// SameAddresses reports whether the run's addresses were not random.
func (s *Start) SameAddresses() bool {
	const noRandom = 0x0040000 // ADDR_NO_RANDOMIZE
	return s != nil && s.Personality&noRandom != 0
}

// Machine is what the run ran on.
type Machine struct {
	Sysname     string `json:"sysname"`
	Release     string `json:"release"`
	Version     string `json:"version"`
	Arch        string `json:"arch"`
	Nodename    string `json:"nodename"`
	CPUs        int    `json:"cpus"`
	MemoryBytes int64  `json:"memory_bytes"`
	PageSize    int    `json:"page_size"`
	BootID      string `json:"boot_id,omitempty"` // traces of today have none
}

// Options is how it was recorded.
type Options struct {
	Inputs  string  `json:"inputs"`
	Level   string  `json:"level"`
	Serial  bool    `json:"serial"`
	Chaos   *uint64 `json:"chaos,omitempty"` // its seed; nil: none
	Flight  int64   `json:"flight"`
	Told    *CPUs   `json:"told_cpus,omitempty"` // CPUs that the program was told of; nil: those of the machine
	KeepMax int64   `json:"keep_max,omitempty"`
	Stacks  int     `json:"stacks"`               // a second and thread, at events
	CPU     bool    `json:"stacks_cpu,omitempty"` // a timer of CPU time takes stacks, too
}

// CPUs is how many CPUs a program may use, how many are online, and how many there are.
type CPUs [3]int

// String is how options have it.
func (c CPUs) String() string { return fmt.Sprintf("%d:%d:%d", c[0], c[1], c[2]) }

// ParseCPUs reads what String writes; what is left out is as what stands before it.
func ParseCPUs(s string) (*CPUs, error) {
	var c CPUs
	rest, more := s, true
	for i := range c {
		if !more {
			c[i] = c[i-1]
			continue
		}
		var word string
		word, rest, more = strings.Cut(rest, ":")
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 1<<14 {
			return nil, fmt.Errorf("%q is no number of CPUs", word)
		}
		c[i] = n
	}
	if more {
		return nil, fmt.Errorf("%q: more than how many CPUs it may use, are online and are there", s)
	}
	return &c, nil
}

// Ended is how and when the run ended.
type Ended struct {
	How       string `json:"how"`                 // exit, quick, abort, exec, signal, unknown
	Status    int64  `json:"status"`              // of the first process, when How is exit or quick
	Signal    string `json:"signal,omitempty"`    // that ended it, when whoever recorded it knows
	TimedOut  bool   `json:"timed_out,omitempty"` // by that signal, as it took longer than --timeout
	At        int64  `json:"duration_ns"`         // from the start of the run to its last event
	Recovered bool   `json:"recovered"`           // a part comes from the shared memory of processes that were killed
}

// Totals are counts over the whole trace.
type Totals struct {
	Processes   int              `json:"processes"`
	Threads     int              `json:"threads"`
	Events      uint64           `json:"events"`
	ByClass     map[string]int64 `json:"events_by_class,omitempty"`
	Chunks      int              `json:"chunks"`
	Bytes       int64            `json:"trace_bytes"` // without inputs and hashes
	InputBytes  int64            `json:"input_bytes"`
	HashBytes   int64            `json:"hash_bytes"`
	KeptBytes   int64            `json:"kept_bytes"`
	Lost        uint64           `json:"lost"`
	Damaged     int              `json:"damaged"`
	Preempted   int64            `json:"serial_preempted,omitempty"` // times that the token was taken from a thread that ran or slept on: not serial there
	PerEvent    float64          `json:"bytes_per_event"`
	PackedBytes int64            `json:"packed_bytes,omitempty"`
}

// Cover is how much of what the kernel counted the events explain.
type Cover struct {
	ReadBytes   uint64 `json:"read_bytes"` // the kernel's count
	ReadSeen    uint64 `json:"read_bytes_explained"`
	WriteBytes  uint64 `json:"write_bytes"`
	WriteSeen   uint64 `json:"write_bytes_explained"`
	CPUNS       uint64 `json:"cpu_ns"`
	CPUSeen     uint64 `json:"cpu_ns_explained"`
	NoExit      int    `json:"processes_without_counts"` // ended without telling
	UnseenCount uint64 `json:"unseen"`
}

// ParseMeta reads meta.json.
func ParseMeta(b []byte) (*Meta, error) {
	var m Meta
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	return &m, nil
}

func readMetaFile(dir string) (*Meta, error) {
	f, err := os.Open(filepath.Join(dir, "meta.json"))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &Damage{"meta.json", 0, "is missing"}
		}
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MetaMax+1))
	if err != nil {
		return nil, fmt.Errorf("read meta.json: %w", err)
	}
	if len(b) > MetaMax {
		return nil, &Damage{"meta.json", MetaMax, "is longer than any may be"}
	}
	m, err := ParseMeta(b)
	if err != nil {
		return nil, &Damage{"meta.json", 0, err.Error()}
	}
	return m, nil
}

// WriteMeta replaces meta.json in dir, whole or not at all.
func WriteMeta(dir string, m *Meta) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".meta-*") // 0600
	if err != nil {
		return fmt.Errorf("write meta.json: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, "meta.json"))
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write meta.json: %w", err)
	}
	return nil
}
