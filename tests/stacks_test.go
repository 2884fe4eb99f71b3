package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"prophet/cabi"
)

// folded is what `prophet export --folded` prints of a trace: stacks, and their ns.
func folded(t *testing.T, path string, args ...string) map[string]int64 {
	t.Helper()
	cmd := exec.Command(built(t, "prophet"), append([]string{"export", path, "--folded", "-"}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("export: %v\n%s", err, errs.String())
	}
	all := map[string]int64{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		n, err := strconv.ParseInt(line[i+1:], 10, 64)
		if err != nil {
			t.Fatalf("%q is no line of a folded file", line)
		}
		all[line[:i]] = n
	}
	return all
}

// chainOf is the frames of a folded stack that the pattern matches, and its last.
func chainOf(stack string, want *regexp.Regexp) []string {
	f := strings.Split(stack, ";")
	var out []string
	for i, s := range f {
		if want.MatchString(s) || i == len(f)-1 {
			out = append(out, s)
		}
	}
	return out
}

func gcc(t *testing.T, out string, args ...string) string {
	t.Helper()
	cc := "gcc"
	if strings.HasSuffix(args[len(args)-1], ".cc") {
		cc = "g++"
	}
	bin := filepath.Join(t.TempDir(), out)
	if text, err := exec.Command(cc, append([]string{"-D_GNU_SOURCE", "-pthread", "-o", bin}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", cc, args, err, text)
	}
	return bin
}

// chains are those of progs/chains.c, each to the call at its end.
var chains = func() []string {
	plain := func(n int) string { return strings.Repeat("c_plain;", n) + "c_leaf;usleep" }
	return []string{
		"main;" + plain(3),
		"main;c_variable;c_leaf;usleep",
		"main;c_aligned;c_leaf;usleep",
		"main;c_registers;c_leaf;usleep",
		"main;c_callback;c_compare;c_leaf;usleep",
		"main;c_raises;c_handler;c_leaf;usleep",
		"main;c_faults;c_fault;c_leaf;usleep",
		"c_thread;c_leaf;usleep",
		"c_waiter;c_waits;pthread_mutex_lock",
		"main;c_holds;c_leaf;usleep",
		plain(cabi.FramesMax), // callers of c_leaf, which the event names
	}
}()

// checkChains looks for each of them in a trace of the program.
func checkChains(t *testing.T, what, path string) {
	t.Helper()
	got := map[string]bool{}
	coroutine := false
	for s := range folded(t, path, "--type", "sleep,lock_wait") {
		s = strings.TrimSuffix(strings.TrimSuffix(s, ";[sleep]"), ";[lock_wait]")
		got[strings.Join(chainOf(s, regexp.MustCompile(`^(c_|main$)`)), ";")] = true
		coroutine = coroutine || strings.HasSuffix(s, "c_coroutine;c_leaf;usleep")
	}
	for _, c := range chains {
		if !got[c] {
			t.Errorf("%s: no stack is %s", what, c)
		}
	}
	if !coroutine {
		t.Errorf("%s: no stack has the coroutine", what)
	}
	if t.Failed() {
		for s := range got {
			t.Log(s)
		}
	}
}

// TestStacksChains: the stacks are the chains of callers that the program has, however it was compiled.
func TestStacksChains(t *testing.T) {
	for _, flags := range []string{
		"-O2 -fomit-frame-pointer",
		"-O2 -fno-omit-frame-pointer",
		"-O0",
		"-O2 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables",
	} {
		bin := gcc(t, "chains", append(strings.Fields(flags), filepath.Join(top, "tests/progs/chains.c"))...)
		run := Cmd{Argv: []string{bin}}.Recorded(t)
		if run.Status != "exit status 0" || run.Stdout != "done\n" {
			t.Fatalf("%s: %s: %s%s", flags, run.Status, run.Stdout, run.Stderr)
		}
		checkChains(t, flags, run.Trace)
	}
}

// TestStacksArm64: the same of the clouds' other CPU, under emulation.
func TestStacksArm64(t *testing.T) {
	bin, path := filepath.Join(t.TempDir(), "chains"), filepath.Join(t.TempDir(), "run.prophet")
	cc := exec.Command("aarch64-linux-gnu-gcc", "-O2", "-fomit-frame-pointer", "-D_GNU_SOURCE", "-pthread", "-o", bin, filepath.Join(top, "tests/progs/chains.c"))
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v (are gcc-aarch64-linux-gnu and libc6-dev-arm64-cross installed?)\n%s", err, out)
	}
	run := Cmd{Argv: []string{"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", "-E", "LD_PRELOAD=" + built(t, "arm64/libprophet.so"), "-E", "PROPHET_TRACE=" + path, bin}}.Bare(t)
	if run.Stdout != "done\n" {
		t.Fatalf("%s: %s%s", run.Status, run.Stdout, run.Stderr)
	}
	checkChains(t, "arm64", path)
}

// TestStacksSwapped: where a library was unloaded another comes to lie, with the same calls at the same addresses, and each
// event and stack has the names of its own.
func TestStacksSwapped(t *testing.T) {
	src := filepath.Join(top, "tests/progs/swapped.c")
	first := gcc(t, "first.so", "-O0", "-shared", "-fPIC", "-Wl,--build-id", "-DWORK=first", src)
	other := gcc(t, "other.so", "-O0", "-shared", "-fPIC", "-Wl,--build-id", "-DWORK=other", src)
	bin := gcc(t, "swapped", "-O0", src)
	for _, options := range []string{"stacks=1000", "stacks=0"} {
		run := Cmd{Argv: []string{bin, first, other}, Options: options}.Recorded(t)
		if run.Stdout != "in one place\n" {
			t.Fatalf("%s: %s%s", run.Status, run.Stdout, run.Stderr)
		}
		out, err := exec.Command(built(t, "prophet"), "dump", "--call", "usleep", run.Trace).Output()
		if err != nil {
			t.Fatal(err)
		}
		sites := map[string][]string{} // by thread, in order
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			at := slices.IndexFunc(f, func(s string) bool { return strings.HasPrefix(s, "@") })
			if at < 0 {
				t.Fatalf("no call site in %q", line)
			}
			lib, _, _ := strings.Cut(f[at], "+")
			sites[f[1]] = append(sites[f[1]], lib)
		}
		want := strings.Fields(strings.Repeat("@first.so ", 4) + strings.Repeat("@other.so ", 4) + strings.Repeat("@first.so ", 4))
		for _, thread := range []string{"p0", "p0/1"} {
			// A call that began before the other thread's module was in the trace has an address.
			if s := sites[thread]; len(s) > 4 && strings.HasPrefix(s[4], "@0x1") {
				s[4] = want[4]
			}
			if !slices.Equal(sites[thread], want) {
				t.Errorf("%s: calls of %s are in %v", options, thread, sites[thread])
			}
		}
		if options == "stacks=0" {
			continue
		}
		ns := map[string]int64{}
		for s, n := range folded(t, run.Trace, "--type", "sleep") {
			for _, name := range []string{"first", "other"} {
				if strings.Contains(s, ";"+name+";inner;usleep") {
					ns[name] += n
				}
			}
		}
		if ns["first"] < 50e6 || ns["other"] < 25e6 || ns["first"] < ns["other"]*3/2 {
			t.Errorf("of 64 ms in one and 32 in the other: %v; %v", ns, folded(t, run.Trace))
		}
	}
}

