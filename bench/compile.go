package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"prophet/runtime/demand"
	"prophet/runtime/recovery"
)

// Compiling traces of 10^7 events: of calls that stand alone, and of nothing but waits for conditions, which have to be learnt.

const compileName = "compile-one"

type compiled struct {
	Seconds float64
	MiB     float64
	Events  uint64
}

// compileOne compiles a trace in this process, so that its memory can be told.
func compileOne(path, to string) error {
	begin := time.Now()
	t, _, _, err := recovery.Open(path, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	info, err := demand.Compile(t, demand.Options{Record: demand.RecordCost}, to)
	if err != nil {
		return err
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(compiled{time.Since(begin).Seconds(), float64(u.Maxrss) / 1024, info.Events})
}

func (b *bench) compile() error {
	exe := filepath.Join(b.work, "pipeline")
	if _, err := b.output(b.work, "gcc", "-O2", "-pthread", "-o", exe, filepath.Join(filepath.Dir(b.src), "tests", "predict", "pipeline.c")); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, p := range []struct {
		name string
		argv []string
	}{
		{"calls", []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=" + strconv.Itoa(b.scale(5_000_000))}},
		{"conditions", []string{exe, "4", strconv.Itoa(b.scale(800_000)), "20"}},
	} {
		rec := b.command(wayNone, b.work, p.argv...)
		if _, err := rec.run(); err != nil {
			return err
		}
		var seconds, mib []float64
		var last compiled
		for range b.rounds {
			out, err := exec.Command(self, compileName, rec.trace, filepath.Join(b.work, "compiled")).Output()
			if err == nil {
				err = json.Unmarshal([]byte(strings.TrimSpace(string(out))), &last)
			}
			if err != nil {
				return fmt.Errorf("compiling: %w", err)
			}
			b.sample("Compile/"+p.name, 1, last.Seconds*1e9, "ns/op")
			seconds, mib = append(seconds, last.Seconds), append(mib, last.MiB)
		}
		os.RemoveAll(rec.trace)
		note := fmt.Sprintf("%d events", last.Events)
		b.add(row{Name: "compile/" + p.name, Value: median(seconds), Unit: "s", Limit: 5, Note: note})
		b.add(row{Name: "compile/" + p.name + ", memory", Value: median(mib), Unit: "MiB", Limit: 1024})
	}
	return nil
}
