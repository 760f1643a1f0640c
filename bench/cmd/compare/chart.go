package main

import (
	"bytes"
	"fmt"
	"html"

	"allium/bench"
)

// The measures of the chart, in pixels.
const (
	rowHeight  = 18
	nameWidth  = 300
	barWidth   = 420
	valueWidth = 90
	topHeight  = 44
)

// chart draws how much processor time and wall time Allium takes for each task, as a share of the
// official driver's, as SVG.
func chart(all []bench.Measurement) []byte {
	width, height := nameWidth+barWidth+valueWidth, topHeight+rowHeight*len(all)+10
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="8" y="16" font-size="13">Time that Allium takes, as a share of the official Go driver's (shorter is better)</text>`+"\n")
	fmt.Fprintf(&b, `<rect x="8" y="24" width="10" height="10" fill="#2e7d32"/><text x="22" y="33">processor time</text>`+"\n")
	fmt.Fprintf(&b, `<rect x="118" y="24" width="10" height="10" fill="#a5d6a7"/><text x="132" y="33">wall time</text>`+
		"\n")
	for _, tick := range []float64{0.25, 0.5, 0.75, 1} {
		x := nameWidth + tick*barWidth
		fmt.Fprintf(&b, `<line x1="%.0f" y1="%d" x2="%.0f" y2="%d" stroke="#ccc"/><text x="%.0f" y="%d" text-anchor="middle" fill="#666">%g</text>`+"\n",
			x, topHeight-4, x, height-6, x, topHeight-8, tick)
	}
	for i, m := range all {
		y := topHeight + i*rowHeight
		o := m.Peers[bench.Official]
		cpu, wall := m.Allium.CPU.Seconds()/o.CPU.Seconds(), m.Allium.Wall.Seconds()/o.Wall.Seconds()
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", nameWidth-6, y+12,
			html.EscapeString(m.Task.Name))
		for j, bar := range []struct {
			share float64
			color string
		}{{cpu, "#2e7d32"}, {wall, "#a5d6a7"}} {
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="6" fill="%s"/>`+"\n", nameWidth, y+2+j*7,
				min(bar.share, 1.05)*barWidth, bar.color)
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="#333">%.2f</text>`+"\n",
			nameWidth+min(max(cpu, wall), 1.05)*barWidth+4, y+12, cpu)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
