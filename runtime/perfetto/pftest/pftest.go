// Package pftest reads Perfetto traces back, for tests: strictly by the schema, and as Perfetto's trace processor does. It
// sorts by time, nests slices by track and joins flows; what the trace processor would only count as an error is one here.
package pftest

import (
	"slices"
)

// Picture is what a trace shows.
type Picture struct {
	Tracks   map[uint64]*Track
	Slices   []*Slice // by when they begin
	Flows    []Flow
	Counters map[uint64][]Reading // by track
	Mono     uint64               // of the clock snapshot
	Real     uint64
	Packets  int
}

// Track is a track.
type Track struct {
	UUID    uint64
	Parent  *Track
	Name    string
	PID     int64 // of a process or thread
	TID     int64 // of a thread
	Counter bool
	Unit    uint64
}

// Slice is a slice, or an instant: a slice that takes no time.
type Slice struct {
	Track    *Track
	Name     string
	Category string
	Begin    uint64
	End      uint64
	Instant  bool
	In       *Slice // it is nested in
	Args     map[string]any
	Stack    []string
}

// Flow is an arrow.
type Flow struct{ From, To *Slice }

// Reading is a counter's value.
type Reading struct {
	At    uint64
	Value int64
}

type mark struct {
	at    uint64
	track uint64
	kind  uint64
	ev    Message
	name  string
	class string
	args  map[string]any
}

type state struct {
	tables  map[string]map[uint64]string
	used    map[string]map[uint64]bool // numbers ever given
	clock   uint64
	cleared bool
}

var tables = map[string]string{"event_categories": "name", "event_names": "name", "debug_annotation_names": "name", "debug_annotation_string_values": "str"}

// Read decodes and checks a whole trace.
func Read(b []byte) (*Picture, error) {
	p := &Picture{Tracks: map[uint64]*Track{}, Counters: map[uint64][]Reading{}}
	parents := map[uint64]uint64{}
	order := map[uint64]uint64{} // by track: the time of the slice or reading that was read last
	seqs := map[uint64]*state{}
	var marks []mark
	for len(b) > 0 {
		tag, rest, ok := varint(b)
		if !ok || tag != 1<<3|2 {
			return nil, errorf("packet %d: not a packet", p.Packets)
		}
		n, rest, ok := varint(rest)
		if !ok || n > uint64(len(rest)) {
			return nil, errorf("packet %d: is cut short", p.Packets)
		}
		m, err := decode("TracePacket", rest[:n])
		if err != nil {
			return nil, errorf("packet %d: %w", p.Packets, err)
		}
		b = rest[n:]
		had := len(marks)
		if err := p.packet(m, seqs, parents, &marks); err != nil {
			return nil, errorf("packet %d: %w", p.Packets, err)
		}
		for _, k := range marks[had:] {
			if k.kind == 3 {
				continue // an arrow's end may be known late
			}
			if k.at < order[k.track] {
				return nil, errorf("packet %d: on track %q, at %d after %d", p.Packets, p.Tracks[k.track].Name, k.at, order[k.track])
			}
			order[k.track] = k.at
		}
		p.Packets++
	}
	for id, parent := range parents {
		if p.Tracks[parent] == nil {
			return nil, errorf("track %d is below one that is not described", id)
		}
		p.Tracks[id].Parent = p.Tracks[parent]
	}
	if err := p.tree(); err != nil {
		return nil, err
	}
	return p, p.draw(marks)
}

// tree checks that threads lie below their processes, and all else below either.
func (p *Picture) tree() error {
	for id, t := range p.Tracks {
		switch up := t.Parent; {
		case t.PID != 0 && t.TID == 0:
			if up != nil {
				return errorf("process %d is below track %q", t.PID, up.Name)
			}
		case up == nil:
			return errorf("track %d, %q, is below none", id, t.Name)
		case t.TID != 0 || t.Counter:
			if up.PID == 0 || up.TID != 0 || t.TID != 0 && up.PID != t.PID {
				return errorf("track %q is not below its process but %q", t.Name, up.Name)
			}
		case up.TID == 0:
			return errorf("track %q is not below a thread but %q", t.Name, up.Name)
		}
		if t.Name == "" {
			return errorf("track %d has no name", id)
		}
	}
	return nil
}

