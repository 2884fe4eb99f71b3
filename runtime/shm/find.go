package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// eachMaps calls fn with the maps of every process that this user may look at, itself excepted.
func eachMaps(fn func(pid string, maps string) (more bool)) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	self := fmt.Sprint(os.Getpid())
	for _, e := range list {
		pid := e.Name()
		if pid[0] < '0' || pid[0] > '9' || pid == self {
			continue
		}
		b, err := os.ReadFile("/proc/" + pid + "/maps")
		if err == nil && len(b) > 0 && !fn(pid, string(b)) {
			return
		}
	}
}

// Mapped reports whether a process of this user has the control file of this trace directory mapped. Processes whose
// rings are private have no slot, and a forked child has none yet: this finds them too.
func Mapped(dir string) bool {
	want, err := realPath(dir)
	if err != nil {
		return false
	}
	found := false
	line := " " + controlPath(want) + "\n"
	eachMaps(func(_, maps string) bool {
		found = strings.Contains(maps, line)
		return !found
	})
	return found
}

func realPath(dir string) (string, error) {
	p, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return filepath.Abs(p)
}

// InUse is the set of tags whose shared memory a live process has mapped.
func InUse() map[string]bool {
	used := map[string]bool{}
	prefix := Dir() + "/"
	eachMaps(func(_, maps string) bool {
		for {
			i := strings.Index(maps, prefix)
			if i < 0 {
				return true
			}
			maps = maps[i+len(prefix):]
			if len(maps) >= 16 {
				used[maps[:16]] = true
			}
		}
	})
	return used
}

// Records says whether the process of this number is one of the run's: it has the run's rings mapped, or has ended. A
// process that has not looked yet which namespace its number belongs to (shim_ns_known) is told from another by that.
func Records(pid int, tag uint64) bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) || err == nil && len(maps) == 0 {
		return true
	}
	return strings.Contains(string(maps), "/"+RingsName(tag))
}

// TraceOfPID finds the trace directory that a process records into: where the control file it has mapped lies. The
// path comes from the kernel, not from the process.
func TraceOfPID(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		if os.IsNotExist(err) {
			return "", fmt.Errorf("there is no process %d", pid)
		}
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		i := strings.IndexByte(line, '/')
		if i < 0 || !strings.Contains(line[:i], " rw-s ") {
			continue
		}
		if m := apart.FindStringSubmatch(line[i:]); m != nil {
			if dir, _ := TraceOf(m[1]); dir != "" {
				return dir, nil
			}
		}
		if !strings.HasSuffix(line, "/control") {
			continue
		}
		dir := filepath.Dir(line[i:])
		if c, err := OpenControl(dir); err == nil {
			c.Close()
			return dir, nil
		}
	}
	return "", fmt.Errorf("process %d is not being recorded", pid)
}

// TraceOf is the directory of the run of this tag, from the link <tag>.dir beside its rings: "" when that directory is
// gone or holds another run; ok is false when there is no link. The link is only followed to compare tags.
func TraceOf(tag string) (dir string, ok bool) {
	link, err := os.Readlink(filepath.Join(Dir(), tag+".dir"))
	if err != nil || !filepath.IsAbs(link) {
		return "", false
	}
	c, err := OpenControl(link)
	if err != nil {
		return "", true
	}
	defer c.Close()
	if fmt.Sprintf("%016x", c.Tag()) != tag {
		return "", true
	}
	return link, true
}
