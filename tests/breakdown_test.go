package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/breakdown"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/recovery"
	"prophet/runtime/report"
	"prophet/tests/browser"
)

// halves are a recorded run and an issue of it here.
type halves struct {
	home, here *breakdown.Split
	info       *demand.Info
	program    string
}

// splitOf is where the time of a recorded run went, and that of an issue of it here.
func splitOf(t *testing.T, path string, args ...string) halves {
	t.Helper()
	tr, _, _, err := recovery.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	dir := t.TempDir()
	h := halves{program: filepath.Join(dir, "program")}
	log := filepath.Join(dir, "log")
	var at bytes.Buffer
	if h.info, err = demand.Compile(tr, demand.Options{Record: demand.RecordCost, Home: &at}, h.program); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(built(t, "replayd"), append([]string{"issue", "--program", h.program, "--log", log, "--dir", dir}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// Who asks does not change what is issued.
	unasked := filepath.Join(dir, "unasked")
	if _, err = demand.Compile(tr, demand.Options{Record: demand.RecordCost}, unasked); err != nil {
		t.Fatal(err)
	}
	a, _ := demand.Sum(h.program)
	if b, err := demand.Sum(unasked); err != nil || a != b {
		t.Errorf("the program is another when home's times are asked for: %v", err)
	}
	f, err := os.Open(h.program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	p, err := breakdown.Load(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	if h.home, err = p.Home(&at); err != nil {
		t.Fatal(err)
	}
	l, err := issued.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if h.here, err = p.Issue(l, 1); err != nil {
		t.Fatal(err)
	}
	return h
}

// The path of a real program is as long as its run, at home and in an issue, and the sleeps that are on it are found on both.
func TestBreakdown(t *testing.T) {
	visited := 0
	for _, x := range []struct {
		argv  []string
		sleep float64 // on the path, seconds
	}{{[]string{"barrier", "4", "100"}, 0}, {[]string{"pipeline", "4"}, 0}, {[]string{"kinds"}, 0.15}} {
		visited++
		h := splitOf(t, recordedProgram(t, x.argv[0], x.argv[1:]...))
		late := func(s *breakdown.Split) bool {
			return x.sleep > 0 && float64(s.Path[breakdown.Sleep])/1e9 > x.sleep*6/5
		}
		for try := 0; try < 9 && (late(h.home) || late(h.here)); try++ { // who slept was woken late
			h = splitOf(t, recordedProgram(t, x.argv[0], x.argv[1:]...))
		}
		for side, s := range map[string]*breakdown.Split{"home": h.home, "here": h.here} {
			if s.Partial || s.Cut > 0 || s.Path.Sum() != s.NS || s.NS == 0 {
				t.Errorf("%s, %s: the path takes %d ns of %d; %d cut", x.argv[0], side, s.Path.Sum(), s.NS, s.Cut)
			}
			if got := float64(s.Path[breakdown.Sleep]) / 1e9; math.Abs(got-x.sleep) > x.sleep/5 {
				t.Errorf("%s, %s: %.3f s of the path are sleep, not %.3f", x.argv[0], side, got, x.sleep)
			}
			for th, c := range s.Threads {
				if c.Sum() > s.NS*11/10 || s.On[th].Sum() > s.NS {
					t.Errorf("%s, %s: thread %d takes %d ns, %d of the path, of %d", x.argv[0], side, th, c.Sum(), s.On[th].Sum(), s.NS)
				}
			}
		}
	}
	if visited != 3 {
		t.Errorf("%d programs", visited)
	}
}

// Threads that compute all the time wait for a core where there is one for both.
func TestBreakdownReady(t *testing.T) {
	path := recordedProgram(t, "burn", "2", "150")
	h := splitOf(t, path, "--cpus", "0")
	if ready := h.here.Path[breakdown.Ready]; ready < h.here.NS/4 {
		t.Errorf("of %d ns %d are without a core, on the path", h.here.NS, ready)
	}
	// What they compute stays the same, however long they wait for it. It is a little less than the 2 x 150 ms that they
	// look for at their clocks: what recording cost is not demand.
	var home, here uint64
	for th := range h.home.Threads {
		home += h.home.Threads[th][breakdown.CPU]
		here += h.here.Threads[th][breakdown.CPU]
	}
	if home < 280e6 || here < home*3/4 || here > home*3/2 {
		t.Errorf("%d ns are computed at home, %d here", home, here)
	}
}

// A shell that waits for its children, who end with a signal, waits: at home and here, and computes nothing meanwhile.
func TestBreakdownShell(t *testing.T) {
	rec := Cmd{Argv: []string{"dash", "-c", "(for i in 1 2 3 4; do sleep 0.1; done) & wait; sleep 0.1; true"}}.Recorded(t)
	h := splitOf(t, rec.Trace)
	for side, s := range map[string]*breakdown.Split{"home": h.home, "here": h.here} {
		if s.Path[breakdown.Sleep] < 450e6 || s.Path[breakdown.CPU] > 200e6 {
			t.Errorf("%s: of the path of %d ns %d are sleep, %d computing, %d ready", side, s.NS, s.Path[breakdown.Sleep], s.Path[breakdown.CPU], s.Path[breakdown.Ready])
		}
		if s.Threads[0][breakdown.Waits] < 400e6 {
			t.Errorf("%s: the shell waits for %d ns", side, s.Threads[0][breakdown.Waits])
		}
	}
	if cpu := h.info.CPU; cpu > 150*time.Millisecond {
		t.Errorf("%v of computing are demanded", cpu)
	}
}

// A program whose sleeps were taken out does not sleep; one that nothing was changed of is the same.
func TestVary(t *testing.T) {
	h := splitOf(t, recordedProgram(t, "kinds"))
	other := filepath.Join(t.TempDir(), "other")
	if err := demand.Vary(h.program, other, func(uint64, *cabi.ProgOp) bool { return false }); err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile(h.program)
	if b, _ := os.ReadFile(other); !bytes.Equal(a, b) {
		t.Error("nothing was changed, and it is another")
	}
	sleeps := 0
	if err := demand.Vary(h.program, other, func(_ uint64, o *cabi.ProgOp) bool {
		if o.Code == cabi.OpSleep {
			o.A = 0
			sleeps++
		}
		return o.Code == cabi.OpSleep
	}); err != nil {
		t.Fatal(err)
	}
	if err := demand.Verify(other); err != nil || sleeps < 2 {
		t.Errorf("%d sleeps; %v", sleeps, err)
	}
	out, err := exec.Command(built(t, "replayd"), "issue", "--program", other, "--parts", "--json", "--dir", t.TempDir()).Output()
	var r issuedHere
	if err != nil || json.Unmarshal(out, &r) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, p := range r.Parts {
		if p.Class == "sleep" && p.Seconds > 0.02 {
			t.Errorf("it slept %g s", p.Seconds)
		}
	}
}

// prophet predict says where the time goes on both sides, what decides, and what would change it, in text and in JSON.
func TestPredictWhere(t *testing.T) {
	var path string
	predict := func(args ...string) string {
		cmd := exec.Command(built(t, "prophet"), append([]string{"predict", path, "--target", "local,cpus=1", "-n", "1", "--home-runs", "0"}, args...)...)
		cmd.Env = append(os.Environ(), "PROPHET_REPLAYD="+built(t, "replayd"))
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil || said.Len() > 0 {
			t.Fatalf("%v: %s", err, said.String())
		}
		return string(out)
	}
	sum := func(list []report.Part, class string) (home, there float64) {
		for _, x := range list {
			if class == "" || x.Class == class {
				home += x.Home
				there += x.Target
			}
		}
		return home, there
	}
	// How late who slept gets a processor, and whether a disk is busy, the machine's others decide.
	var p *report.Prediction
	var home, there float64
	var sleeps int
	for try := 0; ; try++ {
		path = recordedProgram(t, "kinds")
		var err error
		p, err = report.ReadPrediction(strings.NewReader(predict("--json", "--what-if", "2")))
		must(t, err)
		home, there = sum(p.Breakdown, "sleep")
		sleeps = slices.IndexFunc(p.Sensitivity, func(x report.Sensitivity) bool { return x.Resource == "sleeps" && x.Issues == 2 && x.Low < -0.1 }) // of two issues one may meet a busy disk
		if sleeps >= 0 && max(home, there) < 0.18 || try == 2 {
			break
		}
	}
	if home, there := sum(p.Path, ""); math.Abs(home-p.Recorded) > 1e-6 || math.Abs(there-p.Issued) > 1e-3 {
		t.Errorf("the paths take %g and %g s of %g and %g", home, there, p.Recorded, p.Issued)
	}
	if math.Abs(home-0.15) > 0.03 || math.Abs(there-0.15) > 0.03 {
		t.Errorf("%g s of sleep at home, %g there", home, there)
	}
	// Among the first two: a disk that others keep busy takes as long.
	slept := slices.IndexFunc(p.Critical, func(x report.Critical) bool {
		return x.Class == "sleep" && x.Call == "usleep" && x.At != "" && x.Seconds > 0.09
	})
	if slept < 0 || slept > 1 || len(p.HomeCritical) == 0 {
		t.Errorf("%+v", p.Critical)
	}
	if sleeps < 0 || sleeps > 1 || len(p.Notes) > 0 {
		t.Errorf("%+v %v", p.Sensitivity, p.Notes)
	}
	text := predict("--what-if", "0")
	for _, want := range []string{"Where the time of all threads goes", "  sleep    sleeping", "The path that decides", "p0 sleep, usleep in main", "What would change it most", "sleeps: taking no time             at most"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("colours where nobody looks")
	}
}

// A report draws what prophet predict really says.
func TestPredictPage(t *testing.T) {
	dir := t.TempDir()
	path := recordedProgram(t, "kinds")
	predict := exec.Command(built(t, "prophet"), "predict", path, "--target", "local,cpus=1", "-n", "1", "--home-runs", "0", "--what-if", "1", "--json")
	predict.Env = append(os.Environ(), "PROPHET_REPLAYD="+built(t, "replayd"))
	said, err := predict.Output()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "p.json"), said, 0o600))
	if _, stderr, code := prophetRun(t, dir, "report", path, "-o", "r.html", "--prediction", "p.json"); code != 0 || stderr != "" {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	want, err := report.ReadPrediction(bytes.NewReader(said))
	must(t, err)
	b, err := browser.Start()
	must(t, err)
	t.Cleanup(b.Close)
	for _, scheme := range []string{"light", "dark"} {
		p := opened(t, b, filepath.Join(dir, "r.html"), 1280, 900, scheme)
		// Both bars are as long as their sides' times.
		widths := value[[]float64](t, p, `[...document.querySelectorAll("#prediction-slot .lines .bar")].map(b => [...b.children].reduce((a, i) => a + i.getBoundingClientRect().width, 0) / b.getBoundingClientRect().width)`)
		longer := max(want.Recorded, want.Issued)
		if len(widths) != 2 || math.Abs(widths[0]-want.Recorded/longer) > 0.02 || math.Abs(widths[1]-want.Issued/longer) > 0.02 {
			t.Errorf("the bars take %v, for %g and %g s", widths, want.Recorded, want.Issued)
		}
		heads := value[[]string](t, p, `[...document.querySelectorAll("#prediction-slot h3")].map(h => h.textContent)`)
		if got := strings.Join(heads, ", "); got != "Where the difference comes from, All threads, by class, By thread, What the path is made of, What would change it most" {
			t.Errorf("it has %s", got)
		}
		rows := func(caption string) []string {
			return value[[]string](t, p, `[...document.querySelectorAll("#prediction-slot table")].filter(x => x.caption.textContent.startsWith(`+strconv.Quote(caption)+`)).flatMap(x => [...x.tBodies[0].rows].map(r => r.innerText.replace(/\s+/g, " ")))`)
		}
		shown := func(seconds float64) string { return value[string](t, p, fmt.Sprintf("dur(%g)", seconds*1e9)) }
		classes := map[string]float64{}
		for _, x := range want.Path {
			classes[x.Class] += x.Target
		}
		if got := rows("The critical path by class"); len(got) != len(classes) || !strings.Contains(strings.Join(got, "|"), " "+shown(classes["sleep"])+" ") {
			t.Errorf("of %v it shows %q", classes, got)
		}
		// What it slept is the longest but where others keep the disk busy.
		slept := slices.IndexFunc(want.Critical, func(x report.Critical) bool { return x.Class == "sleep" && x.Thread == "p0" })
		if slept < 0 {
			t.Fatalf("nobody sleeps: %+v", want.Critical)
		}
		if got, x := rows("What takes longest on the critical path"), want.Critical[slept]; len(got) <= slept || got[slept] != fmt.Sprintf("p0 Sleeping usleep %s %s %d %s", x.At, shown(x.Seconds), x.Times, shown(x.Longest)) {
			t.Errorf("the path is %q; %+v", got, x)
		}
		if got, x := rows("By how much"), want.Sensitivity; len(got) != len(x) || len(x) == 0 || !strings.HasPrefix(got[0], x[0].Resource+": "+x[0].How+" −"+shown(-x[0].Seconds)+" 1 issue") {
			t.Errorf("what changes it is %q; %+v", got, x)
		}
		// The other side's path, and a thread's classes.
		must(t, p.Eval(`for (const s of document.querySelectorAll("#prediction-slot select")) { s.value = "here"; s.dispatchEvent(new Event("change")); }`, nil))
		if got := rows("What takes longest on the critical path"); len(got) == 0 || !slices.ContainsFunc(got[:min(len(got), 2)], func(s string) bool { return strings.Contains(s, "usleep") }) {
			t.Errorf("here the path is %q", got)
		}
		must(t, p.Eval(`[...document.querySelectorAll("#prediction-slot .more[aria-expanded]")][0].click()`, nil))
		must(t, p.Settle())
		if n := value[int](t, p, `document.querySelectorAll("#prediction-slot tr.detail tbody tr").length`); n < 2 {
			t.Errorf("a thread has %d classes", n)
		}
		accessible(t, p)
	}
	p := opened(t, b, filepath.Join(dir, "r.html"), 360, 740, "light")
	if w := value[int](t, p, `document.documentElement.scrollWidth`); w > 360 {
		t.Errorf("the page is %d pixels wide on a phone of 360", w)
	}
	accessible(t, p)
}
