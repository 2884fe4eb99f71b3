package demand

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// What is written behind comes out whole and in order, however it was put in.
func TestBehind(t *testing.T) {
	var out, want bytes.Buffer
	b := newBehind(&out)
	for i := range 300_000 {
		w, err := b.room(16)
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint64(w, uint64(i))
		binary.LittleEndian.PutUint64(w[8:], ^uint64(i))
		want.Write(w)
		if i%1000 == 0 {
			long := bytes.Repeat([]byte{byte(i / 1000)}, i)
			if n, err := b.Write(long); n != i || err != nil {
				t.Fatal(n, err)
			}
			want.Write(long)
		}
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes, which are not the %d that were written", out.Len(), want.Len())
	}
}

type fullDisk struct{ left int }

func (f *fullDisk) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

var errFull = errors.New("full")

// Where nothing more can be written, whoever writes hears of it soon, and at the end in any case.
func TestBehindFull(t *testing.T) {
	for _, left := range []int{0, 1, 5*behindSize + 1} {
		b := newBehind(&fullDisk{left: left})
		n := 0
		for ; n < 1000; n++ {
			if _, err := b.Write(make([]byte, behindSize/2)); err != nil {
				break
			}
		}
		if n > (left/behindSize+2*behindBuffers)*2 {
			t.Errorf("%d bytes: %d writes went well", left, n)
		}
		for range 2 {
			if err := b.end(); err != errFull {
				t.Errorf("%d bytes: it ended with %v", left, err)
			}
		}
	}
}
