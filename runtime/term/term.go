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
	now := time.Now()
	if now.Sub(p.start) < patience || now.Sub(p.last) < 100*time.Millisecond || all <= 0 {
		return
	}
	p.last, p.shown = now, true
	part := min(1, max(0, float64(done)/float64(all)))
	left := ""
	if part > 0.02 {
		left = fmt.Sprintf(", %s left", time.Duration(float64(now.Sub(p.start))*(1-part)/part).Round(time.Second))
	}
	fmt.Fprintf(os.Stderr, "\r\x1b[K%s: %.0f%%%s", p.what, 100*part, left)
}

// Say shows how it stands with work of which nobody knows how much there is.
func (p *Progress) Say(how func() string) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.start) < patience || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprintf(os.Stderr, "\r\x1b[K%s: %s", p.what, how())
}

// Done takes the line away.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
		p.shown = false
	}
	p.on = false
}
