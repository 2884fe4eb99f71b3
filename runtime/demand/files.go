package demand

import (
	"path"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// files are the names that the run met, numbered, and what was there before it.
type files struct {
	byPath map[string]uint32
	list   []fileState
}

type fileState struct {
	cabi.ProgFile
	path    string
	known   bool   // whether it was there before the run has been decided
	changed bool   // by the run: its size says nothing any more
	parted  bool   // written at places
	writer  *group // who did that first
	several bool   // and another process reads or writes there, too
	calls   int64  // that read it
	bytes   int64
	ns      int64
}

// by notes who reads or writes at places.
func (f *fileState) by(g *group, writes bool) {
	switch {
	case f.writer != nil:
		f.several = f.several || f.writer != g
	case writes:
		f.writer = g
	}
}

// someReads are enough to tell how long reads take: the first one may have waited for something else.
const someReads = 16

// read notes a read of so many bytes. What the run has written is in the page cache, so that the reads after it tell little; some are
// counted where there are no others.
func (f *fileState) read(bytes, ns int64) {
	if !f.changed || f.calls < someReads {
		f.calls++
		f.bytes += bytes
		f.ns += ns
	}
}

// cold says whether the file was outside the page cache, as far as reads from it tell.
func (f *fileState) cold() bool {
	return f.calls > 0 && f.ns > 5*(f.calls*2000+f.bytes*3/10)
}

// openFile is an open file description, which several descriptors and processes may share.
type openFile struct {
	file uint32
	some bool   // a file; otherwise a pipe, a socket, or whatever was there before
	gram uint32 // a socket of datagrams, by its number plus 1
	off  int64
}

// fdTable is what a process's descriptors are.
type fdTable struct {
	fd  map[int64]*openFile
	cwd string
}

func newFdTable(cwd string) *fdTable { return &fdTable{fd: map[int64]*openFile{}, cwd: cwd} }

// fork copies the table for a child.
func (t *fdTable) fork() *fdTable {
	n := newFdTable(t.cwd)
	for fd, o := range t.fd {
		n.fd[fd] = o
	}
	return n
}

// number finds or makes the file of a path.
func (f *files) number(p string) uint32 {
	n, ok := f.byPath[p]
	if !ok {
		n = uint32(len(f.list))
		f.byPath[p] = n
		s := fileState{path: p}
		switch {
		case p == "/dev/null" || p == "/dev/tty" || p == "/dev/full":
			s.Flags, s.known = cabi.FileNull, true
		case p == "/dev/urandom" || p == "/dev/random":
			s.Flags, s.known = cabi.FileRandom, true
		case strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/") || strings.HasPrefix(p, "/dev/") && !strings.HasPrefix(p, "/dev/shm/"):
			s.Flags, s.known = cabi.FileZero, true
		case p == "/":
			s.Flags, s.known = cabi.FileExists|cabi.FileDir, true
		}
		f.list = append(f.list, s)
	}
	return n
}

// was notes whether a file was there when the run first met it.
func (f *files) was(n uint32, there bool) {
	s := &f.list[n]
	if !s.known {
		s.known = true
		if there {
			s.Flags |= cabi.FileExists
		}
	}
}

// size notes the size of a file that the run has not changed.
func (f *files) size(n uint32, size int64) {
	if s := &f.list[n]; !s.changed && size > int64(s.Size) {
		s.Size = uint64(size)
	}
}

// write notes that the run changes a file.
func (f *files) write(n uint32) {
	s := &f.list[n]
	s.changed = true
	if s.Flags&cabi.FileExists != 0 {
		s.Flags |= cabi.FileFull
	}
}

// resolve makes a path of an event absolute.
func (t *fdTable) resolve(f *files, dir *openFile, p string) string {
	switch {
	case strings.HasPrefix(p, "/"):
	case dir != nil && dir.some:
		p = f.list[dir.file].path + "/" + p
	default:
		p = t.cwd + "/" + p
	}
	return path.Clean("/" + p)
}

// The flags of open, as traces have them.
const (
	oAccess = 3
	oCreate = 0o100
	oExcl   = 0o200
	oTrunc  = 0o1000
	oAppend = 0o2000
	oSync   = 0o4010000
	oDsync  = 0o10000
	oDirect = 0o40000
	oDir    = 0o200000
	oCloexe = 0o2000000
	oTmp    = 0o20000000

	modeType = 0o170000
	modeDir  = 0o040000
	modeChar = 0o020000
	modeFile = 0o100000
)

// fopenFlags are those of open that a mode of fopen stands for.
func fopenFlags(mode string) int64 {
	var fl int64
	if mode == "" {
		return 0
	}
	plus := strings.Contains(mode, "+")
	switch mode[0] {
	case 'r':
		if plus {
			fl = 2
		}
	case 'w':
		fl = 1 | oCreate | oTrunc
		if plus {
			fl = 2 | oCreate | oTrunc
		}
	case 'a':
		fl = 1 | oCreate | oAppend
		if plus {
			fl = 2 | oCreate | oAppend
		}
	}
	if strings.Contains(mode, "x") {
		fl |= oExcl
	}
	if strings.Contains(mode, "e") {
		fl |= oCloexe
	}
	return fl
}

// text is the field of the record's tail that is text of that kind.
func text(r *trace.Record, kind trace.FieldKind) string {
	for i := range r.Fields {
		if f := &r.Fields[i]; f.Kind == kind {
			return string(f.Text)
		}
	}
	return ""
}

// name is the first or second name that an event is about: of two the first is a string, as a row has one path.
func name(r *trace.Record, o *op, nth int) string {
	if o.named == 2 && nth == 0 {
		return text(r, trace.FieldStr)
	}
	return text(r, trace.FieldPath)
}

// number is the tail's field of that name.
func number(r *trace.Record, name string) int64 {
	for i := range r.Fields {
		if f := &r.Fields[i]; f.Name == name {
			return int64(f.Num)
		}
	}
	return 0
}
