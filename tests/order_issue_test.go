package tests

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/issued"
	"prophet/runtime/recovery"
)

// Followed in home's order, each lock is taken at the place that home's run took it at, whatever the machine; followed by think
// times alone, the run takes home's time, whatever the machine.
func TestIssueOrder(t *testing.T) {
	visited := 0
	for name, args := range map[string]string{"barrier": "8", "pipeline": "6", "kinds": ""} {
		t.Run(name, func(t *testing.T) {
			visited++
			path := recordedProgram(t, name, strings.Fields(args)...)
			dir := t.TempDir()
			program := filepath.Join(dir, "program")
			issueHere(t, path, "--order", "home", "--keep", program)
			turns := 0
			turns += inOrder(t, program, filepath.Join(dir, "all"))
			turns += inOrder(t, program, filepath.Join(dir, "one"), "--cpus", "0")
			if turns < 100 {
				t.Errorf("only %d turns", turns)
			}
			r := issueHere(t, path, "--think", "--cpus", "0")
			if r.Other+r.Unknown+r.Forced > 0 || r.Ops == 0 {
				t.Errorf("%+v", r)
			}
		})
	}
	if visited != 3 {
		t.Errorf("%d programs", visited)
	}
	// Files' locks have an order, too.
	rec := Cmd{Argv: []string{"sh", "-c", `sqlite3 db 'create table t(a)'; for i in 1 2 3; do (for k in 1 2 3; do sqlite3 db -cmd '.timeout 20000' 'insert into t values(1)'; done) & done; wait`}}.Recorded(t)
	for _, how := range [][]string{{"--order", "home"}, {"--order", "home", "--cpus", "0"}, {"--think"}} {
		if r := issueHere(t, rec.Trace, how...); r.Other+r.Unknown+r.Forced > 0 || r.Ops == 0 {
			t.Errorf("%v: %+v", how, r)
		}
	}
}

// Think times are home's: also where two threads have one processor.
func TestIssueThink(t *testing.T) {
	path := recordedProgram(t, "barrier", "2", "600")
	tr, _, _, err := recovery.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	home, think := time.Duration(tr.Meta.Ended.At), time.Hour
	for range 3 {
		think = min(think, issueHere(t, path, "--think", "--cpus", "0").Wall)
	}
	if think < home/2 || think > home*3/2 {
		t.Errorf("%v at home; with its times between calls on one processor %v", home, think)
	}
}

// inOrder issues a program and compares the places of its locks with those of its turns.
func inOrder(t *testing.T, program, file string, cpus ...string) (turns int) {
	t.Helper()
	args := append([]string{"issue", "--program", program, "--dir", t.TempDir(), "--log", file}, cpus...)
	if out, err := exec.Command(built(t, "replayd"), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var head cabi.Prog
	whole, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte, v any) {
		if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	read(whole, &head)
	ops := make([]cabi.ProgOp, head.Ops)
	read(whole[head.OpsAt:], ops)
	log, err := issued.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for i, th := range log.Threads {
		if th.Forced > 0 || th.Cut > 0 {
			t.Errorf("%+v", th)
		}
		it := log.Iter(i)
		for {
			var l cabi.ProgLog
			if err := it.Next(&l); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			op := ops[l.Op]
			if op.Code != cabi.OpLock && op.Code != cabi.OpWrlock && op.Code != cabi.OpSpinlock && op.Code != cabi.OpSemwait {
				continue
			}
			turns++
			if turn := ops[l.Op-1]; turn.Code != cabi.OpTurn || turn.Obj != op.Obj || l.Seq != uint64(turn.A) {
				t.Fatalf("operation %d took place %d of object %d; before it is %+v", l.Op, l.Seq, op.Obj, turn)
			}
		}
	}
	return turns
}
