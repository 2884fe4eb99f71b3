package demand

import (
	"errors"
	"io"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// survey reads the whole trace once, in the order of time: what there was before the run, how long calls usually take,
// which objects there are, and what happened under each mutex that somebody waited with.
func (c *compiler) survey() error {
	c.kinds, c.objects, c.sites = map[trace.Object]objKind{}, map[objKey]uint32{}, map[siteKey]uint32{}
	c.connections, c.listeners = map[string]int{}, map[string]uint32{}
	c.files = &files{byPath: map[string]uint32{}}
	c.looks.versions, c.asked = map[filePart]uint32{}, map[siteKey]asked{}
	c.signals = signals{map[signalKey][]uint64{}, map[signalKey][]uint64{}, map[signalKey]bool{}}
	c.grams = datagrams{number: map[string]uint32{}, own: map[uint32]bool{}, first: map[uint32]receipt{}, to: map[uint32]bool{}, ports: map[uint32]uint32{}}
	c.loops, c.orders = newLoops(c), &orders{of: map[objKey]*order{}}
	if err := c.look(); err != nil {
		return err
	}
	c.gapAt = make([]histogram, len(c.gapUsual))
	s := surveyor{compiler: c, at: make([]threadAt, len(c.threads))}
	m := c.t.Merge(c.t.Threads...)
	for {
		r, err := m.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if trace.IsDamage(err) {
				continue
			}
			return err
		}
		if th := c.byUID[r.Thread.UID]; th != nil {
			s.record(th, r)
		}
	}
	if c.info.Events == 0 {
		return errors.New("the trace has no events")
	}
	for i := range s.at {
		for _, x := range s.at[i].sect {
			c.loops.close(x)
		}
	}
	c.orders.sort()
	c.grams.known()
	c.signals.known()
	for i := range c.gapAt {
		c.gapUsual[i] = c.gapAt[i].quarter(3) * 5 / 4
	}
	c.gapAt = nil
	c.queues = make([][]uint32, len(c.threads))
	for i := range s.at {
		c.queues[i] = s.at[i].queue
	}
	for i := range c.files.list {
		f := &c.files.list[i]
		if f.cold() {
			f.Flags |= cabi.FileCold
		}
	}
	return nil
}

// look collects the objects, and the mutexes that somebody waits with, of which survey needs to know before it meets them.
func (c *compiler) look() error {
	type found struct {
		kinds map[trace.Object]objKind
		waits map[trace.Object]trace.Object
	}
	all := make([]found, len(c.t.Threads))
	index := map[*trace.Thread]int{}
	for i, th := range c.t.Threads {
		all[i] = found{map[trace.Object]objKind{}, map[trace.Object]trace.Object{}}
		index[th] = i
	}
	_, err := c.t.WalkOnly(cabi.SetOf(cabi.Sync), 2, func(th *trace.Thread) trace.Visit {
		i, ok := index[th]
		if !ok {
			return func(*trace.Record) error { return nil }
		}
		f := &all[i]
		return func(r *trace.Record) error {
			switch {
			case r.Tag == cabi.TagObject:
				f.kinds[trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}] = objKind{r.Nums[2], r.Nums[3]}
			case r.Tag == trace.TagEvent && r.Row != nil && r.Row.Obj == "cond" && r.Row.Block:
				f.waits[r.Obj] = packed(uint64(r.F[1]))
			}
			return nil
		}
	})
	if err != nil {
		return err
	}
	for i := range all {
		for o, k := range all[i].kinds {
			c.kinds[o] = k
		}
		for cond, m := range all[i].waits {
			c.loops.with[cond] = m
			c.loops.mutexes[m] = true
		}
	}
	if c.opt.Path == PathFree {
		c.likeLocks()
	}
	return nil
}

// surveyor is what the survey remembers from one record to the next.
type surveyor struct {
	*compiler
	at []threadAt
}

