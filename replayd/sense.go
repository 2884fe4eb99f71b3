package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"prophet/replayd/issue"
	"prophet/runtime/sense"
)

// neighbourCmd is the neighbour that `prophet sense` runs a program beside.
func neighbourCmd() *cobra.Command {
	return &cobra.Command{Use: "neighbour", Hidden: true, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return issue.Neighbour() }}
}

// walkCmd finds the walk of memory with which the issuing loop minds company as much as a program does.
func walkCmd() *cobra.Command {
	var growth float64
	var company string
	c := &cobra.Command{
		Use:    "walk",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !(growth > 1 && growth < 100) || company != sense.OneCore && company != sense.Neighbour {
				return &usageError{exitUsage, errors.New("walk wants a growth above 1 in one_core or neighbour")}
			}
			w, err := fit(growth, company)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(w)
		},
	}
	c.Flags().Float64Var(&growth, "growth", 0, "")
	c.Flags().StringVar(&company, "company", "", "")
	return c
}

// fit searches how much memory the loop has to walk to grow as wanted. What each thread that comes onto a core has to bring back
// into the core's own caches costs the same for each line of it, so the growth is about linear in the memory, as long as it fits
// there: one measurement, one to see, and a few to correct. More than fits there is not tried: such a walk misses those caches alone, too,
// and takes what others on the machine leave it of the next, which differs threefold from one second to the next. A program that minds
// more than the most that fits gets that: how much CPU time it needs predictions find out themselves, the walk lets that
// change as the program's does from one minute to the next. nil: none was found.
func fit(growth float64, company string) (*sense.Walk, error) {
	const tries, enough, least = 6, 0.02, 64 << 10
	most := float64(footprint())
	bytes := most
	var best *sense.Walk
	for range tries {
		b, err := issue.CalibrateBurn(uint64(bytes))
		if err != nil {
			return nil, err
		}
		g, err := b.Growth(company == sense.Neighbour)
		if err != nil {
			return nil, err
		}
		// The nearest, if it is within half of what is wanted, or within what a measurement is sure of, or all that there is.
		near := math.Abs(g-growth) <= max((growth-1)/2, 0.04) || bytes == most && g > 1.005 && g < growth
		if near && (best == nil || math.Abs(g-growth) < math.Abs(best.Growth-growth)) {
			best = &sense.Walk{Company: company, Bytes: b.Bytes, Growth: g}
		}
		if math.Abs(g-growth) < enough*growth {
			break
		}
		next := bytes * 2 // the loop did not mind at all
		if g > 1.005 {
			next = bytes * (growth - 1) / (g - 1)
		}
		if next = min(max(next, bytes/4, least), bytes*2, most); next == bytes {
			break
		}
		bytes = next
	}
	return best, nil
}

// footprint is the most that a thread walks: what a core's own caches hold, so that one alone finds it there and each of two has to
// bring it back. Measured with xz -T2 on one core with 1 MiB of its own: walks of as much took what it took from one minute to the
// next (the two correlated by 0.89), those of 2 MiB did not.
func footprint() uint64 {
	const usual, low, high = 1 << 20, 256 << 10, 4 << 20
	for _, dir := range []string{"index3", "index2"} { // the last one that is of one core
		shared, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cache/" + dir + "/shared_cpu_list")
		size, err2 := os.ReadFile("/sys/devices/system/cpu/cpu0/cache/" + dir + "/size")
		if err != nil || err2 != nil || strings.TrimSpace(string(shared)) != "0" {
			continue
		}
		var n uint64
		if _, err := fmt.Sscanf(string(size), "%dK", &n); err == nil && n > 0 {
			return min(max(n<<10, low), high)
		}
	}
	return usual
}
