package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A world's directory has a file `lock`, which its process and its stage hold locked for as long as one of them lives.
// One that nobody holds is what a killed world has left.

// places are where worlds may be, in the order of preference: big writes belong on disk.
func places() []string {
	var all []string
	for _, d := range []string{os.TempDir(), "/var/tmp", "/tmp"} {
		if r, err := filepath.EvalSymlinks(d); err == nil && filepath.IsAbs(r) && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	if c, err := os.UserCacheDir(); err == nil {
		if r, err := filepath.EvalSymlinks(c); err == nil {
			all = append(all, r)
		}
	}
	return all
}

const (
	magicTmpfs   = 0x01021994
	magicRamfs   = 0x858458f6
	magicOverlay = 0x794c7630
	magicFuse    = 0x65735546
	magicNFS     = 0x6969
)

// rank says how well a directory is suited to hold upper layers: 0 well, 1 in memory, 2 hardly.
func rank(dir string) int {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		return 3
	}
	switch uint32(st.Type) {
	case magicTmpfs, magicRamfs:
		return 1
	case magicOverlay, magicFuse, magicNFS:
		return 2
	}
	return 0
}

// makeBase makes a world's directory and takes its lock.
func makeBase() (dir string, lock *os.File, err error) {
	all := places()
	for want := 0; want < 3; want++ {
		for _, p := range all {
			if rank(p) != want {
				continue
			}
			if dir, err = os.MkdirTemp(p, fmt.Sprintf("%s%d.", makingPrefix, os.Getuid())); err == nil {
				return furnish(dir)
			}
		}
	}
	return "", nil, fmt.Errorf("no directory for what is written can be made in %s; name one in TMPDIR", strings.Join(all, ", "))
}

// furnish takes the lock before it has its name: whoever sweeps meanwhile finds none, or one that is held.
func furnish(dir string) (string, *os.File, error) {
	made := filepath.Join(dir, "lock.new")
	lock, err := os.OpenFile(made, os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	err = errors.Join(unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB), os.Mkdir(filepath.Join(dir, "t"), 0o755), os.Mkdir(filepath.Join(dir, runDir), 0o755),
		os.Rename(made, filepath.Join(dir, "lock")))
	if err != nil {
		lock.Close()
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	// Only now it gets the name by which others look for what nobody has locked.
	name := filepath.Join(filepath.Dir(dir), basePrefix+strings.TrimPrefix(filepath.Base(dir), makingPrefix))
	if err := os.Rename(dir, name); err != nil {
		lock.Close()
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return name, lock, nil
}

// Sweep removes what killed worlds of this user have left. Commands call it when they begin.
func Sweep() (removed []string) {
	left, making := fmt.Sprintf("%s%d.", basePrefix, os.Getuid()), fmt.Sprintf("%s%d.", makingPrefix, os.Getuid())
	for _, p := range places() {
		d, err := os.Open(p)
		if err != nil {
			continue
		}
		names, _ := d.Readdirnames(-1)
		d.Close()
		for _, name := range names {
			made := strings.HasPrefix(name, making)
			if !made && !strings.HasPrefix(name, left) {
				continue
			}
			dir := filepath.Join(p, name)
			if st, err := os.Lstat(dir); err != nil || !st.IsDir() || made && !old(st) {
				continue
			}
			if stale(dir) && remove(dir) == nil {
				removed = append(removed, dir)
			}
		}
	}
	return removed
}

// stale reports whether nobody lives there any more. A directory without its lock is one that is being made, or one that
// is nearly removed: that is told by its age.
func stale(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		st, serr := os.Lstat(dir)
		return serr == nil && errors.Is(err, os.ErrNotExist) && old(st)
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func old(st os.FileInfo) bool { return time.Since(st.ModTime()) > time.Minute }
