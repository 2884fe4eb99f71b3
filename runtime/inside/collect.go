package inside

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// What collect needs of an event, beside the operation: whose it is, and how it changes where paths lead.
type deed struct {
	at   uint64
	proc *trace.Proc
	do   func(p *place, s *deed) []Op
	fd   int
	obj  trace.Object
	obj2 trace.Object
	path string
	from string
	op   Op
}

// Deeds are what the run did to files.
type Deeds struct {
	Ops   []Op     // to names, in the order of time
	Large []string // names of what it mapped hugePage bytes or more of at once, as it named them
}

// place is where a process stands: what relative paths begin at.
type place struct {
	cwd string
	fds map[int]string
	obj map[trace.Object]int // descriptors by name
}

func (p *place) join(at, name string) string {
	if name == "" || name[0] == '/' {
		return name
	}
	if at == "" {
		return ""
	}
	return at + "/" + name // not cleaned: ".." is walked
}

// change is a change of directory that was done. Where programs stay where they are, again and again, the path stays as long as it is.
func (p *place) change(at, to string) {
	for strings.HasPrefix(to, "./") {
		to = strings.TrimLeft(to[1:], "/")
	}
	if to == "" || to == "." {
		p.cwd = at
	} else {
		p.cwd = p.join(at, to)
	}
}

// dir is what a path relative to this object begins at.
func (p *place) dir(o trace.Object) string {
	if o.None() {
		return p.cwd
	}
	if fd, ok := p.obj[o]; ok {
		return p.fds[fd]
	}
	return ""
}

// Collect reads from a trace what the run did to files.
func Collect(t *trace.Trace, workers int) (*Deeds, error) {
	if workers < 1 {
		workers = runtime.NumCPU()
	}
	var mu sync.Mutex
	var all []deed
	lanes := map[*trace.Thread]*lane{}
	_, err := t.WalkOnly(cabi.SetOf(cabi.Disk, cabi.Net, cabi.Thread, cabi.Memory, cabi.Stdio, cabi.Shape), workers, func(th *trace.Thread) trace.Visit {
		l := &lane{proc: th.Proc}
		mu.Lock()
		lanes[th] = l
		mu.Unlock()
		return l.visit
	})
	if err != nil {
		return nil, err
	}
	for _, th := range t.Threads { // a fixed order, so that ties come out the same
		if l := lanes[th]; l != nil {
			all = append(all, l.deeds...)
		}
	}
	slices.SortStableFunc(all, func(a, b deed) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	places := map[*trace.Proc]*place{}
	var d Deeds
	for i := range all {
		s := &all[i]
		d.Ops = append(d.Ops, s.do(placeOf(places, s.proc), s)...)
	}
	for _, l := range lanes {
		d.Large = append(d.Large, l.large...)
	}
	slices.Sort(d.Large)
	d.Large = slices.Compact(d.Large)
	return &d, nil
}

// placeOf finds where a process stands; one that is new stands where its parent stands now.
func placeOf(places map[*trace.Proc]*place, p *trace.Proc) *place {
	at := places[p]
	if at != nil {
		return at
	}
	at = &place{cwd: p.Cwd, fds: map[int]string{}, obj: map[trace.Object]int{}}
	places[p] = at
	if p.Parent != nil {
		parent := placeOf(places, p.Parent)
		if at.cwd == "" {
			at.cwd = parent.cwd
		}
		for fd, s := range parent.fds {
			at.fds[fd] = s
		}
		for o, fd := range parent.obj {
			at.obj[o] = fd
		}
	}
	return at
}

// lane collects the deeds of one thread.
type lane struct {
	proc  *trace.Proc
	deeds []deed
	was   *Was
	open  int // the deed of an open whose KEPT may follow; -1 none
	fresh bool
	kept  int // KEPTs since the event before
	binds int // 1 + the deed of a bind whose address may follow
	large []string
}

func (l *lane) add(s deed) {
	s.proc = l.proc
	l.deeds = append(l.deeds, s)
}

func (l *lane) visit(r *trace.Record) error {
	switch r.Tag {
	case trace.TagEvent:
		l.event(r)
		l.was, l.kept = nil, 0
	case cabi.TagWas:
		l.was = &Was{Mode: uint32(r.Nums[2]), UID: uint32(r.Nums[3]), GID: uint32(r.Nums[4]), MTime: r.Nums[5], Link: string(r.Text[0])}
	case cabi.TagKept:
		l.keeps(r)
	case cabi.TagInput:
		if l.binds > 0 {
			if f, ok := trace.ParseInput(nil, r.Row, int(r.Nums[0]), r.Text[0]); ok && len(f) == 1 {
				if at, unix := strings.CutPrefix(string(f[0].Text), "unix:"); unix && at != "" && at[0] != 0 {
					l.deeds[l.binds-1].path = at
				}
			}
		}
	case cabi.TagObject:
		if r.Nums[2] == cabi.ObjFd {
			l.object(r)
		}
	case cabi.TagModule:
		if r.Nums[1] >= hugePage {
			name := string(r.Text[0])
			if !path.IsAbs(name) { // where the process is now nobody knows; most stay where they began
				name = path.Join(l.proc.Cwd, name)
			}
			l.large = append(l.large, name)
		}
	}
	return nil
}

// keeps takes a KEPT. It says that a file was there: one that the event before it opened, or the event after it will.
func (l *lane) keeps(r *trace.Record) {
	k := &Kept{Dev: r.Nums[0], Ino: r.Nums[1], Size: r.Nums[2], Was: l.was}
	k.OK = r.Nums[3] == cabi.KeptClone || r.Nums[3] == cabi.KeptCopy
	l.was = nil
	l.kept++
	if l.fresh {
		l.deeds[l.open].op.Existed = true
	}
	// The file was there before the event that it belongs to, whichever side of it the record is on.
	at := r.Begin
	if l.fresh && len(l.deeds) > 0 {
		at = min(at, l.deeds[l.open].at)
	}
	s := deed{at: at, path: string(r.Text[0]), op: Op{Kind: OpKept, Kept: k}, do: pathOp}
	if l.fresh {
		s.proc = l.proc
		l.deeds = slices.Insert(l.deeds, l.open, s)
		l.open++
		return
	}
	l.add(s)
}

// object takes the name that a descriptor got.
func (l *lane) object(r *trace.Record) {
	o := trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}
	l.add(deed{at: r.Begin, obj: o, fd: int(int32(r.Nums[3])), path: string(r.Text[0]), do: func(p *place, s *deed) []Op {
		p.obj[s.obj] = s.fd
		if strings.HasPrefix(s.path, "/") {
			p.fds[s.fd] = strings.TrimSuffix(s.path, " (deleted)")
		}
		return nil
	}})
}

