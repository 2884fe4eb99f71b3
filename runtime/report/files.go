package report

import (
	"net/netip"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// fdOp is what a call does to the table of descriptors.
type fdOp uint8

const (
	fdNothing fdOp = iota
	fdOpen
	fdOpenStream
	fdMakeSocket
	fdMakePair
	fdMakePipe
	fdMakeEvent
	fdAccept
	fdConnect
	fdBind
	fdDup
	fdFcntl
	fdClose
)

var fdOps = map[string]fdOp{
	"open": fdOpen, "openat": fdOpen, "creat": fdOpen, "shm_open": fdOpen, "memfd_create": fdOpen, "mkstemp": fdOpen, "mkostemp": fdOpen,
	"mkstemps": fdOpen, "mkostemps": fdOpen, "fopen": fdOpenStream, "freopen": fdOpenStream,
	"socket": fdMakeSocket, "socketpair": fdMakePair, "pipe": fdMakePipe, "pipe2": fdMakePipe,
	"eventfd": fdMakeEvent, "timerfd_create": fdMakeEvent, "epoll_create": fdMakeEvent, "epoll_create1": fdMakeEvent, "signalfd": fdMakeEvent,
	"inotify_init": fdMakeEvent, "inotify_init1": fdMakeEvent,
	"accept": fdAccept, "accept4": fdAccept, "connect": fdConnect, "bind": fdBind,
	"dup": fdDup, "dup2": fdDup, "dup3": fdDup, "fcntl": fdFcntl, "close": fdClose,
}

// target is a file or a kind of connection that descriptors were of; what went through is added up here.
type target struct {
	File
	kind  fdKind
	label uint32
}

// proc is a process as far as the stream has been read.
type proc struct {
	fds map[int64]*target
}

// slot is a number of a process.
type slot struct {
	p  *proc
	fd int64
}

// maxTargets bounds how many files and kinds of connections are kept apart, maxFds how many descriptors and objects of
// descriptors are.
const (
	maxTargets = 1 << 15
	maxFds     = 1 << 20
)

// table follows what the descriptors of all processes are.
type table struct {
	procs   map[*trace.Proc]*proc
	slots   map[trace.Object]slot
	targets map[string]*target
	list    []*target
	open    int
	folded  uint64 // targets that found no room
	fields  []trace.Field
	label   func(string) uint32
}

func newTable(label func(string) uint32) *table {
	return &table{procs: map[*trace.Proc]*proc{}, slots: map[trace.Object]slot{}, targets: map[string]*target{}, label: label}
}

// proc returns the state of a process; a new one begins with what its parent has.
func (f *table) proc(p *trace.Proc) *proc {
	if s := f.procs[p]; s != nil {
		return s
	}
	s := &proc{fds: map[int64]*target{}}
	f.procs[p] = s
	if p.Parent != nil {
		if of := f.procs[p.Parent]; of != nil && f.open+len(of.fds) < maxFds {
			for fd, t := range of.fds {
				s.fds[fd] = t
			}
			f.open += len(s.fds)
		}
	}
	return s
}

// target returns the one of that kind and name.
func (f *table) target(kind fdKind, name string) *target {
	key := fdKindNames[kind] + "\x00" + name
	if t := f.targets[key]; t != nil {
		return t
	}
	if len(f.list) >= maxTargets {
		f.folded++
		name = "others"
		if t := f.targets[fdKindNames[kind]+"\x00others"]; t != nil {
			return t
		}
		key = fdKindNames[kind] + "\x00others"
	}
	t := &target{File: File{Name: name, Kind: fdKindNames[kind]}, kind: kind, label: f.label(name)}
	f.targets[key] = t
	f.list = append(f.list, t)
	return t
}

func (f *table) set(p *proc, fd int64, t *target) {
	if _, ok := p.fds[fd]; !ok {
		if f.open >= maxFds {
			return
		}
		f.open++
	}
	p.fds[fd] = t
}

// object takes the record of an object that is a descriptor's.
func (f *table) object(r *trace.Record) {
	if r.Nums[2] != cabi.ObjFd || r.Nums[0] > 1<<32-1 || len(f.slots) >= maxFds {
		return
	}
	p, fd := f.proc(r.Thread.Proc), int64(r.Nums[3])
	f.slots[trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}] = slot{p, fd}
	if d := string(r.Text[0]); d != "" {
		f.set(p, fd, f.described(d))
	}
}

// described is the target that an object's record tells of.
func (f *table) described(d string) *target {
	switch {
	case strings.HasPrefix(d, "/dev/pts/"), d == "/dev/tty":
		return f.target(fdPipe, d)
	case strings.HasPrefix(d, "/"):
		return f.target(fdFile, d)
	case strings.HasPrefix(d, "pipe"):
		return f.target(fdPipe, "pipes")
	case strings.Contains(d, "socket"):
		return f.target(fdSocket, "sockets")
	case strings.HasPrefix(d, "memfd:"):
		return f.target(fdFile, d)
	}
	return f.target(fdEvent, d)
}

