package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// replayProgram is a program that is run bare, recorded and executed again, in turn.
type replayProgram struct {
	name   string
	needs  []string
	setup  func(b *bench, dir string) error                               // once
	before func(dir string) error                                         // before each run
	argv   func(dir string, port int) []string                            // it runs in dir
	user   func() *syscall.SysProcAttr                                    // as whom; nil: as we
	serve  func(b *bench, dir string, port int) (work float64, err error) // a server's clients; its re-execution has none
	stop   syscall.Signal                                                 // ends a server
	serial bool                                                           // it shares data without a lock (README's table): exact under --serial, which has no limit
}

func always(argv ...string) func(string, int) []string {
	return func(string, int) []string { return argv }
}

var replayPrograms = []replayProgram{
	{name: "xz", needs: []string{"xz"}, setup: replayFiles, argv: always("xz", "-T2", "-k", "-c", "in.bin")},
	{name: "pigz", needs: []string{"pigz"}, setup: replayFiles, argv: always("pigz", "-p2", "-k", "-c", "in.bin")},
	{name: "pbzip2", needs: []string{"pbzip2"}, setup: replayFiles, argv: always("pbzip2", "-p2", "-k", "-c", "in.bin")},
	{name: "sort", needs: []string{"sort"}, setup: replayFiles, argv: always("sort", "--parallel=2", "words.txt"), serial: true},
	{name: "x264", needs: []string{"x264"}, setup: replayFrames, argv: always("x264", "--quiet", "--threads", "3", "--no-progress", "--input-res", "352x288",
		"--fps", "25", "--demuxer", "raw", "--preset", "fast", "--muxer", "raw", "-o", "-", "in.yuv"), serial: true},
	{name: "sqlite3", needs: []string{"sqlite3"}, before: withoutBase, argv: always("sqlite3", "t.db",
		"create table t(a); with recursive c(x) as (select 1 union all select x+1 from c where x<3000000) insert into t select x from c; select sum(a) from t;")},
	{name: "sqlite3-writers", needs: []string{"sqlite3"}, setup: replayWriters, before: withoutBase, argv: always("sh", "-c",
		"sqlite3 t.db 'create table t(w, a)'; for w in 1 2 3 4; do sqlite3 t.db <w$w.sql & done; wait; sqlite3 t.db 'select count(*) from t'")},
	{name: "redis", needs: []string{"redis-server", "redis-benchmark"}, argv: func(dir string, _ int) []string {
		return []string{"redis-server", "--port", "0", "--unixsocket", dir + "/s", "--save", "", "--appendonly", "no", "--jemalloc-bg-thread", "no"}
	}, serve: func(b *bench, dir string, _ int) (float64, error) {
		if err := until("redis-server", func() bool { return dials("unix", dir+"/s") }); err != nil {
			return 0, err
		}
		_, err := b.output(dir, "redis-benchmark", "-s", dir+"/s", "-q", "-c", "50", "-n", strconv.Itoa(b.scale(50_000)), "-t", "set,get,incr,lpush")
		return 1, err
	}, stop: syscall.SIGTERM},
	{name: "nginx", needs: []string{"nginx", "wrk"}, setup: func(b *bench, dir string) error { return nginxSetup(b, dir) },
		argv: func(dir string, port int) []string {
			_ = os.WriteFile(dir+"/conf", fmt.Appendf(nil, nginxConf, dir, port), 0o644)
			return []string{"nginx", "-e", "stderr", "-c", dir + "/conf"}
		}, before: func(dir string) error { return without(dir + "/access.log") }, serve: func(b *bench, dir string, port int) (float64, error) {
			return b.wrk(dir, fmt.Sprintf("127.0.0.1:%d", port))
		}, stop: syscall.SIGTERM},
	{name: "memcached", needs: []string{"memcached"}, argv: func(_ string, port int) []string {
		return []string{"memcached", "-u", "nobody", "-p", strconv.Itoa(port), "-l", "127.0.0.1", "-U", "0", "-t", "2"}
	}, serve: memcachedLoad, stop: syscall.SIGTERM, serial: true},
	{name: "postgres", needs: []string{"pgbench"}, setup: postgresSetup, user: postgresUser, argv: func(dir string, _ int) []string {
		return []string{postgresBin("postgres"), "-D", dir + "/data", "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "autovacuum=off", "-c", "log_min_messages=fatal"}
	}, serve: func(b *bench, dir string, _ int) (float64, error) {
		err := until("postgres", func() bool { _, err := b.output(dir, postgresBin("pg_isready"), "-h", dir); return err == nil })
		if err == nil {
			_, err = b.output(dir, postgresBin("pgbench"), "-h", dir, "-U", "bench", "-n", "-c", "4", "-t", strconv.Itoa(b.scale(500)), "postgres")
		}
		return 1, err
	}, stop: syscall.SIGTERM, serial: true},
	{name: "openmpi-tcp", needs: []string{"mpicc", "mpirun"}, setup: replayRanks, argv: ranks("tcp"), serial: true},
	{name: "openmpi-shm", needs: []string{"mpicc", "mpirun"}, setup: replayRanks, argv: ranks("vader"), serial: true},
}

// replayFiles makes what programs read, in.bin and words.txt: our own binary, several times, and numbers.
func replayFiles(b *bench, dir string) error {
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	times := 6
	if b.quick {
		times = 1
	}
	var words strings.Builder
	seed := uint64(1)
	for range 400_000 * times {
		seed = seed*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&words, "%x\n", seed>>33)
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "in.bin"), []byte(strings.Repeat(string(data), times)), 0o644),
		os.WriteFile(filepath.Join(dir, "words.txt"), []byte(words.String()), 0o644))
}

