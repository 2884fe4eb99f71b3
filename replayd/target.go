package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"prophet/replayd/far"
)

// targetCmd is what home starts on a target, over whatever connection it has there.
func targetCmd() *cobra.Command {
	var o far.Options
	c := &cobra.Command{
		Use:   "target",
		Short: "Be the target of a prediction, over standard input and output",
		Long: `Speaks with prophet predict over standard input and output, issues what it sends, and removes everything when the
connection ends. prophet predict starts it by itself: --target ssh://HOST, or --target exec:COMMAND, with a COMMAND that
leads to a shell or to this.`,
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			return far.Keep(o, exe, serveName)
		},
	}
	c.Flags().StringVar(&o.Dir, "dir", "", "make its directory under this `directory`; default: where temporary files are")
	c.Flags().StringVar(&o.Private, "private", "", "use this `directory`, made for it alone, and remove it at the end")
	c.Flags().IntVar(&o.CPUs, "cpus", 0, "run on this `number` of CPUs")
	c.Flags().Float64Var(&o.Quota, "quota", 0, "take at most this much CPU time, in `CPUs`; needs control groups that can be written")
	return c
}

const serveName = "target-server"

// serveCmd is the process of a target that has the connection; targetCmd's is its keeper.
func serveCmd() *cobra.Command {
	return &cobra.Command{
		Use:    serveName + " DIR GROUP FROM",
		Hidden: true,
		Args:   cobra.ExactArgs(3),
		RunE: func(_ *cobra.Command, a []string) error {
			if err := far.Serve(a[0], a[1], a[2]); err != nil {
				return fmt.Errorf("target: %w", err)
			}
			return nil
		},
	}
}
