package issue

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"prophet/cabi"
	"prophet/runtime/cgroup"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/scratch"
)

// Request is what to issue and how.
type Request struct {
	Program string        // a compiled program (runtime/demand)
	Dir     string        // where its files are prepared, in a directory of their own; "": where temporary files go
	Scale   float64       // CPU demand here for one of the program's; 0: 1
	Walk    uint64        // bytes of memory that each thread's loop walks
	Loop    string        // what an iteration of the loop is taken to take (Result.LoopAs); "": what it takes here and now
	Log     string        // where to write what each operation came to (runtime/issued); "": nowhere
	CPUs    []int         // to run on; none: all
	Most    time.Duration // that it may take; 0: any time
}

// Result is what came of an issue.
type Result struct {
	Wall    time.Duration `json:"wall_ns"`
	Hz      uint64        `json:"ticks_hz"`
	Done    uint64        `json:"operations"`
	Other   uint64        `json:"other_ways"`   // taken as another thread, or the same, was seen to
	Unknown uint64        `json:"unknown_ways"` // results that nobody had at home
	Forced  uint64        `json:"forced_waits"`
	Outside time.Duration `json:"outside_ns"`
	CPU     time.Duration `json:"cpu_ns"`          // of its first process, and those that it waited for
	Loop    float64       `json:"loop_ns"`         // what an iteration of the loop was taken to take
	LoopAs  string        `json:"loop_as"`         // that, and what a line of the walk, and one with its iterations was taken to: for another issue to do as much
	Parts   []Part        `json:"parts,omitempty"` // the longest first

	Diverged *Diverged     `json:"diverged,omitempty"` // of a strict issue that ended before its time
	Stuck    *issued.Stuck `json:"stuck,omitempty"`    // of one in which nothing could move, or that took too long
}

// Diverged is where a strict issue left the path that is known.
type Diverged struct {
	Thread uint32 `json:"thread"` // by its number in the program, plus 1; 0: nothing could move any more
}

// Errors of an issue.
var (
	ErrKilled = errors.New("it was ended from outside")
)

// resultMax bounds what is read of a result.
const resultMax = 8 << 30

// Run issues a program with the engine of this binary, in a process of its own.
func Run(ctx context.Context, q Request) (*Result, error) {
	work, err := scratch.Make(q.Dir, scratch.Issue)
	if err != nil {
		return nil, err
	}
	defer work.Close()
	files := filepath.Join(work.Path, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		return nil, err
	}
	scale := q.Scale
	if scale == 0 {
		scale = 1
	}
	logs := "0"
	if q.Log != "" {
		logs = "1"
	}
	quota := "0"
	if groups, err := cgroup.Own(); err == nil {
		if l := cgroup.Limit(groups); l > 0 && l < float64(runtime.NumCPU()) {
			quota = "1"
		}
	}
	out := filepath.Join(work.Path, "result")
	args := []string{"issue-engine", q.Program, files, out, strconv.FormatFloat(scale, 'g', -1, 64), strconv.FormatUint(q.Walk, 10),
		cmp.Or(q.Loop, "0"), logs,
		strconv.FormatInt(int64(max(q.Most, 0)), 10), quota}
	for _, n := range q.CPUs {
		args = append(args, strconv.Itoa(n))
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	// A group of its own, so that all of it can be found; and an end of standard input, so that it knows when we are gone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	defer alive.Close()
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if s := strings.TrimSpace(said.String()); s != "" {
			return nil, errors.New(s)
		}
		return nil, fmt.Errorf("the engine: %w", err)
	}
	f, err := os.Open(out)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readResult(f, q)
}

// readResult reads what the engine wrote, and writes the log if one is wanted: also of an issue that did not come to its end.
func readResult(from io.Reader, q Request) (*Result, error) {
	b := bufio.NewReaderSize(io.LimitReader(from, resultMax), 1<<20)
	var h cabi.ProgResult
	if err := binary.Read(b, binary.LittleEndian, &h); err != nil {
		return nil, fmt.Errorf("the engine's result: %w", err)
	}
	if h.Magic != cabi.ResultMagic || h.Version != cabi.ProgVersion || h.Threads > 1<<20 || h.Hz == 0 && h.Status == cabi.ResultDone {
		return nil, errors.New("the engine's result is not one of this version's")
	}
	r := &Result{Wall: time.Duration(h.Nanos), Hz: h.Hz, CPU: time.Duration(h.CPU), Loop: float64(h.Loop) / 1e6}
	r.LoopAs = strconv.FormatFloat(r.Loop, 'g', -1, 64)
	if h.Block > 0 {
		r.LoopAs += fmt.Sprintf(":%g:%g", float64(h.Line)/1e6, float64(h.Block)/1e6)
	}
	threads := make([]cabi.ProgResultThread, h.Threads)
	if err := binary.Read(b, binary.LittleEndian, threads); err != nil {
		return nil, fmt.Errorf("the engine's result: %w", err)
	}
	for _, t := range threads {
		r.Done += t.Done
		r.Other += t.Other
		r.Unknown += t.Unknown
		r.Forced += t.Forced
		r.Outside += time.Duration(t.Outside)
	}
	if q.Log != "" {
		if err := writeLog(b, q, &h, threads); err != nil {
			return nil, fmt.Errorf("the log of the issue: %w", err)
		}
	}
	switch h.Status {
	case cabi.ResultDone:
		return r, nil
	case cabi.ResultStuck, cabi.ResultLate:
		late := time.Duration(0)
		if h.Status == cabi.ResultLate {
			late = q.Most
		}
		s, err := issued.FindStuck(q.Program, threads, late)
		if err != nil {
			return r, fmt.Errorf("%w: %w", issued.ErrStuck, err)
		}
		return r, s
	case cabi.ResultDiverged:
		r.Diverged = &Diverged{h.Failed}
		return r, nil
	case cabi.ResultKilled:
		return r, ErrKilled
	}
	return r, fmt.Errorf("issuing: %w", syscall.Errno(h.Failed))
}

// writeLog makes a log of the engine's.
func writeLog(from io.Reader, q Request, h *cabi.ProgResult, threads []cabi.ProgResultThread) error {
	sum, err := demand.Sum(q.Program)
	if err != nil {
		return err
	}
	w, err := issued.Create(q.Log, issued.Head{Threads: h.Threads, Begin: h.Begin, End: h.End, Hz: h.Hz, Nanos: h.Nanos, Status: h.Status, Failed: h.Failed,
		Program: sum, Scale: max(q.Scale, 0)})
	if err != nil {
		return err
	}
	for _, t := range threads {
		if err = addLog(w, from, t); err != nil {
			break
		}
	}
	return errors.Join(err, w.Close())
}

func addLog(w *issued.Writer, from io.Reader, t cabi.ProgResultThread) error {
	if err := w.Thread(t); err != nil {
		return err
	}
	le := binary.LittleEndian
	for range t.Logged {
		var rec [40]byte
		if _, err := io.ReadFull(from, rec[:]); err != nil {
			return err
		}
		if err := w.Add(cabi.ProgLog{Begin: le.Uint64(rec[:]), End: le.Uint64(rec[8:]), Op: le.Uint64(rec[16:]), Seq: le.Uint64(rec[24:]), Result: int64(le.Uint64(rec[32:]))}); err != nil {
			return err
		}
	}
	return nil
}
