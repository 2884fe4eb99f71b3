package demand

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// datagrams are what sockets of the run say to each other without a connection. A port of the engine's stands for each address that such
// a socket has: who received from another one of the run takes the next datagram that comes to its own port.
type datagrams struct {
	socks  []gramSock
	number map[string]uint32 // of addresses, from 1
	names  []string
	own    map[uint32]bool    // addresses that sockets have
	first  map[uint32]receipt // the first datagram that came from an address
	to     map[uint32]bool    // addresses that something was sent to; at last as sockets have them
	uses   places[gramUse]
	ports  map[uint32]uint32 // of the engine's, by address
}

// gramSock is a socket. Its address is not always said: the kernel gives it one when it first sends.
type gramSock struct {
	own, peer uint32 // addresses; 0: not known, or none
	sent      receipt
}

// receipt is a datagram: when it came or went, between which addresses, and its size.
type receipt struct {
	at   uint64
	to   uint32
	size int64
}

// gramUse is a datagram that an event sends or receives.
type gramUse struct {
	sock uint32
	addr uint32 // of the other; 0: not said
	size int64
}

// portsMost is how many ports the engine has at most.
const portsMost = 1024

const (
	gramNone = iota
	gramSocket
	gramBind
	gramConnect
	gramName
	gramSend
	gramTake
	gramSends // several
	gramTakes
)

// gramCalls is what calls do with datagrams.
var gramCalls = func() []uint8 {
	byName := map[string]uint8{"socket": gramSocket, "bind": gramBind, "connect": gramConnect, "getsockname": gramName, "sendmmsg": gramSends, "recvmmsg": gramTakes}
	for _, n := range strings.Fields("send sendto sendmsg write writev") {
		byName[n] = gramSend
	}
	for _, n := range strings.Fields("recv recvfrom recvmsg read readv") {
		byName[n] = gramTake
	}
	var list []uint8
	for i := range cabi.Calls {
		c := &cabi.Calls[i]
		for int(c.ID) >= len(list) {
			list = append(list, gramNone)
		}
		list[c.ID] = byName[plainName(c.Name)]
	}
	return list
}()

const sockTypes, sockDatagram, msgPeek = 0xf, 2, 2

// gram takes an event that may be about a socket of datagrams.
func (s *surveyor) gram(th *thread, at *threadAt, r *trace.Record) {
	at.gram = nil
	if int(r.Row.ID) >= len(gramCalls) || r.Ret < 0 {
		return
	}
	what := gramCalls[r.Row.ID]
	if what == gramNone {
		return
	}
	fds := th.group.fds
	if what == gramSocket {
		if r.F[1]&sockTypes == sockDatagram {
			s.grams.socks = append(s.grams.socks, gramSock{})
			fds.fd[r.Ret] = &openFile{gram: uint32(len(s.grams.socks))}
		}
		return
	}
	if len(s.grams.socks) == 0 {
		return
	}
	of := fds.fd[s.fdOf(r)]
	if of == nil || of.gram == 0 {
		return
	}
	x := &gramAt{what: what, sock: of.gram - 1, place: place{r.Thread.UID, r.N}, begin: r.Begin, end: max(r.Begin, r.End), size: r.Ret}
	switch what {
	case gramSend:
		s.gramSent(x, 0)
	case gramTakes:
		if r.F[1]&msgPeek != 0 {
			return
		}
	case gramTake:
		flags := r.F[1]
		if strings.HasPrefix(plainName(r.Row.Name), "recvmsg") {
			flags = r.F[0]
		} else if plainName(r.Row.Name) == "read" || plainName(r.Row.Name) == "readv" {
			flags = 0
		}
		if flags&msgPeek != 0 {
			return
		}
		s.gramTook(x, 0)
	}
	at.gram = x
}

// gramAt is such an event, until what follows it says which address it is about.
type gramAt struct {
	what       uint8
	sock       uint32
	place      place
	begin, end uint64
	size       int64
}

// gramInput takes the addresses behind an event.
func (s *surveyor) gramInput(at *threadAt, r *trace.Record) {
	x := at.gram
	at.gram = nil
	f, ok := trace.ParseInput(nil, at.row, 0, r.Text[0])
	if !ok {
		return
	}
	addr := func(name string) uint32 {
		for i := range f {
			if f[i].Name == name {
				return s.grams.address(string(f[i].Text))
			}
		}
		return 0
	}
	k := &s.grams.socks[x.sock]
	own := func(n uint32) {
		if n != 0 {
			k.own = n
			s.grams.own[n] = true
		}
	}
	switch x.what {
	case gramBind, gramName:
		own(addr("addr"))
	case gramConnect:
		k.peer = addr("peer")
		own(addr("local"))
	case gramSend:
		s.gramSent(x, addr("addr"))
	case gramTake:
		s.gramTook(x, addr("addr"))
	case gramSends, gramTakes:
		s.gramsOf(x, f)
	}
}

