// Package target is the home side of a target: the machine that a prediction asks about. It starts `replayd target` there,
// over whatever gives a two-way byte stream, and speaks with it: what machine is it, take this file, issue this, give me that.
//
// # The protocol, version 1
//
// Each side first says which protocol it speaks, in a line of its own: the target Banner, home Greeting. What comes before
// that line is not for us (a message of the day, a container's log) and is dropped, up to JunkMax bytes.
//
// Then come frames, either way: the length of a header and the length of a payload, 4 bytes each, little endian; a header,
// JSON, at most HeaderMax bytes; a payload of at most PayloadMax. A request of home's has an id, which each frame that belongs
// to it carries. The last answer to a request is `ok` or `fail`. Who has nothing to say sends a `beat` each BeatEvery. A side
// that reads nothing for LostAfter takes the other for lost. A frame out of bounds ends the connection.
//
// When the connection ends, for whatever reason, the target ends what it issues and removes all that it made.
package target

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"prophet/runtime/calibrate"
)

// The lines with which the two sides begin.
const (
	Banner   = "prophet-target 1"
	Greeting = "prophet-home 1"
)

// Bounds of the protocol.
const (
	HeaderMax  = 256 << 10
	PayloadMax = 256 << 10
	JunkMax    = 1 << 20
	ArgsMax    = 1024
	ArgMax     = 4096
	LineMax    = 64 << 10 // of an issuer's output
	BeatEvery  = time.Second
	LostAfter  = 8 * time.Second
)

// Operations: of home, of the target, and of both.
const (
	OpHello = "hello" // Calibrate: measure the machine, too; answered with Info
	OpPut   = "put"   // a file Name of Size bytes comes, whose SHA-256 is Sum; without Size: is it there?
	OpGet   = "get"   // give me the file or directory Name; a directory comes as a tar
	OpIssue = "issue" // run `replayd issue Args`; answered with Result
	OpTell  = "tell"  // a line for the standard input of what is being issued
	OpStop  = "stop"  // end what is being issued
	OpClean = "clean" // remove what issues made; files that were put stay
	OpBye   = "bye"   // remove everything and end

	OpOK   = "ok"
	OpFail = "fail"
	OpLine = "line" // a line that the issuer printed; or how far something is

	OpData = "data" // a part of a file
	OpBeat = "beat"
)

// A Header is the JSON of a frame.
type Header struct {
	Op        string   `json:"op"`
	ID        uint32   `json:"id,omitempty"`
	Name      string   `json:"name,omitempty"`
	Size      int64    `json:"size,omitempty"`
	Sum       string   `json:"sum,omitempty"`
	Args      []string `json:"args,omitempty"`
	Calibrate bool     `json:"calibrate,omitempty"`
	Tree      bool     `json:"tree,omitempty"` // what comes is a tar
	Have      bool     `json:"have,omitempty"`
	Text      string   `json:"text,omitempty"`
	Code      string   `json:"code,omitempty"` // of a failure
	Info      *Info    `json:"info,omitempty"`
	Result    *Result  `json:"result,omitempty"`
}

// Codes of failures that a caller may branch on.
const (
	CodeFull   = "full"   // no space, or a quota, on the target's disk
	CodeAbsent = "absent" // there is no such file
)

// Info is what a target says of itself.
type Info struct {
	Arch       string             `json:"arch"`
	CPUs       int                `json:"cpus"`            // that an issue may use
	Online     int                `json:"online"`          // as sysconf has it
	Configured int                `json:"configured"`      // the same
	Quota      float64            `json:"quota,omitempty"` // of CPU time, in CPUs; 0: all
	Dir        string             `json:"dir"`             // the directory that its files are in
	Filesystem string             `json:"filesystem"`
	Free       int64              `json:"free_bytes"`
	Prophet    string             `json:"prophet"` // its version
	Machine    *calibrate.Machine `json:"machine,omitempty"`
}

// Result is how an issue ended.
type Result struct {
	Status  int     `json:"status"` // -1: by Signal
	Signal  string  `json:"signal,omitempty"`
	Seconds float64 `json:"seconds"`
	Stderr  string  `json:"stderr,omitempty"` // its last part
	Stopped bool    `json:"stopped,omitempty"`
}

// ErrLost is wrapped by the errors of a connection that has ended before its time: what was there is gone, and Reconnect
// may begin anew.
var ErrLost = errors.New("the connection to the target is lost")

