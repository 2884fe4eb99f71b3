package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// One intercepted call: the loops of progs/price.c, each recorded between two bare runs. Limits are relative to the stamp loop,
// which is one reading of the clock (and is not intercepted).
var callRows = []struct {
	loop  string
	what  string
	calls int     // a repetition
	reps  int     // a run, of which the least counts, as all that disturbs only adds; 1: flushes count too
	limit float64 // times the stamp
}{
	{"stamp", "one stamp", 5_000_000, 8, 0},
	{"mutex", "pthread_mutex_lock or unlock", 100_000_000, 1, 1.3},
	{"clock", "clock_gettime", 2_000_000, 8, 1.5},
	{"write", "write of 1 byte to /dev/null", 200_000, 20, 3},
	{"read", "read of 1 byte from /dev/zero", 200_000, 20, 3},
}

// loop runs one loop of price.c on one core and returns ns a call. The share by which price.c divides the number of
// calls is undone here.
func (b *bench) loop(exe, way, loop string, calls, reps int) (ns float64, trace string, err error) {
	share := map[string]int{"clock": 4, "write": 16, "read": 16}[loop]
	p := b.command(way, b.work, exe, strconv.Itoa(calls*max(share, 1)), strconv.Itoa(reps), loop, strconv.Itoa(lastCPU()))
	var out strings.Builder
	p.cmd.Stdout = &out
	if _, err := p.run(); err != nil {
		return 0, "", err
	}
	f := strings.Fields(out.String())
	if len(f) != 2 || f[0] != loop {
		return 0, "", fmt.Errorf("price said %q", out.String())
	}
	ns, err = strconv.ParseFloat(f[1], 64)
	return ns, p.trace, err
}

func (b *bench) calls() error {
	exe, err := b.build("price")
	if err != nil {
		return err
	}
	stamp := 0.0
	for _, c := range callRows {
		n := c.calls
		if b.quick {
			n /= 10
		}
		var s series
		s.with = map[string][]float64{}
		for r := -1; r < b.rounds; r++ { // the first round warms up: page cache, tmpfs, first touch of the guest's memory
			var bare [2]float64
			var with float64
			var trace string
			if bare[0], _, err = b.loop(exe, wayBare, c.loop, n, c.reps); err != nil {
				return err
			}
			if with, trace, err = b.loop(exe, wayDefault, c.loop, n, c.reps); err != nil {
				return err
			}
			if bare[1], _, err = b.loop(exe, wayBare, c.loop, n, c.reps); err != nil {
				return err
			}
			if c.loop == "mutex" && r == b.rounds-1 {
				if err := b.lockBytes(trace); err != nil {
					return err
				}
			}
			if r < b.rounds-1 || c.loop != "mutex" {
				os.RemoveAll(trace)
			}
			if r < 0 {
				continue
			}
			s.bare = append(s.bare, bare)
			s.with[wayDefault] = append(s.with[wayDefault], with)
			b.sample("Call/"+c.loop+"/bare", n, bare[0], "ns/op")
			b.sample("Call/"+c.loop+"/bare", n, bare[1], "ns/op")
			b.sample("Call/"+c.loop+"/recorded", n, with, "ns/op")
		}
		bare := s.bareMedian()
		if c.loop == "stamp" {
			stamp = bare
			b.add(row{Name: c.what, Value: stamp, Unit: "ns", Noise: s.noise() * bare})
			continue
		}
		added := bare * (s.ratio(wayDefault) - 1)
		b.add(row{Name: c.what, Value: added, Unit: "ns", Limit: c.limit * stamp, Bare: bare, Noise: s.noise() * bare,
			Note: fmt.Sprintf("%.2f stamps, limit %.1f", added/stamp, c.limit)})
	}
	return nil
}

// lockBytes counts what an event of the lock benchmark takes; the trace stays for the readers.
func (b *bench) lockBytes(trace string) error {
	z, err := b.sizes(trace)
	if err != nil {
		return err
	}
	b.add(row{Name: "lock events, as written", Value: z.written(), Unit: "B/event", Limit: 5})
	b.add(row{Name: "lock events, packed", Value: z.packedEach(), Unit: "B/event", Limit: 1, Note: fmt.Sprintf("%d events", z.events)})
	return nil
}

func lastCPU() int {
	// The first core serves most interrupts.
	b, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, "Cpus_allowed_list:"); ok {
			v = strings.TrimSpace(v)
			if i := strings.LastIndexAny(v, ",-"); i >= 0 {
				v = v[i+1:]
			}
			n, _ := strconv.Atoi(v)
			return n
		}
	}
	return 0
}
