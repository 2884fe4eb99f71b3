package kernels

import (
	"bufio"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prophet/runtime/calibrate"
	"prophet/runtime/cgroup"
	"prophet/runtime/run"
)

// describe says what machine this is.
func describe() *calibrate.Machine {
	m := &calibrate.Machine{Version: calibrate.Version, When: time.Now().UTC().Format(time.RFC3339), Arch: runtime.GOARCH,
		CPU: cpu(), CPUs: run.CPUs()}
	if groups, err := cgroup.Own(); err == nil {
		m.Quota = cgroup.Limit(groups)
	}
	m.Host, _ = os.Hostname()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) == nil {
		m.Memory = int64(uint64(s.Totalram) * uint64(s.Unit))
	}
	return m
}

func cpu() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	defer f.Close()
	about := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan() && s.Text() != ""; {
		name, value, _ := strings.Cut(s.Text(), ":")
		about[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if name := about["model name"]; name != "" {
		return name
	}
	if part := about["CPU part"]; part != "" { // arm64 has numbers alone
		return "CPU " + about["CPU implementer"] + "/" + part
	}
	return "unknown CPU"
}
