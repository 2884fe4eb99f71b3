package trace

import (
	"container/heap"
	"fmt"
	"io"
	"slices"

	"prophet/cabi"
)

// Iter reads the records of one thread in the thread's own order. It is not safe for concurrent use.
type Iter struct {
	t    *Trace
	th   *Thread
	next int    // chunk to read next
	n    uint64 // events read
	d    Decoder
	buf  []byte
	gap  bool
	seq  uint64
	on   bool
}

// Iter starts at the thread's first record.
func (t *Trace) Iter(th *Thread) *Iter { return &Iter{t: t, th: th} }

// IterAt starts at a chunk of the thread, of which the chunks before have so many events.
func (t *Trace) IterAt(th *Thread, chunk int, events uint64) *Iter {
	it := &Iter{t: t, th: th, next: chunk, n: events}
	if chunk < len(th.chunks) {
		it.seq = th.chunks[chunk].seq
	}
	return it
}

// Chunk is the number of the chunk, in the thread's order, that the last record came from.
func (it *Iter) Chunk() int { return it.next - 1 }

// Next reads the next record into r: io.EOF at the end; after a *Damage reading may go on, behind it.
func (it *Iter) Next(r *Record) error {
	for {
		if it.on {
			ok := it.d.Next(r)
			it.n += it.d.passed
			it.d.passed = 0
			if r.N = it.n; ok {
				r.Thread = it.th
				if r.Tag == TagEvent {
					it.n++
				}
				return nil
			}
			it.on = false
			if why := it.d.Err(); why != "" {
				return it.t.damage(&it.th.chunks[it.next-1], r.Offset, why)
			}
		}
		if err := it.load(); err != nil {
			return err
		}
	}
}

// load opens the next chunk.
func (it *Iter) load() error {
	if it.next >= len(it.th.chunks) {
		it.buf = nil
		return io.EOF
	}
	ref := &it.th.chunks[it.next]
	if want := it.seq; ref.seq != want && !it.gap && !it.th.loose && it.t.Meta.Options.Flight == 0 {
		it.gap = true
		return it.t.damage(ref, -cabi.ChunkHeader, fmt.Sprintf("chunks %d to %d of thread %s are missing before this one", want, ref.seq-1, it.th.Name))
	}
	it.gap = false
	it.seq = ref.seq + 1
	it.next++
	b, err := it.t.src.load(ref, it.buf)
	if err != nil {
		return err
	}
	it.buf = b
	it.d.reset(b, int(ref.len), ref.base)
	it.on = true
	return nil
}

// damage places a reason found at an offset in a payload.
func (t *Trace) damage(ref *chunkRef, at int, why string) error {
	switch ref.file {
	case fileMem:
		return &Damage{fmt.Sprintf("ring of thread %d", ref.uid), int64(at), why}
	case filePacked:
		return &Damage{t.Path, ref.off, fmt.Sprintf("chunk %d of the frame, byte %d: %s", ref.at, at, why)}
	}
	return &Damage{streamName(int(ref.file)), ref.off + cabi.ChunkHeader + int64(at), why}
}

// Merge reads the records of many threads by the time they begin. Records of input data stay right behind their
// event. A thread's buffer exists only from its first to its last chunk. Not safe for concurrent use.
type Merge struct {
	t    *Trace
	heap mergeHeap
	last *lane
}

type lane struct {
	it Iter
	r  Record
	at uint64 // begin of r, or of the first chunk while nothing is loaded
	ok bool   // r is loaded
}

type mergeHeap []*lane

func (h mergeHeap) Len() int { return len(h) }
func (h mergeHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].it.th.UID < h[j].it.th.UID
}
func (h mergeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *mergeHeap) Push(x any)   { *h = append(*h, x.(*lane)) }
func (h *mergeHeap) Pop() any {
	o := *h
	x := o[len(o)-1]
	*h = o[:len(o)-1]
	return x
}

// Merge starts at the first record of these threads; all threads when none is named.
func (t *Trace) Merge(threads ...*Thread) *Merge {
	if len(threads) == 0 {
		threads = t.Threads
		if t.Run != nil {
			threads = append(slices.Clone(threads), t.Run)
		}
	}
	m := &Merge{t: t}
	for _, th := range threads {
		m.heap = append(m.heap, &lane{it: Iter{t: t, th: th}, at: th.First})
	}
	heap.Init(&m.heap)
	return m
}

// Next returns the next record, valid until the call after; errors as Iter.Next.
func (m *Merge) Next() (*Record, error) {
	for {
		if m.last != nil {
			l := m.last
			was := l.at
			err := l.it.Next(&l.r)
			if err == io.EOF {
				m.last = nil
				m.drop(l)
			} else if err != nil {
				return nil, err // the lane stays on top and goes on next time
			} else {
				l.ok = true
				l.at = l.r.Begin
				if l.r.Attached() {
					l.at = was
					return &l.r, nil
				}
				m.last = nil
				if l.at != was {
					m.sift(l)
				}
			}
		}
		if len(m.heap) == 0 {
			return nil, io.EOF
		}
		l := m.heap[0]
		m.last = l
		if l.ok {
			l.ok = false
			return &l.r, nil
		}
	}
}

// sift puts the top lane where its time belongs.
func (m *Merge) sift(*lane) { m.heap.down() }

func (m *Merge) drop(*lane) {
	n := len(m.heap) - 1
	m.heap[0] = m.heap[n]
	m.heap[n] = nil
	m.heap = m.heap[:n]
	m.heap.down()
}

// down restores the heap after its top has changed.
func (h mergeHeap) down() {
	i := 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h.Less(c+1, c) {
			c++
		}
		if !h.Less(c, i) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// CountEvents is how many events a payload holds, and the call and end of the last one.
func CountEvents(payload []byte, base uint64) (n uint64, last uint16, end uint64) {
	var d Decoder
	var r Record
	d.Reset(payload, base)
	for d.Next(&r) {
		if r.Tag == TagEvent {
			n, last, end = n+1, r.Call, r.End
		}
	}
	return n, last, end
}

// EventsBetween is how many events the thread's chunks from one number to before another hold. Chunks that cannot be
// read count nothing.
func (t *Trace) EventsBetween(th *Thread, from, to uint64) uint64 {
	var n uint64
	var buf []byte
	for i := range th.chunks {
		ref := &th.chunks[i]
		if ref.seq < from || ref.seq >= to || ref.file == fileMem {
			continue
		}
		b, err := t.src.load(ref, buf)
		if err != nil {
			continue
		}
		buf = b
		k, _, _ := CountEvents(b[:ref.len], ref.base)
		n += k
	}
	return n
}
