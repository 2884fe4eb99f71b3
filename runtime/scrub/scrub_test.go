package scrub

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// What is nowhere in the lists does not come through. That is for what nobody has thought of: each field of today's rows
// has been thought of.
func TestEveryFieldIsDecided(t *testing.T) {
	rows, fields := 0, 0
	for i := range cabi.Calls {
		row := trace.RowOf(uint64(cabi.Calls[i].ID))
		if row == nil || row.Body == cabi.Known {
			continue
		}
		rows++
		for _, name := range row.F {
			if name != "" {
				fields++
				if numberOf(row, name) == gone {
					t.Errorf("%s: decide what a scrubbed trace has of its %s (runtime/scrub/fields.go)", row.Name, name)
				}
			}
		}
		for _, f := range row.Tail {
			fields++
			if fieldOf(row, f) == gone {
				t.Errorf("%s: decide what a scrubbed trace has of its %s (runtime/scrub/fields.go)", row.Name, f.Name)
			}
		}
		for _, helper := range row.Inputs {
			fields++
			if !numbersOnly[helper] && !dataResults[helper] && results[helper] == nil && helper != "text" && helper != "cstr" {
				t.Errorf("%s: decide what a scrubbed trace has of its result %s (runtime/scrub/inputs.go)", row.Name, helper)
			}
		}
	}
	if rows < 500 || fields < 800 {
		t.Fatalf("only %d rows and %d fields seen", rows, fields)
	}
}

// Each record tag of today is one that edit has a case for.
func TestEveryRecordIsDecided(t *testing.T) {
	k, _ := ParseKeep(nil)
	s := &scrubber{tokens: newTokens(k, nil), rules: map[*trace.Row]*rowRule{}}
	for tag := uint8(1); tag < cabi.TagLimit; tag++ {
		s.edit(&trace.Record{Tag: tag})
		if s.unknown != 0 {
			t.Fatalf("decide what becomes of records with tag %d (scrub.go)", tag)
		}
	}
	if s.edit(&trace.Record{Tag: cabi.TagLimit}) || s.unknown != 1 {
		t.Error("a record with a tag that nobody knows came through")
	}
}

// longer than anything that may stay as it is, a build id
const secret = "tops3cret-Xyzzy-0123456789-abcdefghijklmnop"

// fill puts the secret into every text of a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		key := reflect.New(v.Type().Key()).Elem()
		if key.Kind() == reflect.String {
			key.SetString(secret)
		}
		m.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
		v.Set(m)
	case reflect.String:
		v.SetString("/" + secret + "/" + secret + "=" + secret)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	}
}

func TestMeta(t *testing.T) {
	var m trace.Meta
	fill(reflect.ValueOf(&m).Elem())
	k, _ := ParseKeep(nil)
	got := newTokens(k, nil).meta(&m)
	out, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if got.Start == nil || got.Ended == nil || got.Issued == nil || strings.Contains(string(out), secret[:16]) {
		t.Errorf("meta.json has it still: %s", out)
	}
}