// threadAt is where a thread is.
type threadAt struct {
	row   *trace.Row // of its last event
	file  uint32     // that it was about
	some  bool
	stat  bool
	asks  bool // for a lock, at
	gram  *gramAt
	site  siteKey
	held  []trace.Object
	queue []uint32 // files of its events with names, for the second reading
	sect  []*opened
	spare []*opened // for the next ones
	over  []lastOf
	last  eventKey

	cpu     int64 // ns, of its last sample, if seen, without the recorder's; and since then
	cpuSeen bool
	ours    uint64 // ticks that were the recorder's, all in all
	end     uint64 // ticks of the last event's end, without those
	done    uint64 // the same, whatever samples came after it
	pc      uint64 // where it was
	gaps    uint64 // ticks between events
	events  int
	waited  uint16 // a call that waited
}

func (c *compiler) fdOf(r *trace.Record) int64 {
	if r.Obj.None() {
		return -1
	}
	return int64(int32(c.kind(r.Obj).at))
}

func (s *surveyor) record(th *thread, r *trace.Record) {
	at := &s.at[th.n]
	g := th.group
	if g.fds == nil {
		s.begin(g)
	}
	switch r.Tag {
	case trace.TagEvent:
		if !s.beside(g) {
			s.info.Events++
		}
		s.ran(at, r)
		s.event(th, at, r)
		if s.opt.Path == PathHome || s.opt.Path == PathStrict {
			s.orders.note(s.compiler, th, r)
		}
	case cabi.TagCPU:
		s.sampled(at, r)
	case cabi.TagOurs:
		at.ours += r.Nums[0]
	case cabi.TagInput:
		if at.stat {
			s.stat(at, r)
		} else if at.asks {
			s.answered(at, r)
		} else if at.gram != nil {
			s.gramInput(at, r)
		} else if at.row != nil && (at.row.Name == "connect" || at.row.Name == "__connect" || at.row.Name == "accept" || at.row.Name == "accept4") {
			s.ends(at, r)
		}
	case cabi.TagKept, cabi.TagWas:
		if r.Tag == cabi.TagKept {
			n := s.files.number(g.fds.resolve(s.files, nil, string(r.Text[0])))
			s.files.was(n, true)
			s.files.size(n, int64(r.Nums[2]))
		}
	case cabi.TagRSS:
		g.pages = max(g.pages, r.Nums[0])
	case cabi.TagFork:
		if child := s.byFork[forkKey{r.Thread.UID, r.Nums[0]}]; child != nil && child.fds == nil {
			s.begin(child)
		}
	case cabi.TagUnseen, cabi.TagLost:
		s.info.Unseen++
	}
}

// ran counts the time between the samples of a thread's CPU time.
func (s *surveyor) ran(at *threadAt, r *trace.Record) {
	begin, end := r.Begin-min(r.Begin, at.ours), r.End-min(r.End, at.ours)
	if begin > at.end {
		at.gaps += begin - at.end
	}
	if at.pc != 0 && begin > at.done {
		s.gapAt[gapPlace(at.pc, r.PC)].add(s.t.Clock.NS(begin - at.done))
	}
	at.pc, at.done = r.PC, max(at.done, end)
	at.end = max(at.end, end)
	at.events++
	if r.Timed && (r.Note&cabi.NoteWaited != 0 || waitsIn(r)) {
		at.waited = r.Call
	}
}

func waitsIn(r *trace.Record) bool {
	o := opOf(r.Row)
	return o != nil && sleeps(o.code)
}