// gramsOf takes the datagrams of a call that sends or receives several: of each its size, and then its address, if that is said.
func (s *surveyor) gramsOf(x *gramAt, f []trace.Field) {
	for i := range f {
		if f[i].Name != "bytes" {
			continue
		}
		other := uint32(0)
		for k := i + 1; k < len(f) && f[k].Name != "bytes"; k++ {
			if f[k].Name == "addr" {
				other = s.grams.address(string(f[k].Text))
			}
		}
		if x.size = int64(f[i].Num); x.what == gramSends {
			s.gramSent(x, other)
		} else {
			s.gramTook(x, other)
		}
	}
}

// gramSent notes a datagram that went: to an address, or where the socket is connected to.
func (s *surveyor) gramSent(x *gramAt, to uint32) {
	g := &s.grams
	k := &g.socks[x.sock]
	if g.uses.add(x.place, gramUse{x.sock, to, x.size}); to == 0 {
		to = k.peer
	}
	if to == 0 {
		return
	}
	if g.to[to] = true; k.own == 0 && k.sent.to == 0 {
		k.sent = receipt{x.begin, to, x.size}
	}
}

func (s *surveyor) gramTook(x *gramAt, from uint32) {
	g := &s.grams
	if g.uses.add(x.place, gramUse{x.sock, from, x.size}); from == 0 {
		return
	}
	if _, ok := g.first[from]; !ok {
		g.first[from] = receipt{x.end, g.socks[x.sock].own, x.size}
	}
}

// address numbers an address; 0: it says nothing.
func (g *datagrams) address(text string) uint32 {
	if a, err := netip.ParseAddrPort(text); err == nil {
		if a.Port() == 0 {
			return 0
		}
		text = netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port()).String()
	}
	if text == "" {
		return 0
	}
	n, ok := g.number[text]
	if !ok {
		g.names = append(g.names, text)
		n = uint32(len(g.names))
		g.number[text] = n
	}
	return n
}

// known finds the addresses of sockets that nobody said: of those that sent something where it came from an address that no socket has
// the first one that did.
func (g *datagrams) known() {
	var from, open []uint32
	for a := range g.first {
		if g.canon(a) == 0 {
			from = append(from, a)
		}
	}
	byTime := func(at func(n uint32) uint64) func(a, b uint32) int {
		return func(a, b uint32) int {
			return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b))
		}
	}
	slices.SortFunc(from, byTime(func(n uint32) uint64 { return g.first[n].at }))
	for i := range g.socks {
		if k := &g.socks[i]; k.own == 0 && k.sent.to != 0 {
			open = append(open, uint32(i))
		}
	}
	slices.SortFunc(open, byTime(func(n uint32) uint64 { return g.socks[n].sent.at }))
	for _, a := range from {
		got := g.first[a]
		for i, n := range open {
			k := &g.socks[n]
			if to := g.canon(k.sent.to); to == 0 || to != got.to || k.sent.size != got.size || k.sent.at > got.at {
				continue
			}
			k.own = a
			g.own[a] = true
			open = slices.Delete(open, i, i+1)
			break
		}
	}
	to := map[uint32]bool{}
	for a := range g.to {
		to[g.canon(a)] = true
	}
	g.to = to
}

// canon is the address as the socket has it that has it, or that has any of the machine's with this port; 0: none of the run.
func (g *datagrams) canon(n uint32) uint32 {
	if n == 0 || g.own[n] {
		return n
	}
	if a, err := netip.ParseAddrPort(g.names[n-1]); err == nil {
		for _, any := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
			if w := g.number[netip.AddrPortFrom(any, a.Port()).String()]; w != 0 && g.own[w] {
				return w
			}
		}
	}
	return 0
}

// port is the engine's port that an event sends to or takes from, if that is inside of the run.
func (g *datagrams) port(at place, takes bool) (uint32, bool) {
	if len(g.socks) == 0 {
		return 0, false
	}
	u, ok := g.uses.get(at)
	if !ok {
		return 0, false
	}
	return g.portOf(&u, takes)
}

// portOf is the port of one datagram.
func (g *datagrams) portOf(u *gramUse, takes bool) (uint32, bool) {
	k := &g.socks[u.sock]
	other := u.addr
	if other == 0 {
		other = k.peer
	}
	mine := g.canon(other)
	if takes {
		if mine = g.canon(k.own); other == 0 && !g.to[mine] || other != 0 && g.canon(other) == 0 {
			return 0, false
		}
	}
	if mine == 0 {
		return 0, false
	}
	n, ok := g.ports[mine]
	if !ok {
		if n = uint32(len(g.ports)); n == portsMost {
			return 0, false
		}
		g.ports[mine] = n
	}
	return n, true
}

// manyGrams issues an event that sends or receives several datagrams as one operation for each of them that stays inside of the run.
func (e *emitter) manyGrams(r *trace.Record, p *pending, dur int64, takes bool) {
	n := 0
	for _, use := range e.grams.uses.all(p.place) {
		port, ok := e.grams.portOf(&use.v, takes)
		if !ok {
			continue
		}
		q := pending{upto: p.upto}
		if n == 0 {
			q = *p
		}
		n++
		if q.Code = cabi.OpGiveGram; takes {
			q.Code = cabi.OpTakeGram
		}
		q.Obj, q.A, q.Want = port, use.v.size, use.v.size
		e.put(&q)
	}
	if n == 0 {
		e.other(r, p, dur)
	}
}
