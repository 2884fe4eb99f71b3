package trace

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"prophet/cabi"
)

// A packed trace is one file: 16 bytes of magic, frames, and a trailer of 32 bytes: magic, version, offset of the
// index frame, checksum. A frame is a header of 40 bytes (magic, kind, bytes as stored, bytes unpacked, checksum of what is
// stored, checksum of the header) and what it stores. Frames can be read alone and in any order; the index, the last
// one, says where each chunk is, and is made anew from the frames when it is damaged. Event frames hold the chunks of
// one thread after the other, about a MiB of them, so that a thread or a time can be read without the rest.
const (
	packMagic    = "PROPHET-PACKED-1"
	frameMagic   = 0x31465050 // "PPF1"
	trailMagic   = 0x314c4954_54455050
	frameHead    = 40
	trailerLen   = 32
	frameTarget  = 1 << 20
	frameMeta    = 1 // meta.json
	frameEvents  = 2 // chunks, taken apart (columns.go)
	framePlain   = 3 // chunks as they stand in a stream file
	frameKept    = 4 // a piece of a kept file: S name, V offset, bytes
	frameIndex   = 5
	keptNameMax  = 64
	keptPieceMax = 1 << 20
)

type frameInfo struct {
	off    int64
	kind   uint32
	stored uint32
	raw    uint32
	sum    uint64
}

func appendFrameHead(b []byte, f frameInfo) []byte {
	le := binary.LittleEndian
	at := len(b)
	b = le.AppendUint32(b, frameMagic)
	b = le.AppendUint32(b, f.kind)
	b = le.AppendUint64(b, uint64(f.stored))
	b = le.AppendUint64(b, uint64(f.raw))
	b = le.AppendUint64(b, f.sum)
	return le.AppendUint64(b, xxhash.Sum64(b[at:]))
}

func parseFrameHead(b []byte, off int64) (frameInfo, bool) {
	le := binary.LittleEndian
	if len(b) < frameHead || le.Uint32(b) != frameMagic || le.Uint64(b[32:]) != xxhash.Sum64(b[:32]) {
		return frameInfo{}, false
	}
	stored, raw := le.Uint64(b[8:]), le.Uint64(b[16:])
	if stored > frameMax || raw > frameMax {
		return frameInfo{}, false
	}
	return frameInfo{off, le.Uint32(b[4:]), uint32(stored), uint32(raw), le.Uint64(b[24:])}, true
}

// PackResult is what Pack did.
type PackResult struct {
	Events  uint64
	Bytes   int64 // of the file
	Records int64 // of them, event frames and the index: without input data and kept files
	Damaged []error
}

// pieces of work for the compressors, written in order.
type packJob struct {
	kind uint32
	raw  int
	body []byte
	refs []chunkRef
	done chan struct{}
	make func(j *packJob, enc *zstd.Encoder)
}

// Pack writes the trace as one file to path, whole or not at all, on up to workers goroutines. Chunks that cannot be
// read are left out and named in the result.
func (t *Trace) Pack(path string, workers int, prog Progress) (*PackResult, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".pack-*") // 0600
	if err != nil {
		return nil, err
	}
	res, err := t.packTo(f, workers, prog)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return nil, fmt.Errorf("pack: %w", err)
	}
	return res, nil
}

func (t *Trace) packTo(f io.Writer, workers int, prog Progress) (*PackResult, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	res := &PackResult{}
	var mu sync.Mutex
	bad := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if len(res.Damaged) < maxDamage {
			res.Damaged = append(res.Damaged, err)
		}
	}
	work := make(chan *packJob, workers)
	queue := make(chan *packJob, 2*workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			enc, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
			for j := range work {
				j.make(j, enc)
				close(j.done)
			}
		}()
	}
	stop := make(chan struct{})
	go func() {
		defer close(queue)
		defer close(work)
		t.packJobs(bad, func(j *packJob) bool {
			j.done = make(chan struct{})
			select {
			case queue <- j:
			case <-stop:
				return false
			}
			work <- j
			return true
		})
	}()
	err := t.packWrite(f, queue, res, prog)
	close(stop)
	for j := range queue {
		<-j.done
	}
	wg.Wait()
	return res, err
}

