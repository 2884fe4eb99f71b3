// Package term is how commands behave on a terminal: colours where they are welcome, progress of work that takes
// longer than a moment. On anything but a terminal it prints nothing.
package term

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// IsTerminal reports whether a person looks at f.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Colours reports whether f takes colours: a terminal, and nobody set NO_COLOR.
func Colours(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(f)
}

// patience is how long work may take before its progress is shown.
const patience = 2 * time.Second

// Progress shows on stderr how far a long piece of work is. All methods may be called from several goroutines.
type Progress struct {
	what  string
	start time.Time
	on    bool
	mu    sync.Mutex
	last  time.Time
	shown bool
	line  func(now time.Time) string // how it stands; nil: not known yet
	over  chan struct{}              // of Keep
}

// NewProgress begins; nothing is shown for the first two seconds.
func NewProgress(what string) *Progress {
	return &Progress{what: what, start: time.Now(), on: IsTerminal(os.Stderr)}
}

// Set tells how much of all is done.
func (p *Progress) Set(done, all int64) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if all <= 0 {
		return
	}
	part, at := min(1, max(0, float64(done)/float64(all))), time.Now()
	p.line = func(now time.Time) string {
		left := ""
		if part > 0.02 {
			left = fmt.Sprintf(", %s left", max(0, time.Duration(float64(at.Sub(p.start))*(1-part)/part)-now.Sub(at)).Round(time.Second))
		}
		return fmt.Sprintf("%.0f%%%s", 100*part, left)
	}
	p.show(at)
}

// Say shows how it stands with work of which nobody knows how much there is.
func (p *Progress) Say(how func() string) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.over == nil {
		p.line = func(time.Time) string { return how() }
	} else {
		said := how() // what it looks at may change until the line is shown again
		p.line = func(now time.Time) string { return fmt.Sprintf("%s; %s", said, now.Sub(p.start).Round(time.Second)) }
	}
	p.show(now)
}

// show writes the line, if it is time.
func (p *Progress) show(now time.Time) {
	if now.Sub(p.start) < patience || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last, p.shown = now, true
	text := now.Sub(p.start).Round(time.Second).String()
	if p.line != nil {
		text = p.line(now)
	}
	fmt.Fprintf(os.Stderr, "\r\x1b[K%s: %s", p.what, text)
}

// Keep shows each second how it stands, for work whose steps take long. Nobody else writes to the terminal until Done.
func (p *Progress) Keep() *Progress {
	if !p.on {
		return p
	}
	p.over = make(chan struct{})
	go func() {
		each := time.NewTicker(time.Second)
		defer each.Stop()
		for {
			select {
			case <-p.over:
				return
			case now := <-each.C:
				p.mu.Lock()
				if p.on {
					p.show(now)
				}
				p.mu.Unlock()
			}
		}
	}()
	return p
}

// Done takes the line away.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
		p.shown = false
	}
	if p.on && p.over != nil {
		close(p.over)
	}
	p.on = false
}
