package inside

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"

	"prophet/runtime/trace"
)

// What goes over the socket between a world and its stage: a length of four bytes and JSON. A stage that finds the
// socket closed knows that its world has been killed.

const wireMax = 64 << 20

func send(f *os.File, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	msg := binary.LittleEndian.AppendUint32(make([]byte, 0, len(b)+4), uint32(len(b)))
	_, err = f.Write(append(msg, b...))
	return err
}

func receive(f *os.File, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > wireMax {
		return errors.New("a message is too long")
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(f, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// order is what a world tells its stage.
type order struct {
	Base     string
	Upper    string // below Base: the directories of the layers
	Real     bool   // no overlay
	Syncs    bool   // Spec.Syncs
	Plain    bool   // no namespaces either: the kernel refuses them
	User     bool   // in a user namespace of its own
	Trusted  bool   // overlayfs may use trusted attributes
	Scheme   *Scheme
	Restore  []Restore
	Work     []string
	Kept     string
	Program  program
	Outlives bool // goes on when the world's process dies
}

// program is what is started inside.
type program struct {
	Path    string
	Argv    []string
	Env     []string
	Dir     string
	PID     int
	Random  bool // addresses are random, as usual
	Limits  *Limits
	Handed  *[]trace.Handed
	Plain   bool   // process ids are as they come, and children that outlive the program are not killed with it
	Pids    string // the page by which ids are chosen; "" none
	Ambient bool   // it needs a capability to choose process ids
}

// report is what a stage tells its world.
type report struct {
	Error   string             `json:",omitempty"`
	Step    string             `json:",omitempty"` // what failed
	Notes   []string           `json:",omitempty"`
	Planted map[string]planted `json:",omitempty"`
	PID     int                `json:",omitempty"` // the program was started, under this number
	Ended   *Status            `json:",omitempty"` // the program has ended
}

// ask is what a world asks of a running stage.
type ask struct {
	Signal int
}