// packJobs makes the frames' jobs in the order of the file.
func (t *Trace) packJobs(bad func(error), put func(*packJob) bool) {
	meta, err := json.Marshal(t.Meta)
	if err != nil {
		bad(err)
		meta = []byte("{}")
	}
	if !put(&packJob{kind: frameMeta, make: func(j *packJob, enc *zstd.Encoder) { j.raw, j.body = len(meta), enc.EncodeAll(meta, nil) }}) {
		return
	}
	var events []chunkRef
	for _, th := range t.Threads {
		events = append(events, th.chunks...)
	}
	sortChunks(events)
	group := func(refs []chunkRef, kind uint32) bool {
		for len(refs) > 0 {
			n, size := 0, 0
			for n < len(refs) && n < 1<<16 && (n == 0 || size+int(refs[n].len) <= frameTarget) {
				size += int(refs[n].len)
				n++
			}
			part := slices.Clone(refs[:n])
			refs = refs[n:]
			mk := func(j *packJob, enc *zstd.Encoder) { t.makePlain(j, enc, part, bad) }
			if kind == frameEvents {
				mk = func(j *packJob, enc *zstd.Encoder) { t.makeEvents(j, enc, part, bad) }
			}
			if !put(&packJob{kind: kind, make: mk}) {
				return false
			}
		}
		return true
	}
	if !group(events, frameEvents) || !group(t.control, framePlain) || !group(t.data, framePlain) {
		return
	}
	t.keptPieces(bad, func(name string, off int64, piece []byte) bool {
		return put(&packJob{kind: frameKept, make: func(j *packJob, enc *zstd.Encoder) {
			b := AppendV(AppendS(nil, name), uint64(off))
			b = append(b, piece...)
			j.raw, j.body = len(b), enc.EncodeAll(b, nil)
		}})
	})
}

func (r *chunkRef) header() Header {
	return Header{Kind: r.kind, Flags: r.flag, Len: r.len, UID: r.uid, Proc: r.proc, Seq: r.seq, Base: r.base, Vers: cabi.FormatVersion, Sum: r.sum}
}

func (t *Trace) makeEvents(j *packJob, enc *zstd.Encoder, refs []chunkRef, bad func(error)) {
	f := newFrame()
	for i := range refs {
		b, err := t.src.load(&refs[i], nil)
		if err != nil {
			bad(err)
			continue
		}
		r := refs[i]
		payload := b[:r.len]
		r.sum = xxhash.Sum64(payload)
		f.add(r.header(), payload)
		r.at = uint32(len(j.refs))
		j.refs = append(j.refs, r)
		j.raw += int(r.len)
	}
	j.body = f.encode(enc, nil)
}

func (t *Trace) makePlain(j *packJob, enc *zstd.Encoder, refs []chunkRef, bad func(error)) {
	var raw []byte
	for i := range refs {
		b, err := t.src.load(&refs[i], nil)
		if err != nil {
			bad(err)
			continue
		}
		r := refs[i]
		raw = AppendChunk(raw, MemChunk{r.header(), b[:r.len]})
		r.sum = xxhash.Sum64(b[:r.len])
		r.at = uint32(len(j.refs))
		j.refs = append(j.refs, r)
	}
	j.raw, j.body = len(raw), enc.EncodeAll(raw, nil)
}