func pathOp(p *place, s *deed) []Op {
	op := s.op
	op.At = s.at
	if op.Path = p.join(p.dir(s.obj), s.path); op.Path == "" {
		return nil
	}
	if op.Kind == OpRename || op.Kind == OpSwap {
		if op.From = p.join(p.dir(s.obj), s.from); op.From == "" {
			return nil
		}
		if op.Path = p.join(p.dir(s.obj2), s.path); op.Path == "" {
			return nil
		}
	}
	return []Op{op}
}

// opened is pathOp of a call that made a descriptor as well.
func opened(p *place, s *deed) []Op {
	if full := p.join(p.dir(s.obj), s.path); full != "" && s.fd >= 0 {
		p.fds[s.fd] = full
	}
	if s.op.Kind == OpKept { // opened for reading
		return nil
	}
	return pathOp(p, s)
}

// base is the name that a call has without its variants.
func base(name string) string {
	name = strings.TrimPrefix(name, "__")
	name = strings.TrimSuffix(name, "_2")
	name = strings.TrimSuffix(name, "_chk")
	return strings.TrimSuffix(name, "64")
}

// Flags of open as the trace has them.
const (
	oAccess = 3
	oCreat  = 0o100
	oExcl   = 0o200
	oTrunc  = 0o1000
	oNoFoll = 0o400000
	oTmp    = 0o20000000
	oPath   = 0o10000000
)

const (
	renameExchange = 2
	atNoFollow     = 0x100
	fDupFd         = 0
	fDupFdCloexec  = 1030
)

func num(r *trace.Record, name string) int64 {
	for i, n := range r.Row.F {
		if n == name {
			return r.F[i]
		}
	}
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			return int64(r.Fields[i].Num)
		}
	}
	return 0
}

func str(r *trace.Record, name string) string {
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			return string(r.Fields[i].Text)
		}
	}
	return ""
}

// lastPath is the path of the row, its last field.
func lastPath(r *trace.Record) string {
	if n := len(r.Fields); n > 0 {
		return string(r.Fields[n-1].Text)
	}
	return ""
}

var stdioModes = map[byte]int64{'w': oCreat | oTrunc | 1, 'a': oCreat | 1, 'r': 0}

