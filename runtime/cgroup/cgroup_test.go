package cgroup

import (
	"os"
	"path/filepath"
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
		{"version 1", "2:cpuset:/x\n1:cpu,cpuacct:/a/b\n", []Group{{filepath.Join(top, "v1/a/b"), filepath.Join(top, "v1"), false}}, 0.5},
		{"version 2, a part of it mounted", "0::/outer/c/d\n", []Group{{filepath.Join(top, "v2/c/d"), filepath.Join(top, "v2"), true}}, 1.5},
		{"both", "1:cpu:/\n0::/c\n", []Group{{filepath.Join(top, "v1"), filepath.Join(top, "v1"), false}, {filepath.Join(top, "v2/c"), filepath.Join(top, "v2"), true}}, 1.5},
		{"a group that the mount does not show", "0::/elsewhere\n", []Group{{filepath.Join(top, "v2"), filepath.Join(top, "v2"), true}}, 0},
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
