package inside

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// planter fills the upper directories before they are mounted. It runs in the stage, where the file system outside can
// still be seen; it writes nowhere but below the directories in upper.
type planter struct {
	scheme *Scheme
	upper  []string // by layer
	user   bool
	xattr  string // "user" or "trusted": where overlayfs keeps its marks
	kept   string
	done   map[string]planted
	notes  []string
}

// planted is what was put into an upper directory, to tell later what the program has written.
type planted struct {
	Layer  int    `json:"layer"`
	Rel    string `json:"rel"`
	Absent bool   `json:"absent"`
	Dir    bool   `json:"dir"`
	CTime  int64  `json:"ctime"`
}

func (p *planter) note(format string, args ...any) {
	if len(p.notes) < 100 {
		p.notes = append(p.notes, fmt.Sprintf(format, args...))
	}
}

// plan restores all that it can; what cannot be restored is noted.
func (p *planter) plan(restore []Restore, work []string) {
	for i := range p.scheme.Layers {
		p.root(i)
	}
	if p.user {
		for _, d := range work {
			p.chain(d)
		}
	}
	for i := range restore {
		r := &restore[i]
		if err := p.restore(r); err != nil {
			p.note("%s is not as before the run: %v", r.Path, err)
		}
	}
}

// root gives a layer's upper directory the looks of the lower one.
func (p *planter) root(i int) {
	at := p.scheme.Layers[i].At
	if st, err := os.Lstat(at); err == nil {
		p.looks(p.upper[i], at, st)
	}
}

// looks gives a directory in an upper layer mode, owner and times of one outside. For an ordinary user, who cannot give
// it away, its owner's rights become those that the user had.
func (p *planter) looks(to, from string, st fs.FileInfo) {
	sys := st.Sys().(*syscall.Stat_t)
	mode := sys.Mode & 0o7777
	if os.Lchown(to, int(sys.Uid), int(sys.Gid)) != nil && sys.Uid != uint32(os.Getuid()) {
		mode &^= 0o700
		for bit, ask := range map[uint32]uint32{0o400: unix.R_OK, 0o200: unix.W_OK, 0o100: unix.X_OK} {
			if p.could(from, ask) {
				mode |= bit
			}
		}
	}
	unix.Chmod(to, mode)
	p.times(to, sys.Mtim.Nano())
}

// could reports whether the user had this right before the world gave him all of them: by the mode alone.
func (p *planter) could(path string, ask uint32) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return false
	}
	groups, _ := os.Getgroups()
	bits := st.Mode & 7
	if st.Gid == uint32(os.Getgid()) {
		bits = st.Mode >> 3 & 7
	}
	for _, g := range groups {
		if uint32(g) == st.Gid {
			bits = st.Mode >> 3 & 7
		}
	}
	if st.Uid == uint32(os.Getuid()) {
		bits = st.Mode >> 6 & 7
	}
	return bits&ask == ask
}

