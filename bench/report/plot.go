package report

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// Plot is some lines over one axis: how a cost grows with what it depends on.
type Plot struct {
	Name  string     `json:"name"`
	X     string     `json:"x"` // what the axes show, with units
	Y     string     `json:"y"`
	LogX  bool       `json:"logX,omitempty"`
	LogY  bool       `json:"logY,omitempty"`
	Lines []PlotLine `json:"lines"`
}

// PlotLine is one line, its points ascending by x.
type PlotLine struct {
	Name   string       `json:"name"`
	Points [][2]float64 `json:"points"`
}

// Add puts a point at the end of the line of that name.
func (p *Plot) Add(line string, x, y float64) {
	for i := range p.Lines {
		if p.Lines[i].Name == line {
			p.Lines[i].Points = append(p.Lines[i].Points, [2]float64{x, y})
			return
		}
	}
	p.Lines = append(p.Lines, PlotLine{line, [][2]float64{{x, y}}})
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// text writes each line's points as "x: y".
func (p Plot) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n", p.Name)
	for _, l := range p.Lines {
		fmt.Fprintf(b, "  %-34s", l.Name)
		for _, at := range l.Points {
			fmt.Fprintf(b, "  %s: %.4g", tick(at[0]), at[1])
		}
		b.WriteByte('\n')
	}
}

// Size of a plot and its margins, in the units of the picture.
const (
	plotWidth, plotHeight         = 620.0, 300.0
	left, right, top, bottom      = 70.0, 150.0, 16.0, 44.0
	innerWidth, innerHeight       = plotWidth - left - right, plotHeight - top - bottom
	barHeight, barLabel, barWidth = 20.0, 330.0, 400.0
)

var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// svg draws the plot.
func (p Plot) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label=%q>`,
		plotWidth, plotHeight, html.EscapeString(p.Name))
	x, y := newAxis(p, 0, p.LogX), newAxis(p, 1, p.LogY)
	for _, v := range x.ticks() {
		at := left + innerWidth*x.place(v)
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %g v%g"/><text class="tick" x="%.1f" y="%g" `+
			`text-anchor="middle">%s</text>`,
			at, top, innerHeight, at, top+innerHeight+16, tick(v))
	}

	for _, v := range y.ticks() {
		at := top + innerHeight*(1-y.place(v))
		fmt.Fprintf(&b, `<path class="grid" d="M%g %.1f h%g"/><text class="tick" x="%g" y="%.1f" `+
			`text-anchor="end">%s</text>`,
			left, at, innerWidth, left-6, at+4, tick(v))
	}

	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`,
		left+innerWidth/2, plotHeight-6, html.EscapeString(p.X))
	fmt.Fprintf(&b, `<text transform="translate(14 %g) rotate(-90)" text-anchor="middle">%s</text>`,
		top+innerHeight/2, html.EscapeString(p.Y))
	for i, l := range p.Lines {
		colour := colours[i%len(colours)]
		var path strings.Builder
		for n, at := range l.Points {
			px, py := left+innerWidth*x.place(at[0]), top+innerHeight*(1-y.place(at[1]))
			fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[n == 0], px, py)
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s, %.4g</title></circle>`,
				px, py, colour, html.EscapeString(l.Name), tick(at[0]), at[1])
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`, path.String(), colour)
		fmt.Fprintf(&b, `<text x="%g" y="%g" fill="%s">%s</text>`,
			plotWidth-right+10, top+14+float64(i)*18, colour, html.EscapeString(l.Name))
	}

	b.WriteString(`</svg>`)
	return b.String()
}

// axis is the values that one axis spans.
type axis struct {
	low, high float64
	log       bool
}

// newAxis spans the values of one axis: which is 0 for x, 1 for y. A linear axis begins
// at 0 or below, a logarithmic one spans whole powers of ten.
func newAxis(p Plot, which int, log bool) axis {
	a := axis{math.Inf(1), math.Inf(-1), log}
	for _, l := range p.Lines {
		for _, at := range l.Points {
			if v := at[which]; !log || v > 0 { // 0 has no logarithm
				a.low, a.high = min(a.low, v), max(a.high, v)
			}
		}
	}

	if a.low > a.high { // no values
		a.low, a.high = 1, 2
	}
	if !log {
		a.low = min(a.low, 0)
	}

	// A single value would span nothing.
	if a.high <= a.low {
		a.high = a.low + max(math.Abs(a.low), 1)
	}
	if log {
		a.low, a.high = math.Pow(10, math.Floor(math.Log10(a.low))), math.Pow(10, math.Ceil(math.Log10(a.high)))
	}

	return a
}

// place is where a value lies, 0 to 1.
func (a axis) place(v float64) float64 {
	if !a.log {
		return (v - a.low) / (a.high - a.low)
	}
	return math.Log10(max(v, a.low)/a.low) / math.Log10(a.high/a.low)
}

// ticks are the values to write at the axis.
func (a axis) ticks() (out []float64) {
	if a.log {
		for v := a.low; v <= a.high*1.001; v *= 10 { // a little more, because products round
			out = append(out, v)
		}
		return out
	}

	// The step is 1, 2 or 5 times a power of ten, and there are at most seven ticks.
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (a.high-a.low)/(step*m) <= 6 {
			step *= m
			break
		}
	}

	for v := math.Ceil(a.low/step) * step; v <= a.high*1.0001; v += step {
		out = append(out, v)
	}
	return out
}

// tick writes a value at an axis: 1500000 is 1.5M.
func tick(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= u.size {
			return fmt.Sprintf("%.4g%s", v/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.4g", v)
}

// bars draws the figures' medians with their spread, on a logarithmic axis from 0.1 ms to
// the first power of ten from the longest on.
func bars(figures []Figure) string {
	longest := 1.0
	for _, f := range figures {
		longest = max(longest, ms(f.Max()))
	}

	var b strings.Builder
	height := barHeight*float64(len(figures)) + 8
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="times">`, barLabel+barWidth+110, height)
	scale := axis{0.1, math.Pow(10, math.Ceil(math.Log10(longest))), true}
	for i, f := range figures {
		y := barHeight * float64(i)
		at := func(d time.Duration) float64 { return barWidth * scale.place(ms(d)) }
		fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="end">%s</text>`, barLabel-8, y+15, html.EscapeString(f.Name))
		fmt.Fprintf(&b, `<rect x="%g" y="%g" width="%.1f" height="12" fill="%s"/>`,
			barLabel, y+5, at(f.Median()), colours[0])
		fmt.Fprintf(&b, `<path d="M%.1f %g H%.1f" stroke="#000"/>`, barLabel+at(f.Min()), y+11, barLabel+at(f.Max()))
		fmt.Fprintf(&b, `<text x="%.1f" y="%g">%s</text>`, barLabel+at(f.Max())+6, y+15, MS(f.Median()))
	}

	b.WriteString(`</svg>`)
	return b.String()
}

// distribution plots response times by percentile, from the median on. The axis grows
// with 1/(1-p), so that the slow end is wide.
func distribution(latencies []Latency) Plot {
	p := Plot{Name: "response times", X: "percentile, as 1/(1-p)", Y: "ms", LogX: true, LogY: true}
	for _, l := range latencies {
		for _, at := range l.Response {
			if at.Percent >= 50 && at.Percent < 100 {
				p.Add(l.Name, 100/(100-at.Percent), at.MS)
			}
		}
	}
	return p
}
