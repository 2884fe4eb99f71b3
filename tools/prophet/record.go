package main

import (
	"github.com/spf13/cobra"

	"prophet/runtime/run"
)

func recordCmd() *cobra.Command {
	c := run.Command("prophet")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &status{run.StatusOurs, err} })
	return c
}
