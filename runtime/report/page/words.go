package page

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"prophet/runtime/report"
	"prophet/runtime/words"
)

// What the pages' own text needs.
var funcs = template.FuncMap{
	"duration": duration,
	"bytes":    func(n int64) string { return size(uint64(max(n, 0))) },
	"size":     size,
	"number":   func(n uint64) string { return words.Grouped(n) },
	"count":    func(n int) string { return words.Grouped(n) },
	"plural":   func(n int, one string) string { return words.Plural(n, one) },
	"date":     date,
	"share":    share,
	"cover":    coverWords,
	"per":      per,
}

func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2 January 2006 15:04:05 UTC")
}

func share(seen, all uint64) string {
	if all == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(seen)/float64(all))
}

func coverWords(c report.Cover) string {
	switch c.What {
	case "cpu":
		return fmt.Sprintf("CPU time explained, of %s", duration(int64(min(c.All, 1<<62))))
	case "read":
		return fmt.Sprintf("bytes read explained, of %s", size(c.All))
	}
	return fmt.Sprintf("bytes written explained, of %s", size(c.All))
}

// size is a number of bytes in three digits, as the page's script says it.
func size(n uint64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if v := float64(n) / float64(int(1)<<(30-10*i)); v >= 1000 {
			return words.Grouped(uint64(v+.5)) + " " + unit
		} else if v >= 1 {
			return strconv.FormatFloat(v, 'f', max(0, 2-int(math.Log10(v))), 64) + " " + unit
		}
	}
	return words.Grouped(n) + " B"
}

// duration is a time in the letters that a page has and a terminal may lack.
func duration(ns int64) string { return strings.Replace(words.Duration(ns), " us", " µs", 1) }

// per is CPU time as a number of CPUs, of those there are. A process has used more than that when it took longer to load than to run.
func per(cpu, ns int64, cpus int) string {
	if ns <= 0 {
		return "–"
	}
	if cpus > 0 && cpu > int64(cpus)*ns {
		return "with what came before the first event"
	}
	return fmt.Sprintf("%.2f CPUs on average", float64(cpu)/float64(ns))
}
