package issued

import (
	"maps"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// What a file holds that the run itself writes depends on who came first. So in the trace of an issue such files' data are not told:
// who executes it again reads what was really written by then, and what is written is not compared, but for how much and where.

// openers are calls that open a file by its name.
var openers = map[string]bool{"open": true, "openat": true, "creat": true, "fopen": true, "freopen": true, "open_2": true, "openat_2": true}

func plain(name string) string { return strings.TrimSuffix(strings.TrimLeft(name, "_"), "64") }

// opened is which file an event opened, and whether to write to it; "": it did not.
func opened(r *trace.Record) (path string, fd int64, writes bool) {
	if r.Row == nil || r.Ret < 0 || !openers[plain(r.Row.Name)] {
		return "", 0, false
	}
	const accessMode, create = 3, 0o100
	fd, writes = r.Ret, plain(r.Row.Name) == "creat"
	for i := range r.Fields {
		switch f := &r.Fields[i]; {
		case f.Kind == trace.FieldPath:
			path = string(f.Text)
		case f.Kind == trace.FieldStr && r.Row.Ret == trace.RetPtr:
			writes = writes || strings.ContainsAny(string(f.Text), "wa+")
		case f.Name == "fd":
			fd = int64(f.Num)
		}
	}
	if r.Row.Ret == trace.RetPtr {
		return path, fd, writes
	}
	return path, fd, writes || r.F[0]&(accessMode|create) != 0
}

// own tells whether the run may have made what a file of this name holds.
func (h *home) own(path string) bool {
	return h.written[path]
}

// note takes what an event says of files that are written.
func (h *home) note(r *trace.Record) {
	path, _, writes := opened(r)
	if !writes || path == "" {
		return
	}
	for _, p := range []string{"/dev/", "/proc/", "/sys/"} {
		if strings.HasPrefix(path, p) {
			return
		}
	}
	h.written[path] = true
}

// files follows which descriptors of a process lead to files that the run writes.
func (s *space) files(h *home, r *trace.Record) {
	if r.Row == nil || r.Ret < 0 {
		return
	}
	if path, fd, _ := opened(r); path != "" {
		delete(s.fds, fd)
		if h.own(path) {
			s.fds[fd] = true
		}
		return
	}
	switch name := plain(r.Row.Name); {
	case name == "close" || name == "IO_file_close":
		delete(s.fds, r.F[0])
	case strings.HasPrefix(name, "dup") || name == "fcntl" && (r.F[0] == 0 || r.F[0] == 1030):
		delete(s.fds, r.Ret)
		if o, ok := h.objects[r.Obj]; ok && o.kind == cabi.ObjFd && s.fds[int64(int32(o.at))] {
			s.fds[r.Ret] = true
		}
	}
}

// untold tells whether a record is data of such a file.
func (m *maker) untold(l *lane, event, part *trace.Record) bool {
	switch part.Tag {
	case cabi.TagData, cabi.TagHash, cabi.TagBigData:
	default:
		return false
	}
	if event.Row == nil || !event.Row.Reads && !event.Row.Writes {
		return false
	}
	o, ok := m.h.objects[event.Obj]
	return ok && o.kind == cabi.ObjFd && l.space.fds[int64(int32(o.at))]
}

// inherit gives another program in a process, or a child, the descriptors of who was there before.
func (s *space) inherit(from *space) { s.fds = maps.Clone(from.fds) }
