package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"prophet/cabi"
	"prophet/runtime/report"
	"prophet/runtime/report/page"
	"prophet/runtime/trace"
	"prophet/tests/browser"
)

// prophetRun runs the command line, and returns what it printed and its exit status.
func prophetRun(t testing.TB, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(built(t, "prophet"), args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// recordIn records a program that runs in a directory.
func recordIn(t testing.TB, dir, path string, argv ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, built(t, "prophet"), append([]string{"record", "-o", path, "--"}, argv...)...)
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // which it passes on
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("recording %v: %v: %s", argv, err, clip(string(out)))
	}
}

// opened opens a page in a browser of that size, and ends with the test. At its end the page must have told of no fault and
// have asked for nothing but itself.
func opened(t *testing.T, b *browser.Browser, file string, w, h int, scheme string) *browser.Page {
	t.Helper()
	p, err := b.Page()
	must(t, err)
	must(t, p.Size(w, h, w < 500))
	must(t, p.Media("prefers-color-scheme", scheme, "prefers-reduced-motion", "reduce"))
	t.Cleanup(func() {
		for _, f := range p.Faults() {
			t.Errorf("the page tells of a fault: %s", f)
		}
		if asked := p.Asked(); len(asked) != 1 || asked[0] != "file://"+file {
			t.Errorf("the page asked for %q, want itself alone", asked)
		}
	})
	must(t, p.Open(file))
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// value evaluates an expression in the page.
func value[T any](t testing.TB, p *browser.Page, expr string) T {
	t.Helper()
	var v T
	must(t, p.Eval(expr, &v))
	return v
}

func accessible(t *testing.T, p *browser.Page) {
	t.Helper()
	must(t, p.Eval(`document.documentElement.style.scrollBehavior = "auto"; scrollTo(0, 0)`, nil)) // nothing under the bar at the top
	found, err := p.Axe()
	must(t, err)
	for i, f := range found {
		if i < 10 {
			t.Errorf("axe: %s", f)
		}
	}
}

// colourOf is how many pixels of a canvas have about a colour of the page.
const colourOf = `(id, name) => { const c = document.getElementById(id), o = new OffscreenCanvas(c.width, c.height).getContext("2d", {willReadFrequently: true}), v = colours[name];
	o.drawImage(c, 0, 0);
	const d = o.getImageData(0, 0, c.width, c.height).data;
	const w = [1, 3, 5].map(k => parseInt(v.slice(k, k + 2), 16)); let n = 0;
	for (let i = 0; i < d.length; i += 4) if (Math.abs(d[i] - w[0]) + Math.abs(d[i + 1] - w[1]) + Math.abs(d[i + 2] - w[2]) < 12) n++;
	return n; }`

// A run of 16 threads through all kinds of locks, with about a million slices: the page draws, zooms, finds and sorts.
func TestReportPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := compile(t, filepath.Join(top, "tests", "order", "torture.c"))
	path := filepath.Join(dir, "run.prophet")
	recordIn(t, dir, path, bin, "7", "16", "60000", "1", "log")
	prediction := filepath.Join(dir, "prediction.json")
	must(t, os.WriteFile(prediction, []byte(`{"target": "there", "predicted_seconds": 3.2, "low_seconds": 3, "high_seconds": 3.5, "home_seconds": 2.1, "noise": 0.03, "rounds": 2, "proven": true,
		"breakdown": [{"thread": "p0/1", "class": "lock", "home_seconds": 1, "target_seconds": 2}, {"thread": "p0/2", "class": "compute", "home_seconds": 0.5, "target_seconds": 0.4}],
		"critical_path": [{"thread": "p0/1", "class": "lock", "seconds": 2}], "sensitivity": [{"resource": "CPU", "seconds": -0.2}]}`), 0o600))
	_, stderr, code := prophetRun(t, dir, "report", path, "-o", "r.html", "--prediction", prediction)
	if code != 0 || stderr != "" {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	file := filepath.Join(dir, "r.html")
	st, err := os.Stat(file)
	must(t, err)
	if st.Mode().Perm() != 0o600 || st.Size() > 8<<20 {
		t.Errorf("the page has mode %v and %d bytes, want 0600 and at most 8 MiB", st.Mode().Perm(), st.Size())
	}
	b, err := browser.Start()
	must(t, err)
	t.Cleanup(b.Close)

	p := opened(t, b, file, 1280, 900, "light")
	if n := value[int](t, p, `+$("timeline-slot").dataset.drawn`); n < 1000 {
		t.Errorf("%d pieces are drawn of the whole run", n)
	}
	for _, c := range []struct{ canvas, group string }{{"lanes", "wait"}, {"lanes", "lock"}, {"map", "wait"}} {
		if n := value[int](t, p, fmt.Sprintf("(%s)(%q, %q)", colourOf, c.canvas, c.group)); n < 50 {
			t.Errorf("%d pixels of %s have the colour of %s", n, c.canvas, c.group)
		}
	}
	accessible(t, p)

	// It zooms: by its button, by the wheel, by keys; and moves.
	span := func() float64 {
		return value[float64](t, p, `$("timeline-slot").dataset.to - $("timeline-slot").dataset.from`)
	}
	whole := span()
	must(t, p.Eval(`document.querySelector('[aria-label="Zoom in"]').click()`, nil))
	must(t, p.Settle())
	if s := span(); s < whole*.49 || s > whole*.51 {
		t.Errorf("zooming in shows %g of %g", s, whole)
	}
	must(t, p.Eval(`document.getElementById("timeline").scrollIntoView(); $("lanes").focus()`, nil))
	must(t, p.Settle())
	var at struct{ X, Y float64 }
	must(t, p.Eval(`(() => { const b = $("lanes").getBoundingClientRect(); return {X: b.left + b.width / 2, Y: b.top + 60}; })()`, &at))
	must(t, p.Wheel(at.X, at.Y, -240, true))
	must(t, p.Settle())
	if s := span(); s > whole*.3 {
		t.Errorf("the wheel left %g of %g", s, whole)
	}
	for range 12 {
		must(t, p.Key("+"))
	}
	must(t, p.Settle())
	close := span()
	if close > whole/10000 || value[int](t, p, `+$("timeline-slot").dataset.exact`) == 0 {
		t.Errorf("keys left %g of %g, and %d calls one by one", close, whole, value[int](t, p, `+$("timeline-slot").dataset.exact`))
	}
	from := value[float64](t, p, `+$("timeline-slot").dataset.from`)
	must(t, p.Key("ArrowRight"))
	must(t, p.Settle())
	if to := value[float64](t, p, `+$("timeline-slot").dataset.from`); to <= from || span() != close {
		t.Errorf("an arrow moved from %g to %g", from, to)
	}
	must(t, p.Key("ArrowDown"))
	must(t, p.Key("n"))
	must(t, p.Settle())
	if s := value[string](t, p, `document.querySelector(".picked").innerText`); !strings.Contains(s, "Look closer") {
		t.Errorf("the key n chose %q", s)
	}
	must(t, p.Mouse("mouseMoved", at.X, at.Y))
	if tip := value[bool](t, p, `!document.querySelector(".tip").hidden`); !tip {
		t.Error("the pointer over a thread tells nothing")
	}
	must(t, p.Key("0"))
	must(t, p.Settle())
	if span() != whole {
		t.Errorf("the key 0 shows %g of %g", span(), whole)
	}
	// A million slices are drawn quickly: a frame of the whole, and of a part.
	slow := value[float64](t, p, `(async () => { let most = 0; for (let i = 0; i < 6; i++) { const s = performance.now(); document.querySelector('[aria-label="' + (i < 3 ? "Zoom in" : "Zoom out") + '"]').click();
		await new Promise(ok => requestAnimationFrame(() => requestAnimationFrame(ok))); most = Math.max(most, performance.now() - s); } return most; })()`)
	if slow > 500 {
		t.Errorf("a step of zooming took %.0f ms", slow)
	}

	// It finds.
	must(t, p.Eval(`$("find").focus()`, nil))
	must(t, p.Type("barrier"))
	must(t, p.Settle())
	if n := value[int](t, p, `document.querySelectorAll("#timeline-slot tbody tr").length`); n == 0 {
		t.Error("no call is listed for barrier")
	}
	if s := value[string](t, p, `[...document.querySelectorAll("#timeline-slot tbody tr")].map(r => r.innerText).filter(s => !s.includes("barrier")).join("|")`); s != "" {
		t.Errorf("looking for barrier lists %s", s)
	}
	if n := value[int](t, p, `+$("timeline-slot").dataset.exact`); n == 0 {
		t.Error("what was looked for is not drawn")
	}

	// Tables sort both ways, filter and open.
	column := `[...document.querySelectorAll("#locks-slot tbody tr:not(.detail)")].map(r => r.row.max_ns)`
	sorted := func() (up, down bool) {
		list := value[[]float64](t, p, column)
		up, down = len(list) > 5, len(list) > 5
		for i := 1; i < len(list); i++ {
			up, down = up && list[i-1] <= list[i], down && list[i-1] >= list[i]
		}
		return
	}
	must(t, p.Eval(`[...document.querySelectorAll("#locks-slot th button")].find(b => b.textContent.startsWith("Longest")).click()`, nil))
	if _, down := sorted(); !down {
		t.Errorf("locks are not sorted by their longest wait: %v", value[[]float64](t, p, column))
	}
	must(t, p.Eval(`[...document.querySelectorAll("#locks-slot th button")].find(b => b.textContent.startsWith("Longest")).click()`, nil))
	if up, _ := sorted(); !up || value[string](t, p, `document.querySelector("#locks-slot th[aria-sort]").getAttribute("aria-sort")`) != "ascending" {
		t.Errorf("locks are not sorted the other way: %v", value[[]float64](t, p, column))
	}
	must(t, p.Eval(`document.querySelector("#locks-slot input").focus()`, nil))
	must(t, p.Type("spin"))
	if s := value[string](t, p, `document.querySelector("#locks-slot tbody").innerText`); !strings.Contains(s, "spin:") || strings.Contains(s, "mutex:") {
		t.Errorf("filtering by spin shows %q", clip(s))
	}
	must(t, p.Eval(`document.querySelector("#locks-slot .more").click(); document.querySelector("#calls-slot .more").click(); document.querySelector("#slow-slot .more").click()`, nil))
	if s := value[string](t, p, `document.querySelector("#locks-slot .detail").innerText`); !strings.Contains(s, "Who had it") || !strings.Contains(s, "p0/") || !strings.Contains(s, "torture+0x") {
		t.Errorf("a lock's details are %q", clip(s))
	}
	if n := value[int](t, p, `document.querySelectorAll("#locks-slot .detail .stack li").length`); n < 4 {
		t.Errorf("the stacks of a lock's waiters and holders have %d frames", n)
	}
	if s := value[string](t, p, `$("prediction-slot").innerText`); !strings.Contains(s, "On there the run would take 3.20 s (3.00 s to 3.50 s); here it took 2.10 s: 1.52 times as long.") {
		t.Errorf("the prediction says %q", clip(s))
	}
	accessible(t, p)

	// Dark by the system, light again by the switch.
	p = opened(t, b, file, 1280, 900, "dark")
	background := `getComputedStyle(document.body).backgroundColor`
	dark := value[string](t, p, background)
	accessible(t, p)
	must(t, p.Eval(`$("theme").click()`, nil))
	must(t, p.Settle())
	if light := value[string](t, p, background); light == dark || light != "rgb(246, 247, 249)" {
		t.Errorf("the switch changed %s to %s", dark, light)
	}
	if n := value[int](t, p, fmt.Sprintf("(%s)(%q, %q)", colourOf, "lanes", "wait")); n < 50 {
		t.Errorf("after the switch %d pixels have the new colour", n)
	}

	// On paper there are no tools, all is light, and the timeline is there.
	must(t, p.Eval(`delete document.documentElement.dataset.theme; dispatchEvent(new Event("beforeprint"))`, nil))
	if n := value[int](t, p, fmt.Sprintf("(%s)(%q, %q)", colourOf, "lanes", "wait")); n < 50 || value[string](t, p, "colours.wait") != "#929dab" {
		t.Errorf("for paper %d pixels have the colour that waiting has there", n)
	}
	must(t, p.Print())
	must(t, p.Settle())
	if s := value[string](t, p, `getComputedStyle(document.querySelector(".tools")).display + " " + `+background); s != "none rgb(255, 255, 255)" {
		t.Errorf("printed, tools and background are %s", s)
	}

	// On a phone nothing is wider than it.
	p = opened(t, b, file, 360, 740, "light")
	if w := value[int](t, p, `document.documentElement.scrollWidth`); w > 360 {
		t.Errorf("the page is %d pixels wide on a phone of 360", w)
	}
	if n := value[int](t, p, `+$("timeline-slot").dataset.drawn`); n < 200 {
		t.Errorf("%d pieces are drawn on a phone", n)
	}
	must(t, p.Eval(`document.querySelector("#locks .more").click(); document.querySelector("#calls .more").click()`, nil))
	must(t, p.Settle())
	if s := value[string](t, p, `[document.documentElement, ...document.querySelectorAll(".detail > td > *")].filter(e => e.getBoundingClientRect().width > 360 || e.scrollWidth > 360).map(e => e.tagName + e.scrollWidth).join()`); s != "" {
		t.Errorf("with open rows these are wider than a phone: %s", s)
	}
	accessible(t, p)
}

// Names that would do harm where they are shown without care do none: in the page, in the text, in JSON.
func TestReportNames(t *testing.T) {
	t.Parallel()
	bin := prog(t, "names")
	const evil = "</script><script>pwned=7</script>\x1b[31m\xe2\x80\xae\"'"
	rec := Cmd{Argv: []string{bin, evil}}.Recorded(t)
	if rec.Stdout != "12\n" {
		t.Fatalf("the program made %q files: %s", rec.Stdout, rec.Stderr)
	}
	again := Cmd{Argv: []string{bin, evil}}.Recorded(t)
	dir := t.TempDir()
	plain := func(what, text string) {
		t.Helper()
		for i, r := range text {
			if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x200e && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == utf8.RuneError {
				t.Errorf("%s has %U at %d: %q", what, r, i, text[max(0, i-40):min(len(text), i+40)])
				return
			}
		}
	}
	prediction := filepath.Join(dir, "p.json")
	b, _ := json.Marshal(map[string]any{"predicted_seconds": 1, "home_seconds": 1, "target": evil, "breakdown": []any{map[string]any{"thread": evil, "class": evil, "home_seconds": 1}},
		"critical_path": []any{map[string]any{"thread": evil, "class": evil, "seconds": 1}}, "sensitivity": []any{map[string]any{"resource": evil, "seconds": 1}}})
	must(t, os.WriteFile(prediction, b, 0o600))
	if _, stderr, code := prophetRun(t, dir, "report", rec.Trace, "-o", "r.html", "--prediction", prediction); code != 0 {
		t.Fatalf("report: exit status %d: %s", code, stderr)
	}
	if _, stderr, code := prophetRun(t, dir, "report", rec.Trace, again.Trace, "-o", "d.html"); code != 0 {
		t.Fatalf("report of two: exit status %d: %s", code, stderr)
	}
	for _, args := range [][]string{{"diff", rec.Trace, again.Trace, "--top", "1000"}, {"diff", rec.Trace, again.Trace, "--json"}, {"report", rec.Trace, "--json"}} {
		stdout, stderr, code := prophetRun(t, dir, args...)
		if code != 0 {
			t.Fatalf("%v: exit status %d: %s", args, code, stderr)
		}
		plain(args[0], stdout+stderr)
		if args[len(args)-1] == "--json" {
			var v any
			if err := json.Unmarshal([]byte(stdout), &v); err != nil {
				t.Errorf("%v is not JSON: %v", args, err)
			}
		}
		if !strings.Contains(stdout, "onerror=pwned=1") {
			t.Errorf("%v does not have the file's name at all", args)
		}
	}
	br, err := browser.Start()
	must(t, err)
	t.Cleanup(br.Close)
	for _, name := range []string{"r.html", "d.html"} {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		must(t, err)
		if i := bytes.Index(text, []byte("pwned=7<")); i >= 0 || bytes.Contains(text, []byte("<img")) || bytes.Contains(text, []byte("<svg onload")) {
			t.Errorf("%s has markup of the program's in it (%d)", name, i)
		}
		p := opened(t, br, file, 1280, 2000, "light")
		must(t, p.Eval(`for (const b of document.querySelectorAll(".more")) b.click(); for (const b of document.querySelectorAll(".after button")) b.click()`, nil))
		must(t, p.Settle())
		shown := value[string](t, p, `document.body.innerText`)
		for _, want := range []string{`a<img src=x onerror=pwned=1>`, `c"'><svg onload=pwned=3>`, `d\x1b]0;title\x07\x1b[31mred`, `e\xe2\x80\xaetxt.exe`, `f\x0asecond line`, `g\xff\xfe not UTF-8`, `]]>--><!--`} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s does not show %s as text", name, want)
			}
		}
		if !value[bool](t, p, `typeof pwned === "undefined" && !document.querySelector("main img, main svg[onload], main script")`) {
			t.Errorf("%s ran or built what a name said", name)
		}
		if s := value[string](t, p, `document.title`); !strings.Contains(s, "</script><script>pwned=7</script>") {
			t.Errorf("the title of %s is %q", name, s)
		}
		plain(name, strings.NewReplacer("\t", " ", "\r", " ", "\u00a0", " ").Replace(shown))
	}
}

