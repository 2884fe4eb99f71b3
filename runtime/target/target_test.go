package target

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]Spec{
		"local":                                {},
		"local,cpus=2":                         {CPUs: 2},
		"local,quota=0.5,cpus=1":               {CPUs: 1, Quota: 0.5},
		"local,cpus=1,dir=/a,b=c":              {CPUs: 1, Dir: "/a,b=c"},
		"ssh://there":                          {Host: "there"},
		"ssh://me@there:2222/var/tmp":          {User: "me", Host: "there", Port: 2222, Dir: "/var/tmp"},
		"ssh://[::1]:22/":                      {Host: "::1", Port: 22},
		"exec:ip netns exec far {} --dir /mnt": {Command: "ip netns exec far {} --dir /mnt"},
	} {
		want.Text = s
		if got, err := Parse(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "near", "localhost", "local,cpus=0", "local,cpus=x", "local,quota=0", "local,quota=NaN", "local,disk=1", "local,dir=", "ssh://", "ssh://-oProxyCommand=x",
		"ssh://-l@host", "ssh://me:secret@there", "ssh://there:0", "ssh://there:99999", "ssh://there?x", "exec:", "exec: ", "local\x00", "exec:" + strings.Repeat("x", ArgMax)} {
		if got, err := Parse(s); err == nil {
			t.Errorf("%q is %+v", s, got)
		}
	}
}

// A target may send as much as it likes; what is kept of it is bounded.
func TestSave(t *testing.T) {
	for n, good := range map[int]bool{0: true, 9: true, 10: true, 11: false, 5000: false} {
		path := filepath.Join(t.TempDir(), "x")
		err := save(strings.NewReader(strings.Repeat("a", n)), path, 10)
		if _, e := os.Stat(path); (err == nil) != good || (e == nil) != good {
			t.Errorf("%d bytes: %v, %v", n, err, e)
		}
	}
}

func TestWire(t *testing.T) {
	var b bytes.Buffer
	w := NewWire(&b, &b)
	w.Say("Welcome\nto this machine\nno newline" + Banner + "\r\n")
	want := Header{Op: OpIssue, ID: 7, Args: []string{"a", ""}, Size: 1 << 40, Name: "ü"}
	if err := w.Write(want, []byte("payload")); err != nil {
		t.Fatal(err)
	}
	w.Write(Header{Op: OpBeat}, nil)
	if line, err := w.Await(Banner); err != nil || line != Banner {
		t.Fatal(line, err)
	}
	h, p, err := w.Read()
	if err != nil || h.Op != want.Op || h.ID != 7 || h.Size != want.Size || h.Name != want.Name || len(h.Args) != 2 || string(p) != "payload" {
		t.Errorf("%+v %q %v", h, p, err)
	}
	if h, p, err := w.Read(); err != nil || h.Op != OpBeat || len(p) != 0 {
		t.Errorf("%+v %q %v", h, p, err)
	}
	if _, _, err := w.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if err := w.Write(Header{Op: OpData}, make([]byte, PayloadMax+1)); err == nil {
		t.Error("a payload that is too long was written")
	}
}

func TestJunkIsBounded(t *testing.T) {
	w := NewWire(endless{}, io.Discard)
	if _, err := w.Await(Banner); !errors.Is(err, ErrProtocol) {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, "and on and on "), nil }

// Whatever comes, a frame is within the bounds or an error.
func FuzzWire(f *testing.F) {
	var b bytes.Buffer
	w := NewWire(&b, &b)
	w.Write(Header{Op: OpPut, ID: 1, Name: "x", Size: 3, Sum: "00"}, nil)
	w.Write(Header{Op: OpData, ID: 1}, []byte("abc"))
	f.Add(b.Bytes())
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		w := NewWire(bytes.NewReader(in), io.Discard)
		for range 100 {
			h, p, err := w.Read()
			if err != nil {
				return
			}
			if len(p) > PayloadMax || len(h.Args) > ArgsMax || h.Size < 0 || len(h.Name) > ArgMax {
				t.Fatalf("%+v", h)
			}
			if err := w.Write(h, p); err != nil && len(in) < HeaderMax/8 {
				t.Fatalf("what was read cannot be written: %v", err)
			}
		}
	})
}

// A machine of another architecture gets the file that is built for it.
func TestReplaydFor(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "replayd")
	other, machine := "arm64", "aarch64"
	if runtime.GOARCH == "arm64" {
		other, machine = "amd64", "x86_64"
	}
	if err := os.WriteFile(own, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PROPHET_REPLAYD", own)
	if p, err := replaydFor(machine); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, other, "replayd")) {
		t.Errorf("%q, %v", p, err)
	}
	if err := os.Mkdir(filepath.Join(dir, other), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, other, "replayd"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if p, err := replaydFor(machine); err != nil || p != filepath.Join(dir, other, "replayd") {
		t.Errorf("%q, %v", p, err)
	}
	if p, err := replaydFor("sparc"); err == nil {
		t.Errorf("%q", p)
	}
}

func tarOf(t testing.TB, headers ...tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		w.Write(make([]byte, h.Size))
	}
	w.Close()
	return b.Bytes()
}

func TestUntar(t *testing.T) {
	top := t.TempDir()
	good := tarOf(t, tar.Header{Typeflag: tar.TypeDir, Name: "a/"}, tar.Header{Typeflag: tar.TypeReg, Name: "a/b", Size: 5, Mode: 0o4777})
	if err := untar(bytes.NewReader(good), filepath.Join(top, "good")); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(top, "good/a/b"))
	if err != nil || st.Size() != 5 || st.Mode() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	for name, b := range map[string][]byte{
		"out":      tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "../out", Size: 1}),
		"absolute": tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "/out", Size: 1}),
		"link":     tarOf(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}, tar.Header{Typeflag: tar.TypeReg, Name: "l/x"}),
		"device":   tarOf(t, tar.Header{Typeflag: tar.TypeChar, Name: "null"}),
		"twice":    tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "a"}, tar.Header{Typeflag: tar.TypeReg, Name: "a"}),
		"sparse":   bytes.ReplaceAll(tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "s", Format: tar.FormatPAX, PAXRecords: map[string]string{"XNU.sparse.map": "0,0", "XNU.sparse.numblocks": "1", "XNU.sparse.size": "99999999"}}), []byte("XNU.sparse"), []byte("GNU.sparse")),
		"cut":      good[:1024+2],
		"through":  tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "a/../../x"}),
	} {
		if err := untar(bytes.NewReader(b), filepath.Join(top, name)); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	list, _ := os.ReadDir(top)
	if len(list) != 1 {
		t.Errorf("there is more than what was good: %v", list)
	}
	if err := untar(bytes.NewReader(good), filepath.Join(top, "good")); err == nil {
		t.Error("a directory was overwritten")
	}
}

// Whatever a tar says, nothing is written beside its directory.
func FuzzUntar(f *testing.F) {
	f.Add(tarOf(f, tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 3}))
	f.Add(tarOf(f, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: ".."}, tar.Header{Typeflag: tar.TypeReg, Name: "l/x"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		top := t.TempDir()
		err := untar(bytes.NewReader(b), filepath.Join(top, "d"))
		list, _ := os.ReadDir(top)
		if len(list) > 1 || err != nil && len(list) > 0 {
			t.Errorf("%v: %v", err, list)
		}
	})
}
