// Package far is the far side of a target, `replayd target`: what runs on the machine that a prediction asks about. The
// protocol is in package runtime/target.
//
// Two processes, so that something is left to clean up when one is killed. The keeper is what home's command started: it makes
// the private directory, takes the CPUs and the quota, and starts the server, its only child, which has the connection. Both
// are subreapers: whatever an issue leaves behind, however often it forked, becomes a child of the server, and of the keeper
// when the server is gone. The one that sees the other end kills all its descendants and removes the directory. Where both
// were killed at once, the next target removes the directory.
package far

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prophet/runtime/cgroup"
	"prophet/runtime/run"
	"prophet/runtime/target"
)

// Options of a target.
type Options struct {
	Dir     string  // under which the private directory is made; "": the one for temporary files
	Private string  // the private directory, made by who started us; removed at the end
	CPUs    int     // 0: all
	Quota   float64 // of CPU time, in CPUs; 0: all
}

// Keep is the keeper. serve is the command that starts the server: the private directory is appended, and of the quota the
// group and the one that we came from, which may be "".
func Keep(o Options, serve ...string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	cpus := o.CPUs
	if cpus == 0 {
		cpus = run.CPUs()
	}
	dir, err := private(o)
	if err != nil {
		return err
	}
	defer remove(dir)
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	var group cgroup.Group
	if o.Quota > 0 {
		if group, err = cgroup.Join(o.Quota); err != nil {
			return err
		}
		defer group.Leave()
	}
	// The server sees by the end of this pipe that we are gone; we hold no end of the connection.
	its, mine, err := os.Pipe()
	if err != nil {
		return err
	}
	defer mine.Close()
	argv := append(serve[1:], dir, group.Dir, group.From)
	cmd := &exec.Cmd{Path: serve[0], Args: append([]string{serve[0]}, argv...), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ExtraFiles: []*os.File{its}, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}} // who kills our group leaves it to clean up
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := run.OnCPUs(cpus, cmd.Start); err != nil {
		return err
	}
	its.Close()
	os.Stdin.Close()
	os.Stdout.Close()
	go func() {
		for range signals {
			cmd.Process.Signal(syscall.SIGTERM)
		}
	}()
	err = cmd.Wait()
	EndDescendants()
	return err
}

// private is the directory that everything is in.
func private(o Options) (string, error) {
	if o.Private != "" {
		st, err := os.Lstat(o.Private)
		if err != nil {
			return "", err
		}
		s, ok := st.Sys().(*syscall.Stat_t)
		if !st.IsDir() || !ok || int(s.Uid) != os.Geteuid() || st.Mode().Perm()&0o077 != 0 || !strings.HasPrefix(filepath.Base(o.Private), target.DirPrefix) {
			return "", fmt.Errorf("%s is not a private directory that was made for a target", o.Private)
		}
		sweep(filepath.Dir(o.Private))
		return filepath.Abs(o.Private)
	}
	dir := o.Dir
	if dir == "" {
		dir = os.TempDir()
	}
	sweep(dir)
	dir, err := os.MkdirTemp(dir, target.DirPrefix)
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

const lockName = "lock"

// lock marks a private directory as somebody's; what it returns gives the lock back.
func lock(dir string) (func(), error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// sweep removes the directories of targets that were killed with all their processes: ours, and nobody has their lock. One
// without a lock is being made by somebody, unless it is old.
func sweep(above string) {
	list, _ := filepath.Glob(filepath.Join(above, target.DirPrefix+"*"))
	for _, dir := range list {
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() {
			continue
		}
		if s, ok := st.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
			continue
		}
		f, err := os.Open(filepath.Join(dir, lockName))
		if err != nil {
			if errors.Is(err, os.ErrNotExist) && time.Since(st.ModTime()) > time.Hour {
				remove(dir)
			}
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			remove(dir)
		}
		f.Close()
	}
}

// remove removes a directory, also one in which something has been made unreadable.
func remove(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "replayd: target:", err)
	}
}

// EndDescendants kills every process below this one, also those that it becomes the parent of thereby. This process must be
// a subreaper, and must not wait for children elsewhere meanwhile.
func EndDescendants() {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		list := children()
		if len(list) == 0 {
			return
		}
		for _, pid := range list {
			unix.Kill(pid, unix.SIGKILL)
		}
		for _, pid := range list {
			var status unix.WaitStatus
			unix.Wait4(pid, &status, unix.WNOHANG, nil)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// children are the processes whose parent is this one.
func children() (list []int) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, name := range tasks {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(b)) {
			pid := 0
			if _, err := fmt.Sscan(word, &pid); err == nil && pid > 1 {
				list = append(list, pid)
			}
		}
	}
	return list
}

// drain reads a stream to its end.
func drain(r io.Reader) { io.Copy(io.Discard, r) }