// A trace with a broken part gives a page of the rest under a banner, and exit status 1.
func TestReportDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := compile(t, filepath.Join(top, "tests", "order", "torture.c"))
	path := filepath.Join(dir, "run.prophet")
	recordIn(t, dir, path, bin, "7", "4", "20000", "1", "log")
	f, err := os.OpenFile(filepath.Join(path, "stream-00"), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("this was overwritten"), 100_000)
	must(t, errors.Join(err, f.Close()))
	_, stderr, code := prophetRun(t, dir, "report", path)
	if code != 1 || !strings.Contains(stderr, "damaged") {
		t.Fatalf("exit status %d, want 1: %s", code, stderr)
	}
	b, err := browser.Start()
	must(t, err)
	t.Cleanup(b.Close)
	p := opened(t, b, filepath.Join(dir, "run.html"), 1280, 900, "light")
	if s := value[string](t, p, `document.querySelector(".banner[role=alert]").innerText`); !strings.Contains(s, "This trace is damaged in") || !strings.Contains(s, "stream-00") {
		t.Errorf("the banner says %q", s)
	}
	if n := value[int](t, p, `+$("timeline-slot").dataset.drawn`); n < 100 {
		t.Errorf("%d pieces are drawn of what is left", n)
	}
	accessible(t, p)
}

