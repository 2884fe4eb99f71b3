package inside

import (
	"bufio"
	"io"
	"path"
	"sort"
	"strconv"
	"strings"
)

// Mount is a line of /proc/self/mountinfo.
type Mount struct {
	Parent    string // number of the mount that it is mounted on
	Point, FS string
	ReadOnly  bool
	File      bool // the mount point is not a directory
}

// Layer is a directory that gets an overlay: its writes stay in an upper directory of the world.
type Layer struct {
	At     string
	Nested bool // the upper directory lies below At on the same file system, which the kernel refuses as it is
	Memory bool // its upper directory is in memory
}

// ActionKind is what is done to the new root.
type ActionKind uint8

// The kinds of actions.
const (
	ActOverlay  ActionKind = iota
	ActBind                // with all that is mounted below
	ActBindRead            // read-only
	ActProc
	ActMqueue
	ActDir
	ActLink
	ActFile // a file bound over an empty one
	ActHide // an empty directory in place of the world's own
	ActMute // nobody listens there
)

// Action is one step in building the new root, At in the program's view.
type Action struct {
	Kind  ActionKind
	At    string
	Layer int // of ActOverlay
}

// Scheme is how the new root is built.
type Scheme struct {
	Layers  []Layer
	Actions []Action
	Notes   []string
}

// Entry is a name in a directory.
type Entry struct {
	Name      string
	Dir, Link bool
}

// SchemeOptions says what Arrange has to respect.
type SchemeOptions struct {
	Mounts []Mount  // in the order of mountinfo
	User   bool     // an ordinary user's: a directory with mounts below cannot be a lower one
	Base   string   // the world's own directory
	Share  []string // directories that are the same inside and outside
	Large  []string // files that are not looked at through an overlay
	Disk   bool     // shared memory on disk, too, as its content is to be kept
	List   func(dir string) ([]Entry, error)
}

// special file systems are the kernel's own: they are the same inside.
var special = map[string]bool{"proc": true, "sysfs": true, "devtmpfs": true, "devpts": true, "cgroup": true, "cgroup2": true, "tracefs": true,
	"debugfs": true, "securityfs": true, "bpf": true, "configfs": true, "efivarfs": true, "pstore": true, "fusectl": true, "selinuxfs": true,
	"hugetlbfs": true, "autofs": true, "rpc_pipefs": true, "nfsd": true, "binfmt_misc": true, "mqueue": true}

