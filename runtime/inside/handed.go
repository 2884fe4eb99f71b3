package inside

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"prophet/runtime/trace"
)

// files are the descriptors that a program begins with, by number: the recorded ones where they are known, and then no
// others. A file is opened where it lies, as it was; what stands for the rest answers nothing: the trace does.
func (p *program) files() (files []uintptr, notes []string) {
	files = []uintptr{0, 1, 2}
	if p.Handed == nil {
		return files, nil
	}
	const none = ^uintptr(0)
	most := handedMax
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil && lim.Cur < 2*handedMax { // starting a program takes as many again on the way
		most = int(lim.Cur)/2 - 32
	}
	for _, h := range *p.Handed {
		if h.FD < 0 || h.FD == 1 || h.FD == 2 || h.FD >= handedMax || h.FD == 0 && isFile(0) { // ours is a file, too: somebody chose it
			continue
		}
		if h.FD >= most {
			notes = append(notes, fmt.Sprintf("descriptor %d is not there inside: %d are allowed here", h.FD, lim.Cur))
			continue
		}
		for len(files) <= h.FD {
			files = append(files, none)
		}
		if h.Same >= 0 && h.Same < h.FD && h.Same < len(files) && files[h.Same] != none {
			files[h.FD] = files[h.Same]
			continue
		}
		fd, why := p.like(&h)
		if why != nil {
			notes = append(notes, fmt.Sprintf("descriptor %d was %s: %v", h.FD, h.Path, why))
		}
		if fd >= 0 {
			files[h.FD] = uintptr(fd)
		}
	}
	unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	return files, notes
}

const handedMax = 256 // shim/start.c

func isFile(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// like opens what was handed on, or what stands for it.
func (p *program) like(h *trace.Handed) (int, error) {
	access := h.Flags&(unix.O_ACCMODE|unix.O_APPEND|unix.O_NONBLOCK) | unix.O_CLOEXEC | unix.O_NOCTTY
	switch kind := h.Mode & unix.S_IFMT; {
	case kind == unix.S_IFREG || kind == unix.S_IFDIR || harmless[h.Path]:
		fd, err := unix.Open(h.Path, access|unix.O_NONBLOCK, 0) // what has its name now may be a pipe
		var st unix.Stat_t
		if err == nil && (unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != kind) {
			unix.Close(fd)
			fd, err = -1, errors.New("it is something else now")
		}
		if err == nil {
			unix.FcntlInt(uintptr(fd), unix.F_SETFL, access)
			unix.Seek(fd, h.Offset, 0)
		}
		if err == nil || kind != unix.S_IFREG {
			return fd, err
		}
		if empty, cannot := unix.MemfdCreate("handed", unix.MFD_CLOEXEC); cannot == nil {
			fd = empty
		}
		return fd, fmt.Errorf("it is empty now: %w", err)
	case kind == unix.S_IFSOCK:
		return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	case kind == 0: // an eventfd or the like
		return unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return -1, err
	}
	if h.Flags&unix.O_ACCMODE == unix.O_WRONLY {
		return pipe[1], nil // nobody reads: what is written goes nowhere
	}
	return pipe[0], nil
}

// harmless are devices that are the same everywhere.
var harmless = map[string]bool{"/dev/null": true, "/dev/zero": true, "/dev/full": true, "/dev/random": true, "/dev/urandom": true}
