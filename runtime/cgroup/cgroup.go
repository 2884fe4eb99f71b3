// Package cgroup limits CPU time through Linux's control groups, version 1 or 2, where they can be written. It reads the
// limits that apply to this process, and makes a group of its own below the one it is in.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A Group governs the CPU time of the processes in it.
type Group struct {
	Dir  string // its directory
	Top  string // where its hierarchy is mounted: Dir or above it
	V2   bool
	From string // of one that Join made: the group that this process was in
}

// Own are the groups that govern this process' CPU time: one of version 1, one of version 2, or both.
func Own() ([]Group, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parse(string(groups), string(mounts)), nil
}

// parse reads /proc/self/cgroup and mountinfo.
func parse(groups, mounts string) []Group {
	type hierarchy struct {
		root, top string
		v2        bool
	}
	var list []hierarchy
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		switch {
		case g[0] == "cgroup2":
			list = append(list, hierarchy{unescape(f[3]), unescape(f[4]), true})
		case g[0] == "cgroup" && slices.Contains(strings.Split(g[2], ","), "cpu"):
			list = append(list, hierarchy{unescape(f[3]), unescape(f[4]), false})
		}
	}
	var out []Group
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		v2 := f[0] == "0" && f[1] == ""
		if !v2 && !slices.Contains(strings.Split(f[1], ","), "cpu") {
			continue
		}
		for _, h := range list {
			if h.v2 != v2 {
				continue
			}
			// In a container the mount shows a part of the hierarchy, or the path is already relative to it.
			below := strings.TrimPrefix(f[2], strings.TrimSuffix(h.root, "/"))
			dir := filepath.Join(h.top, below)
			if _, err := os.Stat(dir); err != nil {
				dir = h.top
			}
			out = append(out, Group{Dir: dir, Top: h.top, V2: v2})
			break
		}
	}
	return out
}

// unescape undoes mountinfo's octal escapes.
func unescape(s string) string {
	for i := 0; i+3 < len(s); i++ {
		if s[i] == '\\' {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				s = s[:i] + string([]byte{byte(n)}) + s[i+4:]
			}
		}
	}
	return s
}

// limit is the group's own, in CPUs; 0: none.
func (g Group) limit() float64 {
	var quota, period float64
	if g.V2 {
		if n, _ := fmt.Sscanf(read(g.Dir, "cpu.max"), "%g %g", &quota, &period); n != 2 { // "max" is no number
			return 0
		}
	} else {
		quota, _ = strconv.ParseFloat(read(g.Dir, "cpu.cfs_quota_us"), 64)
		period, _ = strconv.ParseFloat(read(g.Dir, "cpu.cfs_period_us"), 64)
	}
	if quota <= 0 || period <= 0 {
		return 0
	}
	return quota / period
}

// Limit is the least CPU time that a group or one above it allows its processes, in CPUs; 0: all there is.
func Limit(groups []Group) float64 {
	least := 0.0
	for _, g := range groups {
		for {
			if l := g.limit(); l > 0 && (least == 0 || l < least) {
				least = l
			}
			if g.Dir == g.Top || len(g.Dir) <= len(g.Top) {
				break
			}
			g.Dir = filepath.Dir(g.Dir)
		}
	}
	return least
}

func read(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(b))
}

func write(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0)
}

// The name of a group that Join makes: who made it follows.
const prefix = "prophet-"

const periodUS = 100000 // the kernel's default

// Join makes a group that allows so many CPUs' time, and puts this process into it. Version 1 is tried before version 2.
func Join(cpus float64) (Group, error) {
	if !(cpus >= 0.01 && cpus <= 1<<16) {
		return Group{}, fmt.Errorf("a quota of %g CPUs: it wants 0.01 or more", cpus)
	}
	groups, err := Own()
	if err != nil {
		return Group{}, err
	}
	return join(groups, cpus, os.Getpid())
}

func join(groups []Group, cpus float64, pid int) (Group, error) {
	errs := []error{errors.New("no quota of CPU time can be set: no control group can be written here")}
	for _, v2 := range []bool{false, true} {
		for _, own := range groups {
			if own.V2 != v2 {
				continue
			}
			for above := own.Dir; ; above = filepath.Dir(above) {
				g, err := own.below(above, cpus, pid)
				if err == nil {
					return g, nil
				}
				errs = append(errs, err)
				// In version 2 a group with processes has no groups below it that share its CPU time, so that one has to go up.
				if !v2 || above == own.Top || len(above) <= len(own.Top) {
					break
				}
			}
		}
	}
	return Group{}, errors.Join(errs...)
}

// below makes a group in the directory above, for a process that is in g.
func (g Group) below(above string, cpus float64, pid int) (Group, error) {
	sweep(above)
	child := Group{Dir: filepath.Join(above, prefix+strconv.Itoa(pid)), Top: g.Top, V2: g.V2, From: g.Dir}
	if g.V2 && !slices.Contains(strings.Fields(read(above, "cgroup.subtree_control")), "cpu") {
		if err := write(above, "cgroup.subtree_control", "+cpu"); err != nil {
			return child, err
		}
	}
	if err := os.Mkdir(child.Dir, 0o755); err != nil {
		return child, err
	}
	quota := strconv.Itoa(int(cpus * periodUS))
	var err error
	if g.V2 {
		err = write(child.Dir, "cpu.max", quota+" "+strconv.Itoa(periodUS))
	} else {
		err = errors.Join(write(child.Dir, "cpu.cfs_period_us", strconv.Itoa(periodUS)), write(child.Dir, "cpu.cfs_quota_us", quota))
	}
	if err == nil {
		err = write(child.Dir, "cgroup.procs", strconv.Itoa(pid))
	}
	if err != nil {
		os.Remove(child.Dir)
	}
	return child, err
}

// Leave takes this process out of a group that Join made, ends what else is in it, and removes it.
func (g Group) Leave() error {
	if !strings.HasPrefix(filepath.Base(g.Dir), prefix) || g.From == "" {
		return fmt.Errorf("%s is no group of ours", g.Dir)
	}
	if err := write(g.From, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	var err error
	for range 100 {
		if err = os.Remove(g.Dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for pid := range strings.FieldsSeq(read(g.Dir, "cgroup.procs")) {
			if n, bad := strconv.Atoi(pid); bad == nil && n > 1 {
				syscall.Kill(n, syscall.SIGKILL)
			}
		}
		syscall.Nanosleep(&syscall.Timespec{Nsec: 10e6}, nil)
	}
	return err
}

// sweep removes groups whose maker was killed; one that still has processes stays.
func sweep(above string) {
	list, _ := filepath.Glob(filepath.Join(above, prefix+"*"))
	for _, dir := range list {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), prefix))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			os.Remove(dir)
		}
	}
}
