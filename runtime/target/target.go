package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// A Target is a machine that demand is issued on. One goroutine uses it at a time; Tell and Close may be called beside Issue.
type Target struct {
	spec Spec

	mu      sync.Mutex
	link    *link
	calls   map[uint32]*call
	last    uint32
	err     error         // why the link is lost
	lost    chan struct{} // closed when it is
	issuing uint32        // the id of what is being issued; 0: nothing
}

// call is a request that has not been answered.
type call struct {
	frames chan frame
	done   chan struct{} // closed when nobody waits any more
}

type frame struct {
	Header
	payload []byte
}

// Open connects to a target and starts replayd there. What it costs to wait for (a password, a queue of jobs) it waits for,
// until ctx ends.
func Open(ctx context.Context, s Spec) (*Target, error) {
	t := &Target{spec: s}
	return t, t.Reconnect(ctx)
}

// Spec is what the target was opened with.
func (t *Target) Spec() Spec { return t.spec }

// Reconnect gives up the connection, which is lost or not, and makes a new one. Nothing of what was there is there any more.
func (t *Target) Reconnect(ctx context.Context) error {
	t.mu.Lock()
	old := t.link
	if old != nil && t.err == nil { // whoever still waits is not answered any more
		t.err = fmt.Errorf("target %s: %w: it is connected anew", t.spec.Text, ErrLost)
		close(t.lost)
	}
	t.link = nil
	t.mu.Unlock()
	if old != nil {
		old.kill()
	}
	l, err := dial(ctx, t.spec)
	if err != nil {
		return err
	}
	lost := make(chan struct{})
	t.mu.Lock()
	t.link, t.calls, t.err, t.lost, t.issuing = l, map[uint32]*call{}, nil, lost, 0
	t.mu.Unlock()
	go l.wire.Beat(l.stop, func() { t.lose(l, fmt.Errorf("nothing has come for %v", LostAfter)) })
	go t.read(l, lost)
	return nil
}

// lose ends a link because of err. Only the first reason counts.
func (t *Target) lose(l *link, err error) {
	t.mu.Lock()
	if t.link == l && t.err == nil {
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
			err = errors.New("it was closed from there")
		}
		t.err = fmt.Errorf("target %s: %w: %w%s", t.spec.Text, ErrLost, err, l.said.quote())
		close(t.lost)
	}
	t.mu.Unlock()
	go l.kill()
}

// read hands the target's frames to those who wait for them.
func (t *Target) read(l *link, lost chan struct{}) {
	for {
		h, payload, err := l.wire.Read()
		if err != nil {
			t.lose(l, err)
			return
		}
		if h.Op == OpBeat {
			continue
		}
		t.mu.Lock()
		c := t.calls[h.ID]
		t.mu.Unlock()
		if c == nil {
			continue // its caller has gone
		}
		select {
		case c.frames <- frame{h, payload}:
		case <-c.done:
		case <-lost:
		}
	}
}

// begin sends a request; the caller ends it.
func (t *Target) begin(h Header) (*call, uint32, error) {
	c := &call{frames: make(chan frame, 4), done: make(chan struct{})}
	t.mu.Lock()
	if t.link == nil || t.err != nil {
		err := t.err
		t.mu.Unlock()
		if err == nil {
			err = fmt.Errorf("target %s: %w", t.spec.Text, ErrLost)
		}
		return nil, 0, err
	}
	t.last++
	h.ID = t.last
	t.calls[h.ID] = c
	l := t.link
	t.mu.Unlock()
	if err := l.wire.Write(h, nil); err != nil {
		t.end(h.ID, c)
		t.lose(l, err)
		return nil, 0, t.reason()
	}
	return c, h.ID, nil
}

func (t *Target) end(id uint32, c *call) {
	t.mu.Lock()
	delete(t.calls, id)
	t.mu.Unlock()
	close(c.done)
}

func (t *Target) reason() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	return fmt.Errorf("target %s: %w", t.spec.Text, ErrLost)
}

