package demand

import "io"

// behind writes from a goroutine of its own what it is given: the kernel takes its time over hundreds of megabytes, in which more of
// them can be made. Who made one ends it.
type behind struct {
	buf   []byte
	n     int // of buf, filled
	full  chan []byte
	empty chan written // as many as there are buffers: nobody waits to put one in
	err   error
	ended bool
}

// written is a buffer that may be filled again, and what came of writing it.
type written struct {
	buf []byte
	err error
}

const behindBuffers, behindSize = 3, 1 << 20

func newBehind(to io.Writer) *behind {
	b := &behind{buf: make([]byte, behindSize), full: make(chan []byte), empty: make(chan written, behindBuffers)}
	for range behindBuffers - 1 {
		b.empty <- written{make([]byte, behindSize), nil}
	}
	go func() {
		defer close(b.empty)
		for data := range b.full {
			_, err := to.Write(data)
			b.empty <- written{data[:cap(data)], err}
		}
	}()
	return b
}

// room is where the next n bytes are to be put, which are few.
func (b *behind) room(n int) ([]byte, error) {
	if len(b.buf)-b.n < n {
		if err := b.hand(); err != nil {
			return nil, err
		}
	}
	b.n += n
	return b.buf[b.n-n : b.n], nil
}

// hand gives away the buffer and takes another one.
func (b *behind) hand() error {
	if b.err != nil {
		return b.err
	}
	b.full <- b.buf[:b.n]
	w := <-b.empty
	b.buf, b.n, b.err = w.buf, 0, w.err
	return b.err
}

func (b *behind) Write(data []byte) (n int, err error) {
	for n < len(data) {
		if b.n == len(b.buf) {
			if err := b.hand(); err != nil {
				return n, err
			}
		}
		k := copy(b.buf[b.n:], data[n:])
		b.n += k
		n += k
	}
	return n, nil
}

// end writes what is left, and waits until all of it has been written. It may be called again.
func (b *behind) end() error {
	if b.ended {
		return b.err
	}
	b.ended = true
	if b.err == nil && b.n > 0 {
		b.full <- b.buf[:b.n]
	}
	close(b.full)
	for w := range b.empty {
		if b.err == nil {
			b.err = w.err
		}
	}
	return b.err
}
