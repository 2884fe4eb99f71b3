// Package replay prepares the re-execution of a trace and reads how it goes: the index that the processes map (its
// layout is cabi.Replay), and the report of the first difference. It does no I/O.
package replay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Build makes the index of a trace whose stream files lie in dir, an absolute path.
func Build(t *trace.Trace, dir string, flags uint32) ([]byte, error) {
	head := cabi.Replay{Magic: cabi.ReplayMagic, Version: cabi.FormatVersion, Flags: flags}
	if len(dir) >= len(head.Dir) {
		return nil, fmt.Errorf("the path of the trace is longer than %d bytes", len(head.Dir)-1)
	}
	copy(head.Dir[:], dir)
	recordedEnvironment(&head, t.Meta.Env, dir)
	copy(head.Run[:len(head.Run)-1], t.Meta.Run)
	last := uint32(0)
	for _, th := range t.Threads {
		last = max(last, th.UID)
	}
	if last > 1<<24 {
		return nil, fmt.Errorf("thread number %d cannot be", last)
	}
	threads := make([]cabi.ReplayThread, last+1)
	var chunks, data []cabi.ReplayChunk
	main := map[uint32]uint32{}
	for _, th := range t.Threads {
		events, inputs := t.Places(th)
		parent, nth := th.Origin()
		threads[th.UID] = cabi.ReplayThread{
			UID: th.UID, Until: cabi.NoLimit, Proc: th.Proc.Number, Parent: parent, Nth: uint32(nth), How: uint32(th.How), TID: th.TID,
			First: uint32(len(chunks)), Chunks: uint32(len(events)), Datum: uint32(len(data)), Data: uint32(len(inputs)),
			Issued: t.Meta.Issued.Events(th.UID),
		}
		if th.How == cabi.ThreadMain || th.How == cabi.ThreadForked {
			main[th.Proc.Number] = th.UID
		}
		for _, p := range events {
			if p.File < 0 {
				return nil, fmt.Errorf("thread %s has records that are in no stream file; run `prophet recover` first", th.Name)
			}
			chunks = append(chunks, cabi.ReplayChunk{Off: p.Off, Base: p.Base, Len: p.Len, File: uint32(p.File)})
		}
		for _, p := range inputs {
			data = append(data, cabi.ReplayChunk{Off: p.Off, Base: p.Base, Len: p.Len, File: uint32(p.File)})
		}
	}
	dead, err := deaths(t)
	if err != nil {
		return nil, err
	}
	if Killed(t) != 0 {
		head.Flags |= cabi.ReplayKilled
	}
	var procs []cabi.ReplayProc
	for _, p := range t.Procs {
		parent, uid, nth := p.Origin()
		procs = append(procs, cabi.ReplayProc{Number: p.Number, Parent: parent, UID: uid, Nth: uint32(nth), How: uint32(p.How), PID: p.PID, Main: main[p.Number], Death: dead[p]})
	}
	var skips []cabi.ReplaySkip
	if t.Meta.Options.Serial {
		first, gaps, err := serialTurns(t)
		if err != nil {
			return nil, err
		}
		head.Token, skips = first<<cabi.TokenTID, gaps
	}
	if err := timers(t, threads); err != nil {
		return nil, err
	}
	numbers, err := descriptors(t)
	if err != nil {
		return nil, err
	}
	var fds []cabi.ReplayFd
	for uid, list := range numbers {
		threads[uid].FirstFd, threads[uid].Fds = uint32(len(fds)), uint32(len(list))
		fds = append(fds, list...)
	}
	// Room for each thread's id and those of children that record nothing, of which a process has few at once.
	ids := 1 << bits.Len(uint(4*len(threads)+4096))
	head.Threads, head.Chunks, head.Procs, head.Data = uint32(len(threads)), uint32(len(chunks)), uint32(len(procs)), uint32(len(data))
	size := func(v any) int { return binary.Size(v) }
	b := make([]byte, (HeadSize+63)&^63, 1<<12+size(threads)+size(chunks)+size(data)+size(procs)+size(skips)+size(fds)+ids*size(cabi.ReplayID{})+cabi.TurnBuckets*size(cabi.ReplayTurn{}))
	place := func() uint64 {
		b = append(b, make([]byte, -len(b)&63)...)
		return uint64(len(b))
	}
	at := func(v any) uint64 {
		off := place()
		b, _ = binary.Append(b, binary.LittleEndian, v) // of fixed size: it cannot fail
		return off
	}
	room := func(n int, of any) uint64 { // zeros
		off := place()
		b = append(b, make([]byte, n*size(of))...)
		return off
	}
	head.ThreadsAt, head.ChunksAt, head.DataAt, head.ProcsAt = at(threads), at(chunks), at(data), at(procs)
	head.TurnsAt = room(cabi.TurnBuckets, cabi.ReplayTurn{})
	head.SkipsAt, head.Skips = at(skips), uint32(len(skips))
	head.FdsAt, head.Fds = at(fds), uint32(len(fds))
	head.IDsAt, head.IDs = room(ids, cabi.ReplayID{}), uint32(ids)
	if flags&cabi.ReplayLearn != 0 || t.Meta.Issued != nil {
		head.MovedAt, head.Moved = room(movedMax, cabi.ReplayMoved{}), movedMax
	}
	if in := t.Meta.Options.Inputs; in == "none" || in == "hash" {
		head.Flags |= cabi.ReplayUnfed
	}
	head.Size = uint64(len(b))
	if _, err := binary.Encode(b, binary.LittleEndian, head); err != nil {
		return nil, err
	}
	return b, nil
}

