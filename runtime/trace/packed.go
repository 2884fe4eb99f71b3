package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"prophet/cabi"
)

func appendIndex(b []byte, frames []frameInfo, refs []chunkRef) []byte {
	b = AppendV(b, uint64(len(frames)))
	for _, f := range frames {
		b = AppendV(b, uint64(f.kind))
		b = AppendV(b, uint64(f.stored))
		b = AppendV(b, uint64(f.raw))
		b = binary.LittleEndian.AppendUint64(b, f.sum)
	}
	b = AppendV(b, uint64(len(refs)))
	var p chunkRef
	for _, r := range refs {
		b = AppendZ(b, r.off-p.off)
		b = AppendV(b, uint64(r.at))
		b = AppendV(b, uint64(r.kind))
		b = AppendV(b, uint64(r.flag))
		b = AppendZ(b, int64(r.uid)-int64(p.uid))
		b = AppendZ(b, int64(r.proc)-int64(p.proc))
		b = AppendZ(b, int64(r.seq-p.seq))
		b = AppendZ(b, int64(r.base-p.base))
		b = AppendV(b, uint64(r.len))
		b = binary.LittleEndian.AppendUint64(b, r.sum)
		p = r
	}
	return b
}

var errIndex = errors.New("index does not parse")

func parseIndex(b []byte) ([]frameInfo, []chunkRef, error) {
	s := small{b: b}
	eight := func() uint64 {
		if len(s.b) < 8 {
			s.bad, s.b = true, nil
			return 0
		}
		v := le64(s.b)
		s.b = s.b[8:]
		return v
	}
	n := s.v()
	if n > uint64(len(s.b)) {
		return nil, nil, errIndex
	}
	frames := make([]frameInfo, 0, n)
	off := int64(len(packMagic))
	for range n {
		f := frameInfo{off: off, kind: uint32(s.v())}
		stored, raw := s.v(), s.v()
		f.sum = eight()
		if s.bad || stored > frameMax || raw > frameMax {
			return nil, nil, errIndex
		}
		f.stored, f.raw = uint32(stored), uint32(raw)
		off += frameHead + int64(stored)
		frames = append(frames, f)
	}
	n = s.v()
	if n > uint64(len(s.b)) {
		return nil, nil, errIndex
	}
	refs := make([]chunkRef, 0, n)
	var p chunkRef
	for range n {
		r := chunkRef{file: filePacked}
		r.off = p.off + s.z()
		at := s.v()
		r.kind = uint16(s.v())
		r.flag = uint16(s.v())
		r.uid = uint32(int64(p.uid) + s.z())
		r.proc = uint32(int64(p.proc) + s.z())
		r.seq = p.seq + uint64(s.z())
		r.base = p.base + uint64(s.z())
		l := s.v()
		r.sum = eight()
		if s.bad || r.off < 0 || r.off >= int64(len(frames)) || at > 1<<31 || l > cabi.ChunkMax || r.kind < cabi.ChunkEvents || r.kind > cabi.ChunkControl {
			return nil, nil, errIndex
		}
		r.at, r.len = uint32(at), uint32(l)
		refs = append(refs, r)
		p = r
	}
	if len(s.b) != 0 {
		return nil, nil, errIndex
	}
	return frames, refs, nil
}

// cacheBytes is how much of unpacked frames is kept at hand.
const cacheBytes = 96 << 20

// packedSource reads the frames of a packed trace. Safe for concurrent use.
type packedSource struct {
	f      io.ReaderAt
	c      io.Closer
	size   int64
	path   string
	frames []frameInfo
	dec    *zstd.Decoder

	mu    sync.Mutex
	cache map[int64]*openFrame
	held  int
	tick  uint64
}

type openFrame struct {
	heads []Header
	start []int
	data  []byte
	used  uint64
}

func openPacked(path string, t *Trace) (*packedSource, []chunkRef, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	p, refs, err := newPacked(f, st.Size(), path, t)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	p.c = f
	return p, refs, nil
}

