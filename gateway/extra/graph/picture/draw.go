package picture

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"

	"downpour/gateway/extra/graph"
)

// draw draws the picture, what is below first.
func (l *layout) draw() error {
	if len(l.lines) > 0 {
		l.drawGrid()
	}
	for i := range l.lines {
		l.drawLine(&l.lines[i])
	}
	l.drawFrame()
	l.drawNotes()
	l.drawTexts()
	l.drawKey()
	return l.c.err
}

// drawGrid draws a line for each labelled tick of the times and of the left axis. The right
// axis has none.
func (l *layout) drawGrid() {
	for _, t := range l.left.ticks {
		if y, ok := l.y(l.left, t.value); ok && t.label != "" && l.withinY(y) {
			l.c.dash(l.c.polyline([2]float64{l.x0, crisp(y)}, [2]float64{l.x1, crisp(y)}), l.midtone)
		}
	}
	for _, t := range l.times {
		if x := l.x(float64(t.ms)); t.label != "" {
			l.c.dash(l.c.polyline([2]float64{crisp(x), l.y0}, [2]float64{crisp(x), l.y1}), l.midtone)
		}
	}
}

// withinY reports whether a place is in the frame, or half a pixel off it, where a tick of
// its very end may come to lie by rounding.
func (l *layout) withinY(y float64) bool { return y >= l.y0-.5 && y <= l.y1+.5 }

// drawLine draws the line and the marks of a series.
func (l *layout) drawLine(ln *line) {
	s := l.left
	if ln.onRight {
		s = l.right
	}
	if l.Options.Style == graph.LinesAndPoints {
		stroke := &clipped{l: l, look: ln.look}
		l.eachVertex(ln, s, stroke)
		stroke.flush()
	}
	if l.marked(ln) {
		m := &marks{c: l.c, look: ln.look, style: l.Options.Style}
		l.eachMark(ln, s, m)
		m.flush()
	}
}

// roomPerMark is how far marks of a line stand from each other at least: nearer ones would
// hide it.
const roomPerMark = 5

// marked reports whether the points of a line get marks.
func (l *layout) marked(ln *line) bool {
	if l.Options.Style != graph.LinesAndPoints {
		return true
	}
	return l.Options.Smooth == "" && float64(ln.inside)*roomPerMark <= l.x1-l.x0
}

// column is a column of pixels, with what a line keeps of its points there.
type column struct {
	at          int
	points      int
	first, last vertex
	low, high   float64 // as y, so low is the larger one
}

type vertex struct{ x, y float64 }

// eachVertex gives the line's points to a stroke, and of columns of pixels with many points
// only what is between the highest and the lowest: more could not be seen.
func (l *layout) eachVertex(ln *line, s *scale, to *clipped) {
	var c column
	band := &band{l: l, look: ln.look}
	leave := func() {
		switch {
		case c.points == 0: // before the first point, or behind a gap
		case c.points < denseColumn:
			band.flush()
			to.line(c.first)
			to.line(c.last)
		default:
			// The line leads to the area and goes on behind it; inside, the area is the line.
			if band.empty() {
				to.line(c.first)
			}
			band.add(&c)
			to.jump(c.last)
		}
		c.points = 0
	}

	l.eachPlace(ln, s, func(v vertex, ok bool) {
		if !ok { // a value that the axis cannot show: there is a gap
			leave()
			band.flush()
			to.end()
			return
		}
		if at := int(math.Floor(v.x)); c.points == 0 || at != c.at {
			leave()
			c = column{at: at, first: v, low: v.y, high: v.y}
		}
		c.points++
		c.last, c.low, c.high = v, math.Max(c.low, v.y), math.Min(c.high, v.y)
	})
	leave()
	band.flush()
}

// denseColumn is how many points of a line a column of pixels has at least that is drawn as
// a piece of a band. With two, the line between them is as good.
const denseColumn = 3

// band is the area that a line fills where it goes up and down in each column of pixels. To
// stroke all of these lines would take a hundred times as long.
type band struct {
	l       *layout
	look    look
	columns []column
}

func (b *band) empty() bool { return len(b.columns) == 0 }

func (b *band) add(c *column) {
	if b.columns = append(b.columns, *c); len(b.columns) >= b.l.c.mostInPath() {
		b.flush()
		b.columns = append(b.columns, *c) // the next piece touches this one
	}
}

// flush fills the area: along the highest places, and back along the lowest.
func (b *band) flush() {
	l := b.l
	var p vg.Path
	place := func(x, y float64) {
		at := l.c.point(math.Min(math.Max(x, l.x0), l.x1), math.Min(math.Max(y, l.y0), l.y1))
		if len(p) == 0 {
			p.Move(at)
		} else {
			p.Line(at)
		}
	}

	// As high and as low as the stroke of a line would reach.
	const half = thick / 2
	for i, c := range b.columns {
		if i == 0 {
			place(float64(c.at), c.high-half) // the others begin where the one before ends
		}
		place(float64(c.at)+1, c.high-half)
	}

	for i := len(b.columns) - 1; i >= 0; i-- {
		c := b.columns[i]
		place(float64(c.at)+1, c.low+half)
		if i == 0 {
			place(float64(c.at), c.low+half)
		}
	}

	if len(p) > 0 {
		p.Close()
		l.c.fill(p, b.look.colour)
	}
	b.columns = b.columns[:0]
}

