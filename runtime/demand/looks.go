package demand

import (
	"prophet/cabi"
	"prophet/runtime/trace"
)

// Processes that share a file look whether others have written there since they looked last, and go on otherwise then. The call
// returns the same, so that is a result of its own: looks works it out of home's reads and writes at places of files, and
// replayd/issue/seen.c of the issue's.
type looks struct {
	versions map[filePart]uint32
	found    places[look]
	count    int
}

// filePart is a piece of a file.
type filePart struct {
	run  uint32 // whose: its first process
	file uint32
	part int64
}

// look is a read at a place of a file.
type look struct {
	file    uint32
	version uint32 // how often that place has been written
	known   bool   // the process has read there before
	moved   bool   // and others have written there since
}

const (
	partSize  = 4096
	partSpan  = 16      // of a call, whose parts are looked at
	partsSeen = 1 << 14 // that a process remembers
	partsMax  = 1 << 20 // that have versions
	looksMax  = 1 << 20 // that are kept: reads after them have no such result
)

func parts(at, bytes int64) (first, n int64) {
	first = at / partSize
	return first, min((at+bytes-1)/partSize-first+1, partSpan)
}

// wrote notes that a process has written bytes at a place.
func (l *looks) wrote(g *group, file uint32, at, bytes int64) {
	if at < 0 || bytes <= 0 {
		return
	}
	first, n := parts(at, bytes)
	for i := range n {
		p := filePart{g.root.n, file, first + i}
		v := l.versions[p] + 1
		if v == 1 && len(l.versions) >= partsMax {
			return
		}
		l.versions[p] = v
		g.look(p, v)
	}
}

// read notes that a process has read bytes at a place.
func (l *looks) read(g *group, file uint32, at, bytes int64, where place) {
	if at < 0 || bytes <= 0 {
		return
	}
	k := look{file: file}
	first, n := parts(at, bytes)
	for i := range n {
		p := filePart{g.root.n, file, first + i}
		v := l.versions[p]
		was, ok := g.look(p, v)
		k.version += v
		k.known, k.moved = k.known || ok, k.moved || ok && was != v
	}
	if l.count < looksMax {
		l.count++
		l.found.add(where, k)
	}
}

// look is which version of a part the process knew, and knows from now on.
func (g *group) look(p filePart, now uint32) (was uint32, known bool) {
	was, known = g.seen[p]
	if known || len(g.seen) < partsSeen {
		if g.seen == nil {
			g.seen = map[filePart]uint32{}
		}
		g.seen[p] = now
	}
	return was, known
}

// looked makes a choice of a read of a file that is written at places, by a process that had read there before, or of what several
// processes share: what one reads there first hangs on how often others have been there, too.
func (e *emitter) looked(stream *trace.Thread, r *trace.Record, p *pending) {
	l, ok := e.looks.found.get(p.place)
	if !ok || e.opt.Path != PathFree {
		return
	}
	if f := &e.files.list[l.file]; !f.parted || !l.known && !f.several {
		return
	}
	k := e.site(stream, r)
	k.file, k.part = l.file+1, r.F[1]
	p.Flags |= cabi.OpChoice | cabi.OpState
	p.Site, p.Want = e.siteNumber(k), 0
	if l.moved {
		p.Want = -cabi.ResultMoved
	}
	if e.files.list[l.file].several {
		p.Flags |= cabi.OpVersion
		p.Want -= int64(l.version&cabi.VersionMost) << cabi.ResultBits
	}
}
