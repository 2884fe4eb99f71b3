package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Prediction is how long the run would take elsewhere, as `prophet predict --json` says.
type Prediction struct {
	Target      string        `json:"target,omitempty"`
	Predicted   float64       `json:"predicted_seconds"`
	Low         float64       `json:"low_seconds"`
	High        float64       `json:"high_seconds"`
	Home        float64       `json:"home_seconds"`
	Noise       float64       `json:"noise"` // of runs at home: how far they lie apart, as a share
	Rounds      int           `json:"rounds"`
	Proven      bool          `json:"proven"`
	Breakdown   []Part        `json:"breakdown"`
	Critical    []Critical    `json:"critical_path"`
	Sensitivity []Sensitivity `json:"sensitivity"`
}

// Part is a thread's time of one class, here and there.
type Part struct {
	Thread string  `json:"thread"`
	Class  string  `json:"class"`
	Home   float64 `json:"home_seconds"`
	Target float64 `json:"target_seconds"`
}

// Critical is a stretch of the path that decides how long the run takes.
type Critical struct {
	Thread  string  `json:"thread"`
	Class   string  `json:"class"`
	Seconds float64 `json:"seconds"`
}

// Sensitivity is by how much the predicted time would change if a resource were a tenth faster.
type Sensitivity struct {
	Resource string  `json:"resource"`
	Seconds  float64 `json:"seconds"`
}

// maxPrediction bounds the file, maxParts the lists that are shown of it.
const (
	maxPrediction = 64 << 20
	maxParts      = 20_000
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
	p.Breakdown = p.Breakdown[:min(len(p.Breakdown), maxParts)]
	p.Critical = p.Critical[:min(len(p.Critical), maxParts)]
	p.Sensitivity = p.Sensitivity[:min(len(p.Sensitivity), maxParts)]
	for i := range p.Breakdown {
		x := &p.Breakdown[i]
		x.Thread, x.Class = clean(x.Thread), clean(x.Class)
	}
	for i := range p.Critical {
		x := &p.Critical[i]
		x.Thread, x.Class = clean(x.Thread), clean(x.Class)
	}
	for i := range p.Sensitivity {
		p.Sensitivity[i].Resource = clean(p.Sensitivity[i].Resource)
	}
	return &p, nil
}
