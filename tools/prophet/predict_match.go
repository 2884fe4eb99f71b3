package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"slices"
	"strings"

	"prophet/runtime/demand"
	"prophet/runtime/trace"
)

// otherProgram tells of a program of the trace that is another one now: what it does would prove nothing of the recorded one. Those
// without a build id, and those that are not there, are not told apart: the latter the surroundings may have.
func (p *predictor) otherProgram() error {
	for _, proc := range p.trace.Procs {
		for _, m := range proc.Modules() {
			if m.Path != proc.Exe || len(m.BuildID) == 0 {
				continue
			}
			if id := buildID(m.Path); id != nil && !bytes.Equal(id, m.BuildID) {
				return fmt.Errorf("the prediction is refused: %s is not the program that was recorded: its build id is %x, and was %x; record it again", trace.Clean(m.Path), id, m.BuildID)
			}
		}
	}
	return nil
}

// buildID is that of a file; nil: it has none, or is no program.
func buildID(path string) []byte {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	s := f.Section(".note.gnu.build-id")
	if s == nil || s.Size > 1<<10 {
		return nil
	}
	b, err := s.Data()
	if err != nil || len(b) < 16 {
		return nil
	}
	name, size := uint64(f.ByteOrder.Uint32(b)), uint64(f.ByteOrder.Uint32(b[4:]))
	at := 12 + (name+3)&^3
	if at > uint64(len(b)) || size > uint64(len(b))-at {
		return nil
	}
	return b[at : at+size]
}

// letting are calls by which threads and processes let one another go on that are not issued.
var letting = map[string]bool{"kill": true, "killpg": true, "pthread_kill": true, "tgkill": true, "sigqueue": true, "pthread_sigqueue": true, "sigsuspend": true,
	"pause": true, "sigwait": true, "sigwaitinfo": true, "sigtimedwait": true, "signalfd": true, "semop": true, "semtimedop": true, "msgsnd": true, "msgrcv": true,
	"mq_send": true, "mq_timedsend": true, "mq_receive": true, "mq_timedreceive": true, "eventfd_read": true, "eventfd_write": true}

// notIssued says what of a run is not issued although others may have waited for it.
func notIssued(info *demand.Info) []string {
	var list []string
	for name, n := range info.Skipped {
		if letting[name] {
			list = append(list, fmt.Sprintf("%s (%s)", name, grouped(n)))
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	return []string{"not issued, so that nobody waits for it there, and who waited for it at home waits as long: " + strings.Join(list, ", ")}
}
