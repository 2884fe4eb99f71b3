// Package issued is what an issue really did: the log that the engine keeps of it, as it travels and lies on a disk.
//
// # The file
//
// A head, then an entry for each thread, both fixed little-endian structs, then for each thread its operations in blocks: the
// length of what is packed and the number of operations, 4 bytes each, and a zstd frame of at most blockMax bytes of varints.
// An operation is five of them: how far its number is from the one after the last operation's, how long after the last one's end
// it began, how long it took, its place in its object's order against the last place that the thread took (0: none), and its
// result. A log comes from another machine: all that is read of it is bounded, and none of its numbers is to be trusted.
package issued

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"prophet/cabi"
)

// Head is what a log says of the whole issue.
type Head struct {
	Magic   uint64
	Version uint32
	Threads uint32
	Begin   uint64 // ticks
	End     uint64
	Hz      uint64  // ticks a second
	Nanos   uint64  // from begin to end
	Status  uint32  // cabi.Result…
	Failed  uint32  // errno
	Program uint64  // the checksum of what was issued
	Scale   float64 // CPU demand for one of the program's
}

// Thread is what the engine says of a thread, and how many bytes its operations take.
type Thread struct {
	cabi.ProgResultThread
	Bytes uint64
}

const (
	logMagic   = 0x474f4c_5048505250 // "PRPHPLOG"
	logVersion = 1
	threadsMax = 1 << 20
	blockMax   = 1 << 16
	blockHead  = 8
	opMax      = 5 * binary.MaxVarintLen64
)

// LogMax bounds the length of a log that comes from elsewhere.
const LogMax = 16 << 30

var errLog = errors.New("the log of the issue is damaged")

// A Writer writes a log: each thread in turn, and the operations of each.
type Writer struct {
	f       *os.File
	enc     *zstd.Encoder
	head    Head
	threads []Thread
	at      int64 // in the file
	raw     []byte
	packed  []byte
	ops     uint32 // in raw
	last    cabi.ProgLog
	seq     uint64
}

// Create begins a log of that many threads. Whoever calls it ends it with Close, which writes the head.
func Create(path string, h Head) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(blockMax))
	if err != nil {
		f.Close()
		return nil, err
	}
	h.Magic, h.Version = logMagic, logVersion
	w := &Writer{f: f, enc: enc, head: h}
	w.at = int64(binary.Size(h)) + int64(h.Threads)*int64(binary.Size(Thread{}))
	return w, nil
}

// Thread begins the next thread.
func (w *Writer) Thread(t cabi.ProgResultThread) error {
	err := w.flush()
	w.threads = append(w.threads, Thread{ProgResultThread: t})
	w.threads[len(w.threads)-1].Logged = 0
	w.last, w.seq = cabi.ProgLog{Op: ^uint64(0), End: w.head.Begin}, 0
	return err
}

// Add adds an operation of the thread.
func (w *Writer) Add(l cabi.ProgLog) error {
	b := binary.AppendVarint(w.raw, int64(l.Op-w.last.Op-1))
	b = binary.AppendVarint(b, int64(l.Begin-w.last.End))
	b = binary.AppendVarint(b, int64(l.End-l.Begin))
	if l.Seq == 0 {
		b = append(b, 0)
	} else {
		d := int64(l.Seq - w.seq)
		b = binary.AppendUvarint(b, uint64(d<<1)^uint64(d>>63)+1)
		w.seq = l.Seq
	}
	w.raw = binary.AppendVarint(b, l.Result)
	w.last = l
	w.ops++
	w.threads[len(w.threads)-1].Logged++
	if len(w.raw) > blockMax-opMax {
		return w.flush()
	}
	return nil
}

func (w *Writer) flush() error {
	if w.ops == 0 {
		return nil
	}
	le := binary.LittleEndian
	w.packed = w.enc.EncodeAll(w.raw, append(w.packed[:0], make([]byte, blockHead)...))
	le.PutUint32(w.packed, uint32(len(w.packed)-blockHead))
	le.PutUint32(w.packed[4:], w.ops)
	if _, err := w.f.WriteAt(w.packed, w.at); err != nil {
		return err
	}
	w.at += int64(len(w.packed))
	w.threads[len(w.threads)-1].Bytes += uint64(len(w.packed))
	w.raw, w.ops = w.raw[:0], 0
	return nil
}

// Close ends the log.
func (w *Writer) Close() error {
	err := w.flush()
	if len(w.threads) != int(w.head.Threads) {
		err = errors.Join(err, fmt.Errorf("a log of %d threads has %d", w.head.Threads, len(w.threads)))
	}
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, &w.head)
	binary.Write(&b, binary.LittleEndian, w.threads)
	_, e := w.f.WriteAt(b.Bytes(), 0)
	return errors.Join(err, e, w.enc.Close(), w.f.Close())
}

// A Log is a log that is read. Several goroutines may read it.
type Log struct {
	Head
	Threads []Thread
	at      []int64
	r       io.ReaderAt
	dec     *zstd.Decoder
	close   func() error
}

