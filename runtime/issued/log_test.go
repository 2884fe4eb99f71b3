package issued

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"prophet/cabi"
)

// write makes a log of threads of so many operations.
func write(t testing.TB, counts ...int) (string, [][]cabi.ProgLog) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	w, err := Create(path, Head{Threads: uint32(len(counts)), Begin: 1000, End: 5000, Hz: 1e9, Nanos: 4000})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	var all [][]cabi.ProgLog
	for i, n := range counts {
		if err := w.Thread(cabi.ProgResultThread{Done: uint64(n), At: uint64(i)}); err != nil {
			t.Fatal(err)
		}
		var list []cabi.ProgLog
		now, op, seq := uint64(2000), uint64(i*100), uint64(0)
		for range n {
			l := cabi.ProgLog{Begin: now, End: now + rnd.Uint64N(300), Op: op, Result: int64(rnd.IntN(7)) - 3}
			if rnd.IntN(2) == 0 {
				seq += rnd.Uint64N(5) + 1
				l.Seq = seq
			}
			if rnd.IntN(50) == 0 {
				op -= rnd.Uint64N(100)
				l.Result = -1 << 63
			}
			now, op = l.End+rnd.Uint64N(90), op+1
			list = append(list, l)
			if err := w.Add(l); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, list)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path, all
}

func TestLog(t *testing.T) {
	path, all := write(t, 3, 0, 50000, 1)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 || st.Size() > 50000*8 {
		t.Errorf("%v %v", st, err)
	}
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if len(l.Threads) != 4 || l.Nanos != 4000 {
		t.Fatalf("%+v", l.Head)
	}
	for i, want := range all {
		if l.Threads[i].Logged != uint64(len(want)) || l.Threads[i].At != uint64(i) {
			t.Errorf("thread %d: %+v", i, l.Threads[i])
		}
		it := l.Iter(i)
		var got cabi.ProgLog
		for k := range want {
			if err := it.Next(&got); err != nil || got != want[k] {
				t.Fatalf("thread %d, operation %d: %+v, not %+v; %v", i, k, got, want[k], err)
			}
		}
		if err := it.Next(&got); err != io.EOF {
			t.Errorf("behind the end: %v", err)
		}
	}
}

// Whatever the bytes, a log is read within bounds or refused.
func FuzzLog(f *testing.F) {
	path, _ := write(f, 3, 0, 40)
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add(b[:60])
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		defer l.Close()
		for i := range l.Threads {
			it := l.Iter(i)
			var op cabi.ProgLog
			for n := uint64(0); ; n++ {
				err := it.Next(&op)
				if err == nil && n < l.Threads[i].Logged {
					continue
				}
				if err == io.EOF && n == l.Threads[i].Logged || errors.Is(err, errLog) {
					break
				}
				t.Fatalf("thread %d, operation %d of %d: %v", i, n, l.Threads[i].Logged, err)
			}
		}
	})
}