// ErrProtocol is wrapped by the errors of what is not this protocol.
var ErrProtocol = errors.New("not the protocol of a target")

// A Wire reads and writes frames. One goroutine reads; any may write.
type Wire struct {
	r    *bufio.Reader
	seen atomic.Int64 // when something was last read, as a Unix time in nanoseconds
	mu   sync.Mutex
	w    io.Writer
}

// NewWire begins with a pair of streams. The caller closes them.
func NewWire(r io.Reader, w io.Writer) *Wire {
	wire := &Wire{w: w}
	wire.seen.Store(time.Now().UnixNano())
	wire.r = bufio.NewReaderSize(watched{r, &wire.seen}, PayloadMax)
	return wire
}

type watched struct {
	r    io.Reader
	seen *atomic.Int64
}

func (w watched) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	if n > 0 {
		w.seen.Store(time.Now().UnixNano())
	}
	return n, err
}

// Silent is how long nothing has been read.
func (w *Wire) Silent() time.Duration { return time.Since(time.Unix(0, w.seen.Load())) }

// Say writes text as it is: what comes before the frames.
func (w *Wire) Say(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := io.WriteString(w.w, text)
	return err
}

// SayAll writes what r has as it is.
func (w *Wire) SayAll(r io.Reader) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := io.Copy(w.w, r)
	return err
}

// Await reads up to a line that begins with one of the prefixes, and returns that line.
func (w *Wire) Await(prefixes ...string) (string, error) {
	var line []byte
	for read := 0; read < JunkMax; read++ {
		c, err := w.r.ReadByte()
		if err != nil {
			return "", err
		}
		if c != '\n' {
			line = append(line, c)
			continue
		}
		text := strings.TrimRight(string(line), "\r")
		for _, p := range prefixes {
			// A program in between may have printed something without an end of line.
			if i := strings.Index(text, p); i >= 0 {
				return text[i:], nil
			}
		}
		line = line[:0]
	}
	return "", fmt.Errorf("%w: %d bytes without a beginning", ErrProtocol, JunkMax)
}

// Read reads a frame; the payload is the caller's.
func (w *Wire) Read() (Header, []byte, error) {
	var h Header
	var lengths [8]byte
	if _, err := io.ReadFull(w.r, lengths[:]); err != nil {
		return h, nil, err
	}
	n, m := binary.LittleEndian.Uint32(lengths[:]), binary.LittleEndian.Uint32(lengths[4:])
	if n < 2 || n > HeaderMax || m > PayloadMax {
		return h, nil, fmt.Errorf("%w: a frame of %d and %d bytes", ErrProtocol, n, m)
	}
	b := make([]byte, n+m)
	if _, err := io.ReadFull(w.r, b); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return h, nil, err
	}
	if err := json.Unmarshal(b[:n], &h); err != nil {
		return h, nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if err := h.check(); err != nil {
		return h, nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return h, b[n:], nil
}

// check bounds what JSON does not.
func (h *Header) check() error {
	if len(h.Args) > ArgsMax {
		return fmt.Errorf("%d arguments", len(h.Args))
	}
	for _, a := range h.Args {
		if len(a) > ArgMax || strings.ContainsRune(a, 0) {
			return errors.New("an argument is too long, or has a zero byte")
		}
	}
	if h.Size < 0 || len(h.Name) > ArgMax || len(h.Text) > LineMax || len(h.Sum) > 64 {
		return errors.New("a field is out of bounds")
	}
	return nil
}

// Write writes a frame.
func (w *Wire) Write(h Header, payload []byte) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(b) > HeaderMax || len(payload) > PayloadMax {
		return fmt.Errorf("a frame of %d and %d bytes is too long", len(b), len(payload))
	}
	frame := make([]byte, 8, 8+len(b)+len(payload))
	binary.LittleEndian.PutUint32(frame, uint32(len(b)))
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(payload)))
	frame = append(append(frame, b...), payload...)
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(frame)
	return err
}

// Beat sends beats until stop is closed, and calls lost when nothing has been read for too long.
func (w *Wire) Beat(stop <-chan struct{}, lost func()) {
	go func() { // apart: a write to who does not read blocks
		for {
			select {
			case <-stop:
				return
			case <-time.After(BeatEvery):
				if w.Write(Header{Op: OpBeat}, nil) != nil {
					return
				}
			}
		}
	}()
	for {
		select {
		case <-stop:
			return
		case <-time.After(BeatEvery):
			if w.Silent() > LostAfter {
				lost()
				return
			}
		}
	}
}
