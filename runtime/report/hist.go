package report

import "math/bits"

// Hist counts durations in buckets whose width grows with them: 16 an octave, so that a bucket is at most 6% wide. The
// zero value is ready.
type Hist struct {
	N      uint64
	Sum    uint64 // ns
	Min    uint64
	Max    uint64
	counts []uint64
}

const (
	subBits = 4
	subs    = 1 << subBits
	// HistBuckets is how many buckets there are: up to 2^44 ns, five hours; the last one takes what is longer.
	HistBuckets = subs * (44 - subBits + 1)
)

// bucketOf is the bucket of a duration.
func bucketOf(ns uint64) int {
	if ns < subs {
		return int(ns)
	}
	e := bits.Len64(ns) - 1 - subBits
	return min(subs*(e+1)+int(ns>>e)-subs, HistBuckets-1)
}

// bucketLow is the shortest duration of a bucket; that of the next one is where it ends.
func bucketLow(i int) uint64 {
	if i < subs {
		return uint64(i)
	}
	e := i/subs - 1
	return uint64(subs+i%subs) << e
}

// Add counts one duration.
func (h *Hist) Add(ns uint64) {
	i := bucketOf(ns)
	if i >= len(h.counts) {
		h.counts = append(h.counts, make([]uint64, i+1-len(h.counts))...)
	}
	h.counts[i]++
	if h.N == 0 || ns < h.Min {
		h.Min = ns
	}
	h.N++
	h.Sum += ns
	h.Max = max(h.Max, ns)
}

// Merge adds another's counts.
func (h *Hist) Merge(o *Hist) {
	if o == nil || o.N == 0 {
		return
	}
	if len(o.counts) > len(h.counts) {
		h.counts = append(h.counts, make([]uint64, len(o.counts)-len(h.counts))...)
	}
	for i, n := range o.counts {
		h.counts[i] += n
	}
	if h.N == 0 || o.Min < h.Min {
		h.Min = o.Min
	}
	h.N += o.N
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
}

// Quantile is the duration that a share q of all is not longer than, as exact as the buckets are.
func (h *Hist) Quantile(q float64) uint64 {
	if h.N == 0 {
		return 0
	}
	want := min(max(1, uint64(q*float64(h.N)+0.5)), h.N)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= want {
			mid := (bucketLow(i) + bucketLow(i+1)) / 2
			if bucketLow(i+1)-bucketLow(i) <= 1 {
				mid = bucketLow(i)
			}
			return min(max(mid, h.Min), h.Max)
		}
	}
	return h.Max
}

// Buckets are the buckets that hold something, from short to long.
func (h *Hist) Buckets() []Bucket {
	var out []Bucket
	for i, n := range h.counts {
		if n > 0 {
			out = append(out, Bucket{bucketLow(i), bucketLow(i + 1), n})
		}
	}
	return out
}

// Bucket is how many durations were at least From and below To ns.
type Bucket struct {
	From uint64 `json:"from_ns"`
	To   uint64 `json:"to_ns"`
	N    uint64 `json:"count"`
}