func (p *Picture) packet(m Message, seqs map[uint64]*state, parents map[uint64]uint64, marks *[]mark) error {
	id := m.U("trusted_packet_sequence_id")
	if id == 0 {
		return errorf("of no sequence")
	}
	s := seqs[id]
	if s == nil {
		if m.U("first_packet_on_sequence") != 1 {
			return errorf("the first one of its sequence does not say so")
		}
		s = &state{used: map[string]map[uint64]bool{}}
		seqs[id] = s
	}
	data := 0
	for _, k := range []string{"clock_snapshot", "track_descriptor", "track_event"} {
		if m.Has(k) {
			data++
		}
	}
	if flags := m.U("sequence_flags"); data > 1 || flags > 3 || flags == 3 || data == 1 && flags&2 == 0 {
		return errorf("%d kinds of data under flags %d", data, flags)
	}
	flags := m.U("sequence_flags")
	if flags&1 != 0 {
		s.cleared, s.tables, s.clock = true, map[string]map[uint64]string{}, 0
	}
	if flags&2 != 0 && !s.cleared {
		return errorf("needs a state that was never begun")
	}
	if d := m.M("trace_packet_defaults"); d != nil {
		s.clock = d.U("timestamp_clock_id")
	}
	if err := s.intern(m.M("interned_data")); err != nil {
		return err
	}
	if m.Has("timestamp") && s.clock != 3 {
		return errorf("time is not CLOCK_MONOTONIC")
	}
	if c := m.M("clock_snapshot"); c != nil {
		for _, x := range c.Many("clocks") {
			switch x := x.(Message); x.U("clock_id") {
			case 1:
				p.Real = x.U("timestamp")
			case 3:
				p.Mono = x.U("timestamp")
			}
		}
		if c.U("primary_trace_clock") != 3 {
			return errorf("the trace's clock is not the one of its times")
		}
	}
	if d := m.M("track_descriptor"); d != nil {
		return p.describe(d, parents)
	}
	ev := m.M("track_event")
	if ev == nil {
		return nil
	}
	if !m.Has("timestamp") || !ev.Has("track_uuid") {
		return errorf("an event without time or track")
	}
	if p.Tracks[ev.U("track_uuid")] == nil {
		return errorf("an event on track %d, which has not been described", ev.U("track_uuid"))
	}
	k := mark{at: m.U("timestamp"), track: ev.U("track_uuid"), kind: ev.U("type"), ev: ev, args: map[string]any{}}
	counter := k.kind == 4
	if counter != ev.Has("counter_value") || counter && (len(ev) != 3) || k.kind == 2 && len(ev) != 2 {
		return errorf("an event of type %d has %v", k.kind, ev)
	}
	if ev.Has("name") && ev.Has("name_iid") || len(ev.Many("category_iids"))+len(ev.Many("categories")) > 1 {
		return errorf("two names, or categories")
	}
	var err error
	if k.name, err = s.text("event_names", ev.U("name_iid")); err != nil {
		return err
	}
	for _, c := range ev.Many("category_iids") {
		if k.class, err = s.text("event_categories", c.(uint64)); err != nil {
			return err
		}
	}
	for _, a := range ev.Many("debug_annotations") {
		a := a.(Message)
		name, err := s.text("debug_annotation_names", a.U("name_iid"))
		if err != nil || name == "" {
			return errorf("an annotation without a name: %v", err)
		}
		var v any
		for key, x := range a {
			switch key {
			case "name_iid":
			case "string_value_iid":
				if v, err = s.text("debug_annotation_string_values", x.(uint64)); err != nil {
					return err
				}
			default:
				if v != nil {
					return errorf("annotation %s has two values", name)
				}
				v = x
			}
		}
		if v == nil {
			return errorf("annotation %s has no value", name)
		}
		k.args[name] = v
	}
	*marks = append(*marks, k)
	return nil
}

func (s *state) intern(d Message) error {
	for table, key := range tables {
		for _, x := range d.Many(table) {
			x := x.(Message)
			id := x.U("iid")
			if id == 0 || s.used[table][id] {
				return errorf("%s: number %d is given twice, or none", table, id)
			}
			if s.tables[table] == nil {
				s.tables[table] = map[uint64]string{}
			}
			if s.used[table] == nil {
				s.used[table] = map[uint64]bool{}
			}
			s.tables[table][id], s.used[table][id] = x.S(key), true
		}
	}
	return nil
}

