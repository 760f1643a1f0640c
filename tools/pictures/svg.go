package main

import (
	"fmt"
	"html"
	"strings"
)

// drawing is an SVG picture. Its colours are variables: a page that has the picture in it sets
// them, and a picture by itself sets its own, for light and for dark.
type drawing struct {
	title         string
	width, height int
	body          strings.Builder
}

const style = `<style>
svg:root { --paper: #fff; --ink: #1d2430; --soft: #5a6474; --line: #d9dee6; --shade: #f5f7fa; --accent: #6b2fa0; --mark: #efe6f7; background: #fff; }
@media (prefers-color-scheme: dark) { svg:root { --paper: #14171d; --ink: #dfe4ec; --soft: #9aa5b5; --line: #313845; --shade: #1c212a; --accent: #c39bea; --mark: #33264a; background: #14171d; } }
.pic-box { fill: var(--shade); stroke: var(--line); } .pic-mark { fill: var(--mark); stroke: var(--accent); } .pic-gone { fill: none; stroke: var(--line); stroke-dasharray: 4 4; }
.pic-line { fill: none; stroke: var(--soft); } .pic-way { fill: none; stroke: var(--accent); stroke-width: 1.5; } .pic-bad { fill: none; stroke: #c0392b; stroke-width: 1.5; }
.pic-life { stroke: var(--line); stroke-dasharray: 3 4; } .pic-text { fill: var(--ink); } .pic-soft { fill: var(--soft); } .pic-strong { fill: var(--ink); font-weight: 600; }
.pic-tip { fill: var(--accent); } .pic-badtip { fill: #c0392b; }
</style>
`

func (d *drawing) String() string {
	return fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">
<title>%s</title>
%s<defs><marker id="%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path class="pic-tip" d="M0 0 L8 4 L0 8 z"/></marker><marker id="%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path class="pic-badtip" d="M0 0 L8 4 L0 8 z"/></marker></defs>
%s</svg>
`, d.width, d.height, d.width, d.height, html.EscapeString(d.title), style, d.id("tip"), d.id("badtip"),
		d.body.String())
}

// id is a name for one picture alone: a page may have several.
func (d *drawing) id(name string) string {
	return "pic-" + name + "-" + strings.ToLower(strings.ReplaceAll(d.title, " ", "-"))
}

// box draws a rectangle with lines of text in its middle, the first of which is strong.
func (d *drawing) box(class string, x, y, w, h int, lines ...string) {
	fmt.Fprintf(&d.body, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", class, x, y, w,
		h)
	at := y + h/2 + 5 - 9*(len(lines)-1)
	for i, line := range lines {
		style := "pic-soft"
		if i == 0 {
			style = "pic-strong"
		}
		d.text(style, "middle", x+w/2, at+18*i, line)
	}
}

// text draws a line; anchor is "start", "middle" or "end".
func (d *drawing) text(class, anchor string, x, y int, line string) {
	fmt.Fprintf(&d.body, "<text class=\"%s\" x=\"%d\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", class, x, y, anchor,
		html.EscapeString(line))
}

// way draws an arrow along a path.
func (d *drawing) way(bad bool, path string) {
	class, tip := "pic-way", d.id("tip")
	if bad {
		class, tip = "pic-bad", d.id("badtip")
	}
	fmt.Fprintf(&d.body, "<path class=\"%s\" d=\"%s\" marker-end=\"url(#%s)\"/>\n", class, path, tip)
}

// rule draws a line without a tip.
func (d *drawing) rule(class, path string) {
	fmt.Fprintf(&d.body, "<path class=\"%s\" d=\"%s\"/>\n", class, path)
}
