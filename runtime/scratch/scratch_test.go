package scratch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What the killed left is removed by the next one; what somebody has, is fresh, or is none of ours stays.
func TestSweep(t *testing.T) {
	above := t.TempDir()
	long := time.Now().Add(-time.Hour)
	make := func(held, locked bool, age time.Time) string {
		d, err := Make(above, Issue)
		if err != nil {
			t.Fatal(err)
		}
		lock := filepath.Join(d.Path, lockName)
		if err := os.Chtimes(lock, age, age); err != nil {
			t.Fatal(err)
		}
		if !held {
			d.lock.Close()
		} else {
			t.Cleanup(func() { d.Close() })
		}
		if !locked {
			os.Remove(lock)
		}
		return d.Path
	}
	stays := []string{make(true, true, long), make(false, true, time.Now()), make(false, false, long)}
	left := make(false, true, long)
	kept := make(false, true, long)
	d, err := Hold(kept)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Make(above, Issue)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(stays, kept) {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what the killed left is there")
	}
	for _, x := range []*Dir{d, again} {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(x.Path); err == nil {
			t.Errorf("%s is there", x.Path)
		}
	}
}