// event makes deeds of an event that matters.
func (l *lane) event(r *trace.Record) {
	l.fresh, l.binds = false, 0
	row := r.Row
	if row != nil && base(row.Name) == "mmap" {
		l.maps(r)
		return
	}
	if row == nil || row.Class != cabi.Disk && row.Class != cabi.Stdio && row.Class != cabi.Net && row.Class != cabi.Sync && row.Class != cabi.Thread {
		return
	}
	failed := r.Ret < 0
	s := deed{at: r.Begin, obj: r.Obj, fd: -1, path: lastPath(r), do: pathOp}
	s.op.Was = l.was
	switch name := base(row.Name); name {
	case "open", "openat", "creat", "shm_open":
		l.opens(r, &s, num(r, "flags"), r.Ret)
	case "fopen", "freopen":
		mode := str(r, "mode")
		if failed || mode == "" {
			return
		}
		flags := stdioModes[mode[0]]
		if strings.Contains(mode, "+") {
			flags = flags&^oAccess | 2
		}
		if strings.Contains(mode, "x") {
			flags |= oExcl
		}
		l.opens(r, &s, flags, num(r, "fd"))
	case "sem_open":
		if !failed {
			s.obj, s.path = trace.Object{}, "/dev/shm/sem."+strings.TrimLeft(s.path, "/")
			l.opens(r, &s, num(r, "flags")|2, -1)
		}
	case "mkstemp", "mkostemp", "mkstemps", "mkostemps":
		l.opens(r, &s, oCreat|oExcl|2, r.Ret)
	case "opendir":
		return // its object says where it is, when a path is relative to it
	case "mkdtemp", "mkdir", "mkdirat", "mknod", "mknodat", "mkfifo", "mkfifoat", "xmknod", "xmknodat":
		if failed {
			return
		}
		s.op.Kind, s.op.NoFollow = OpMake, true
		l.add(s)
	case "symlink", "symlinkat":
		if failed {
			return
		}
		s.op.Kind, s.op.NoFollow, s.op.Link = OpMake, true, str(r, "text")
		l.add(s)
	case "link", "linkat":
		if failed {
			return
		}
		if name == "linkat" {
			s.obj = l.named(uint64(num(r, "to")))
		}
		s.op.Kind, s.op.NoFollow = OpMake, true
		l.add(s)
	case "rename", "renameat", "renameat2":
		if failed {
			return
		}
		s.from, s.op.Kind, s.op.NoFollow = str(r, "from"), OpRename, true
		if name != "rename" {
			s.obj2 = l.named(uint64(num(r, "to")))
		}
		if name == "renameat2" && num(r, "flags")&renameExchange != 0 {
			s.op.Kind = OpSwap
		}
		l.add(s)
	case "unlink", "unlinkat", "rmdir", "remove", "shm_unlink", "sem_unlink":
		if failed {
			return
		}
		switch name {
		case "shm_unlink":
			s.path = "/dev/shm/" + strings.TrimLeft(s.path, "/")
		case "sem_unlink":
			s.path = "/dev/shm/sem." + strings.TrimLeft(s.path, "/")
		}
		if name == "shm_unlink" || name == "sem_unlink" {
			s.obj = trace.Object{}
		}
		s.op.Kind, s.op.NoFollow = OpRemove, true
		l.add(s)
	case "truncate", "chmod", "chown", "utime", "utimes", "setxattr", "removexattr", "fchmodat", "fchownat", "utimensat", "futimesat",
		"lchmod", "lchown", "lutimes", "lsetxattr", "lremovexattr":
		if failed || s.path == "" && row.Obj != "" {
			return
		}
		s.op.Kind = OpTouch
		s.op.NoFollow = name[0] == 'l' || row.Obj != "" && num(r, "flags")&atNoFollow != 0
		l.add(s)
	case "fchmod", "fchown", "futimes", "futimens", "fsetxattr", "fremovexattr":
		if failed {
			return
		}
		s.op.Kind = OpTouch
		s.do = func(p *place, s *deed) []Op {
			if at := p.dir(s.obj); at != "" && !s.obj.None() {
				op := s.op
				op.At, op.Path = s.at, at
				return []Op{op}
			}
			return nil
		}
		l.add(s)
	case "bind":
		if !failed {
			l.binds = len(l.deeds) + 1
			s.op.Kind, s.op.NoFollow, s.obj = OpMake, true, trace.Object{}
			s.path = "" // its TagInput follows
			l.add(s)
		}
	case "dup", "dup2", "dup3":
		l.dups(&s, r.Ret)
	case "fcntl":
		if c := num(r, "cmd"); c == fDupFd || c == fDupFdCloexec {
			l.dups(&s, r.Ret)
		}
	case "chdir", "fchdir", "daemon":
		if !failed && !(name == "daemon" && num(r, "nochdir") != 0) {
			if name == "daemon" {
				s.path = "/"
			}
			s.do = func(p *place, s *deed) []Op {
				p.change(p.dir(s.obj), s.path)
				return nil
			}
			l.add(s)
		}
	}
}

