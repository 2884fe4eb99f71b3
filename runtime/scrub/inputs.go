package scrub

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"prophet/runtime/trace"
)

// service is what stands for a service: a port, or a name.
func (t *tokens) service(s string) string {
	if n, err := strconv.ParseUint(s, 10, 16); err == nil {
		return strconv.FormatUint(uint64(t.port(uint16(n))), 10)
	}
	return t.text(Names, s)
}

// Families of addresses, as every Linux numbers them.
const (
	familyUnix  = 1
	familyInet  = 2
	familyInet6 = 10
)

// sockaddr is what stands for the bytes of a socket's address behind its family. Of families that are not known, and of
// what is too short to be one, only the length stays.
func (t *tokens) sockaddr(family uint64, a []byte) []byte {
	out := make([]byte, 0, len(a))
	be := binary.BigEndian
	switch {
	case family == familyInet && len(a) >= 6:
		out = be.AppendUint16(out, t.port(be.Uint16(a)))
		v4 := t.addr(netip.AddrFrom4([4]byte(a[2:6]))).As4()
		out = append(out, v4[:]...)
	case family == familyInet6 && len(a) >= 22:
		out = be.AppendUint16(out, t.port(be.Uint16(a)))
		out = append(out, 0, 0, 0, 0) // flow
		v6 := t.addr(netip.AddrFrom16([16]byte(a[6:22]))).As16()
		out = append(out, v6[:]...)
		out = append(out, a[22:min(26, len(a))]...) // scope: which interface, by number
	case family == familyUnix && len(a) > 0 && a[0] == 0: // abstract
		return append(out, "\x00"+t.text(Paths, string(a[1:]))...)
	case family == familyUnix:
		return append(out, t.path(strings.TrimRight(string(a), "\x00"))...)
	default:
		if t.keep.all[Addresses] {
			return append(out, a...)
		}
		if len(a) > 0 {
			t.count(Addresses, false)
		}
	}
	for len(out) < len(a) {
		out = append(out, 0)
	}
	return out
}

// rewrite goes through a structured result, reading and writing.
type rewrite struct {
	t   *tokens
	in  trace.Operands
	out []byte
}

func (w *rewrite) v() uint64 {
	v := w.in.V()
	w.out = trace.AppendV(w.out, v)
	return v
}

func (w *rewrite) addr() {
	family := w.v()
	w.out = trace.AppendS(w.out, w.t.sockaddr(family, w.in.S()))
}

func (w *rewrite) text(how treatment) { w.out = trace.AppendS(w.out, w.t.str(how, string(w.in.S()))) }

// more reports whether anything is left.
func (w *rewrite) more() bool { return w.in.Left() > 0 && !w.in.Bad() }

// numbersOnly are the structured results that are nothing but numbers: counts, sizes, times, ids, limits, descriptors.
var numbersOnly = words(`stat statfs statvfs statx flock itimerspec usage tms rusage itimerval sysinfo loads cpus limits groups polled selected aio`)

// dataResults are those that hold what a program was given or gave: they go with the inputs.
var dataResults = words(`opt bytes`)

// results are the others, each with what takes it apart. One that is nowhere here is left out.
var results = map[string]func(w *rewrite){
	"addr": (*rewrite).addr, "addr_of": (*rewrite).addr, "from": (*rewrite).addr, "name": (*rewrite).addr,
	"accepted": (*rewrite).ends, "connected": (*rewrite).ends,
	"msg": (*rewrite).msg, "msgs": (*rewrite).msgs, "events": (*rewrite).events,
	"addrs": (*rewrite).found, "host": (*rewrite).host, "host_r": (*rewrite).host,
	"interfaces": (*rewrite).interfaces, "ifaddrs": (*rewrite).ifaddrs, "utsname": (*rewrite).utsname,
	"dirent": (*rewrite).dirent, "globbed": (*rewrite).globbed, "siginfo": (*rewrite).siginfo,
}

func (w *rewrite) ends() {
	w.addr()
	w.addr()
	w.v() // inode and process of the peer
	w.v()
}

