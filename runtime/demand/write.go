package demand

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"prophet/cabi"
)

func nsOf(ns float64) time.Duration { return time.Duration(ns) }

// bodyOf is a section that others may do, too.
type bodyOf struct {
	pred  uint32
	last  bool
	first uint64
	count uint64
}

// ways are what is known of how threads went on after choices: once for each context.
type ways struct {
	jumps []cabi.ProgJump
	count map[wayKey]int
	known map[contextKey]bool
}

type wayKey struct {
	site   uint32
	result int64
}

type contextKey struct {
	wayKey
	past  uint64
	owner uint32 // the thread, plus 1, of those that are issued: what was the same up to here may not be so for long
}

// waysMax is how many ways on are kept of a site and a result: the first ones.
const waysMax = 1 << 12

func (w *ways) add(site uint32, result int64, thread, owner uint32, at, past, held, met uint64) {
	k := wayKey{site, cabi.Kind(result)}
	past += uint64(cabi.VersionOf(result)) * pastBase
	if w.count[k] >= waysMax || w.known[contextKey{k, past, owner}] {
		return
	}
	w.count[k]++
	w.known[contextKey{k, past, owner}] = true
	w.jumps = append(w.jumps, cabi.ProgJump{Site: site, Thread: thread, Result: k.result, At: at, Held: held, Met: met})
}

// past is a hash of the last operations of a thread: of those that tell contexts apart, as replayd/issue/ways.c compares them.
type past struct {
	ring [pastLength]uint64
	n    int
	hash uint64

	held  uint64 // locks that the thread has
	met   uint64 // the version that it has read last: cabi.Met
	files fileLocks
	part  cabi.ProgOp // a lock of a part of a file, until what follows it says how long that is
	slept uint64      // of the sleeps between tries up to the last one
	since int         // operations since that
	work  uint64      // 1: others may depend on some of them
	tries tries
}

// tries counts those that failed in a row, each with a sleep behind it, as replayd/issue/ways.c does: programs wait longer each time.
type tries struct {
	n      int64  // with a sleep behind them
	failed bool   // one has since the last sleep
	site   uint32 // of the last that failed,
	got    bool   // which did not fail since,
	worked bool   // and others may depend on what was done since that,
	gave   bool   // which is over: the thread has given back the locks that it got for it
	locks  uint64 // that it had at the last sleep
}

// next is which try of them the one is that a sleep comes after now; 0: none failed.
func (p *past) next() int64 {
	switch t := &p.tries; {
	case !t.failed:
		return 0
	case p.since > tryLength:
		return 1
	default:
		return t.n + 1
	}
}

func tried(result int64) bool {
	return result == -eAgain || result == -eBusy || result == -eTimedout
}

// Numbers of errors, as traces have them.
const eAgain, eBusy, eTimedout = 11, 16, 110

func (p *past) tried(o *cabi.ProgOp) {
	t := &p.tries
	choice := o.Flags&cabi.OpChoice != 0
	switch {
	case o.Code == cabi.OpSleep:
		t.n, t.failed, t.locks = p.next(), false, p.has()
	case choice && tried(o.Want):
		if t.got && t.gave {
			t.n = 0
		}
		t.failed, t.site, t.got, t.worked, t.gave = true, o.Site, false, false, false
	case choice && o.Site == t.site && o.Want >= 0:
		t.got = true
	case t.got && works(o):
		t.worked = true
	}
	p.gave()
}

func (p *past) gave() {
	t := &p.tries
	t.gave = t.gave || t.worked && (p.has() == 0 || p.has() == t.locks)
}

const (
	pastLength = 256
	tryLength  = 128 // operations of a try, at most
	pastBase   = 0x9e3779b97f4a7c15
)

// pastGone is what an operation counts when it leaves.
var pastGone = func() uint64 {
	x := uint64(1)
	for range pastLength {
		x *= pastBase
	}
	return x
}()

// works tells whether others may depend on an operation: tries have none of these.
func works(o *cabi.ProgOp) bool {
	switch o.Code {
	case cabi.OpSleep, cabi.OpYield, cabi.OpFstat, cabi.OpLseek, cabi.OpStat, cabi.OpAccess, cabi.OpRead, cabi.OpPread, cabi.OpLock, cabi.OpUnlock:
		return false
	}
	return o.Flags&cabi.OpChoice == 0 || o.Code == cabi.OpOpen || o.Code == cabi.OpUnlink
}

