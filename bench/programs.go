package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// workload is one real program under saturating load.
type workload struct {
	name  string
	needs []string
	setup func(b *bench, dir string) error // once
	// run does the same work each time and returns CPU seconds (or CPU seconds a request, where a load generator
	// counts) and the trace.
	run func(b *bench, way, dir string) (float64, string, error)
}

var workloads = []workload{
	{"sqlite3", []string{"sqlite3"}, sqliteSetup, sqliteRun},
	{"redis", []string{"redis-server", "redis-benchmark"}, nil, redisRun},
	{"nginx", []string{"nginx", "wrk"}, nginxSetup, nginxRun},
	{"pgbench", []string{"pgbench"}, postgresSetup, postgresRun},
	{"pbzip2", []string{"pbzip2"}, textSetup, plain("pbzip2", "-p2", "-k", "-f", "-q", "text")},
	{"xz", []string{"xz"}, textSetup, plain("xz", "-T2", "-2", "-k", "-f", "text")},
	{"git", []string{"git"}, gitSetup, plain("sh", "-e", "work.sh")},
	{"gcc", []string{"gcc"}, gccSetup, plain("gcc", "-O2", "-shared", "-fPIC", "-o", "out.so", "a.c", "b.c", "c.c", "d.c")},
	{"python3", []string{"/usr/bin/python3"}, pythonSetup, plain("/usr/bin/python3", "work.py")},
}

const (
	eachNone, meanNone       = 5, 2 // percent of CPU time
	eachDefault, meanDefault = 10, 4
)

func (b *bench) programs() error {
	var all sizes
	ratios := map[string][]float64{}
	var failed error
	for _, w := range workloads {
		if !b.wantedProgram(w.name) {
			continue
		}
		if err := need(w.needs...); err != nil {
			return fmt.Errorf("%s: %w (tests/setup installs it)", w.name, err)
		}
		b.say("  %s", w.name)
		z, err := b.program(&w, ratios)
		if err != nil {
			failed = fmt.Errorf("%s: %w", w.name, err)
			b.say("  %v", failed)
			continue
		}
		all.plus(z)
	}
	if len(ratios[wayNone]) > 1 {
		b.add(row{Name: "geometric mean, inputs none", Value: percent(geomean(ratios[wayNone])), Unit: "% CPU", Limit: meanNone})
		b.add(row{Name: "geometric mean, default", Value: percent(geomean(ratios[wayDefault])), Unit: "% CPU", Limit: meanDefault})
	}
	if all.events > 0 {
		b.add(row{Name: "programs' events, as written", Value: all.written(), Unit: "B/event", Limit: 8, Note: fmt.Sprintf("%d events", all.events)})
		b.add(row{Name: "programs' events, packed", Value: all.packedEach(), Unit: "B/event", Limit: 3})
	}
	return failed
}

func (b *bench) wantedProgram(name string) bool {
	if b.only == nil {
		return true
	}
	for _, o := range b.only {
		if o == name || o == "programs" {
			return true
		}
	}
	return false
}

func percent(ratio float64) float64 { return (ratio - 1) * 100 }

