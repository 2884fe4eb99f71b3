package shm

import (
	"os"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"prophet/cabi"
)

// Pids is the page by which the processes of a re-execution choose process ids (shim/pids.c), as process 1 maps it.
type Pids struct {
	p   *cabi.Pids
	mem []byte
}

// MakePids makes the file.
func MakePids(path string) error {
	return os.WriteFile(path, make([]byte, unsafe.Sizeof(cabi.Pids{})), 0o600)
}

// OpenPids maps it.
func OpenPids(path string) (*Pids, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mem, err := mapFile(f, int64(unsafe.Sizeof(cabi.Pids{})))
	if err != nil {
		return nil, err
	}
	return &Pids{(*cabi.Pids)(unsafe.Pointer(&mem[0])), mem}, nil
}

// Taken is how many ids could not be had.
func (p *Pids) Taken() uint32 { return atomic.LoadUint32(&p.p.Taken) }

// Close unmaps it.
func (p *Pids) Close() error {
	p.p = nil
	return unix.Munmap(p.mem)
}

// Serve answers those who may not choose an id themselves, by writing to the descriptor of ns_last_pid. It does not
// return. Between the question and the child nothing else here may make a thread, which would take the number: what it
// does for a question is no business of the scheduler.
func (p *Pids) Serve(fd int) {
	atomic.StoreUint32(&p.p.Server, 1)
	done := atomic.LoadUint32(&p.p.Done)
	for {
		asked := atomic.LoadUint32(&p.p.Asked)
		if asked == done {
			unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&p.p.Asked)), futexWait, uintptr(asked), 0, 0, 0)
			continue
		}
		var text [12]byte
		b := strconv.AppendUint(text[:0], uint64(atomic.LoadUint32(&p.p.Want)-1), 10)
		_, _, e := unix.RawSyscall6(unix.SYS_PWRITE64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
		done = asked
		atomic.StoreUint32(&p.p.Failed, uint32(e)) // before Done, which releases it
		atomic.StoreUint32(&p.p.Done, done)
		unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&p.p.Done)), futexWake, 1, 0, 0, 0)
	}
}

// Operations of futex(2), the same everywhere.
const (
	futexWait = 0
	futexWake = 1
)
