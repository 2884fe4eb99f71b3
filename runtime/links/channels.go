package links

import (
	"slices"
	"strconv"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Descriptors and the channels behind them.

// table is a process's descriptors, as far as they are channels, and the numbers that its objects stand for. It is copied
// at a fork. A nil table is an empty one.
type table struct {
	ends map[int64]end
	objs map[trace.Object]int64
}

// end is one end of a channel.
type end struct {
	ch   *channel
	side int
}

// How a channel is read.
const (
	streamOf  = iota // bytes
	messageOf        // one at a time
	counterOf        // all at once
)

// channel has a direction from each of its ends; a message queue has one for all.
type channel struct {
	kind   int
	dir    [2]direction // what was written at that end
	shared bool         // one direction for both ends
	alone  bool         // the other end of the connection has not come
	dead   bool         // it is outside, as far as can be known
}

// direction is what was written at one end and read at the other. Positions are bytes or messages.
type direction struct {
	wrote, read uint64
	segs        []segment // written and not read
	waits       []blocked // reads that began before their data was written
}

type segment struct {
	from, to uint64
	p        Point
}

type blocked struct {
	from, to uint64
	p        Point
}

// conn is a connection that an event made or took, until the record with its two ends comes.
type conn struct {
	fd       int64
	accepted bool
	p        Point
}

// pending is one side of connections whose other side has not come.
type pending struct {
	accepted bool
	list     []half
}

type half struct {
	ch *channel
	p  Point
}

// transfer is what an event moved when the record that follows it says how much.
type transfer struct {
	e    end
	on   bool
	out  bool
	peek bool
}

func (t *table) clone() *table {
	c := &table{ends: map[int64]end{}, objs: map[trace.Object]int64{}}
	if t != nil {
		for k, v := range t.ends {
			c.ends[k] = v
		}
		for k, v := range t.objs {
			c.objs[k] = v
		}
	}
	return c
}

// table is the one that the thread's events act on.
func (s *thread) table() *table {
	if s.vtab != nil {
		return s.vtab
	}
	return s.proc.fds
}

func (s *thread) mine() *table {
	t := s.table()
	if t == nil {
		t = &table{}
		s.proc.fds = t
	}
	if t.ends == nil {
		t.ends = map[int64]end{}
	}
	if t.objs == nil {
		t.objs = map[trace.Object]int64{}
	}
	return t
}

// objectOf takes a name as events have it in a number.
func objectOf(v uint64) trace.Object { return trace.Object{UID: uint32(v >> 40), Num: v & (1<<40 - 1)} }

const maxFd = 1 << 20

// name says which number an object is.
func (t *table) name(o trace.Object, fd int64) {
	if !o.None() && fd >= 0 && fd < maxFd {
		t.objs[o] = fd
	}
}

// put makes a number an end.
func (t *table) put(fd int64, e end) {
	if fd >= 0 && fd < maxFd {
		t.ends[fd] = e
	}
}

// at is the end that an object is.
func (s *thread) at(o trace.Object) (end, bool) {
	t := s.table()
	if t == nil || len(t.ends) == 0 {
		return end{}, false
	}
	fd, ok := t.objs[o]
	if !ok {
		return end{}, false
	}
	e, ok := t.ends[fd]
	return e, ok
}

// named learns an object's name.
func (k *Tracker) named(s *thread, r *trace.Record) {
	o := trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}
	switch r.Nums[2] {
	case cabi.ObjFd:
		t, fd := s.mine(), int64(int32(r.Nums[3]))
		t.name(o, fd)
		// A pipe that no event made, as popen's: both its ends have the same name.
		if name := string(r.Text[0]); strings.HasPrefix(name, "pipe:[") {
			if _, known := t.ends[fd]; !known {
				t.put(fd, end{k.queue(name, streamOf), 0})
			}
		}
	case cabi.ObjSharedSync:
		k.share(o)
	case cabi.ObjSem:
		if string(r.Text[0]) == "semset" {
			k.share(o)
		}
	}
}

func (k *Tracker) share(o trace.Object) {
	if len(k.shared) < maxObjects {
		k.shared[o] = true
	} else {
		k.forgot++
	}
}

func field(r *trace.Record, i int) uint64 {
	if i < len(r.Fields) {
		return r.Fields[i].Num
	}
	return 0
}

