package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"prophet/runtime/term"
	"prophet/runtime/trace"
)

func verifyCmd() *cobra.Command {
	var asJSON bool
	var jobs int
	c := &cobra.Command{
		Use:   "verify TRACE",
		Short: "Check every byte of a trace",
		Long: `Reads all of a trace: checksums of headers and payloads, every record, every input. Each damage is named with file,
offset and reason; reading goes on behind it.

Exit status: 0 good, 1 damaged, 2 usage.`,
		Args: args(1, "one trace"),
		RunE: func(_ *cobra.Command, a []string) error {
			t, _, err := open(a[0])
			if err != nil {
				return err
			}
			defer t.Close()
			p := term.NewProgress("verifying " + a[0])
			res, err := t.Verify(jobs, p.Set)
			p.Done()
			if err != nil {
				return err
			}
			if asJSON {
				damage := []string{}
				for _, d := range res.Damage {
					damage = append(damage, d.Error())
				}
				err = printJSON(map[string]any{"good": res.Damaged == 0, "events": res.Events, "records": res.Records, "bytes": res.Bytes, "damaged": res.Damaged, "damage": damage})
				if err != nil {
					return err
				}
			} else {
				sayDamage(res.Damage, res.Damaged)
			}
			if res.Damaged > 0 {
				return &status{exitDamaged, fmt.Errorf("%s is damaged in %s; %s events can be read", a[0], plural(res.Damaged, "place"), grouped(res.Events))}
			}
			if !asJSON {
				fmt.Printf("%s is good: %s events in %s\n", trace.Clean(a[0]), grouped(res.Events), bytesText(res.Bytes))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	jobsFlag(c, &jobs)
	return c
}
