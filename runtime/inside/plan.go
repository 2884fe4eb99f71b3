package inside

import (
	"io/fs"
	"path"
	"sort"
	"strings"
)

// OpKind is what an operation of the run did to a name.
type OpKind uint8

// The kinds of operations.
const (
	OpOpen   OpKind = iota // for writing; with Made when the file came to be by it
	OpMake                 // a name that was not there: mkdir, mknod, symlink, link, bind, open with O_EXCL
	OpTouch                // attributes or size
	OpRemove               // unlink, rmdir
	OpRename               // From becomes Path
	OpSwap                 // From and Path change places
	OpKept                 // an original was kept, whose name was Path
)

// Op is one operation of the run on names, with absolute paths as the process saw them.
type Op struct {
	At       uint64 // ticks
	Kind     OpKind
	Path     string
	From     string
	Link     string // text of the symbolic link that OpMake made
	NoFollow bool   // the last component is not followed
	Existed  bool   // of OpOpen: the trace says that the file was there
	Kept     *Kept  // of OpKept
	Was      *Was   // what the name was before, where the trace says so
}

// Kept is an original file in the trace.
type Kept struct {
	Dev, Ino, Size uint64
	OK             bool // its content is there (a file of no bytes has no content)
	Was            *Was
}

// Was is what the trace says about a file, directory or link before the run changed it.
type Was struct {
	Mode     uint32 // as the kernel has it, with the type
	UID, GID uint32
	MTime    uint64 // ns
	Link     string
}

// The type bits of Was.Mode, the same on all machines.
const (
	modeType    = 0o170000
	modeDir     = 0o040000
	modeLink    = 0o120000
	modeRegular = 0o100000
)

// Plan is what has to be restored so that all is as before the run.
type Plan struct {
	Restore []Restore // parents first
	Missing []Missing // what cannot be restored
	Work    []string  // directories in which the run made or changed names, sorted
	Large   []string  // large files that it mapped and did not change, sorted

	kept    string   // the directory of kept originals
	changed []string // names that the run made or may have changed, sorted
}

// Restore says how a name becomes what it was.
type Restore struct {
	Path   string
	Absent bool   // it was not there
	Kept   *Kept  // its content
	Other  bool   // what has the name now is something else
	From   string // where it is now, to be copied with all below
	Was    *Was   // may be nil: attributes as they are now
}

// Missing is a name that the run changed and whose former content the trace does not have.
type Missing struct{ Path, Why string }

// Outside is what the planner asks the file system as it is now.
type Outside interface {
	Lstat(path string) (fs.FileInfo, error)
	Readlink(path string) (string, error)
}

// node is a file or directory in the simulation of the run. One with an original name stands for whatever had that
// name before the run.
type node struct {
	orig    string // "" when the run made it
	existed bool   // known to have been there
	absent  bool   // known not to have been
	changed bool
	link    string // of a symbolic link that the run made
	was     *Was
	kept    *Kept
	kids    map[string]*node // names looked at; nil: nothing there now
	now     string           // where it is at the end; "" nowhere
}

type world struct {
	out   Outside
	root  *node
	slots map[string]*node // by original name
	work  map[string]bool
	made  map[string]bool // names that the run made otherwise than by opening
	kept  map[string]bool // names of originals: who opened one first need not be who kept it
}

const linksMax = 40

// Make plans from the operations of a run, in the order of their time.
func Make(ops []Op, out Outside) *Plan {
	w := &world{out: out, slots: map[string]*node{}, work: map[string]bool{}, made: map[string]bool{}, kept: map[string]bool{}}
	w.root = w.slot("/")
	for i := range ops {
		if k := ops[i].Kind; k == OpMake || k == OpRename || k == OpSwap {
			w.made[path.Clean(ops[i].Path)] = true
			w.made[path.Clean(ops[i].From)] = true
		} else if k == OpKept && ops[i].Kept.OK {
			w.kept[path.Clean(ops[i].Path)] = true
		}
	}
	for i := range ops {
		w.apply(&ops[i])
	}
	w.place(w.root, "/")
	return w.result()
}

func (w *world) slot(p string) *node {
	n := w.slots[p]
	if n == nil {
		n = &node{orig: p, kids: map[string]*node{}}
		w.slots[p] = n
	}
	return n
}

func (w *world) child(n *node, name string) *node {
	k, known := n.kids[name]
	if !known && n.orig != "" {
		k = w.slot(path.Join(n.orig, name))
		n.kids[name] = k
	}
	return k
}

// text is what a symbolic link says; "" when the node is none.
func (w *world) text(n *node) string {
	switch {
	case n.link != "":
		return n.link
	case n.was != nil && n.was.Link != "":
		return n.was.Link
	case n.orig == "":
		return ""
	}
	s, err := w.out.Readlink(n.orig)
	if err != nil {
		return ""
	}
	return s
}

