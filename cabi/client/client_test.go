package client

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// useBuilt names the one that make built.
func useBuilt(t testing.TB) {
	path, err := filepath.Abs("../../build/libprophet.so")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("run 'make' first: %v", err)
	}
	t.Setenv("PROPHET_LIB", path)
}

// TestVersion: the library says which it is, and tells what it cannot do here.
func TestVersion(t *testing.T) {
	useBuilt(t)
	release, abi, err := Version()
	if err != nil || release != cabi.Version || abi < 1 {
		t.Errorf("version %q, interface %d, %v", release, abi, err)
	}
	if Recording() || Start() == nil || Stop() == nil {
		t.Error("this process is not recorded, and is told that it is")
	}
	Mark("nothing happens")
}

// byGo is what runtime/trace reads, as the lines of byC.
func byGo(path string) (lines []string, err error) {
	t, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	m := t.Merge(t.Threads...)
	for {
		r, err := m.Next()
		switch {
		case len(t.Threads) == 0 || err == io.EOF:
			return lines, nil
		case err != nil:
			lines = append(lines, "damage")
			continue
		case r.Tag == cabi.TagMark:
			lines = append(lines, fmt.Sprintf("%s %d %d mark %q", r.Thread.Name, r.N, t.Clock.Since(r.Begin), r.Text[0]))
			continue
		case r.Tag != trace.TagEvent:
			continue
		}
		s := fmt.Sprintf("%s %d %d+%d %d seq %d pc %x note %d", r.Thread.Name, r.N, t.Clock.Since(r.Begin), t.Clock.NS(r.End-r.Begin), r.Call, r.Seq, r.PC, r.Note)
		for _, f := range r.Fields {
			switch f.Kind {
			case trace.FieldPath, trace.FieldStr:
				s += fmt.Sprintf(" %s=%q", f.Name, f.Text)
			default:
				s += fmt.Sprintf(" %s=%d", f.Name, f.Num)
			}
		}
		lines = append(lines, s)
	}
}

func byC(path string) (lines []string, err error) {
	t, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	for e, err := range t.Events() {
		if _, ok := err.(*Damage); ok {
			lines = append(lines, "damage")
			continue
		} else if err != nil {
			return lines, err
		}
		if e.Kind == MarkSeen {
			lines = append(lines, fmt.Sprintf("%s %d %d mark %q", e.Thread, e.Number, e.Begin, e.Fields[0].Text))
			continue
		}
		s := fmt.Sprintf("%s %d %d+%d %d seq %d pc %x note %d", e.Thread, e.Number, e.Begin, e.End-e.Begin, e.CallID, e.Order, e.PC, e.Flags&255)
		row := trace.RowOf(uint64(e.CallID))
		if row == nil {
			lines = append(lines, s)
			continue
		}
		fields := e.Fields
		for _, name := range row.F {
			if name != "" {
				fields = fields[1:]
			}
		}
		for _, f := range fields {
			if f.Text != nil {
				s += fmt.Sprintf(" %s=%q", f.Name, f.Text)
			} else {
				s += fmt.Sprintf(" %s=%d", f.Name, uint64(f.Number))
			}
		}
		lines = append(lines, s)
	}
	return lines, nil
}

// chunked makes a stream of bytes: chunks with good checksums whose headers and payloads the bytes choose, so that what is
// inside of them is reached.
func chunked(data []byte) []byte {
	var out []byte
	for len(data) >= 6 {
		n := min(int(binary.LittleEndian.Uint16(data[4:])), len(data)-6)
		kind := uint16(cabi.ChunkEvents)
		if data[3]&7 == 7 {
			kind = cabi.ChunkData
		}
		out = trace.AppendChunk(out, trace.MemChunk{Header: trace.Header{Kind: kind, UID: uint32(data[0]&3) + 1, Proc: uint32(data[1] & 3),
			Seq: uint64(data[2] & 3), Base: uint64(data[3]) << 20}, Payload: data[6 : 6+n]})
		data = data[6+n:]
	}
	return append(out, data...)
}

// seed is the first bytes of a real stream's first chunks, as chunked wants them.
func seed(t testing.TB) []byte {
	var out []byte
	packed, err := trace.Open("../../runtime/trace/testdata/v1.prophet")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	dir := filepath.Join(t.TempDir(), "seed")
	if err := packed.Unpack(dir, func(err error) { t.Error(err) }, nil); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "stream-*"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		h, err := trace.ParseHeader(b)
		if err != nil {
			continue
		}
		n := min(int(h.Len), 60000)
		out = append(out, byte(h.UID), byte(h.Proc), byte(h.Seq), 0)
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
		out = append(out, b[cabi.ChunkHeader:cabi.ChunkHeader+n]...)
	}
	return out
}

// FuzzReader: whatever the bytes of a stream are, the reader in C ends, and says what the one in Go says.
func FuzzReader(f *testing.F) {
	useBuilt(f)
	s := seed(f)
	if len(s) < 500 {
		f.Fatalf("only %d bytes of seeds", len(s))
	}
	f.Add(s, true)
	f.Add(chunked(s), false)
	f.Add([]byte{}, true)
	dir := filepath.Join(f.TempDir(), "fuzz.prophet")
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		os.Mkdir(dir, 0o700)
		if whole {
			data = chunked(data)
		}
		if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(`{"ticks_hz": 1000000000, "options": {"flight": 0}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "stream-00"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		want, errGo := byGo(dir)
		got, errC := byC(dir)
		if (errGo == nil) != (errC == nil) {
			t.Fatalf("Go: %v; C: %v", errGo, errC)
		}
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Fatalf("event %d of %d and %d\nGo %s\nC  %s", i, len(want), len(got), at(want, i), at(got, i))
			}
		}
	})
}

func at(s []string, i int) string {
	if i < len(s) {
		return s[i]
	}
	return "nothing"
}

// FuzzMeta: nor does what meta.json says matter to anything but times.
func FuzzMeta(f *testing.F) {
	useBuilt(f)
	for _, s := range []string{`{"ticks_hz": 2500000000, "state": "complete"}`, `{"options":{"flight":`, `{"ticks_hz":-1`, `"\`, strings.Repeat("[", 1000)} {
		f.Add([]byte(s))
	}
	dir := filepath.Join(f.TempDir(), "meta.prophet")
	f.Fuzz(func(t *testing.T, meta []byte) {
		os.Mkdir(dir, 0o700)
		if err := os.WriteFile(filepath.Join(dir, "meta.json"), meta, 0o600); err != nil {
			t.Fatal(err)
		}
		tr, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		if _, err := tr.Next(); err != io.EOF {
			t.Errorf("the first event of a trace without any: %v", err)
		}
	})
}
