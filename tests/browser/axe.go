package browser

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
)

//go:embed axe/axe.min.js.gz
var axe []byte

// Axe checks the page as it is for what keeps people from using it, by axe-core's rules for WCAG 2.2 AA and good practice,
// and returns what it found, one line a rule and place.
func (p *Page) Axe() ([]string, error) {
	z, err := gzip.NewReader(bytes.NewReader(axe))
	if err != nil {
		return nil, err
	}
	script, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	if err := p.Eval(string(script)+"\n;1", nil); err != nil {
		return nil, err
	}
	var r struct {
		Violations []struct {
			ID, Help string
			Nodes    []struct {
				HTML           string `json:"html"`
				FailureSummary string
			}
		}
		Passes []struct{ ID string }
	}
	err = p.Eval(`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations", "passes"]})
		.then(r => ({Violations: r.violations.map(v => ({ID: v.id, Help: v.help, Nodes: v.nodes.map(n => ({html: n.html.slice(0, 200), FailureSummary: n.failureSummary}))})), Passes: r.passes.map(v => ({ID: v.id}))}))`, &r)
	if err != nil {
		return nil, err
	}
	if len(r.Passes) < 15 {
		return nil, fmt.Errorf("axe found only %d rules to look at", len(r.Passes))
	}
	var out []string
	for _, v := range r.Violations {
		for _, n := range v.Nodes {
			out = append(out, fmt.Sprintf("%s (%s): %s: %s", v.ID, v.Help, n.HTML, n.FailureSummary))
		}
	}
	return out, nil
}
