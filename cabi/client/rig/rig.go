// Package rig records what a test runs, keeps the trace when the test fails, and re-executes it.
//
//	func TestServer(t *testing.T) {
//		r := rig.Run(t, exec.Command("./server", "--selftest"))
//		if r.Err != nil {
//			t.Errorf("the server failed: %v", r.Err) // its trace is kept, and the log says where
//		}
//	}
//
// It needs libprophet.so where package client finds it (PROPHET_LIB, beside the test binary, or the dynamic linker's
// places), no cgo, and no replayd unless something is re-executed.
package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prophet/cabi/client"
)

// Option changes how a command is recorded.
type Option func(*options)

type options struct {
	keep, how string
	always    bool
}

// KeepIn names the directory for traces of failed tests. Without it that is PROPHET_KEEP; else, with `go test
// -artifacts`, the test's artifact directory; else "failed" in the package's testdata.
func KeepIn(dir string) Option { return func(o *options) { o.keep = dir } }

// With gives the recorder options as PROPHET_OPTIONS does: "inputs=full,serial".
func With(how string) Option { return func(o *options) { o.how = how } }

// Always keeps the trace whether the test fails or not.
func Always() Option { return func(o *options) { o.always = true } }

// Recording is a command that was run and recorded.
type Recording struct {
	Trace string // "" when nothing was recorded: a static program, or another architecture. Valid until the test ends
	Err   error  // of running the command, as cmd.Run returns it
	args  []string
	env   []string
	dir   string
}

// Run runs the command as cmd.Run does, recorded. When the test has failed by its end, the trace is moved to where KeepIn says and the log
// names it; otherwise it is removed. A command that cannot be recorded at all (no library) fails the test.
func Run(t testing.TB, cmd *exec.Cmd, opts ...Option) *Recording {
	t.Helper()
	var o options
	for _, f := range opts {
		f(&o)
	}
	lib, err := client.Find()
	if err != nil {
		t.Fatal(err)
	}
	r := &Recording{args: slices.Clone(cmd.Args), env: cmd.Environ(), dir: cmd.Dir}
	if r.dir == "" {
		if r.dir, err = os.Getwd(); err != nil {
			t.Fatal(err)
		}
	}
	trace := filepath.Join(t.TempDir(), name(t)+".prophet")
	cmd.Env = recorded(r.env, lib, trace, o.how)
	r.Err = cmd.Run()
	var exit *exec.ExitError
	if r.Err != nil && !errors.As(r.Err, &exit) && cmd.ProcessState == nil {
		return r // it was not started
	}
	if _, err := os.Stat(trace); err != nil {
		t.Logf("%s was not recorded: it does not load libraries (static, set-uid, or of another architecture)", cmd.Path)
		return r
	}
	r.Trace = trace
	t.Cleanup(func() {
		if !t.Failed() && !o.always {
			return
		}
		kept, err := keep(trace, where(t, o.keep))
		if err != nil {
			t.Logf("the trace could not be kept: %v", err)
			return
		}
		t.Logf("recorded: replayd --trace %s -- %s", kept, strings.Join(r.args, " "))
	})
	return r
}

// recorded is an environment in which programs are recorded.
func recorded(env []string, lib, trace, how string) []string {
	preload := lib
	var out []string
	for _, e := range env {
		switch k, v, _ := strings.Cut(e, "="); k {
		case "LD_PRELOAD":
			for _, p := range strings.FieldsFunc(v, func(r rune) bool { return r == ':' || r == ' ' }) {
				if filepath.Base(p) != "libprophet.so" {
					preload += ":" + p
				}
			}
		case "PROPHET_TRACE", "PROPHET_RUN", "PROPHET_OPTIONS":
		default:
			out = append(out, e)
		}
	}
	return append(out, "LD_PRELOAD="+preload, "PROPHET_TRACE="+trace, "PROPHET_OPTIONS="+how)
}

// name is the test's, as a file name.
func name(t testing.TB) string {
	s := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, t.Name())
	return s[:min(len(s), 100)]
}

func where(t testing.TB, named string) string {
	if named == "" {
		named = os.Getenv("PROPHET_KEEP")
	}
	if f := flag.Lookup("test.artifacts"); named == "" && f != nil && f.Value.String() == "true" {
		named = t.ArtifactDir()
	}
	if named == "" {
		named = filepath.Join("testdata", "failed")
	}
	return named
}

// keep moves a trace into a directory, under a name that is free.
func keep(trace, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	base := strings.TrimSuffix(filepath.Base(trace), ".prophet")
	for i := 1; i < 10000; i++ {
		to := filepath.Join(dir, base+".prophet")
		if i > 1 {
			to = filepath.Join(dir, fmt.Sprintf("%s.%d.prophet", base, i))
		}
		if err := os.Mkdir(to, 0o700); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			return "", err
		}
		if os.Rename(trace, to) == nil { // over the empty directory
			return to, nil
		}
		return to, os.CopyFS(to, os.DirFS(trace)) // on another file system
	}
	return "", fmt.Errorf("%s is full of traces of %s", dir, base)
}

// Reexecute runs the recorded run again, with the command, environment and directory that it had, and returns how that ended. It
// fails the test when the re-execution cannot be started, and leaves the judgement to the caller:
//
//	if again := r.Reexecute(t); !again.Identical { t.Log(again.Report) }
func (r *Recording) Reexecute(t testing.TB) *client.Result {
	t.Helper()
	if r.Trace == "" {
		t.Fatal("there is no recording to be re-executed")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	res, err := client.Reexecute(context.Background(), r.Trace, client.ReexecOptions{Args: r.args, Env: r.env, Dir: r.dir, Stdin: null})
	if err != nil {
		t.Fatalf("re-executing %s: %v", r.Trace, err)
	}
	return res
}
