package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Prediction is how long the run would take elsewhere, as `prophet predict --json` says.
type Prediction struct {
	Target    string  `json:"target,omitempty"`
	Predicted float64 `json:"predicted_seconds"`
	Low       float64 `json:"low_seconds"`
	High      float64 `json:"high_seconds"`
	Home      float64 `json:"home_seconds"`
	Noise     float64 `json:"noise"` // of runs at home: how far they lie apart, as a share
	Rounds    int     `json:"rounds"`
	Proven    bool    `json:"proven"`
	// Where the time goes, and what would change it; absent where that could not be worked out, as Notes say.
	Recorded     float64       `json:"home_recorded_seconds,omitempty"` // of the recorded run, which home's side is of
	Issued       float64       `json:"issue_seconds,omitempty"`         // of the issue that the target's side is of
	Breakdown    []Part        `json:"breakdown"`
	Path         []Part        `json:"path_breakdown,omitempty"` // the critical paths
	Critical     []Critical    `json:"critical_path"`
	HomeCritical []Critical    `json:"home_critical_path,omitempty"`
	Sensitivity  []Sensitivity `json:"sensitivity"`
	Notes        []string      `json:"notes,omitempty"`
}

// Part is a thread's time of one class, here and there.
type Part struct {
	Thread string  `json:"thread"`
	Class  string  `json:"class"` // cpu, ready, disk, locks, waits, pipes, sleep, outside
	Home   float64 `json:"home_seconds"`
	Target float64 `json:"target_seconds"`
}

// Critical is all that the path that decides how long the run takes has of one thread with one thing.
type Critical struct {
	Thread  string  `json:"thread"`
	Class   string  `json:"class"`
	Call    string  `json:"call,omitempty"`   // of computing: the one that came after it
	Object  string  `json:"object,omitempty"` // file, lock, thread
	At      string  `json:"at,omitempty"`     // where in the program
	Seconds float64 `json:"seconds"`
	Longest float64 `json:"longest_seconds,omitempty"`
	Times   int     `json:"times,omitempty"`
}

// Sensitivity is by how much the predicted time would change if a resource were another.
type Sensitivity struct {
	Resource string  `json:"resource"`
	How      string  `json:"how,omitempty"`
	Seconds  float64 `json:"seconds"` // less than nothing: the run would take so much less
	Low      float64 `json:"low_seconds,omitempty"`
	High     float64 `json:"high_seconds,omitempty"`
	Issues   int     `json:"issues,omitempty"` // that it was measured with; 0: what the critical path has of it, which is the most that can be won
}

// maxPrediction bounds the file, maxParts the lists that are shown of it.
const (
	maxPrediction = 64 << 20
	maxParts      = 20_000
	maxNotes      = 100
)

// ReadPrediction reads what `prophet predict --json` printed.
func ReadPrediction(r io.Reader) (*Prediction, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPrediction+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxPrediction {
		return nil, fmt.Errorf("a prediction has at most %d bytes", maxPrediction)
	}
	var p Prediction
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, err
	}
	if !(p.Predicted > 0) || !(p.Home > 0) || math.IsInf(p.Predicted+p.Home, 0) {
		return nil, fmt.Errorf("it says neither how long the run takes there (predicted_seconds) nor here (home_seconds)")
	}
	p.Target = clean(p.Target)
	for _, list := range []*[]Part{&p.Breakdown, &p.Path} {
		*list = (*list)[:min(len(*list), maxParts)]
		for i := range *list {
			x := &(*list)[i]
			x.Thread, x.Class = clean(x.Thread), clean(x.Class)
		}
	}
	for _, list := range []*[]Critical{&p.Critical, &p.HomeCritical} {
		*list = (*list)[:min(len(*list), maxParts)]
		for i := range *list {
			x := &(*list)[i]
			x.Thread, x.Class, x.Call, x.Object, x.At = clean(x.Thread), clean(x.Class), clean(x.Call), clean(x.Object), clean(x.At)
		}
	}
	p.Sensitivity = p.Sensitivity[:min(len(p.Sensitivity), maxParts)]
	for i := range p.Sensitivity {
		x := &p.Sensitivity[i]
		x.Resource, x.How = clean(x.Resource), clean(x.How)
	}
	p.Notes = p.Notes[:min(len(p.Notes), maxNotes)]
	for i := range p.Notes {
		p.Notes[i] = clean(p.Notes[i])
	}
	return &p, nil
}