func newPacked(f io.ReaderAt, size int64, path string, t *Trace) (*packedSource, []chunkRef, error) {
	var magic [len(packMagic)]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil || string(magic[:]) != packMagic {
		if !packedBehind(f, size) {
			return nil, nil, fmt.Errorf("%s: %w", path, ErrNoTrace)
		}
		t.addDamage(&Damage{path, 0, "the head of the file has changed; what follows is a packed trace"})
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(2*frameMax), zstd.WithDecoderMaxWindow(frameMax))
	if err != nil {
		return nil, nil, err
	}
	p := &packedSource{f: f, size: size, path: path, dec: dec, cache: map[int64]*openFrame{}}
	refs, err := p.index()
	if err != nil {
		if !IsDamage(err) {
			return nil, nil, err
		}
		t.addDamage(err)
		if refs, err = p.rescan(t.addDamage); err != nil {
			return nil, nil, err
		}
	}
	for _, fr := range p.frames {
		// The index tells what the frames' own headers do, so reading goes on without them.
		var head [frameHead]byte
		if _, err := f.ReadAt(head[:], fr.off); err == nil {
			if _, ok := parseFrameHead(head[:], fr.off); !ok {
				t.addDamage(p.bad(fr.off, "the frame's header has changed; it is read by the index"))
			}
		}
		if fr.kind != frameMeta {
			continue
		}
		b, err := p.unzip(fr)
		if err == nil {
			if t.Meta, err = ParseMeta(b); err != nil {
				err = p.bad(fr.off, "meta: "+err.Error())
			}
		}
		if err != nil && !IsDamage(err) {
			return nil, nil, err
		}
		if err != nil {
			t.addDamage(err)
		}
	}
	return p, refs, nil
}

// packedBehind says whether a file whose head is not a packed trace's is one all the same: by its trailer, or by the first
// frame's header, which have checksums.
func packedBehind(f io.ReaderAt, size int64) bool {
	var trail [trailerLen]byte
	if size >= trailerLen {
		if _, err := f.ReadAt(trail[:], size-trailerLen); err == nil && goodTrailer(trail[:]) {
			return true
		}
	}
	var head [frameHead]byte
	if _, err := f.ReadAt(head[:], int64(len(packMagic))); err != nil {
		return false
	}
	_, ok := parseFrameHead(head[:], int64(len(packMagic)))
	return ok
}

func goodTrailer(b []byte) bool { return le64(b) == trailMagic && le64(b[24:]) == xxhash.Sum64(b[:24]) }

func (p *packedSource) bad(off int64, why string) error { return &Damage{p.path, off, why} }

func (p *packedSource) close() error {
	p.dec.Close()
	if p.c != nil {
		return p.c.Close()
	}
	return nil
}

// index reads the trailer and the index frame.
func (p *packedSource) index() ([]chunkRef, error) {
	var trail [trailerLen]byte
	at := p.size - trailerLen
	if at < 0 {
		return nil, p.bad(0, "file is cut short")
	}
	if _, err := p.f.ReadAt(trail[:], at); err != nil {
		return nil, p.bad(at, "trailer: "+err.Error())
	}
	if !goodTrailer(trail[:]) {
		return nil, p.bad(at, "no trailer at the end: the file is cut short or changed; reading its frames one by one")
	}
	if v := le64(trail[8:]); v == 0 || v > cabi.FormatVersion {
		return nil, fmt.Errorf("%s: trace of format %d; this program reads up to %d", p.path, v, cabi.FormatVersion)
	}
	off := int64(le64(trail[16:]))
	var head [frameHead]byte
	if off < 0 || off > at-frameHead {
		return nil, p.bad(at, "trailer points outside of the file")
	}
	if _, err := p.f.ReadAt(head[:], off); err != nil {
		return nil, p.bad(off, err.Error())
	}
	fr, ok := parseFrameHead(head[:], off)
	if !ok || fr.kind != frameIndex {
		return nil, p.bad(off, "no index where the trailer says; reading the frames one by one")
	}
	b, err := p.unzip(fr)
	if err != nil {
		return nil, err
	}
	frames, refs, err := parseIndex(b)
	if err != nil {
		return nil, p.bad(off, err.Error())
	}
	p.frames = frames
	return refs, nil
}