// pair: a pipe is written at its second end, a socketpair at both.
func (k *Tracker) pair(s *thread, r *trace.Record) {
	if r.Ret != 0 {
		return
	}
	ch := &channel{}
	if r.Row.F[2] == "type" {
		ch.kind = kindOf(r.F[2])
	}
	t := s.mine()
	t.put(r.F[0], end{ch, 0})
	t.put(r.F[1], end{ch, 1})
	t.name(r.Obj, r.F[0])
	t.name(objectOf(field(r, 0)), r.F[1])
}

// kindOf is how a socket of this type is read: SOCK_STREAM has bytes.
func kindOf(kind int64) int {
	if kind&0xf == 1 {
		return streamOf
	}
	return messageOf
}

// socket is no channel until it is connected; its object stands for its number.
func (k *Tracker) socket(s *thread, r *trace.Record) {
	if r.Ret < 0 {
		return
	}
	t := s.mine()
	delete(t.ends, r.Ret)
	t.name(r.Obj, r.Ret)
}

func (k *Tracker) eventfd(s *thread, r *trace.Record) {
	if r.Ret >= 0 {
		t := s.mine()
		t.put(r.Ret, end{&channel{kind: counterOf, shared: true}, 0})
		t.name(r.Obj, r.Ret)
	}
}

func (k *Tracker) mqOpen(s *thread, r *trace.Record) {
	if r.Ret < 0 || len(r.Fields) == 0 {
		return
	}
	t := s.mine()
	t.put(r.Ret, end{k.queue(string(r.Fields[len(r.Fields)-1].Text), messageOf), 0})
	t.name(r.Obj, r.Ret)
}

// queue is the channel of that name, which has one direction for all.
func (k *Tracker) queue(name string, kind int) *channel {
	ch := k.queues[name]
	if ch == nil {
		if len(k.queues) >= maxPending {
			k.forgot += uint64(len(k.queues))
			clear(k.queues)
		}
		ch = &channel{kind: kind, shared: true}
		k.queues[name] = ch
	}
	return ch
}

func (k *Tracker) dup(s *thread, r *trace.Record) {
	if r.Ret < 0 {
		return
	}
	t := s.mine()
	if e, ok := s.at(r.Obj); ok {
		t.put(r.Ret, e)
	} else {
		delete(t.ends, r.Ret)
	}
}

func (k *Tracker) fcntl(s *thread, r *trace.Record) {
	const dupFd, dupFdCloexec = 0, 1030
	if r.F[0] == dupFd || r.F[0] == dupFdCloexec {
		k.dup(s, r)
	}
}

func (k *Tracker) close(s *thread, r *trace.Record) {
	t := s.table()
	if t == nil || len(t.ends) == 0 {
		return
	}
	if fd, ok := t.objs[r.Obj]; ok {
		delete(t.ends, fd)
	}
}

func (k *Tracker) closeRange(s *thread, r *trace.Record) {
	t := s.table()
	if t == nil || r.Ret < 0 || r.F[2] != 0 { // flags: closed at exec, or in a table of its own
		return
	}
	last := r.F[1]
	if r.Row.Name == "closefrom" {
		last = maxFd
	}
	for fd := range t.ends {
		if fd >= r.F[0] && fd <= last {
			delete(t.ends, fd)
		}
	}
}

// opened: the number is something else now.
func (k *Tracker) opened(s *thread, r *trace.Record) {
	if t := s.table(); t != nil && r.Ret >= 0 {
		delete(t.ends, r.Ret)
		if !r.Obj.None() && r.Row.Obj != "dirfd" {
			t.name(r.Obj, r.Ret)
		}
	}
}

// accept and connect: which connection it is says the record that follows.
func (k *Tracker) accept(s *thread, r *trace.Record) {
	if r.Ret < 0 {
		return
	}
	t := s.mine()
	delete(t.ends, r.Ret)
	t.name(objectOf(field(r, 0)), r.Ret)
	s.conn = &conn{fd: r.Ret, accepted: true, p: pointOf(r)}
}

func (k *Tracker) connect(s *thread, r *trace.Record) {
	const inProgress, isConnected = -115, -106
	if r.Ret != 0 && r.Ret != inProgress && r.Ret != isConnected {
		return
	}
	if fd, ok := s.mine().objs[r.Obj]; ok {
		s.conn = &conn{fd: fd, p: pointOf(r)}
		k.may = true
	}
}

