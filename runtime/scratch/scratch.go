// Package scratch is for directories of work under way, where temporary files go. Who makes one has its lock as long as it lives.
// Where that was killed the next one that makes a directory of that kind in the same place removes it.
package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Kinds of directories: how their names begin.
const (
	Issue   = "prophet-issue-"
	Program = "prophet-program-"
	Predict = "prophet-predict-"
	Replay  = "prophet-replay-"
)

// lockName is a file in each of them. A directory without it is none of ours.
const lockName = "lock"

// A Dir is a directory, 0700, that exists until Close.
type Dir struct {
	Path string
	lock *os.File
}

// Make makes a directory of a kind in parent, or where temporary files go.
func Make(parent, kind string) (*Dir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent, kind)
	path, err := os.MkdirTemp(parent, kind)
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: path}
	if d.lock, err = hold(path, os.O_CREATE|os.O_EXCL); err != nil {
		os.RemoveAll(path)
		return nil, err
	}
	return d, nil
}

// Hold keeps a directory that another has made, beside it: where that is killed it stays, and is the caller's to remove.
func Hold(path string) (*Dir, error) {
	f, err := hold(path, 0)
	return &Dir{path, f}, err
}

// hold takes the lock, which all may have who use the directory.
func hold(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|syscall.O_NOFOLLOW|how, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close removes the directory.
func (d *Dir) Close() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// fresh is how old a lock is at least that is looked at: between a file's creation and its lock lies a moment.
const fresh = 10 * time.Second

// sweep removes those whose makers have been killed. What cannot be removed stays: the next one tries again.
func sweep(parent, kind string) {
	list, _ := os.ReadDir(parent)
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), kind) || !e.IsDir() {
			continue
		}
		path := filepath.Join(parent, e.Name())
		f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		st, err := f.Stat()
		if s, ok := sys(st); err == nil && ok && int(s.Uid) == os.Geteuid() && st.Mode().IsRegular() && st.Size() == 0 && time.Since(st.ModTime()) > fresh &&
			syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(path)
		}
		f.Close()
	}
}

func sys(st os.FileInfo) (*syscall.Stat_t, bool) {
	if st == nil {
		return nil, false
	}
	s, ok := st.Sys().(*syscall.Stat_t)
	return s, ok
}
