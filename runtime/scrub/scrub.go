// Package scrub makes a trace that can be given away: what it may hold of a person, a company or a machine is left out
// or replaced by tokens, and what is left is said.
//
// It works by what may stay. Every record is taken apart and written anew; a record, a call, a field or a text that no
// list here names does not come through, so what a later version records is left out until somebody has decided about it.
// The same thing has the same token in all of one scrubbed trace and another one in the next: tokens are keyed by a random
// number that nobody keeps.
//
// What stays: which calls were made, when and for how long, in which order and with which result; counts, sizes, offsets
// and flags; numbers of processes, threads, users, groups, descriptors, devices and inodes; call sites as module and
// offset, and build ids; the kernel's version, CPUs and memory.
package scrub

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"prophet/cabi"
	"prophet/runtime/summary"
	"prophet/runtime/trace"
)

// Left is what a scrubbed trace tells still, whatever is kept.
var Left = []string{
	"which calls were made, when, for how long, in which order and with which result",
	"sizes, offsets, flags, lengths of data; times, sizes and owners of files",
	"numbers of processes, threads, users, groups, descriptors, devices, inodes and System V keys",
	"call sites as module and offset, build ids of modules",
	"kernel version, CPUs, memory and limits of the machine",
}

// Result is what was done.
type Result struct {
	Counts  map[string]Count
	Events  uint64
	Unknown uint64 // records that this version does not know, left out
	Bytes   int64  // of the file
	Damage  []error
	Damaged int
}

// Options are how it is done.
type Options struct {
	Keep      *Keep
	Directory bool // make a directory instead of one packed file
	Workers   int
	Progress  func(step string) trace.Progress // nil: none
}

// Scrub makes the trace out, which replaces a file of that name; a directory must not exist yet.
func Scrub(t *trace.Trace, out string, o Options) (*Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) trace.Progress { return nil }
	}
	work, err := os.MkdirTemp(filepath.Dir(out), ".scrub-*") // 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	dir := filepath.Join(work, "run.prophet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	spaces, err := collect(t, o.Workers)
	if err != nil {
		return nil, err
	}
	s := &scrubber{t: t, tokens: newTokens(o.Keep, spaces), rules: map[*trace.Row]*rowRule{}}
	meta := s.meta(t.Meta)
	if err := trace.WriteMeta(dir, meta); err != nil {
		return nil, err
	}
	done, err := s.records(dir, o.Progress("scrubbing"))
	if err != nil {
		return nil, err
	}
	res := &Result{Events: done.Events, Unknown: s.unknown, Damage: append(slices.Clone(t.Damage), done.Damage...), Damaged: len(t.Damage) + done.Damaged, Counts: map[string]Count{}}
	if err := s.kept(dir, res); err != nil {
		return nil, err
	}
	for k := range kinds {
		res.Counts[k.String()] = s.counts[k]
	}
	return res, finish(dir, out, meta, res, o)
}

// finish counts what the trace holds now, as whoever completes a recording does, and puts it in its place.
func finish(dir, out string, meta *trace.Meta, res *Result, o Options) error {
	t, err := trace.Open(dir)
	if err != nil {
		return err
	}
	defer t.Close()
	sum, err := summary.Of(t, o.Workers, o.Progress("counting"))
	if err != nil {
		return err
	}
	meta.Totals, meta.Cover = sum.Totals(), &sum.Cover
	if err := trace.WriteMeta(dir, meta); err != nil {
		return err
	}
	if o.Directory {
		res.Bytes = sum.Bytes
		return os.Rename(dir, out)
	}
	t.Meta = meta
	packed, err := t.Pack(out, o.Workers, o.Progress("packing"))
	if err != nil {
		return err
	}
	res.Bytes = packed.Bytes
	return errors.Join(packed.Damaged...)
}

// scrubber is the state of Scrub.
type scrubber struct {
	*tokens
	t       *trace.Trace
	rules   map[*trace.Row]*rowRule
	unknown uint64
}

func (s *scrubber) records(dir string, prog trace.Progress) (*trace.RewriteResult, error) {
	w, err := trace.NewWriter(dir)
	if err != nil {
		return nil, err
	}
	res, err := s.t.Rewrite(w, func(*trace.Thread) trace.Edit { return s.edit }, prog)
	return res, errors.Join(err, w.Close())
}

func (s *scrubber) rule(row *trace.Row) *rowRule {
	r := s.rules[row]
	if r == nil {
		r = ruleOf(row)
		s.rules[row] = r
	}
	return r
}

// buildIDMax is longer than build ids are: hashes.
const buildIDMax = 32

