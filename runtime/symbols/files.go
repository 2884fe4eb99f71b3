package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// files are those that tell of one module: the module itself and what lies beside it for debuggers. Any may be nil.
type files struct {
	self, debug *elf.File
	open        []*os.File
}

// Bounds of what is read of a file, and of what its compressed sections may become.
const (
	fileMax    = 4 << 30
	sectionMax = 1 << 29
	dwarfMax   = 384 << 20 // of all sections of one file
)

func (f *files) close() {
	for _, o := range f.open {
		o.Close()
	}
}

// regular opens a regular file, and nothing that would wait or do something when opened.
func (f *files) regular(path string) (*elf.File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > fileMax {
		return nil, fmt.Errorf("%s is no file to read", path)
	}
	o, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	e, err := elf.NewFile(o)
	if err != nil {
		o.Close()
		return nil, err
	}
	f.open = append(f.open, o)
	return e, nil
}

var errOther = errors.New("the file there is another one than in the run (its build id differs); names are missing")

// open finds the files of a module. One without build id is taken at its path's word.
func (t *Table) open(m Module) (*files, error) {
	f := &files{}
	var why error
	if filepath.IsAbs(m.Path) {
		e, err := f.regular(m.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			why = errors.New("the file is gone; names are missing")
		case err != nil:
			why = err
		case m.BuildID != "" && buildID(e) != m.BuildID:
			why = errOther
		default:
			f.self = e
		}
	} else {
		why = errors.New("it is no file (memory that the kernel or the program made)")
	}
	if f.self == nil || f.self.Section(".debug_info") == nil && f.self.Section(".zdebug_info") == nil {
		f.debug = t.separate(f, m)
	}
	if f.self == nil && f.debug == nil {
		f.close()
		return nil, why
	}
	return f, nil
}

// separate finds the file with what was stripped: by build id, else by the name and checksum that the module has of it.
func (t *Table) separate(f *files, m Module) *elf.File {
	if len(m.BuildID) >= 2 {
		id := hex.EncodeToString([]byte(m.BuildID))
		for _, dir := range t.Dirs {
			if e, err := f.regular(filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug")); err == nil && buildID(e) == m.BuildID {
				return e
			}
		}
	}
	if f.self == nil {
		return nil
	}
	name, sum := debugLink(f.self)
	if name == "" {
		return nil
	}
	dir := filepath.Dir(m.Path)
	paths := []string{filepath.Join(dir, name), filepath.Join(dir, ".debug", name)}
	for _, d := range t.Dirs {
		paths = append(paths, filepath.Join(d, dir, name))
	}
	for _, p := range paths {
		if p == m.Path {
			continue
		}
		if e, err := f.regular(p); err == nil && crc(f.open[len(f.open)-1]) == sum {
			return e
		}
	}
	return nil
}

// debugLink is the name and the checksum of the file that a stripped one names. The name is of a file, not a path.
func debugLink(e *elf.File) (string, uint32) {
	s := e.Section(".gnu_debuglink")
	if s == nil || s.FileSize > 4096 {
		return "", 0
	}
	b, err := s.Data()
	if err != nil || len(b) < 8 {
		return "", 0
	}
	name, _, ok := bytes.Cut(b[:len(b)-4], []byte{0})
	if !ok || len(name) == 0 || bytes.ContainsRune(name, '/') || string(name) == "." || string(name) == ".." {
		return "", 0
	}
	return string(name), e.ByteOrder.Uint32(b[len(b)-4:])
}

func crc(f *os.File) uint32 {
	h := crc32.NewIEEE()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, fileMax)); err != nil {
		return 0
	}
	return h.Sum32()
}

// buildID is the bytes of the file's build id.
func buildID(e *elf.File) string {
	for _, s := range e.Sections {
		if s.Type != elf.SHT_NOTE || s.FileSize > 1<<16 {
			continue
		}
		b, err := s.Data()
		if err != nil {
			continue
		}
		for len(b) >= 12 {
			name, desc := uint64(e.ByteOrder.Uint32(b)), uint64(e.ByteOrder.Uint32(b[4:]))
			kind := e.ByteOrder.Uint32(b[8:])
			at := 12 + (name+3)&^3
			if at+desc > uint64(len(b)) {
				break
			}
			if kind == 3 && string(b[12:12+name]) == "GNU\x00" {
				return string(b[at : at+desc])
			}
			b = b[min(at+(desc+3)&^3, uint64(len(b))):]
		}
	}
	return ""
}