// hold counts the locks that a thread has, as replayd/issue/ways.c does.
func (p *past) hold(o *cabi.ProgOp) {
	switch o.Code {
	case cabi.OpLock, cabi.OpTrylock, cabi.OpTimedlock, cabi.OpRdlock, cabi.OpWrlock, cabi.OpTryrdlock, cabi.OpTrywrlock, cabi.OpSpinlock, cabi.OpSpintry:
		if o.Want >= 0 {
			p.held += cabi.HeldLock(o.Obj)
		}
	case cabi.OpUnlock, cabi.OpRwunlock, cabi.OpSpinunlock:
		p.held -= cabi.HeldLock(o.Obj)
	case cabi.OpExec:
		p.held, p.met = 0, 0
	case cabi.OpPread:
		p.met = p.meets(o)
	case cabi.OpFlock:
		if o.Want >= 0 {
			p.files.take(o.Obj, -1, 1, o.A&3-1, o.A&8 != 0)
		}
	case cabi.OpFcntlLock:
		p.part = *o
	case cabi.OpMore:
		if l := &p.part; l.Code == cabi.OpFcntlLock && l.Flags&cabi.OpState == 0 && l.Want >= 0 {
			p.files.take(l.Obj, l.B, o.A, l.A&0xff, l.A&0xff == lockNone)
		}
		p.part = cabi.ProgOp{}
		p.gave() // only now a file's lock is back
	case cabi.OpClose:
		p.files.closed(o.Obj)
	}
}

// meets is the version that the thread has read last, once it has done an operation.
func (p *past) meets(o *cabi.ProgOp) uint64 {
	if o.Flags&cabi.OpVersion != 0 {
		return cabi.Met(o.Site, o.Want)
	}
	return p.met
}

// has is all locks that the thread has.
func (p *past) has() uint64 { return p.held + p.files.sum }

// fileLocks are the locks that a process has of files, or of parts of them, as replayd/issue/ways.c counts them.
type fileLocks struct {
	list [cabi.HeldFiles]fileLock
	n    int
	sum  uint64
}

type fileLock struct {
	fd                  uint32
	start, length, kind int64
}

func (l *fileLocks) drop(i int) {
	x := &l.list[i]
	l.sum -= cabi.HeldFile(x.fd, x.start, x.length, x.kind)
	l.n--
	l.list[i] = l.list[l.n]
}

// take gives a lock in the place of all that it covers; or takes those away.
func (l *fileLocks) take(fd uint32, start, length, kind int64, away bool) {
	for i := l.n - 1; i >= 0; i-- {
		x := &l.list[i]
		if x.fd == fd && x.start >= start && (length == 0 || x.length != 0 && x.start+x.length <= start+length) {
			l.drop(i)
		}
	}
	if !away && l.n < len(l.list) {
		l.list[l.n] = fileLock{fd, start, length, kind}
		l.n++
		l.sum += cabi.HeldFile(fd, start, length, kind)
	}
}

func (l *fileLocks) closed(fd uint32) {
	for i := l.n - 1; i >= 0; i-- {
		if l.list[i].fd == fd {
			l.drop(i)
		}
	}
}

func (p *past) add(o *cabi.ProgOp) {
	p.hold(o)
	x := uint64(o.Code) + 1
	mix := func(v uint64) { x = (x ^ v) * 0xbf58476d1ce4e5b9; x ^= x >> 31 }
	switch o.Code {
	case cabi.OpNop, cabi.OpCPU, cabi.OpThink, cabi.OpResident, cabi.OpMore:
		return
	}
	p.tried(o)
	switch o.Code {
	case cabi.OpEnd, cabi.OpCreate, cabi.OpJoin, cabi.OpFork, cabi.OpWaitpid, cabi.OpExit:
	case cabi.OpSleep:
		mix(uint64(o.A))
		if p.since > tryLength {
			p.slept = 0
		}
		p.slept, p.since, p.work = (p.slept+2*uint64(o.A)+p.work+1)*pastBase, 0, 0
	case cabi.OpRead, cabi.OpWrite, cabi.OpTake, cabi.OpGive, cabi.OpTakeGram, cabi.OpGiveGram:
		mix(uint64(o.Obj))
		mix(uint64(o.A))
	default:
		mix(uint64(o.Obj))
		if o.Code < cabi.OpLock || o.Code > cabi.OpRelease {
			mix(uint64(o.A))
			mix(uint64(o.B))
		}
	}
	if o.Flags&cabi.OpChoice != 0 {
		mix(uint64(o.Site))
		mix(uint64(min(o.Want, 0)))
	}
	if p.since++; works(o) {
		p.work = 1
	}
	at := p.n % pastLength
	p.hash = p.hash*pastBase + x - p.ring[at]*pastGone
	p.ring[at] = x
	p.n++
}