// Two sides: the page has both, compares run with run, and says what so few runs cannot show.
func TestDiffPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := compile(t, filepath.Join(top, "tests", "order", "torture.c"))
	args := []string{"report", "-o", "d.html"}
	for i := range 4 {
		if i == 2 {
			args = append(args, "--")
		}
		name := fmt.Sprintf("run%d.prophet", i)
		recordIn(t, dir, name, bin, "7", "4", strconv.Itoa(500+i/2*2000), "1", "log")
		args = append(args, name)
	}
	if _, stderr, code := prophetRun(t, dir, args...); code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	b, err := browser.Start()
	must(t, err)
	t.Cleanup(b.Close)
	for _, scheme := range []string{"light", "dark"} {
		p := opened(t, b, filepath.Join(dir, "d.html"), 1280, 900, scheme)
		must(t, p.Eval(`document.querySelector("#calls-slot .more").click()`, nil))
		if s := value[string](t, p, `$("overview").innerText`); !strings.Contains(s, "medians of 2 and 2 runs") || !strings.Contains(s, "no p can be below 0.333") {
			t.Errorf("the page says %q", clip(s))
		}
		if n := value[int](t, p, `document.querySelectorAll("#calls-slot .detail svg path").length`); n != 2 {
			t.Errorf("%d histograms are drawn of two", n)
		}
		accessible(t, p)
	}
	p := opened(t, b, filepath.Join(dir, "d.html"), 360, 740, "light")
	if w := value[int](t, p, `document.documentElement.scrollWidth`); w > 360 {
		t.Errorf("the page is %d pixels wide on a phone of 360", w)
	}
	accessible(t, p)
}

func TestReportUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rec := Cmd{Argv: []string{"ls", "/"}}.Recorded(t)
	seen := 0
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"report"}, "wants a trace"},
		{[]string{"report", "nothing.prophet"}, "there is no trace"},
		{[]string{"report", rec.Trace, rec.Trace, rec.Trace}, "two traces, or several on each side of --"},
		{[]string{"report", rec.Trace, "--json", "-o", "x.html"}, "name one of them"},
		{[]string{"report", rec.Trace, rec.Trace, "--json"}, "prophet diff has --json"},
		{[]string{"report", rec.Trace, "--prediction", "none.json"}, "there is no prediction"},
		{[]string{"report", rec.Trace, "--prediction", filepath.Join(rec.Trace, "meta.json")}, "is no prediction"},
		{[]string{"report", rec.Trace, "-o", dir}, "is a directory"},
		{[]string{"diff", rec.Trace}, "wants two traces"},
		{[]string{"report", rec.Trace, "--", rec.Trace, "-o", "x.html"}, "options go before it"},
		{[]string{"diff", rec.Trace, rec.Trace, "--"}, "two traces, or several"},
	} {
		seen++
		if _, stderr, code := prophetRun(t, dir, c.args...); code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit status %d, %q; want 2 and %q", c.args, code, stderr, c.want)
		}
	}
	if seen != 11 {
		t.Errorf("%d command lines were tried", seen)
	}
	// A packed trace gives the same report.
	if _, stderr, code := prophetRun(t, dir, "pack", "-o", "p.prophet", rec.Trace); code != 0 {
		t.Fatalf("pack: %d, %s", code, stderr)
	}
	plain, _, _ := prophetRun(t, dir, "report", rec.Trace, "--json")
	packed, _, _ := prophetRun(t, dir, "report", "p.prophet", "--json")
	if strings.ReplaceAll(plain, rec.Trace, "p.prophet") != packed || len(packed) < 1000 {
		t.Error("the report of a packed trace is another one")
	}
	stdout, stderr, code := prophetRun(t, dir, "report", rec.Trace, "-o", "-")
	if code != 0 || !strings.HasPrefix(stdout, "<!doctype html>") || !strings.HasSuffix(stdout, "</html>\n") {
		t.Errorf("to standard output: exit status %d, %q, %s", code, clip(stdout), stderr)
	}
}

