package replay

import (
	"fmt"
	"runtime"
	"sync"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// serialTurns finds the numbers of a serial run's turns: the first, and those that no stream has (shim/serial.h).
func serialTurns(t *trace.Trace) (first uint64, gaps []cabi.ReplaySkip, err error) {
	var (
		mu    sync.Mutex
		taken []uint64 // a bit a number
		last  uint64
		limit = uint64(t.Chunks()+1) << 23 // a chunk holds no more records
	)
	_, err = t.Walk(runtime.GOMAXPROCS(0), func(th *trace.Thread) trace.Visit {
		var turn, said uint64
		explicit := false
		return func(r *trace.Record) error {
			switch {
			case r.Tag == cabi.TagToken && r.Nums[1]&cabi.TokenHere == 0:
				said, explicit = r.Nums[0], true
				return nil
			case r.Tag == cabi.TagToken:
				turn = r.Nums[0]
			case r.Tag != trace.TagEvent:
				return nil
			case !explicit:
				turn++
			case said == 0:
				explicit = false
				return nil
			default:
				turn, explicit = said, false
			}
			if turn > limit {
				return fmt.Errorf("thread %s names turn %d of a serial run, which cannot be", th.Name, turn)
			}
			mu.Lock()
			for turn/64 >= uint64(len(taken)) {
				taken = append(taken, 0)
			}
			taken[turn/64] |= 1 << (turn % 64)
			last = max(last, turn)
			mu.Unlock()
			return nil
		}
	}, nil)
	if err != nil {
		return 0, nil, err
	}
	for n := uint64(1); n <= last; n++ {
		if taken[n/64]>>(n%64)&1 != 0 {
			continue
		}
		if k := len(gaps); k > 0 && gaps[k-1].Past == n {
			gaps[k-1].Past++
		} else {
			gaps = append(gaps, cabi.ReplaySkip{From: n, Past: n + 1})
		}
	}
	first = 1
	if len(gaps) > 0 && gaps[0].From == 1 {
		first = gaps[0].Past
	}
	return first, gaps, nil
}
