package tests

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const seeded = "zq7x" // as tests/scrub/secrets.c has it

// recordSecrets records a program that has secrets everywhere, on a machine that has one for a name.
func recordSecrets(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), seeded+"home")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, seeded+"program")
	if out, err := exec.Command("gcc", "-O1", "-D_GNU_SOURCE", "-w", "-pthread", "-I"+filepath.Join(top, "cabi"), filepath.Join(top, "tests", "scrub", "secrets.c"), "-o", bin).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "before"), []byte(seeded+"before"), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "run.prophet")
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--uts", "sh", "-c", "hostname "+seeded+"node && exec \"$@\"", "sh",
		built(t, "prophet"), "record", "-q", "--inputs", "full", "-o", trace, "--", bin, seeded+"arg", seeded+"arg=2")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), seeded+"NAME="+seeded+"value")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return trace
}

// everything is all bytes of a trace, packed or not, as they are stored, as they are unpacked and as they are shown.
func everything(t *testing.T, trace string) []byte {
	t.Helper()
	var all []byte
	add := func(root string) {
		filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				b, _ := os.ReadFile(path)
				all = append(append(append(append(all, d.Name()...), '\n'), b...), '\n')
			}
			return nil
		})
	}
	add(trace)
	dir := trace
	if st, err := os.Stat(trace); err == nil && !st.IsDir() {
		dir = filepath.Join(t.TempDir(), "unpacked.prophet")
		if out, err := exec.Command(built(t, "prophet"), "unpack", "-o", dir, trace).CombinedOutput(); err != nil {
			t.Fatalf("unpack: %v\n%s", err, out)
		}
		add(dir)
	}
	for _, args := range [][]string{{"dump", trace}, {"dump", "--json", trace}, {"info", "--json", trace}, {"verify", "--json", trace}} {
		out, err := exec.Command(built(t, "prophet"), args...).Output()
		if err != nil {
			t.Errorf("prophet %v: %v", args, err)
		}
		all = append(all, bytes.ReplaceAll(out, []byte(trace), nil)...)
	}
	return all
}

