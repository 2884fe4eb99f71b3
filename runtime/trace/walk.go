package trace

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"prophet/cabi"
)

// Visit is called with each record of a thread, in its order. Different threads may be visited at once.
type Visit func(r *Record) error

// Visitor makes the Visit of one thread. It is called from several goroutines.
type Visitor func(th *Thread) Visit

// Progress is told how many of how many bytes of records are done, now and then, from several goroutines.
type Progress func(done, all int64)

// WalkResult is what Walk counts by itself.
type WalkResult struct {
	Events  uint64
	Records uint64
	Bytes   int64 // of chunks read whole
	Damage  []error
	Damaged int // how many there were; Damage keeps the first
}

// Walk reads every record of these threads (all, when none), each thread in its own order, on up to workers
// goroutines. Damage is collected and reading goes on; an error of visit or of the file ends it.
func (t *Trace) Walk(workers int, visit Visitor, prog Progress, threads ...*Thread) (*WalkResult, error) {
	return t.walk(0, workers, visit, nil, prog, threads)
}

// WalkDone is Walk, and calls done for each thread that has been read, from the goroutine that read it.
func (t *Trace) WalkDone(workers int, visit Visitor, done func(th *Thread), prog Progress) (*WalkResult, error) {
	return t.walk(0, workers, visit, done, prog, nil)
}

// WalkOnly is Walk without events of other classes, where those have no text: it is several times as fast.
func (t *Trace) WalkOnly(only cabi.ClassSet, workers int, visit Visitor, threads ...*Thread) (*WalkResult, error) {
	return t.walk(only, workers, visit, nil, nil, threads)
}

func (t *Trace) walk(only cabi.ClassSet, workers int, visit Visitor, read func(th *Thread), prog Progress, threads []*Thread) (*WalkResult, error) {
	if len(threads) == 0 {
		threads = t.Threads
	}
	var (
		mu   sync.Mutex
		res  WalkResult
		ferr error
		next atomic.Int64
		done atomic.Int64
		wg   sync.WaitGroup
		all  int64
	)
	for _, th := range threads {
		all += th.Bytes
	}
	one := func(buf []byte) []byte {
		i := next.Add(1) - 1
		if i >= int64(len(threads)) {
			return buf
		}
		th := threads[i]
		it := Iter{t: t, th: th, buf: buf}
		it.d.only = only
		var v Visit
		if visit != nil {
			v = visit(th)
		}
		var r Record
		var records uint64
		var bytes int64
		var bad []error
		n, at := 0, 0
		for {
			err := it.Next(&r)
			if it.next != at {
				at = it.next
				c := int64(th.chunks[at-1].len) + cabi.ChunkHeader
				bytes += c
				if d := done.Add(c); prog != nil {
					prog(d, all)
				}
			}
			if err == nil {
				records++
				if v == nil {
					continue
				}
				if err = v(&r); err == nil {
					continue
				}
			}
			if err == io.EOF {
				break
			}
			if IsDamage(err) {
				if n++; n <= maxDamage {
					bad = append(bad, err)
				}
				continue
			}
			mu.Lock()
			if ferr == nil {
				ferr = err
			}
			mu.Unlock()
			next.Store(int64(len(threads)))
			break
		}
		if read != nil {
			read(th)
		}
		mu.Lock()
		defer mu.Unlock()
		res.Events += it.n
		res.Records += records
		res.Bytes += bytes
		res.Damaged += n
		res.Damage = append(res.Damage, bad[:min(len(bad), max(0, maxDamage-len(res.Damage)))]...)
		return it.buf
	}
	for range max(1, min(workers, len(threads))) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var buf []byte
			for next.Load() < int64(len(threads)) {
				buf = one(buf)
			}
		}()
	}
	wg.Wait()
	return &res, ferr
}

// Verify reads everything: headers, checksums, each record, each input, each data chunk, and that a thread's records
// agree with themselves. Damage found while opening is in the result too.
func (t *Trace) Verify(workers int, prog Progress) (*WalkResult, error) {
	res, err := t.Walk(workers, func(th *Thread) Visit {
		var fields []Field
		return func(r *Record) error {
			switch r.Tag {
			case cabi.TagInput:
				var ok bool
				if fields, ok = ParseInput(fields, r.Row, int(min(r.Nums[0], 1<<20)), r.Text[0]); !ok {
					return &Damage{"thread " + th.Name, int64(r.N), "structured result of event " + fmt.Sprint(r.N-1) + " (" + r.Row.Name + ") does not parse"}
				}
			case cabi.TagBigData:
				if !t.hasData(th.UID, r.Nums[0]) {
					return &Damage{"thread " + th.Name, int64(r.N), fmt.Sprintf("data chunk %d of event %d is missing", r.Nums[0], r.N-1)}
				}
			}
			return nil
		}
	}, prog)
	if err != nil {
		return res, err
	}
	var buf []byte
	for _, part := range [][]chunkRef{t.data, t.control} {
		for i := range part {
			b, err := t.src.load(&part[i], buf)
			if err != nil && !IsDamage(err) {
				return res, err
			}
			if buf = b; err != nil {
				res.add(err)
			}
		}
	}
	if p, ok := t.src.(*packedSource); ok {
		if err := p.verifyKept(res.add); err != nil {
			return res, err
		}
	}
	for _, e := range t.Damage {
		res.add(e)
	}
	return res, nil
}

func (w *WalkResult) add(err error) {
	w.Damaged++
	if len(w.Damage) < maxDamage {
		w.Damage = append(w.Damage, err)
	}
}

func (t *Trace) hasData(uid uint32, seq uint64) bool {
	return t.findData(uid, seq) != nil
}
