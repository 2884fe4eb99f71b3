package tests

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/recovery"
	"prophet/runtime/report"
	"prophet/runtime/trace"
)

// recordedProgram records a program of tests/predict.
func recordedProgram(t *testing.T, name string, args ...string) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("gcc", "-O2", "-pthread", "-o", exe, filepath.Join("predict", name+".c")).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	rec := Cmd{Argv: append([]string{exe}, args...)}.Recorded(t)
	if rec.Status != "exit status 0" {
		t.Fatalf("%s; %s", rec.Status, rec.Stderr)
	}
	return rec.Trace
}

type issuedHere struct {
	Wall    time.Duration `json:"wall_ns"`
	Ops     uint64        `json:"operations"`
	Other   uint64        `json:"other_ways"`
	Unknown uint64        `json:"unknown_ways"`
	Forced  uint64        `json:"forced_waits"`
	Outside time.Duration `json:"outside_ns"`
	CPU     time.Duration `json:"cpu_ns"`
	Loop    float64       `json:"loop_ns"`
	LoopAs  string        `json:"loop_as"`
	Parts   []struct {
		Class   string  `json:"class"`
		Seconds float64 `json:"seconds"`
	} `json:"parts"`
}

// issueHere issues what was recorded on this machine; nothing may be left of it.
func issueHere(t *testing.T, trace string, args ...string) issuedHere {
	t.Helper()
	dir := t.TempDir()
	var out, said bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, built(t, "replayd"), append([]string{"issue", "--json", "--dir", dir, "--trace", trace}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var r issuedHere
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
	return r
}

// compiled is what compiling a trace says.
func compiled(t *testing.T, path string) *demand.Info {
	t.Helper()
	tr, _, _, err := recovery.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	info, err := demand.Compile(tr, demand.Options{}, filepath.Join(t.TempDir(), "program"))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Whatever the order in which threads come here, an issue gets to its end by itself, and by ways that home went.
func TestIssue(t *testing.T) {
	visited := 0
	for _, x := range []struct {
		name    string
		threads []string
		learnt  int // wait loops
	}{{"barrier", []string{"2", "16"}, 1}, {"pipeline", []string{"2", "16"}, 2}, {"kinds", []string{""}, 0}} {
		for _, n := range x.threads {
			t.Run(x.name+n, func(t *testing.T) {
				visited++
				path := recordedProgram(t, x.name, strings.Fields(n)...)
				info := compiled(t, path)
				if info.Preds > x.learnt || info.Unlearnt > 0 || info.Lone > 0 {
					t.Errorf("%d wait loops, %d of them not learnt; %d waits of none", info.Preds, info.Unlearnt, info.Lone)
				}
				for range 3 {
					if r := issueHere(t, path); r.Unknown > 0 && x.name != "kinds" || r.Forced > 0 || r.Ops == 0 {
						t.Errorf("%+v", r)
					}
				}
			})
		}
	}
	if visited != 5 {
		t.Errorf("%d programs", visited)
	}
}

// What an iteration of the loop is taken to take says how many are made: of one that is taken to take long, few.
func TestIssueLoop(t *testing.T) {
	path := recordedProgram(t, "burn")
	here := issueHere(t, path)
	if here.Loop <= 0 || here.CPU <= 0 {
		t.Fatalf("%+v", here)
	}
	few := issueHere(t, path, "--loop", fmt.Sprint(here.Loop*20))
	if math.Abs(few.Loop/here.Loop-20) > 0.01 || few.CPU > here.CPU/4 {
		t.Errorf("an iteration was taken to take %.3g ns, and %v of CPU time were used; then %.3g ns, and %v", here.Loop, here.CPU, few.Loop, few.CPU)
	}
	// So do a line of the walk and its iterations, and an issue that is given what another said does as much.
	walk := issueHere(t, path, "--walk", fmt.Sprint(64<<10))
	var iter, line, block float64
	if _, err := fmt.Sscanf(walk.LoopAs, "%g:%g:%g", &iter, &line, &block); err != nil || line <= 0 || block < line {
		t.Fatalf("%q: %v", walk.LoopAs, err)
	}
	if again := issueHere(t, path, "--walk", fmt.Sprint(64<<10), "--loop", walk.LoopAs); again.LoopAs != walk.LoopAs {
		t.Errorf("%s was given as %s", walk.LoopAs, again.LoopAs)
	}
	few = issueHere(t, path, "--walk", fmt.Sprint(64<<10), "--loop", fmt.Sprintf("%g:%g:%g", iter, line, block*20))
	if few.CPU > walk.CPU/4 {
		t.Errorf("a line with its iterations was taken to take %g ns, and %v of CPU time were used; then %g ns, and %v", block, walk.CPU, block*20, few.CPU)
	}
	for _, bad := range []string{"x", "1:2", "1:2:x", "1:2:3:4", "-1", "1:2:"} {
		if out, err := exec.Command(built(t, "replayd"), "issue", "--trace", path, "--loop", bad).CombinedOutput(); err == nil || !strings.Contains(string(out), "not what an iteration takes") {
			t.Errorf("--loop %s: %v: %s", bad, err, out)
		}
	}
}

// What a thread computes before its first call is demand, too, and what a program does.
func TestIssueLate(t *testing.T) {
	for _, args := range [][]string{nil, {"another"}} {
		tr, _, _, err := recovery.Open(recordedProgram(t, "late", args...), nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := demand.Compile(tr, demand.Options{}, filepath.Join(t.TempDir(), "program"))
		tr.Close()
		if err != nil {
			t.Fatal(err)
		}
		if used := time.Duration(tr.Meta.Cover.CPUNS); info.CPU < used*8/10 || info.CPU > used*12/10 {
			t.Errorf("%v: it used %v of CPU time, of which %v are demand", args, used, info.CPU)
		}
	}
}

// A process whose first thread ends goes on with the others.
func TestIssueFirstEnds(t *testing.T) {
	path := recordedProgram(t, "first")
	info := compiled(t, path)
	if r := issueHere(t, path); r.Ops+uint64(info.Threads) != info.Ops || r.Forced > 0 {
		t.Errorf("%+v: of %d operations, each thread's end among them", r, info.Ops)
	}
}

// Who waits in vain for longer than home did waits for the same thing again: it does not take up what comes later.
func TestIssueInVain(t *testing.T) {
	for _, args := range [][]string{nil, {"held"}, {"often"}} {
		path, home := "", impatience{}
		for try := 0; try == 0 || home.over > 0; try++ { // who slept over two does not show which of them it needed
			if try == 30 {
				t.Fatalf("%v: each home slept over what it was told: %+v", args, home)
			}
			path = recordedProgram(t, "impatient", args...)
			home = impatient(t, path)
		}
		if home.ahead > 0 || home.gave != 6 || home.told < 12 {
			t.Fatalf("%v: %+v", args, home)
		}
		for _, scale := range []string{"3", "0.5"} {
			made := filepath.Join(t.TempDir(), "issued.prophet")
			r := issueHere(t, path, "--scale", scale, "--record", made)
			// With each wait an arrival of its own, each goes another way than home, and more than one.
			if is := impatient(t, made); r.Forced+r.Unknown > 0 || is.ahead > 0 || is.gave != home.gave || is.told != home.told || r.Other > uint64(is.waits+is.told) {
				t.Errorf("%v, %s times the demand, %+v: %+v; home %+v", args, scale, r, is, home)
			}
		}
	}
}

// impatience is what a trace of predict/impatient.c says: how often work was handed out, and how often that was before all of the last
// was told of; how often parts were told of; how often who hands out waited, and slept over more than one that it was told.
type impatience struct{ gave, ahead, told, waits, over int }

func impatient(t *testing.T, path string) (is impatience) {
	t.Helper()
	tr, err := trace.Open(path)
	must(t, err)
	defer tr.Close()
	if len(tr.Threads) != 2 {
		t.Fatalf("%d threads", len(tr.Threads))
	}
	var gave, told []uint64 // in which of its mutex's turns
	type sleep struct{ from, to uint64 }
	var slept []sleep
	for i, th := range tr.Threads {
		it, turn := tr.Iter(th), uint64(0)
		var r trace.Record
		for it.Next(&r) == nil {
			switch {
			case r.Tag != trace.TagEvent:
			case r.Row.Name == "pthread_cond_signal" && i == 0:
				gave = append(gave, turn)
			case r.Row.Name == "pthread_cond_signal":
				told = append(told, turn)
			case r.Row.Name == "pthread_cond_timedwait":
				slept = append(slept, sleep{turn, r.Seq})
				turn = r.Seq
			case r.Row.Name == "pthread_mutex_lock" || r.Row.Name == "pthread_cond_wait":
				turn = r.Seq
			}
		}
	}
	is.gave, is.told, is.waits = len(gave), len(told), len(slept)
	need := 0
	for n, turn := range gave {
		before, _ := slices.BinarySearch(told, turn)
		if n > 5 || before < need {
			is.ahead++
		}
		need += (n+1)%3 + 1
	}
	for _, x := range slept {
		from, _ := slices.BinarySearch(told, x.from)
		to, _ := slices.BinarySearch(told, x.to)
		if len(slices.Compact(slices.Clone(told[from:to]))) > 1 {
			is.over++
		}
	}
	return is
}

// Datagrams between processes of the run are sent and waited for: where the server computes for longer its clients wait for longer.
func TestIssueDatagrams(t *testing.T) {
	path := recordedProgram(t, "datagram")
	info := compiled(t, path)
	if info.CPU < 20*time.Millisecond {
		t.Fatalf("the server computed for %v", info.CPU)
	}
	if info.Skipped["sendmmsg"]+info.Skipped["recvmmsg"] > 0 {
		t.Errorf("not issued: %v", info.Skipped)
	}
	for _, scale := range []float64{1, 4} {
		r := issueHere(t, path, "--scale", fmt.Sprint(scale), "--limit", "30s")
		// What it computed by its own count: what an iteration of the loop takes may be another one on a busy machine.
		if r.Forced > 0 || r.Outside > info.CPU/20 || r.Wall < r.CPU*8/10 {
			t.Errorf("%g times the demand of %v: %+v", scale, info.CPU, r)
		}
	}
}

// Who waits for a signal that the run itself sends waits until it is sent there: where there is less to compute for less long.
func TestIssueSignals(t *testing.T) {
	path := recordedProgram(t, "told")
	info := compiled(t, path)
	for _, name := range []string{"sigwait", "sigwaitinfo", "pthread_kill", "kill"} {
		if info.Skipped[name] > 0 {
			t.Errorf("%s is not issued", name)
		}
	}
	for _, scale := range []float64{0.1, 2} {
		// What it computes is far more than all else; by its own count, as the machine may be busy.
		if r := issueHere(t, path, "--scale", fmt.Sprint(scale), "--limit", "30s"); r.Forced > 0 || r.Outside > info.CPU/20 || r.Wall < r.CPU*8/10 {
			t.Errorf("%g times the demand of %v: %+v", scale, info.CPU, r)
		}
	}
}

// Who takes what another one took at home goes on as that one, to its end and as who it is waited for there: the thread that made the
// others may come to the end of one of them, and one of them to its waits for their ends.
func TestIssueAnother(t *testing.T) {
	path := recordedProgram(t, "pool")
	info := compiled(t, path)
	for _, cpus := range []string{"0", "0,1"} {
		for range 5 {
			// Of loops of which only home's order is known some waits may have to be helped; of others each thread gets to its end by itself.
			r := issueHere(t, path, "--cpus", cpus, "--limit", "20s")
			if r.Wall > 5*time.Second || r.Forced == 0 && r.Ops*100 < info.Ops*95 {
				t.Errorf("on %s: %+v, of %d operations", cpus, r, info.Ops)
			}
		}
	}
}

// Programs of others: work that is handed out in order, done in any and put in order again; threads joined as they end;
// processes that try again for a lock.
func TestIssueApps(t *testing.T) {
	visited := 0
	for name, script := range map[string]string{
		"pigz":   `seq 400000 >data; pigz -p2 -k -c data | cksum`,
		"xz":     `seq 100000 >data; xz -T2 -1 --block-size=128KiB -k -c data | cksum`,
		"sqlite": `sqlite3 db 'create table t(a)'; for i in 1 2; do (for k in 1 2 3 4 5; do sqlite3 db -cmd '.timeout 20000' 'insert into t values(1)'; done) & done; wait; sqlite3 db 'select count(*) from t'`,
		// The child's end of the pipe that tells of a failed exec is closed by the exec; more than a pipe holds comes after that.
		"python": `/usr/bin/python3 -c 'import subprocess; [subprocess.check_output(["seq", "50000"]) for i in range(3)]'`,
	} {
		t.Run(name, func(t *testing.T) {
			visited++
			rec := Cmd{Argv: []string{"sh", "-c", script}}.Recorded(t)
			if rec.Status != "exit status 0" {
				t.Fatalf("%s; %s", rec.Status, rec.Stderr)
			}
			for range 3 {
				if r := issueHere(t, rec.Trace); r.Forced > 0 || r.Ops == 0 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	if visited != 4 {
		t.Errorf("%d programs", visited)
	}
}

// Sleeps take their time, and CPU demand on half as many processors takes longer.
func TestIssueTime(t *testing.T) {
	rec := Cmd{Argv: []string{"sleep", "0.3"}}.Recorded(t)
	for n := 0; ; n++ { // a busy machine may wake us late now and then
		r := issueHere(t, rec.Trace)
		if r.Wall < 290*time.Millisecond || r.Wall > 2*time.Second && n == 4 {
			t.Errorf("0.3 s of sleep took %v", r.Wall)
		}
		if r.Wall <= 2*time.Second || n == 4 {
			break
		}
	}
	work := "BEGIN{for(i=0;i<2000000;i++)s+=i}" // long beside what waking a thread takes, which on one processor costs less
	argv := []string{"sh", "-c", "awk '" + work + "' & awk '" + work + "'; wait"}
	path := Cmd{Argv: argv}.Recorded(t).Trace
	// On one processor nothing is done in less time than it takes of it, whatever else runs here.
	if r := issueHere(t, path, "--cpus", "0"); r.CPU < 100*time.Millisecond || r.Wall < r.CPU*95/100 {
		t.Errorf("on one processor it took %v, and %v of CPU time", r.Wall, r.CPU)
	}
	// On all of them the two run at the same time, unless others take the processors: then the program's do not, either.
	const tries = 15
	atOnce := func(wall, cpu time.Duration) bool { return wall < cpu*9/10 }
	program := 0
	for n := 0; n < tries && program+tries-n > tries/2; n++ {
		if r := issueHere(t, path); atOnce(r.Wall, r.CPU) {
			return
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		begin := time.Now()
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if atOnce(time.Since(begin), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) {
			program++
		}
	}
	t.Logf("never at once; the program's in %d of %d tries", program, tries)
	if program > tries/2 {
		t.Errorf("its two processes never ran at the same time, the program's in %d of %d tries", program, tries)
	}
}

// The parts of a thread's time are its whole time, and a sleep's is sleep.
func TestIssueParts(t *testing.T) {
	rec := Cmd{Argv: []string{"sleep", "0.3"}}.Recorded(t)
	r := issueHere(t, rec.Trace, "--parts")
	sum, by := 0.0, map[string]float64{}
	for _, p := range r.Parts {
		by[p.Class] += p.Seconds
		sum += p.Seconds
	}
	if by["sleep"] < 0.29 || sum > r.Wall.Seconds()*1.05 || sum < r.Wall.Seconds()*0.7 {
		t.Errorf("of %v: %v", r.Wall, by)
	}
	if r := issueHere(t, rec.Trace); len(r.Parts) > 0 {
		t.Errorf("unasked: %v", r.Parts)
	}
	// A shell waits in sigsuspend, and is first asked for its CPU time when that is over.
	r = issueHere(t, Cmd{Argv: []string{"sh", "-c", "sleep 0.3 & wait"}}.Recorded(t).Trace, "--parts")
	for _, p := range r.Parts {
		if p.Class == "cpu" && p.Seconds > 0.1 {
			t.Errorf("who waits takes CPU time: %v", r.Parts)
		}
	}
	cpu := exec.Command("awk", "BEGIN{for(i=0;i<3000000;i++)s+=i}").Args
	r = issueHere(t, Cmd{Argv: cpu}.Recorded(t).Trace, "--parts")
	sum = 0
	for _, p := range r.Parts {
		if p.Class == "cpu" || p.Class == "ready" {
			sum += p.Seconds
		}
	}
	if sum < r.Wall.Seconds()*0.9 {
		t.Errorf("of %v of computing: %v", r.Wall, r.Parts)
	}
}

// An issue that is ended leaves no process and no file.
func TestIssueEnded(t *testing.T) {
	rec := Cmd{Argv: []string{"sh", "-c", "sleep 30.5 & sleep 31.5; wait"}, Timeout: 3 * time.Second}
	path := filepath.Join(t.TempDir(), "run.prophet")
	cmd := exec.Command(rec.Argv[0], rec.Argv[1:]...)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_TRACE="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	cmd.Wait()
	if out, err := exec.Command(built(t, "prophet"), "info", path).CombinedOutput(); err != nil && !bytes.Contains(out, []byte("events")) {
		t.Fatalf("%v: %s", err, out)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		dir := t.TempDir()
		slow := recordedProgram(t, "pipeline", "4", "2000")
		issue := exec.Command(built(t, "replayd"), "issue", "--trace", slow, "--dir", dir, "--times", "1000")
		if err := issue.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		issue.Process.Signal(sig)
		issue.Wait()
		gone := false
		for range 100 {
			if gone = !strings.Contains(engines(), dir); gone {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if !gone {
			t.Errorf("after %v processes are left", sig)
		}
		if left, _ := os.ReadDir(dir); sig == syscall.SIGTERM && len(left) > 0 {
			t.Errorf("after %v left is %v", sig, left)
		}
	}
}

// engines are the command lines of all processes.
func engines() string {
	var b strings.Builder
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range list {
		line, _ := os.ReadFile(f)
		if bytes.Contains(line, []byte("issue-engine")) {
			b.Write(line)
		}
	}
	return b.String()
}

// A compiled program that was damaged is refused, and what is made of it does not bring the engine down.
func TestIssueDamaged(t *testing.T) {
	path := recordedProgram(t, "pipeline", "2", "20")
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command(built(t, "replayd"), "issue", "--trace", path, "--keep", program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	whole, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	for i := range 200 {
		b := bytes.Clone(whole)
		at := (i * 7919) % len(b)
		b[at] ^= byte(1 << (i % 8))
		if i%10 == 0 {
			b = b[:at]
		}
		if err := os.WriteFile(program, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(built(t, "replayd"), "issue", "--program", program).CombinedOutput(); err == nil {
			t.Fatalf("damaged at %d: %s", at, out)
		}
		if i%10 != 0 {
			continue
		}
		// The engine by itself, which does not look at the checksum.
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		cmd := exec.CommandContext(ctx, built(t, "replayd"), "issue-engine", program, files, filepath.Join(t.TempDir(), "result"), "1", "0", "0", "0", "0", "0", "0")
		out, err := cmd.CombinedOutput()
		cancel()
		if state := cmd.ProcessState; state.Sys().(syscall.WaitStatus).Signaled() && ctx.Err() == nil {
			t.Fatalf("cut at %d: %v: %s", at, err, out)
		}
	}
}

// prophet predict answers as reports read it, and refuses what it cannot stand for.
func TestPredict(t *testing.T) {
	rec := Cmd{Argv: []string{"sleep", "0.4"}}.Recorded(t)
	predict := func(args ...string) (string, string, error) {
		var out, said bytes.Buffer
		cmd := exec.Command(built(t, "prophet"), append([]string{"predict", rec.Trace}, args...)...)
		cmd.Env = append(os.Environ(), "PROPHET_REPLAYD="+built(t, "replayd"))
		cmd.Stdout, cmd.Stderr = &out, &said
		err := cmd.Run()
		return out.String(), said.String(), err
	}
	out, said, err := predict("--target", "local,cpus=1", "-n", "3", "--home-runs", "1", "--what-if", "0", "--force", "--json")
	if err != nil && !strings.Contains(out, "refused") {
		t.Fatalf("%v: %s", err, said)
	}
	p, err := report.ReadPrediction(strings.NewReader(out))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if p.Predicted < 0.39 || p.Predicted > 2 || p.Low > p.Predicted || p.High < p.Predicted || p.Home < 0.39 || p.Rounds != 1 || !p.Proven {
		t.Errorf("%+v", p)
	}
	// Of each of several targets is known where the time goes.
	out, said, err = predict("--target", "local", "--target", "local,cpus=1", "-n", "1", "--home-runs", "0", "--what-if", "0", "--force", "--json")
	if n := strings.Count(out, `"breakdown"`); err != nil || n != 2 || strings.Contains(out, "is not known") {
		t.Errorf("%d of 2 targets with a breakdown: %v: %s\n%s", n, err, said, out)
	}
	for _, bad := range [][]string{nil, {"--target", "nowhere"}, {"--target", "local", "-n", "0"}} {
		if _, said, err := predict(bad...); err == nil || !strings.Contains(fmt.Sprint(err), "exit status 2") || said == "" {
			t.Errorf("%v: %v: %s", bad, err, said)
		}
	}
}

// Locks of files are issued on the files that home locked: who cannot have one at once does what home did then.
// One that is in vain more often than it was at home is new, and ends there: on a busy machine that is no fault.
func TestIssueFileLocks(t *testing.T) {
	got, not := 0, 0
	for i := 0; i < 5 && (got < 2 || not < 1); i++ {
		if got, not = issuedFileLocks(t); got < 1 {
			break
		}
	}
	if got < 2 || not < 1 {
		t.Errorf("%d locks, and %d that were not to be had", got, not)
	}
}

// issuedFileLocks is how many locks an issue of two processes at one lock got, and how many it did not.
func issuedFileLocks(t *testing.T) (got, not int) {
	script := `exec 3>other; flock lock sleep 0.2 & sleep 0.05; for i in 1 2 3 4 5 6 7 8 9; do flock -n lock true && break; sleep 0.05; done; wait`
	rec := Cmd{Argv: []string{"bash", "-c", script}}.Recorded(t)
	if rec.Status != "exit status 0" {
		t.Fatalf("%s; %s", rec.Status, rec.Stderr)
	}
	program, log := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "log")
	issueHere(t, rec.Trace, "--keep", program, "--log", log)
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var h cabi.Prog
	if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil {
		t.Fatal(err)
	}
	ops := make([]cabi.ProgOp, h.Ops)
	if _, err := binary.Decode(b[h.OpsAt:], binary.LittleEndian, ops); err != nil {
		t.Fatal(err)
	}
	l, err := issued.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range l.Threads {
		var x cabi.ProgLog
		for it := l.Iter(i); it.Next(&x) == nil; {
			if o := ops[x.Op]; o.Code == cabi.OpFlock && x.Begin != x.End {
				if o.Obj != 4 {
					t.Errorf("a lock of descriptor %d", o.Obj)
				}
				if x.Result == 0 {
					got++
				} else if x.Result == -int64(syscall.EAGAIN) {
					not++
				}
			}
		}
	}
	return got, not
}

// Locks of two processes that run one program are one in the issue, each with a state of its own, at random addresses as at fixed
// ones: a process that goes on as the other did takes and lets go its own.
func TestIssueAlike(t *testing.T) {
	for _, how := range [][]string{{"sh", "-c", "1 2"}, {"sh", "-c", "1 234567890123456789"}, {"setarch", "-R", "sh", "-c", "1 2"}} {
		names := how[len(how)-1] // those of two lengths move what is behind them in memory
		rec := Cmd{Argv: append(slices.Clone(how[:len(how)-1]), `for i in `+names+`; do sqlite3 db$i 'create table t(a); insert into t values(1)'; done`)}.Recorded(t)
		if rec.Status != "exit status 0" {
			t.Fatalf("%s; %s", rec.Status, rec.Stderr)
		}
		tr, _, _, err := recovery.Open(rec.Trace, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		path := filepath.Join(t.TempDir(), "program")
		if _, err := demand.Compile(tr, demand.Options{}, path); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var h cabi.Prog
		if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, &h); err != nil {
			t.Fatal(err)
		}
		by := map[uint32]map[uint32]bool{} // by process, the mutexes
		for n := range int(h.Threads) {
			var th cabi.ProgThread
			if err := binary.Read(bytes.NewReader(b[int(h.ThreadsAt)+n*binary.Size(th):]), binary.LittleEndian, &th); err != nil {
				t.Fatal(err)
			}
			for i := th.First; i < th.First+th.Count; i++ {
				var op cabi.ProgOp
				if err := binary.Read(bytes.NewReader(b[int(h.OpsAt)+int(i)*binary.Size(op):]), binary.LittleEndian, &op); err != nil {
					t.Fatal(err)
				}
				if op.Code == cabi.OpLock {
					if by[th.Proc] == nil {
						by[th.Proc] = map[uint32]bool{}
					}
					by[th.Proc][op.Obj] = true
				}
			}
		}
		var all []map[uint32]bool
		for _, m := range by {
			all = append(all, m)
		}
		if len(all) != 2 || len(all[0]) < 3 || !maps.Equal(all[0], all[1]) {
			t.Errorf("%v: mutexes by process: %v", how, by)
		}
	}
}

// The path of a barrier among 16 threads and of a pipeline is proven, on one processor and on all, in at most three rounds.
func TestPredictProven(t *testing.T) {
	visited := 0
	for _, x := range [][]string{{"barrier", "16", "200"}, {"pipeline", "16", "100"}} {
		path := recordedProgram(t, x[0], x[1:]...)
		for _, to := range []string{"local,cpus=1", "local"} {
			visited++
			p := predictedOnce(t, path, "--target", to)
			if !p.Proven || p.Rounds < 1 || p.Rounds > 3 {
				t.Errorf("%s on %s: proven %v in %d rounds", x[0], to, p.Proven, p.Rounds)
			}
		}
	}
	if visited != 4 {
		t.Errorf("%d predictions", visited)
	}
}

// predictedOnce is what one issue of a trace says, without any at home.
func predictedOnce(t *testing.T, path string, args ...string) *report.Prediction {
	t.Helper()
	var out, said bytes.Buffer
	cmd := exec.Command(built(t, "prophet"), append([]string{"predict", path, "-n", "1", "--home-runs", "0", "--what-if", "0", "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "PROPHET_REPLAYD="+built(t, "replayd"))
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	p, err := report.ReadPrediction(&out)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The path of clients that lock one database and try again depends on what each of them met before. Contexts that nobody had come to
// are learnt, and kept in a library: once they are there, the path is proven.
func TestPredictClients(t *testing.T) {
	script := `sqlite3 db 'create table t(a)'; for i in 1 2; do sqlite3 db -cmd '.timeout 20000' 'insert into t values(1)' & done; wait`
	library := filepath.Join(t.TempDir(), "library")
	predict := func(path string) *report.Prediction {
		return predictedOnce(t, path, "--target", "local", "--rounds", "12", "--library", library)
	}
	rec := Cmd{Argv: []string{"setarch", "-R", "sh", "-c", script}}.Recorded(t) // as prophet record does
	if rec.Status != "exit status 0" {
		t.Fatalf("%s; %s", rec.Status, rec.Stderr)
	}
	learnt := 0
	for range 3 {
		p := predict(rec.Trace)
		if !p.Proven {
			t.Errorf("not proven in %d rounds", p.Rounds)
		}
		learnt += p.Rounds - 1
	}
	list, err := filepath.Glob(filepath.Join(library, "*.prophet"))
	if err != nil || len(list) > learnt { // a round may come to nothing that could be learnt
		t.Errorf("%d learnt, %d in the library, %v", learnt, len(list), err)
	}
	for _, path := range list {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st, err)
		}
		undamaged(t, path)
	}
	// What is of another command has no place there.
	other := Cmd{Argv: []string{"true"}}.Recorded(t)
	if err := os.CopyFS(filepath.Join(library, "other.prophet"), os.DirFS(other.Trace)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(built(t, "prophet"), "predict", rec.Trace, "--target", "local", "--library", library).CombinedOutput()
	if fmt.Sprint(err) != "exit status 2" || !bytes.Contains(out, []byte("no place in this library")) {
		t.Errorf("%v: %s", err, out)
	}
}