func TestTokens(t *testing.T) {
	k, err := ParseKeep([]string{"path:/usr/*", "address:192.168.0.0/16", "host:*.example.org", "env:LANG", "marks"})
	if err != nil {
		t.Fatal(err)
	}
	s := newTokens(k, layout([]space{{low: 0x555555554000, end: 0x555555564000}, {low: 0x555555558000, end: 0x555555574000}, {low: 0x7f0000000000, end: 0x7f0000200000}}))
	depth := func(p string) int { return strings.Count(p, "/") }
	for _, p := range []string{"/home/bob/secret.txt", "bob/../x", "/a//b/", "./x.so.6", "/home/bob"} {
		q := s.path(p)
		if depth(q) != depth(p) || q != s.path(p) {
			t.Errorf("%s became %s", p, q)
		}
	}
	if a, b := s.path("/home/bob/secret.txt"), s.path("/home/bob"); !strings.HasPrefix(a, b+"/") || !strings.HasSuffix(a, ".txt") {
		t.Errorf("%s is not in %s", a, b)
	}
	for in, want := range map[string]string{"a.so.6": ".so.6", "libssl.so.1.1": ".so.1.1", "x.so.123.4": "", "app.log.1": ".log.1", "a.db.4711": "", "r.tops3cret": "", ".log": "", "a.tar.gz": ".gz", "x": ""} {
		if got := extension(in); got != want {
			t.Errorf("of %s %q stays, not %q", in, got, want)
		}
	}
	for _, p := range []string{"/usr/lib/x", "/usr/./lib"} {
		if s.path(p) != p {
			t.Errorf("%s is to be kept", p)
		}
	}
	for _, p := range []string{"/usr/../home/bob", "/usrx/y", "../usr/lib/x"} {
		if strings.Contains(s.path(p), "bob") || s.path(p) == p {
			t.Errorf("%s is not to be kept", p)
		}
	}
	if long := s.path(strings.Repeat("/a", 2000)); len(long) > pathMax+2*tokenLen {
		t.Errorf("a long path has become one of %d bytes", len(long))
	}
	// They are numbered in the order in which they come.
	for _, x := range [][2]string{{"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "0.0.0.0"}, {"::1", "::1"}, {"192.168.3.4", "192.168.3.4"}, {"8.8.8.8", "10.0.0.1"}, {"::ffff:8.8.8.8", "::ffff:10.0.0.1"}, {"2a00::1", "2001:db8::2"}} {
		if got := s.addr(netip.MustParseAddr(x[0])).String(); got != x[1] {
			t.Errorf("%s became %s, not %s", x[0], got, x[1])
		}
	}
	if s.host("www.example.org") != "www.example.org" || s.host("www.example.com") == "www.example.com" || s.host("localhost") != "localhost" || s.host("8.8.8.8") != "10.0.0.1" {
		t.Error("host names")
	}
	seen := map[uint16]bool{}
	for p := range 1 << 16 {
		q := s.port(uint16(p))
		if seen[q] || (p == 0) != (q == 0) {
			t.Fatalf("port %d became %d, as another did or as none is", p, q)
		}
		seen[q] = true
	}
	// Modules that overlap move together; what is outside keeps its place in its page.
	if a, b := s.memory(0x555555554010), s.memory(0x555555573010); b-a != 0x1f000 || a == 0x555555554010 {
		t.Errorf("%#x and %#x", a, b)
	}
	if a, b := s.memory(0x7ffff7dd1008), s.memory(0x7ffff7dd1ff8); a^b != 0xff0 || a&0xfff != 8 || a == 0x7ffff7dd1008 {
		t.Errorf("%#x and %#x", a, b)
	}
	for _, v := range []uint64{0, 1, 65535, 1<<64 - 1} {
		if s.memory(v) != v {
			t.Errorf("%d is no address, but became %d", v, s.memory(v))
		}
	}
	if again := newTokens(k, nil); again.path("/home/bob") == s.path("/home/bob") {
		t.Error("two scrubbed traces have the same tokens")
	}
	if s.text(Marks, "phase 2") != "phase 2" || s.text(Names, "phase 2") == "phase 2" {
		t.Error("marks are to be kept, names not")
	}
	for _, bad := range []string{"path", "paths:/x", "path:", "address:nowhere", "x", ":y", "inputs:x", ""} {
		if _, err := ParseKeep([]string{bad}); err == nil {
			t.Errorf("--keep %q is taken", bad)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{{"*", "", true}, {"a*c", "abbc", true}, {"a*c", "abbd", false}, {"?", "", false}, {"?x*", "yx", true}, {"*a*b", "xaxxb", true}, {"", "", true}, {"", "x", false}} {
		if match(c.pattern, c.s) != c.want {
			t.Errorf("%q and %q", c.pattern, c.s)
		}
	}
	if match(strings.Repeat("a*", 2000)+"c", strings.Repeat("a", 4000)+"b") { // in no time
		t.Error("no c is there")
	}
}

// records is a trace of one chunk.
func records(tb testing.TB, payload []byte) *trace.Trace {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "t.prophet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := trace.WriteMeta(dir, &trace.Meta{Format: cabi.FormatVersion, State: trace.StateComplete, TicksHz: 1e9}); err != nil {
		tb.Fatal(err)
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		tb.Fatal(err)
	}
	if err := w.Put(trace.MemChunk{Header: trace.Header{Kind: cabi.ChunkEvents, UID: 1, Base: 100}, Payload: payload}); err != nil {
		tb.Fatal(err)
	}
	if err := w.Put(trace.MemChunk{Header: trace.Header{Kind: cabi.ChunkData, UID: 1}, Payload: []byte(secret)}); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	t, err := trace.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { t.Close() })
	return t
}

// sample has the secret in every kind of record that has room for it, and in every row's texts and structured results.
func sample() []byte {
	var out []byte
	e := trace.NewEncoder(1, 0, 100, func(c trace.MemChunk) error { out = append(out, c.Payload...); return nil })
	v := func(n int) (b []byte) {
		for range n {
			b = trace.AppendV(b, 3)
		}
		return b
	}
	str := func(b []byte) []byte { return trace.AppendS(b, secret) }
	e.Control(cabi.TagProc, trace.AppendS(v(7), "/bin/"+secret+"\x00/"+secret+"\x00"+secret+"\x00"+secret+"\x00"))
	e.Control(cabi.TagModule, trace.AppendS(trace.AppendS(trace.AppendV(trace.AppendV(trace.AppendV(nil, 0x400000), 0x1000), 0), "/"+secret), "id"))
	e.Control(cabi.TagObject, str(v(4)))
	e.Control(cabi.TagKept, str(v(4)))
	e.Control(cabi.TagWas, str(v(6)))
	e.Control(cabi.TagUnseen, str(v(2)))
	e.At(cabi.TagMark, 200, str(v(1)))
	for i := range cabi.Calls {
		row := trace.RowOf(uint64(cabi.Calls[i].ID))
		if row == nil || row.Body == cabi.Known {
			continue
		}
		var tail []byte
		for _, f := range row.Tail {
			switch f.Kind {
			case trace.FieldPath:
				tail = e.Path(tail, "/"+secret)
			case trace.FieldStr:
				tail = str(tail)
			default:
				tail = append(tail, v(1)...)
			}
		}
		e.Event(&trace.Record{Call: row.ID, PC: 0x400100 + uint64(i), Begin: 300 + uint64(i), Tail: tail, F: [3]int64{9, 1 << 40, 2}, Ret: 5})
		for _, helper := range row.Inputs {
			e.Control(cabi.TagInput, trace.AppendS(nil, structured(helper)))
		}
		if row.Reads {
			e.Control(cabi.TagData, str(nil))
			e.Control(cabi.TagBigData, trace.AppendV(trace.AppendV(nil, 0), uint64(len(secret))))
		}
	}
	e.Stack(cabi.StackWait, []uint64{0x400100, 0x400200, 0x7fff00001234})
	e.Sample(9000, 77, []uint64{0x400300})
	e.Flush(0)
	return out
}

// structured is a result of this helper, with the secret where a text is.
func structured(helper string) []byte {
	addr := func(b []byte) []byte { return trace.AppendS(trace.AppendV(b, familyUnix), "/"+secret+"\x00") }
	v := func(b []byte) []byte { return trace.AppendV(b, 2) }
	str := func(b []byte) []byte { return trace.AppendS(b, secret) }
	switch helper {
	case "addr", "addr_of", "from", "name":
		return addr(nil)
	case "accepted", "connected":
		return v(v(addr(addr(nil))))
	case "msg":
		return str(v(v(v(v(addr(nil))))))
	case "msgs", "addrs":
		return addr(v(v(nil)))
	case "host", "host_r":
		return str(v(str(nil)))
	case "interfaces":
		return str(v(nil))
	case "ifaddrs":
		return addr(v(str(nil)))
	}
	var b []byte
	for _, f := range trace.Inputs[helper].Fields {
		switch f.Kind {
		case trace.FieldStr, trace.FieldPath, trace.FieldHex:
			b = str(b)
		default:
			b = v(b)
		}
	}
	return b
}

// scrubbed is what becomes of a payload, and fails where what came out is no trace or has the secret.
func scrubbed(tb testing.TB, payload []byte, want bool) *Result {
	k, _ := ParseKeep(nil)
	dir := filepath.Join(tb.TempDir(), "out.prophet")
	res, err := Scrub(records(tb, payload), dir, Options{Keep: k, Directory: true, Workers: 1})
	if err != nil {
		tb.Fatal(err)
	}
	t, err := trace.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	defer t.Close()
	sum, err := t.Verify(1, nil)
	if err != nil || sum.Damaged != 0 || sum.Events != res.Events || t.Meta.Whole() == nil {
		tb.Fatalf("%v, %v, %d events of %d", err, sum.Damage, sum.Events, res.Events)
	}
	found := 0
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b, _ := os.ReadFile(path)
			found++
			if bytes.Contains(b, []byte(secret)) {
				tb.Errorf("%s has the secret at %d", filepath.Base(path), bytes.Index(b, []byte(secret)))
			}
		}
		return nil
	})
	if want && found < 2 {
		tb.Fatalf("only %d files looked at", found)
	}
	return res
}

func TestNothingComesThrough(t *testing.T) {
	res := scrubbed(t, sample(), true)
	if res.Damaged != 0 || res.Unknown != 0 || res.Events < 500 {
		t.Errorf("%+v", res)
	}
	for name, c := range res.Counts {
		if c.Removed == 0 || c.Kept != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// Whatever comes, a trace comes out, and no text that it had.
func FuzzScrub(f *testing.F) {
	f.Add(sample())
	f.Add([]byte(secret))
	f.Fuzz(func(t *testing.T, payload []byte) {
		scrubbed(t, payload, false)
	})
}
