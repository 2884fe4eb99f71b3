package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"prophet/runtime/inside"
	"prophet/runtime/recovery"
	"prophet/runtime/run"
	"prophet/runtime/trace"
)

func insideCmd() *cobra.Command {
	var writes string
	var share []string
	c := &cobra.Command{
		Use:   "inside [flags] TRACE -- program [args]",
		Short: "Run a program where all files are as they were before a recorded run",
		Long: `Runs any program, a shell for example, in the surroundings that a re-execution of the trace begins in: what the run
wrote, renamed or removed is as it was before, and what the program writes is removed at its end. It has process
ids, System V objects and shared memory of its own.

--writes DIR puts what it has written into DIR, as plain files below their names, and says on stderr what it removed;
--writes real writes to the real files, which are then as they are now.

Exit status: the program's own; 125 when Prophet itself failed, 126 when the program cannot be executed, 127 when it
cannot be found.`,
		Example: "  replayd inside app.prophet -- ls -l\n  replayd inside app.prophet -- sh",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, a []string) error {
			argv := a[1:]
			if argv[0] == "--" {
				argv = argv[1:]
			}
			if len(argv) == 0 {
				return &usageError{exitUsage, errors.New("which program? inside [flags] TRACE -- program [args]")}
			}
			s, err := enterTrace(a[0], argv, writes)
			if err != nil {
				return err
			}
			s.Share = append(s.Share, share...)
			return live(s)
		},
	}
	c.Flags().SetInterspersed(false)
	c.Flags().StringArrayVar(&share, "share", nil, "a `DIR` that is really written, whatever becomes of other writes")
	c.Flags().StringVar(&writes, "writes", "", "a `DIR` for what is written, or the word real")
	return c
}

func ours(err error) error { return &usageError{run.StatusOurs, err} }

// enterTrace prepares a world for a command in a trace's surroundings.
func enterTrace(path string, argv []string, writes string) (*inside.Spec, error) {
	exe, err := exec.LookPath(argv[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		if errors.Is(err, fs.ErrPermission) {
			return nil, &usageError{run.StatusNotExec, err}
		}
		return nil, &usageError{run.StatusNotFound, err}
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, ours(err)
	}
	s := &inside.Spec{Path: exe, Argv: argv, Env: os.Environ(), Dir: dir, Writes: writes, Random: true, Syncs: true}
	if writes == inside.WritesReal {
		return s, nil
	}
	t, _, _, err := recovery.Open(path, nil)
	if err != nil {
		return nil, ours(err)
	}
	defer t.Close()
	if err := t.Meta.Whole(); err != nil {
		return nil, ours(fmt.Errorf("%s: %w", path, err))
	}
	if s.Plan, err = inside.FromTrace(t, inside.Live{}); err != nil {
		return nil, ours(err)
	}
	for _, m := range s.Plan.Missing {
		fmt.Fprintf(os.Stderr, "replayd: %s is not as before the run: %s\n", trace.Clean(m.Path), m.Why)
	}
	return s, nil
}

// live runs a world to its end, and ends this process as its program ended. Signals that come as the world is made end it, and none
// ends this process before all of it is removed.
func live(s *inside.Spec) error {
	came := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM} {
		if !signal.Ignored(sig) { // it is to stay that in the program
			signal.Notify(came, sig)
		}
	}
	w, err := inside.Start(context.Background(), *s)
	if err != nil {
		return ours(err)
	}
	w.Forward(run.FromTerminal)
	select {
	case sig := <-came:
		w.Close()
		n := sig.(syscall.Signal)
		run.Die(&run.Result{Status: 128 + int(n), Signal: n})
	default:
	}
	for _, n := range w.Notes {
		fmt.Fprintln(os.Stderr, "replayd:", trace.Clean(n))
	}
	status, err := w.Wait()
	if err == nil {
		<-w.Done()
	}
	changes, cerr := w.Close()
	for _, c := range changes {
		if c.Removed {
			fmt.Fprintln(os.Stderr, "replayd: removed:", trace.Clean(c.Path))
		}
	}
	if err = errors.Join(err, cerr); err != nil {
		return ours(err)
	}
	run.Die(&run.Result{Status: status.Exit(), Signal: status.Sig()})
	return nil
}
