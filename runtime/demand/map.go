package demand

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"prophet/cabi"
)

// A Map says which of home's events each operation of a program stands for. It stays at home. A thread's events are numbered
// through all of its streams, one after the other, and the end of each stream counts as one.
type Map struct {
	MapHead
	Ends  []uint64 // of each operation: how many of its thread's events come before its end
	Waits []MapWait
	Drops []MapDrop
	Preds []MapPred
}

// MapHead is the head of the file. The tables follow it: Ends, then the others.
type MapHead struct {
	Magic   uint64
	Version uint32
	PredsN  uint32
	Program uint64 // checksum of the program
	Ops     uint64
	WaitsN  uint64
	DropsN  uint64
}

// MapWait is what stands behind a wait for a predicate: Skip events of waiting from Unit on, which are home's.
type MapWait struct {
	Op   uint64
	Unit uint64
	Skip uint32
	Pred uint32
}

// MapDrop are events of waiting that nothing is issued for.
type MapDrop struct {
	Unit   uint64
	Thread uint32
	Count  uint32
}

// MapPred is where home waited for a predicate, and where such a wait was over as its time was. None: UID is 0.
type MapPred struct {
	N       uint64
	LateN   uint64
	UID     uint32
	LateUID uint32
}

const (
	mapMagic   = 0x50414d_5048505250 // "PRPHPMAP"
	mapVersion = 1

	mapWaitSize = 24
)

// mapWriter writes a map beside a program. nil writes nothing.
type mapWriter struct {
	MapHead
	f      *os.File
	b      *behind
	at     uint64 // how many events have been come by,
	closed uint64 // and belong to an operation
	waits  pages[MapWait]
	drops  []MapDrop
}

func newMapWriter(path string) (*mapWriter, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	m := &mapWriter{f: f, b: newBehind(f)}
	m.Magic, m.Version = mapMagic, mapVersion
	_, err = m.b.Write(make([]byte, binary.Size(m.MapHead)))
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *mapWriter) close() {
	m.b.end()
	m.f.Close()
}

// thread begins a thread's operations.
func (m *mapWriter) thread() {
	if m != nil {
		m.at, m.closed = 0, 0
	}
}

// reach says how many events come before the end of the next operation.
func (m *mapWriter) reach(n uint64) {
	if m != nil {
		m.at = max(m.at, n)
	}
}

// put takes the next operation. Events belong to the first one that the engine logs.
func (m *mapWriter) put(code uint16) error {
	if m == nil {
		return nil
	}
	if code != cabi.OpCPU {
		m.closed = m.at
	}
	m.Ops++
	b, err := m.b.room(8)
	if err == nil {
		binary.LittleEndian.PutUint64(b, m.closed)
	}
	return err
}

func (m *mapWriter) wait(w MapWait) {
	if m != nil {
		m.waits.add(w)
	}
}

func (m *mapWriter) drop(thread uint32, unit uint64, n int) {
	if m != nil {
		m.drops = append(m.drops, MapDrop{unit, thread, uint32(n)})
	}
}

func (m *mapWriter) end(c *compiler, program uint64) error {
	if m == nil {
		return nil
	}
	m.Program, m.WaitsN, m.DropsN, m.PredsN = program, uint64(m.waits.n), uint64(len(m.drops)), uint32(len(c.loops.waits))
	for i := range m.waits.n {
		b, err := m.b.room(mapWaitSize)
		if err != nil {
			return err
		}
		w := m.waits.at(i)
		binary.LittleEndian.PutUint64(b, w.Op)
		binary.LittleEndian.PutUint64(b[8:], w.Unit)
		binary.LittleEndian.PutUint32(b[16:], w.Skip)
		binary.LittleEndian.PutUint32(b[20:], w.Pred)
	}
	for _, v := range []any{m.drops, c.loops.waits} {
		if err := binary.Write(m.b, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	if err := m.b.end(); err != nil {
		return err
	}
	head, err := binary.Append(nil, binary.LittleEndian, &m.MapHead)
	if err == nil {
		_, err = m.f.WriteAt(head, 0)
	}
	return errors.Join(err, m.f.Sync())
}

// waitsOf finds examples of waits for what p waits for.
func waitsOf(p *loop) (w MapPred) {
	for _, n := range p.allCame {
		a := &p.all[n]
		if a.events == 0 {
			continue
		}
		if a.late {
			w.LateUID, w.LateN = p.of(a).stream, a.at+uint64(a.events)-1
		} else if w.UID == 0 {
			w.UID, w.N = p.of(a).stream, a.at
		}
	}
	return w
}

// ReadMap reads the map of a program.
func ReadMap(path string) (*Map, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m := &Map{}
	b := bufio.NewReaderSize(f, 1<<20)
	if err := binary.Read(b, binary.LittleEndian, &m.MapHead); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	left := uint64(st.Size())
	if m.Magic != mapMagic || m.Version != mapVersion || m.Ops > left/8 || m.WaitsN > left/24 || m.DropsN > left/16 || uint64(m.PredsN) > left/24 {
		return nil, fmt.Errorf("%s is not the map of a program", path)
	}
	m.Ends, m.Waits, m.Drops, m.Preds = make([]uint64, m.Ops), make([]MapWait, m.WaitsN), make([]MapDrop, m.DropsN), make([]MapPred, m.PredsN)
	var word [8]byte
	for i := range m.Ends {
		if _, err := io.ReadFull(b, word[:]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.Ends[i] = binary.LittleEndian.Uint64(word[:])
	}
	for _, v := range []any{m.Waits, m.Drops, m.Preds} {
		if err := binary.Read(b, binary.LittleEndian, v); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return m, nil
}
