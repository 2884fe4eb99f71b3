package tests

import (
	"debug/elf"
	"runtime"
	"strings"
	"testing"

	"prophet/cabi"
)

// TestExports holds what the library defines for others to find against the table: a name too many would take the
// program's calls from somebody, a name too few would let them pass unseen.
func TestExports(t *testing.T) {
	f, err := elf.Open(built(t, "libprophet.so"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || s.Section == elf.SHN_ABS || elf.ST_BIND(s.Info) == elf.STB_LOCAL {
			continue
		}
		name := s.Name
		if s.VersionIndex.IsHidden() { // not the default one
			name += "@" + s.Version
		}
		have[name] = true
	}
	want := map[string]bool{}
	visited := 0
	for i := range cabi.Calls {
		c := &cabi.Calls[i]
		if c.Body == cabi.Known || strings.HasPrefix(c.Name, "_IO_file_") || c.Name == "rdtsc" { // those stand in the tables of streams; an instruction
			continue
		}
		if c.Version != "" && runtime.GOARCH != "amd64" {
			continue
		}
		visited++
		want[rowName(c)] = true
		if !have[rowName(c)] {
			t.Errorf("%s is not exported: give its wrapper EXPORT, and run 'make generate'", rowName(c))
		}
	}
	for name := range have {
		if !want[name] && !strings.HasPrefix(name, "prophet_") {
			t.Errorf("%s is exported without a row in cabi/calls*.go: make it static or HIDDEN, or list it as local in tools/gen", name)
		}
	}
	if visited < 100 {
		t.Fatalf("only %d rows visited", visited)
	}
}
