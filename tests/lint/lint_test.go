// Package lint holds the rules of the code that no compiler knows. Each failure says what to do instead.
package lint

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"prophet/cabi"
)

const top = "../.."

// mayImport is the map of who may import whom of ours, by longest prefix.
var mayImport = map[string][]string{
	"cabi":           {},
	"cabi/client":    {"cabi"},
	"runtime":        {"cabi", "runtime"},
	"replayd":        {"cabi", "runtime", "replayd"},
	"replayd/client": {"replayd/proto"},
	"replayd/proto":  {},
	"tools":          {"cabi", "runtime", "tools", "replayd/client", "replayd/control", "replayd/proto"},
	"tools/gen":      {"cabi"},
	"shim":           {"cabi", "runtime/trace"},
	"tests":          {"cabi", "runtime", "replayd", "tests"},
	"bench":          {"cabi", "runtime", "tests"},
	"runtime/trace":  {"cabi"},
	"runtime/shm":    {"cabi", "runtime/trace"},
}

// onlyIn says which packages of others belong to which of ours.
var onlyIn = map[string][]string{
	"unsafe":                             {"runtime/shm", "shim", "cabi/client"},
	"golang.org/x/sys/unix":              {"runtime/shm", "runtime/run", "runtime/pause", "runtime/inside", "replayd"},
	"github.com/ebitengine/purego":       {"cabi/client", "tests", "tools"},
	"github.com/google/pprof":            {"runtime/profile"},
	"github.com/ianlancetaylor/demangle": {"runtime/symbols"},
	"github.com/spf13/cobra":             {"tools", "replayd", "runtime/run", "runtime/manual"},
	"github.com/hanwen/go-fuse":          {"bench/accuracy"},
	"github.com/klauspost/compress":      {"runtime/trace", "runtime/issued"},
	"github.com/cespare/xxhash/v2":       {"runtime/trace", "runtime/demand"},
	"github.com/parquet-go/parquet-go":   {"runtime/tables"},
	"prophet/cabi":                       nil,
}

func under(dir, prefix string) bool { return dir == prefix || strings.HasPrefix(dir, prefix+"/") }

func TestImports(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "build" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		seen++
		dir, _ := filepath.Rel(top, filepath.Dir(path))
		test := strings.HasSuffix(path, "_test.go")
		rule, best := []string(nil), -1
		for prefix, allowed := range mayImport {
			if under(dir, prefix) && len(prefix) > best {
				rule, best = allowed, len(prefix)
			}
		}
		if best < 0 {
			t.Errorf("%s is in no part of the map: add it to mayImport with what it may import", path)
			return nil
		}
		for _, spec := range f.Imports {
			imp := strings.Trim(spec.Path.Value, `"`)
			if ours, ok := strings.CutPrefix(imp, "prophet/"); ok {
				if under(ours, "shim") || (under(ours, "tests") && !under(dir, "tests") && !under(dir, "bench")) {
					t.Errorf("%s imports %s: nobody imports shim or tests; move what you need to runtime", path, imp)
				}
				good := under(ours, dir)
				for _, a := range rule {
					good = good || under(ours, a)
				}
				if !good && !test {
					t.Errorf("%s imports %s: %s may import only %v; move the code up or pass a value", path, imp, dir, rule)
				}
				continue
			}
			for other, homes := range onlyIn {
				if !under(imp, other) || homes == nil || test {
					continue
				}
				good := false
				for _, h := range homes {
					good = good || under(dir, h)
				}
				if !good {
					t.Errorf("%s imports %s: that belongs to %v; call a function there", path, imp, homes)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Fatalf("only %d Go files seen", seen)
	}
}

// forbidden are calls that the record path must not make (shim/rules.h, 3).
var forbidden = []struct {
	re      *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`[^_a-zA-Z0-9.>](malloc|calloc|realloc|free|strdup)\s*\(`), "no allocation inside the program: use the stack, thr or mmap"},
	{regexp.MustCompile(`[^_a-zA-Z0-9.>"](printf|fprintf|snprintf|sprintf|puts|fputs|perror)\s*\([^)]*"`), "no stdio inside the program: struct text (minlibc.h)"},
	{regexp.MustCompile(`[^_a-zA-Z0-9.>](strlen|strcmp|strncmp|strcpy|strcat|strstr|memcmp|getenv)\s*\(`), "use minlibc.h"},
	{regexp.MustCompile(`[^_a-zA-Z0-9.>](dlsym|dlopen|dlvsym)\s*\(`), "use shim_find (real.h): dlsym may allocate and lock"},
	{regexp.MustCompile(`__attribute__\(\(\s*(constructor|destructor)\s*\)\)`), "a constructor needs a priority, or Go's entry is not the last (boot.c)"},
}