func TestScrub(t *testing.T) {
	trace := recordSecrets(t)
	word := regexp.MustCompile(seeded + "[a-zA-Z0-9]+")
	was := map[string]bool{}
	for _, w := range word.FindAll(everything(t, trace), -1) {
		was[string(w)] = true
	}
	for _, w := range strings.Fields("argv0 childarg value thread prctl dir file written stat target link renamed xname xvalue stdio printed before unix abstract message sent host serv old pipe mark begin sem shm mq system popen arg NAME node home program") {
		if !was[seeded+w] {
			t.Errorf("the trace does not have %q: the test looks for nothing there", seeded+w)
		}
	}
	// The numbers that stand for addresses: 93.113.78.47, port 31345, 2a0e:7a71:3738:78::5d71.
	addresses := regexp.MustCompile(`93\.113\.78\.47|:31345\b|2a0e:7a71|` + `\x5d\x71\x4e\x2f|\x2a\x0e\x7a\x71\x37`)
	if n := len(addresses.FindAll(everything(t, trace), -1)); n < 5 {
		t.Errorf("the trace has addresses in only %d places", n)
	}

	out := filepath.Join(t.TempDir(), "shared.prophet")
	cmd := exec.Command(built(t, "prophet"), "scrub", "-o", out, trace)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, said.Bytes())
	}
	for _, want := range []string{"inputs", "paths", "hosts", "addresses", "arguments", "names", "marks", "memory", "it tells still:", "build ids"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("what is left does not say %q:\n%s", want, said.String())
		}
	}
	if st, err := os.Stat(out); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	all := everything(t, out)
	found := map[string]bool{}
	for _, w := range word.FindAll(all, -1) {
		if !found[string(w)] {
			t.Errorf("the scrubbed trace has %s", w)
		}
		found[string(w)] = true
	}
	for _, w := range addresses.FindAll(all, -1) {
		t.Errorf("the scrubbed trace has the address %q", w)
	}
	if bytes.Contains(all, []byte(seeded)) {
		t.Errorf("the scrubbed trace has %s", seeded)
	}

	// Nothing but what may be private has changed: the same events of the same threads, in the same order and at the same time.
	count := func(trace string) (s []string) {
		b, err := exec.Command(built(t, "prophet"), "dump", "--json", trace).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			var e struct {
				T      json.Number
				Thread string
				N      *uint64
				Call   string
				Ret    json.Number
			}
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if e.Call != "" && e.Call != "mmap" && e.Call != "gethostid" {
				s = append(s, e.Thread+" "+e.T.String()+" "+e.Call+" "+e.Ret.String())
			}
		}
		return s
	}
	a, b := count(trace), count(out)
	if len(a) < 100 || len(a) != len(b) {
		t.Fatalf("%d events have become %d", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("%s has become %s", a[i], b[i])
		}
	}

	for _, args := range [][]string{{"--trace", out}, {"inside", out, "--", "true"}} {
		msg, err := exec.Command(built(t, "replayd"), args...).CombinedOutput()
		if ee, ok := err.(*exec.ExitError); !ok || ee.ExitCode() != 125 || !strings.Contains(string(msg), "scrubbed (inputs, ") {
			t.Errorf("replayd %v: %v: %s", args, err, msg)
		}
	}
	shown := filepath.Join(t.TempDir(), "shown")
	for _, args := range [][]string{{"export", out, "--pprof", shown + ".pb.gz", "--folded", shown + ".txt", "--perfetto", shown + ".perfetto", "--csv", shown + ".csv", "--parquet", shown + ".parquet"}, {"report", out, "-o", shown + ".html"}, {"diff", out, out}} {
		if msg, err := exec.Command(built(t, "prophet"), args...).CombinedOutput(); err != nil || bytes.Contains(msg, []byte(seeded)) {
			t.Errorf("prophet %v: %v: %s", args, err, msg)
		}
	}
	list, _ := filepath.Glob(shown + ".csv/*.csv")
	tables := map[string]bool{"events": false, "processes": false, "modules": false}
	for _, path := range list {
		b, err := os.ReadFile(path)
		if err != nil || bytes.Contains(b, []byte(seeded)) {
			t.Errorf("%s: %v, or it has %s", path, err, seeded)
		}
		tables[strings.TrimSuffix(filepath.Base(path), ".csv")] = true
	}
	for name, seen := range tables {
		if !seen {
			t.Errorf("no table of %s among %v", name, list)
		}
	}
	for _, ext := range []string{".txt", ".perfetto", ".html"} {
		if b, err := os.ReadFile(shown + ext); err != nil || bytes.Contains(b, []byte(seeded)) {
			t.Errorf("%s: %v, or it has %s", ext, err, seeded)
		}
	}
	if msg, err := exec.Command(built(t, "prophet"), "pack", "--force", "-o", out+".again", out).CombinedOutput(); err != nil {
		t.Errorf("pack: %v: %s", err, msg)
	}
	if msg, err := exec.Command(built(t, "prophet"), "scrub", "--json", "-o", out+".twice", out).CombinedOutput(); err != nil {
		t.Errorf("scrub of what is scrubbed: %v: %s", err, msg)
	}
	if msg, err := exec.Command(built(t, "prophet"), "scrub", "-o", out, trace).CombinedOutput(); err == nil || !strings.Contains(string(msg), "exists") {
		t.Errorf("a file was replaced unasked: %v: %s", err, msg)
	}
}

// What a list names stays, and nothing else does.
func TestScrubKeeps(t *testing.T) {
	trace := recordSecrets(t)
	for _, c := range []struct {
		keep       string
		stays, not []string
	}{
		{"marks,names", []string{"mark", "begin", "thread"}, []string{"host", "sent", "arg", "file"}},
		{"inputs", []string{"sent", "written", "before"}, []string{"file", "node", "mark", "ENV"}},
		{"path:*/" + seeded + "dir/*", []string{"renamed"}, []string{"target", "link", "stat", "sem"}},
		{"arguments", []string{"arg", "childarg", "system", "NAME"}, []string{"sent", "file"}},
		{"env:" + seeded + "N*", []string{"NAME", "value"}, []string{"arg", "childarg"}},
		{"hosts", []string{"node", "host", "old"}, []string{"arg", "unix"}},
		{"paths", []string{"dir", "file", "unix", "abstract", "shm", "target", "program"}, []string{"sent", "childarg", "xname"}},
	} {
		out := filepath.Join(t.TempDir(), "kept.prophet")
		msg, err := exec.Command(built(t, "prophet"), "scrub", "--directory", "--keep", c.keep, "-o", out, trace).CombinedOutput()
		if err != nil {
			t.Errorf("--keep %s: %v: %s", c.keep, err, msg)
			continue
		}
		all := everything(t, out)
		for _, w := range c.stays {
			if !bytes.Contains(all, []byte(seeded+w)) {
				t.Errorf("--keep %s: %s is gone", c.keep, seeded+w)
			}
		}
		for _, w := range c.not {
			if regexp.MustCompile(seeded + w + `\b`).Match(all) {
				t.Errorf("--keep %s: %s is there still", c.keep, seeded+w)
			}
		}
	}
	msg, err := exec.Command(built(t, "prophet"), "scrub", "--keep", "everything", trace).CombinedOutput()
	if ee, ok := err.(*exec.ExitError); !ok || ee.ExitCode() != 2 {
		t.Errorf("%v: %s", err, msg)
	}
}