// packWrite writes finished frames in order, then the index and the trailer.
func (t *Trace) packWrite(f io.Writer, queue <-chan *packJob, res *PackResult, prog Progress) error {
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := w.WriteString(packMagic); err != nil {
		return err
	}
	off := int64(len(packMagic))
	var frames []frameInfo
	var refs []chunkRef
	var all, done int64
	for _, th := range t.Threads {
		all += th.Bytes
	}
	emit := func(kind uint32, raw int, body []byte) error {
		info := frameInfo{off, kind, uint32(len(body)), uint32(raw), xxhash.Sum64(body)}
		w.Write(appendFrameHead(nil, info))
		_, err := w.Write(body)
		frames = append(frames, info)
		off += frameHead + int64(len(body))
		return err
	}
	for j := range queue {
		<-j.done
		if len(j.body) > frameMax || j.raw > frameMax {
			return fmt.Errorf("frame of %d bytes", j.raw)
		}
		for i := range j.refs {
			j.refs[i].file, j.refs[i].off = filePacked, int64(len(frames))
			if j.kind == frameEvents {
				done += int64(j.refs[i].len) + cabi.ChunkHeader
			}
		}
		refs = append(refs, j.refs...)
		if err := emit(j.kind, j.raw, j.body); err != nil {
			return err
		}
		if j.kind == frameEvents {
			res.Records += int64(len(j.body)) + frameHead
		}
		if prog != nil {
			prog(done, all)
		}
	}
	index := appendIndex(nil, frames, refs)
	enc, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true))
	at := off
	raw := len(index)
	if raw > frameMax {
		return errors.New("too many chunks for one file")
	}
	index = enc.EncodeAll(index, nil)
	if err := emit(frameIndex, raw, index); err != nil {
		return err
	}
	le := binary.LittleEndian
	trail := le.AppendUint64(nil, trailMagic)
	trail = le.AppendUint64(trail, cabi.FormatVersion)
	trail = le.AppendUint64(trail, uint64(at))
	trail = le.AppendUint64(trail, xxhash.Sum64(trail))
	if _, err := w.Write(trail); err != nil {
		return err
	}
	res.Bytes = off + trailerLen
	res.Records += int64(len(index)) + frameHead
	return w.Flush()
}

// keptPieces reads the directory's kept files in pieces. Names that are not <hex>-<hex> are not ours.
func (t *Trace) keptPieces(bad func(error), put func(name string, off int64, piece []byte) bool) {
	if t.Packed {
		return
	}
	dir := filepath.Join(t.Path, "kept")
	list, err := os.ReadDir(dir)
	if err != nil {
		return // none was kept
	}
	for _, e := range list {
		if !KeptName(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			bad(err)
			continue
		}
		for off := int64(0); ; {
			piece := make([]byte, keptPieceMax)
			n, err := io.ReadFull(f, piece)
			if n > 0 || off == 0 {
				if !put(e.Name(), off, piece[:n]) {
					f.Close()
					return
				}
			}
			off += int64(n)
			if err != nil {
				if err != io.EOF && err != io.ErrUnexpectedEOF {
					bad(err)
				}
				break
			}
		}
		f.Close()
	}
}

// Kept calls fn with each piece of each file as it was before the run. What cannot be read is told to bad and left out.
func (t *Trace) Kept(bad func(error), fn func(name string, off int64, piece []byte) error) error {
	if p, ok := t.src.(*packedSource); ok {
		return p.kept(bad, fn)
	}
	var err error
	t.keptPieces(bad, func(name string, off int64, piece []byte) bool {
		err = fn(name, off, piece)
		return err == nil
	})
	return err
}

// CopyKept writes what Kept tells, piece by piece, into the trace directory dir: all that want agrees to; nil agrees to everything.
func (t *Trace) CopyKept(dir string, bad func(error), want func(name string, off int64, piece []byte) bool) error {
	dir = filepath.Join(dir, "kept")
	var f *os.File
	err := t.Kept(bad, func(name string, off int64, piece []byte) error {
		if want != nil && !want(name, off, piece) {
			return nil
		}
		path := filepath.Join(dir, name)
		if f == nil || f.Name() != path {
			if f != nil {
				if err := f.Close(); err != nil {
					return err
				}
			}
			err := os.MkdirAll(dir, 0o700)
			if err == nil {
				f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
			}
			if err != nil {
				f = nil
				return err
			}
		}
		_, err := f.WriteAt(piece, off)
		return err
	})
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

// KeptName reports whether name is one of a kept file: <dev>-<ino> in hex.
func KeptName(name string) bool {
	dev, ino, ok := strings.Cut(name, "-")
	hex := func(s string) bool { return s != "" && len(s) <= 16 && strings.Trim(s, hexDigits) == "" }
	return ok && hex(dev) && hex(ino)
}
