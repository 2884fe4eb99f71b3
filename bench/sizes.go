package main

import (
	"os"
	"runtime"

	"prophet/runtime/summary"
	"prophet/runtime/trace"
)

// sizes is how large traces are, input data and hashes apart.
type sizes struct {
	events, lost uint64
	bytes        int64
	packed       int64
	packedEvents uint64 // of the trace that was packed
}

func (z *sizes) written() float64    { return float64(z.bytes) / float64(max(z.events, 1)) }
func (z *sizes) packedEach() float64 { return float64(z.packed) / float64(max(z.packedEvents, 1)) }

func (z *sizes) plus(o sizes) {
	z.events += o.events
	z.lost += o.lost
	z.bytes += o.bytes
	z.packed += o.packed
	z.packedEvents += o.packedEvents
}

// sizes reads and packs a trace. What is packed holds hashes too, which compress as they will: for events alone, take
// packed of a trace that was recorded without inputs.
func (b *bench) sizes(path string) (sizes, error) {
	t, err := trace.Open(path)
	if err != nil {
		return sizes{}, err
	}
	defer t.Close()
	s, err := summary.Of(t, runtime.GOMAXPROCS(0), nil)
	if err != nil {
		return sizes{}, err
	}
	if s.Damaged > 0 {
		return sizes{}, s.Damage[0]
	}
	file := path + ".packed"
	res, err := t.Pack(file, runtime.GOMAXPROCS(0), nil)
	if err != nil {
		return sizes{}, err
	}
	os.Remove(file)
	z := sizes{events: s.Events, bytes: s.Bytes, packed: res.Records, packedEvents: s.Events}
	for _, l := range s.Lost {
		z.lost += l.N
	}
	return z, nil
}
