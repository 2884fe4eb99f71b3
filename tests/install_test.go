package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"prophet/cabi"
)

// made makes a target, with further variables.
func made(t *testing.T, target string, variables ...string) string {
	t.Helper()
	cmd := exec.Command("make", append([]string{"-s", target}, variables...)...)
	cmd.Dir = top
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
	return string(out)
}

// TestManual: each command has a page that troff sets without a word, each function of prophet.h is in libprophet(7), and
// the shells take their completions and complete with them.
func TestManual(t *testing.T) {
	built(t, "prophet")
	made(t, "build/share")
	share := filepath.Join(top, "build", "share")
	pages := map[string]string{}
	filepath.WalkDir(filepath.Join(share, "man"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pages[d.Name()] = string(text)
		cmd := exec.Command("groff", "-man", "-Tutf8", "-ww", "-z", "-rCHECKSTYLE=1", path)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", d.Name(), err, out)
		}
		return nil
	})
	for _, program := range []string{"prophet", "replayd"} {
		help, err := exec.Command(built(t, program), "help").Output()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(help)) {
			w := strings.Fields(line)
			if len(w) < 2 || !strings.HasPrefix(line, "  "+w[0]+" ") || strings.Trim(w[0], "abcdefghijklmnopqrstuvwxyz-") != "" || w[0] == "help" || w[0] == "completion" {
				continue
			}
			sub := exec.Command(built(t, program), w[0], "--help")
			if sub.Run() != nil || w[0] == program {
				continue
			}
			if n++; pages[program+"-"+w[0]+".1"] == "" {
				t.Errorf("%s %s has no page", program, w[0])
			}
		}
		if n < 4 {
			t.Errorf("only %d commands of %s seen in\n%s", n, program, help)
		}
	}
	header, err := os.ReadFile(filepath.Join(top, "cabi", "prophet.h"))
	if err != nil {
		t.Fatal(err)
	}
	functions := regexp.MustCompile(`(?m)^extern [^;]*?\b(prophet_[a-z_]+)\(`).FindAllSubmatch(header, -1)
	if len(functions) < 25 {
		t.Fatalf("only %d functions seen in prophet.h", len(functions))
	}
	named := map[string]bool{}
	for _, w := range regexp.MustCompile(`prophet_[a-z_]+`).FindAllString(pages["libprophet.7"], -1) {
		named[w] = true
	}
	for _, f := range functions {
		if !named[string(f[1])] {
			t.Errorf("libprophet(7) does not name %s", f[1])
		}
		delete(named, string(f[1]))
	}
	for f := range named {
		t.Errorf("libprophet(7) names %s, which prophet.h does not have", f)
	}

	for shell, path := range map[string]string{"bash": "bash-completion/completions/prophet", "zsh": "zsh/site-functions/_prophet", "fish": "fish/vendor_completions.d/prophet.fish"} {
		if out, err := exec.Command(shell, "-n", filepath.Join(share, path)).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
	home := []string{"PATH=" + filepath.Join(top, "build") + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm"}
	bash := exec.Command("bash", "--norc", "-c", `. /usr/share/bash-completion/bash_completion; . "$0"
		for line in "prophet scr" "prophet export --par" "prophet dump --thr"; do
			COMP_WORDS=($line) COMP_LINE=$line COMP_POINT=${#line} COMP_TYPE=9; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); __start_prophet; echo ${COMPREPLY[@]}
		done`, filepath.Join(share, "bash-completion/completions/prophet"))
	bash.Env = home
	if out, err := bash.Output(); err != nil || string(out) != "scrub\n--parquet\n--thread\n" {
		t.Errorf("bash completes to %q, %v", out, err)
	}
	// zsh completes on a terminal alone.
	zsh := exec.Command("zsh", "-f", "-c", `zmodload zsh/zpty; zpty z zsh -f -i
		zpty -w z "fpath=($0 \$fpath); autoload -U compinit; compinit -u -D; PS1='> '; echo rea''dy"; zpty -r -m z m '*ready*'
		zpty -w -n z $'prophet scr\t'; zpty -r -m z m '*scrub*'; echo complete; zpty -d z`, filepath.Join(share, "zsh/site-functions"))
	zsh.Env, zsh.WaitDelay = home, time.Second
	late := time.AfterFunc(20*time.Second, func() { zsh.Process.Kill() })
	if out, err := zsh.CombinedOutput(); err != nil || string(out) != "complete\n" {
		t.Errorf("zsh does not complete: %q, %v", out, err)
	}
	late.Stop()
	fish := exec.Command("fish", "--no-config", "-c", "source "+filepath.Join(share, "fish/vendor_completions.d/prophet.fish")+"; complete -C 'prophet scr'")
	fish.Env = append(os.Environ(), "PATH="+filepath.Join(top, "build")+":"+os.Getenv("PATH"), "HOME="+t.TempDir())
	if out, err := fish.Output(); err != nil || !strings.HasPrefix(string(out), "scrub\t") {
		t.Errorf("fish completes `prophet scr` to %q, %v", out, err)
	}
}

// TestDeb: the package installs, what it brings works from there, and removing it leaves nothing. lintian has nothing to
// say but what the package's overrides answer.
func TestDeb(t *testing.T) {
	built(t, "prophet")
	made(t, "deb", "DEBEMAIL=someone@debian.org")
	list, _ := filepath.Glob(filepath.Join(top, "build", "prophet_"+cabi.Version+"_*.deb"))
	if len(list) != 1 {
		t.Fatalf("packages: %v", list)
	}
	deb := list[0]
	lint := exec.Command("lintian", "--fail-on", "error,warning", deb)
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	root := t.TempDir()
	state := filepath.Join(root, "var", "lib", "dpkg")
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(state, "status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) {
		t.Helper()
		out, err := exec.Command("dpkg", append([]string{"--root=" + root, "--force-not-root,depends"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("dpkg %v: %v\n%s", args, err, out)
		}
	}
	before := tree(t, root, state)
	dpkg("--install", deb)
	for _, path := range []string{"usr/share/man/man1/prophet-record.1.gz", "usr/share/man/man7/libprophet.7.gz", "usr/share/zsh/vendor-completions/_prophet", "usr/share/doc/prophet/copyright"} {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Error(err)
		}
	}
	bin := filepath.Join(root, "usr", "bin")
	trace := filepath.Join(t.TempDir(), "run.prophet")
	if out, err := exec.Command(filepath.Join(bin, "prophet"), "record", "-q", "-o", trace, "--", "sort", "/dev/null").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.Command(filepath.Join(bin, "replayd"), "--trace", trace).CombinedOutput(); err != nil || !strings.Contains(string(out), "identical") {
		t.Errorf("%v\n%s", err, out)
	}
	dpkg("--purge", "prophet")
	if after := tree(t, root, state); after != before {
		t.Errorf("removing it leaves\n%s", after)
	}
}

// tree lists all that lies below a directory, but for one.
func tree(t *testing.T, root, not string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if path == not {
			return filepath.SkipDir
		}
		b.WriteString(path + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestInstall: what is installed works from where it is, a host is built as prophet.pc says, and uninstall leaves nothing.
func TestInstall(t *testing.T) {
	built(t, "libprophet.so")
	dir := t.TempDir()
	mk := func(target string) { t.Helper(); made(t, target, "PREFIX="+dir) }
	mk("install")
	pc, err := os.ReadFile(filepath.Join(dir, "lib", "pkgconfig", "prophet.pc"))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for line := range strings.Lines(string(pc)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			said[k] = v
		} else if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			said[k] = v
		}
	}
	value := func(s string) []string {
		for range 3 {
			for k, v := range said {
				s = strings.ReplaceAll(s, "${"+k+"}", v)
			}
		}
		return strings.Fields(s)
	}
	if said["Version"] != cabi.Version {
		t.Errorf("prophet.pc is of version %q, not %s", said["Version"], cabi.Version)
	}
	text, err := os.ReadFile(filepath.Join(top, "tests", "embed", "read.c"))
	if err != nil {
		t.Fatal(err)
	}
	src, bin := filepath.Join(t.TempDir(), "read.c"), filepath.Join(t.TempDir(), "read")
	if err := os.WriteFile(src, []byte(strings.Replace(string(text), `"../../cabi/prophet.h"`, "<prophet.h>", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(value(said["Cflags"]), src, "-o", bin)
	if out, err := exec.Command("gcc", append(args, value(said["Libs"])...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	trace := filepath.Join(t.TempDir(), "run.prophet")
	if out, err := exec.Command(filepath.Join(dir, "bin", "prophet"), "record", "-q", "-o", trace, "--", "ls", "/").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(filepath.Join(dir, "bin", "prophet"), "pack", "-o", trace+".packed", trace).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bin, trace+".packed") // the library finds ../bin/prophet
	cmd.Env = []string{"LD_LIBRARY_PATH=" + filepath.Join(dir, "lib")}
	if out, err := cmd.Output(); err != nil || strings.Count(string(out), "\n") < 10 {
		t.Errorf("%v: %s", err, out)
	}
	for _, path := range []string{"share/man/man1/prophet.1", "share/man/man1/prophet-scrub.1", "share/man/man1/replayd.1", "share/man/man7/libprophet.7",
		"share/bash-completion/completions/prophet", "share/zsh/site-functions/_replayd", "share/fish/vendor_completions.d/prophet.fish"} {
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			t.Error(err)
		}
	}
	mk("uninstall")
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("uninstall left %s", path)
		}
		return nil
	})
}