// movedMax is how many files may be told apart by what they are called here and in the trace; others keep what they are called here.
const movedMax = 1 << 14

// recordedEnvironment keeps what of the recorded environment a re-execution needs otherwise, for the program to see.
func recordedEnvironment(head *cabi.Replay, env []string, dir string) {
	for _, e := range env {
		for _, v := range []struct {
			name string
			to   []byte
		}{{"PROPHET_TRACE=", head.Trace[:]}, {"PROPHET_OPTIONS=", head.Options[:]}, {"LD_PRELOAD=", head.Preload[:]}} {
			if strings.HasPrefix(e, v.name) && len(e) < len(v.to) {
				copy(v.to, e)
			}
		}
	}
	if path := string(bytes.TrimRight(head.Trace[:], "\x00")); strings.HasPrefix(path, "PROPHET_TRACE=/") { // it may have been moved since
		dir = strings.TrimPrefix(path, "PROPHET_TRACE=")
	}
	copy(head.Given[:len(head.Given)-1], "PROPHET_TRACE="+dir)
}

// State is a copy of an index while it is in use.
type State struct {
	Head    cabi.Replay
	Threads []cabi.ReplayThread // by UID
}

// HeadSize is how long the head of an index is.
var HeadSize = binary.Size(cabi.Replay{})

// Prefix is how much of an index Parse needs, by its head.
func Prefix(head []byte) (uint64, error) {
	var h cabi.Replay
	if _, err := binary.Decode(head, binary.LittleEndian, &h); err != nil {
		return 0, err
	}
	n := h.ThreadsAt + uint64(h.Threads)*uint64(binary.Size(cabi.ReplayThread{}))
	if h.Magic != cabi.ReplayMagic || h.Threads > 1<<24+1 || h.ThreadsAt > 1<<20 || n > h.Size {
		return 0, fmt.Errorf("the index of the re-execution is damaged")
	}
	return n, nil
}

// Parse reads what a re-execution has written into its index, of which b is the start (see Prefix).
func Parse(b []byte) (*State, error) {
	var s State
	if _, err := binary.Decode(b, binary.LittleEndian, &s.Head); err != nil {
		return nil, err
	}
	h := &s.Head
	size := uint64(binary.Size(cabi.ReplayThread{}))
	if h.Magic != cabi.ReplayMagic || h.ThreadsAt > uint64(len(b)) || uint64(h.Threads) > (uint64(len(b))-h.ThreadsAt)/size {
		return nil, fmt.Errorf("the index of the re-execution is damaged")
	}
	s.Threads = make([]cabi.ReplayThread, h.Threads)
	_, err := binary.Decode(b[h.ThreadsAt:], binary.LittleEndian, s.Threads)
	return &s, err
}

// Events is how many events have been compared.
func (s *State) Events() uint64 {
	var n uint64
	for i := range s.Threads {
		n += s.Threads[i].Event
	}
	return n
}
