package run

import (
	"fmt"

	"github.com/spf13/cobra"

	"prophet/runtime/trace"
)

// LevelCommand is the command line of `level`, the same in every program that has it.
func LevelCommand(program string) *cobra.Command {
	return &cobra.Command{
		Use:   "level PID|TRACE off|order|full",
		Short: "Switch what a live run records, at once",
		Long: `off records nothing, order only what orders threads (locks, stdio locks, threads and processes, signals, marks), full
all. The switch takes effect at each thread's next call and is noted in the trace.

Exit status: 0; 1 when the run cannot be switched.`,
		Example: "  " + program + " level 4711 order",
		RunE: func(_ *cobra.Command, a []string) error {
			level, ok := trace.LevelByName(a[1])
			if !ok {
				return fmt.Errorf("there is no level %s; levels are off, order, full", a[1])
			}
			dir, err := Locate(a[0])
			if err != nil {
				return err
			}
			was, err := SetLevel(dir, level)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %s (was %s)\n", trace.Clean(dir), a[1], trace.LevelName(was))
			return nil
		},
	}
}
