package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	top := t.TempDir()
	for dir, files := range map[string]map[string]string{
		"v1/a":   {"cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n"},
		"v1/a/b": {"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"},
		"v2/c":   {"cpu.max": "150000 100000\n"},
		"v2/c/d": {"cpu.max": "max 100000\n"},
	} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(top, dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	mounts := "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / " + top + "/v1 rw,relatime - cgroup cgroup rw,cpuacct,cpu\n" +
		"33 31 0:30 / " + top + "/none rw - cgroup cgroup rw,cpuset\n" +
		"34 31 0:31 /outer " + top + "/v2 rw - cgroup2 cgroup2 rw\nnonsense\n"
	for _, c := range []struct {
		name, groups string
		want         []Group
		limit        float64
	}{
		{"version 1", "2:cpuset:/x\n1:cpu,cpuacct:/a/b\n", []Group{{filepath.Join(top, "v1/a/b"), filepath.Join(top, "v1"), false, ""}}, 0.5},
		{"version 2, a part of it mounted", "0::/outer/c/d\n", []Group{{filepath.Join(top, "v2/c/d"), filepath.Join(top, "v2"), true, ""}}, 1.5},
		{"both", "1:cpu:/\n0::/c\n", []Group{{filepath.Join(top, "v1"), filepath.Join(top, "v1"), false, ""}, {filepath.Join(top, "v2/c"), filepath.Join(top, "v2"), true, ""}}, 1.5},
		{"a group that the mount does not show", "0::/elsewhere\n", []Group{{filepath.Join(top, "v2"), filepath.Join(top, "v2"), true, ""}}, 0},
		{"none", "x\n3:cpuset:/\n", nil, 0},
	} {
		got := parse(c.groups, mounts)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", c.name, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v", c.name, got[i])
			}
		}
		if l := Limit(got); l != c.limit {
			t.Errorf("%s: limit %g", c.name, l)
		}
	}
	if s := unescape(`/a\040b\134`); s != `/a b\` {
		t.Error(s)
	}
}

func TestRefused(t *testing.T) {
	for _, bad := range []float64{0, -1, 0.001} {
		if g, err := Join(bad); err == nil {
			t.Errorf("%g: %v", bad, g)
		}
	}
	if err := (Group{Dir: t.TempDir()}).Leave(); err == nil {
		t.Error("left a group that is not ours")
	}
}

// A tree of plain files stands for one of version 2: a group that has processes cannot share out CPU time, the one above can.
func TestJoinGoesUp(t *testing.T) {
	top := t.TempDir()
	own := filepath.Join(top, "user.slice/session.scope")
	for _, dir := range []string{own, filepath.Join(own, "cgroup.subtree_control")} { // a directory cannot be written
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	stale := filepath.Join(top, "user.slice/prophet-999999999")
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "user.slice/cgroup.subtree_control"), []byte("memory cpu\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := join([]Group{{Dir: own, Top: top, V2: true}}, 0.5, 4711)
	if err != nil {
		t.Fatal(err)
	}
	want := Group{Dir: filepath.Join(top, "user.slice/prophet-4711"), Top: top, V2: true, From: own}
	if g != want {
		t.Errorf("%+v", g)
	}
	if s := read(g.Dir, "cpu.max"); s != "50000 100000" {
		t.Errorf("cpu.max: %q", s)
	}
	if s := read(g.Dir, "cgroup.procs"); s != "4711" {
		t.Errorf("cgroup.procs: %q", s)
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("a group whose maker is gone is still there")
	}
	if g, err := join([]Group{{Dir: own, Top: own, V2: true}}, 0.5, 4711); err == nil || !strings.Contains(err.Error(), "no quota of CPU time can be set") {
		t.Errorf("%+v %v", g, err)
	}
}