// eachPlace calls f with the place of each point inside the picture, and of the next ones
// on either side, to which the line leads. It ends early once the guard has ended the drawing.
func (l *layout) eachPlace(ln *line, s *scale, f func(v vertex, ok bool)) {
	n := ln.samples.Len()
	before := -1 // the last point before the picture
	for i := range n {
		if i%checkEvery == 0 && !l.c.ready(0) {
			return
		}
		ms, value, ok := ln.samples.At(i)
		switch {
		case !ok:
			continue
		case ms < float64(l.Start):
			before = i
			continue
		}

		if before >= 0 {
			ms, value, _ := ln.samples.At(before)
			y, ok := l.y(s, value)
			f(vertex{l.x(ms), y}, ok)
			before = -1
		}
		y, ok := l.y(s, value)
		f(vertex{l.x(ms), y}, ok)
		if ms > float64(l.End) {
			return
		}
	}
}

// eachMark adds the marks of the points that lie in the frame, at most one in each square whose
// sides are room pixels.
func (l *layout) eachMark(ln *line, s *scale, to *marks) {
	room := 3.0
	if l.Options.Style == graph.Dots {
		room = 1
	}

	// A bit for each place that has a mark.
	columns := int((l.x1-l.x0)/room) + 1
	rows := int((l.y1-l.y0)/room) + 1
	if l.c.err == nil {
		l.c.err = l.c.guard.Reserve(int64(columns*rows/8 + 8))
	}
	if l.c.err != nil {
		return
	}

	taken := make([]uint64, columns*rows/64+1)
	l.eachPlace(ln, s, func(v vertex, ok bool) {
		if !ok || v.x < l.x0-.5 || v.x > l.x1+.5 || !l.withinY(v.y) {
			return
		}
		at := int(math.Max(0, v.y-l.y0)/room)*columns + int(math.Max(0, v.x-l.x0)/room)
		// A place half a pixel below the frame may lie behind the last bit.
		if bit := uint64(1) << (at % 64); at/64 < len(taken) && taken[at/64]&bit == 0 {
			taken[at/64] |= bit
			to.add(v.x, v.y)
		}
	})
}

// clipped is a line that is drawn only inside the frame.
type clipped struct {
	l      *layout
	look   look
	path   vg.Path
	from   vertex
	begun  bool // from is a vertex
	at     vertex
	joined bool // the path ends at at
}

// line draws a line to a vertex, from the one before.
func (c *clipped) line(to vertex) {
	from := c.from
	c.from = to
	if !c.begun {
		c.begun = true
		return
	}
	if from == to {
		return
	}

	a, b, ok := c.l.clip(from, to)
	if !ok {
		c.joined = false
		return
	}
	// Where the frame cuts a line, it comes back at another place than it left.
	if !c.joined || c.at != a {
		c.path.Move(c.l.c.point(a.x, a.y))
	}
	c.path.Line(c.l.c.point(b.x, b.y))
	c.at, c.joined = b, true

	if len(c.path) >= c.l.c.mostInPath() {
		c.flush()
		// The last piece is drawn again, so that the next one joins it without a notch.
		c.path.Move(c.l.c.point(a.x, a.y))
		c.path.Line(c.l.c.point(b.x, b.y))
		c.joined = true
	}
}

// jump goes on at a vertex without drawing a line to it.
func (c *clipped) jump(to vertex) { c.from, c.begun, c.joined = to, true, false }

// end ends the line. The next vertex begins another one.
func (c *clipped) end() { c.begun, c.joined = false, false }

func (c *clipped) flush() {
	c.l.c.stroke(c.path, thick, c.look.colour)
	c.path, c.joined = c.path[:0], false
}

// clip returns the part of a line that is in the frame. ok is false if none does.
// Source: Liang and Barsky, 1984.
func (l *layout) clip(a, b vertex) (from, to vertex, ok bool) {
	enter, leave := 0.0, 1.0
	dx, dy := b.x-a.x, b.y-a.y
	for _, side := range [4][2]float64{{-dx, a.x - l.x0}, {dx, l.x1 - a.x}, {-dy, a.y - l.y0}, {dy, l.y1 - a.y}} {
		direction, distance := side[0], side[1]
		switch {
		case direction == 0 && distance < 0: // parallel to this side, and beyond it
			return a, b, false
		case direction < 0: // the line comes in over this side
			enter = math.Max(enter, distance/direction)
		case direction > 0: // it goes out over it
			leave = math.Min(leave, distance/direction)
		}
	}
	// The difference of two very large doubles may be infinite: no part of it can be computed.
	if enter > leave || !finite(dx) || !finite(dy) {
		return a, b, false
	}

	from, to = a, b
	if enter > 0 {
		from = vertex{a.x + enter*dx, a.y + enter*dy}
	}
	if leave < 1 {
		to = vertex{a.x + leave*dx, a.y + leave*dy}
	}
	return from, to, true
}

