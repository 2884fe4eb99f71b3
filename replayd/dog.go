package main

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prophet/runtime/replay"
	"prophet/runtime/shm"
)

// crowd are the processes of a world as the kernel tells of them from outside.
type crowd struct {
	pid    map[uint32]int // host pid of the process that a thread of the trace is in, by UID
	tid    map[uint32]int
	sample replay.Sample
}

// crowd asks the kernel about everything in the world but its process 1, which is no part of the program.
func (r *reexec) crowd(s *replay.State) *crowd {
	c := &crowd{pid: map[uint32]int{}, tid: map[uint32]int{}}
	c.sample.CPU = map[uint32]time.Duration{}
	c.sample.Events = s.Events()
	by := map[uint32]uint32{} // UID by tid in the world
	for i := range s.Threads {
		if now := s.Threads[i].Now; now != 0 && now != ^uint32(0) {
			by[now] = s.Threads[i].UID
		}
	}
	ours, _ := os.Stat("/proc/self/exe")
	queue := shm.Children(r.world.Stage())
	for seen := 0; len(queue) > 0 && seen < 1<<16; seen++ {
		pid := queue[0]
		queue = append(queue[1:], shm.Children(pid)...)
		if exe, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && os.SameFile(ours, exe) {
			continue // process 1 of the world
		}
		for _, tid := range shm.Tasks(pid) {
			inner, ok := innerTID(pid, tid)
			if !ok {
				continue
			}
			if shm.StateOf(pid, tid) == 'Z' {
				continue
			}
			cpu := cpuTime(pid, tid)
			if uid, known := by[inner]; known {
				c.pid[uid], c.tid[uid] = pid, tid
				c.sample.CPU[uid] = cpu
				continue
			}
			c.sample.Foreign++
			c.sample.Other += cpu
		}
	}
	if ctl, err := shm.OpenControl(filepath.Join(r.work, "run.prophet")); err == nil {
		c.sample.Paused = ctl.Pause()&1 != 0
		ctl.Close()
	}
	return c
}

// innerTID is a thread's id in the innermost pid namespace that it is in.
func innerTID(pid, tid int) (uint32, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return 0, false
	}
	_, rest, ok := strings.Cut(string(b), "\nNSpid:")
	if !ok {
		return uint32(tid), true
	}
	line, _, _ := strings.Cut(rest, "\n")
	f := strings.Fields(line)
	if len(f) == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(f[len(f)-1], 10, 32)
	return uint32(n), err == nil
}

// cpuTime is what a thread has used, by the kernel's scheduler; else by its coarser clock.
func cpuTime(pid, tid int) time.Duration {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid)); err == nil {
		if f := strings.Fields(string(b)); len(f) > 0 {
			if ns, err := strconv.ParseInt(f[0], 10, 64); err == nil && ns > 0 {
				return time.Duration(ns)
			}
		}
	}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// outside answers what reports ask, while the world is still there.
func (r *reexec) outside(s *replay.State) *replay.Outside {
	o := &replay.Outside{Args: r.args, Env: r.env, Stat: statFile, BuildID: buildID, Func: function}
	if r.world == nil {
		return o
	}
	var c *crowd
	o.Site = func(uid uint32, pc uint64) string {
		if c == nil {
			c = r.crowd(s)
		}
		return siteIn(c.pid[uid], pc)
	}
	return o
}

func statFile(path string) (size, mtimeNS int64, ok bool) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, 0, false
	}
	return st.Size(), st.ModTime().UnixNano(), true
}

// siteIn finds a call site in a process's memory map.
func siteIn(pid int, pc uint64) string {
	if pid <= 0 {
		return ""
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return ""
	}
	bias := map[string]uint64{}
	for _, l := range strings.Split(string(b), "\n") {
		f := strings.Fields(l)
		if len(f) < 6 || f[5][0] != '/' {
			continue
		}
		low, high, ok := strings.Cut(f[0], "-")
		from, err1 := strconv.ParseUint(low, 16, 64)
		to, err2 := strconv.ParseUint(high, 16, 64)
		if !ok || err1 != nil || err2 != nil {
			continue
		}
		path := strings.Join(f[5:], " ")
		if _, known := bias[path]; !known {
			bias[path] = from - firstAddress(path)
		}
		if pc >= from && pc < to {
			off := pc - bias[path]
			out := fmt.Sprintf("%s+%#x", filepath.Base(path), off)
			if name := function(path, off); name != "" {
				out += " (" + name + ")"
			}
			return out
		}
	}
	return ""
}

// elfMax bounds the files that names of functions are looked for in.
const elfMax = 256 << 20

func openELF(path string) (*elf.File, error) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > elfMax {
		return nil, unix.ENOENT
	}
	return elf.Open(path)
}

// firstAddress is the page that a file's first loaded segment wants to begin at.
func firstAddress(path string) uint64 {
	f, err := openELF(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			return p.Vaddr &^ 4095
		}
	}
	return 0
}

// function is the one that an address of a file lies in.
func function(path string, off uint64) string {
	f, err := openELF(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	syms, _ := f.Symbols()
	if len(syms) == 0 {
		syms, _ = f.DynamicSymbols()
	}
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && off >= s.Value && off < s.Value+s.Size {
			return s.Name
		}
	}
	return ""
}

// buildID is what the linker has written into a file; nil when there is none.
func buildID(path string) []byte {
	f, err := openELF(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > 1<<20 {
			continue
		}
		b, err := io.ReadAll(p.Open())
		if err != nil {
			continue
		}
		for len(b) >= 12 {
			name, desc := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
			kind := binary.LittleEndian.Uint32(b[8:])
			b = b[12:]
			pad := func(n int) int { return (n + 3) &^ 3 }
			if name < 0 || desc < 0 || pad(name)+pad(desc) > len(b) || name > len(b) || desc > len(b) {
				break
			}
			const gnuBuildID = 3
			if kind == gnuBuildID && string(b[:name]) == "GNU\x00" {
				return b[pad(name) : pad(name)+desc]
			}
			b = b[pad(name)+pad(desc):]
		}
	}
	return nil
}