// rescan finds the frames without the index.
func (p *packedSource) rescan(bad func(error)) ([]chunkRef, error) {
	var refs []chunkRef
	buf := make([]byte, 1<<20)
	p.frames = nil
	for off := int64(len(packMagic)); off+frameHead <= p.size; {
		n, err := p.f.ReadAt(buf, off)
		if n < frameHead {
			break
		}
		_ = err // the end of the file shows in n
		b := buf[:n]
		i := 0
		var fr frameInfo
		ok := false
		for ; i+frameHead <= len(b); i++ {
			if b[i] == byte(frameMagic&0xff) {
				if fr, ok = parseFrameHead(b[i:], off+int64(i)); ok {
					break
				}
			}
		}
		off += int64(i)
		if !ok {
			continue
		}
		off += frameHead + int64(fr.stored)
		if off > p.size {
			bad(p.bad(fr.off, "frame is cut short by the end of the file"))
			break
		}
		no := int64(len(p.frames))
		p.frames = append(p.frames, fr)
		if fr.kind != frameEvents && fr.kind != framePlain {
			continue
		}
		o, err := p.open(no)
		if err != nil {
			if !IsDamage(err) {
				return refs, err
			}
			bad(err)
			if o == nil {
				continue
			}
		}
		for at, h := range o.heads {
			r := refOf(h, filePacked, no)
			r.at = uint32(at)
			refs = append(refs, r)
		}
	}
	return refs, nil
}

// unzip reads a frame's bytes, checked.
func (p *packedSource) stored(fr frameInfo) ([]byte, error) {
	if fr.off+frameHead+int64(fr.stored) > p.size {
		return nil, p.bad(fr.off, "frame is cut short by the end of the file")
	}
	b := make([]byte, fr.stored)
	if _, err := p.f.ReadAt(b, fr.off+frameHead); err != nil {
		return nil, fmt.Errorf("read %s: %w", p.path, err)
	}
	if xxhash.Sum64(b) != fr.sum {
		return nil, p.bad(fr.off, "checksum of the frame does not match")
	}
	return b, nil
}

func (p *packedSource) unzip(fr frameInfo) ([]byte, error) {
	b, err := p.stored(fr)
	if err != nil {
		return nil, err
	}
	out, err := p.dec.DecodeAll(b, make([]byte, 0, min(fr.raw, 2<<20)))
	if err != nil {
		return nil, p.bad(fr.off, "frame does not unpack: "+err.Error())
	}
	if len(out) != int(fr.raw) {
		return nil, p.bad(fr.off, "frame unpacks to another length than it says")
	}
	return out, nil
}

