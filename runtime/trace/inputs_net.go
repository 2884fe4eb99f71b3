package trace

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// The structured results of network calls; shim/steps_net.c says how each is written. One that had no room in its
// event is in the data chunk that follows it, in the same encoding.
func init() {
	for _, same := range []string{"addr_of", "from", "name"} {
		Inputs[same] = InputSpec{Decode: decodeAddr}
	}
	Inputs["accepted"] = InputSpec{Decode: decodeEnds}
	Inputs["connected"] = InputSpec{Decode: decodeEnds}
	Inputs["opt"] = InputSpec{Fields: []FieldSpec{{"value", FieldHex}}}
	Inputs["msg"] = InputSpec{Decode: decodeMsg}
	Inputs["msgs"] = InputSpec{Decode: decodeMsgs}
	Inputs["polled"] = InputSpec{Decode: decodePolled}
	Inputs["selected"] = InputSpec{Decode: decodeSelected}
	Inputs["events"] = InputSpec{Decode: decodeReady}
	Inputs["itimerspec"] = InputSpec{Fields: []FieldSpec{{"value", FieldTime}, {"interval", FieldTime}}}
	Inputs["addrs"] = InputSpec{Decode: decodeFound}
	Inputs["host"] = InputSpec{Decode: decodeHost}
	Inputs["host_r"] = InputSpec{Decode: decodeHost}
	Inputs["interfaces"] = InputSpec{Decode: decodeInterfaces}
	Inputs["ifaddrs"] = InputSpec{Decode: decodeIfaddrs}
}

func strField(name, text string) Field {
	return Field{FieldSpec: FieldSpec{Name: name, Kind: FieldStr}, Text: []byte(text)}
}

func numField(name string, v uint64) Field {
	return Field{FieldSpec: FieldSpec{name, FieldNum}, Num: v}
}

// addr reads one address as text; "" when there is none.
func (s *small) addr() string {
	family := s.v()
	a := s.s()
	if s.bad || family == 0 {
		return ""
	}
	if text, ok := addrText(family, a); ok {
		return text
	}
	return fmt.Sprintf("family%d:%x", family, a)
}

// decodeEnds reads both ends of a connection.
func decodeEnds(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	local, peer := s.addr(), s.addr()
	ino, pid := s.v(), s.v()
	if s.bad || len(s.b) != 0 {
		return nil, false
	}
	if local != "" {
		out = append(out, strField("local", local))
	}
	out = append(out, strField("peer", peer))
	if ino != 0 {
		out = append(out, numField("inode", ino), numField("peer_pid", pid))
	}
	return out, true
}

// decodeMsg reads what a message had beside its data.
func decodeMsg(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	if addr := s.addr(); addr != "" {
		out = append(out, strField("addr", addr))
	}
	if flags := s.v(); flags != 0 {
		out = append(out, numField("flags", flags))
	}
	for len(s.b) > 0 && !s.bad {
		level, kind, n, data := s.v(), s.v(), s.v(), s.s()
		name := fmt.Sprintf("control%d.%d", level, kind)
		if level == 1 && kind == 1 {
			name = "rights"
		}
		if uint64(len(data)) < n {
			name += "..."
		}
		out = append(out, Field{FieldSpec: FieldSpec{name, FieldHex}, Text: data})
	}
	return out, !s.bad
}

func decodeMsgs(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	for len(s.b) > 0 && !s.bad {
		out = append(out, numField("bytes", s.v()))
		if flags := s.v(); flags != 0 {
			out = append(out, numField("flags", flags))
		}
		if addr := s.addr(); addr != "" {
			out = append(out, strField("addr", addr))
		}
	}
	return out, !s.bad
}

var pollNames = []string{"in", "pri", "out", "err", "hup", "nval", "rdnorm", "rdband", "wrnorm", "wrband", "msg"}

// pollText names the bits that poll and epoll share; the rest is shown in hex.
func pollText(v uint64) string {
	var names []string
	for i, n := range pollNames {
		if v>>i&1 != 0 {
			names = append(names, n)
		}
	}
	for _, x := range []struct {
		bit  int
		name string
	}{{13, "rdhup"}, {28, "exclusive"}, {30, "oneshot"}, {31, "et"}} {
		if v>>x.bit&1 != 0 {
			names = append(names, x.name)
			v &^= 1 << x.bit
		}
	}
	if rest := v >> len(pollNames); rest != 0 {
		names = append(names, fmt.Sprintf("%#x", rest<<len(pollNames)))
	}
	if names == nil {
		return "0"
	}
	return strings.Join(names, "|")
}

func decodePolled(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	fd := int64(-1)
	for len(s.b) > 0 && !s.bad {
		fd += s.z()
		v := s.v()
		text := pollText(v >> 1)
		if v&1 != 0 {
			text += "=" + pollText(s.v())
		}
		out = append(out, strField("fd"+strconv.FormatInt(fd, 10), text))
	}
	return out, !s.bad
}

// set reads one set of select as "0-2,5".
func (s *small) set() string {
	var text []string
	at := uint64(0)
	for n := s.v(); n > 0 && !s.bad; n-- {
		from := at + s.v()
		length := s.v()
		if s.bad || length == 0 || from > math.MaxInt32 || length > math.MaxInt32 {
			s.bad = true
			break
		}
		at = from + length
		if length == 1 {
			text = append(text, strconv.FormatUint(from, 10))
		} else {
			text = append(text, fmt.Sprintf("%d-%d", from, at-1))
		}
	}
	return strings.Join(text, ",")
}

func decodeSelected(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	for _, name := range []string{"read", "write", "except", "ready_read", "ready_write", "ready_except"} {
		if len(s.b) == 0 {
			break
		}
		if set := s.set(); set != "" {
			out = append(out, strField(name, set))
		}
	}
	return out, !s.bad && len(s.b) == 0
}

func decodeReady(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	data := uint64(0)
	for len(s.b) > 0 && !s.bad {
		events := s.v()
		data += uint64(s.z())
		out = append(out, strField(fmt.Sprintf("%#x", data), pollText(events)))
	}
	return out, !s.bad
}

func decodeFound(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	for len(s.b) > 0 && !s.bad {
		kind, proto, addr := s.v(), s.v(), s.addr()
		out = append(out, strField(fmt.Sprintf("type%d.%d", kind, proto), addr))
	}
	return out, !s.bad
}

func decodeHost(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	out = append(out, strField("name", string(s.s())))
	out = append(out, numField("family", s.v()))
	for len(s.b) > 0 && !s.bad {
		a := s.s()
		if ip, ok := netip.AddrFromSlice(a); ok {
			out = append(out, strField("addr", ip.String()))
		} else {
			out = append(out, Field{FieldSpec: FieldSpec{"addr", FieldHex}, Text: a})
		}
	}
	return out, !s.bad
}

func decodeInterfaces(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	for len(s.b) > 0 && !s.bad {
		index := s.v()
		out = append(out, numField(string(s.s()), index))
	}
	return out, !s.bad
}

func decodeIfaddrs(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	for len(s.b) > 0 && !s.bad {
		name, flags, addr := string(s.s()), s.v(), s.addr()
		addr = strings.TrimSuffix(addr, ":0")
		if mask := flags >> 32; mask != 0 {
			addr = fmt.Sprintf("%s/%d", addr, mask-1)
		}
		out = append(out, strField(name, fmt.Sprintf("%#x %s", uint32(flags), addr)))
	}
	return out, !s.bad
}
