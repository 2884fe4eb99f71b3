package issued

import (
	"container/list"
	"fmt"
	"io"
	"slices"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// unit is an event of home with what stands before it since the event before, what belongs to it, and which descriptors were named
// as it returned them. Of a stream's end there is only what stands before.
type unit struct {
	before []trace.Record
	event  trace.Record
	is     bool
	parts  []trace.Record
	after  []trace.Record
}

// home reads the events of a trace in any order: chunk by chunk, of which it keeps the latest.
type home struct {
	t       *trace.Trace
	threads []homeThread
	places  map[uint32]homePlace // of streams
	objects map[trace.Object]object
	written map[string]bool // names of files that are opened to be written
	loaded  map[chunkKey]*list.Element
	order   list.List
	room    int // units that may still be kept
}

type homePlace struct {
	thread int
	stream int
}

type homeThread struct {
	streams []*homeStream
	total   uint64
}

type homeStream struct {
	th     *trace.Thread
	base   uint64 // units of the streams before
	events uint64
	chunks []homeChunk
}

type homeChunk struct {
	first uint64         // event
	lead  []trace.Record // what belongs to the last event of the chunk before
	trail []trace.Record // what stands before the first event of the next
}

// object is what home says of an object.
type object struct {
	kind   uint64
	at     uint64
	detail string
}

type chunkKey struct {
	uid   uint32
	chunk int
}

type loadedChunk struct {
	key   chunkKey
	units []unit
}

const unitsKept = 1 << 20

// openHome reads the trace once, and notes where its events lie.
func openHome(t *trace.Trace, streams [][]*trace.Thread) (*home, error) {
	h := &home{t: t, places: map[uint32]homePlace{}, objects: map[trace.Object]object{}, written: map[string]bool{},
		loaded: map[chunkKey]*list.Element{}, room: unitsKept}
	for n, streams := range streams {
		var ht homeThread
		for i, th := range streams {
			s := &homeStream{th: th, base: ht.total}
			h.places[th.UID] = homePlace{n, i}
			if err := h.look(s); err != nil {
				return nil, err
			}
			ht.streams = append(ht.streams, s)
			ht.total += s.events + 1
		}
		h.threads = append(h.threads, ht)
	}
	return h, nil
}

func (h *home) look(s *homeStream) error {
	it := h.t.Iter(s.th)
	var r trace.Record
	var lead, trail []trace.Record
	chunk, first := -1, true
	for {
		err := it.Next(&r)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", h.t.Path, err)
		}
		if it.Chunk() != chunk {
			if chunk >= 0 {
				s.chunks[chunk].trail = trail
			}
			chunk, first, lead, trail = it.Chunk(), true, nil, nil
			for len(s.chunks) <= chunk {
				s.chunks = append(s.chunks, homeChunk{first: s.events})
			}
		}
		switch {
		case r.Tag == trace.TagEvent:
			s.events++
			h.note(&r)
			first = false
			trail = nil
		case r.Attached():
			if first && kept(&r) {
				lead = append(lead, clone(&r))
				s.chunks[chunk].lead = lead
			}
		case kept(&r):
			trail = append(trail, clone(&r))
		}
		if r.Tag == cabi.TagObject {
			o := trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}
			if _, ok := h.objects[o]; !ok || o.UID == s.th.UID {
				h.objects[o] = object{r.Nums[2], r.Nums[3], string(r.Text[0])}
			}
		}
	}
	if chunk >= 0 {
		s.chunks[chunk].trail = trail
	}
	return nil
}

// kept tells whether a record is carried over: not those that only serve to read the stream, or tell of the clock or of serial turns.
func kept(r *trace.Record) bool {
	switch r.Tag {
	case cabi.TagKey, cabi.TagTime, cabi.TagFrames, cabi.TagToken, cabi.TagSample, cabi.TagLevel, cabi.TagOurs:
		return false
	}
	return true
}

