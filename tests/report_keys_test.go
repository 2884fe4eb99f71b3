package tests

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prophet/runtime/report"
	"prophet/tests/browser"
)

// focused is where the focus is, in a word or two, and whether it is seen there: marked, within the window and under nothing.
const focused = `(() => { const e = document.activeElement; if (!e || e === document.body) return {What: "", Seen: true};
	const r = e.getBoundingClientRect(), s = getComputedStyle(e), bar = document.querySelector(".top").getBoundingClientRect().bottom;
	const marked = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 && s.outlineColor !== s.backgroundColor;
	const inside = r.width > 0 && r.bottom > 0 && r.top < innerHeight && (e.closest(".top, .skip") || r.bottom > bar + 4);
	return {What: e.id || e.getAttribute("aria-label") || e.textContent.trim() || (e.labels && e.labels[0] ? e.labels[0].textContent : "") || e.tagName, In: (e.closest("section") || {id: ""}).id, Seen: !!(marked && inside)}; })()`

type focus struct {
	What, In string
	Seen     bool
}

// tabTo presses Tab until the focus is where an expression says it is to be.
func tabTo(t *testing.T, p *browser.Page, where string) {
	t.Helper()
	for range 400 {
		must(t, p.Key("Tab"))
		if value[bool](t, p, `(e => `+where+`)(document.activeElement)`) {
			return
		}
	}
	t.Fatalf("Tab does not come to %s", where)
}

