package trace

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"prophet/cabi"
)

// Writer appends chunks to the stream files of a directory, each to that of its process. Not safe for concurrent use;
// other processes may append to the same files, as each flush is one write of whole chunks.
type Writer struct {
	dir   string
	files [cabi.StreamFiles]*os.File
	bufs  [cabi.StreamFiles]*bufio.Writer
}

// NewWriter appends to the trace in dir.
func NewWriter(dir string) (*Writer, error) {
	if st, err := os.Lstat(dir); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoTrace)
	}
	return &Writer{dir: dir}, nil
}

const writerBuf = 1 << 20

// Put appends a chunk, with its length and checksum made anew.
func (w *Writer) Put(c MemChunk) error {
	if len(c.Payload) > cabi.ChunkMax {
		return fmt.Errorf("chunk of %d bytes, of at most %d", len(c.Payload), cabi.ChunkMax)
	}
	n := c.Proc % cabi.StreamFiles
	if w.files[n] == nil {
		f, err := os.OpenFile(filepath.Join(w.dir, streamName(int(n))), os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		w.files[n] = f
		w.bufs[n] = bufio.NewWriterSize(f, writerBuf)
	}
	b := w.bufs[n]
	if need := cabi.ChunkHeader + len(c.Payload); need > b.Available() {
		if err := b.Flush(); err != nil {
			return fmt.Errorf("write %s: %w", streamName(int(n)), err)
		}
		if need > writerBuf {
			_, err := w.files[n].Write(AppendChunk(nil, c))
			return err
		}
	}
	c.Seal(c.Payload)
	b.Write(AppendHeader(b.AvailableBuffer(), c.Header))
	_, err := b.Write(c.Payload)
	return err
}

// Flush writes what is buffered.
func (w *Writer) Flush() error {
	var errs []error
	for i, b := range w.bufs {
		if b != nil {
			if err := b.Flush(); err != nil {
				errs = append(errs, fmt.Errorf("write %s: %w", streamName(i), err))
			}
		}
	}
	return errors.Join(errs...)
}

// Close flushes and closes the files.
func (w *Writer) Close() error {
	err := w.Flush()
	for i, f := range w.files {
		if f != nil {
			err = errors.Join(err, f.Close())
			w.files[i], w.bufs[i] = nil, nil
		}
	}
	return err
}