// program measures one workload: bare, recorded, bare, recorded with inputs, round after round.
func (b *bench) program(w *workload, ratios map[string][]float64) (sizes, error) {
	var z sizes
	dir := filepath.Join(b.work, w.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return z, err
	}
	defer os.RemoveAll(dir)
	if w.setup != nil {
		if err := w.setup(b, dir); err != nil {
			return z, err
		}
	}
	s := series{with: map[string][]float64{}}
	traces := filepath.Join(b.work, "trace")
	for r := -1; r < b.rounds; r++ {
		got := map[string]float64{}
		var bare [2]float64
		for i, way := range []string{wayBare, wayNone, wayBare, wayDefault} {
			v, trace, err := w.run(b, way, dir)
			if err != nil {
				return z, err
			}
			if way == wayBare {
				bare[i/2] = v
			} else {
				got[way] = v
			}
			if r == b.rounds-1 && way != wayBare {
				got, err := b.sizes(trace)
				if err != nil {
					return z, err
				}
				if way == wayDefault {
					got.packed, got.packedEvents = z.packed, z.packedEvents
				}
				z = got
			}
			os.RemoveAll(traces)
			if r >= 0 {
				b.sample("CPU/"+w.name+"/"+way, 1, v*1e9, "ns/op")
			}
		}
		if r < 0 {
			continue
		}
		s.bare = append(s.bare, bare)
		for way, v := range got {
			s.with[way] = append(s.with[way], v)
		}
	}
	ratios[wayNone] = append(ratios[wayNone], s.ratio(wayNone))
	ratios[wayDefault] = append(ratios[wayDefault], s.ratio(wayDefault))
	noise := s.noise() * 100
	note := fmt.Sprintf("%d events, %.2f B written, %.2f packed", z.events, z.written(), z.packedEach())
	if z.lost > 0 {
		note += fmt.Sprintf(", %d LOST", z.lost)
	}
	b.add(row{Name: w.name + ", inputs none", Value: percent(s.ratio(wayNone)), Unit: "% CPU", Limit: eachNone, Noise: noise})
	b.add(row{Name: w.name + ", default", Value: percent(s.ratio(wayDefault)), Unit: "% CPU", Limit: eachDefault, Noise: noise, Note: note})
	return z, nil
}

// plain is a program that does its work and ends.
func plain(argv ...string) func(*bench, string, string) (float64, string, error) {
	return func(b *bench, way, dir string) (float64, string, error) {
		p := b.command(way, dir, argv...)
		cpu, err := p.run()
		return cpu, p.trace, err
	}
}

// words is text as compressors meet it: some thousand words, the frequent ones most of it.
func words(w io.Writer, n int) {
	r := rand.New(rand.NewPCG(1, 2))
	var list [4096]string
	for i := range list {
		b := make([]byte, 2+r.IntN(9))
		for j := range b {
			b[j] = byte('a' + r.IntN(26))
		}
		list[i] = string(b)
	}
	var buf bytes.Buffer
	for n > 0 {
		buf.Reset()
		for buf.Len() < 70 {
			buf.WriteString(list[int(float64(len(list))*r.Float64()*r.Float64()*r.Float64())])
			buf.WriteByte(' ')
		}
		buf.WriteByte('\n')
		_, _ = w.Write(buf.Bytes())
		n -= buf.Len()
	}
}

func (b *bench) scale(n int) int {
	if b.quick {
		return n / 10
	}
	return n
}

func textSetup(b *bench, dir string) error {
	return writeFile(filepath.Join(dir, "text"), func(w io.Writer) { words(w, b.scale(12_000_000)) })
}

func sqliteSetup(b *bench, dir string) error {
	return writeFile(filepath.Join(dir, "work.sql"), func(w io.Writer) {
		r := rand.New(rand.NewPCG(3, 4))
		fmt.Fprintln(w, "create table t(id integer primary key, k integer, v text); create index tk on t(k);")
		for tx := range b.scale(400) {
			fmt.Fprintln(w, "begin;")
			for i := range 100 {
				fmt.Fprintf(w, "insert into t values(%d, %d, 'value %d of a row');\n", tx*100+i, r.IntN(1<<30), i)
			}
			fmt.Fprintln(w, "commit;")
		}
		for range b.scale(20_000) {
			fmt.Fprintf(w, "select count(*) from t where k between %d and %d + 100000;\n", r.IntN(1<<30), r.IntN(1<<30))
		}
		for range b.scale(2000) {
			fmt.Fprintf(w, "update t set v = 'changed' where id = %d;\n", r.IntN(40_000))
		}
	})
}

