package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Issuing the demand of a recorded run at home, in turn with the program itself. What is printed is how much longer an issue
// takes than the runs before and after it, beside how far those lie apart. The shares of system time and of switches, of the
// issues for one of the program's, say where to look when they differ.

// issued is a program whose demand is issued.
type issued struct {
	name   string
	needs  []string
	script string                           // what is run, by sh; one of tests/predict is $P
	prog   string                           // of tests/predict
	setup  func(b *bench, dir string) error // once
	reset  string                           // before each run, by sh
}

var issuedPrograms = func() []issued {
	list := []issued{
		{name: "pigz", needs: []string{"pigz"}, script: "exec pigz -p2 -k -c text >out", setup: textSetup},
		{name: "xz-T2", needs: []string{"xz"}, script: "exec xz -T2 -2 --block-size=2MiB -k -c text >out", setup: textSetup},
		{name: "pbzip2-p2", needs: []string{"pbzip2"}, script: "exec pbzip2 -p2 -k -f -q -c text >out", setup: textSetup},
		{name: "sort", needs: []string{"sort"}, script: "LC_ALL=C exec sort --parallel=2 -S 40M text -o out", setup: textSetup},
		{name: "gzip", needs: []string{"gzip"}, script: "exec gzip -k -c text >out", setup: textSetup},
		{name: "bzip2", needs: []string{"bzip2"}, script: "exec bzip2 -k -c text >out", setup: textSetup},
		{name: "xz", needs: []string{"xz"}, script: "exec xz -1 -k -c text >out", setup: textSetup},
		{name: "openssl", needs: []string{"openssl"}, script: "exec openssl enc -aes-256-cbc -pbkdf2 -iter 1000000 -k key -in text -out out", setup: textSetup},
		{name: "dd-write", needs: []string{"dd"}, script: "exec dd if=/dev/zero of=out bs=64k count=6000 conv=fsync 2>/dev/null", reset: "rm -f out"},
		{name: "dd-read", needs: []string{"dd"}, script: "exec dd if=data of=/dev/null bs=4k 2>/dev/null", setup: func(_ *bench, dir string) error {
			return writeFile(filepath.Join(dir, "data"), func(w io.Writer) { _, _ = io.CopyN(w, rand.NewChaCha8([32]byte{}), 1<<30) })
		}},
		{name: "python3", needs: []string{"/usr/bin/python3"}, setup: textSetup, script: `exec /usr/bin/python3 -c '
import subprocess
for i in range(20):
    p = subprocess.Popen(["tr", "a-z", "A-Z"], stdin=open("text"), stdout=subprocess.PIPE)
    n = sum(l.count(b"A") for l in p.stdout)
    p.wait()
'`},
	}
	for _, n := range []string{"2", "4", "8", "16"} {
		list = append(list,
			issued{name: "barrier" + n, prog: "barrier", script: `exec "$P" ` + n + " 2000"},
			issued{name: "pipeline" + n, prog: "pipeline", script: `exec "$P" ` + n + " 3000"},
			issued{name: "locks" + n, prog: "locks", script: `exec "$P" ` + n + " 20000"})
	}
	for _, n := range []string{"1", "2", "4", "8"} {
		list = append(list, issued{name: "sqlite" + n, needs: []string{"sqlite3"}, reset: "rm -f db*; sqlite3 db 'create table t(a,b)'",
			script: "for i in $(seq " + n + `); do sqlite3 db <work & done; wait`,
			setup: func(_ *bench, dir string) error {
				return writeFile(filepath.Join(dir, "work"), func(w io.Writer) {
					fmt.Fprintln(w, ".timeout 60000")
					for i := range 200 {
						fmt.Fprintf(w, "insert into t values(%d, 'a row of some length');\n", i)
					}
				})
			}})
	}
	return list
}()

// oneRun is what a run took.
type oneRun struct {
	wall   float64
	user   float64
	system float64
}