// input is a structure that belongs to the thread's last event.
func (k *Tracker) input(s *thread, r *trace.Record) {
	switch {
	case s.conn != nil:
		c := s.conn
		s.conn = nil
		if f, ok := trace.ParseInput(nil, r.Row, int(min(r.Nums[0], 1<<20)), r.Text[0]); ok {
			k.connected(s, c, f)
		}
	case s.await != nil:
		s.await = nil
		f, ok := trace.ParseInput(nil, r.Row, int(min(r.Nums[0], 1<<20)), r.Text[0])
		if ok && len(f) >= 3 && int64(f[1].Num) <= 3 { // CLD_EXITED, CLD_KILLED, CLD_DUMPED
			k.await(pendingExit{at: s.last.End, to: s.last, pid: f[2].Num})
		}
	case s.io.on:
		s.io.on = false
		f, ok := trace.ParseInput(nil, r.Row, int(min(r.Nums[0], 1<<20)), r.Text[0])
		if !ok {
			return
		}
		var sum, n uint64
		for i := range f {
			if f[i].Name == "bytes" {
				sum += f[i].Num
				n++
			}
		}
		if s.io.e.ch.kind != streamOf {
			sum = n
		}
		if s.io.out {
			k.sent(s.io.e, s.last, sum)
		} else {
			k.received(s.io.e, s.last, sum, s.io.peek)
		}
	}
}

// connected pairs the two sides of a connection. Over IP they know each other's addresses; over a Unix socket the side
// that connects has usually none, so the path and the process that connected pair them, in the order of their calls.
func (k *Tracker) connected(s *thread, c *conn, f []trace.Field) {
	var local, peer string
	var pid uint64
	for i := range f {
		switch f[i].Name {
		case "local":
			local = string(f[i].Text)
		case "peer":
			peer = string(f[i].Text)
		case "peer_pid":
			pid = f[i].Num
		}
	}
	server, client := local, peer
	if !c.accepted {
		server, client = peer, local
		pid = uint64(s.proc.p.PID)
	}
	server, client = plain(server), plain(client)
	key := server + " " + client
	if strings.HasPrefix(server, "unix:") {
		key = server + " " + strconv.FormatUint(pid, 10)
	}
	t := s.mine()
	if w := k.nets[key]; w != nil && w.accepted != c.accepted && len(w.list) > 0 {
		h := w.list[0]
		if w.list = w.list[1:]; len(w.list) == 0 {
			delete(k.nets, key)
		}
		h.ch.alone = false
		t.put(c.fd, end{h.ch, side(c.accepted)})
		if c.accepted {
			k.link(Connect, h.p, h.p.Begin, c.p, c.p.End, c.p.Obj)
		} else if h.p.End+k.slack >= c.p.Begin {
			k.link(Connect, c.p, c.p.Begin, h.p, h.p.End, h.p.Obj)
		}
		return
	}
	if len(k.nets) >= maxPending {
		k.forgot += uint64(len(k.nets))
		for _, w := range k.nets {
			for _, h := range w.list {
				k.drop(h.ch)
			}
		}
		clear(k.nets)
	}
	ch := &channel{alone: true}
	w := k.nets[key]
	if w == nil || w.accepted != c.accepted {
		w = &pending{accepted: c.accepted}
		k.nets[key] = w
	}
	if len(w.list) >= 64 {
		k.drop(w.list[0].ch)
		w.list = w.list[1:]
	}
	w.list = append(w.list, half{ch, c.p})
	t.put(c.fd, end{ch, side(c.accepted)})
}

// drop gives a channel up whose other end is outside, as far as can be known.
func (k *Tracker) drop(ch *channel) {
	ch.dead = true
	for i := range ch.dir {
		k.empty(&ch.dir[i], len(ch.dir[i].segs))
		ch.dir[i] = direction{}
	}
}

// empty takes the first n writes away.
func (k *Tracker) empty(d *direction, n int) {
	if n == 0 {
		return
	}
	k.unread -= n
	if d.segs = slices.Delete(d.segs, 0, n); len(d.segs) == 0 {
		d.segs = nil
		delete(k.full, d)
	}
}

func side(accepted bool) int {
	if accepted {
		return 1
	}
	return 0
}

// plain is an address without the prefix that a socket for both versions of IP shows an old one with.
func plain(addr string) string {
	if rest, ok := strings.CutPrefix(addr, "[::ffff:"); ok {
		if ip, port, ok := strings.Cut(rest, "]"); ok {
			return ip + port
		}
	}
	return addr
}