// sampled learns what CPU time waiting in a call takes, where that lay between two samples with next to nothing else: the recorder
// sees to it that there are such.
func (s *surveyor) sampled(at *threadAt, r *trace.Record) {
	begin := r.Begin - min(r.Begin, at.ours)
	if begin > at.end {
		at.gaps += begin - at.end
	}
	at.end = max(at.end, begin)
	cpu := int64(r.Nums[0]) - s.t.Clock.NS(at.ours)
	used := cpu - at.cpu
	if at.cpuSeen && at.events <= eventsShort && at.waited != 0 && int(at.waited) < len(s.waiting) && used > 0 {
		if gaps := s.t.Clock.NS(at.gaps); gaps < gapsShort && used > gaps {
			s.waiting[at.waited].add(used - gaps)
		}
	}
	at.cpu, at.cpuSeen, at.gaps, at.events, at.waited = cpu, true, 0, 0, 0
}

// What next to nothing is: events, and ns.
const eventsShort, gapsShort = 4, 6000

// begin gives a process the descriptors of its parent as they are now: when it was forked, or is first heard of.
func (s *surveyor) begin(g *group) {
	cwd := ""
	if len(g.procs) > 0 {
		cwd = g.procs[0].Cwd
	}
	if g.parent != nil && g.parent.fds != nil {
		g.fds = g.parent.fds.fork()
		if cwd != "" {
			g.fds.cwd = cwd
		}
		return
	}
	g.fds = newFdTable(cwd)
}

func (s *surveyor) stat(at *threadAt, r *trace.Record) {
	at.stat = false
	if !at.some {
		return
	}
	f, ok := trace.ParseInput(nil, at.row, 0, r.Text[0])
	if !ok {
		return
	}
	for i := range f {
		switch f[i].Name {
		case "mode":
			if st := &s.files.list[at.file]; f[i].Num&modeType == modeDir {
				st.Flags |= cabi.FileDir
			}
		case "size":
			if s.files.list[at.file].Flags&cabi.FileDir == 0 {
				s.files.size(at.file, int64(f[i].Num))
			}
		}
	}
}

// answered learns what part of a file is asked for, of an answer that nobody has it: another one tells of the part that somebody has.
func (s *surveyor) answered(at *threadAt, r *trace.Record) {
	at.asks = false
	if l, ok := lockOf(at.row, r); ok && l.kind == lockNone {
		s.asked[at.site] = asked{l.start, l.length, l.whence}
	}
}

// ends notes the two ends of a connection, for both sides of it.
func (s *surveyor) ends(at *threadAt, r *trace.Record) {
	f, ok := trace.ParseInput(nil, at.row, 0, r.Text[0])
	if !ok {
		return
	}
	var local, peer string
	for i := range f {
		switch f[i].Name {
		case "local":
			local = string(f[i].Text)
		case "peer":
			peer = string(f[i].Text)
		}
	}
	if at.row.Name == "accept" || at.row.Name == "accept4" {
		s.connections[local+" "+peer] |= 1
	} else {
		s.connections[peer+" "+local] |= 2
	}
}