// drawNotes draws a line for each annotation, and its text at the bottom where there is
// room: those of later ones would cover earlier ones.
func (l *layout) drawNotes() {
	notes := slices.Clone(l.Notes)
	slices.SortStableFunc(notes, func(a, b Note) int { return cmp.Compare(a.Time, b.Time) })
	drawn, covered := -1.0, math.Inf(-1)
	for _, n := range notes {
		if !l.contains(float64(n.Time)) {
			continue
		}
		x := crisp(l.x(float64(n.Time)))
		if x != drawn { // annotations of one pixel share a line
			l.c.stroke(l.c.polyline([2]float64{x, l.y0}, [2]float64{x, l.y1}), thin, noteColour)
			drawn = x
		}

		text := printable(n.Text, l.c.width/3)
		half := textWidth(text)/2 + gap/2
		if text == "" || x-half < covered {
			continue
		}

		covered = x + half
		box := l.c.rectangle(crisp(x-half), crisp(l.y1-lineRow/2), crisp(x+half), crisp(l.y1+lineRow/2))
		l.c.fill(box, l.Options.Background)
		l.c.stroke(box, thin, l.foreground)
		l.c.text(x-half+gap/2, l.y1+4, text, l.foreground)
	}
}

// drawFrame draws the frame and its ticks. Without an axis of its own the right side has
// those of the left one.
func (l *layout) drawFrame() {
	var p vg.Path
	add := func(ax, ay, bx, by float64) {
		p = append(p, l.c.polyline([2]float64{ax, ay}, [2]float64{bx, by})...)
	}
	size := func(label string) float64 {
		if label == "" {
			return smallTick
		}
		return tickSize
	}

	mirrored := l.left
	if l.hasRight {
		mirrored = l.right
	}

	for _, t := range l.left.ticks {
		if y, ok := l.y(l.left, t.value); ok && l.withinY(y) {
			add(l.x0, crisp(y), l.x0+size(t.label), crisp(y))
		}
	}
	for _, t := range mirrored.ticks {
		if y, ok := l.y(mirrored, t.value); ok && l.withinY(y) {
			add(l.x1, crisp(y), l.x1-size(t.label), crisp(y))
		}
	}
	for _, t := range l.times {
		x := crisp(l.x(float64(t.ms)))
		add(x, l.y1, x, l.y1-size(t.label))
		add(x, l.y0, x, l.y0+size(t.label))
	}

	p = append(p, l.c.rectangle(crisp(l.x0), crisp(l.y0), crisp(l.x1), crisp(l.y1))...)
	l.c.stroke(p, thin, l.foreground)
}

// drawTexts writes the title and what stands next to the axes.
func (l *layout) drawTexts() {
	c := l.c
	middle := (l.x0 + l.x1) / 2
	if title := printable(l.Options.Title, c.width-2*edge); title != "" {
		c.text(middle-textWidth(title)/2, edge+textSize, title, l.foreground)
	}

	// A baseline stands 4 pixels below its tick, which is then next to the middle of the digits.
	for _, t := range l.left.ticks {
		if y, ok := l.y(l.left, t.value); ok && l.withinY(y) {
			c.text(l.x0-gap-textWidth(t.label), y+4, t.label, l.foreground)
		}
	}
	if l.hasRight {
		for _, t := range l.right.ticks {
			if y, ok := l.y(l.right, t.value); ok && l.withinY(y) {
				c.text(l.x1+gap, y+4, t.label, l.foreground)
			}
		}
	}
	for _, t := range l.times {
		c.upwards(l.x(float64(t.ms))+4, l.y1+gap+textWidth(t.label), t.label, l.foreground)
	}

	sideways := func(x float64, label string) {
		text := printable(label, l.y1-l.y0)
		c.upwards(x, (l.y0+l.y1+textWidth(text))/2, text, l.foreground)
	}
	sideways(l.labelX(), l.Options.Left.Label)
	sideways(l.rightLabelX(), l.Options.Right.Label)

	if len(l.lines) == 0 {
		const text = "No data"
		c.text(middle-textWidth(text)/2, l.y0+(l.y1-l.y0)/10, text, l.foreground)
	}
}

// labelX returns where the left axis' label stands: at the picture's border, or next to a key
// that stands there.
func (l *layout) labelX() float64 {
	if l.key != nil && l.key.options.Outside && l.key.options.Horizontal == graph.Start {
		return edge + l.key.width + gap + textSize
	}
	return edge + textSize - 4
}

func (l *layout) rightLabelX() float64 {
	x := l.c.width - edge
	if l.key != nil && l.key.options.Outside && l.key.options.Horizontal == graph.End {
		x -= l.key.width + gap
	}
	return x
}