// wait is the next frame of a call.
func (t *Target) wait(ctx context.Context, c *call) (frame, error) {
	t.mu.Lock()
	lost := t.lost
	t.mu.Unlock()
	select {
	case f := <-c.frames:
		return f, nil
	default:
	}
	select {
	case f := <-c.frames:
		return f, nil
	case <-lost:
		return frame{}, t.reason()
	case <-ctx.Done():
		return frame{}, ctx.Err()
	}
}

// failure is the error of an answer that is one.
func (t *Target) failure(f frame) error {
	err := fmt.Errorf("target %s: %s", t.spec.Text, f.Text)
	switch f.Code {
	case CodeFull:
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	case CodeAbsent:
		return fmt.Errorf("%w: %w", err, os.ErrNotExist)
	}
	return err
}

// ask makes a request and gives each frame before the last answer to more, which may be nil.
func (t *Target) ask(ctx context.Context, h Header, more func(frame) error) (Header, error) {
	c, id, err := t.begin(h)
	if err != nil {
		return Header{}, err
	}
	defer t.end(id, c)
	return t.answer(ctx, c, more)
}

func (t *Target) answer(ctx context.Context, c *call, more func(frame) error) (Header, error) {
	for {
		f, err := t.wait(ctx, c)
		switch {
		case err != nil:
			return f.Header, err
		case f.Op == OpFail:
			return f.Header, t.failure(f)
		case f.Op == OpOK:
			return f.Header, nil
		case more != nil:
			if err := more(f); err != nil {
				return f.Header, err
			}
		}
	}
}