// Control messages keep their kinds and lengths.
func (w *rewrite) msg() {
	w.addr()
	w.v()
	for w.more() {
		w.v()
		w.v()
		w.v()
		s := w.in.S()
		if !w.t.keep.all[Inputs] {
			w.t.counts[Inputs].Removed++
			w.t.counts[Inputs].Bytes += uint64(len(s))
			s = nil
		}
		w.out = trace.AppendS(w.out, s)
	}
}

func (w *rewrite) msgs() {
	for w.more() {
		w.v()
		w.v()
		w.addr()
	}
}

// The word that epoll gives back is a pointer for most programs. It is written as what it differs by.
func (w *rewrite) events() {
	var from, to uint64
	for w.more() {
		w.v()
		from += uint64(w.in.Z())
		v := w.t.memory(from)
		w.out = trace.AppendZ(w.out, int64(v-to))
		to = v
	}
}

func (w *rewrite) found() {
	for w.more() {
		w.v()
		w.v()
		w.addr()
	}
}

func (w *rewrite) host() {
	w.text(hostText)
	w.v()
	for w.more() {
		a := w.in.S()
		if ip, ok := netip.AddrFromSlice(a); ok {
			a = w.t.addr(ip).AsSlice()
		} else {
			a = nil
		}
		w.out = trace.AppendS(w.out, a)
	}
}

func (w *rewrite) globbed() {
	for w.more() {
		w.text(pathText)
	}
}

func (w *rewrite) interfaces() {
	for w.more() {
		w.v()
		w.text(nameText)
	}
}

func (w *rewrite) ifaddrs() {
	for w.more() {
		w.text(nameText)
		w.v()
		w.addr()
	}
}

func (w *rewrite) utsname() {
	w.constant("Linux")
	w.text(hostText)
	w.out = trace.AppendS(w.out, release(w.t.keep, string(w.in.S())))
	w.build()
	w.machine()
	w.text(hostText)
}

// constant keeps a text if it is that one.
func (w *rewrite) constant(s string) {
	if string(w.in.S()) != s {
		s = ""
	}
	w.out = trace.AppendS(w.out, s)
}

func (w *rewrite) machine() { w.out = trace.AppendS(w.out, arch(string(w.in.S()))) }

func (w *rewrite) build() {
	s := w.in.S()
	if !w.t.keep.all[Hosts] {
		s = nil
	}
	w.out = trace.AppendS(w.out, s)
}

func (w *rewrite) dirent() {
	w.v()
	w.v()
	w.v()
	w.text(pathText)
}

func (w *rewrite) siginfo() {
	for range 4 {
		w.v()
	}
	v := w.in.Z()
	if !w.more() {
		w.out = trace.AppendZ(w.out, int64(w.t.memory(uint64(v))))
		return
	}
	m := w.t.memory(uint64(uint32(v)) | w.in.V()<<32) // the upper half follows where there is one
	w.out = trace.AppendV(trace.AppendZ(w.out, int64(int32(m))), m>>32)
}

// result is what stands for the nth structured result of an event; false when it does not stay.
func (t *tokens) result(row *trace.Row, nth int, b []byte) ([]byte, bool) {
	if row == nil || nth >= len(row.Inputs) {
		return nil, false
	}
	helper := row.Inputs[nth]
	var fields [8]trace.Field
	if _, ok := trace.ParseInput(fields[:0], row, nth, b); !ok {
		return nil, false
	}
	switch {
	case numbersOnly[helper]:
		return b, true
	case helper == "text" || helper == "cstr":
		if strings.Contains(row.Name, "readlink") || helper == "cstr" {
			w := rewrite{t: t, in: trace.NewOperands(b)}
			w.text(pathText)
			return w.out, !w.in.Bad() && w.in.Left() == 0
		}
		fallthrough
	case dataResults[helper]:
		t.count(Inputs, t.keep.all[Inputs])
		if !t.keep.all[Inputs] {
			t.counts[Inputs].Bytes += uint64(len(b))
		}
		return b, t.keep.all[Inputs]
	}
	do := results[helper]
	if do == nil {
		return nil, false
	}
	w := rewrite{t: t, in: trace.NewOperands(b)}
	do(&w)
	return w.out, !w.in.Bad() && w.in.Left() == 0
}
