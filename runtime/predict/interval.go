package predict

import "math"

// The 90 % interval is one for what a person would measure there: the median of as many runs of the program as there
// were issues. How far issues lie apart is not enough for that: ten issues of the same demand agree with one another more
// closely than with the program. What adds up, as shares of the time:
//
//   - the medians' own errors: that of the issues', and that of the real runs', which scatter as issues do. A median of n lies
//     off by 1.25 times the deviation over the root of n;
//   - what a machine drifts by between two rounds of the same: the A/A noise at home, where it was measured;
//   - that issuing is not the program: by how much it was off at home, and at least ModelLeast, as a demand that is right at
//     home may be less so elsewhere.
//
// They are independent, so their squares add up.

// ModelLeast is by how much an issue may be off, as one standard deviation, wherever it was right at home.
const ModelLeast = 0.025

// ninety is how many deviations to each side hold 90 % of a normal distribution.
const ninety = 1.645

// Interval is where 90 % of the medians of real runs should lie.
func Interval(issues []float64, h *Home) (low, high float64) {
	m := Median(issues)
	if m <= 0 {
		return m, m
	}
	n := float64(len(issues))
	// Robust, as single issues are far off on a busy machine: half the way between the quantiles that lie a deviation apart.
	apart := (Quantile(issues, 0.84) - Quantile(issues, 0.16)) / 2 / m
	scatter := 1.25 * apart / math.Sqrt(n)
	if n < 3 {
		scatter = max(scatter, ModelLeast) // they cannot tell
	}
	model := ModelLeast
	var drift float64
	if len(h.Issued) > 0 {
		model = max(model, math.Abs(math.Log1p(h.Off())))
		// The difference of two medians, each off by as much: its mean is 0.8 times 1.4 of that.
		drift = h.Noise() / (0.8 * math.Sqrt2)
	}
	wide := math.Exp(ninety * math.Sqrt(2*scatter*scatter+drift*drift+model*model))
	return m / wide, m * wide
}
