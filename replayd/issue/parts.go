package issue

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"prophet/cabi"
	"prophet/runtime/issued"
)

// Part is the time that a thread of the engine spent in operations of one class, or between them.
type Part struct {
	UID     uint32  `json:"uid"` // of the recorded thread
	Class   string  `json:"class"`
	Seconds float64 `json:"seconds"`
}

// PartsMax bounds how many parts are said: those of the longest time.
const PartsMax = 4000

const opSize, opsMax = 40, 1 << 30

// classOf is the class of an operation's own time.
func classOf(code uint16) string {
	switch code {
	case cabi.OpLock, cabi.OpUnlock, cabi.OpTrylock, cabi.OpTimedlock, cabi.OpRdlock, cabi.OpWrlock, cabi.OpTryrdlock, cabi.OpTrywrlock, cabi.OpRwunlock,
		cabi.OpSpinlock, cabi.OpSpintry, cabi.OpSpinunlock, cabi.OpFlock, cabi.OpFcntlLock:
		return "locks"
	case cabi.OpWait, cabi.OpSignal, cabi.OpBroadcast, cabi.OpRelease, cabi.OpBarrier, cabi.OpSemwait, cabi.OpSemtry, cabi.OpSemtimed, cabi.OpSempost,
		cabi.OpJoin, cabi.OpWaitpid:
		return "waits"
	case cabi.OpSleep:
		return "sleep"
	case cabi.OpTake, cabi.OpGive, cabi.OpAccept, cabi.OpConnect, cabi.OpShutdown, cabi.OpPipe, cabi.OpSocketpair:
		return "net"
	case cabi.OpOpen, cabi.OpClose, cabi.OpRead, cabi.OpWrite, cabi.OpPread, cabi.OpPwrite, cabi.OpLseek, cabi.OpFsync, cabi.OpFdatasync, cabi.OpSyncfs,
		cabi.OpSyncrange, cabi.OpTruncate, cabi.OpFallocate, cabi.OpFstat, cabi.OpFadvise, cabi.OpStat, cabi.OpAccess, cabi.OpUnlink, cabi.OpMkdir,
		cabi.OpRmdir, cabi.OpRename, cabi.OpLink, cabi.OpTruncateName, cabi.OpSendfile, cabi.OpCopyrange:
		return "disk"
	}
	return "cpu"
}

// Parts sums a log by thread and class. The program was verified; what is read of it is checked all the same.
func Parts(program string, log *issued.Log) ([]Part, error) {
	f, err := os.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var h cabi.Prog
	if err := binary.Read(f, binary.LittleEndian, &h); err != nil {
		return nil, err
	}
	size, each := uint64(st.Size()), uint64(binary.Size(cabi.ProgThread{}))
	if h.Magic != cabi.ProgMagic || h.Version != cabi.ProgVersion || h.Ops > opsMax || h.OpsAt > size || h.Ops > (size-h.OpsAt)/opSize ||
		h.ThreadsAt > size || uint64(h.Threads) > (size-h.ThreadsAt)/each {
		return nil, errors.New("a table of the compiled trace lies outside of it")
	}
	if len(log.Threads) != int(h.Threads) || log.Program != h.Sum {
		return nil, errors.New("the log is of another program")
	}
	threads := make([]cabi.ProgThread, h.Threads)
	if err := binary.Read(io.NewSectionReader(f, int64(h.ThreadsAt), int64(uint64(h.Threads)*each)), binary.LittleEndian, threads); err != nil {
		return nil, err
	}
	codes := make([]uint16, h.Ops)
	ops := bufio.NewReaderSize(io.NewSectionReader(f, int64(h.OpsAt), int64(h.Ops*opSize)), 1<<20)
	var op [opSize]byte
	for i := range codes {
		if _, err := io.ReadFull(ops, op[:]); err != nil {
			return nil, err
		}
		codes[i] = binary.LittleEndian.Uint16(op[:])
	}
	var list []Part
	for n := range log.Threads {
		sum := map[string]uint64{}
		var l cabi.ProgLog
		it, last := log.Iter(n), uint64(0)
		for {
			err := it.Next(&l)
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			if l.Op >= h.Ops || l.End < l.Begin {
				return nil, fmt.Errorf("the engine's log of thread %d has an operation that is none", n)
			}
			if last != 0 && l.Begin > last {
				sum["cpu"] += l.Begin - last
			}
			sum[classOf(codes[l.Op])] += l.End - l.Begin
			last = l.End
		}
		for class, t := range sum {
			list = append(list, Part{threads[n].UID, class, float64(t) / float64(log.Hz)})
		}
	}
	slices.SortFunc(list, func(a, b Part) int {
		switch {
		case a.Seconds > b.Seconds:
			return -1
		case a.Seconds < b.Seconds:
			return 1
		}
		return 0
	})
	return list[:min(len(list), PartsMax)], nil
}