func sqliteRun(b *bench, way, dir string) (float64, string, error) {
	os.Remove(filepath.Join(dir, "db"))
	p := b.command(way, dir, "sqlite3", "db")
	script, err := os.Open(filepath.Join(dir, "work.sql"))
	if err != nil {
		return 0, "", err
	}
	defer script.Close()
	p.cmd.Stdin = script
	cpu, err := p.run()
	return cpu, p.trace, err
}

func gitSetup(b *bench, dir string) error {
	err := writeFile(filepath.Join(dir, "import"), func(w io.Writer) {
		r := rand.New(rand.NewPCG(5, 6))
		for c := range b.scale(600) {
			fmt.Fprintf(w, "commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata 6\nchange\n", 1_700_000_000+c*60)
			for range 8 {
				var t bytes.Buffer
				words(&t, 200+r.IntN(4000))
				fmt.Fprintf(&t, "%d\n", r.Uint64())
				fmt.Fprintf(w, "M 644 inline d%d/f%d\ndata %d\n%s\n", r.IntN(10), r.IntN(40), t.Len(), t.String())
			}
		}
	})
	if err != nil {
		return err
	}
	// What the repository is, it was made before: the measured work repacks, checks, looks through history and checks out.
	script := "rm -rf r c; cp -r r0 r; cd r; git repack -adfq; git fsck --no-progress >/dev/null; git log -p --stat >/dev/null\n" +
		"git blame d1/f1 >/dev/null; git clone -q . ../c; git status --short; git grep -c value >/dev/null || true\n"
	if err := os.WriteFile(filepath.Join(dir, "work.sh"), []byte(script), 0o644); err != nil {
		return err
	}
	_, err = b.output(dir, "sh", "-ec", "git init -q -b main r0; cd r0; git config pack.threads 2; git fast-import --quiet <../import; git reset -q --hard; rm ../import; ls d1/f1 >/dev/null 2>&1 || { echo x >d1/f1; git add d1/f1; git -c user.name=a -c user.email=b commit -qm x; }")
	return err
}

func gccSetup(b *bench, dir string) error {
	for f := range 4 {
		err := writeFile(filepath.Join(dir, fmt.Sprintf("%c.c", 'a'+f)), func(w io.Writer) {
			fmt.Fprintln(w, "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <pthread.h>\n#include <sys/socket.h>")
			for i := range b.scale(200) {
				fmt.Fprintf(w, "int f%d_%d(const int *p, int n) { int i, s = %d; for (i = 0; i < n; i++) { if (p[i] & %d) s += p[i] * %d; else s ^= p[i] >> %d; } return s; }\n", f, i, i, i|1, i+3, i%7)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const pythonWork = `
import hashlib, json, os, queue, random, subprocess, sys, tempfile, threading
random.seed(1)
todo, done = queue.Queue(32), []
lock = threading.Lock()
def worker():
    while True:
        n = todo.get()
        if n is None:
            return
        rows = [{"id": i, "name": "row %d" % (i * n), "values": list(range(20))} for i in range(60)]
        text = json.dumps(rows)
        h = hashlib.sha256(text.encode()).hexdigest()
        with tempfile.TemporaryFile() as f:
            f.write(text.encode())
            f.seek(0)
            assert json.load(f)[3]["id"] == 3
        with lock:
            done.append(h)
threads = [threading.Thread(target=worker) for _ in range(4)]
for t in threads:
    t.start()
for i in range(COUNT):
    todo.put(i)
for t in threads:
    todo.put(None)
for t in threads:
    t.join()
for i in range(5):
    assert subprocess.run(["/bin/echo", "x"], capture_output=True).stdout == b"x\n"
words = sorted(random.random() for _ in range(COUNT * 200))
print(len(done), len(words))
`

func pythonSetup(b *bench, dir string) error {
	text := bytes.ReplaceAll([]byte(pythonWork), []byte("COUNT"), fmt.Appendf(nil, "%d", b.scale(2000)))
	return os.WriteFile(filepath.Join(dir, "work.py"), text, 0o644)
}
