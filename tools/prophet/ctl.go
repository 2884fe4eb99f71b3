package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"prophet/replayd/client"
	"prophet/replayd/control"
	"prophet/replayd/proto"
	"prophet/runtime/trace"
)

func ctlCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ctl SOCKET|PID|TRACE COMMAND [args]",
		Short: "Pause, resume and look into a run",
		Long: `Controls a run through the socket that replayd serves (--control SOCKET). A run that is being recorded can also be
named by a pid or its trace: it then needs no daemon.

  status                    what every thread is doing
  pause, resume             stop all threads and the program's clocks; let them go on. The program does not notice
  continue                  let them go on, and wait until the run stands again: at a break, or it has ended
  clock                     what the program's clocks show
  run-to THREAD EVENT       let it go until thread p0/1 has had that many events
  run-to 1.5s               … until that time since the start of the run
  run-to MARK               … until the program makes that mark
  step [THREAD [COUNT]]     one event of a thread, or of all
  break call NAME [THREAD], break object OBJECT [THREAD]; with --clear: no longer
  detach                    take off the harness: all threads go on freely, recording

continue, run-to, step, break and detach need a re-execution.

Exit status: 0; 1 when it cannot be done; 2 usage.`,
		Example: "  prophet ctl 4711 pause\n  prophet ctl /tmp/app.sock status --json",
		Args:    cobra.ArbitraryArgs,
	}
	clear := c.Flags().Bool("clear", false, "break: take the break away")
	c.Flags().BoolVar(&asJSON, "json", false, "print the daemon's answer, one JSON object")
	c.RunE = func(cmd *cobra.Command, a []string) error {
		if len(a) < 2 {
			return usage("%s wants a socket, a pid or a trace, and a command (see `%s --help`)", cmd.CommandPath(), cmd.CommandPath())
		}
		r, err := request(a[1], a[2:], *clear)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		answer, err := ask(ctx, a[0], r)
		if err != nil {
			var e *proto.Error
			if asJSON && errors.As(err, &e) {
				refused := proto.Refuse(0, err)
				printJSON(&refused)
				return &status{exitDamaged, nil}
			}
			return err
		}
		if asJSON {
			return printJSON(answer)
		}
		out := bufio.NewWriter(os.Stdout)
		answerText(out, answer)
		return out.Flush()
	}
	return c
}

// request is the request of a command line.
func request(do string, a []string, clear bool) (proto.Request, error) {
	r := proto.Request{Do: proto.Do(do)}
	bad := func() (proto.Request, error) {
		return r, usage("%s %s: see `prophet ctl --help`", do, strings.Join(a, " "))
	}
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 10, 63)
		if err != nil {
			return 0
		}
		return n
	}
	if clear && r.Do != proto.DoBreak {
		return r, usage("--clear is for break")
	}
	switch r.Do {
	case proto.DoStatus, proto.DoPause, proto.DoResume, proto.DoContinue, proto.DoClock, proto.DoDetach:
		if len(a) != 0 {
			return bad()
		}
	case proto.DoRunTo:
		switch len(a) {
		case 1:
			if d, err := time.ParseDuration(a[0]); err == nil && d > 0 {
				r.TimeNS = uint64(d)
			} else {
				r.Mark = a[0]
			}
		case 2:
			r.Thread, r.Event = a[0], number(a[1])
			if r.Event == 0 {
				return bad()
			}
		default:
			return bad()
		}
	case proto.DoStep:
		if len(a) > 2 {
			return bad()
		}
		if len(a) > 0 {
			r.Thread = a[0]
		}
		if len(a) > 1 {
			if r.Count = number(a[1]); r.Count == 0 {
				return bad()
			}
		}
	case proto.DoBreak:
		if len(a) < 2 || len(a) > 3 {
			return bad()
		}
		switch a[0] {
		case "call":
			r.Call = a[1]
		case "object":
			r.Object = a[1]
		default:
			return bad()
		}
		if len(a) == 3 {
			r.Thread = a[2]
		}
		r.Clear = clear
	default:
		return r, usage("there is no command %q: status, pause, resume, continue, clock, run-to, step, break, detach", trace.Clean(do))
	}
	return r, nil
}

