package report

import (
	"math"
	"slices"
)

// Tests of whether two sides differ. All are of ranks: they ask whether values of one side tend to be larger, and
// assume nothing of how values are spread.

// mannWhitney is the two-sided probability that so different ranks come about where the sides do not differ: exact, by
// counting all ways to deal the values to the sides, or by the normal distribution where these are too many.
func mannWhitney(a, b []float64) float64 {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return 1
	}
	ranks, ties := doubledRanks(a, b)
	got := 0
	for _, r := range ranks[:n] {
		got += r
	}
	all := n + m
	mean := float64(n * (all + 1)) // of a sum of doubled ranks
	if all <= 40 {
		return exactly(ranks, n, math.Abs(float64(got)-mean), mean)
	}
	v := float64(n*m) / 12 * (float64(all+1) - ties/float64(all*(all-1)))
	if v <= 0 {
		return 1
	}
	z := (math.Abs(float64(got)-mean)/2 - .5) / math.Sqrt(v)
	return min(1, math.Erfc(max(0, z)/math.Sqrt2))
}

// doubledRanks are the ranks of all values, times two so that ties have whole ones, and the sum of t³-t over ties.
func doubledRanks(a, b []float64) ([]int, float64) {
	type value struct {
		v float64
		i int
	}
	var list []value
	for i, v := range slices.Concat(a, b) {
		list = append(list, value{v, i})
	}
	slices.SortFunc(list, func(x, y value) int {
		switch {
		case x.v < y.v:
			return -1
		case x.v > y.v:
			return 1
		}
		return x.i - y.i
	})
	ranks := make([]int, len(list))
	ties := 0.0
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].v == list[i].v {
			j++
		}
		for k := i; k < j; k++ {
			ranks[list[k].i] = i + 1 + j
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	return ranks, ties
}

// exactly counts, of all choices of n of the ranks, those whose sum is at least as far from the mean.
func exactly(ranks []int, n int, far, mean float64) float64 {
	top := 0
	for _, r := range ranks {
		top += r
	}
	ways := make([][]float64, n+1) // by how many are chosen and their sum
	for i := range ways {
		ways[i] = make([]float64, top+1)
	}
	ways[0][0] = 1
	for _, r := range ranks {
		for k := n; k > 0; k-- {
			for s := top; s >= r; s-- {
				ways[k][s] += ways[k-1][s-r]
			}
		}
	}
	var extreme, all float64
	for s, w := range ways[n] {
		all += w
		if math.Abs(float64(s)-mean) >= far-1e-9 {
			extreme += w
		}
	}
	return min(1, extreme/all)
}

// leastP is the smallest p that so many runs a side can give.
func leastP(n, m int) float64 {
	ways := 1.0
	for i := 1; i <= min(n, m); i++ {
		ways *= float64(n+m-min(n, m)+i) / float64(i)
	}
	return min(1, 2/ways)
}

// superior is the chance that a value of b is larger than one of a, ties counting half, of two histograms, and the z of
// its difference from one half, as if the values were independent.
func superior(a, b *Hist) (chance, z float64) {
	n, m := float64(a.N), float64(b.N)
	if n == 0 || m == 0 {
		return .5, 0
	}
	var less, half, ties float64
	below := 0.0 // of a
	for i := range max(len(a.counts), len(b.counts)) {
		var x, y float64
		if i < len(a.counts) {
			x = float64(a.counts[i])
		}
		if i < len(b.counts) {
			y = float64(b.counts[i])
		}
		less += below * y
		half += x * y
		below += x
		t := x + y
		ties += t*t*t - t
	}
	chance = (less + half/2) / (n * m)
	all := n + m
	if all < 3 {
		return chance, 0
	}
	v := n * m / 12 * (all + 1 - ties/(all*(all-1)))
	if v <= 0 {
		return chance, 0
	}
	return chance, (chance - .5) * n * m / math.Sqrt(v)
}

// blocks are means of the logarithms of durations in equal parts of the run. Calls that come close together are alike;
// how much the parts differ says how much.
type blocks [64]block

type block struct {
	n       float64
	sum, sq float64
}

func (b *blocks) add(part int, ns uint64) {
	l := math.Log(float64(ns) + 1)
	x := &b[part]
	x.n++
	x.sum += l
	x.sq += l * l
}

// inflation is by how much the variance of a mean of these calls is larger than if each told something new: the mean
// square between parts over that within them.
func (b *blocks) inflation() float64 {
	var n, sum, sq, parts float64
	for i := range b {
		n += b[i].n
		sum += b[i].sum
		sq += b[i].sq
		if b[i].n > 0 {
			parts++
		}
	}
	if parts < 2 || n <= parts {
		return 1
	}
	var between, inside float64
	for i := range b {
		if b[i].n > 0 {
			m := b[i].sum / b[i].n
			between += b[i].n * (m - sum/n) * (m - sum/n)
			inside += b[i].sq - b[i].n*m*m
		}
	}
	between /= parts - 1
	inside = max(inside, 0) / (n - parts)
	if inside <= 1e-12 {
		return max(1, n/parts)
	}
	return min(max(1, between/inside), n)
}

// adjust turns p values of one family into Benjamini and Hochberg's q: among what has a q below 5% at most 5% are
// expected to be there by chance.
func adjust(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	q := make([]float64, len(p))
	least := 1.0
	for i := len(order) - 1; i >= 0; i-- {
		least = min(least, p[order[i]]*float64(len(p))/float64(i+1))
		q[order[i]] = least
	}
	return q
}
