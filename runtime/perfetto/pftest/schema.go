package pftest

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// field is one field of a message: its name, and its type by protobuf's own word or the name of a message.
type field struct {
	name string
	kind string
	many bool
}

// schema is the part of Perfetto's published schema (protos/perfetto/trace/**.proto) that an export may use, field by field as
// it stands there: messages by name, fields by number. What is not here is an error to the reader.
var schema = map[string]map[uint64]field{
	"Trace": {1: {"packet", "TracePacket", true}},
	"TracePacket": {
		6: {"clock_snapshot", "ClockSnapshot", false}, 8: {"timestamp", "uint64", false}, 10: {"trusted_packet_sequence_id", "uint32", false},
		11: {"track_event", "TrackEvent", false}, 12: {"interned_data", "InternedData", false}, 13: {"sequence_flags", "uint32", false},
		58: {"timestamp_clock_id", "uint32", false}, 59: {"trace_packet_defaults", "TracePacketDefaults", false},
		60: {"track_descriptor", "TrackDescriptor", false}, 87: {"first_packet_on_sequence", "bool", false},
	},
	"TracePacketDefaults": {11: {"track_event_defaults", "TrackEventDefaults", false}, 58: {"timestamp_clock_id", "uint32", false}},
	"TrackEventDefaults":  {11: {"track_uuid", "uint64", false}},
	"ClockSnapshot":       {1: {"clocks", "Clock", true}, 2: {"primary_trace_clock", "uint32", false}},
	"Clock":               {1: {"clock_id", "uint32", false}, 2: {"timestamp", "uint64", false}, 3: {"is_incremental", "bool", false}, 4: {"unit_multiplier_ns", "uint64", false}},
	"InternedData": {
		1: {"event_categories", "EventCategory", true}, 2: {"event_names", "EventName", true},
		3: {"debug_annotation_names", "DebugAnnotationName", true}, 29: {"debug_annotation_string_values", "InternedString", true},
	},
	"EventCategory":       {1: {"iid", "uint64", false}, 2: {"name", "string", false}},
	"EventName":           {1: {"iid", "uint64", false}, 2: {"name", "string", false}},
	"DebugAnnotationName": {1: {"iid", "uint64", false}, 2: {"name", "string", false}},
	"InternedString":      {1: {"iid", "uint64", false}, 2: {"str", "string", false}}, // bytes; Perfetto shows them as text
	"TrackDescriptor": {
		1: {"uuid", "uint64", false}, 2: {"name", "string", false}, 3: {"process", "ProcessDescriptor", false}, 4: {"thread", "ThreadDescriptor", false},
		5: {"parent_uuid", "uint64", false}, 8: {"counter", "CounterDescriptor", false},
	},
	"ProcessDescriptor": {1: {"pid", "int32", false}, 2: {"cmdline", "string", true}, 6: {"process_name", "string", false}, 7: {"start_timestamp_ns", "int64", false}},
	"ThreadDescriptor":  {1: {"pid", "int32", false}, 2: {"tid", "int32", false}, 5: {"thread_name", "string", false}},
	"CounterDescriptor": {1: {"type", "uint32", false}, 3: {"unit", "uint32", false}, 4: {"unit_multiplier", "int64", false}, 5: {"is_incremental", "bool", false}},
	"TrackEvent": {
		3: {"category_iids", "uint64", true}, 4: {"debug_annotations", "DebugAnnotation", true}, 9: {"type", "uint32", false}, 10: {"name_iid", "uint64", false},
		11: {"track_uuid", "uint64", false}, 22: {"categories", "string", true}, 23: {"name", "string", false}, 30: {"counter_value", "int64", false},
		47: {"flow_ids", "fixed64", true}, 48: {"terminating_flow_ids", "fixed64", true}, 55: {"callstack", "Callstack", false},
	},
	"Callstack": {1: {"frames", "Frame", true}},
	"Frame":     {1: {"function_name", "string", false}, 2: {"source_file", "string", false}, 3: {"line_number", "uint32", false}},
	"DebugAnnotation": {
		1: {"name_iid", "uint64", false}, 2: {"bool_value", "bool", false}, 3: {"uint_value", "uint64", false}, 4: {"int_value", "int64", false},
		6: {"string_value", "string", false}, 7: {"pointer_value", "uint64", false}, 10: {"name", "string", false}, 17: {"string_value_iid", "uint64", false},
	},
}

