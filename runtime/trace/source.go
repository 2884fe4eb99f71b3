package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cespare/xxhash/v2"

	"prophet/cabi"
)

// chunkRef is a chunk's place in a trace and what its header says.
type chunkRef struct {
	base uint64
	seq  uint64
	sum  uint64
	off  int64 // of the header in its file; in a packed trace: of the frame; of a MemChunk: its number
	uid  uint32
	proc uint32
	len  uint32
	at   uint32 // packed: number of the chunk in its frame
	kind uint16
	flag uint16
	file int16 // stream number, fileMem or filePacked
}

const (
	fileMem    = -1
	filePacked = -2
)

// source is where chunks are read from: a directory or a packed file.
type source interface {
	// load reads a payload into buf, which has slack behind it, and checks it.
	load(r *chunkRef, buf []byte) ([]byte, error)
	close() error
}

// dirSource reads the stream files of a directory.
type dirSource struct {
	files [cabi.StreamFiles]*os.File
	mem   []MemChunk
}

func (s *dirSource) close() error {
	for _, f := range s.files {
		if f != nil {
			f.Close()
		}
	}
	return nil
}

func streamName(n int) string { return fmt.Sprintf("stream-%02d", n) }

func (s *dirSource) load(r *chunkRef, buf []byte) ([]byte, error) {
	buf = padded(buf, int(r.len))
	if r.file == fileMem {
		copy(buf, s.mem[r.off].Payload)
		return buf, nil
	}
	name := streamName(int(r.file))
	if _, err := s.files[r.file].ReadAt(buf[:r.len], r.off+cabi.ChunkHeader); err != nil {
		if err == io.EOF {
			return buf, &Damage{name, r.off, "chunk is cut short by the end of the file"}
		}
		return buf, fmt.Errorf("read %s: %w", name, err)
	}
	if xxhash.Sum64(buf[:r.len]) != r.sum {
		return buf, &Damage{name, r.off, "checksum of the chunk does not match"}
	}
	return buf, nil
}

// openDir indexes the stream files of dir. Damage found on the way goes to bad.
func openDir(dir string, bad func(error)) (*dirSource, []chunkRef, error) {
	s := &dirSource{}
	var refs []chunkRef
	for n := range s.files {
		path := filepath.Join(dir, streamName(n))
		st, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if !st.Mode().IsRegular() {
			bad(&Damage{streamName(n), 0, "is not a regular file"})
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			s.close()
			return nil, nil, err
		}
		s.files[n] = f
		refs, err = scanStream(f, st.Size(), n, refs, bad)
		if err != nil {
			s.close()
			return nil, nil, fmt.Errorf("read %s: %w", streamName(n), err)
		}
	}
	return s, refs, nil
}

// scanStream walks the headers of one file of this size. A chunk that another follows is taken at its header's word;
// where none follows it is checked, and when it is torn the search for the next goes on inside it.
func scanStream(f io.ReaderAt, size int64, n int, refs []chunkRef, bad func(error)) ([]chunkRef, error) {
	var head [cabi.ChunkHeader]byte
	first := len(refs)
	var off int64
	for off < size || off > size && len(refs) > first {
		var h Header
		herr := errMagic
		if off < size {
			k, err := f.ReadAt(head[:], off)
			if err != nil && err != io.EOF {
				return refs, err
			}
			h, herr = ParseHeader(head[:k])
		}
		if herr == nil {
			refs = append(refs, refOf(h, n, off))
			off += cabi.ChunkHeader + int64(h.Len)
			continue
		}
		from, torn := off, int64(-1)
		if k := len(refs) - 1; k >= first && refs[k].off+cabi.ChunkHeader+int64(refs[k].len) == off && !intact(f, &refs[k]) {
			torn = refs[k].off
			from = torn + cabi.ChunkHeader
			refs = refs[:k]
		}
		next, err := findChunk(f, from)
		if err != nil {
			return refs, err
		}
		if torn >= 0 {
			bad(&Damage{streamName(n), torn, "chunk is cut short; " + resumed(next)})
		} else {
			bad(&Damage{streamName(n), off, fmt.Sprintf("%v; %s", herr, resumed(next))})
		}
		if next < 0 {
			break
		}
		off = next
	}
	return refs, nil
}

func refOf(h Header, file int, off int64) chunkRef {
	return chunkRef{base: h.Base, seq: h.Seq, sum: h.Sum, off: off, uid: h.UID, proc: h.Proc, len: h.Len,
		kind: h.Kind, flag: h.Flags, file: int16(file)}
}

func resumed(next int64) string {
	if next < 0 {
		return "no chunk follows"
	}
	return fmt.Sprintf("reading goes on at %d", next)
}

func intact(f io.ReaderAt, r *chunkRef) bool {
	d := xxhash.New()
	n, err := io.Copy(d, io.NewSectionReader(f, r.off+cabi.ChunkHeader, int64(r.len)))
	return err == nil && n == int64(r.len) && d.Sum64() == r.sum
}

// findChunk returns where the next whole header begins at or after off; -1: nowhere.
func findChunk(f io.ReaderAt, off int64) (int64, error) {
	var magic [4]byte
	binary.LittleEndian.PutUint32(magic[:], cabi.ChunkMagic)
	r := bufio.NewReaderSize(io.NewSectionReader(f, off, 1<<62), 1<<20)
	for {
		b, err := r.Peek(1 << 20)
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return -1, err
		}
		at := 0
		for {
			i := bytes.Index(b[at:], magic[:])
			if i < 0 || at+i+cabi.ChunkHeader > len(b) {
				if i >= 0 {
					at += i
				} else {
					at = max(at, len(b)-3)
				}
				break
			}
			if _, e := ParseHeader(b[at+i:]); e == nil {
				return off + int64(at+i), nil
			}
			at += i + 1
		}
		if err == io.EOF {
			return -1, nil
		}
		r.Discard(at)
		off += int64(at)
	}
}

// order sorts chunks by thread, kind and Seq, and drops the shorter of doubles.
func order(refs []chunkRef) []chunkRef {
	slices.SortStableFunc(refs, func(a, b chunkRef) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.uid, b.uid), cmp.Compare(a.seq, b.seq), cmp.Compare(b.len, a.len))
	})
	return slices.CompactFunc(refs, func(a, b chunkRef) bool {
		return a.kind == b.kind && a.uid == b.uid && a.seq == b.seq && a.kind != cabi.ChunkControl
	})
}
