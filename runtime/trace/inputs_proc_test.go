package trace

import "testing"

// A signal's value has an upper half only where that is not 0: programs that queue numbers have none.
func TestSiginfoInput(t *testing.T) {
	v := func(n byte) byte { return n<<1 | 1 }
	row := rowByName(t, "sigwaitinfo")
	for _, c := range []struct {
		b    []byte
		want int
	}{
		{[]byte{v(20), v(1), v(100), v(0), v(8)}, 5},
		{[]byte{v(20), v(1), v(100), v(0), v(8), v(3)}, 6},
	} {
		f, ok := ParseInput(nil, row, 0, c.b)
		if !ok || len(f) != c.want || f[0].Num != 10 || int64(f[4].Num) != 4 {
			t.Errorf("%x: %v, parses: %v", c.b, f, ok)
		}
	}
	for _, b := range [][]byte{{v(20), v(1), v(100), v(0)}, {v(20), v(1), v(100), v(0), v(8), v(3), v(3)}} {
		if f, ok := ParseInput(nil, row, 0, b); ok {
			t.Errorf("%x parses as %v", b, f)
		}
	}
}

func rowByName(t *testing.T, name string) *Row {
	t.Helper()
	for id := range uint64(1 << 16) {
		if r := RowOf(id); r != nil && r.Name == name {
			return r
		}
	}
	t.Fatalf("no row %s", name)
	return nil
}