func (k *Tracker) read(s *thread, r *trace.Record) {
	e, ok := s.at(r.Obj)
	if !ok || r.Ret < 0 || e.ch.dead {
		return
	}
	const peek = 2
	n := uint64(r.Ret)
	if e.ch.kind != streamOf {
		n = 1
	}
	if n > 0 {
		k.received(e, pointOf(r), n, r.Row.F[1] == "flags" && r.F[1]&peek != 0 || r.Row.F[0] == "flags" && r.F[0]&peek != 0)
	}
}

func (k *Tracker) write(s *thread, r *trace.Record) {
	e, ok := s.at(r.Obj)
	if !ok || r.Ret < 0 || e.ch.dead {
		return
	}
	n := uint64(r.Ret)
	if e.ch.kind != streamOf {
		n = 1
	}
	if n > 0 {
		k.sent(e, pointOf(r), n)
	}
}

// many are calls whose bytes are in the record that follows.
func (k *Tracker) many(s *thread, r *trace.Record) {
	if e, ok := s.at(r.Obj); ok && r.Ret > 0 && !e.ch.dead {
		out := r.Row.Name == "sendmmsg"
		s.io = transfer{e: e, on: true, out: out, peek: !out && r.F[1]&2 != 0}
		k.may = out
	}
}

// transfer moves bytes from one descriptor (the object) to another.
func (k *Tracker) transfer(s *thread, r *trace.Record) {
	if r.Ret <= 0 {
		return
	}
	p := pointOf(r)
	if e, ok := s.at(r.Obj); ok && !e.ch.dead {
		k.received(e, p, uint64(r.Ret), false)
	}
	if e, ok := s.at(objectOf(uint64(r.F[1]))); ok && !e.ch.dead {
		k.sent(e, p, uint64(r.Ret))
	}
}

// sent adds what was written, and links the reads that had waited for it.
func (k *Tracker) sent(e end, p Point, n uint64) {
	d := &e.ch.dir[e.side]
	from := d.wrote
	d.wrote += n
	for i := 0; i < len(d.waits); {
		w := &d.waits[i]
		if w.p.End+k.slack < p.Begin { // its data came from somebody who is not seen
			d.wrote = max(d.wrote, w.to+n)
			from = d.wrote - n
			d.waits = slices.Delete(d.waits, i, i+1)
			continue
		}
		if lo, hi := max(w.from, from), min(w.to, d.wrote); lo < hi || e.ch.kind == counterOf {
			k.data(p, w.p, hi-min(lo, hi))
		}
		if w.to <= d.wrote || e.ch.kind == counterOf {
			d.waits = slices.Delete(d.waits, i, i+1)
			if e.ch.kind == counterOf {
				d.read = d.wrote
				return
			}
			continue
		}
		i++
	}
	if from = max(from, d.read); from >= d.wrote {
		return
	}
	k.may = true
	if k.unread >= maxUnread {
		k.forgot += uint64(k.unread)
		for d := range k.full {
			d.segs = nil
		}
		clear(k.full)
		k.unread = 0
	}
	most := maxSegments
	if e.ch.alone {
		most = maxAlone
	}
	if len(d.segs) >= most {
		k.forgot++
		k.empty(d, 1)
	}
	if len(d.segs) == 0 {
		k.full[d] = true
	}
	d.segs = append(d.segs, segment{from, d.wrote, p})
	k.unread++
}

// received takes what was read, and links it with the writes that it came from.
func (k *Tracker) received(e end, p Point, n uint64, peek bool) {
	side := 1 - e.side
	if e.ch.shared {
		side = e.side
	}
	d := &e.ch.dir[side]
	if e.ch.kind == counterOf {
		if len(d.segs) > 0 {
			k.data(d.segs[0].p, p, 1)
			k.empty(d, len(d.segs))
			d.read = d.wrote
			return
		}
	}
	from, to := d.read, d.read+n
	done := 0
	for i := range d.segs {
		g := &d.segs[i]
		lo, hi := max(from, g.from), min(to, g.to)
		if lo < hi {
			k.data(g.p, p, hi-lo)
		}
		if g.to <= to {
			done = i + 1
		}
	}
	if peek {
		return
	}
	k.empty(d, done)
	d.read = to
	if to > d.wrote && len(d.waits) < maxEntries {
		d.waits = append(d.waits, blocked{max(from, d.wrote), to, p})
	}
}

func (k *Tracker) data(from, to Point, n uint64) {
	if to.End+k.slack < from.Begin || from.Thread == to.Thread && from.N == to.N {
		return
	}
	k.link(Data, from, from.Begin, to, to.End, from.Obj).Bytes = n
}
