package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"prophet/runtime/run"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

func attachCmd() *cobra.Command {
	var asJSON, watch bool
	var ctl controlFlags
	var every time.Duration
	c := &cobra.Command{
		Use:   "attach PID|TRACE",
		Short: "Show what every thread of a live run is doing",
		Long: `Reads along the run's rings: how many events each thread has had, which call it is inside of and since when, or which was
its last one. The run does not notice. With --control it serves the control protocol until the run has
ended; prophet ctl speaks it.

Exit status: 0; 1 when the run is not live.`,
		Args: exactly(1, "a pid or a trace"),
		RunE: func(_ *cobra.Command, a []string) error {
			dir, err := run.Locate(a[0])
			if err != nil {
				return err
			}
			if ctl.socket != "" {
				return serve(dir, &ctl)
			}
			w, err := run.Attach(dir)
			if err != nil {
				return err
			}
			defer w.Close()
			if !watch {
				_, err := show(w, asJSON, false)
				return err
			}
			return follow(w, asJSON, max(every, 50*time.Millisecond))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, one line a look")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "look again and again, until the run has ended")
	ctl.add(c)
	c.Flags().DurationVar(&every, "every", time.Second, "how often to look")
	return c
}

// follow looks until no thread is left or the person has seen enough.
func follow(w *run.Watcher, asJSON bool, every time.Duration) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, unix.SIGTERM)
	clear := !asJSON && term.IsTerminal(os.Stdout)
	for {
		alive, err := show(w, asJSON, clear)
		if err != nil || alive == 0 {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-time.After(every):
		}
	}
}

// show prints one look; it returns how many threads are alive.
func show(w *run.Watcher, asJSON, clear bool) (int, error) {
	s, err := w.Look()
	if err != nil {
		return 0, err
	}
	alive := 0
	for i := range s.Threads {
		if !s.Threads[i].Dead {
			alive++
		}
	}
	out := bufio.NewWriter(os.Stdout)
	if asJSON {
		if s.Threads == nil {
			s.Threads = []run.ThreadStatus{}
		}
		err = json.NewEncoder(out).Encode(s)
	} else {
		if clear {
			fmt.Fprint(out, "\x1b[H\x1b[J")
		}
		text(out, s)
	}
	return alive, errors.Join(err, out.Flush())
}

func text(w io.Writer, s *run.Status) {
	fmt.Fprintf(w, "%s: level %s", trace.Clean(s.Trace), s.Level)
	if s.Serial {
		fmt.Fprint(w, ", serial")
	}
	if s.Lost > 0 {
		fmt.Fprintf(w, ", %d lost", s.Lost)
	}
	fmt.Fprintf(w, "\n%-16s %8s %8s %12s  %s\n", "thread", "pid", "tid", "events", "doing")
	for _, t := range s.Threads {
		doing := "running"
		switch {
		case t.Dead:
			doing = "killed"
		case t.Call != "":
			doing = fmt.Sprintf("in %s for %v", t.Call, round(t.SinceNS))
		case t.Last != "":
			doing = fmt.Sprintf("running; %s ended %v ago", t.Last, round(t.LastNS))
		}
		fmt.Fprintf(w, "%-16s %8d %8d %12d  %s\n", t.Name, t.PID, t.TID, t.Events, doing)
	}
}

func round(ns int64) time.Duration {
	d := time.Duration(ns)
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d
}