// Ten million events, one in four of which waits: within the time and the memory that 10^8 are promised in, and the
// page says what it left out.
func TestReportLarge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "large.prophet")
	const threads, events = 16, 10_000_000
	manyEvents(t, path, threads, events)
	cmd := exec.Command(built(t, "prophet"), "report", path, "-o", filepath.Join(dir, "large.html"))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	from := time.Now()
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// What the kernel tells of it at its end counts us, too, whose memory it had until it became another program.
	var most int
	var err error
	for going := true; going; {
		select {
		case err = <-ended:
			going = false
		case <-time.After(5 * time.Millisecond):
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid))
			if _, high, ok := strings.Cut(string(status), "VmHWM:"); ok && filepath.Base(exe) == "prophet" {
				var kb int
				fmt.Sscan(high, &kb)
				most = max(most, kb>>10)
			}
		}
	}
	took := time.Since(from)
	if err != nil || most == 0 {
		t.Fatalf("%v, %d MiB resident: %s", err, most, &out)
	}
	st, err := os.Stat(filepath.Join(dir, "large.html"))
	must(t, err)
	t.Logf("%d events in %v, %d MiB resident, a page of %.1f MiB", events, took, most, float64(st.Size())/(1<<20))
	if most > 1024 {
		t.Errorf("%d MiB resident, of 1024", most)
	}
	if limit := 120 * time.Second * events / 100_000_000 * 3; took > limit { // three times: others run beside
		t.Errorf("%v, of %v", took, limit)
	}
	if st.Size() > 10<<20 {
		t.Errorf("a page of %d bytes", st.Size())
	}
	text, err := os.ReadFile(filepath.Join(dir, "large.html"))
	must(t, err)
	if !bytes.Contains(text, []byte("The timeline has the 500,000 longest calls one by one; 2,000,000 calls shorter than")) {
		t.Error("the page does not say what it left out")
	}
	b, err := browser.Start()
	must(t, err)
	t.Cleanup(b.Close)
	p := opened(t, b, filepath.Join(dir, "large.html"), 1280, 900, "light")
	if n := value[int](t, p, `+$("timeline-slot").dataset.drawn`); n < 1000 {
		t.Errorf("%d pieces are drawn", n)
	}
}