func (s *surveyor) event(th *thread, at *threadAt, r *trace.Record) {
	at.stat, at.asks, at.gram = false, false, nil
	if r.Row == nil {
		return
	}
	s.gram(th, at, r)
	if r.Timed && r.Note&(cabi.NoteWaited|cabi.NoteDelayed) == 0 && int(r.Call) < len(s.usual) {
		s.usual[r.Call].add(s.t.Clock.NS(r.End - r.Begin))
	}
	o := opOf(r.Row)
	at.row = r.Row
	if o != nil && o.code == opSignal {
		s.signal(th, r)
	}
	if o == nil {
		s.loops.event(s, th, at, r)
		return
	}
	fds := th.group.fds
	if o.named > 0 {
		s.named(at, fds, o, r)
	}
	var of *openFile
	if r.Row.Obj == "fd" {
		of = fds.fd[s.fdOf(r)]
	}
	switch o.code {
	case cabi.OpRead, cabi.OpPread, cabi.OpWrite, cabi.OpPwrite:
		s.transfer(th, o, of, r)
	case cabi.OpLseek:
		if of != nil && r.Ret >= 0 {
			of.off = r.Ret
		}
	case cabi.OpTruncate, cabi.OpFallocate:
		if of != nil && of.some {
			s.files.write(of.file)
		}
	case cabi.OpClose:
		fd := r.F[0]
		delete(fds.fd, fd)
	case opCloseRange:
		for fd := range fds.fd {
			if fd >= r.F[0] && fd <= r.F[1] && r.F[2] == 0 {
				delete(fds.fd, fd)
			}
		}
	case cabi.OpDup:
		if to := r.Ret; to >= 0 {
			if of != nil {
				fds.fd[to] = of
			} else {
				delete(fds.fd, to)
			}
		}
	case cabi.OpPipe, cabi.OpSocketpair:
		fds.fd[r.F[0]], fds.fd[r.F[1]] = &openFile{}, &openFile{}
	case cabi.OpFcntlLock:
		if asksForLock(r) {
			at.asks, at.site = true, s.site(r.Thread, r)
		}
	case cabi.OpFstat:
		if of != nil && of.some && r.Ret == 0 {
			at.file, at.some, at.stat = of.file, true, true
		}
	case opChdir:
		if r.Ret == 0 {
			if r.Row.Obj == "fd" {
				if of != nil && of.some {
					fds.cwd = s.files.list[of.file].path
				}
			} else {
				fds.cwd = fds.resolve(s.files, nil, name(r, o, 0))
			}
		}
	case opReset:
		s.reset(th, r)
	case opExec:
		if r.Ret == 0 {
			at.held = at.held[:0]
			th.group.seen = nil
		}
	}
	s.hold(th, at, o, r)
	s.loops.event(s, th, at, r)
}

// transfer notes what reading and writing says about a file.
func (s *surveyor) transfer(th *thread, o *op, of *openFile, r *trace.Record) {
	if of == nil || r.Ret <= 0 {
		return
	}
	var from int64
	if o.code == cabi.OpPread || o.code == cabi.OpPwrite {
		from = r.F[1]
	} else {
		from = of.off
		of.off += r.Ret
	}
	if !of.some {
		return
	}
	if o.code == cabi.OpPwrite {
		s.files.list[of.file].parted = true
		s.files.list[of.file].by(th.group, true)
		s.looks.wrote(th.group, of.file, from, r.Ret)
	}
	if o.code == cabi.OpWrite || o.code == cabi.OpPwrite {
		s.files.write(of.file)
		return
	}
	if o.code == cabi.OpPread {
		s.files.list[of.file].by(th.group, false)
		s.looks.read(th.group, of.file, from, r.Ret, place{r.Thread.UID, r.N})
	}
	f := &s.files.list[of.file]
	s.files.size(of.file, from+r.Ret)
	if f.Flags&(cabi.FileZero|cabi.FileRandom|cabi.FileNull) == 0 {
		f.read(r.Ret, s.t.Clock.NS(r.End-r.Begin))
	}
}

// named finds the files of an event with names, and what its result says about them.
func (s *surveyor) named(at *threadAt, fds *fdTable, o *op, r *trace.Record) {
	var dir *openFile
	if r.Row.Obj == "fd" {
		dir = fds.fd[s.fdOf(r)]
	}
	first := s.files.number(fds.resolve(s.files, dir, name(r, o, 0)))
	at.queue = append(at.queue, first)
	at.file, at.some = first, true
	there := r.Ret >= 0
	if r.Row.Ret == trace.RetErr {
		there = r.Ret == 0
	}
	switch o.code {
	case cabi.OpOpen:
		s.opened(fds, first, o, r)
	case cabi.OpStat, cabi.OpAccess:
		if there || r.Ret == -enoent {
			s.files.was(first, there)
		}
		at.stat = there && o.code == cabi.OpStat
	case cabi.OpUnlink, cabi.OpRmdir:
		if there || r.Ret == -enoent {
			s.files.was(first, there)
		}
		if o.code == cabi.OpRmdir {
			s.files.list[first].Flags |= cabi.FileDir
		}
		if there {
			s.files.list[first].changed = true
		}
	case cabi.OpMkdir:
		s.files.was(first, r.Ret == -eexist)
		s.files.list[first].Flags |= cabi.FileDir
	case cabi.OpTruncateName:
		s.files.was(first, there)
		s.files.write(first)
	case cabi.OpRename, cabi.OpLink:
		second := s.files.number(fds.resolve(s.files, nil, name(r, o, 1)))
		at.queue = append(at.queue, second)
		if there {
			s.files.was(first, true)
			s.files.was(second, false)
			a, b := &s.files.list[first], &s.files.list[second]
			b.changed = true
			b.Flags |= a.Flags & cabi.FileDir
			a.changed = a.changed || o.code == cabi.OpRename
		}
	}
}