// Open opens a log.
func Open(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	l, err := Read(f, st.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	l.close = f.Close
	return l, nil
}

// Read reads a log's head; its operations are read when they are asked for.
func Read(r io.ReaderAt, size int64) (*Log, error) {
	l := &Log{r: r}
	headSize, each := int64(binary.Size(l.Head)), int64(binary.Size(Thread{}))
	all := io.NewSectionReader(r, 0, size)
	if err := binary.Read(all, binary.LittleEndian, &l.Head); err != nil {
		return nil, fmt.Errorf("%w: %w", errLog, err)
	}
	n := int64(l.Head.Threads)
	if l.Magic != logMagic || l.Version != logVersion {
		return nil, fmt.Errorf("%w: it is none of this version's", errLog)
	}
	if n > threadsMax || size > LogMax || n > (size-headSize)/each || l.Hz == 0 && l.Status == cabi.ResultDone {
		return nil, fmt.Errorf("%w: its head is out of bounds", errLog)
	}
	l.Threads = make([]Thread, n)
	if err := binary.Read(all, binary.LittleEndian, l.Threads); err != nil {
		return nil, fmt.Errorf("%w: %w", errLog, err)
	}
	at := headSize + n*each
	for i := range l.Threads {
		t := &l.Threads[i]
		if t.Bytes > uint64(size-at) || t.Logged > t.Bytes*blockMax {
			return nil, fmt.Errorf("%w: thread %d lies outside of it", errLog, i)
		}
		l.at = append(l.at, at)
		at += int64(t.Bytes)
	}
	var err error
	l.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(blockMax), zstd.WithDecoderMaxWindow(blockMax))
	return l, err
}

// Close closes the log.
func (l *Log) Close() error {
	l.dec.Close()
	if l.close != nil {
		return l.close()
	}
	return nil
}

// An Iter reads the operations of one thread in their order.
type Iter struct {
	l      *Log
	at     int64 // of the next block
	end    int64
	left   uint64 // operations
	block  []byte
	ops    uint32 // left in the block
	last   cabi.ProgLog
	seq    uint64
	packed []byte
	raw    []byte

	Unknown bool // nobody went on at home as was gone on after the last operation
}

// Iter begins with the first operation of a thread.
func (l *Log) Iter(thread int) *Iter {
	t := &l.Threads[thread]
	return &Iter{l: l, at: l.at[thread], end: l.at[thread] + int64(t.Bytes), left: t.Logged, last: cabi.ProgLog{Op: ^uint64(0), End: l.Head.Begin}}
}

// Next gives the next operation; io.EOF: there is none.
func (it *Iter) Next(out *cabi.ProgLog) error {
	if it.left == 0 {
		if it.at != it.end || it.ops != 0 || len(it.block) != 0 {
			return fmt.Errorf("%w: more operations than it says", errLog)
		}
		return io.EOF
	}
	if it.ops == 0 {
		if err := it.next(); err != nil {
			return err
		}
	}
	ok := true
	number := func() uint64 {
		v, n := binary.Uvarint(it.block)
		if n <= 0 {
			ok = false
			return 0
		}
		it.block = it.block[n:]
		return v
	}
	signed := func() uint64 {
		v := number()
		return v>>1 ^ -(v & 1)
	}
	out.Op = it.last.Op + 1 + signed()
	out.Begin = it.last.End + signed()
	out.End = out.Begin + signed()
	out.Seq = 0
	if v := number(); v > 0 {
		v--
		it.seq += v>>1 ^ -(v & 1)
		out.Seq = it.seq
	}
	out.Result = int64(signed())
	if !ok {
		return fmt.Errorf("%w: an operation is cut", errLog)
	}
	it.last = *out
	it.Unknown = out.Op&cabi.LogUnknown != 0
	out.Op &^= cabi.LogUnknown
	it.ops--
	it.left--
	return nil
}

// next reads the next block.
func (it *Iter) next() error {
	if len(it.block) != 0 {
		return fmt.Errorf("%w: a block is longer than its operations", errLog)
	}
	var head [blockHead]byte
	if it.end-it.at < blockHead {
		return fmt.Errorf("%w: fewer operations than it says", errLog)
	}
	if _, err := it.l.r.ReadAt(head[:], it.at); err != nil {
		return fmt.Errorf("%w: %w", errLog, err)
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	it.ops = binary.LittleEndian.Uint32(head[4:])
	it.at += blockHead
	if n > 2*blockMax || n > it.end-it.at || it.ops == 0 || uint64(it.ops) > it.left {
		return fmt.Errorf("%w: a block out of bounds", errLog)
	}
	if int64(cap(it.packed)) < n {
		it.packed = make([]byte, n)
	}
	it.packed = it.packed[:n]
	if _, err := it.l.r.ReadAt(it.packed, it.at); err != nil {
		return fmt.Errorf("%w: %w", errLog, err)
	}
	it.at += n
	var err error
	if it.raw, err = it.l.dec.DecodeAll(it.packed, it.raw[:0]); err != nil {
		return fmt.Errorf("%w: %w", errLog, err)
	}
	it.block = it.raw
	return nil
}