func (b *bench) issue() error {
	var failed error
	for i := range issuedPrograms {
		p := &issuedPrograms[i]
		if b.only != nil && !slices.Contains(b.only, p.name) && !slices.Contains(b.only, "issue") {
			continue
		}
		if err := need(p.needs...); err != nil {
			return fmt.Errorf("%s: %w (tests/setup installs it)", p.name, err)
		}
		if err := b.issueProgram(p); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return failed
}

// issueProgram records a program, and then runs and issues it in turn.
func (b *bench) issueProgram(p *issued) error {
	dir, err := os.MkdirTemp(b.home, "issue-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if p.setup != nil {
		if err := p.setup(b, dir); err != nil {
			return err
		}
	}
	exe := filepath.Join(b.work, p.name)
	if p.prog != "" {
		src := filepath.Join(filepath.Dir(b.src), "tests", "predict", p.prog+".c")
		if _, err := b.output(b.work, "gcc", "-O2", "-pthread", "-o", exe, src); err != nil {
			return err
		}
	}
	sh := func(way, script string) (oneRun, string, error) {
		run := b.command(way, dir, "sh", "-c", script)
		run.cmd.Env = append(run.cmd.Env, "P="+exe)
		begin := time.Now()
		_, err := run.run()
		r := oneRun{wall: time.Since(begin).Seconds()}
		if err == nil {
			r.user, r.system = run.cmd.ProcessState.UserTime().Seconds(), run.cmd.ProcessState.SystemTime().Seconds()
		}
		return r, run.trace, err
	}
	program := func(way string) (oneRun, string, error) {
		if p.reset != "" {
			if _, _, err := sh(wayBare, p.reset); err != nil {
				return oneRun{}, "", err
			}
		}
		return sh(way, p.script)
	}
	replayd := filepath.Join(filepath.Dir(b.tool), "replayd")
	issue := func(args ...string) (*issueResult, error) {
		run := b.command(wayBare, dir, append([]string{replayd, "issue", "--json", "--dir", dir}, args...)...)
		var out strings.Builder
		run.cmd.Stdout = &out
		if _, err := run.run(); err != nil {
			return nil, err
		}
		var r issueResult
		return &r, json.Unmarshal([]byte(out.String()), &r)
	}
	var ratio, apart, walls, users, systems []float64
	var last *issueResult
	if _, _, err := program(wayBare); err != nil {
		return err
	}
	before, _, err := program(wayBare)
	if err != nil {
		return err
	}
	for range b.rounds {
		// Recorded anew each time: the speed of the machine when it was recorded is part of the demand.
		_, trace, err := program(wayNone)
		if err != nil {
			return err
		}
		last, err = issue("--trace", trace)
		os.RemoveAll(trace)
		if err != nil {
			return err
		}
		after, _, err := program(wayBare)
		if err != nil {
			return err
		}
		mean := (before.wall + after.wall) / 2
		b.sample("Issue/"+p.name+"/program", 1, after.wall*1e9, "ns/op")
		b.sample("Issue/"+p.name+"/issue", 1, last.Wall, "ns/op")
		ratio, apart = append(ratio, last.Wall/1e9/mean), append(apart, max(before.wall, after.wall)/min(before.wall, after.wall)-1)
		walls = append(walls, after.wall)
		users, systems = append(users, after.user), append(systems, after.system)
		before = after
	}
	b.add(row{Name: "issue/" + p.name, Bare: median(walls), Value: 100 * (median(ratio) - 1), Unit: "%", Noise: 100 * median(apart),
		Note: fmt.Sprintf("user %.2f system %.2f s; %d operations, %d other ways, %d unknown, %d forced", median(users), median(systems), last.Done, last.Other, last.Unknown, last.Forced)})
	return nil
}

type issueResult struct {
	Wall    float64 `json:"wall_ns"`
	Done    uint64  `json:"operations"`
	Other   uint64  `json:"other_ways"`
	Unknown uint64  `json:"unknown_ways"`
	Forced  uint64  `json:"forced_waits"`
}
