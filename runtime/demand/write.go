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

// ways are what is known of how threads went on after choices.
type ways struct {
	jumps []cabi.ProgJump
	count map[wayKey]int
}

type wayKey struct {
	site   uint32
	result int64
}

// waysMax is how many ways on are kept of a site and a result; every second one goes when there are more.
const waysMax = 256

func (w *ways) add(site uint32, result int64, thread uint32, at, hash uint64) {
	k := wayKey{site, min(result, 0)}
	if w.count[k] >= waysMax {
		return
	}
	w.count[k]++
	w.jumps = append(w.jumps, cabi.ProgJump{Site: site, Thread: thread, Result: k.result, Hash: hash, At: at})
}

// opWriter writes operations one after the other.
type opWriter struct {
	b     *behind
	n     uint64
	base  int64
	hash  uint64 // of the last choices of the thread
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

// trail is what the thread's last choices came to, before this one.
func (w *opWriter) trail(site uint32, result int64) uint64 {
	was := w.hash
	w.hash = Trail(w.hash, site, result)
	return was
}

// Trail adds a choice to those before it, in four times 16 bits: what it was, and, in the lowest 6, how often it was made again at
// once: who tries again does other things each time. The engine does the same.
func Trail(hash uint64, site uint32, result int64) uint64 {
	const count = 1<<6 - 1
	h := uint64(uint16(site*2654435761>>16)^uint16(min(result, 0)*40503)) &^ count
	if hash != 0 && hash&0xffff&^count == h {
		if hash&count < count {
			hash++
		}
		return hash
	}
	return hash<<16 | h
}

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
	c.ways = &ways{count: map[wayKey]int{}}
	c.before = map[*group][]pending{}
	var threads []cabi.ProgThread
	var home *atWriter
	if c.opt.Home != nil {
		home = newAtWriter(c)
		defer home.b.end()
	}
	for _, th := range c.threads {
		e := &emitter{compiler: c, th: th, out: w, queue: c.queues[th.n], home: home}
		w.hash = 0
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
	head.Keys = c.loops.keyCount
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
