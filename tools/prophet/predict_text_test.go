package main

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"prophet/runtime/demand"
	"prophet/runtime/report"
)

// Help names everything that --json prints.
func TestPredictJSON(t *testing.T) {
	words := map[string]bool{}
	for _, w := range regexp.MustCompile(`[a-z_]+`).FindAllString(predictJSON, -1) {
		words[w] = true
	}
	seen := 0
	var look func(x reflect.Type)
	look = func(x reflect.Type) {
		for x.Kind() == reflect.Slice {
			x = x.Elem()
		}
		if x.Kind() != reflect.Struct || x.PkgPath() == "prophet/runtime/predict" {
			return
		}
		for i := range x.NumField() {
			f := x.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if seen++; name != "" && !words[name] {
				t.Errorf("%s.%s: %s is not in the help", x.Name(), f.Name, name)
			}
			look(f.Type)
		}
	}
	look(reflect.TypeFor[forecast]())
	if seen < 40 {
		t.Errorf("%d names", seen)
	}
}

// What a person reads: only what matters, in an order, nothing of a trace's that a terminal would obey.
func TestSayWhere(t *testing.T) {
	f := forecast{Prediction: report.Prediction{Target: "there", Predicted: 2, Issued: 2,
		Breakdown: []report.Part{{Thread: "p0\x1b[2J", Class: "disk", Home: 0.5, Target: 1.5}, {Thread: "p0", Class: "cpu", Home: 0.5, Target: 0.5}, {Thread: "p0", Class: "locks", Home: 0.0001}},
		Path:      []report.Part{{Thread: "p0", Class: "disk", Home: 0.5, Target: 1.5}, {Thread: "p0", Class: "cpu", Home: 0.5, Target: 0.5}},
		Critical: []report.Critical{{Thread: "p0", Class: "disk", Call: "fsync", Object: "/a\x1b]0;x\a", At: "main (a.c:3)", Seconds: 1.5, Longest: 0.2, Times: 1500},
			{Thread: "p0", Class: "cpu", Call: "fsync", Seconds: 0.5, Times: 1}, {Thread: "p0", Class: "sleep", Call: "usleep", Seconds: 0.001}},
		Sensitivity: []report.Sensitivity{{Resource: "syncs", How: "taking no time", Seconds: -1.4, Low: -1.5, High: -1.3, Issues: 3}, {Resource: "CPU", How: "10 % faster", Seconds: -0.05, Low: -0.05}},
		Notes:       []string{"a note"}}}
	var b bytes.Buffer
	f.sayWhere(&b, style{"<", ">"})
	want := `
<Where the time of all threads goes: at home in the recorded run, on there in an issue of 2.000 s>
                                          home      target   difference
  cpu      computing                500.000 ms  500.000 ms        +0 ns
  disk     files                    500.000 ms     1.500 s     +1.000 s

<The path that decides how long it takes>
                                          home      target   difference
  cpu      computing                500.000 ms  500.000 ms        +0 ns
  disk     files                    500.000 ms     1.500 s     +1.000 s
  longest on it there:
     1.500 s  p0 disk, fsync /a\x1b]0;x\x07 in main (a.c:3); 1,500 times, the longest 200.000 ms
  500.000 ms  p0 cpu, up to fsync

<What would change it most>
    -1.400 s  syncs: taking no time              -1.500 s to -1.300 s in 3 issues
  -50.000 ms  CPU: 10 % faster                   at most: so much of the path it is
note: a note
`
	if got := b.String(); got != want {
		t.Errorf("it says\n%s", got)
	}
	// What is not known of a place is left out.
	if got := criticalText(&report.Critical{Thread: "p1", Class: "ready"}); got != "p1 ready" {
		t.Errorf("%q", got)
	}
	p := predictor{info: &demand.Info{}}
	b.Reset()
	p.say(&b, []*forecast{{Prediction: report.Prediction{Target: "\x1b[2J", Predicted: 1, Low: 0.9, High: 1.1}, Issues: 3}})
	if got := b.String(); strings.Contains(got, "\x1b") || !strings.Contains(got, "1.000 s, between 900.000 ms and 1.100 s with 90 % certainty (3 issues)") {
		t.Errorf("%q", got)
	}
}
