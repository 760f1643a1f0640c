package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// plot is a picture of lines over two logarithmic axes.
type plot struct {
	name        string // what it shows of its part; empty for the first picture
	title, x, y string
	lines       []line
}

// line is a series of points.
type line struct {
	name   string
	points [][2]float64
}

// add adds a point to the line of a name, which is made when it is new.
func (p *plot) add(name string, x, y float64) {
	for i := range p.lines {
		if p.lines[i].name == name {
			p.lines[i].points = append(p.lines[i].points, [2]float64{x, y})
			return
		}
	}
	p.lines = append(p.lines, line{name, [][2]float64{{x, y}}})
}

// The measures of a plot, in pixels, and its colors.
const (
	plotWidth, plotHeight = 640, 360
	left, right           = 70, 170
	top, bottom           = 36, 44
)

var colors = []string{"#2e7d32", "#1565c0", "#c62828", "#ef6c00", "#6a1b9a", "#00838f", "#5d4037"}

// decades returns the powers of ten around the values of an axis; all of them are above zero.
func (p *plot) decades(axis int) (low, high int) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, l := range p.lines {
		for _, at := range l.points {
			least, most = min(least, at[axis]), max(most, at[axis])
		}
	}
	low, high = int(math.Floor(math.Log10(least)+1e-9)), int(math.Ceil(math.Log10(most)-1e-9))
	return low, max(high, low+1)
}

// svg draws the picture.
func (p *plot) svg() []byte {
	for i := range p.lines {
		for j := range p.lines[i].points {
			at := &p.lines[i].points[j]
			at[0], at[1] = max(at[0], 1e-3), max(at[1], 1e-3) // a logarithm has no zero
		}
	}
	x0, x1 := p.decades(0)
	y0, y1 := p.decades(1)
	px := func(v float64) float64 {
		return left + (math.Log10(v)-float64(x0))/float64(x1-x0)*(plotWidth-left-right)
	}
	py := func(v float64) float64 {
		return plotHeight - bottom - (math.Log10(v)-float64(y0))/float64(y1-y0)*(plotHeight-top-bottom)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="8" y="18" font-size="13">%s</text>`+"\n", html.EscapeString(p.title))
	for e := x0; e <= x1; e++ {
		x := px(math.Pow10(e))
		fmt.Fprintf(&b, `<line x1="%.0f" y1="%d" x2="%.0f" y2="%d" stroke="#ddd"/><text x="%.0f" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n",
			x, top, x, plotHeight-bottom, x, plotHeight-bottom+15, power(e))
	}
	for e := y0; e <= y1; e++ {
		y := py(math.Pow10(e))
		fmt.Fprintf(&b, `<line x1="%d" y1="%.0f" x2="%d" y2="%.0f" stroke="#ddd"/><text x="%d" y="%.0f" text-anchor="end" fill="#555">%s</text>`+"\n",
			left, y, plotWidth-right, y, left-5, y+4, power(e))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+plotWidth-right)/2, plotHeight-8,
		html.EscapeString(p.x))
	fmt.Fprintf(&b, `<text transform="translate(14 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(top+plotHeight-bottom)/2, html.EscapeString(p.y))
	for i, l := range p.lines {
		color := colors[i%len(colors)]
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, color)
		for _, at := range l.points {
			fmt.Fprintf(&b, "%.1f,%.1f ", px(at[0]), py(at[1]))
		}
		b.WriteString(`"/>` + "\n")
		for _, at := range l.points {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", px(at[0]), py(at[1]), color)
		}
		y := top + 8 + 16*i
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			plotWidth-right+12, y-9, color, plotWidth-right+27, y, html.EscapeString(l.name))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// power writes a power of ten as people do.
func power(e int) string {
	switch {
	case e >= 9:
		return fmt.Sprintf("%g G", math.Pow10(e-9))
	case e >= 6:
		return fmt.Sprintf("%g M", math.Pow10(e-6))
	case e >= 3:
		return fmt.Sprintf("%g k", math.Pow10(e-3))
	}
	return fmt.Sprintf("%g", math.Pow10(e))
}