// open unpacks a frame of chunks, or finds it in the cache. With an error the chunks before the damage are returned.
func (p *packedSource) open(no int64) (*openFrame, error) {
	p.mu.Lock()
	if o := p.cache[no]; o != nil {
		p.tick++
		o.used = p.tick
		p.mu.Unlock()
		return o, nil
	}
	p.mu.Unlock()
	fr := p.frames[no]
	o := &openFrame{}
	var err error
	switch fr.kind {
	case frameEvents:
		var b []byte
		if b, err = p.stored(fr); err != nil {
			return nil, err
		}
		o.heads, o.data, err = decodeEvents(p.dec, b, make([]byte, 0, min(int(fr.raw), 2<<20)+slack), int(fr.raw))
		if err != nil {
			err = p.bad(fr.off, err.Error())
		}
		at := 0
		for _, h := range o.heads {
			o.start = append(o.start, at)
			at += int(h.Len)
		}
	case framePlain:
		if o.data, err = p.unzip(fr); err != nil {
			return nil, err
		}
		for at := 0; at < len(o.data); {
			h, herr := ParseHeader(o.data[at:])
			if herr == nil && int(h.Len) > len(o.data)-at-cabi.ChunkHeader {
				herr = errLong
			}
			if herr != nil {
				err = p.bad(fr.off, herr.Error())
				break
			}
			o.heads = append(o.heads, h)
			o.start = append(o.start, at+cabi.ChunkHeader)
			at += cabi.ChunkHeader + int(h.Len)
		}
	default:
		return nil, p.bad(fr.off, "frame holds no chunks")
	}
	if err != nil {
		return o, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held+len(o.data) > cacheBytes && len(p.cache) > 0 {
		old, key := (*openFrame)(nil), int64(0)
		for k, c := range p.cache {
			if old == nil || c.used < old.used {
				old, key = c, k
			}
		}
		delete(p.cache, key)
		p.held -= len(old.data)
	}
	if p.cache[no] == nil {
		p.tick++
		o.used = p.tick
		p.cache[no] = o
		p.held += len(o.data)
	}
	return o, nil
}

func (p *packedSource) load(r *chunkRef, buf []byte) ([]byte, error) {
	o, err := p.open(r.off)
	if o == nil {
		return buf, err
	}
	if int(r.at) >= len(o.heads) {
		if err == nil {
			err = p.bad(p.frames[r.off].off, fmt.Sprintf("frame has no chunk %d", r.at))
		}
		return buf, err
	}
	if o.heads[r.at].Len != r.len {
		return buf, p.bad(p.frames[r.off].off, fmt.Sprintf("chunk %d is not as long as the index says", r.at))
	}
	buf = padded(buf, int(r.len))
	at := o.start[r.at]
	copy(buf[:r.len], o.data[at:])
	if xxhash.Sum64(buf[:r.len]) != r.sum {
		return buf, p.bad(p.frames[r.off].off, fmt.Sprintf("checksum of chunk %d does not match", r.at))
	}
	return buf, nil
}

// kept calls fn with each piece of each kept file.
func (p *packedSource) kept(bad func(error), fn func(name string, off int64, piece []byte) error) error {
	for _, fr := range p.frames {
		if fr.kind != frameKept {
			continue
		}
		b, err := p.unzip(fr)
		if err != nil {
			if !IsDamage(err) {
				return err
			}
			bad(err)
			continue
		}
		s := small{b: b}
		name, off := string(s.s()), s.v()
		if s.bad || len(name) > keptNameMax || !KeptName(name) || off > 1<<62 {
			bad(p.bad(fr.off, "piece of a kept file does not parse"))
			continue
		}
		if err := fn(name, int64(off), s.b); err != nil {
			return err
		}
	}
	return nil
}

func (p *packedSource) verifyKept(bad func(error)) error {
	return p.kept(bad, func(string, int64, []byte) error { return nil })
}

// Unpack writes the trace as a directory, which must not exist yet. What cannot be read is left out and told to bad.
func (t *Trace) Unpack(dir string, bad func(error), prog Progress) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	w, err := NewWriter(dir)
	if err != nil {
		return err
	}
	defer w.Close()
	var all, done int64
	for _, th := range t.Threads {
		all += th.Bytes
	}
	var buf []byte
	put := func(refs []chunkRef) error {
		for i := range refs {
			r := &refs[i]
			b, err := t.src.load(r, buf)
			if err != nil {
				if !IsDamage(err) {
					return err
				}
				bad(err)
				continue
			}
			buf = b
			if err := w.Put(MemChunk{r.header(), b[:r.len]}); err != nil {
				return err
			}
			if done += int64(r.len) + cabi.ChunkHeader; prog != nil {
				prog(done, all)
			}
		}
		return nil
	}
	for _, th := range t.Threads {
		if err := put(th.chunks); err != nil {
			return err
		}
	}
	if err := put(t.data); err != nil {
		return err
	}
	if err := put(t.control); err != nil {
		return err
	}
	if err := t.CopyKept(dir, bad, nil); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return WriteMeta(dir, t.Meta)
}
