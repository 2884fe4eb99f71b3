// Command prophet records runs of programs and shows what they did.
//
// Exit statuses: 0 good; 1 damaged or different; 2 usage. `prophet record` ends as the program it ran ends (128+n or the
// signal itself when a signal ended it); 125 is a failure of its own, 126 and 127 a program that cannot be
// executed or found.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"prophet/cabi"
	"prophet/runtime/recovery"
	"prophet/runtime/trace"
)

// status is an error that asks for an exit status; err nil: all has been said.
type status struct {
	code int
	err  error
}

func (s *status) Error() string {
	if s.err == nil {
		return ""
	}
	return s.err.Error()
}

const (
	exitDamaged = 1
	exitUsage   = 2
)

func usage(format string, args ...any) error { return &status{exitUsage, fmt.Errorf(format, args...)} }

func root() *cobra.Command {
	c := &cobra.Command{
		Use:           "prophet",
		Short:         "Record a run of a program, and see what it asked of the machine",
		Long:          long(),
		Version:       cabi.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			switch cmd.Name() {
			case "record", "manual": // which does so itself; which is part of a build
			default:
				recovery.Sweep()
			}
		},
	}
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%v (see `%s --help`)", err, cmd.CommandPath())
	})
	c.AddCommand(recordCmd(), infoCmd(), dumpCmd(), verifyCmd(), packCmd(), unpackCmd(), scrubCmd(), callsCmd(), recoverCmd(), flightCmd(), levelCmd(), ctlCmd(), exportCmd())
	c.AddCommand(predictCmd(), calibrateCmd(), senseCmd(), stopwatchCmd())
	c.AddCommand(reportCmd(), diffCmd())
	return c
}

// args checks the number of arguments, as a usage error.
func args(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if len(a) != n {
			return usage("%s wants %s (see `%s --help`)", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

func main() {
	err := dressed().Execute()
	if err == nil {
		return
	}
	code := exitDamaged
	var s *status
	if errors.As(err, &s) {
		code = s.code
		err = s.err
	} else if cobraUsage(err) {
		code = exitUsage
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prophet:", trace.CleanLines(err.Error()))
	}
	os.Exit(code)
}

// cobraUsage reports whether cobra itself did not understand the command line.
func cobraUsage(err error) bool {
	const unknown = "unknown command"
	return len(err.Error()) > len(unknown) && err.Error()[:len(unknown)] == unknown
}