// clone makes a copy that outlives the reader's next record.
func clone(r *trace.Record) trace.Record {
	c := *r
	if r.Tag == trace.TagEvent {
		c.Tail = slices.Clone(r.Tail)
		if r.Fields != nil {
			c.Fields = make([]trace.Field, len(r.Fields))
			for i, f := range r.Fields {
				f.Text = slices.Clone(f.Text)
				c.Fields[i] = f
			}
		}
		return c
	}
	c.Fields, c.Tail = nil, nil
	c.Text[0], c.Text[1] = slices.Clone(r.Text[0]), slices.Clone(r.Text[1])
	c.Stack = slices.Clone(r.Stack)
	return c
}

// unit gives a thread's unit by its number through all streams.
func (h *home) unit(thread int, n uint64) (*unit, *homeStream, error) {
	ht := &h.threads[thread]
	i, _ := slices.BinarySearchFunc(ht.streams, n, func(s *homeStream, n uint64) int {
		if s.base+s.events < n {
			return -1
		}
		return 1
	})
	if i >= len(ht.streams) {
		return nil, nil, fmt.Errorf("thread %d has no event %d", thread, n)
	}
	s := ht.streams[i]
	n -= s.base
	if n == s.events {
		return &unit{before: s.trail(len(s.chunks) - 1)}, s, nil
	}
	k, _ := slices.BinarySearchFunc(s.chunks, n, func(c homeChunk, n uint64) int {
		if c.first <= n {
			return -1
		}
		return 1
	})
	units, err := h.load(s, k-1)
	if err != nil {
		return nil, nil, err
	}
	if at := n - s.chunks[k-1].first; at < uint64(len(units)) {
		return &units[at], s, nil
	}
	return nil, nil, fmt.Errorf("event %d of thread %s is not where it was", n, s.th.Name)
}

// trail is what stands behind the last event up to the end of a chunk: chunks may have none.
func (s *homeStream) trail(chunk int) (list []trace.Record) {
	for i := chunk; i >= 0; i-- {
		list = append(slices.Clone(s.chunks[i].trail), list...)
		if i+1 < len(s.chunks) && s.chunks[i].first != s.chunks[i+1].first || i+1 == len(s.chunks) && s.chunks[i].first != s.events {
			break
		}
	}
	return list
}

// load gives the units of a chunk.
func (h *home) load(s *homeStream, chunk int) ([]unit, error) {
	key := chunkKey{s.th.UID, chunk}
	if e := h.loaded[key]; e != nil {
		h.order.MoveToFront(e)
		return e.Value.(*loadedChunk).units, nil
	}
	var units []unit
	before := s.trail(chunk - 1)
	it := h.t.IterAt(s.th, chunk, s.chunks[chunk].first)
	var r trace.Record
	for {
		err := it.Next(&r)
		if err == io.EOF || it.Chunk() != chunk {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.t.Path, err)
		}
		last := len(units) - 1
		switch {
		case r.Tag == trace.TagEvent:
			units = append(units, unit{before: before, event: clone(&r), is: true})
			before = nil
		case !kept(&r) || r.Attached() && last < 0:
		case r.Attached():
			units[last].parts = append(units[last].parts, clone(&r))
		case last >= 0 && len(before) == 0 && returned(&units[last].event, &r):
			units[last].after = append(units[last].after, clone(&r))
		default:
			before = append(before, clone(&r))
		}
	}
	if last := len(units) - 1; last >= 0 && chunk+1 < len(s.chunks) {
		units[last].parts = append(units[last].parts, s.chunks[chunk+1].lead...)
	}
	h.loaded[key] = h.order.PushFront(&loadedChunk{key, units})
	h.room -= len(units)
	for h.room < 0 && h.order.Len() > 1 {
		e := h.order.Back()
		old := h.order.Remove(e).(*loadedChunk)
		delete(h.loaded, old.key)
		h.room += len(old.units)
	}
	return units, nil
}

// returned tells whether the record names a descriptor that the event returned.
func returned(e, r *trace.Record) bool {
	if r.Tag != cabi.TagObject || r.Nums[2] != cabi.ObjFd {
		return false
	}
	fd := int64(r.Nums[3])
	if e.Ret == fd || e.F[0] == fd || e.F[1] == fd {
		return true
	}
	for i := range e.Fields {
		if e.Fields[i].Kind == trace.FieldNum && int64(e.Fields[i].Num) == fd {
			return true
		}
	}
	return false
}
