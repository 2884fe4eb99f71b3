package trace

import "math/bits"

// Clock turns ticks into time. The zero value is not usable; see NewClock.
type Clock struct {
	Ticks0 uint64 // where the run's time begins
	Real0  int64  // CLOCK_REALTIME ns there; 0: not known
	Hz     uint64 // ticks a second
	mult   uint64 // ns a tick << 32
}

// ClockPoint is one reading of all clocks at once (TagClock).
type ClockPoint struct{ Ticks, Mono, Real uint64 }

// NewClock makes a clock that starts at ticks0 and runs at hz; hz 0 is taken as 1 GHz, so that ticks show as ns.
func NewClock(ticks0, hz uint64) Clock {
	if hz == 0 {
		hz = 1e9
	}
	return Clock{Ticks0: ticks0, Hz: hz, mult: 1e9 << 32 / hz} // 1e9<<32 takes 62 bits
}

// NS is how many ns a number of ticks takes.
func (c *Clock) NS(ticks uint64) int64 {
	hi, lo := bits.Mul64(ticks, c.mult)
	return int64(hi<<32 | lo>>32)
}

// Since is the time of a tick stamp from the start of the run; negative before it.
func (c *Clock) Since(ticks uint64) int64 {
	if ticks < c.Ticks0 {
		return -c.NS(c.Ticks0 - ticks)
	}
	return c.NS(ticks - c.Ticks0)
}

// Ticks is the stamp at ns after the start of the run.
func (c *Clock) Ticks(ns int64) uint64 {
	neg := ns < 0
	if neg {
		ns = -ns
	}
	hi, lo := bits.Mul64(uint64(ns), c.Hz)
	if hi >= 1e9 {
		return 1<<64 - 1
	}
	q, _ := bits.Div64(hi, lo, 1e9)
	if neg {
		return c.Ticks0 - min(q, c.Ticks0)
	}
	return c.Ticks0 + q
}

// minSpan is the shortest time between two readings that says anything about the rate.
const minSpan = 1_000_000

// Calibrate finds the rate of the ticks from the two readings that lie farthest apart; 0 when they lie within 1 ms.
func Calibrate(points []ClockPoint) uint64 {
	if len(points) == 0 {
		return 0
	}
	lo, hi := points[0], points[0]
	for _, p := range points {
		if p.Mono < lo.Mono {
			lo = p
		}
		if p.Mono > hi.Mono {
			hi = p
		}
	}
	ns := hi.Mono - lo.Mono
	if ns < minSpan || hi.Ticks <= lo.Ticks {
		return 0
	}
	h, l := bits.Mul64(hi.Ticks-lo.Ticks, 1e9)
	if h >= ns {
		return 0
	}
	q, _ := bits.Div64(h, l, ns)
	return q
}
