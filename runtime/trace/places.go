package trace

import (
	"errors"
	"io"

	"prophet/cabi"
)

// Place is where the payload of a chunk lies: in which stream file, and at which offset. Base is the stamp at which it begins.
type Place struct {
	File int
	Off  uint64
	Base uint64
	Len  uint32
}

func placeOf(r *chunkRef) Place {
	return Place{int(r.file), uint64(r.off) + cabi.ChunkHeader, r.base, r.len}
}

// Places are the thread's chunks of events and, by their number, its chunks of data, for a reader that maps the stream
// files of a directory itself. A data chunk that is missing has no length.
func (t *Trace) Places(th *Thread) (events, data []Place) {
	for i := range th.chunks {
		events = append(events, placeOf(&th.chunks[i]))
	}
	for i := range t.data {
		if r := &t.data[i]; r.uid == th.UID {
			for uint64(len(data)) < r.seq && len(data) < 1<<24 {
				data = append(data, Place{})
			}
			data = append(data, placeOf(r))
		}
	}
	return events, data
}

// Origin is by what a thread is found again in another run: who made it, and which of its creations it was.
func (th *Thread) Origin() (parent uint32, nth uint64) { return th.parent, th.nth }

// Origin is the same of a process: its parent, the parent's thread, and which of its forks it was.
func (p *Proc) Origin() (parent, uid uint32, nth uint64) { return p.parentNo, p.parentUID, p.nth }

// Ended reports whether this thread ended its process, or made another program of it: whether its records say so, and
// nothing that an exec which failed would go on with follows. It reads backwards, as far as it must.
func (t *Trace) Ended(th *Thread) (bool, error) {
	_, ended, err := t.EndedAt(th)
	return ended, err
}

// EndedAt is Ended, and when, in ticks.
func (t *Trace) EndedAt(th *Thread) (at uint64, ended bool, err error) {
	later := false
	for i := len(th.chunks) - 1; i >= 0; i-- {
		it := Iter{t: t, th: th, next: i, seq: th.chunks[i].seq}
		var r Record
		how, found, after := uint64(0), false, false
		for it.next <= i+1 {
			err := it.Next(&r)
			var bad *Damage
			if errors.Is(err, io.EOF) || errors.As(err, &bad) || it.next > i+1 {
				break
			}
			if err != nil {
				return 0, false, err
			}
			switch r.Tag {
			case cabi.TagExit:
				how, at, found, after = r.Nums[0], r.Begin, true, false
			case TagEvent:
				after = true
			}
		}
		if found {
			return at, how != cabi.ExitExec || !after && !later, nil
		}
		later = later || after
	}
	return 0, false, nil
}