// opWriter writes operations one after the other.
type opWriter struct {
	b     *behind
	n     uint64
	base  int64
	fixes []fix
	units *mapWriter // nil: nobody asked for it
}

type fix struct {
	op uint64
	b  int64
}

const opSize, rowSize = 40, 8

func (w *opWriter) put(o cabi.ProgOp) error {
	b, err := w.b.room(opSize)
	if err != nil {
		return err
	}
	putOp(b, &o)
	w.n++
	return w.units.put(o.Code)
}

// patchB sets B of an operation that has been written.
func (w *opWriter) patchB(op uint64, b int64) { w.fixes = append(w.fixes, fix{op, b}) }

// write makes the file: the head's room, the operations, then the tables.
func (c *compiler) write(f *os.File) error {
	w := &opWriter{b: newBehind(f)}
	defer w.b.end()
	if c.opt.Map != "" {
		var err error
		if w.units, err = newMapWriter(c.opt.Map); err != nil {
			return err
		}
		defer w.units.close()
	}
	head := cabi.Prog{Magic: cabi.ProgMagic, Version: cabi.ProgVersion}
	headSize := binary.Size(head)
	w.base = int64(headSize)
	if _, err := w.b.Write(make([]byte, headSize)); err != nil {
		return err
	}
	c.ways = &ways{count: map[wayKey]int{}, known: map[contextKey]bool{}}
	c.before = map[*group][]pending{}
	var threads []cabi.ProgThread
	var home *atWriter
	if c.opt.Home != nil {
		home = newAtWriter(c)
		defer home.b.end()
	}
	for _, th := range c.threads {
		e := &emitter{compiler: c, th: th, out: w, queue: c.queues[th.n], home: home}
		w.units.thread()
		t := cabi.ProgThread{First: w.n, Proc: th.group.n}
		if len(th.streams) > 0 {
			t.UID = th.streams[0].UID
		}
		if home != nil {
			name := ""
			if len(th.streams) > 0 {
				name = th.streams[0].Name
			}
			c.info.Names = append(c.info.Names, name)
		}
		if err := e.emit(); err != nil {
			return err
		}
		t.Count = w.n - t.First
		threads = append(threads, t)
	}
	if home != nil {
		if err := home.end(c); err != nil {
			return err
		}
	}
	c.info.Ops = w.n
	head.OpsAt, head.Ops = uint64(headSize), w.n
	head.Home, head.CPU = uint64(max(0, c.info.Home)), uint64(max(0, c.info.CPU))

	var procs []cabi.ProgProc
	for _, g := range c.groups {
		p := cabi.ProgProc{Parent: g.n, Pages: g.pages}
		if g.parent != nil {
			p.Parent = g.parent.n
		}
		if g.main != nil {
			p.Main = g.main.n
		} else {
			p.Main = ^uint32(0)
		}
		procs = append(procs, p)
	}
	var list []cabi.ProgFile
	for i := range c.files.list {
		s := &c.files.list[i]
		list = append(list, s.ProgFile)
		if s.Flags&cabi.FileExists != 0 {
			c.info.Files++
			c.info.FileBytes += int64(s.Size)
		}
	}
	slices.SortStableFunc(c.bodies, func(a, b bodyOf) int {
		la, lb := 0, 0
		if a.last {
			la = 1
		}
		if b.last {
			lb = 1
		}
		return cmp.Or(cmp.Compare(a.pred, b.pred), cmp.Compare(la, lb))
	})
	var bodies []cabi.ProgBody
	for i, b := range c.bodies {
		p := &c.loops.preds[b.pred]
		if p.Wait+p.Last == 0 {
			p.Roles = uint32(i)
		}
		if b.last {
			p.Last++
		} else {
			p.Wait++
		}
		bodies = append(bodies, cabi.ProgBody{First: b.first, Count: b.count})
	}
	slices.SortStableFunc(c.ways.jumps, func(a, b cabi.ProgJump) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Result, b.Result))
	})

	at := uint64(headSize) + w.n*opSize
	table := func(place *uint64, v any) error {
		*place = at
		at += uint64(binary.Size(v))
		return binary.Write(w.b, binary.LittleEndian, v)
	}
	head.Procs, head.Threads, head.Objects, head.Preds = uint32(len(procs)), uint32(len(threads)), uint32(len(c.objs)), uint32(len(c.loops.preds))
	head.Files, head.Bodies, head.Sites = uint32(len(list)), uint32(len(bodies)), uint32(len(c.sites))
	head.Jumps, head.Rows, head.Listeners = uint64(len(c.ways.jumps)), uint64(len(c.loops.rows)), uint32(len(c.listeners))
	head.Keys, head.Grams = c.loops.keyCount, uint32(len(c.grams.ports))
	for _, t := range []struct {
		at *uint64
		v  any
	}{{&head.ThreadsAt, threads}, {&head.ProcsAt, procs}, {&head.ObjectsAt, c.objs}, {&head.PredsAt, c.loops.preds}, {&head.FilesAt, list},
		{&head.BodiesAt, bodies}, {&head.JumpsAt, c.ways.jumps}, {&head.RowsAt, []cabi.ProgRow{}}} {
		if pad := -at & 7; pad != 0 {
			at += pad
			if _, err := w.b.Write(make([]byte, pad)); err != nil {
				return err
			}
		}
		if err := table(t.at, t.v); err != nil {
			return err
		}
	}
	// There may be millions of these, which nobody else's encoding is made for.
	for _, r := range c.loops.rows {
		b, err := w.b.room(rowSize)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(b, r.Value)
	}
	head.Size = at + uint64(len(c.loops.rows))*rowSize
	if err := w.b.end(); err != nil {
		return err
	}
	for _, x := range w.fixes {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(x.b))
		if _, err := f.WriteAt(b[:], w.base+int64(x.op)*opSize+24); err != nil {
			return err
		}
	}
	sum, err := sumOf(f, head)
	if err != nil {
		return err
	}
	head.Sum = sum
	if err := w.units.end(c, sum); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return binary.Write(f, binary.LittleEndian, &head)
}