// replayFrames makes a moving picture of noise.
func replayFrames(b *bench, dir string) error {
	in := make([]byte, b.scale(120)*352*288*3/2)
	r := rand.New(rand.NewPCG(1, 0))
	for i := range in {
		in[i] = byte(r.Uint32())
	}
	return os.WriteFile(filepath.Join(dir, "in.yuv"), in, 0o644)
}

// replayWriters makes what four writers of one database do: short transactions.
func replayWriters(b *bench, dir string) error {
	for w := range 4 {
		err := writeFile(filepath.Join(dir, fmt.Sprintf("w%d.sql", w+1)), func(f io.Writer) {
			fmt.Fprintln(f, ".timeout 60000")
			for i := range b.scale(100) {
				fmt.Fprintf(f, "begin immediate; insert into t values(%d, %d); insert into t select w, a + 1 from t limit 50; commit;\n", w, i)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func withoutBase(dir string) error { return without(dir + "/t.db") }

func without(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// memcachedLoad sets and gets over four connections.
func memcachedLoad(b *bench, _ string, port int) (float64, error) {
	at := fmt.Sprintf("127.0.0.1:%d", port)
	if err := until("memcached", func() bool { return dials("tcp", at) }); err != nil {
		return 0, err
	}
	ended := make(chan error)
	const clients = 4
	for i := range clients {
		go func() {
			ended <- memcachedClient(at, uint64(i), b.scale(500))
		}()
	}
	var err error
	for range clients {
		err = errors.Join(err, <-ended)
	}
	return 1, err
}

func memcachedClient(at string, seed uint64, rounds int) error {
	c, err := net.Dial("tcp", at)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	r := rand.New(rand.NewPCG(seed, 0))
	lines := bufio.NewReader(c)
	for range rounds {
		var s strings.Builder
		for range 20 {
			if key := r.IntN(1000); r.IntN(3) == 0 {
				v := strings.Repeat("v", 1+r.IntN(900))
				fmt.Fprintf(&s, "set k%d 0 0 %d\r\n%s\r\n", key, len(v), v)
			} else {
				fmt.Fprintf(&s, "get k%d\r\n", key)
			}
		}
		s.WriteString("version\r\n")
		if _, err := c.Write([]byte(s.String())); err != nil {
			return err
		}
		for line := ""; !strings.HasPrefix(line, "VERSION"); {
			if line, err = lines.ReadString('\n'); err != nil {
				return err
			}
		}
	}
	return nil
}

// replayRanks builds the program that runs with four ranks.
func replayRanks(b *bench, dir string) error {
	cc := exec.Command("mpicc", "-O1", "-o", filepath.Join(dir, "mpi"), filepath.Join(b.src, "..", "tests", "replay", "mpi.c"))
	cc.Env = append(os.Environ(), "OMPI_CC=gcc")
	if out, err := cc.CombinedOutput(); err != nil {
		return fmt.Errorf("mpicc: %w: %s", err, out)
	}
	return nil
}

func ranks(over string) func(string, int) []string {
	return func(dir string, _ int) []string {
		return []string{"mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "orte_tmpdir_base", dir, "--mca", "btl", "self," + over, "-np", "4", dir + "/mpi"}
	}
}