// manyEvents writes a trace of threads that take locks in turn, read and compute.
func manyEvents(t testing.TB, path string, threads, events int) {
	t.Helper()
	must(t, os.Mkdir(path, 0o700))
	must(t, trace.WriteMeta(path, &trace.Meta{Format: 1, TicksHz: 1e9, Command: []string{"synthetic"}, Machine: trace.Machine{CPUs: 2, PageSize: 4096}}))
	w, err := trace.NewWriter(path)
	must(t, err)
	id := map[string]uint16{}
	for i := range cabi.Calls {
		id[cabi.Calls[i].Name] = cabi.Calls[i].ID
	}
	numbers := func(v ...uint64) []byte {
		var b []byte
		for _, x := range v {
			b = trace.AppendV(b, x)
		}
		return b
	}
	for th := range threads {
		e := trace.NewEncoder(uint32(th+1), 0, 1e9, w.Put)
		how := uint64(cabi.ThreadMain)
		if th > 0 {
			how = cabi.ThreadCreated
		} else {
			e.Control(cabi.TagProc, append(numbers(0, 0, 0, 0, 50, 1, cabi.ProcRoot), trace.AppendS(nil, "/bin/app")...))
		}
		e.Control(cabi.TagThread, numbers(uint64(th+1), uint64(min(th, 1)), uint64(th), uint64(50+th), how))
		now, state := uint64(1e9), uint64(th+1)
		for i := range events / threads / 4 {
			state = state*6364136223846793005 + 1442695040888963407
			lock := trace.Object{UID: 1, Num: 1 + state>>60}
			took := 200 + state>>48&0xfff
			e.Event(&trace.Record{Call: id["pthread_mutex_lock"], Obj: lock, PC: 0x1000, Begin: now, End: now + took, Timed: true, Seq: uint64(i*threads + th + 1), Note: cabi.NoteWaited})
			e.Event(&trace.Record{Call: id["clock_gettime"], PC: 0x1100, Begin: now + took + 50})
			e.Event(&trace.Record{Call: id["pthread_mutex_unlock"], Obj: lock, PC: 0x1200, Begin: now + took + 300})
			e.Event(&trace.Record{Call: id["sched_getcpu"], PC: 0x1300, Begin: now + took + 400, Ret: int64(i & 1)})
			now += took + 800
		}
		must(t, e.Flush(cabi.ChunkLast))
	}
	must(t, w.Close())
}