func below(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

type arranger struct {
	SchemeOptions
	Scheme
	tops map[string]Mount // what is on top at each point
}

// Arrange decides what is mounted where.
func Arrange(o SchemeOptions) *Scheme {
	a := &arranger{SchemeOptions: o, tops: map[string]Mount{}}
	for _, m := range o.Mounts {
		for p := range a.tops { // what it is mounted over cannot be seen any more
			if p != m.Point && below(p, m.Point) && a.tops[p].Parent == m.Parent {
				delete(a.tops, p)
			}
		}
		a.tops[m.Point] = m
	}
	if _, ok := a.tops["/"]; !ok {
		a.tops["/"] = Mount{Point: "/"}
	}
	if o.User {
		a.descend("/")
	} else {
		a.mounts()
	}
	a.memory()
	for _, s := range o.Share {
		if !below(s, o.Base) {
			a.act(ActBind, s)
		}
	}
	for _, f := range o.Large {
		if !below(f, o.Base) && !a.settled(f) {
			a.act(ActBindRead, f)
		}
	}
	a.mute()
	a.act(ActHide, o.Base)
	return &a.Scheme
}

func (a *arranger) act(k ActionKind, at string) {
	a.Actions = append(a.Actions, Action{Kind: k, At: at})
}

func (a *arranger) overlay(at string, memory bool) {
	a.Actions = append(a.Actions, Action{Kind: ActOverlay, At: at, Layer: len(a.Layers)})
	nested := !memory && below(a.Base, at) && a.holder(a.Base) == a.holder(at)
	a.Layers = append(a.Layers, Layer{At: at, Nested: nested, Memory: memory})
}

// holder is the mount that a path lies in.
func (a *arranger) holder(p string) string {
	for ; p != "/"; p = path.Dir(p) {
		if _, ok := a.tops[p]; ok {
			return p
		}
	}
	return "/"
}

// kept reports whether the place is settled by what lies above it.
func (a *arranger) settled(p string) bool {
	for _, s := range append([]string{a.Base, "/proc", "/sys", "/dev/shm", "/dev/mqueue"}, a.Share...) {
		if p != s && below(p, s) {
			return true
		}
	}
	return false
}

// one settles a mount point other than the root; false when it is to be an overlay.
func (a *arranger) one(m Mount) bool {
	switch {
	case m.Point == "/proc":
		a.act(ActProc, m.Point)
	case m.Point == "/dev/mqueue" || m.FS == "mqueue":
		a.act(ActMqueue, m.Point)
	case m.Point == "/dev/shm":
	case special[m.FS]:
		a.act(ActBind, m.Point)
	case m.File || m.ReadOnly:
		a.act(ActBindRead, m.Point)
	default:
		return false
	}
	return true
}

func (a *arranger) points() []string {
	var all []string
	for p := range a.tops {
		if p != "/" {
			all = append(all, p)
		}
	}
	sort.Strings(all)
	return all
}

// bound reports whether a special mount above has brought this one along.
func (a *arranger) bound(p string) bool {
	for up := path.Dir(p); up != "/"; up = path.Dir(up) {
		if m, ok := a.tops[up]; ok && special[m.FS] {
			return special[a.tops[p].FS] && p != "/dev/mqueue"
		}
	}
	return false
}

// mounts lays one overlay over each mount.
func (a *arranger) mounts() {
	a.overlay("/", false)
	for _, p := range a.points() {
		if !a.settled(p) && !a.bound(p) && !a.one(a.tops[p]) {
			a.overlay(p, false)
		}
	}
}

// descend goes down to directories below which nothing is mounted.
func (a *arranger) descend(dir string) {
	m, isMount := a.tops[dir]
	if dir != "/" && isMount {
		if a.settled(dir) || a.one(m) {
			if special[m.FS] {
				for _, p := range a.points() { // files of others may be mounted among the kernel's
					if p != dir && below(p, dir) && !a.settled(p) && !a.bound(p) && !a.one(a.tops[p]) {
						a.overlay(p, false)
					}
				}
			}
			return
		}
	}
	deeper := false
	for p := range a.tops {
		deeper = deeper || p != dir && below(p, dir)
	}
	if !deeper {
		a.overlay(dir, false)
		return
	}
	if dir != "/" {
		a.act(ActDir, dir)
	}
	list, err := a.List(dir)
	if err != nil {
		a.Notes = append(a.Notes, dir+" cannot be listed: it is empty inside")
		return
	}
	for _, e := range list {
		at := path.Join(dir, e.Name)
		switch {
		case e.Dir:
			a.descend(at)
		case e.Link:
			a.act(ActLink, at)
		default:
			a.act(ActFile, at)
		}
	}
}

// memory gives shared memory an overlay of its own, in memory.
func (a *arranger) memory() {
	if l, err := a.List("/dev/shm"); err != nil && l == nil {
		return
	}
	a.overlay("/dev/shm", !a.Disk)
}

const systemLog = "/dev/log"

// mute keeps what syslog says inside: the C library sends it by itself, and no call of the program shows it. Through an overlay no
// socket outside can be reached; this one may lie among the kernel's files, which are the same inside.
func (a *arranger) mute() {
	list, _ := a.List(path.Dir(systemLog))
	for _, e := range list {
		if e.Name == path.Base(systemLog) && !e.Dir && !e.Link {
			a.act(ActMute, systemLog)
		}
	}
}

// ParseMounts reads mountinfo. isFile tells whether a mount point is not a directory, and whether it answers at all: one that
// does not is left out.
func ParseMounts(r io.Reader, isFile func(string) (file, answers bool)) ([]Mount, error) {
	var all []Mount
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		// 36 35 98:0 /root /point rw,noatime shared:1 - ext3 /dev/root rw
		before, after, ok := strings.Cut(s.Text(), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(g) < 1 {
			continue
		}
		m := Mount{Parent: f[1], Point: unescape(f[4]), FS: g[0]}
		for _, opt := range strings.Split(f[5], ",") {
			m.ReadOnly = m.ReadOnly || opt == "ro"
		}
		if m.FS == "proc" && m.Point != "/proc" {
			m.ReadOnly = true
		}
		answers := true
		if m.Point != "/" {
			m.File, answers = isFile(m.Point)
		}
		if answers {
			all = append(all, m)
		}
	}
	return all, s.Err()
}

// unescape undoes mountinfo's \040 and the like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// LayerOf is the layer that a path lies in, and what it is called there; -1 when it lies in none.
func (s *Scheme) LayerOf(p string) (int, string) {
	best := -1
	for i := range s.Layers {
		if below(p, s.Layers[i].At) && (best < 0 || len(s.Layers[i].At) > len(s.Layers[best].At)) {
			best = i
		}
	}
	if best < 0 {
		return -1, ""
	}
	at := s.Layers[best].At
	for _, a := range s.Actions { // something else may be mounted between
		if a.Kind != ActOverlay && a.Kind != ActDir && below(p, a.At) && len(a.At) > len(at) {
			return -1, ""
		}
	}
	return best, strings.TrimPrefix(strings.TrimPrefix(p, at), "/")
}
