package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"prophet/runtime/manual"
)

// things are what people come for, in the order in which help shows them: what it is called, how it is done, and which
// commands belong to it.
var things = []struct{ id, what, how, commands string }{
	{"record", "Record what a program does", "prophet record -o app.prophet -- ./app args", "record level flight recover"},
	{"again", "Run a failure again, as often as it takes", "prophet record --until-fail --chaos auto -o fail.prophet -- ./app\nreplayd --trace fail.prophet", "ctl"},
	{"predict", "Say how long it would take on another machine", "prophet predict app.prophet --target local,cpus=1 --target ssh://me@host", "predict calibrate sense"},
	{"see", "See what it did, who waited for whom, and where time went", "prophet info app.prophet\nprophet report app.prophet -o app.html\nprophet export app.prophet --pprof app.pb.gz", "info report diff dump export calls"},
	{"share", "Share a trace, without what is private", "prophet scrub -o share.prophet app.prophet", "scrub pack unpack verify"},
}

// long opens the help: the things people come for.
func long() string {
	var b strings.Builder
	b.WriteString("Prophet records what every thread of every process of a run asked of the machine, in which order it took its\n" +
		"locks, and what the surroundings answered. No recompiling, no privileges.\n\n")
	for _, t := range things {
		fmt.Fprintf(&b, "  %s:\n", t.what)
		for _, line := range strings.Split(t.how, "\n") {
			fmt.Fprintf(&b, "      %s\n", line)
		}
	}
	b.WriteString("\nExit status: 0 good, 1 damaged or different, 2 usage. record: the program's own; 125 when Prophet itself failed,\n" +
		"126 when the program cannot be executed, 127 when it cannot be found.")
	return b.String()
}

// dressed is the tree of commands with each below the thing it is for, and with what makes man pages of it. A command that
// no thing names is listed behind them.
func dressed() *cobra.Command {
	c := root()
	for _, t := range things {
		c.AddGroup(&cobra.Group{ID: t.id, Title: t.what + ":"})
		for _, name := range strings.Fields(t.commands) {
			for _, sub := range c.Commands() {
				if sub.Name() == name {
					sub.GroupID = t.id
				}
			}
		}
	}
	c.AddCommand(manual.Command(c))
	return c
}
