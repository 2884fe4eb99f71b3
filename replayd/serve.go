package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"prophet/replayd/control"
	"prophet/runtime/pause"
	"prophet/runtime/run"
	"prophet/runtime/shm"
	"prophet/runtime/trace"
)

// controlFlags are the flags of a command that serves the control protocol.
type controlFlags struct {
	socket  string
	onDeath string
}

func (f *controlFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.socket, "control", "", "serve the control protocol at this unix socket, for this user alone")
	c.Flags().StringVar(&f.onDeath, "on-death", "go", "when this daemon dies in a pause, the program is to go on or to stay paused: go, stay")
}

func (f *controlFlags) check() error {
	if f.onDeath != "go" && f.onDeath != "stay" {
		return fmt.Errorf("--on-death %s: go or stay", f.onDeath)
	}
	return nil
}

func recordCmd() *cobra.Command {
	c, o := run.CommandWith("replayd")
	var f controlFlags
	f.add(c)
	c.PreRun = func(*cobra.Command, []string) {
		if f.socket == "" {
			return
		}
		o.Begin = func(dir string) (func(), error) {
			if err := f.check(); err != nil {
				return nil, err
			}
			s, err := begin(dir, &f)
			if err != nil {
				return nil, err
			}
			return s.end, nil
		}
	}
	return c
}

// served is a live run whose control is served, and watched over.
type served struct {
	world   closer
	server  *control.Server
	watcher *exec.Cmd
	bye     io.WriteCloser
}

// closer is a world that can be let go of.
type closer interface {
	control.World
	io.Closer
}

func begin(dir string, f *controlFlags) (*served, error) {
	return watched(control.NewLive(dir, f.onDeath == "stay"), f, dir)
}

// watched serves a world, and starts the process that outlives us; args name what it watches over.
func watched(w closer, f *controlFlags, args ...string) (*served, error) {
	s := &served{world: w}
	var err error
	if s.server, err = control.Listen(f.socket, s.world); err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err == nil {
		s.watcher = exec.Command(exe, append([]string{"watch", "--on-death", f.onDeath}, args...)...)
		s.watcher.Stderr = os.Stderr
		s.watcher.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what the terminal kills it survives
		if s.bye, err = s.watcher.StdinPipe(); err == nil {
			err = s.watcher.Start()
		}
	}
	if err != nil {
		s.server.Close()
		return nil, fmt.Errorf("nobody can watch over the run: %w", err)
	}
	return s, nil
}

func (s *served) end() {
	s.server.Close()
	s.world.Close()
	io.WriteString(s.bye, "bye\n")
	s.bye.Close()
	s.watcher.Wait()
}

// serve serves the control of a live run until that has ended or a signal comes. A run that is then paused goes on or
// stays, as for a daemon that dies.
func serve(dir string, f *controlFlags) error {
	if err := f.check(); err != nil {
		return &usageError{exitUsage, err}
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, unix.SIGTERM)
	s, err := begin(dir, f)
	if err != nil {
		return err
	}
	defer s.end()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return leave(dir, f.onDeath == "stay", "it has ended")
		case <-tick.C:
			if !shm.Mapped(dir) {
				return nil
			}
		}
	}
}

// watchCmd is the process that outlives a daemon which is killed.
func watchCmd() *cobra.Command {
	var onDeath, work string
	c := &cobra.Command{
		Use:    "watch DIR",
		Short:  "Watch over a run whose daemon may die",
		Hidden: true,
		Args:   exactly(1, "a trace"),
		RunE: func(_ *cobra.Command, a []string) error {
			signal.Ignore(unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGTERM)
			in := bufio.NewReader(io.LimitReader(os.Stdin, 32))
			line, _ := in.ReadString('\n')
			if work != "" && line != "" && line != "bye\n" {
				o, err := outliving(a[0], work, line)
				if err != nil {
					return err
				}
				line, _ = in.ReadString('\n')
				if line != "bye\n" {
					return o.take(onDeath == "stay")
				}
			}
			if line == "bye\n" {
				return nil
			}
			if work != "" { // it died before the program was started
				forget(work)
				return nil
			}
			return leave(a[0], onDeath == "stay", "it was killed")
		},
	}
	c.Flags().StringVar(&onDeath, "on-death", "go", "")
	c.Flags().StringVar(&work, "work", "", "")
	return c
}

// leave does what is to be done when the daemon is gone, and says so.
func leave(dir string, stay bool, why string) error {
	name := trace.Clean(filepath.Base(dir))
	r, err := pause.Open(dir)
	if errors.Is(err, shm.ErrNoControl) || errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "replayd: %s; the run %s has ended, too\n", why, name)
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	paused := r.Paused()
	if paused && stay {
		fmt.Fprintf(os.Stderr, "replayd: %s; the run %s stays paused: prophet ctl %s resume\n", why, name, trace.Clean(dir))
		return nil
	}
	// Also where it is not paused: the daemon may have died while it resumed.
	if _, err := r.Resume(); err != nil && !errors.Is(err, pause.ErrNotPaused) {
		return fmt.Errorf("%s, and the run %s cannot be resumed: %w", why, name, err)
	}
	from := ""
	if paused {
		from = " from its pause"
	}
	fmt.Fprintf(os.Stderr, "replayd: %s; the run %s goes on%s, and records\n", why, name, from)
	return nil
}