// find walks to the directory that holds the name; follow says whether a link in the last place is followed. The
// result's name is "" for the root itself. It is nil where the way leads nowhere.
func (w *world) find(p string, follow bool) (dir *node, name string) {
	var stack []*node
	at, hops := w.root, 0
	parts := strings.Split(p, "/")
	for i := 0; i < len(parts); i++ {
		switch c := parts[i]; c {
		case "", ".":
			continue
		case "..":
			if n := len(stack); n > 0 {
				at, stack = stack[n-1], stack[:n-1]
			}
			dir, name = nil, ""
			continue
		default:
			k := w.child(at, c)
			last := strings.Trim(strings.Join(parts[i+1:], "/"), "/") == ""
			if k != nil && (!last || follow) {
				if t := w.text(k); t != "" {
					if hops++; hops > linksMax {
						return nil, ""
					}
					if t[0] == '/' {
						at, stack = w.root, nil
					}
					parts = append(strings.Split(t, "/"), parts[i+1:]...)
					i = -1
					continue
				}
			}
			dir, name = at, c
			if last {
				return dir, name
			}
			if k == nil {
				return nil, ""
			}
			stack = append(stack, at)
			at = k
		}
	}
	if len(stack) == 0 {
		return w.root, ""
	}
	return dir, name
}

func (w *world) apply(op *Op) {
	dir, name := w.find(op.Path, !op.NoFollow)
	if dir == nil || name == "" {
		return
	}
	k := w.child(dir, name)
	switch op.Kind {
	case OpKept:
		if k != nil && k.orig != "" && k.kept == nil {
			k.kept, k.existed, k.changed = op.Kept, true, true
			if k.was == nil { // else its looks had changed before its content
				k.was = op.Kept.Was
			}
		}
		return
	case OpOpen:
		switch {
		case k == nil:
			w.put(dir, name, &node{kids: map[string]*node{}})
		case k.orig != "" && !k.existed && !op.Existed && (!w.kept[k.orig] || w.made[k.orig]) && w.plain(k):
			w.put(dir, name, &node{kids: map[string]*node{}})
		case k.orig != "":
			k.existed = true
			k.changed = k.changed || w.plain(k)
		}
	case OpMake:
		w.put(dir, name, &node{link: op.Link, kids: map[string]*node{}})
	case OpTouch:
		if k != nil && k.orig != "" {
			k.existed, k.changed = true, true
			if k.was == nil {
				k.was = op.Was
			}
		}
	case OpRemove:
		w.leaves(k, op.Was)
		dir.kids[name] = nil
	case OpRename, OpSwap:
		from, old := w.find(op.From, false)
		if from == nil || old == "" {
			return
		}
		moved := w.child(from, old)
		if moved == nil || moved == k {
			return
		}
		w.leaves(moved, nil)
		if op.Kind == OpSwap {
			w.leaves(k, nil)
			from.kids[old] = k
		} else {
			if k != nil && k.orig != "" && !k.existed && k.kept == nil && op.Was == nil {
				k.absent = true
			} else {
				w.leaves(k, op.Was)
			}
			from.kids[old] = nil
		}
		w.works(from)
		dir.kids[name] = moved
	}
	w.works(dir)
}

// plain reports whether an open may have made what is there: devices, pipes and sockets it cannot make. One that is
// there now tells, unless the run made it later.
func (w *world) plain(k *node) bool {
	st, err := w.out.Lstat(k.orig)
	return err != nil || st.Mode().IsRegular() || st.IsDir() || w.made[k.orig]
}

// put makes a name that was not there.
func (w *world) put(dir *node, name string, n *node) {
	if k := w.child(dir, name); k != nil && k.orig != "" && !k.existed {
		k.absent = true
	}
	dir.kids[name] = n
}

// leaves says that what had a name was there until now.
func (w *world) leaves(k *node, was *Was) {
	if k != nil && k.orig != "" && !k.absent {
		k.existed, k.changed = true, true
		if k.was == nil {
			k.was = was
		}
	}
}

func (w *world) works(dir *node) {
	if dir.orig != "" {
		w.work[dir.orig] = true
	}
}

// place finds where each node is at the end.
func (w *world) place(n *node, at string) {
	if n.now != "" {
		return // a second name of it
	}
	n.now = at
	for name, k := range n.kids {
		if k != nil && !(k.orig == path.Join(at, name) && k.absent) {
			w.place(k, path.Join(at, name))
		}
	}
}

func (w *world) result() *Plan {
	p := &Plan{}
	names := make([]string, 0, len(w.slots))
	for s, n := range w.slots {
		if n.absent || n.changed {
			names = append(names, s)
		}
	}
	sort.Strings(names) // a directory before what is in it
	p.changed = names
	gone := "" // the last name that was not there: nothing below it has to be said
	for _, s := range names {
		if gone != "" && strings.HasPrefix(s, gone+"/") {
			continue
		}
		n := w.slots[s]
		if n.absent {
			p.Restore = append(p.Restore, Restore{Path: s, Absent: true})
			gone = s
			continue
		}
		r := Restore{Path: s, Was: n.was}
		switch {
		case n.kept != nil && n.kept.OK:
			r.Kept = n.kept
		case n.kept != nil:
			p.Missing = append(p.Missing, Missing{s, "its former content was not kept"})
			continue
		case n.now == s:
			if n.was == nil {
				continue // as it was
			}
		case n.now != "":
			r.From = n.now
		case n.was != nil && n.was.Mode&modeType != modeRegular:
			r.Other = true
		default:
			p.Missing = append(p.Missing, Missing{s, "the trace does not say what it was"})
			continue
		}
		p.Restore = append(p.Restore, r)
	}
	for d := range w.work {
		if gone := w.slots[d]; gone == nil || !gone.absent {
			p.Work = append(p.Work, d)
		}
	}
	sort.Strings(p.Work)
	return p
}
