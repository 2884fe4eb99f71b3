package tests

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// story is a trace in memory: the records of each thread, without those that only the encoding needs. A test changes
// them and writes them as another trace.
type story struct {
	dir     string
	threads []*tale
}

// tale is one thread's part.
type tale struct {
	name      string
	uid, proc uint32
	first     uint64
	records   []trace.Record
}

// events are the places in records of the thread's events, by number.
func (l *tale) events() (at []int) {
	for i := range l.records {
		if l.records[i].Tag == trace.TagEvent {
			at = append(at, i)
		}
	}
	return at
}

// readStory reads a trace whole. Its inputs must all lie in line.
func readStory(t testing.TB, dir string) *story {
	t.Helper()
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	s := &story{dir: dir}
	for _, th := range tr.Threads {
		l := &tale{name: th.Name, uid: th.UID, proc: th.Proc.Number, first: th.First}
		it := tr.Iter(th)
		for {
			var r trace.Record
			err := it.Next(&r)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch r.Tag {
			case cabi.TagKey, cabi.TagTime:
				continue // the encoder's own
			case cabi.TagBigData:
				t.Fatal("an input is too long for this test")
			}
			for i := range r.Text {
				r.Text[i] = append([]byte(nil), r.Text[i]...)
			}
			fields := append([]trace.Field(nil), r.Fields...)
			for i := range fields {
				fields[i].Text = append([]byte(nil), fields[i].Text...)
			}
			r.Stack = append([]uint64(nil), r.Stack...)
			r.Fields, r.Tail = fields, append([]byte(nil), r.Tail...)
			l.records = append(l.records, r)
		}
		s.threads = append(s.threads, l)
	}
	return s
}

// tale finds a thread.
func (s *story) tale(name string) *tale {
	for _, l := range s.threads {
		if l.name == name {
			return l
		}
	}
	return nil
}

// write writes it as a trace in dir, with all else of the one that was read.
func (s *story) write(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.dir, path)
		if err != nil || strings.HasPrefix(rel, "stream-") {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(dir, rel), 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, rel), b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range s.threads {
		e := trace.NewEncoder(l.uid, l.proc, l.first, w.Put)
		for i := range l.records {
			encode(t, e, &l.records[i])
		}
		if err := e.Flush(cabi.ChunkLast); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// encode writes one record as cabi.TagLayout says.
func encode(t testing.TB, e *trace.Encoder, r *trace.Record) {
	t.Helper()
	if r.Tag == trace.TagEvent {
		x := *r
		x.Tail = nil
		for i := range r.Fields {
			f := &r.Fields[i]
			switch f.Kind {
			case trace.FieldPath:
				x.Tail = e.Path(x.Tail, string(f.Text))
			case trace.FieldStr:
				x.Tail = trace.AppendS(x.Tail, f.Text)
			case trace.FieldSnum:
				x.Tail = trace.AppendZ(x.Tail, int64(f.Num))
			default:
				x.Tail = trace.AppendV(x.Tail, f.Num)
			}
		}
		e.Event(&x)
		return
	}
	var b []byte
	nums, texts := r.Nums[:], r.Text[:]
	layout := cabi.TagLayout[r.Tag]
	switch r.Tag {
	case cabi.TagToken:
		nums = []uint64{r.Nums[0]<<3 | r.Nums[1]}
	case cabi.TagInput:
		nums = nil
	case cabi.TagFrames:
		return // the encoder numbers stacks itself
	case cabi.TagStack:
		e.Stack(r.Nums[1], r.Stack)
		return
	case cabi.TagSample:
		e.Sample(r.Begin, r.Nums[1], r.Stack)
		return
	case cabi.TagLevel:
		t.Fatal("a change of level is no thread's record")
	}
	for _, c := range strings.TrimPrefix(layout, "T") {
		switch c {
		case 'V':
			b = trace.AppendV(b, nums[0])
			nums = nums[1:]
		case 'Z':
			b = trace.AppendZ(b, int64(nums[0]))
			nums = nums[1:]
		case 'S':
			b = trace.AppendS(b, texts[0])
			texts = texts[1:]
		case '8':
			b = append(b, texts[0]...)
		}
	}
	if strings.HasPrefix(layout, "T") {
		e.At(uint64(r.Tag), r.Begin, b)
	} else {
		e.Control(uint64(r.Tag), b)
	}
}
