// Package demand compiles a trace into a program that the engine of replayd/issue runs: the demand of each thread on the
// CPU, on disks, pipes, memory and locks, and what of it depends on others, without the traced program, its data or
// its names. It is pure but for reading the trace it is given and writing the program.
//
// # What becomes of an event
//
// The time between two events of a thread is CPU demand, as far as the kernel's count of its CPU time says that it
// ran; a call whose time is not worth issuing adds its own. Disk calls keep their sizes, places, flags and order, on files of
// no content; mutexes, rwlocks, semaphores and barriers are real and unordered; creation, joins, waits for children,
// pipes and sockets inside the run are true dependencies; sleeps sleep. What waits for something outside of the run takes
// the time that it took.
//
// # Wait loops
//
// A condition wait is not issued as such. Which signal woke is not to be seen, and who never had to wait at home has
// no event at all. So each loop around a wait becomes a predicate (predicates.go): how many releases, by sections that
// signal, the nth to come needs. It is learnt from the order of the sections of its mutex at home.
//
// # Ways on
//
// An operation whose result decides what the program does next (a try, a timed wait, a file lock, whether a file
// is there) has a context, its site. Where the engine gets another result than home did, it goes on as some thread went on
// at that site after that result (write.go).
package demand

import (
	"cmp"
	"fmt"
	"io"
	"math/bits"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Options say how to compile.
type Options struct {
	Record time.Duration // what recording added to an event at home
	Scale  float64       // CPU demand on the target for one of home's; 0: 1
	Path   Path
	Home   io.Writer // is told when the recorded run was where: an At for each operation; nil: nobody is
	Map    string    // where to write which events of home each operation stands for (Map); "": nowhere
}

// Info is what was found on the way.
type Info struct {
	Events    uint64
	Ops       uint64
	Home      time.Duration // from the first event to the last
	CPU       time.Duration // demand
	Outside   time.Duration // waits for what is outside of the run: they take home's time
	Threads   int
	Processes int
	Preds     int
	Unlearnt  int // wait loops of which only home's order is known
	Lone      int // condition waits that belong to no loop
	Unseen    uint64
	Loose     time.Duration // gaps that the thread did not run in
	Skipped   map[string]uint64
	Files     int
	FileBytes int64

	Names   []string // of threads, as the trace has them; with Options.Home
	Whats   []What   // the first is none
	Paths   []string // of files, by number
	Objects []What   // of synchronisation, by number: Obj and Kind
}

// Compile writes the program of a trace into a file.
func Compile(t *trace.Trace, opt Options, path string) (*Info, error) {
	if opt.Scale == 0 {
		opt.Scale = 1
	}
	if t.Meta == nil || t.Meta.Ended == nil {
		return nil, fmt.Errorf("%s has not ended", t.Path)
	}
	c := &compiler{t: t, opt: opt, info: &Info{Home: time.Duration(t.Meta.Ended.At), Skipped: map[string]uint64{}}}
	if !t.Calibrated() {
		return nil, fmt.Errorf("%s does not say how fast its clock ran: it is too short, or was cut", t.Path)
	}
	c.tree()
	// Half as much memory at once, for a few more looks at it.
	defer debug.SetGCPercent(debug.SetGCPercent(30))
	if err := c.survey(); err != nil {
		return nil, err
	}
	if opt.Path == PathFree {
		c.learn()
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := c.write(f); err != nil {
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return c.info, f.Close()
}

// compiler is the state of one compilation.
type compiler struct {
	t    *trace.Trace
	opt  Options
	info *Info

	groups  []*group
	threads []*thread
	byUID   map[uint32]*thread
	byFork  map[forkKey]*group
	byMake  map[forkKey]*thread

	kinds    map[trace.Object]objKind
	alike    map[trace.Object]trace.Object
	objects  map[objKey]uint32
	recent   [256]recentKind   // of kinds,
	numbered [256]recentNumber // and of objects, as most events are about one of a few
	objs     []cabi.ProgObject
	files    *files
	usual    [1 << 12]histogram // durations by call
	waiting  [1 << 12]histogram // CPU ns of calls that waited, as far as known
	gapAt    []histogram        // gaps by place
	gapUsual [1 << 12]int64     // what three quarters of them do not exceed
	loops    *loops
	looks    looks
	asked    map[siteKey]asked // of questions for locks, by where they are
	orders   *orders           // of PathHome and PathStrict
	sites    map[siteKey]uint32

	connections map[string]int    // by the listener's end and the other: 1 accepted, 2 connected
	listeners   map[string]uint32 // by address
	grams       datagrams
	signals     signals
	before      map[*group][]pending // what a vforked child did before it became another program
	bodies      []bodyOf
	ways        *ways
	queues      [][]uint32 // of each thread, the files of its events with names
}

// group is one of the kernel's processes, with every program that it became by exec.
type group struct {
	n      uint32
	parent *group
	root   *group // the first process of its run
	main   *thread
	procs  []*trace.Proc
	pages  uint64
	pid    uint32
	fds    *fdTable
	seen   map[filePart]uint32
}

// thread is one of the kernel's threads: of a main one, the streams of all programs that its process became.
type thread struct {
	n       uint32
	group   *group
	streams []*trace.Thread
	twin    *thread
}

type forkKey struct {
	uid uint32
	nth uint64
}

type objKey struct {
	group uint32
	obj   trace.Object
}

type objKind struct {
	kind uint64
	at   uint64
}

type recentKind struct {
	obj trace.Object
	objKind
}

type recentNumber struct {
	key objKey
	n   uint32 // plus 1
}

// spot is where an object is kept that was met of late.
func spot(g uint32, o trace.Object) uint64 { return (uint64(o.UID)*31 ^ o.Num*7 ^ uint64(g)) % 256 }

// kind is what is known of an object; nothing is learnt any more once it is asked.
func (c *compiler) kind(o trace.Object) objKind {
	if o.None() {
		return objKind{}
	}
	slot := &c.recent[spot(0, o)]
	if slot.obj != o {
		*slot = recentKind{o, c.kinds[o]}
	}
	return slot.objKind
}

// histogram counts durations by their binary logarithm, in quarters.
type histogram struct {
	n     uint32
	sum   int64
	count [160]uint32
}

func (h *histogram) add(ns int64) {
	h.n++
	h.sum += ns
	h.count[logOf(ns)]++
}

func logOf(ns int64) int {
	if ns < 4 {
		return 0
	}
	l := bits.Len64(uint64(ns)) - 1
	return min((l-2)*4+int(ns>>(l-2)&3), 159)
}

// median of the durations.
func (h *histogram) median() int64 { return h.quarter(2) }

// quarter is what so many quarters of the durations do not exceed.
func (h *histogram) quarter(n uint32) int64 {
	left := uint32(uint64(h.n) * uint64(n) / 4)
	for i, c := range h.count {
		if c > left {
			l := i/4 + 2
			return (4 + int64(i%4)) << (l - 2)
		}
		left -= c
	}
	return 0
}

// waitCost is between which bounds the CPU time of a call lies that waited.
func (c *compiler) waitCost(call uint16) (least, most int64) {
	if int(call) < len(c.waiting) {
		if h := &c.waiting[call]; h.n >= waitsKnown {
			mean := h.sum / int64(h.n)
			return mean * 9 / 10, mean * 3 / 2
		}
	}
	return switched / 4, 2 * switched
}

const waitsKnown = 8

// gapPlace is a number for where a gap lies: from one call site to another. Many places may have the same.
func gapPlace(last, pc uint64) int {
	return int((last*0x9e3779b97f4a7c15 + pc*0xbf58476d1ce4e5b9) >> 52)
}

// tree finds the processes and threads, and who made whom.
func (c *compiler) tree() {
	c.byUID, c.byFork, c.byMake = map[uint32]*thread{}, map[forkKey]*group{}, map[forkKey]*thread{}
	of := map[*trace.Proc]*group{}
	var groupOf func(p *trace.Proc) *group
	groupOf = func(p *trace.Proc) *group {
		if g := of[p]; g != nil {
			return g
		}
		var g *group
		if p.Parent != nil && p.How == cabi.ProcExeced && p.PID == p.Parent.PID {
			g = groupOf(p.Parent)
		} else {
			g = &group{n: uint32(len(c.groups)), pid: p.PID}
			c.groups = append(c.groups, g)
			of[p] = g
			g.root = g
			if p.Parent != nil {
				g.parent = groupOf(p.Parent)
				g.root = g.parent.root
				_, uid, nth := p.Origin()
				c.byFork[forkKey{uid, nth}] = g
			}
		}
		of[p] = g
		g.procs = append(g.procs, p)
		return g
	}
	for _, p := range c.t.Procs {
		groupOf(p)
	}
	for _, th := range c.t.Threads {
		g := of[th.Proc]
		if g == nil {
			continue
		}
		if th.How == cabi.ThreadMain || th.How == cabi.ThreadForked {
			if g.main == nil {
				g.main = c.newThread(g)
			}
			g.main.streams = append(g.main.streams, th)
			c.byUID[th.UID] = g.main
			continue
		}
		n := c.newThread(g)
		n.streams = []*trace.Thread{th}
		c.byUID[th.UID] = n
		uid, nth := th.Origin()
		c.byMake[forkKey{uid, nth}] = n
	}
	for _, g := range c.groups {
		if !c.beside(g) {
			c.info.Processes++
		}
	}
	for _, th := range c.threads {
		if !c.beside(th.group) {
			c.info.Threads++
		}
	}
	c.twins()
}

// beside tells whether a process is of a run that only lies beside the one that is issued.
func (c *compiler) beside(g *group) bool {
	b := c.t.Meta.Beside
	return b != nil && len(g.procs) > 0 && g.procs[0].Number >= b.Proc
}

// twins finds for each thread of runs that lie beside the one that is issued the one that it is there: by their names, which say who
// made whom.
func (c *compiler) twins() {
	if c.t.Meta.Beside == nil {
		return
	}
	byName := map[string]*thread{}
	for _, th := range c.threads {
		if len(th.streams) > 0 && !c.beside(th.group) {
			byName[th.streams[0].Name] = th
		}
	}
	for _, th := range c.threads {
		if len(th.streams) == 0 || !c.beside(th.group) || th.group.root.main == nil || len(th.group.root.main.streams) == 0 {
			continue
		}
		if rest, ok := strings.CutPrefix(th.streams[0].Name, th.group.root.main.streams[0].Name); ok {
			th.twin = byName[c.threads[0].streams[0].Name+rest]
		}
	}
}

// issuedAs is the thread that stands for th in an issue.
func (th *thread) issuedAs() *thread {
	if th.twin != nil {
		return th.twin
	}
	return th
}

func (g *group) issuedAs() *group {
	if g.main != nil {
		return g.main.issuedAs().group
	}
	return g
}

// Streams are the streams of each thread of a program, by its number there: of a process's main thread those of all programs that it
// became.
func Streams(t *trace.Trace) (list [][]*trace.Thread) {
	c := &compiler{t: t, info: &Info{}}
	c.tree()
	for _, th := range c.threads {
		list = append(list, th.streams)
	}
	return list
}

func (c *compiler) newThread(g *group) *thread {
	n := &thread{n: uint32(len(c.threads)), group: g}
	c.threads = append(c.threads, n)
	return n
}

// object numbers a synchronisation object; private ones are each process's own. A lock has one number in all processes that run
// the same program, each of which has a copy: there one goes on with what another did.
func (c *compiler) object(g *group, o trace.Object, kind uint16) uint32 {
	k := objKey{g.n, o}
	slot := &c.numbered[spot(g.n, o)]
	if slot.n == 0 || slot.key != k {
		*slot = recentNumber{k, c.number(k, o, kind) + 1}
	}
	return slot.n - 1
}

func (c *compiler) number(k objKey, o trace.Object, kind uint16) uint32 {
	shared := c.kinds[o].kind == cabi.ObjSharedSync
	if shared {
		k.group = ^uint32(0)
	} else if as, ok := c.alike[o]; ok {
		k = objKey{^uint32(0), as}
	}
	n, ok := c.objects[k]
	if !ok {
		n = uint32(len(c.objs))
		c.objects[k] = n
		p := cabi.ProgObject{Kind: kind}
		if shared {
			p.Flags |= cabi.ObjectShared
		}
		c.objs = append(c.objs, p)
	}
	return n
}

// likeLocks finds for each private lock the one that is alike in all processes that run the same program: at the same place of a
// file, or at the same address, the nth there. Random addresses differ by whole pages: there it is the nth at its place within one. Where no
// other process has one there, as they keep names of other lengths before it, it is the nth of such.
func (c *compiler) likeLocks() {
	type spot struct {
		proc     uint32
		kind, at uint64
		moved    bool
	}
	type like struct {
		exe, file string
		kind, at  uint64
		nth       int
		moved     bool
	}
	c.alike = map[trace.Object]trace.Object{}
	var list []trace.Object
	for o, k := range c.kinds {
		if k.kind == cabi.ObjMutex || k.kind == cabi.ObjRwlock || k.kind == cabi.ObjSpin {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b trace.Object) int { return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Num, b.Num)) })
	random := c.randomAddresses()
	nth, likes, have, first := map[spot]int{}, map[trace.Object]like{}, map[like]int{}, map[like]trace.Object{}
	for _, o := range list {
		th := c.t.ThreadByUID(o.UID)
		if th == nil {
			continue
		}
		p, k := th.Proc, c.kinds[o]
		l := like{exe: exeOf(p), kind: k.kind, at: k.at}
		s := spot{proc: p.Number, kind: k.kind, at: k.at}
		if m := p.Module(k.at); m != nil {
			l.file, l.at = m.Path, k.at-m.Bias
		} else if random[l.exe] {
			s.at, l.at = k.at%pageSize, k.at%pageSize
		}
		nth[s]++
		l.nth = nth[s]
		likes[o] = l
		have[l]++
	}
	for _, o := range list {
		l, ok := likes[o]
		if !ok {
			continue
		}
		if l.file == "" && random[l.exe] && have[l] == 1 {
			s := spot{proc: c.t.ThreadByUID(o.UID).Proc.Number, kind: l.kind, moved: true}
			nth[s]++
			l.at, l.nth, l.moved = 0, nth[s], true
		}
		if _, ok := first[l]; !ok {
			first[l] = o
		}
		c.alike[o] = first[l]
	}
}

const pageSize = 4096

func exeOf(p *trace.Proc) string {
	for p.Exe == "" && p.Parent != nil {
		p = p.Parent
	}
	return p.Exe
}

// randomAddresses are the programs whose processes do not have them at one address: prophet record turns that off, others do not.
func (c *compiler) randomAddresses() map[string]bool {
	at, random := map[string]uint64{}, map[string]bool{}
	for _, p := range c.t.Procs {
		exe := exeOf(p)
		for _, m := range p.Modules() {
			if m.Path == exe {
				if was, ok := at[exe]; ok && was != m.Bias {
					random[exe] = true
				}
				at[exe] = m.Bias
			}
		}
	}
	return random
}

// siteKey names a context the same way for every process that runs the same file.
type siteKey struct {
	call   uint16
	module string
	at     uint64
	file   uint32 // that it names, plus 1: whether one is there says nothing of another
	part   int64  // of a file, that it locks, and how: nor do locks of different parts of each other
	kind   int64
}

func (c *compiler) site(th *trace.Thread, r *trace.Record) siteKey {
	k := siteKey{call: r.Call, at: r.PC}
	if m := th.Proc.Module(r.PC); m != nil {
		k.module, k.at = m.Path, r.PC-m.Bias
	}
	return k
}

func (c *compiler) siteNumber(k siteKey) uint32 {
	n, ok := c.sites[k]
	if !ok {
		n = uint32(len(c.sites)) + 1
		c.sites[k] = n
	}
	return n
}

// RecordCost is what recording an event costs in the time before the next one: most of it the reading of the clock.
const RecordCost = 12 * time.Nanosecond
