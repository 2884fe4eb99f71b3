package report

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Timeline is what is drawn of the run. Every thread that has a lane has the shares of its time by group, in Bins steps
// of the whole run, and of all lanes together the longest calls, as many as Options.Slices. So any stretch can be drawn
// from either: a wide one from shares (whoever draws makes coarser levels of them), a narrow one from the calls.
type Timeline struct {
	NS       int64    `json:"duration_ns"`
	Bins     int      `json:"bins"`
	Lanes    []Lane   `json:"lanes"`
	Slices   int      `json:"slices"`    // calls that are kept
	All      uint64   `json:"all"`       // calls that took time
	ShortNS  int64    `json:"short_ns"`  // where not all are kept: calls of the lanes shorter than this are not
	Overview int      `json:"overview"`  // steps of the overview and the counters
	Counters []string `json:"counters"`  // what the counters are
	Names    []string `json:"names"`     // of calls, as slices name them
	GroupsOf []int    `json:"groups_of"` // the group of each of Names
	Labels   []string `json:"labels"`    // of files, connections and locks; the first is none

	// Data is what Lanes and Overview count, little-endian: for each lane, for each group, a byte a bin (255: all of it);
	// then four bytes a step (float32) for each group, how many threads were at it on average, and for each counter; then
	// for each lane its calls in the order of their beginnings, as varints by column: ns since the beginning of the one
	// before, ns it took, name, label.
	Data []byte `json:"-"`
}

// Lane is a thread's part of the timeline.
type Lane struct {
	Name   string `json:"name"`
	Proc   string `json:"process"`
	Start  int64  `json:"start_ns"`
	NS     int64  `json:"duration_ns"`
	Slices int    `json:"slices"`
	All    uint64 `json:"all"`
	Open   bool   `json:"unfinished,omitempty"` // as Thread.Open
}

// slice is a call of the timeline while it is collected.
type slice struct {
	begin, ticks uint64
	lane         int32
	label        uint32
	name         uint16
	group        Group
}

// picker keeps the longest of the slices that it is given.
type picker struct {
	most int
	list []slice
	min  uint64 // shorter ones have been dropped
}

// longer orders slices: the longest first, and any two apart, so that what is kept depends on nothing else.
func longer(a, b slice) int {
	return cmp.Or(cmp.Compare(b.ticks, a.ticks), cmp.Compare(a.begin, b.begin), cmp.Compare(a.lane, b.lane), cmp.Compare(a.name, b.name))
}

func (p *picker) add(s slice) {
	if s.ticks < p.min {
		return
	}
	p.list = append(p.list, s)
	if len(p.list) >= 2*p.most+1024 {
		p.cut()
	}
}

func (p *picker) cut() {
	if len(p.list) <= p.most {
		return
	}
	slices.SortFunc(p.list, longer)
	p.min = p.list[p.most].ticks
	p.list = p.list[:p.most]
}

// binsFor is how many bins each of so many lanes has: a power of two, so that levels above are made by halving.
func binsFor(lanes int) int {
	const budget, least, most = 1 << 18, 128, 1 << 13
	n := most
	for n > least && n*lanes > budget {
		n /= 2
	}
	return n
}

// overviewSteps is how fine the overview of all threads is.
const overviewSteps = 1024

var counterNames = []string{"events", "resident_bytes", "bytes_in", "bytes_out"}

const (
	countEvents = iota
	countResident
	countIn
	countOut
	counters
)

// spread adds the ticks from one stamp to another to the bins that they fall into.
func spread(bins []uint64, from, to, width uint64) {
	if to <= from || len(bins) == 0 {
		return
	}
	i := from / width
	for i < uint64(len(bins)) && from < to {
		next := min((i+1)*width, to)
		bins[i] += next - from
		from = next
		i++
	}
}

// share is ticks of width as a byte; what is there at all is not 0.
func share(ticks, width uint64) byte {
	if ticks == 0 {
		return 0
	}
	return byte(max(1, min(255, (ticks*255+width/2)/width)))
}