// opened gives a descriptor its file.
func (s *surveyor) opened(fds *fdTable, file uint32, o *op, r *trace.Record) {
	fl, fd := openArgs(r)
	if fl&oDir != 0 {
		s.files.list[file].Flags |= cabi.FileDir
	}
	if fd < 0 {
		if r.Ret == -enoent {
			s.files.was(file, false)
		} else if fl&oExcl != 0 && r.Ret == -eexist {
			s.files.was(file, true)
		}
		return
	}
	s.files.was(file, fl&oCreate == 0)
	if fl&oTrunc != 0 {
		s.files.list[file].changed = true
	}
	fds.fd[fd] = &openFile{file: file, some: true}
}

// openArgs are the flags and the descriptor of an event that opens a name.
func openArgs(r *trace.Record) (flags, fd int64) {
	switch {
	case r.Row.Ret == trace.RetPtr: // fopen
		fd = -1
		if r.Ret > 0 {
			fd = number(r, "fd")
		} else {
			fd = r.Ret
		}
		return fopenFlags(text(r, trace.FieldStr)), fd
	case r.Row.Name == "creat" || r.Row.Name == "creat64":
		return 1 | oCreate | oTrunc, r.Ret
	}
	return r.F[0], r.Ret
}

// reset notes how an object begins.
func (s *surveyor) reset(th *thread, r *trace.Record) {
	if r.Obj.None() {
		return
	}
	n := s.object(th.group, r.Obj, 0)
	ob := &s.objs[n]
	switch r.Row.Obj {
	case "mutex":
		ob.Kind = cabi.ObjMutex
		if r.F[1]&3 == 1 {
			ob.Flags |= cabi.ObjectRecursive
		}
	case "barrier":
		ob.Kind, ob.Value = cabi.ObjBarrier, uint32(r.F[1])
	case "sem":
		ob.Kind, ob.Value = cabi.ObjSem, uint32(r.F[1])
		if r.Row.Ret == trace.RetPtr {
			ob.Value = uint32(r.F[2])
		}
	}
}

// hold notes which mutexes are taken again by who has them.
func (s *surveyor) hold(th *thread, at *threadAt, o *op, r *trace.Record) {
	switch o.code {
	case cabi.OpLock, cabi.OpTrylock, cabi.OpTimedlock:
		if r.Ret != 0 || r.Obj.None() {
			return
		}
		for _, h := range at.held {
			if h == r.Obj {
				s.objs[s.object(th.group, r.Obj, cabi.ObjMutex)].Flags |= cabi.ObjectRecursive
				break
			}
		}
		if len(at.held) < 64 {
			at.held = append(at.held, r.Obj)
		}
	case cabi.OpUnlock:
		for i := len(at.held) - 1; i >= 0; i-- {
			if at.held[i] == r.Obj {
				at.held = append(at.held[:i], at.held[i+1:]...)
				break
			}
		}
	}
}

const (
	enoent    = 2
	eagain    = 11
	ebusy     = 16
	eexist    = 17
	etimedout = 110
)