// of is what an object of an event is; nil when that is not known.
func (f *table) of(o trace.Object) *target {
	s, ok := f.slots[o]
	if !ok {
		return nil
	}
	return s.p.fds[s.fd]
}

// event takes the changes that an event makes, and returns a target whose name the structured result behind it will tell.
func (f *table) event(r *trace.Record, does fdOp) {
	if r.Note&cabi.NoteVforked != 0 || r.Ret < 0 && does != fdConnect {
		return
	}
	p := f.proc(r.Thread.Proc)
	switch does {
	case fdOpen:
		f.set(p, r.Ret, f.target(fdFile, pathOf(r)))
	case fdOpenStream:
		if fd, ok := numOf(r, "fd"); ok {
			f.set(p, fd, f.target(fdFile, pathOf(r)))
		}
	case fdMakeSocket:
		f.set(p, r.Ret, f.target(fdSocket, "sockets without a peer"))
	case fdMakePair:
		f.set(p, r.F[0], f.target(fdSocket, "pairs of sockets"))
		f.set(p, r.F[1], f.target(fdSocket, "pairs of sockets"))
	case fdMakePipe:
		f.set(p, r.F[0], f.target(fdPipe, "pipes"))
		f.set(p, r.F[1], f.target(fdPipe, "pipes"))
	case fdMakeEvent:
		name, _, _ := strings.Cut(plainName(r.Row.Name), "_") // epoll_create1 makes an epoll
		f.set(p, r.Ret, f.target(fdEvent, name))
	case fdAccept:
		f.set(p, r.Ret, f.target(fdSocket, "accepted"))
	case fdDup:
		f.copy(p, r)
	case fdFcntl:
		if r.F[0] == 0 || r.F[0] == 1030 { // F_DUPFD, F_DUPFD_CLOEXEC
			f.copy(p, r)
		}
	case fdClose:
		if _, ok := p.fds[r.F[0]]; ok {
			delete(p.fds, r.F[0])
			f.open--
		}
	}
}

func (f *table) copy(p *proc, r *trace.Record) {
	if s, ok := f.slots[r.Obj]; ok {
		if t := s.p.fds[s.fd]; t != nil {
			f.set(p, r.Ret, t)
		}
	}
}

// input takes the structured result of the event before: the ends of a connection.
func (f *table) input(r *trace.Record, does fdOp, ret int64, obj trace.Object) {
	if does != fdAccept && does != fdConnect && does != fdBind {
		return
	}
	f.fields, _ = trace.ParseInput(f.fields, r.Row, int(min(r.Nums[0], 1<<20)), r.Text[0])
	var local, peer, addr string
	for i := range f.fields {
		switch x := &f.fields[i]; x.Name {
		case "local":
			local = string(x.Text)
		case "peer":
			peer = string(x.Text)
		case "addr":
			addr = string(x.Text)
		}
	}
	p := f.proc(r.Thread.Proc)
	switch {
	case does == fdAccept && ret >= 0 && (local != "" || peer != ""):
		t := f.target(fdSocket, "from "+withoutPort(peer)+" to "+local)
		t.Opens++
		f.set(p, ret, t)
	case does == fdConnect && peer != "":
		if s, ok := f.slots[obj]; ok {
			t := f.target(fdSocket, "to "+peer)
			if s.p.fds[s.fd] != t { // a second call asks how the first went on
				t.Opens++
			}
			f.set(s.p, s.fd, t)
		}
	case does == fdBind && addr != "":
		if s, ok := f.slots[obj]; ok {
			f.set(s.p, s.fd, f.target(fdSocket, "at "+addr))
		}
	}
}

// withoutPort is an address without the number that each connection has anew.
func withoutPort(addr string) string {
	if a, err := netip.ParseAddrPort(addr); err == nil {
		return a.Addr().String()
	}
	if addr == "" || addr == "unix:" {
		return "a local socket"
	}
	return addr
}

func pathOf(r *trace.Record) string {
	for i := range r.Fields {
		if r.Fields[i].Kind == trace.FieldPath {
			return string(r.Fields[i].Text)
		}
	}
	return ""
}

func numOf(r *trace.Record, name string) (int64, bool) {
	for i := range r.Fields {
		if r.Fields[i].Name == name && r.Fields[i].Kind == trace.FieldNum {
			return int64(r.Fields[i].Num), true
		}
	}
	if r.Row != nil {
		for i, n := range r.Row.F {
			if n == name {
				return r.F[i], true
			}
		}
	}
	return 0, false
}

// took adds an event's bytes and time to its target.
func (t *target) took(r *trace.Record, in *callInfo, ns uint64) {
	t.Calls++
	t.NS += int64(ns)
	switch in.moves {
	case moveIn, moveBoth:
		t.Reads++
		if r.Ret > 0 {
			t.Read += uint64(r.Ret)
		}
	case moveOut:
		t.Writes++
		if r.Ret > 0 {
			t.Written += uint64(r.Ret)
		}
	case moveSync:
		t.Syncs++
		t.SyncNS += int64(ns)
	}
	if in.does == fdOpen || in.does == fdOpenStream {
		t.Opens++
	}
	t.MaxNS = max(t.MaxNS, int64(ns))
}