// sumOf is the checksum of a head, but for its sum, and of all after it.
func sumOf(f *os.File, head cabi.Prog) (uint64, error) {
	head.Sum = 0
	h := xxhash.New()
	if err := binary.Write(h, binary.LittleEndian, &head); err != nil {
		return 0, err
	}
	if _, err := f.Seek(int64(binary.Size(head)), io.SeekStart); err != nil {
		return 0, err
	}
	if _, err := io.CopyBuffer(h, f, make([]byte, 1<<20)); err != nil {
		return 0, err
	}
	return h.Sum64(), nil
}

// head reads the head of a compiled program.
func head(f *os.File) (h cabi.Prog, err error) {
	if err := binary.Read(f, binary.LittleEndian, &h); err != nil || h.Magic != cabi.ProgMagic {
		return h, fmt.Errorf("%s is not a compiled trace", f.Name())
	}
	if h.Version != cabi.ProgVersion {
		return h, fmt.Errorf("%s was compiled by another version of Prophet", f.Name())
	}
	return h, nil
}

// Sum is the checksum that a compiled program says it has: by it a log says which one it is of.
func Sum(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h, err := head(f)
	return h.Sum, err
}

// How long an issue may take that nobody said it of: this, and so many times as long as the recorded run, with all of its CPU time by
// itself. Disks may be slow there, but who takes longer tries again and again for what cannot come.
const (
	limitLeast = time.Minute
	limitTimes = 30
	limitMost  = 1000 * time.Hour
)

// Limit is how long an issue of a compiled program may take, with so much CPU time there for one second of home's.
func Limit(path string, scale float64) (time.Duration, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h, err := head(f)
	if err != nil {
		return 0, err
	}
	return time.Duration(min(float64(limitLeast)+limitTimes*(float64(h.Home)+float64(h.CPU)*max(1, scale)), float64(limitMost))), nil
}

// Verify checks that a file is a compiled program of this version, and whole.
func Verify(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h, err := head(f)
	if err != nil {
		return err
	}
	sum, err := sumOf(f, h)
	if err != nil {
		return err
	}
	if sum != h.Sum {
		return fmt.Errorf("%s is damaged: its checksum is another one", path)
	}
	return nil
}