// encode makes Data. Times of slices become ns by ns.
func (c *collector) encode() *Timeline {
	c.pick.cut()
	list := c.pick.list
	t := &Timeline{NS: c.ns(c.end - c.start), Bins: c.bins, Slices: len(list), Overview: overviewSteps, Counters: counterNames,
		Lanes: []Lane{}, Names: []string{}, GroupsOf: []int{}, Labels: []string{""}}
	slices.SortFunc(list, func(a, b slice) int {
		return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.begin, b.begin), cmp.Compare(a.ticks, b.ticks))
	})
	var data []byte
	row := make([]byte, c.bins)
	for i := range c.lanes {
		l := &c.lanes[i]
		t.Lanes = append(t.Lanes, Lane{Name: c.threadName(l.th), Proc: clean(l.th.th.Proc.Name), Start: c.since(l.th.first), NS: c.ns(l.th.end - l.th.first), All: l.all, Open: l.th.open})
		t.All += l.all
		var life []uint64
		for g := Group(0); g < groups; g++ {
			clear(row)
			if g == Compute {
				life = make([]uint64, c.bins)
				spread(life, c.offset(l.th.first), c.offset(l.th.end), c.width)
			}
			for b := range row {
				if g == Compute {
					var busy uint64
					for o := Compute + 1; o < groups; o++ {
						busy += l.time[int(o)*c.bins+b]
					}
					row[b] = share(life[b]-min(busy, life[b]), c.width)
				} else {
					row[b] = share(l.time[int(g)*c.bins+b], c.width)
				}
			}
			data = append(data, row...)
		}
	}
	data = c.encodeOverview(data)
	names, labels := map[uint16]uint64{}, map[uint32]uint64{0: 0}
	for from := 0; from < len(list); {
		to := from
		for to < len(list) && list[to].lane == list[from].lane {
			to++
		}
		part := list[from:to]
		t.Lanes[part[0].lane].Slices = len(part)
		at := c.start
		for i := range part {
			data = binary.AppendUvarint(data, uint64(c.ns(part[i].begin-min(at, part[i].begin))))
			at = part[i].begin
		}
		for i := range part {
			data = binary.AppendUvarint(data, uint64(c.ns(part[i].ticks)))
		}
		for i := range part {
			n, ok := names[part[i].name]
			if !ok {
				n = uint64(len(t.Names))
				names[part[i].name] = n
				s := &c.stats[part[i].name]
				t.Names = append(t.Names, s.title())
				t.GroupsOf = append(t.GroupsOf, int(part[i].group))
			}
			data = binary.AppendUvarint(data, n)
		}
		for i := range part {
			n, ok := labels[part[i].label]
			if !ok {
				n = uint64(len(t.Labels))
				labels[part[i].label] = n
				t.Labels = append(t.Labels, clean(c.labels[part[i].label]))
			}
			data = binary.AppendUvarint(data, n)
		}
		from = to
	}
	if uint64(t.Slices) < t.All {
		t.ShortNS = c.ns(c.pick.min)
	}
	t.Data = data
	return t
}

// encodeOverview appends how many threads were at each group, and the counters.
func (c *collector) encodeOverview(data []byte) []byte {
	put := func(v float64) { data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v))) }
	life := make([]uint64, overviewSteps)
	for _, th := range c.order {
		if th.end > th.first {
			spread(life, c.offset(th.first), c.offset(th.end), c.wide)
		}
	}
	for g := Group(0); g < groups; g++ {
		for i := range overviewSteps {
			v := c.over[int(g)*overviewSteps+i]
			if g == Compute {
				var busy uint64
				for o := Compute + 1; o < groups; o++ {
					busy += c.over[int(o)*overviewSteps+i]
				}
				v = life[i] - min(busy, life[i])
			}
			put(float64(v) / float64(c.wide))
		}
	}
	var was uint64
	for i := range overviewSteps { // memory stays as it was until somebody tells otherwise
		if v := c.count[countResident*overviewSteps+i]; v > 0 {
			was = v
		}
		c.count[countResident*overviewSteps+i] = was
	}
	step := float64(c.ns(c.wide)) / 1e9
	for k := range counters {
		for i := range overviewSteps {
			v := float64(c.count[k*overviewSteps+i])
			if k != countResident && step > 0 {
				v /= step // a second
			}
			put(v)
		}
	}
	return data
}