// Who has only a keyboard reaches all of the page, sees where they are, and can do all that a pointer can.
func TestReportKeyboard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := compile(t, filepath.Join(top, "tests", "order", "torture.c"))
	path := filepath.Join(dir, "run.prophet")
	recordIn(t, dir, path, bin, "7", "4", "2000", "1", "log")
	if _, stderr, code := prophetRun(t, dir, "report", path, "-o", "r.html"); code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	// Who is said to have had a lock had it in waits for the lock, not in those for a condition.
	text0, _, _ := prophetRun(t, dir, "report", path, "--json")
	var r report.Report
	must(t, json.Unmarshal([]byte(text0), &r))
	caused := 0
	for _, l := range r.Locks {
		ns, times := int64(0), uint64(0)
		for _, w := range l.Causes {
			ns, times = ns+w.NS, times+w.Times
			caused++
		}
		if l.Kind == "mutex" && (ns > l.NS+l.NS/50 || times > l.Waits) {
			t.Errorf("%s was waited for %d times, %d ns, and others had it %d times, %d ns of those", l.Name, l.Waits, l.NS, times, ns)
		}
	}
	if caused < 10 {
		t.Errorf("%d threads had locks", caused)
	}
	b, err := browser.Start()
	must(t, err)
	t.Cleanup(b.Close)
	p := opened(t, b, filepath.Join(dir, "r.html"), 1280, 900, "light")
	key := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			must(t, p.Key(k))
		}
		must(t, p.Settle())
	}
	text := func(expr string) string { t.Helper(); return value[string](t, p, expr) }
	span := func() (from, to float64) {
		s := value[[2]float64](t, p, `[+$("timeline-slot").dataset.from, +$("timeline-slot").dataset.to]`)
		return s[0], s[1]
	}

	// Tab goes through all there is, in the order of the page, and comes out at the end.
	all := value[int](t, p, `[...document.querySelectorAll("a[href], button, input, select, [tabindex='0']")].filter(e => e.checkVisibility()).length`)
	var way []focus
	for range all + 20 {
		must(t, p.Key("Tab"))
		f := value[focus](t, p, focused)
		if f.What == "" {
			break
		}
		if !f.Seen {
			t.Errorf("the focus on %q in %s is not to be seen", f.What, f.In)
		}
		way = append(way, f)
	}
	if len(way) != all || all < 60 {
		t.Errorf("Tab comes to %d of %d places: %v", len(way), all, way)
	}
	if way[0].What != "Skip to the report" {
		t.Errorf("Tab comes first to %q", way[0].What)
	}
	var sections []string
	for _, f := range way {
		if f.In != "" && !slices.Contains(sections, f.In) {
			sections = append(sections, f.In)
		} else if f.In != "" && sections[len(sections)-1] != f.In {
			t.Errorf("Tab comes back to %s", f.In)
		}
	}
	if s := strings.Join(sections, " "); s != "timeline threads locks slow calls files processes" {
		t.Errorf("Tab goes through %s", s)
	}
	key("Shift+Tab")
	if f := value[focus](t, p, focused); f.What != way[len(way)-1].What {
		t.Errorf("Shift and Tab go back to %q, not %q", f.What, way[len(way)-1].What)
	}
	must(t, p.Eval(`document.activeElement.blur(); scrollTo(0, 0)`, nil))

	// The timeline.
	tabTo(t, p, `e.id === "lanes"`)
	_, run := span()
	key("+", "+")
	from, to := span()
	if w := to - from; w < run*.24 || w > run*.26 {
		t.Errorf("plus twice shows %g of %g", w, run)
	}
	key("ArrowRight")
	if at, _ := span(); at <= from {
		t.Errorf("right moved from %g to %g", from, at)
	}
	key("Home")
	if at, _ := span(); at != 0 {
		t.Errorf("Home shows from %g on", at)
	}
	key("End")
	if _, at := span(); at != run {
		t.Errorf("End shows up to %g of %g", at, run)
	}
	key("-")
	if from, to := span(); to-from < run*.49 || to-from > run*.51 {
		t.Errorf("minus shows %g of %g", to-from, run)
	}
	if s := text(`$("range").textContent`); !strings.Contains(s, " from ") || !strings.Contains(s, " threads") {
		t.Errorf("the stretch is told as %q", s)
	}
	key("ArrowDown")
	if s := text(`$("said").textContent`); !strings.HasPrefix(s, "p0/1: ") || !strings.Contains(s, "%") {
		t.Errorf("the thread that was chosen is told as %q", s)
	}
	key("n")
	picked := text(`$("said").textContent`)
	if !strings.Contains(picked, "p0/1, at ") || text(`document.querySelector(".picked").innerText`) == "" {
		t.Errorf("the call that was chosen is told as %q", picked)
	}
	key("n")
	if s := text(`$("said").textContent`); s == picked {
		t.Errorf("n stays at %q", s)
	}
	key("Escape")
	if !value[bool](t, p, `document.querySelector(".picked").hidden`) {
		t.Error("Escape leaves the call chosen")
	}
	key("Escape")
	if from, to := span(); from != 0 || to != run {
		t.Errorf("Escape again shows %g to %g of %g", from, to, run)
	}
	key("Shift+Tab")
	if s := text(`document.activeElement.id`); s != "map" {
		t.Fatalf("before the lanes is %q", s)
	}
	key("+", "PageUp", "ArrowDown")
	if from, to := span(); to-from > run*.51 || from <= run*.3 || to >= run {
		t.Errorf("the overview's keys show %g to %g of %g", from, to, run)
	}
	if v := value[int](t, p, `+$("map").getAttribute("aria-valuenow")`); v < 51 || v > 74 {
		t.Errorf("the overview says that it is at %d", v)
	}
	// From the table of the longest calls to the timeline.
	tabTo(t, p, `e.className === "go"`)
	key("Enter")
	if s := text(`document.activeElement.id`); s != "lanes" {
		t.Errorf("a call that was chosen in the table leaves the focus at %q", s)
	}

	// Headers sort by Enter and by space, and say so.
	tabTo(t, p, `e.closest("#locks th") && e.textContent.startsWith("Longest")`)
	sorted := func(want string) {
		t.Helper()
		if s := text(`[...document.querySelectorAll("#locks-slot > div > .wide > table > thead th[aria-sort]")].map(e => e.textContent.replace(/[↑↓]/, "") + " " + e.getAttribute("aria-sort")).join()`); s != "Longest "+want {
			t.Errorf("sorted: %q, want %s", s, want)
		}
		if s := text(`document.querySelector("#locks-slot > div > .sr[role=status]").textContent`); s != "Sorted by Longest, "+want {
			t.Errorf("told as %q", s)
		}
	}
	key("Enter")
	sorted("descending")
	key(" ")
	sorted("ascending")
	if s := text(`document.activeElement.textContent`); !strings.HasPrefix(s, "Longest") {
		t.Errorf("sorting moved the focus to %q", s)
	}

	// A row opens by Enter and closes by Escape, from within it too.
	tabTo(t, p, `e.matches("#locks .more[aria-expanded]")`)
	key("Enter")
	if value[int](t, p, `document.querySelectorAll("#locks .detail").length`) != 1 || text(`document.activeElement.getAttribute("aria-expanded")`) != "true" {
		t.Error("Enter does not open a row")
	}
	tabTo(t, p, `e.closest("#locks .detail") && e.textContent === "Show in the timeline"`)
	key("Escape")
	if value[int](t, p, `document.querySelectorAll("#locks .detail").length`) != 0 || text(`document.activeElement.getAttribute("aria-expanded")`) != "false" {
		t.Error("Escape does not close a row")
	}
	key("Enter")
	tabTo(t, p, `e.closest("#locks .detail") && e.textContent === "Show in the timeline"`)
	key("Enter")
	if f := value[focus](t, p, focused); f.What != "lanes" || !f.Seen {
		t.Errorf("to show a wait in the timeline leaves the focus at %v", f)
	}

	// Finding: typed, told, and taken back by Escape.
	tabTo(t, p, `e.matches("#calls input[type=search]")`)
	said := `document.querySelector("#calls-slot .after [role=status]").textContent`
	whole := text(said)
	key("m", "u", "t", "e", "x")
	if s := text(said); s == whole || !strings.Contains(s, " of ") {
		t.Errorf("what was found is told as %q", s)
	}
	key("Escape")
	if s := text(said); s != whole || text(`document.activeElement.value`) != "" {
		t.Errorf("after Escape %q is told, not %q", s, whole)
	}
	// More rows: the focus is on the first of them.
	tabTo(t, p, `e.matches("#calls .after button")`)
	rows := value[int](t, p, `document.querySelectorAll("#calls-slot > div > .wide > table > tbody > tr").length`)
	key("Enter")
	if n := value[int](t, p, `[...document.querySelectorAll("#calls-slot > div > .wide > table > tbody > tr")].indexOf(document.activeElement.closest("tr"))`); n != rows {
		t.Errorf("the focus is in row %d of those that were %d", n, rows)
	}
	// The skip link leads past the head of the page, and the switch of colours is a key away.
	must(t, p.Eval(`document.activeElement.blur(); scrollTo(0, 0)`, nil))
	tabTo(t, p, `e.className === "skip"`)
	key("Enter", "Tab")
	if f := value[focus](t, p, focused); f.In != "timeline" {
		t.Errorf("the skip link leads to %v", f)
	}
}

