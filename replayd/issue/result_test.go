package issue

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"prophet/cabi"
	"prophet/runtime/issued"
)

// Whatever the engine left, its result is read within bounds or refused, and the log that is made of it can be read.
func FuzzResult(f *testing.F) {
	dir := f.TempDir()
	q := Request{Program: filepath.Join(dir, "program"), Log: filepath.Join(dir, "log")}
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, cabi.Prog{Magic: cabi.ProgMagic, Version: cabi.ProgVersion})
	if err := os.WriteFile(q.Program, b.Bytes(), 0o600); err != nil {
		f.Fatal(err)
	}
	b.Reset()
	for _, v := range []any{cabi.ProgResult{Magic: cabi.ResultMagic, Version: cabi.ProgVersion, Threads: 2, Hz: 1000}, cabi.ProgResultThread{Logged: 2},
		cabi.ProgResultThread{Logged: 1}, cabi.ProgLog{Begin: 1, End: 2}, cabi.ProgLog{Begin: 5, End: 3, Op: 7}, cabi.ProgLog{Seq: 1}} {
		binary.Write(&b, binary.LittleEndian, v)
	}
	if r, err := readResult(bytes.NewReader(b.Bytes()), q); err != nil || r.Hz != 1000 {
		f.Fatalf("%+v, %v", r, err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()-1])
	f.Add(b.Bytes()[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := readResult(bytes.NewReader(b), q); err != nil {
			return
		}
		l, err := issued.Open(q.Log)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for i := range l.Threads {
			var op cabi.ProgLog
			it := l.Iter(i)
			for it.Next(&op) == nil {
			}
		}
	})
}