// maps is a mapping, of a file perhaps.
func (l *lane) maps(r *trace.Record) {
	if r.Ret < 0 || r.Obj.None() || num(r, "n") < hugePage {
		return
	}
	l.add(deed{at: r.Begin, obj: r.Obj, do: func(p *place, s *deed) []Op {
		if at := p.dir(s.obj); at != "" {
			l.large = append(l.large, at)
		}
		return nil
	}})
}

// opens is an open that succeeded.
func (l *lane) opens(r *trace.Record, s *deed, flags, fd int64) {
	if r.Ret < 0 || flags&oPath != 0 && flags&oCreat == 0 {
		if r.Ret >= 0 {
			s.fd, s.do, s.op.Kind = int(fd), opened, OpKept
			l.add(*s)
		}
		return
	}
	if base(r.Row.Name) == "shm_open" {
		s.obj, s.path = trace.Object{}, "/dev/shm/"+strings.TrimLeft(s.path, "/")
	}
	s.fd, s.do = int(fd), opened
	s.op.NoFollow = flags&oNoFoll != 0 || flags&(oCreat|oExcl) == oCreat|oExcl
	switch {
	case flags&oTmp == oTmp:
		return // without a name
	case flags&(oCreat|oExcl) == oCreat|oExcl:
		s.op.Kind = OpMake
	case flags&oAccess == 0 && flags&(oTrunc|oCreat) == 0:
		s.op.Kind = OpKept // nothing changes; the descriptor may be a directory's
	case flags&oCreat == 0:
		s.op.Kind, s.op.Existed = OpOpen, true
	default:
		s.op.Kind, s.op.Existed = OpOpen, l.kept > 0
		l.open, l.fresh = len(l.deeds), true
	}
	l.add(*s)
}

func (l *lane) dups(s *deed, fd int64) {
	if fd < 0 {
		return
	}
	s.fd = int(fd)
	s.do = func(p *place, s *deed) []Op {
		if from, ok := p.obj[s.obj]; ok {
			p.fds[s.fd] = p.fds[from]
		}
		return nil
	}
	l.add(*s)
}

// named is the object that a number of an event names: those of a thread are packed as shim/object.h does.
func (l *lane) named(x uint64) trace.Object {
	if x == 0 {
		return trace.Object{}
	}
	return trace.Object{UID: uint32(x >> 40), Num: x & (1<<40 - 1)}
}

// FromTrace plans what has to be restored before the run of a trace can begin again.
func FromTrace(t *trace.Trace, out Outside) (*Plan, error) {
	d, err := Collect(t, 0)
	if err != nil {
		return nil, err
	}
	p := Make(d.Ops, out)
	if len(t.Procs) > 0 {
		if cwd := t.Procs[0].Cwd; cwd != "" && !slices.Contains(p.Work, path.Clean(cwd)) {
			p.Work = append(p.Work, path.Clean(cwd))
			slices.Sort(p.Work)
		}
	}
	p.Maps(append(d.Large, localeArchive)...)
	if !t.Packed {
		p.kept = filepath.Join(t.Path, "kept")
	}
	return p, nil
}

// hugePage is what the kernel aligns mappings of a file to, where they are at least that long and its file system asks
// for it. An overlay does not ask. A library is mapped at the length that it has in memory, however short its file.
const hugePage = 2 << 20

// localeArchive is mapped by the C library itself, which no event tells.
const localeArchive = "/usr/lib/locale/locale-archive"

// Maps says what the run has mapped that the kernel aligns so. What of it the run did not change lies inside where it lay.
func (p *Plan) Maps(names ...string) {
	for _, name := range names {
		file, err := filepath.EvalSymlinks(name)
		if err != nil || !filepath.IsAbs(name) {
			continue
		}
		if _, changed := slices.BinarySearch(p.changed, file); changed || slices.ContainsFunc(p.Restore, func(r Restore) bool { return below(file, r.Path) }) {
			continue
		}
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() {
			p.Large = append(p.Large, file)
		}
	}
	slices.Sort(p.Large)
	p.Large = slices.Compact(p.Large)
}
