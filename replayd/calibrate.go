package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"prophet/replayd/kernels"
)

// Segments with which the issuing loop is checked, unless it is not.
const (
	checkNS  = 1e6
	segments = 200
)

// calibrateCmd measures this machine for `prophet calibrate`. It prints JSON values: how far it is, and at last the machine.
func calibrateCmd() *cobra.Command {
	var dir string
	var long bool
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure this machine and print JSON; `prophet calibrate` is for people",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			o := kernels.Options{Dir: dir, CheckNS: checkNS, Segments: segments, Progress: func(done, all int) {
				fmt.Printf("{\"done\":%d,\"all\":%d}\n", done, all)
			}}
			if long {
				o.CheckNS, o.Segments = 1e7, 1000
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			m, err := kernels.Measure(ctx, o)
			if err != nil {
				return err
			}
			b, err := m.JSON()
			if err != nil {
				return err
			}
			var line bytes.Buffer
			if err := json.Compact(&line, b); err != nil {
				return err
			}
			fmt.Fprintf(os.Stdout, "{\"machine\":%s}\n", line.Bytes())
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "measure the disk under this directory, too")
	c.Flags().BoolVar(&long, "check-loop", false, "check the issuing loop with 1,000 segments up to 10 ms")
	return c
}