// What a screen reader is told: each thing that can be used has a name, pictures have words, tables their columns, and what
// changes is told.
func TestReportReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := compile(t, filepath.Join(top, "tests", "order", "torture.c"))
	for _, name := range []string{"a", "b"} {
		recordIn(t, dir, name+".prophet", bin, "7", "4", "1000", "1", "log")
	}
	for file, args := range map[string][]string{"r.html": {"report", "a.prophet", "-o", "r.html"}, "d.html": {"report", "a.prophet", "b.prophet", "-o", "d.html"}} {
		if _, stderr, code := prophetRun(t, dir, args...); code != 0 {
			t.Fatalf("%s: exit status %d: %s", file, code, stderr)
		}
	}
	b, err := browser.Start()
	must(t, err)
	t.Cleanup(b.Close)
	for _, c := range []struct {
		file   string
		tables []string
	}{
		{"r.html", []string{"The longest calls in the stretch that is shown", "Time of each thread", "What threads waited at", "The slowest calls", "How long calls took", "Files",
			"Connections, pipes and terminals", "Processes, children below their parents"}},
		{"d.html", []string{"The runs", "Time of all threads", "Latencies of calls", "Waits by object", "Time in files", "CPU time of threads"}},
	} {
		p := opened(t, b, filepath.Join(dir, c.file), 1280, 900, "light")
		list, err := p.Accessible()
		must(t, err)
		count := map[string]int{}
		names := map[string]bool{}
		find := func(role, name string) *browser.Node {
			t.Helper()
			for i := range list {
				if list[i].Role == role && list[i].Name == name {
					return &list[i]
				}
			}
			t.Errorf("%s: no %s %q", c.file, role, name)
			return &browser.Node{Props: map[string]any{}}
		}
		for _, n := range list {
			count[n.Role]++
			names[n.Role+" "+n.Name] = true
			if n.Name == "" && (n.Props["focusable"] == true && !slices.Contains([]string{"RootWebArea", "status", "generic"}, n.Role) || slices.Contains([]string{"image", "img", "table", "columnheader", "link", "button", "region", "navigation"}, n.Role)) {
				t.Errorf("%s: a %s without a name: %v", c.file, n.Role, n)
			}
			if n.Role == "status" && n.Props["live"] != "polite" {
				t.Errorf("%s: a status that is not told: %v", c.file, n)
			}
		}
		for _, name := range c.tables {
			find("table", name)
		}
		if count["columnheader"] < 30 || count["heading"] < 6 || count["main"] != 1 || count["navigation"] != 1 {
			t.Errorf("%s has %v", c.file, count)
		}
		// Each table of many rows says by which column it is sorted.
		if s := value[string](t, p, `[...document.querySelectorAll("main table")].filter(e => e.querySelector("th button") && e.querySelectorAll("th[aria-sort]").length !== 1).map(e => e.caption.textContent).join()`); s != "" {
			t.Errorf("%s: not said to be sorted: %s", c.file, s)
		}
		if c.file == "d.html" {
			continue
		}
		if n := find("application", "Timeline of threads"); !strings.Contains(n.Description, "left") || !strings.Contains(n.Description, "choose a thread") {
			t.Errorf("the timeline is described as %q", n.Description)
		}
		if n := find("slider", "Stretch of the run that is shown"); n.Value != "50" || n.Props["describedby"] == nil {
			t.Errorf("the overview says %v", n)
		}
		if s := value[string](t, p, `$("map").getAttribute("aria-valuetext")`); !strings.HasPrefix(s, "The whole run, ") {
			t.Errorf("the overview says %q", s) // which the protocol's tree leaves out
		}
		for _, name := range []string{"Zoom in", "Zoom out", "Earlier", "Later", "All: show the whole run"} {
			find("button", name)
		}
		for name := range names {
			if strings.HasPrefix(name, "image Over time") && strings.Contains(name, "Events at most") {
				names["counters"] = true
			}
		}
		if !names["counters"] {
			t.Error("the counters have no numbers in words")
		}
		if n := find("checkbox", "Waiting for locks"); n.Props["checked"] != "true" {
			t.Errorf("%v", n)
		}
		must(t, p.Eval(`document.querySelector("#locks .more").click()`, nil))
		must(t, p.Settle())
		list, err = p.Accessible()
		must(t, err)
		open := 0
		for _, n := range list {
			if n.Role == "button" && n.Props["expanded"] == true {
				open++
			}
		}
		if open != 1 {
			t.Errorf("%d rows are said to be open", open)
		}
		find("table", "Who waited")
	}
}
