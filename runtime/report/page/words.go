package page

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"prophet/runtime/report"
	"prophet/runtime/words"
)

// What the pages' own text needs.
var funcs = template.FuncMap{
	"duration": duration,
	"bytes":    words.Bytes,
	"size":     func(n uint64) string { return words.Bytes(int64(min(n, 1<<62))) },
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
		return fmt.Sprintf("bytes read explained, of %s", words.Bytes(int64(min(c.All, 1<<62))))
	}
	return fmt.Sprintf("bytes written explained, of %s", words.Bytes(int64(min(c.All, 1<<62))))
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