// Message is a decoded message: values by the names of their fields. A repeated field's are a []any, numbers uint64 or
// int64, text a string, messages a Message.
type Message map[string]any

// U and S are a field as a number and as text; the zero value when it is not there.
func (m Message) U(name string) uint64 {
	switch v := m[name].(type) {
	case uint64:
		return v
	case int64:
		return uint64(v)
	}
	return 0
}

func (m Message) S(name string) string      { s, _ := m[name].(string); return s }
func (m Message) M(name string) Message     { s, _ := m[name].(Message); return s }
func (m Message) Many(name string) []any    { s, _ := m[name].([]any); return s }
func (m Message) Has(name string) (ok bool) { _, ok = m[name]; return ok }
func errorf(f string, a ...any) error       { return fmt.Errorf(f, a...) }
func varint(b []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(b)
	return v, b[max(n, 0):], n > 0
}

// decode reads a message of that name. Fields that the schema does not have, of a wrong wire type, twice where they may come once,
// or text that is not UTF-8, are errors.
func decode(name string, b []byte) (Message, error) {
	m := Message{}
	for len(b) > 0 {
		tag, rest, ok := varint(b)
		if !ok {
			return nil, errorf("%s: a tag is cut short", name)
		}
		b = rest
		f, known := schema[name][tag>>3]
		if !known {
			return nil, errorf("%s has no field %d", name, tag>>3)
		}
		v, rest, err := value(f.kind, tag&7, b)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", name, f.name, err)
		}
		b = rest
		if f.many {
			list, _ := m[f.name].([]any)
			m[f.name] = append(list, v)
			continue
		}
		if m.Has(f.name) {
			return nil, errorf("%s.%s comes twice", name, f.name)
		}
		m[f.name] = v
	}
	return m, nil
}

func value(kind string, wire uint64, b []byte) (any, []byte, error) {
	want := uint64(0)
	switch kind {
	case "uint64", "uint32", "int64", "int32", "bool":
	case "fixed64":
		want = 1
	default:
		want = 2
	}
	if wire != want {
		return nil, nil, errorf("wire type %d, of %s", wire, kind)
	}
	if want == 1 {
		if len(b) < 8 {
			return nil, nil, errorf("is cut short")
		}
		return binary.LittleEndian.Uint64(b), b[8:], nil
	}
	v, b, ok := varint(b)
	if !ok {
		return nil, nil, errorf("is cut short")
	}
	switch kind {
	case "uint64":
		return v, b, nil
	case "int64":
		return int64(v), b, nil
	case "uint32":
		if v > math.MaxUint32 {
			return nil, nil, errorf("%d is too large", v)
		}
		return v, b, nil
	case "int32":
		if int64(v) > math.MaxInt32 || int64(v) < math.MinInt32 {
			return nil, nil, errorf("%d is too large", int64(v))
		}
		return int64(v), b, nil
	case "bool":
		if v > 1 {
			return nil, nil, errorf("%d is neither true nor false", v)
		}
		return v, b, nil
	}
	if v > uint64(len(b)) {
		return nil, nil, errorf("is cut short")
	}
	part, rest := b[:v], b[v:]
	if kind == "string" {
		if !utf8.Valid(part) {
			return nil, nil, errorf("%q is not UTF-8", part)
		}
		return string(part), rest, nil
	}
	m, err := decode(kind, part)
	return m, rest, err
}
