package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"prophet/runtime/pause"
	"prophet/runtime/shm"
)

// Pause and resume of a live run: how long a pause takes until all threads stand still, and a resume until a thread goes
// on, by the CPU's ticks, which no pause hides (tests/progs/rested.c notices).

func (b *bench) pause() error {
	exe := filepath.Join(b.work, "rested")
	if out, err := exec.Command("gcc", "-O1", "-D_GNU_SOURCE", "-pthread", "-w", "-o", exe, filepath.Join(b.src, "..", "tests", "progs", "rested.c")).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w: %s", err, out)
	}
	for _, argv := range [][]string{{"2"}, {"16"}, {"2", "compute"}, {"16", "compute"}} {
		if err := b.pauses(exe, argv); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) pauses(exe string, argv []string) (err error) {
	trace := filepath.Join(b.work, "rested.prophet")
	defer os.RemoveAll(trace)
	cmd := exec.Command(exe, argv...)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+b.lib, "PROPHET_TRACE="+trace)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		in.Close()
		cmd.Process.Kill()
		err = errors.Join(err, ignoreKilled(cmd.Wait()))
	}()
	lines := bufio.NewReader(out)
	if s, err := lines.ReadString('\n'); s != "ready\n" {
		return fmt.Errorf("rested said %q: %w", s, err)
	}
	r, err := pause.Open(trace)
	if err != nil {
		return err
	}
	defer r.Close()
	zero := shm.Now()
	var took []float64
	var resumed []uint64
	for range max(b.rounds*2, 4) {
		rep, err := r.Pause()
		if err != nil {
			return err
		}
		if len(rep.Moving) > 0 {
			return fmt.Errorf("%d threads move after %v", len(rep.Moving), rep.Took)
		}
		took = append(took, float64(rep.Took)/1e6)
		time.Sleep(220 * time.Millisecond)
		resumed = append(resumed, shm.Now().Ticks)
		if _, err := r.Resume(); err != nil {
			return err
		}
		time.Sleep(30 * time.Millisecond)
	}
	now := shm.Now()
	perMS := float64(now.Ticks-zero.Ticks) / (float64(now.Mono-zero.Mono) / 1e6)
	in.Close()
	text, err := io.ReadAll(lines)
	if err != nil {
		return err
	}
	var went []uint64
	for _, s := range strings.Fields(string(text)) {
		at, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return fmt.Errorf("rested said %q: %w", s, err)
		}
		went = append(went, at)
	}
	sort.Slice(went, func(i, k int) bool { return went[i] < went[k] })
	var first []float64
	for _, begin := range resumed {
		if i := sort.Search(len(went), func(i int) bool { return went[i] > begin }); i < len(went) {
			first = append(first, float64(went[i]-begin)/perMS)
		}
	}
	if len(first) < len(resumed) {
		return fmt.Errorf("%d of %d resumes were noticed", len(first), len(resumed))
	}
	sort.Float64s(took)
	name := strings.Join(argv, " threads, ")
	if len(argv) == 1 {
		name += " threads, calling"
	}
	b.add(row{Name: "pause: " + name, Value: took[len(took)-1], Unit: "ms", Limit: 310, Note: "the longest"})
	b.add(row{Name: "resume: " + name, Value: median(first), Unit: "ms", Limit: 1, Note: "median, to the first thread that goes on"})
	return nil
}

// ignoreKilled is for a program that has ended, or that we have killed.
func ignoreKilled(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}