// TestStacksRate: no thread takes more than its rate, nor any at rate 0; a long wait has one in any case.
func TestStacksRate(t *testing.T) {
	bin := gcc(t, "waits", "-O2", filepath.Join(top, "tests/progs/waits.c"))
	for _, c := range []struct {
		options string
		rate    int
		min     float64 // on a machine that may have other things to do
		max     float64 // of the rate
	}{{"", 99, 8, 1.05}, {"stacks=20", 20, 4, 1.1}, {"stacks=0", 0, 0, 0}, {"stacks=100000", 1000, 8, 1.05}} {
		run := Cmd{Argv: []string{bin, "busy"}, Options: c.options}.Recorded(t)
		sum := stacksOf(t, run.Trace)
		most := float64(sum.seconds*float64(c.rate))*c.max + 1
		if n := float64(sum.taken["rate"]); n > most || n < c.min {
			t.Errorf("options %q: %v stacks in %.2f s", c.options, n, sum.seconds)
		}
	}
	run := Cmd{Argv: []string{bin, "wait"}}.Recorded(t)
	sum := stacksOf(t, run.Trace)
	if sum.taken["wait"] == 0 {
		t.Errorf("no wait of 5 ms has a stack: %v", sum.taken)
	}
	if sum.taken["holder"]+sum.taken["wait+holder"] == 0 {
		t.Errorf("no holder has a stack: %v", sum.taken)
	}
	if n := sum.all(); float64(n) > sum.seconds*4*99*2+8 {
		t.Errorf("%d stacks in %.2f s of two threads", n, sum.seconds)
	}
}

