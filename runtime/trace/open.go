package trace

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"prophet/cabi"
)

// Trace is an open trace. It may be used by many goroutines at once.
type Trace struct {
	Path    string
	Packed  bool
	Meta    *Meta
	Clock   Clock
	Procs   []*Proc   // by number
	Threads []*Thread // by UID
	Run     *Thread   // records that belong to the run (changes of level), as if a thread's; nil when there are none
	Damage  []error   // found while opening: meta.json, headers

	src     source
	byUID   map[uint32]*Thread
	procs   map[uint32]*Proc
	data    []chunkRef // ChunkData, by thread and number
	control []chunkRef
	points  []ClockPoint
	looked  bool // all modules have been read of
}

// ErrNoTrace says that the path is no trace at all.
var ErrNoTrace = errors.New("not a trace (a directory NAME.prophet with meta.json, or what `prophet pack` made of one)")

// maxDamage bounds how much damage is kept in memory; the rest is only counted by Verify.
const maxDamage = 1000

// Option changes how a trace is opened.
type Option func(*options)

type options struct {
	mem  []MemChunk
	tick uint64
}

// WithChunks adds chunks that are not in the trace's files yet: what live threads have in their rings.
func WithChunks(c []MemChunk) Option { return func(o *options) { o.mem = c } }

// WithTicksHz is the rate to use where the trace does not tell.
func WithTicksHz(hz uint64) Option { return func(o *options) { o.tick = hz } }