var comment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)

func TestShimCalls(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(top, "shim", "*.[ch]"))
	if len(files) < 20 {
		t.Fatalf("only %d files seen", len(files))
	}
	for _, path := range files {
		if strings.HasPrefix(filepath.Base(path), "z") || filepath.Base(path) == "mem.c" { // mem.c is what others call
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code := comment.ReplaceAllStringFunc(string(text), func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
		for i, line := range strings.Split(code, "\n") {
			if strings.HasPrefix(line, "EXPORT ") || strings.Contains(line, "REAL(") || strings.Contains(line, "extern ") {
				continue
			}
			for _, f := range forbidden {
				if f.re.MatchString(line) {
					t.Errorf("%s:%d: %s: %s", filepath.Base(path), i+1, strings.TrimSpace(line), f.instead)
				}
			}
			if strings.Contains(line, "__x86_64__") || strings.Contains(line, "__aarch64__") {
				if filepath.Base(path) != "platform.h" {
					t.Errorf("%s:%d: machines differ in platform.h alone: put it there", filepath.Base(path), i+1)
				}
			}
		}
	}
}

func TestTable(t *testing.T) {
	reexec := map[string]bool{"real": true, "order": true, "feed": true, "none": true}
	issue := map[string]bool{"same": true, "order": true, "map": true, "cpu": true, "skip": true}
	ids, names := map[uint16]string{}, map[string]bool{}
	for _, c := range cabi.Calls {
		if was, ok := ids[c.ID]; ok {
			t.Errorf("%s and %s share id %d: ids are stored in traces, take a new one", was, c.Name, c.ID)
		}
		ids[c.ID] = c.Name
		if key := c.Name + "@" + c.Version; names[key] {
			t.Errorf("%s has two rows", key)
		} else {
			names[key] = true
		}
		if c.Body == cabi.Known {
			if c.Note == "" {
				t.Errorf("%s is not intercepted: its Note must say why", c.Name)
			}
			continue
		}
		if !reexec[c.Reexec] || !issue[c.Issue] {
			t.Errorf("%s: Reexec %q and Issue %q must be words of cabi.Call's comment", c.Name, c.Reexec, c.Issue)
		}
		if c.Support != cabi.Full && c.Note == "" {
			t.Errorf("%s is not fully supported: its Note must say what is missing", c.Name)
		}
		if !strings.Contains(c.Sig, c.Name+"(") {
			t.Errorf("%s: its prototype is of something else: %s", c.Name, c.Sig)
		}
	}
	if len(ids) < 3 {
		t.Fatalf("only %d rows", len(ids))
	}
}

// What shim/start.ld puts together is in the shim: a name that was renamed there would silently lie elsewhere.
func TestStartOrder(t *testing.T) {
	order, err := os.ReadFile(filepath.Join(top, "shim", "start.ld"))
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(top, "shim", "*.c"))
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	names := regexp.MustCompile(`\*\(\.(?:text\.startup|text\.unlikely|text|rodata|bss)\.(\w+)`).FindAllStringSubmatch(string(order), -1)
	if len(names) < 60 {
		t.Errorf("%d names in shim/start.ld", len(names))
	}
	for _, n := range names {
		if !regexp.MustCompile(`(?m)^(?:[A-Za-z_].*[ *]|\t(?:static|HIDDEN).*[ *])` + n[1] + `\b`).MatchString(all.String()) {
			t.Errorf("shim/start.ld names %s, which no file of shim defines", n[1])
		}
	}
}

// What the compiler offers to ask of the processor brings a constructor of libgcc's, which asks by CPUID in each program at
// its start: under a hypervisor that cost /bin/true 70 µs.
func TestNoCPUConstructor(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(top, "shim", "*.[ch]"))
	if len(files) < 50 {
		t.Fatalf("%d files of shim", len(files))
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "__builtin_cpu_") {
			t.Errorf("%s asks the compiler what the processor can do; see shim_wide_registers", f)
		}
	}
}
