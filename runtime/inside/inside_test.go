package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"

	"prophet/runtime/trace"
)

// none is a file system without anything but what is named.
type none map[string]string // links

func (n none) Lstat(p string) (fs.FileInfo, error) { return nil, fs.ErrNotExist }
func (n none) Readlink(p string) (string, error) {
	if s, ok := n[p]; ok {
		return s, nil
	}
	return "", errors.New("no link")
}

func kept(ino uint64) *Kept { return &Kept{Dev: 1, Ino: ino, Size: 5, OK: true} }

func text(p *Plan) string {
	var out []string
	for _, r := range p.Restore {
		switch {
		case r.Absent:
			out = append(out, "-"+r.Path)
		case r.Kept != nil:
			out = append(out, fmt.Sprintf("%s=%d", r.Path, r.Kept.Ino))
		case r.From != "":
			out = append(out, r.Path+"<"+r.From)
		default:
			out = append(out, fmt.Sprintf("%s:%o", r.Path, r.Was.Mode))
		}
	}
	for _, m := range p.Missing {
		out = append(out, "?"+m.Path)
	}
	return strings.Join(out, " ")
}

func TestMake(t *testing.T) {
	links := none{"/l": "d/e", "/loop": "loop", "/abs": "/d"}
	for _, c := range []struct {
		name string
		ops  []Op
		want string
	}{
		{"a new file", []Op{{Kind: OpOpen, Path: "/a"}}, "-/a"},
		{"one that was there", []Op{{Kind: OpKept, Path: "/a", Kept: kept(1)}, {Kind: OpOpen, Path: "/a", Existed: true}}, "/a=1"},
		{"one that another opened before it was kept", []Op{{Kind: OpOpen, Path: "/a"}, {Kind: OpKept, Path: "/a", Kept: kept(1)}, {Kind: OpOpen, Path: "/a", Existed: true}}, "/a=1"},
		{"one that was too long", []Op{{Kind: OpKept, Path: "/a", Kept: &Kept{Size: 9}}, {Kind: OpOpen, Path: "/a", Existed: true}}, "?/a"},
		{"made, removed", []Op{{Kind: OpMake, Path: "/a"}, {Kind: OpRemove, Path: "/a"}}, "-/a"},
		{"removed, made", []Op{{Kind: OpKept, Path: "/a", Kept: kept(1)}, {Kind: OpRemove, Path: "/a"}, {Kind: OpMake, Path: "/a"}}, "/a=1"},
		{"renamed", []Op{{Kind: OpRename, From: "/a", Path: "/b"}}, "/a</b -/b"},
		{"renamed over", []Op{{Kind: OpKept, Path: "/b", Kept: kept(2)}, {Kind: OpRename, From: "/a", Path: "/b"}}, "/a</b /b=2"},
		{"renamed and changed", []Op{{Kind: OpRename, From: "/a", Path: "/b"}, {Kind: OpKept, Path: "/b", Kept: kept(3)}, {Kind: OpOpen, Path: "/b", Existed: true}}, "/a=3 -/b"},
		{"there and back", []Op{{Kind: OpRename, From: "/a", Path: "/b"}, {Kind: OpRename, From: "/b", Path: "/a"}}, "-/b"},
		{"swapped", []Op{{Kind: OpSwap, From: "/a", Path: "/b"}}, "/a</b /b</a"},
		{"directory moved, file in it changed", []Op{{Kind: OpRename, From: "/d", Path: "/x"}, {Kind: OpKept, Path: "/x/f", Kept: kept(4)},
			{Kind: OpOpen, Path: "/x/f", Existed: true}, {Kind: OpMake, Path: "/x/n"}}, "/d</x /d/f=4 -/d/n -/x"},
		{"temporary over it", []Op{{Kind: OpMake, Path: "/t"}, {Kind: OpKept, Path: "/a", Kept: kept(5)}, {Kind: OpRename, From: "/t", Path: "/a"}}, "/a=5 -/t"},
		{"directory made with files", []Op{{Kind: OpMake, Path: "/d"}, {Kind: OpMake, Path: "/d/f"}, {Kind: OpMake, Path: "/d/g/h"}}, "-/d"},
		{"directory removed", []Op{{Kind: OpKept, Path: "/d/f", Kept: kept(6)}, {Kind: OpRemove, Path: "/d/f"}, {Kind: OpRemove, Path: "/d", Was: &Was{Mode: 0o40755}}}, "/d:40755 /d/f=6"},
		{"removed, never kept", []Op{{Kind: OpRemove, Path: "/a"}}, "?/a"},
		{"link removed", []Op{{Kind: OpRemove, Path: "/l", NoFollow: true, Was: &Was{Mode: 0o120777, Link: "d/e"}}}, "/l:120777"},
		{"through a link", []Op{{Kind: OpMake, Path: "/l/f"}}, "-/d/e/f"},
		{"through a link of the run", []Op{{Kind: OpMake, Path: "/s", Link: "d", NoFollow: true}, {Kind: OpMake, Path: "/s/f"}}, "-/d/f -/s"},
		{"through an absolute link", []Op{{Kind: OpMake, Path: "/x/../abs/./f"}}, "-/d/f"},
		{"links without an end", []Op{{Kind: OpMake, Path: "/loop/f"}, {Kind: OpMake, Path: "/a"}}, "-/a"},
		{"up", []Op{{Kind: OpMake, Path: "/l/../f"}}, "-/d/f"},
		{"mode changed", []Op{{Kind: OpTouch, Path: "/a", Was: &Was{Mode: 0o100640}}}, "/a:100640"},
		{"mode, then content", []Op{{Kind: OpTouch, Path: "/a", Was: &Was{Mode: 0o100640}}, {Kind: OpKept, Path: "/a", Kept: kept(7)}}, "/a=7"},
		{"moved into itself is refused by the kernel, and harmless here", []Op{{Kind: OpRename, From: "/d", Path: "/d/e"}}, "/d</d/e"},
	} {
		got := text(Make(c.ops, links))
		if c.name == "moved into itself is refused by the kernel, and harmless here" {
			continue // that it ends is all
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// model is a file system in memory, to which random operations are done for real: what Make says must bring it back.
func TestMakeRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range 100 {
		dir := t.TempDir()
		store := t.TempDir()
		names := []string{"a", "b", "d", "d/e", "d/f", "d/e/g", "x", "x/y"}
		name := func() string { return filepath.Join(dir, names[r.IntN(len(names))]) }
		for _, n := range names {
			p := filepath.Join(dir, n)
			switch r.IntN(4) {
			case 0:
				os.Mkdir(p, 0o755)
			case 1:
				os.WriteFile(p, []byte(n), 0o644)
			}
		}
		before := tree(dir)
		var ops []Op
		seen := map[uint64]bool{}
		keep := func(p string) *Was {
			st, err := os.Lstat(p)
			if err != nil {
				return nil
			}
			was := &Was{Mode: modeRegular | uint32(st.Mode().Perm()), MTime: uint64(st.ModTime().UnixNano()), UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
			if st.IsDir() {
				was.Mode = modeDir | uint32(st.Mode().Perm())
				return was
			}
			ino := inode(st)
			if !seen[ino] {
				seen[ino] = true
				b, _ := os.ReadFile(p)
				os.WriteFile(filepath.Join(store, fmt.Sprintf("%016x-%016x", 0, ino)), b, 0o600)
				ops = append(ops, Op{Kind: OpKept, Path: p, Kept: &Kept{Ino: ino, Size: uint64(len(b)), OK: true, Was: was}})
			}
			return was
		}
		for range 12 {
			switch p := name(); r.IntN(5) {
			case 0:
				_, err := os.Lstat(p)
				if st, e := os.Lstat(p); e == nil && st.Mode().IsRegular() {
					keep(p)
				}
				if os.WriteFile(p, []byte(fmt.Sprint("w", r.IntN(99))), 0o600) == nil {
					if st, e := os.Lstat(p); e == nil {
						seen[inode(st)] = true
					}
					ops = append(ops, Op{Kind: OpOpen, Path: p, Existed: err == nil})
				}
			case 1:
				if os.Mkdir(p, 0o755) == nil {
					ops = append(ops, Op{Kind: OpMake, Path: p})
				}
			case 2:
				if st, err := os.Lstat(p); err == nil {
					was := keep(p)
					if os.Remove(p) == nil {
						delete(seen, inode(st)) // the number may come again
						seen[inode(st)] = false
						ops = append(ops, Op{Kind: OpRemove, Path: p, NoFollow: true, Was: was})
					}
				}
			default:
				q := name()
				was := keep(q)
				if st, err := os.Lstat(p); err == nil && p != q && (was == nil || st.IsDir() == (was.Mode&modeType == modeDir)) && os.Rename(p, q) == nil {
					ops = append(ops, Op{Kind: OpRename, From: p, Path: q, NoFollow: true, Was: was})
				}
			}
		}
		plan := Make(ops, Live{})
		plan.kept = store
		up := t.TempDir()
		p := &planter{scheme: &Scheme{Layers: []Layer{{At: dir}}}, upper: []string{up}, xattr: "user", kept: store, done: map[string]planted{}}
		p.plan(plan.Restore, nil)
		if got := merged(dir, up); !reflect.DeepEqual(got, before) || len(plan.Missing) > 0 || len(p.notes) > 0 {
			t.Fatalf("round %d of seed %d: before %v\nrestored %v\nnow %v\nmissing %v\nnotes %v\nplan %s\nops %+v", round, seed, before, got, tree(dir), plan.Missing, p.notes, text(plan), ops)
		}
	}
}

func tree(dir string) []string {
	out := []string{}
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if p == dir {
			return nil
		}
		b, _ := os.ReadFile(p)
		out = append(out, fmt.Sprintf("%s %v %s", strings.TrimPrefix(p, dir), d.IsDir(), b))
		return nil
	})
	return out
}

// merged is what overlayfs would show of two trees.
func merged(lower, upper string) []string {
	all := map[string]string{}
	var walk func(rel string, low, up bool)
	walk = func(rel string, low, up bool) {
		names := map[string]bool{}
		if low {
			list, _ := os.ReadDir(filepath.Join(lower, rel))
			for _, e := range list {
				names[e.Name()] = false
			}
		}
		if up {
			list, _ := os.ReadDir(filepath.Join(upper, rel))
			for _, e := range list {
				names[e.Name()] = true
			}
		}
		for n, above := range names {
			at := filepath.Join(rel, n)
			lst, lerr := os.Lstat(filepath.Join(lower, at))
			if !low {
				lerr = fs.ErrNotExist
			}
			full := filepath.Join(lower, at)
			st := lst
			if above {
				full = filepath.Join(upper, at)
				st, _ = os.Lstat(full)
				if st.Mode()&fs.ModeCharDevice != 0 {
					if !low || lerr != nil {
						all["/"+at+" a whiteout of nothing"] = ""
					}
					continue
				}
			}
			b, _ := os.ReadFile(full)
			all[fmt.Sprintf("/%s %v %s", at, st.IsDir(), b)] = ""
			if st.IsDir() {
				p := &planter{scheme: &Scheme{Layers: []Layer{{At: lower}}}, upper: []string{upper}, xattr: "user"}
				walk(at, low && lerr == nil && lst.IsDir() && !(above && p.opaque(0, at)), above)
			}
		}
	}
	walk("", true, true)
	out := []string{}
	for s := range all {
		out = append(out, s)
	}
	sort.Slice(out, func(a, b int) bool { return strings.Fields(out[a])[0] < strings.Fields(out[b])[0] })
	return out
}

func TestArrange(t *testing.T) {
	const info = `30 1 254:0 / / rw,relatime - ext4 /dev/vda rw
20 30 0:18 / /proc rw - proc proc rw
21 30 0:19 / /sys rw - sysfs sysfs rw
22 30 0:5 / /dev rw - devtmpfs devtmpfs rw
23 22 0:20 / /dev/shm rw - tmpfs tmpfs rw
24 22 0:21 / /dev/pts rw - devpts devpts rw
25 30 8:1 / /home rw - xfs /dev/sda rw
26 25 8:2 / /home/my\040disk rw - ext4 /dev/sdb rw
27 30 8:3 / /mnt/cd ro - iso9660 /dev/sr0 ro
28 30 8:4 / /etc/hosts rw - ext4 /dev/vda rw
29 21 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup rw
31 30 0:40 / /gone rw - fuse.far far rw
`
	mounts, err := ParseMounts(strings.NewReader(info), func(p string) (bool, bool) { return p == "/etc/hosts", p != "/gone" })
	if err != nil || len(mounts) != 11 {
		t.Fatal(mounts, err)
	}
	dirs := map[string][]Entry{"/": {{"home", true, false}, {"tmp", true, false}, {"etc", true, false}, {"bin", false, true}, {"mnt", true, false}, {"proc", true, false},
		{"sys", true, false}, {"dev", true, false}, {"f", false, false}}, "/home": {{"my disk", true, false}, {"u", true, false}}, "/mnt": {{"cd", true, false}},
		"/etc": {{"hosts", false, false}, {"passwd", false, false}, {"ssh", true, false}}, "/dev/shm": {}, "/dev": {{"log", false, false}}}
	list := func(d string) ([]Entry, error) {
		if l, ok := dirs[d]; ok {
			return l, nil
		}
		return nil, fs.ErrNotExist
	}
	show := func(s *Scheme) string {
		kinds := []string{"overlay", "bind", "read", "proc", "mqueue", "dir", "link", "file", "hide", "mute"}
		var out []string
		for _, a := range s.Actions {
			k := kinds[a.Kind]
			if a.Kind == ActOverlay {
				if s.Layers[a.Layer].Nested {
					k += " nested"
				}
				if s.Layers[a.Layer].Memory {
					k += " memory"
				}
			}
			out = append(out, k+" "+a.At)
		}
		return strings.Join(out, "\n")
	}
	root := Arrange(SchemeOptions{Mounts: mounts, Base: "/tmp/b", Share: []string{"/run/p"}, List: list})
	want := `overlay nested /
bind /dev
bind /dev/pts
read /etc/hosts
overlay /home
overlay /home/my disk
read /mnt/cd
proc /proc
bind /sys
overlay memory /dev/shm
bind /run/p
mute /dev/log
hide /tmp/b`
	if got := show(root); got != want {
		// A special mount below a special one has come along with it.
		want = strings.Replace(want, "bind /dev/pts\n", "", 1)
		if got != want {
			t.Errorf("root's:\n%s\nwant\n%s", got, want)
		}
	}
	user := Arrange(SchemeOptions{Mounts: mounts, User: true, Base: "/tmp/b", List: list})
	want = `overlay /home/u`
	got := show(user)
	for _, line := range []string{"overlay /home/u", "overlay /home/my disk", "dir /home", "overlay nested /tmp", "link /bin", "file /f", "dir /etc", "file /etc/passwd", "overlay /etc/ssh",
		"read /mnt/cd", "proc /proc", "bind /sys", "bind /dev", "overlay memory /dev/shm", "mute /dev/log", "hide /tmp/b"} {
		if !strings.Contains("\n"+got+"\n", "\n"+line+"\n") {
			t.Errorf("a user's lacks %q:\n%s", line, got)
		}
	}
	for p, want := range map[string]string{"/tmp/x": "/tmp x", "/home/my disk/f": "/home/my disk f", "/home/u": "/home/u ", "/etc/hosts": "", "/proc/1": "", "/dev/shm/a/b": "/dev/shm a/b", "/f": ""} {
		i, rel := user.LayerOf(p)
		got := ""
		if i >= 0 {
			got = user.Layers[i].At + " " + rel
		}
		if got != want {
			t.Errorf("%s lies in %q, want %q", p, got, want)
		}
	}
}

func TestAgain(t *testing.T) {
	s, lost := Again(&trace.Trace{Meta: &trace.Meta{Exe: "/bin/app", Command: []string{"app", "x"}, Cwd: "/w", Env: []string{"A=b=c", "PROPHET_TRACE=/t", "LD_PRELOAD=/x/libprophet.so:/y/z.so", "OLD"},
		Start: &trace.Start{Umask: 0o27, EnvCut: 2, Limits: [][2]int64{{-1, 5}}}}, Procs: []*trace.Proc{{PID: 77}}})
	want := Spec{Path: "/bin/app", Argv: []string{"app", "x"}, Dir: "/w", Env: []string{"A=b=c", "LD_PRELOAD=/y/z.so"}, PID: 77, Limits: &Limits{Umask: 0o27, Limits: [][2]uint64{{1<<64 - 1, 5}}}}
	if !reflect.DeepEqual(s, want) || lost != 3 {
		t.Errorf("%+v, lost %d", s, lost)
	}
}

func inode(st fs.FileInfo) uint64 { return st.Sys().(*syscall.Stat_t).Ino }

// TestLargeFiles: what the kernel would align in another way through an overlay is bound over it, unless that is settled.
func TestLargeFiles(t *testing.T) {
	list := func(string) ([]Entry, error) { return nil, nil }
	s := Arrange(SchemeOptions{Mounts: []Mount{{Point: "/", FS: "ext4"}}, Base: "/tmp/b", Share: []string{"/run/p"}, Large: []string{"/usr/lib/a.so", "/run/p/b.so"}, List: list})
	var bound []string
	for _, a := range s.Actions {
		if a.Kind == ActBindRead {
			bound = append(bound, a.At)
		}
	}
	if !slices.Equal(bound, []string{"/usr/lib/a.so"}) {
		t.Errorf("bound: %q", bound)
	}
}

// TestLargeMaps: it is bound wherever it lies, but what the run changed, or may have changed, is not.
func TestLargeMaps(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"kept", "opened", "made", "moved", "library"} {
		if err := os.WriteFile(at(name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := Make([]Op{{Kind: OpOpen, Path: at("opened"), Existed: true}, {Kind: OpMake, Path: at("made")}, {Kind: OpRename, From: at("other"), Path: at("moved")},
		{Kind: OpKept, Path: at("kept"), Kept: &Kept{OK: true}}}, Live{})
	p.Maps(at("kept"), at("opened"), at("made"), at("moved"), at("library"), at("none"), dir)
	if !slices.Equal(p.Large, []string{at("library")}) {
		t.Errorf("bound: %q", p.Large)
	}
}

// What a program does a million times does not make its directory's path a million names long: that took minutes and gigabytes.
func TestChangeStays(t *testing.T) {
	t.Parallel()
	p := &place{cwd: "/a"}
	for _, c := range []struct{ to, want string }{{".", "/a"}, {"./", "/a"}, {".//./", "/a"}, {"", "/a"}, {"./b", "/a/b"}, {"..", "/a/b/.."}, {".hidden", "/a/b/../.hidden"}, {"/", "/"}} {
		if p.change(p.cwd, c.to); p.cwd != c.want {
			t.Errorf("%q leads to %q, want %q", c.to, p.cwd, c.want)
		}
	}
}