func (p *planter) times(path string, ns int64) {
	ts := unix.NsecToTimespec(ns)
	unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

// chain makes the directories of a layer down to this one, so that the kernel need not copy them up: for an ordinary
// user it cannot copy what belongs to others.
func (p *planter) chain(dir string) (int, string) {
	i, rel := p.scheme.LayerOf(dir)
	if i < 0 {
		return i, ""
	}
	at := p.scheme.Layers[i].At
	up := p.upper[i]
	for _, c := range strings.Split(rel, "/") {
		if c == "" {
			continue
		}
		at, up = filepath.Join(at, c), filepath.Join(up, c)
		if st, err := os.Lstat(up); err == nil {
			if !st.IsDir() {
				return i, rel
			}
			continue
		}
		st, err := os.Lstat(at)
		if err != nil || !st.IsDir() {
			return i, rel
		}
		if os.Mkdir(up, 0o700) == nil {
			p.looks(up, at, st)
			p.mark(i, strings.TrimPrefix(strings.TrimPrefix(up, p.upper[i]), "/"), false)
		}
	}
	return i, rel
}

// mark remembers what was planted.
func (p *planter) mark(layer int, rel string, absent bool) {
	var st unix.Stat_t
	if unix.Lstat(filepath.Join(p.upper[layer], rel), &st) != nil {
		return
	}
	p.done[fmt.Sprint(layer, "/", rel)] = planted{layer, rel, absent, st.Mode&unix.S_IFMT == unix.S_IFDIR, st.Ctim.Nano()}
}

func (p *planter) restore(r *Restore) error {
	i, rel := p.scheme.LayerOf(r.Path)
	if i < 0 {
		return errors.New("its file system cannot be overlaid")
	}
	_, err := os.Lstat(r.Path)
	there := err == nil
	parent := filepath.Dir(r.Path)
	if r.Absent && !there {
		if _, err := os.Lstat(filepath.Join(p.upper[i], rel)); err != nil {
			return nil
		}
	}
	p.chain(parent)
	up := filepath.Join(p.upper[i], rel)
	if _, err := os.Lstat(filepath.Dir(up)); err != nil {
		if err := os.MkdirAll(filepath.Dir(up), 0o755); err != nil {
			return err
		}
	}
	if r.Absent {
		p.absent(i, rel, up)
		return nil
	}
	if st, err := os.Lstat(up); err == nil && !(st.IsDir() && r.Was != nil && r.Was.Mode&modeType == modeDir && r.From == "") {
		if err := os.RemoveAll(up); err != nil {
			return err
		}
	}
	if err := p.make(r, up, there); err != nil {
		return err
	}
	p.mark(i, rel, false)
	return nil
}

// absent hides a name: in a directory that hides all that is outside it is only removed.
func (p *planter) absent(i int, rel, up string) {
	os.RemoveAll(up)
	if !p.opaque(i, filepath.Dir(rel)) {
		if err := unix.Mknod(up, unix.S_IFCHR, 0); err != nil {
			p.note("%s was made by the run and cannot be hidden: %v", filepath.Join(p.scheme.Layers[i].At, rel), err)
			return
		}
		p.mark(i, rel, true)
	}
}

// opaque reports whether an upper directory hides the lower one of its name.
func (p *planter) opaque(i int, rel string) bool {
	for ; rel != "." && rel != "/" && rel != ""; rel = filepath.Dir(rel) {
		if st, err := os.Lstat(filepath.Join(p.scheme.Layers[i].At, rel)); err != nil || !st.IsDir() {
			return true
		}
		var b [4]byte
		if n, err := unix.Lgetxattr(filepath.Join(p.upper[i], rel), p.xattr+".overlay.opaque", b[:]); err == nil && n == 1 && b[0] == 'y' {
			return true
		}
	}
	return false
}

func (p *planter) hide(dir string) error {
	return unix.Lsetxattr(dir, p.xattr+".overlay.opaque", []byte("y"), 0)
}

// make makes what a name was.
func (p *planter) make(r *Restore, up string, there bool) error {
	was := r.Was
	switch {
	case r.Kept != nil:
		if err := p.content(r.Kept, up); err != nil {
			return err
		}
		if was == nil {
			return nil
		}
	case r.From != "":
		if err := p.copyTree(r.From, up); err != nil {
			return err
		}
		if st, err := os.Lstat(up); err == nil && st.IsDir() && there {
			if err := p.hide(up); err != nil {
				return err
			}
		}
		if was == nil {
			return nil
		}
	case was.Mode&modeType == modeLink:
		return os.Symlink(was.Link, up)
	case was.Mode&modeType == modeDir:
		if err := os.Mkdir(up, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if there && r.Other {
			if err := p.hide(up); err != nil {
				return err
			}
		}
	case there: // only its looks have changed
		if err := p.copyTree(r.Path, up); err != nil {
			return err
		}
	default: // a pipe, a socket, a device
		if err := unix.Mknod(up, was.Mode, 0); err != nil {
			return err
		}
	}
	os.Lchown(up, int(was.UID), int(was.GID)) // refused to an ordinary user: the file is then his
	if was.Mode&modeType != modeLink {
		if err := unix.Chmod(up, was.Mode&0o7777); err != nil {
			return err
		}
	}
	p.times(up, int64(was.MTime))
	return nil
}

// content puts a kept original in place.
func (p *planter) content(k *Kept, up string) error {
	if k.Size == 0 {
		return os.WriteFile(up, nil, 0o600)
	}
	if p.kept == "" {
		return errors.New("its content is in a packed trace; unpack it first")
	}
	return copyFile(filepath.Join(p.kept, fmt.Sprintf("%016x-%016x", k.Dev, k.Ino)), up, 0o600)
}

// copyFile copies content, sharing blocks where the file system can.
func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) != nil {
		_, err = io.Copy(out, in) // copy_file_range, where it can
	}
	return errors.Join(err, out.Close())
}

