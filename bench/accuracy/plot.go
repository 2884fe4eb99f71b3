package main

import (
	"bytes"
	"fmt"
	"math"
)

// The plot's place on its page, and how each target is drawn: a shape and a colour, as colour alone does not tell them apart for
// everybody.
const (
	plotLeft, plotTop, plotSize = 70.0, 30.0, 520.0
	plotWide, plotHigh          = 760.0, 610.0
)

var marks = []struct{ target, colour, shape string }{
	{home, "#444444", "circle"}, {cpus1, "#0060b0", "square"}, {half, "#b04000", "diamond"}, {disk1, "#208030", "up"},
	{disk5, "#207878", "down"}, {disk9, "#804090", "cross"}, {link, "#a00050", "plus"},
}

// plot draws predicted against real times, both axes logarithmic: what is right lies on the diagonal, the band is the bar of 15 %.
func (r *results) plot() []byte {
	low, high := math.Inf(1), 0.0
	for _, p := range r.Pairs {
		if p.measured() {
			low, high = min(low, p.real(), p.predicted()), max(high, p.real(), p.predicted())
		}
	}
	if high == 0 {
		low, high = 0.1, 1
	}
	low, high = math.Log10(low*0.8), math.Log10(high*1.25)
	x := func(s float64) float64 { return plotLeft + plotSize*(math.Log10(s)-low)/(high-low) }
	y := func(s float64) float64 { return plotTop + plotSize*(1-(math.Log10(s)-low)/(high-low)) }
	least, most := math.Pow(10, low), math.Pow(10, high)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12" role="img">`+"\n", plotWide, plotHigh)
	fmt.Fprintf(&b, "<title>Predicted against real times</title>\n<rect width=\"%g\" height=\"%g\" fill=\"#ffffff\"/>\n", plotWide, plotHigh)
	fmt.Fprintf(&b, `<clipPath id="in"><rect x="%g" y="%g" width="%g" height="%g"/></clipPath>`+"\n<g clip-path=\"url(#in)\">\n", plotLeft, plotTop, plotSize, plotSize)
	fmt.Fprintf(&b, `<polygon fill="#eef3ee" points="%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f"/>`+"\n", x(least), y(least*(1+barMost)), x(most), y(most*(1+barMost)), x(most), y(most*(1-barMost)), x(least), y(least*(1-barMost)))
	for d := math.Floor(low); d <= high; d++ {
		for k := 1.0; k < 10; k++ {
			v := k * math.Pow(10, d)
			colour := "#f2f2f2"
			if k == 1 {
				colour = "#d0d0d0"
			}
			fmt.Fprintf(&b, `<path stroke="%s" d="M%.1f %gV%g M%g %.1fH%g"/>`+"\n", colour, x(v), plotTop, plotTop+plotSize, plotLeft, y(v), plotLeft+plotSize)
		}
	}
	fmt.Fprintf(&b, `<path stroke="#888888" d="M%.1f %.1fL%.1f %.1f"/>`+"\n", x(least), y(least), x(most), y(most))
	for _, p := range r.Pairs {
		if !p.measured() {
			continue
		}
		for i, m := range marks {
			if m.target == p.Target {
				a, c := p.interval()
				fmt.Fprintf(&b, `<g><title>%s: real %.3f s, predicted %.3f s</title><path stroke="%s" stroke-opacity="0.5" d="M%.1f %.1fV%.1f"/>`, p.name(), p.real(), p.predicted(), m.colour, x(p.real()), y(a), y(c))
				shape(&b, i, x(p.real()), y(p.predicted()), p.Refused != "")
				b.WriteString("</g>\n")
			}
		}
	}
	b.WriteString("</g>\n")
	fmt.Fprintf(&b, `<rect x="%g" y="%g" width="%g" height="%g" fill="none" stroke="#444444"/>`+"\n", plotLeft, plotTop, plotSize, plotSize)
	for d := math.Floor(low); d <= high; d++ {
		for _, k := range []float64{1, 2, 5} {
			if v := k * math.Pow(10, d); v >= least && v <= most {
				fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%g</text><text x="%g" y="%.1f" text-anchor="end">%g</text>`+"\n", x(v), plotTop+plotSize+18, v, plotLeft-6, y(v)+4, v)
			}
		}
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">real, seconds</text>`+"\n", plotLeft+plotSize/2, plotTop+plotSize+40)
	fmt.Fprintf(&b, `<text transform="translate(20 %g) rotate(-90)" text-anchor="middle">predicted, seconds</text>`+"\n", plotTop+plotSize/2)
	at := plotTop + 10
	for i, m := range marks {
		shape(&b, i, plotLeft+plotSize+20, at, false)
		fmt.Fprintf(&b, `<text x="%g" y="%g">%s</text>`+"\n", plotLeft+plotSize+32, at+4, m.target)
		at += 20
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g">pale: refused</text><text x="%g" y="%g">band: 15 %%</text>`+"\n</svg>\n", plotLeft+plotSize+12, at+10, plotLeft+plotSize+12, at+30)
	return b.Bytes()
}

func shape(b *bytes.Buffer, mark int, x, y float64, pale bool) {
	m := marks[mark]
	opacity := 0.85
	if pale {
		opacity = 0.3
	}
	path := map[string]string{
		"square": "M-4 -4H4V4H-4Z", "diamond": "M0 -5L5 0L0 5L-5 0Z", "up": "M0 -5L5 4H-5Z", "down": "M0 5L5 -4H-5Z",
		"cross": "M-4 -2L-2 -4L0 -2L2 -4L4 -2L2 0L4 2L2 4L0 2L-2 4L-4 2L-2 0Z", "plus": "M-1.5 -5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5V-1.5H-1.5Z",
		"circle": "M-4 0A4 4 0 1 1 4 0A4 4 0 1 1 -4 0Z",
	}[m.shape]
	fmt.Fprintf(b, `<path transform="translate(%.1f %.1f)" fill="%s" fill-opacity="%g" d="%s"/>`, x, y, m.colour, opacity, path)
}