// The page's text is bounded and valid whatever the report holds, also nothing.
func TestReportEmpty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "e.prophet")
	must(t, os.Mkdir(path, 0o700))
	must(t, trace.WriteMeta(path, &trace.Meta{Format: 1, TicksHz: 1e9}))
	must(t, os.WriteFile(filepath.Join(path, "stream-00"), nil, 0o600))
	tr, err := trace.Open(path)
	must(t, err)
	defer tr.Close()
	r, err := report.Of(tr, report.Options{}, nil)
	must(t, err)
	file := filepath.Join(dir, "e.html")
	f, err := os.Create(file)
	must(t, err)
	must(t, errors.Join(page.Write(f, r), f.Close()))
	b, err := browser.Start()
	must(t, err)
	t.Cleanup(b.Close)
	p := opened(t, b, file, 1280, 900, "light")
	if s := value[string](t, p, `document.body.innerText`); !strings.Contains(s, "The trace has no events.") {
		t.Errorf("the page of nothing says %q", clip(s))
	}
	accessible(t, p)
}

// TestReportEnded: a run that became other programs ended as the last one did; CPU time from before the first event is no
// average of the run's time.
func TestReportEnded(t *testing.T) {
	rec := Cmd{Argv: []string{"sh", "-c", `exec sh -c "exec sh -c 'exit 3'"`}}.Recorded(t)
	if out, _, _ := prophetRun(t, "", "info", rec.Trace); !strings.Contains(out, "; exit status 3") {
		t.Errorf("info says:\n%s", out)
	}
	file := filepath.Join(t.TempDir(), "r.html")
	rec = Cmd{Argv: []string{"true"}}.Recorded(t)
	if _, errs, code := prophetRun(t, "", "report", rec.Trace, "-o", file); code != 0 {
		t.Fatalf("report: %d: %s", code, errs)
	}
	b, err := os.ReadFile(file)
	must(t, err)
	var r report.Report
	text, _, _ := prophetRun(t, "", "report", "--json", rec.Trace)
	must(t, json.Unmarshal([]byte(text), &r))
	if r.Totals.CPUNS > r.Run.NS*int64(r.Run.CPUs) && !bytes.Contains(b, []byte("with what came before the first event")) || bytes.Contains([]byte(text), []byte("CPUs on average")) != (r.Totals.CPUNS <= r.Run.NS*int64(r.Run.CPUs)) {
		t.Errorf("%d ns of CPU time in %d ns: %s", r.Totals.CPUNS, r.Run.NS, text)
	}
}