// edit does one record; see trace.Edit.
func (s *scrubber) edit(r *trace.Record) bool {
	n := &r.Nums
	switch r.Tag {
	case trace.TagEvent:
		return s.event(r)
	case cabi.TagKey:
		n[2] = s.pc(n[2])
	case cabi.TagObject:
		return s.object(r)
	case cabi.TagTime, cabi.TagCPU, cabi.TagSignal, cabi.TagSigRet, cabi.TagThread, cabi.TagRSS, cabi.TagLeft, cabi.TagLost,
		cabi.TagLevel, cabi.TagExit, cabi.TagFork, cabi.TagClock, cabi.TagToken, cabi.TagStack, cabi.TagSample, cabi.TagOurs:
		// numbers that stay
	case cabi.TagData, cabi.TagHash, cabi.TagBigData:
		return s.data(r)
	case cabi.TagInput:
		b, ok := s.result(r.Row, int(min(n[0], 1<<20)), r.Text[0])
		r.Text[0] = b
		return ok
	case cabi.TagFrames:
		r.Text[0] = s.frames(r.Text[0])
	case cabi.TagProc:
		r.Text[0] = []byte(s.proc(string(r.Text[0])))
	case cabi.TagModule:
		n[0], n[2] = s.module(n[0], n[2])
		r.Text[0] = []byte(s.path(string(r.Text[0])))
		if len(r.Text[1]) > buildIDMax {
			r.Text[1] = nil
		}
	case cabi.TagMark:
		r.Text[0] = []byte(s.text(Marks, string(r.Text[0])))
	case cabi.TagKept, cabi.TagWas:
		r.Text[0] = []byte(s.path(string(r.Text[0])))
		return s.keep.all[Inputs]
	case cabi.TagUnseen:
		n[1] = s.memory(n[1])
		r.Text[0] = []byte(s.detail(string(r.Text[0])))
	case cabi.TagSigInfo, cabi.TagPlace: // addresses, what the sender gave, and what registers had
		s.count(Inputs, s.keep.all[Inputs] && s.keep.all[Memory])
		return s.keep.all[Inputs] && s.keep.all[Memory]
	default:
		s.unknown++
		return false
	}
	return true
}

func (s *scrubber) pc(v uint64) uint64 {
	was := s.counts[Memory]
	v = s.memory(v)
	s.counts[Memory] = was // call sites tell their place in their module, before and after
	return v
}

// frames are return addresses, each written as what it differs by.
func (s *scrubber) frames(b []byte) []byte {
	var out []byte
	var from, to uint64
	for o := trace.NewOperands(b); o.Left() > 0 && !o.Bad(); {
		from += uint64(o.Z())
		v := s.pc(from)
		out = trace.AppendZ(out, int64(v-to))
		to = v
	}
	return out
}

func (s *scrubber) event(r *trace.Record) bool {
	if r.Row == nil {
		s.unknown++
		return false
	}
	rule := s.rule(r.Row)
	if rule.plain {
		return true
	}
	if r.Ret > 0 || rule.ret != memory { // what is below 0 is an error
		r.Ret = s.number(rule.ret, r.Ret)
	}
	for i := range r.F {
		r.F[i] = s.number(rule.f[i], r.F[i])
	}
	for i := range r.Fields {
		f := &r.Fields[i]
		switch f.Kind {
		case trace.FieldPath, trace.FieldStr:
			f.Text = []byte(s.str(rule.tail[i], string(f.Text)))
		default:
			f.Num = uint64(s.number(rule.tail[i], int64(f.Num)))
		}
	}
	return true
}

// data decides about the data of an event. A structured result that did not fit its record lies in such a chunk, too; it
// may hold anything.
func (s *scrubber) data(r *trace.Record) bool {
	stays := s.keep.all[Inputs] && r.Row != nil && len(r.Row.Inputs) == 0
	s.count(Inputs, stays)
	if !stays {
		switch r.Tag {
		case cabi.TagData:
			s.counts[Inputs].Bytes += uint64(len(r.Text[0]))
		case cabi.TagBigData:
			s.counts[Inputs].Bytes += r.Nums[1]
		}
	}
	return stays
}

// proc is a process's program, directory and arguments, each ended by a NUL.
func (s *scrubber) proc(text string) string {
	if text == "" {
		return ""
	}
	text, last := strings.CutSuffix(text, "\x00")
	parts := strings.Split(text, "\x00")
	for i := range parts[:min(2, len(parts))] {
		parts[i] = s.path(parts[i])
	}
	if len(parts) > 2 {
		parts = append(parts[:2], s.args(parts[2:])...)
	}
	text = strings.Join(parts, "\x00")
	if last {
		text += "\x00"
	}
	return text
}

// said are the words that the recorder itself has for an object, or for what it could not see.
var said = regexp.MustCompile(`^(|\?|accepted|pipe, (read|write) end|signalfd|socketpair|socket (unix|inet6?|netlink|packet|[0-9]{1,3}) (stream|dgram|raw|seqpacket|[0-9]{1,3})` +
	`|(socket|pipe|mnt|net|pid|user|uts|ipc):\[[0-9]{1,20}\]|anon_inode:\[?[a-z]{1,16}\]?|streams: the C library's tables are not as known)$`)

func (s *scrubber) detail(text string) string {
	if said.MatchString(text) {
		return text
	}
	return s.path(text)
}

func (s *scrubber) object(r *trace.Record) bool {
	if r.Nums[2] != cabi.ObjFd {
		r.Nums[3] = s.memory(r.Nums[3])
	}
	r.Text[0] = []byte(s.detail(string(r.Text[0])))
	return true
}

// kept copies the files as they were before the run, if inputs stay.
func (s *scrubber) kept(dir string, res *Result) error {
	bad := func(err error) {
		res.Damage = append(res.Damage, err)
		res.Damaged++
	}
	return s.t.CopyKept(dir, bad, func(name string, off int64, piece []byte) bool {
		stays := s.keep.all[Inputs]
		if off == 0 {
			s.count(Inputs, stays)
		}
		if !stays {
			s.counts[Inputs].Bytes += uint64(len(piece))
		}
		return stays
	})
}