func (s *state) text(table string, id uint64) (string, error) {
	if id == 0 {
		return "", nil
	}
	t, ok := s.tables[table][id]
	if !ok {
		return "", errorf("%s has no number %d", table, id)
	}
	return t, nil
}

func (p *Picture) describe(d Message, parents map[uint64]uint64) error {
	t := &Track{UUID: d.U("uuid"), Name: d.S("name")}
	if t.UUID == 0 {
		return errorf("a track without a number")
	}
	if was := p.Tracks[t.UUID]; was != nil && was.Name == t.Name {
		return errorf("track %d is described twice", t.UUID)
	}
	if c := d.M("process"); c != nil {
		if t.PID = int64(c.U("pid")); t.PID == 0 {
			return errorf("a process without an id")
		}
	}
	if c := d.M("thread"); c != nil {
		t.PID, t.TID = int64(c.U("pid")), int64(c.U("tid"))
		if t.TID == 0 || t.PID == 0 {
			return errorf("a thread without an id")
		}
	}
	if c := d.M("counter"); c != nil {
		t.Counter, t.Unit = true, c.U("unit")
	}
	p.Tracks[t.UUID] = t
	if d.Has("parent_uuid") {
		parents[t.UUID] = d.U("parent_uuid")
	}
	return nil
}

// draw nests slices and joins flows, in the order of time; packets of the same time stay in theirs.
func (p *Picture) draw(marks []mark) error {
	slices.SortStableFunc(marks, func(a, b mark) int {
		if a.at < b.at {
			return -1
		}
		if a.at > b.at {
			return 1
		}
		return 0
	})
	open := map[uint64][]*Slice{}
	flows, ended := map[uint64]*Slice{}, map[uint64]bool{}
	var stray []uint64
	for i := range marks {
		k := &marks[i]
		track := p.Tracks[k.track]
		if (k.kind == 4) != track.Counter {
			return errorf("an event of type %d on track %q", k.kind, track.Name)
		}
		stack := open[k.track]
		switch k.kind {
		case 1, 3:
			s := &Slice{Track: track, Name: k.name, Category: k.class, Begin: k.at, End: k.at, Instant: k.kind == 3, Args: k.args}
			if s.Name == "" {
				return errorf("a slice without a name")
			}
			if c := k.ev.M("callstack"); c != nil {
				for _, f := range c.Many("frames") {
					s.Stack = append(s.Stack, f.(Message).S("function_name"))
				}
			}
			if len(stack) > 0 {
				s.In = stack[len(stack)-1]
			}
			if k.kind == 1 {
				open[k.track] = append(stack, s)
			}
			p.Slices = append(p.Slices, s)
			for _, f := range k.ev.Many("flow_ids") {
				if flows[f.(uint64)] != nil || ended[f.(uint64)] {
					return errorf("flow %d is begun twice", f)
				}
				flows[f.(uint64)] = s
			}
			for _, f := range k.ev.Many("terminating_flow_ids") {
				from := flows[f.(uint64)]
				if from == nil {
					stray = append(stray, f.(uint64))
					continue
				}
				if from == s || ended[f.(uint64)] {
					return errorf("flow %d ends where it begins, or twice", f)
				}
				ended[f.(uint64)] = true
				p.Flows = append(p.Flows, Flow{from, s})
				delete(flows, f.(uint64))
			}
		case 2:
			if len(stack) == 0 {
				return errorf("track %q: an end of nothing at %d", track.Name, k.at)
			}
			stack[len(stack)-1].End = k.at
			open[k.track] = stack[:len(stack)-1]
		case 4:
			if v := int64(k.ev.U("counter_value")); v < 0 {
				return errorf("track %q: %d of what is counted", track.Name, v)
			}
			p.Counters[k.track] = append(p.Counters[k.track], Reading{k.at, int64(k.ev.U("counter_value"))})
		default:
			return errorf("an event of type %d", k.kind)
		}
	}
	if len(stray) > 0 {
		return errorf("%d flows end that were not begun before, as %d", len(stray), stray[0])
	}
	for id, stack := range open {
		if len(stack) > 0 {
			return errorf("track %q: %s is not ended", p.Tracks[id].Name, stack[len(stack)-1].Name)
		}
	}
	return nil
}