// Open opens a trace, a directory or packed. Damage in it is no error: it is in Trace.Damage.
func Open(path string, opts ...Option) (*Trace, error) {
	var o options
	for _, f := range opts {
		f(&o)
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	t := &Trace{Path: path, procs: map[uint32]*Proc{}, byUID: map[uint32]*Thread{}}
	var refs []chunkRef
	switch {
	case st.IsDir():
		t.Meta, err = readMetaFile(path)
		if err != nil && !IsDamage(err) {
			return nil, err
		}
		if err != nil {
			t.addDamage(err)
		}
		var d *dirSource
		if d, refs, err = openDir(path, t.addDamage); err != nil {
			return nil, err
		}
		if t.Meta == nil && len(refs) == 0 && !anyStream(d) {
			d.close()
			return nil, fmt.Errorf("%s: %w", path, ErrNoTrace)
		}
		d.mem = o.mem
		for i := range o.mem {
			r := refOf(o.mem[i].Header, fileMem, int64(i))
			r.len = uint32(len(o.mem[i].Payload))
			refs = append(refs, r)
		}
		t.src = d
	case st.Mode().IsRegular():
		t.Packed = true
		var p *packedSource
		if p, refs, err = openPacked(path, t); err != nil {
			return nil, err
		}
		t.src = p
	default:
		return nil, fmt.Errorf("%s: %w", path, ErrNoTrace)
	}
	if t.Meta == nil {
		t.Meta = &Meta{}
	}
	t.build(order(refs))
	t.survey(o.tick)
	return t, nil
}

func anyStream(d *dirSource) bool {
	for _, f := range d.files {
		if f != nil {
			return true
		}
	}
	return false
}

// Close releases the files.
func (t *Trace) Close() error { return t.src.close() }

func (t *Trace) addDamage(err error) {
	if len(t.Damage) < maxDamage {
		t.Damage = append(t.Damage, err)
	}
}

// build makes threads of the sorted chunks.
func (t *Trace) build(refs []chunkRef) {
	for i := 0; i < len(refs); {
		r := &refs[i]
		j := i + 1
		for j < len(refs) && refs[j].kind == r.kind && refs[j].uid == r.uid {
			j++
		}
		switch r.kind {
		case cabi.ChunkEvents:
			th := &Thread{UID: r.uid, Proc: t.proc(r.proc), chunks: refs[i:j:j], Chunks: j - i, First: r.base}
			for k := i; k < j; k++ {
				th.Bytes += int64(refs[k].len) + cabi.ChunkHeader
			}
			th.Tail = refs[j-1].flag&cabi.ChunkLast != 0
			if th.Proc.born == 0 || r.base < th.Proc.born {
				th.Proc.born = r.base
			}
			t.Threads = append(t.Threads, th)
			t.byUID[r.uid] = th
		case cabi.ChunkData:
			t.data = append(t.data, refs[i:j]...)
		default:
			t.control = append(t.control, refs[i:j]...)
			slices.SortStableFunc(t.control, func(a, b chunkRef) int { return cmp.Compare(a.base, b.base) })
			t.Run = &Thread{Name: "run", Proc: &Proc{Name: "run"}, chunks: t.control, Chunks: len(t.control), First: t.control[0].base, loose: true}
		}
		i = j
	}
}

// surveyRecords is how far into a thread's first chunk its introduction may reach.
const surveyRecords = 4096

// survey reads what the first chunks say about processes, threads, modules and clocks, and the last ones about the
// clock where meta.json does not know its rate yet.
func (t *Trace) survey(hz uint64) {
	var d Decoder
	var r Record
	var buf []byte
	look := func(th *Thread, ref *chunkRef, most, events int) {
		b, err := t.src.load(ref, buf)
		if err != nil {
			return // whoever reads the thread will be told
		}
		buf = b
		d.reset(b, int(ref.len), ref.base)
		for ; most > 0 && d.Next(&r); most-- {
			if r.Tag != TagEvent {
				t.learn(th, &r)
			} else if events--; events < 0 {
				break
			}
		}
	}
	t0 := uint64(1<<64 - 1)
	for _, th := range t.Threads {
		t0 = min(t0, th.First)
		look(th, &th.chunks[0], surveyRecords, 8)
	}
	if t.Meta.TicksHz != 0 {
		hz = t.Meta.TicksHz
	} else {
		late := slices.Clone(t.Threads)
		slices.SortFunc(late, func(a, b *Thread) int {
			return cmp.Compare(b.chunks[len(b.chunks)-1].base, a.chunks[len(a.chunks)-1].base)
		})
		for i, th := range late {
			if i < 8 || th.UID <= 1 {
				look(th, &th.chunks[len(th.chunks)-1], 1<<30, 1<<30)
			}
		}
		if c := Calibrate(t.points); c != 0 {
			hz = c
		}
	}
	for _, p := range t.points {
		t0 = min(t0, p.Ticks)
	}
	t.Clock = NewClock(t0, hz)
	if p := t.firstPoint(); p != nil {
		t.Clock.Real0 = int64(p.Real) - t.Clock.NS(p.Ticks-t0)
	}
	if t.Clock.Real0 == 0 {
		t.Clock.Real0 = t.Meta.StartNS
	}
	for _, p := range t.procs {
		t.Procs = append(t.Procs, p)
	}
	slices.SortFunc(t.Procs, func(a, b *Proc) int { return cmp.Compare(a.Number, b.Number) })
	t.nameAll()
}

// firstPoint is the earliest reading of the clocks: a thread's first record may be a little before it. nil: there is none.
func (t *Trace) firstPoint() *ClockPoint {
	var first *ClockPoint
	for i := range t.points {
		if p := &t.points[i]; first == nil || p.Ticks < first.Ticks {
			first = p
		}
	}
	return first
}

// ClockPoint is the first reading of the clocks that the trace has.
func (t *Trace) ClockPoint() (p ClockPoint, ok bool) {
	if first := t.firstPoint(); first != nil {
		return *first, true
	}
	return p, false
}

// Mono0 is CLOCK_MONOTONIC at the start of the run, 0 where the trace does not say.
func (t *Trace) Mono0() uint64 {
	p := t.firstPoint()
	if p == nil {
		return 0
	}
	return uint64(max(0, int64(p.Mono)-t.Clock.NS(p.Ticks-t.Clock.Ticks0)))
}

// Calibrated reports whether the rate of the ticks is known.
func (t *Trace) Calibrated() bool {
	return t.Clock.Hz != 1e9 || Calibrate(t.points) != 0 || t.Meta.TicksHz != 0
}

// ThreadByUID returns a thread, or nil.
func (t *Trace) ThreadByUID(uid uint32) *Thread { return t.byUID[uid] }

// ThreadByName returns the thread of that stable name, or nil.
func (t *Trace) ThreadByName(name string) *Thread {
	for _, th := range t.Threads {
		if th.Name == name {
			return th
		}
	}
	return nil
}

func (t *Trace) findData(uid uint32, seq uint64) *chunkRef {
	i, ok := slices.BinarySearchFunc(t.data, chunkRef{uid: uid, seq: seq}, func(a, b chunkRef) int {
		return cmp.Or(cmp.Compare(a.uid, b.uid), cmp.Compare(a.seq, b.seq))
	})
	if !ok {
		return nil
	}
	return &t.data[i]
}

// Data returns the bytes of a data chunk: the input that a TagBigData record of the thread names.
func (t *Trace) Data(uid uint32, seq uint64) ([]byte, error) {
	ref := t.findData(uid, seq)
	if ref == nil {
		return nil, &Damage{"data", 0, fmt.Sprintf("data chunk %d of thread %d is missing", seq, uid)}
	}
	b, err := t.src.load(ref, nil)
	if err != nil {
		return nil, err
	}
	return b[:ref.len], nil
}

// DataBytes is how many bytes of input data lie in chunks of their own.
func (t *Trace) DataBytes() int64 {
	var n int64
	for i := range t.data {
		n += int64(t.data[i].len)
	}
	return n
}

// Chunks is how many chunks the trace has, of all kinds.
func (t *Trace) Chunks() int {
	n := len(t.data) + len(t.control)
	for _, th := range t.Threads {
		n += th.Chunks
	}
	return n
}

// HasChunk reports whether the trace has a chunk of that thread, kind and number that is at least as long.
func (t *Trace) HasChunk(h Header) bool {
	var refs []chunkRef
	switch h.Kind {
	case cabi.ChunkEvents:
		if th := t.byUID[h.UID]; th != nil {
			refs = th.chunks
		}
	case cabi.ChunkData:
		refs = t.data
	}
	i, ok := slices.BinarySearchFunc(refs, h, func(a chunkRef, h Header) int {
		return cmp.Or(cmp.Compare(a.uid, h.UID), cmp.Compare(a.seq, h.Seq))
	})
	return ok && refs[i].len >= h.Len
}

// LastBase is the stamp at which the latest chunk begins.
func (t *Trace) LastBase() uint64 {
	var last uint64
	for _, th := range t.Threads {
		last = max(last, th.chunks[len(th.chunks)-1].base)
	}
	return last
}