// Hello asks what machine the target is; with calibrate it is measured, too, which takes a few seconds, and progress (which
// may be nil) hears how far that is.
func (t *Target) Hello(ctx context.Context, calibrate bool, progress func(done, all int64)) (*Info, error) {
	h, err := t.ask(ctx, Header{Op: OpHello, Calibrate: calibrate}, func(f frame) error {
		var done, all int64
		if _, err := fmt.Sscanf(f.Text, "%d of %d", &done, &all); err == nil && progress != nil {
			progress(done, all)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if h.Info == nil || h.Info.CPUs < 1 || h.Info.Free < 0 {
		return nil, fmt.Errorf("target %s: %w: it says nothing of itself", t.spec.Text, ErrProtocol)
	}
	if m := h.Info.Machine; m != nil {
		// As distrusted as a file.
		if err := m.Check(); err != nil {
			return nil, fmt.Errorf("target %s: its calibration: %w", t.spec.Text, err)
		}
	} else if calibrate {
		return nil, fmt.Errorf("target %s: %w: it was not measured", t.spec.Text, ErrProtocol)
	}
	return h.Info, nil
}

// Put brings a file there, by the name that issues find it under in their working directory. One that is there already, as
// its content says, is not sent.
func (t *Target) Put(ctx context.Context, name string, r io.ReadSeeker) error {
	sum := sha256.New()
	size, err := io.Copy(sum, r)
	if err != nil {
		return err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := Header{Op: OpPut, Name: name, Sum: hex.EncodeToString(sum.Sum(nil))}
	if there, err := t.ask(ctx, h, nil); err != nil || there.Have {
		return err
	}
	h.Size = size
	if size == 0 {
		h.Have = true // or it would be the question again
	}
	c, id, err := t.begin(h)
	if err != nil {
		return err
	}
	defer t.end(id, c)
	t.mu.Lock()
	l := t.link
	t.mu.Unlock()
	for b := make([]byte, PayloadMax); size > 0; {
		if ctx.Err() != nil {
			// The rest of the file cannot come any more: the target must not wait for it.
			t.lose(l, ctx.Err())
			return ctx.Err()
		}
		n, err := io.ReadFull(r, b[:min(size, PayloadMax)])
		if err != nil {
			t.lose(l, err)
			return fmt.Errorf("%s changed while it was sent: %w", name, err)
		}
		select {
		case f := <-c.frames: // refused in the middle: the target drops the rest
			if f.Op == OpFail {
				return t.failure(f)
			}
		default:
		}
		if err := l.wire.Write(Header{Op: OpData, ID: id}, b[:n]); err != nil {
			t.lose(l, err)
			return t.reason()
		}
		size -= int64(n)
	}
	_, err = t.answer(ctx, c, nil)
	return err
}

// Request is what is to be issued.
type Request struct {
	Args []string // of `replayd issue`; files that were put are in its working directory
}

// Issue runs `replayd issue` there. Each line that it prints goes to line, which may be nil. When ctx ends, the issue and all
// processes of it are ended before Issue returns.
func (t *Target) Issue(ctx context.Context, r Request, line func(string)) (*Result, error) {
	c, id, err := t.begin(Header{Op: OpIssue, Args: r.Args})
	if err != nil {
		return nil, err
	}
	defer t.end(id, c)
	more := func(f frame) error {
		if line != nil && f.Op == OpLine {
			line(f.Text)
		}
		return nil
	}
	t.mu.Lock()
	t.issuing = id
	t.mu.Unlock()
	h, err := t.answer(ctx, c, more)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		stopping, cancel := context.WithTimeout(context.Background(), LostAfter)
		defer cancel()
		if _, e := t.ask(stopping, Header{Op: OpStop}, nil); e == nil {
			t.answer(stopping, c, nil)
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if h.Result == nil {
		return nil, fmt.Errorf("target %s: %w: an issue without a result", t.spec.Text, ErrProtocol)
	}
	return h.Result, nil
}

// Tell gives what is being issued a line on its standard input.
func (t *Target) Tell(ctx context.Context, line string) error {
	_, err := t.ask(ctx, Header{Op: OpTell, Text: line}, nil)
	return err
}

// Get brings the file or the directory name, which an issue made in its working directory, here: as path, which must not be
// there yet. A file of more than most bytes is refused. When it fails nothing is left of it.
func (t *Target) Get(ctx context.Context, name, path string, most int64) (err error) {
	c, id, err := t.begin(Header{Op: OpGet, Name: name})
	if err != nil {
		return err
	}
	defer t.end(id, c)
	f, err := t.wait(ctx, c)
	if err == nil && f.Op == OpFail {
		err = t.failure(f)
	}
	if err != nil {
		return err
	}
	if f.Op != OpLine {
		return fmt.Errorf("target %s: %w: %q for a file", t.spec.Text, ErrProtocol, f.Op)
	}
	r, w := io.Pipe()
	go func() {
		_, err := t.answer(ctx, c, func(f frame) error { _, err := w.Write(f.payload); return err })
		w.CloseWithError(err) // nil: the end
	}()
	if f.Tree {
		err = untar(r, path)
	} else {
		err = save(r, path, most)
	}
	if err != nil {
		r.CloseWithError(err)
		return err
	}
	// To the end: what comes behind a tar's last entry, and the last answer, without which it may not be all.
	if _, err = io.Copy(io.Discard, r); err != nil {
		os.RemoveAll(path)
	}
	return err
}

// Clean removes what issues made there.
func (t *Target) Clean(ctx context.Context) error {
	_, err := t.ask(ctx, Header{Op: OpClean}, nil)
	return err
}

// Close ends the connection; the target ends what it does and removes everything.
func (t *Target) Close() error {
	t.mu.Lock()
	l := t.link
	t.mu.Unlock()
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), LostAfter)
	defer cancel()
	_, err := t.ask(ctx, Header{Op: OpBye}, nil)
	t.mu.Lock()
	t.link = nil
	if t.err == nil {
		t.err = fmt.Errorf("target %s is closed: %w", t.spec.Text, ErrLost)
		close(t.lost)
	}
	t.mu.Unlock()
	// The command ends when everything is removed there; then there is nothing to kill.
	l.in.Close()
	waited := make(chan struct{})
	go func() { l.kill(); close(waited) }()
	select {
	case <-waited:
	case <-time.After(LostAfter):
	}
	return err
}
