package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"prophet/runtime/cgroup"
	"prophet/runtime/run"
)

// realName is what we are called as to run a program on a part of the machine and say how long it took.
const realName = "real"

func realMain(args []string) int {
	f := flag.NewFlagSet(realName, flag.ExitOnError)
	cpus := f.Int("cpus", run.CPUs(), "")
	quota := f.Float64("quota", 0, "")
	dir := f.String("dir", "", "")
	f.Parse(args)
	if err := os.Chdir(*dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	took, err := real(ctx, f.Args(), *cpus, *quota)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(took.Nanoseconds())
	return 0
}

func real(ctx context.Context, argv []string, cpus int, quota float64) (took time.Duration, err error) {
	if quota > 0 {
		g, err := cgroup.Join(quota)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, g.Leave()) }()
	}
	var said strings.Builder
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second
	err = run.OnCPUs(cpus, func() error {
		begin := time.Now()
		err := cmd.Start()
		if err == nil {
			err = cmd.Wait()
		}
		took = time.Since(begin)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(said.String()))
	}
	return took, nil
}

// real runs the real program there, in a directory of its own, and says how many seconds it took.
func (m *measurer) real(ctx context.Context, w *workload, at *place) (float64, error) {
	dir, err := os.MkdirTemp(at.dir, "real-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := m.fill(w, dir); err != nil {
		return 0, err
	}
	argv := append(append(append([]string{}, at.real...), m.self, realName), at.args...)
	// It goes there itself: a child of ours that does before its exec holds up a thread of ours, and may wait for the file
	// system that our others serve.
	argv = append(append(argv, "--dir", dir, "--"), w.argv...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("running %s: %w: %s", w.name, err, strings.TrimSpace(said.String()))
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || ns <= 0 {
		return 0, fmt.Errorf("running %s: it is not said how long it took: %.80q", w.name, out)
	}
	return float64(ns) / 1e9, nil
}