// copyTree copies a file, or a directory and all below, with its looks. Names made by the run that must not be there
// are removed by what the plan says of them.
func (p *planter) copyTree(from, to string) error {
	var after []func() // directories get their looks last: some forbid writing
	defer func() {
		for i := len(after); i > 0; i-- {
			after[i-1]()
		}
	}()
	return filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dst := to + strings.TrimPrefix(at, from)
		st, err := d.Info()
		if err != nil {
			return err
		}
		sys := st.Sys().(*syscall.Stat_t)
		switch {
		case d.IsDir():
			if err := os.Mkdir(dst, 0o700); err != nil {
				return err
			}
			after = append(after, func() { p.looks(dst, at, st) })
			return nil
		case st.Mode().IsRegular():
			err = copyFile(at, dst, 0o600)
		case d.Type()&fs.ModeSymlink != 0:
			var text string
			if text, err = os.Readlink(at); err == nil {
				err = os.Symlink(text, dst)
			}
		default:
			err = unix.Mknod(dst, sys.Mode, int(sys.Rdev))
		}
		if err != nil {
			return err
		}
		os.Lchown(dst, int(sys.Uid), int(sys.Gid))
		if d.Type()&fs.ModeSymlink == 0 {
			unix.Chmod(dst, sys.Mode&0o7777)
		}
		p.times(dst, sys.Mtim.Nano())
		return nil
	})
}

// Change is a name that the program wrote or removed.
type Change struct {
	Path    string
	Removed bool
}

// harvest copies what the program wrote in the layers to a plain tree below dir; what it removed is only told.
func harvest(s *Scheme, upper []string, done map[string]planted, dir string) ([]Change, error) {
	var all []Change
	var errs []error
	for i, up := range upper {
		at := s.Layers[i].At
		loosen(up)
		err := filepath.WalkDir(up, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				errs = append(errs, err)
				return nil
			}
			rel := strings.TrimPrefix(strings.TrimPrefix(path, up), "/")
			if rel == "" {
				return nil
			}
			st, err := d.Info()
			if err != nil {
				errs = append(errs, err)
				return nil
			}
			sys := st.Sys().(*syscall.Stat_t)
			was, known := done[fmt.Sprint(i, "/", rel)]
			full := filepath.Join(at, rel)
			if st.Mode()&fs.ModeCharDevice != 0 && sys.Rdev == 0 {
				if !known || !was.Absent {
					all = append(all, Change{full, true})
				}
				return nil
			}
			to := filepath.Join(dir, full)
			if d.IsDir() {
				if _, err := os.Lstat(full); err != nil || known && was.Absent { // one that the program made
					errs = append(errs, os.MkdirAll(to, 0o755))
					all = append(all, Change{full, false})
				}
				return nil
			}
			if known && !was.Absent && sys.Ctim.Nano() == was.CTime {
				return nil // as it was planted
			}
			all = append(all, Change{full, false})
			errs = append(errs, plain(path, to, st))
			return nil
		})
		errs = append(errs, err)
	}
	for _, p := range done { // what has no name outside goes without leaving a mark
		if _, err := os.Lstat(filepath.Join(upper[p.Layer], p.Rel)); !p.Absent && errors.Is(err, fs.ErrNotExist) {
			all = append(all, Change{filepath.Join(s.Layers[p.Layer].At, p.Rel), true})
		}
	}
	sort.Slice(all, func(a, b int) bool { return all[a].Path < all[b].Path })
	return all, errors.Join(errs...)
}

// plain puts one file of a layer into the tree of kept writes.
func plain(from, to string, st fs.FileInfo) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	os.Remove(to)
	sys := st.Sys().(*syscall.Stat_t)
	switch {
	case st.Mode().IsRegular():
		unix.Chmod(from, sys.Mode&0o7777|0o400)
		if err := copyFile(from, to, 0o600); err != nil {
			return err
		}
		os.Lchown(to, int(sys.Uid), int(sys.Gid))
		if err := unix.Chmod(to, sys.Mode&0o7777); err != nil {
			return err
		}
		return os.Chtimes(to, time.Time{}, st.ModTime())
	case st.Mode()&fs.ModeSymlink != 0:
		text, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(text, to)
	case st.Mode()&fs.ModeSocket != 0:
		return nil // nobody listens any more
	}
	return unix.Mknod(to, sys.Mode, int(sys.Rdev))
}

// remove removes a world's directory.
func remove(dir string) error {
	loosen(dir)
	return os.RemoveAll(dir)
}

// loosen makes directories ours to list and change: overlayfs, and programs, leave some that are not.
func loosen(dir string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		if st, e := d.Info(); e == nil && st.Mode().Perm()&0o700 != 0o700 && os.Chmod(path, 0o700) == nil && err != nil {
			loosen(path) // it could not be listed before
		}
		return nil
	})
}