// ask puts it to a daemon, or does it itself for a run that is named otherwise.
func ask(ctx context.Context, where string, r proto.Request) (*proto.Answer, error) {
	if st, err := os.Stat(where); err == nil && st.Mode()&os.ModeSocket != 0 {
		c, err := client.Dial(where)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		return c.Do(ctx, r)
	}
	w, err := control.Locate(where)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	a := &proto.Answer{OK: true}
	switch r.Do {
	case proto.DoStatus:
		a.Status, err = w.Status()
	case proto.DoClock:
		a.Clock, err = w.Clock()
	case proto.DoPause:
		a.Stop, err = w.Pause(ctx)
	case proto.DoResume:
		a.Stop, err = w.Resume(ctx)
	case proto.DoContinue:
		a.Stop, err = w.Continue(ctx)
	case proto.DoRunTo:
		a.Stop, err = w.RunTo(ctx, r.Thread, r.Event, r.TimeNS, r.Mark)
	case proto.DoStep:
		a.Stop, err = w.Step(ctx, r.Thread, r.Count)
	case proto.DoBreak:
		a.Stop, err = w.Break(ctx, r.Object, r.Call, r.Thread, r.Clear)
	case proto.DoDetach:
		a.Stop, err = w.Detach(ctx)
	}
	return a, err
}

func answerText(w io.Writer, a *proto.Answer) {
	switch {
	case a.Status != nil:
		statusText(w, a.Status)
	case a.Clock != nil:
		c := a.Clock
		fmt.Fprintf(w, "the program's clocks show %s, %v after its start", time.Unix(0, int64(c.RealNS)).Format("2006-01-02 15:04:05.000000"), time.Duration(c.SinceNS))
		if c.BehindNS > 0 {
			fmt.Fprintf(w, ", and are %v behind", time.Duration(c.BehindNS))
		}
		if c.Paused {
			fmt.Fprint(w, "; they stand still")
		}
		fmt.Fprintln(w)
	case a.Stop != nil:
		s := a.Stop
		fmt.Fprint(w, trace.Clean(s.Reason))
		if s.Thread != "" {
			fmt.Fprintf(w, ": thread %s, event %d", trace.Clean(s.Thread), s.Event)
			if s.Call != "" {
				fmt.Fprintf(w, ", %s", trace.Clean(s.Call))
			}
		}
		if s.Object != "" {
			fmt.Fprintf(w, ", waits at %s", trace.Clean(s.Object))
			if s.For != "" {
				fmt.Fprintf(w, " for %s's turn", trace.Clean(s.For))
			}
		}
		if s.TookNS > 0 {
			fmt.Fprintf(w, " in %v", time.Duration(s.TookNS).Round(time.Microsecond))
		}
		if s.Halted > 0 {
			fmt.Fprintf(w, ", %s by a signal", plural(s.Halted, "process"))
		}
		for _, tid := range s.Moving {
			fmt.Fprintf(w, "\nthread %d could not be stopped", tid)
		}
		fmt.Fprintln(w)
	}
}

func statusText(w io.Writer, s *proto.Status) {
	fmt.Fprintf(w, "%s, a %s", trace.Clean(s.Trace), trace.Clean(s.World))
	if s.Paused {
		fmt.Fprint(w, ", paused")
	}
	fmt.Fprintf(w, "\n%-16s %8s %8s %12s  %-8s %s\n", "thread", "pid", "tid", "events", "state", "doing")
	for _, t := range s.Threads {
		name := trace.Clean(t.Name)
		if name == "" {
			name = "-"
		}
		doing := ""
		switch {
		case t.Object != "":
			doing = fmt.Sprintf("waits in %s for turn %d at %s, which is at %d", trace.Clean(t.Call), t.Turn, trace.Clean(t.Object), t.At)
			if t.For != "" {
				doing += ": " + trace.Clean(t.For) + "'s"
			}
		case t.Call != "" && t.SinceNS == 0:
			doing = "at " + trace.Clean(t.Call)
		case t.Call != "":
			doing = fmt.Sprintf("in %s for %v", trace.Clean(t.Call), time.Duration(t.SinceNS).Round(time.Microsecond))
		case t.Last != "":
			doing = trace.Clean(t.Last) + " was last"
		}
		fmt.Fprintf(w, "%-16s %8d %8d %12d  %-8s %s\n", name, t.PID, t.TID, t.Event, trace.Clean(t.State), doing)
	}
	for _, b := range s.Breaks {
		fmt.Fprintf(w, "breaks at %s\n", trace.Clean(b))
	}
}