// stacks is how many were taken, why, and for how long the run took.
type stacks struct {
	taken   map[string]int
	seconds float64
}

func (s *stacks) all() (n int) {
	for _, k := range s.taken {
		n += k
	}
	return n
}

func stacksOf(t *testing.T, path string) *stacks {
	t.Helper()
	out, err := exec.Command(built(t, "prophet"), "dump", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	s := &stacks{taken: map[string]int{}}
	for _, m := range regexp.MustCompile(` stack \(([a-z+]*)`).FindAllSubmatch(out, -1) {
		s.taken[string(m[1])]++
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	s.seconds, _ = strconv.ParseFloat(string(bytes.Fields(lines[len(lines)-1])[0]), 64)
	return s
}

// TestStacksSame: a program that is recorded with stacks at every chance does what it does without.
func TestStacksSame(t *testing.T) {
	for _, c := range [][]string{
		{"python3", "-c", "import threading,subprocess\ndef f(n):\n  return n and f(n-1) or subprocess.run(['true']).returncode\nts=[threading.Thread(target=f,args=(50,)) for i in range(4)]\n[x.start() for x in ts];[x.join() for x in ts];print('ok')"},
		{"bash", "-c", "for i in 1 2 3; do seq 30000 | sort -n | tail -1; done"},
	} {
		bare, rec := Cmd{Argv: c}.Bare(t), Cmd{Argv: c, Options: "stacks=1000"}.Recorded(t)
		if bare.Stdout != rec.Stdout || bare.Stderr != rec.Stderr || bare.Status != rec.Status {
			t.Errorf("%v: bare %+v, recorded %+v", c, bare, rec)
		}
		if len(folded(t, rec.Trace)) == 0 {
			t.Errorf("%v: nothing in its profile", c)
		}
	}
}

// TestStacksReexecuted: stacks in a trace do not disturb its re-execution, which takes none.
func TestStacksReexecuted(t *testing.T) {
	bin := gcc(t, "waits", "-O2", filepath.Join(top, "tests/progs/waits.c"))
	c := Cmd{Argv: []string{bin, "wait"}, Options: "stacks=1000"}
	rec := c.Recorded(t)
	if n := stacksOf(t, rec.Trace).all(); n == 0 {
		t.Fatal("no stacks")
	}
	c.Reexecuted(t, rec)
}

// TestStacksCPU: a timer of CPU time finds where the program computes, without a call.
func TestStacksCPU(t *testing.T) {
	bin := gcc(t, "prof", "-O1", filepath.Join(top, "tests/progs/prof.c"))
	run := Cmd{Argv: []string{bin, "fork"}, Options: "stacks=cpu:200"}.Recorded(t)
	if run.Stdout != "forked\n" {
		t.Fatalf("%s: %s%s", run.Status, run.Stdout, run.Stderr)
	}
	all := folded(t, run.Trace, "--type", "cpu")
	var burn, ns int64
	chains := map[string]bool{}
	for s, n := range all {
		ns += n
		if i := strings.Index(s, ";burn"); i >= 0 {
			burn += n
			chains[s[strings.LastIndex(s[:i], ";")+1:i+5]] = true
		}
	}
	if !chains["main;burn"] || !chains["thread;burn"] || burn < 150e6 || ns > 300e6 {
		t.Errorf("of 190 ms of CPU time %d are burn's, of %d: %v", burn/1e6, ns/1e6, all)
	}
	info, err := exec.Command(built(t, "prophet"), "info", run.Trace).Output()
	if err != nil || !bytes.Contains(info, []byte("200 stacks a second and thread and as many by CPU time")) {
		t.Errorf("info does not say so: %v\n%s", err, info)
	}
}

// TestStacksCPUUnnoticed: programs that use the timer's signal themselves, or have calls that a signal could break off.
func TestStacksCPUUnnoticed(t *testing.T) {
	bin := gcc(t, "prof", "-O1", filepath.Join(top, "tests/progs/prof.c"))
	for _, c := range []struct {
		mode string
		said bool // the trace says that there are no such stacks
	}{{"handler", true}, {"timer", true}, {"raise", false}, {"ignore", true}, {"default", false}, {"wait", true}, {"calls", false}, {"exec", false}} {
		cmd := Cmd{Argv: []string{bin, c.mode}, Options: "stacks=cpu:500"}
		bare, rec := cmd.Bare(t), cmd.Recorded(t)
		if bare.Stdout != rec.Stdout || bare.Stderr != rec.Stderr || bare.Status != rec.Status {
			t.Errorf("%s: bare %s %q %q, recorded %s %q %q", c.mode, bare.Status, bare.Stdout, bare.Stderr, rec.Status, rec.Stdout, rec.Stderr)
		}
		out, err := exec.Command(built(t, "prophet"), "info", rec.Trace).CombinedOutput()
		if err != nil {
			t.Errorf("%s: info: %v\n%s", c.mode, err, out)
		}
		if said := bytes.Contains(out, []byte("the program uses SIGPROF itself")); said != c.said {
			t.Errorf("%s: the trace says that the program uses the signal: %v\n%s", c.mode, said, out)
		}
	}
}

// exportOf runs `prophet export`, which must end with this status, and returns what it says on stderr.
func exportOf(t *testing.T, status int, args ...string) string {
	t.Helper()
	cmd := exec.Command(built(t, "prophet"), append([]string{"export"}, args...)...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("export %v: status %d, %v\n%s", args, got, err, out)
	}
	return string(out)
}

// pprof is what `go tool pprof` prints of a profile.
func pprof(t *testing.T, file string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append(append([]string{"tool", "pprof", "-symbolize=none"}, args...), file)...)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go tool pprof %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestStacksPprof: a stripped program with its separate file, C++, functions that were inlined, in pprof's own eyes.
func TestStacksPprof(t *testing.T) {
	bin := gcc(t, "chains", "-O2", "-g", "-Wl,--build-id", filepath.Join(top, "tests/progs/chains.cc"))
	debug := filepath.Join(filepath.Dir(bin), ".debug", "chains.debug")
	if err := os.Mkdir(filepath.Dir(debug), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{"objcopy", "--only-keep-debug", bin, debug}, {"strip", bin}, {"objcopy", "--add-gnu-debuglink=" + debug, bin}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	run := Cmd{Argv: []string{bin}}.Recorded(t)
	if run.Status != "exit status 0" {
		t.Fatalf("%s: %s", run.Status, run.Stderr)
	}
	file := filepath.Join(t.TempDir(), "p.pb.gz")
	exportOf(t, 0, run.Trace, "--pprof", file)
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("a profile is as private as its trace: %v %v", st, err)
	}
	if out := pprof(t, file, "-top", "-sample_index=sleep"); !strings.Contains(out, "usleep") || !strings.Contains(out, "c_space::c_leaf") {
		t.Errorf("pprof -top:\n%s", out)
	}
	out := pprof(t, file, "-traces", "-lines", "-sample_index=sleep")
	for _, want := range []string{
		`usleep\s+c_space::c_leaf\(\) \S+chains.cc:\d+\s+c_space::c_holder<std::vector<int.*>::c_method\(std::vector<int.*> >\) \S+chains.cc:\d+\s+main `,
		`c_space::c_leaf\(\) \S+\s+c_space::c_holder<int>::c_virtual\(.*\) const \S+\s+main `,
		`usleep\s+c_inlined \S+chains.cc:\d+ \(inline\)\s+c_space::c_inlines\(int\) \S+chains.cc:\d+\s+main `,
		`c_space::c_leaf\(\) \S+\s+c_space::c_catches\(\) \S+\s+main `,
		`c_space::c_leaf\(\) \S+\s+(c_space::c_cleans::)?~c_cleans.*\s+c_space::c_unwinds\(\)`,
		`c_space::c_leaf\(\) \S+\s+(main::)?.*(operator\(\)|lambda)`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no trace is like %s:\n%s", want, out)
			break
		}
	}
	for _, want := range []string{"cpu/nanoseconds", "lock_wait/nanoseconds", "lock_hold/nanoseconds", "disk/nanoseconds", "network/nanoseconds", "sleep/nanoseconds", "events/count", "lock_waits/count"} {
		if raw := pprof(t, file, "-raw"); !strings.Contains(raw, want) {
			t.Errorf("no sample type %s", want)
		}
	}
}

// TestStacksGo: calls of C from Go: the goroutine's stack is another one than C's.
func TestStacksGo(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module chains\n\ngo 1.26\n"), 0o600)
	text, err := os.ReadFile(filepath.Join(top, "tests/progs/chains.go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(dir, "main.go"), text, 0o600)
	for _, flags := range []string{"", "-s -w"} {
		build := exec.Command("go", "build", "-ldflags", flags, "-o", "chains", ".")
		build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=", "GOWORK=off")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		run := Cmd{Argv: []string{filepath.Join(dir, "chains")}}.Recorded(t)
		found := ""
		for s := range folded(t, run.Trace, "--type", "sleep") {
			if strings.Contains(s, "main.main;main.outer;main.inner;main._Cfunc_c_work") {
				found = s
			}
		}
		if found == "" || flags == "" && !strings.HasSuffix(found, "c_work;c_leaf;usleep") {
			t.Errorf("flags %q: %q of %v", flags, found, folded(t, run.Trace, "--type", "sleep"))
		}
	}
}

// TestExportWaits: who waited for whom, and where.
func TestExportWaits(t *testing.T) {
	bin := gcc(t, "chains", "-O2", filepath.Join(top, "tests/progs/chains.c"))
	run := Cmd{Argv: []string{bin}}.Recorded(t)
	var ns int64
	for s, n := range folded(t, run.Trace, "--wait-for") {
		if regexp.MustCompile(`c_waiter;c_waits;pthread_mutex_lock;\[waits for\] mutex:p0#\d+;.*main;c_holds;(c_leaf;usleep|pthread_mutex_unlock)$`).MatchString(s) {
			ns += n
		}
	}
	if ns < 15e6 {
		t.Errorf("of a wait of 25 ms %d us are found: %v", ns/1000, folded(t, run.Trace, "--wait-for"))
	}
}

// TestExportInjection: names in a trace do nothing to whoever reads what is exported.
func TestExportInjection(t *testing.T) {
	bin := gcc(t, "chains", "-O2", filepath.Join(top, "tests/progs/waits.c"))
	evil := filepath.Join(filepath.Dir(bin), "e\x1b]0;x\x07;\n<b>\u202e 99")
	if err := os.Rename(bin, evil); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("strip", evil).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	run := Cmd{Argv: []string{evil, "wait"}}.Recorded(t)
	file := filepath.Join(t.TempDir(), "p.pb.gz")
	said := exportOf(t, 0, run.Trace, "--pprof", file, "--folded", file+".folded")
	text, err := os.ReadFile(file + ".folded")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{said, string(text), pprof(t, file, "-raw")} {
		if i := strings.IndexAny(s, "\x1b\x07\u202e"); i >= 0 {
			t.Errorf("what a terminal obeys is printed: %q", s[max(0, i-40):min(len(s), i+40)])
		}
	}
	for line := range strings.Lines(string(text)) {
		if !regexp.MustCompile(`^[^;]+(;[^;]+)* \d+\n$`).MatchString(line) {
			t.Errorf("%q is no line of a folded file", line)
		}
	}
}

// TestTerminalInjection: no command prints what a terminal obeys, whatever a trace's names, arguments, files and the trace itself
// are called.
func TestTerminalInjection(t *testing.T) {
	const evil = "e\x1b]0;x\x07\r\x1b[2J\u009b31m\u202e;=1+1"
	dir := filepath.Join(t.TempDir(), evil)
	must(t, os.Mkdir(dir, 0o700))
	run := Cmd{Argv: []string{"bash", "-c", `cd "$1"; echo a >"$2"; cat "$2" "$2"; ls "$2/x"; ln -s "$2" "l$2"; mv "$2" "m$2"; exec -a "$2" cat "m$2"`, evil, dir, evil}}.Recorded(t)
	path := filepath.Join(dir, evil+".prophet")
	must(t, os.Rename(run.Trace, path))
	hurt := filepath.Join(dir, "hurt"+evil)
	must(t, os.CopyFS(hurt, os.DirFS(path)))
	stream, err := os.ReadFile(filepath.Join(hurt, "stream-00"))
	must(t, err)
	stream[len(stream)/2] ^= 0x55
	must(t, os.WriteFile(filepath.Join(hurt, "stream-00"), stream, 0o600))
	out := func(s string) string { return filepath.Join(dir, s+evil) }
	for _, args := range [][]string{
		{"info", path}, {"info", "--json", path}, {"dump", path}, {"dump", "--json", path}, {"verify", path}, {"verify", hurt}, {"dump", hurt}, {"diff", path, hurt}, {"diff", "--json", path, hurt},
		{"report", path, "-o", out("r")}, {"report", hurt, "-o", out("r2")}, {"report", path, hurt, "-o", out("r3")}, {"report", "--json", hurt},
		{"export", hurt, "--pprof", out("p")}, {"export", path, "--folded", "-"}, {"export", path, "--folded", "-", "--wait-for"}, {"export", hurt, "--perfetto", out("f")},
		{"export", hurt, "--parquet", out("q")}, {"export", path, "--csv", out("c")}, {"export", path, "--csv", out("c")}, {"pack", "-o", out("k"), path}, {"verify", out("k")}, {"info", out("k")}, {"unpack", "-o", out("u"), out("k")},
		{"scrub", "-o", out("s"), path}, {"scrub", "--keep", "path:" + evil, "-o", out("s2"), path}, {"scrub", "--keep", evil, path}, {"recover", path}, {"info", out("none")}, {"export", path, "--" + evil}, {evil},
	} {
		cmd := exec.Command(built(t, "prophet"), args...)
		cmd.Dir = t.TempDir()
		b, _ := cmd.CombinedOutput()
		if len(b) == 0 && args[0] != "report" && args[0] != "export" && args[0] != "recover" {
			t.Errorf("prophet %q says nothing", args)
		}
		if i := bytes.IndexAny(b, "\x1b\x07\r\u009b\u202e"); i >= 0 {
			t.Errorf("prophet %q prints what a terminal obeys: %q", args, b[max(0, i-60):min(len(b), i+40)])
		}
	}
}

// TestExportDamage: the good part of a damaged trace is exported, and the rest is said to be missing.
func TestExportDamage(t *testing.T) {
	bin := gcc(t, "waits", "-O2", filepath.Join(top, "tests/progs/waits.c"))
	run := Cmd{Argv: []string{bin, "busy"}}.Recorded(t)
	stream := filepath.Join(run.Trace, "stream-00")
	b, err := os.ReadFile(stream)
	if err != nil || len(b) < 3*64<<10 {
		t.Fatalf("a trace of %d bytes: %v", len(b), err)
	}
	b[100<<10] ^= 0x55
	if err := os.WriteFile(stream, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--folded"}, {"--folded", "--wait-for"}, {"--pprof"}} {
		file := filepath.Join(t.TempDir(), "x")
		said := exportOf(t, 1, append([]string{run.Trace, args[0], file}, args[1:]...)...)
		if !strings.Contains(said, "prophet: damaged: stream-00") {
			t.Errorf("%v says %q", args, said)
		}
		if st, err := os.Stat(file); err != nil || st.Size() < 10 && len(args) == 1 {
			t.Errorf("%v: %v %v", args, st, err)
		}
	}
}

// TestExportUsage: what cannot be meant is refused.
func TestExportUsage(t *testing.T) {
	run := Cmd{Argv: []string{"true"}}.Recorded(t)
	dir := t.TempDir()
	for _, c := range []struct {
		args string
		want string
	}{
		{"", "name a format"}, {"--pprof", "flag needs an argument"}, {"--type cpu --pprof x", "--type belongs to --folded"},
		{"--folded - --type tea", "there is no type tea"}, {"--folded - --type cpu --wait-for", "does not go with"}, {"--folded - --pprof -", "only one format"},
		{"--pprof " + dir, "is a directory"},
	} {
		if said := exportOf(t, 2, append([]string{run.Trace}, strings.Fields(c.args)...)...); !strings.Contains(said, c.want) {
			t.Errorf("export %s: %s", c.args, said)
		}
	}
	if said := exportOf(t, 1, run.Trace, "--pprof", "/nowhere/x"); !strings.Contains(said, "/nowhere") {
		t.Errorf("a file that cannot be made: %s", said)
	}
}
