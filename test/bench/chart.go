package main

import (
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// chart is a picture of the results of a benchmark: groups of bars, each with its own scale, because units differ.
type chart struct {
	title, note string
	groups      []group
}

// group compares the sides of one measurement.
type group struct {
	what, unit string
	bars       []bar
}

// bar is one bar of a group: the value, and the minimum and maximum if it was measured several times.
type bar struct {
	name             string
	value, low, high float64
}

// The layout in pixels.
const (
	chartWidth = 960
	barLeft    = 300 // x where bars begin; their names end before
	barWidth   = 520 // width of the greatest value of a group
	barHeight  = 18
	barGap     = 6
	groupHead  = 34
	chartHead  = 64
	chartFoot  = 16
)

func milliseconds(name string, d time.Duration) bar {
	v := float64(d.Microseconds()) / 1000
	return bar{name, v, v, v}
}

// charted converts a table to groups: a bar for each side with its median, and a line from the minimum to the maximum.
func charted(t *table) (groups []group) {
	for _, r := range t.Rows {
		g := group{what: r.What, unit: r.Unit}
		for _, side := range t.Sides {
			values := r.Values[side]
			if len(values) == 0 {
				continue
			}
			low, median := summary(values)
			g.bars = append(g.bars, bar{side, median, low, slices.Max(values)})
		}
		groups = append(groups, g)
	}
	return groups
}

func (c *chart) height() int {
	h := chartHead + chartFoot
	for _, g := range c.groups {
		h += groupHead + len(g.bars)*(barHeight+barGap)
	}
	return h
}

// svg writes the picture.
func (c *chart) svg(w io.Writer) {
	h := c.height()
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="13" role="img" aria-labelledby="title desc">
  <title id="title">%s</title>
  <desc id="desc">%s</desc>
  <style>
    .bar { fill: #2b6cb0; } .other { fill: #a0aec0; } .range { stroke: #1a202c; stroke-width: 1.5; }
    .head { font-weight: bold; } .note { font-size: 12px; fill: #4a5568; } .name { text-anchor: end; }
    text { fill: #1a202c; }
  </style>
  <rect width="%d" height="%d" fill="#ffffff"/>
  <text class="head" x="20" y="28" font-size="17">%s</text>
  <text class="note" x="20" y="48">%s</text>
`, chartWidth, h, html.EscapeString(c.title), html.EscapeString(c.describe()), chartWidth, h, html.EscapeString(c.title),
		html.EscapeString(c.note))
	y := chartHead
	for _, g := range c.groups {
		fmt.Fprintf(w, "  <text class=\"head\" x=\"20\" y=\"%d\">%s, %s</text>\n", y+20, html.EscapeString(g.what), html.EscapeString(g.unit))
		y += groupHead
		for i, b := range g.bars {
			b.draw(w, y, i == 0 || strings.HasPrefix(b.name, "contiv"), g.scale())
			y += barHeight + barGap
		}
	}
	fmt.Fprintln(w, "</svg>")
}

// scale returns pixels per unit.
func (g *group) scale() float64 {
	most := 0.0
	for _, b := range g.bars {
		most = max(most, b.high, b.value)
	}
	if most <= 0 {
		return 0
	}
	return barWidth / most
}

func (b *bar) draw(w io.Writer, y int, first bool, scale float64) {
	class := "other"
	if first {
		class = "bar"
	}
	length := math.Max(1, b.value*scale)
	middle := y + barHeight/2
	fmt.Fprintf(w, "  <text class=\"name\" x=\"%d\" y=\"%d\">%s</text><rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\"/>", barLeft-8,
		middle+4, html.EscapeString(b.name), class, barLeft, y, length, barHeight)
	if b.high > b.low {
		fmt.Fprintf(w, "<path class=\"range\" d=\"M%.1f %d H%.1f\"/>", barLeft+b.low*scale, middle, barLeft+b.high*scale)
	}
	fmt.Fprintf(w, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", barLeft+math.Max(length, b.high*scale)+8, middle+4, number(b.value))
}

// describe returns the contents of the picture as text.
func (c *chart) describe() string {
	var parts []string
	for _, g := range c.groups {
		var bars []string
		for _, b := range g.bars {
			bars = append(bars, b.name+" "+number(b.value))
		}
		parts = append(parts, g.what+", "+g.unit+": "+strings.Join(bars, "; "))
	}
	return strings.Join(parts, ". ")
}

// plotsDir is the default of -plots. It is not bin/bench, because make build writes the program there.
const plotsDir = "bin/plots"

// makePlotsDir creates the directory of the pictures.
func (e *env) makePlotsDir() error {
	if e.plots == "" {
		return nil
	}
	if err := os.MkdirAll(e.plots, 0o755); err != nil {
		return fmt.Errorf("-plots: choose another directory for the pictures, or none (-plots ''): %w", err)
	}
	return nil
}

// draw writes the recorded results of the benchmark as bench-NAME.svg, if there are any.
func (e *env) draw(b bench) error {
	groups := e.recorded
	e.recorded = nil
	if e.plots == "" || len(groups) == 0 {
		return nil
	}
	path := filepath.Join(e.plots, "bench-"+b.name+".svg")
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("-plots: %w", err)
	}
	c := chart{title: b.name + ": " + b.what, groups: groups, note: fmt.Sprintf("make bench, %s, %d processors, load average %s. "+
		"Bars of a group have one scale; shorter is not always better: see the unit.", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), loadAverage())}
	c.svg(f)
	if err := f.Close(); err != nil {
		return fmt.Errorf("-plots: %w", err)
	}
	fmt.Println("   plot:", path)
	return nil
}

// record adds bars to the picture of the benchmark that runs.
func (e *env) record(what, unit string, bars ...bar) {
	e.recorded = append(e.recorded, group{what, unit, bars})
}

func printRatio(what string, ours, theirs bar) {
	fmt.Printf("   %-44s %8.2fx\n", what, ours.value/theirs.value)
}

// ratio prints the ratio of our figure to another one, and records both.
func (e *env) ratio(what string, ours, theirs bar) {
	printRatio(what, ours, theirs)
	e.record(what, "ms", ours, theirs)
}
