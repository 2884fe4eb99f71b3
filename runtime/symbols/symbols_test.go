package symbols

import (
	"bytes"
	"debug/elf"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func run(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

const source = `
extern int puts(const char *);
volatile int x;
static inline __attribute__((always_inline)) void inner(int n) { x += n; __asm__ volatile("" ::: "memory"); }
static inline __attribute__((always_inline)) void middle(int n)
{
	inner(n);
	inner(n + 1);
}
__attribute__((noinline)) void outer(int n) { middle(n); }
int main(void)
{
	outer(1);
	return x;
}
`

// build compiles the program and returns its path and the address of function outer.
func build(t testing.TB, flags ...string) (string, uint64) {
	t.Helper()
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, append(append([]string{"gcc"}, flags...), "-o", bin, src)...)
	e, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	list, err := e.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.Name == "outer" {
			return bin, s.Value
		}
	}
	t.Fatal("no symbol outer")
	return "", 0
}

func idOf(t testing.TB, path string) string {
	t.Helper()
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	id := buildID(e)
	if len(id) != 20 {
		t.Fatalf("%s has build id %x", path, id)
	}
	return id
}

// at asks for one address.
func at(tab *Table, m Module, addr uint64) []string {
	tab.Want(m, addr)
	tab.Resolve(nil)
	var names []string
	for _, f := range tab.At(m, addr) {
		names = append(names, f.Func)
	}
	return names
}

func TestSeparate(t *testing.T) {
	bin, outer := build(t, "-O2", "-g", "-Wl,--build-id")
	id := idOf(t, bin)
	want := []string{"inner", "middle", "outer"}
	check := func(what string, tab *Table, m Module, addr uint64, want []string) {
		t.Helper()
		if got := at(tab, m, addr); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v (%v)", what, got, want, tab.Notes())
		}
	}
	check("whole", New(), Module{bin, id}, outer, want)
	check("no build id in the trace", New(), Module{bin, ""}, outer, want)
	dir := t.TempDir()
	debug := filepath.Join(dir, "p.debug")
	run(t, "objcopy", "--only-keep-debug", bin, debug)
	stripped := filepath.Join(dir, "p")
	run(t, "strip", "-o", stripped, bin)
	check("stripped", New(), Module{stripped, id}, outer, nil)
	linked := filepath.Join(dir, "linked")
	run(t, "objcopy", "--add-gnu-debuglink="+debug, stripped, linked)
	check("by link", New(), Module{linked, id}, outer, want)

	// Another debugging file of that name is refused, as its checksum is another.
	b, err := os.ReadFile(debug)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(debug, append(slices.Clone(b), 0), 0o600); err != nil {
		t.Fatal(err)
	}
	check("wrong checksum", New(), Module{linked, id}, outer, nil)

	// By build id alone, the program being gone.
	tab := New()
	tab.Dirs = []string{t.TempDir()}
	x := hexOf(id)
	place := filepath.Join(tab.Dirs[0], ".build-id", x[:2], x[2:]+".debug")
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place, b, 0o600); err != nil {
		t.Fatal(err)
	}
	check("by build id", tab, Module{"/gone/p", id}, outer, want)

	// Another program at that path.
	tab = New()
	check("other program", tab, Module{bin, strings.Repeat("x", 20)}, outer, nil)
	if n := tab.Notes(); len(n) != 1 || !strings.Contains(n[0], "another one") {
		t.Errorf("notes: %q", n)
	}
	tab = New()
	check("no file", tab, Module{"/gone/q", id}, outer, nil)
	check("no regular file", tab, Module{"/dev/zero", ""}, outer, nil)
	check("no path", tab, Module{"linux-vdso.so.1", ""}, outer, nil)
	if n := tab.Notes(); len(n) < 3 {
		t.Errorf("notes: %q", n)
	}
}

func hexOf(s string) string {
	const d = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(d[s[i]>>4])
		b.WriteByte(d[s[i]&15])
	}
	return b.String()
}

// TestLines: each frame has the line that it stands at, inlined ones where they are called.
func TestLines(t *testing.T) {
	for _, flags := range [][]string{{"-gdwarf-5"}, {"-gdwarf-4"}, {"-gdwarf-4", "-gz"}, {"-gdwarf-5", "-ffunction-sections"}} {
		bin, outer := build(t, append([]string{"-O2"}, flags...)...)
		tab := New()
		m := Module{Path: bin}
		tab.Want(m, outer)
		tab.Resolve(nil)
		f := tab.At(m, outer)
		if len(f) != 3 || f[0].Line != 4 || f[1].Line != 7 || f[2].Line != 10 || !f[0].Inline || !f[1].Inline || f[2].Inline || filepath.Base(f[0].File) != "p.c" || f[1].File != f[2].File {
			t.Errorf("%v: %+v (%v)", flags, f, tab.Notes())
		}
	}
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"_ZN1a1bEi": "a::b(int)", "main.f": "main.f", "f.isra.0": "f", "f.part.1.cold": "f", "runtime.asmcgocall.abi0": "runtime.asmcgocall", "_Z": "_Z", "": "",
		"_RNvC6_123foo3bar": "123foo::bar",
	} {
		if got := Name(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	if n := len(Name("_Z" + strings.Repeat("NSt", 1<<16))); n > 1<<13 {
		t.Errorf("a name of %d bytes", n)
	}
}

// look does all that is done with a file of anybody's.
func look(b []byte) {
	e, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return
	}
	buildID(e)
	debugLink(e)
	f := &files{self: e}
	w := map[uint64][]Frame{}
	var addrs []uint64
	for a := uint64(0x1000); a < 0x1400; a += 16 {
		addrs = append(addrs, a)
		w[a] = nil
	}
	f.lines(addrs, w)
	f.functions(addrs, w)
}

// TestDamaged: a damaged file gives names or none, and nothing else.
func TestDamaged(t *testing.T) {
	bin, _ := build(t, "-O2", "-g")
	whole, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 7))
	for i := range 300 {
		b := slices.Clone(whole)
		for range 1 + i%20 {
			b[rnd.IntN(len(b))] = byte(rnd.Uint32())
		}
		if i%5 == 0 {
			b = b[:rnd.IntN(len(b))]
		}
		look(b)
	}
}

func FuzzFile(f *testing.F) {
	bin, _ := build(f, "-O2", "-g", "-nostdlib", "-static", "-e", "main")
	whole, err := os.ReadFile(bin)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 1<<18 {
			look(b)
		}
	})
}
