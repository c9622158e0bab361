package picture

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"

	"downpour/gateway/extra/graph"
)

// look is how a line looks.
type look struct {
	colour color.NRGBA
	mark   mark
}

// mark is the shape of a point.
type mark uint8

// The marks in gnuplot's order.
const (
	plus mark = iota
	cross
	star
	square
	filledSquare
	circle
	disc
	triangle
	filledTriangle
	markCount
)

// colours are gnuplot's, which the colour-blind can distinguish.
var colours = []color.NRGBA{
	{0x94, 0x00, 0xd3, 255}, {0x00, 0x9e, 0x73, 255}, {0x56, 0xb4, 0xe9, 255}, {0xe6, 0x9f, 0x00, 255},
	{0xc9, 0xb8, 0x00, 255}, {0x00, 0x72, 0xb2, 255}, {0xe5, 0x1e, 0x10, 255}, {0x40, 0x40, 0x40, 255},
}

// noteColour is that of the lines of annotations.
var noteColour = color.NRGBA{0x00, 0x72, 0xb2, 255}

func lookOf(series int) look {
	return look{colours[series%len(colours)], mark(series % int(markCount))}
}

// marks collects the marks of one line, and draws many at once.
type marks struct {
	c     *canvas
	look  look
	style graph.Style
	path  vg.Path
}

// radius is half the size of a mark.
const radius = 3.5

// add adds the mark of a point to the path; flush decides whether it is filled.
func (m *marks) add(x, y float64) {
	p := func(dx, dy float64) [2]float64 { return [2]float64{x + dx*radius, y + dy*radius} }
	shape := m.look.mark
	switch m.style {
	case graph.Circles:
		shape = circle
	case graph.Dots:
		m.path = append(m.path, m.c.rectangle(x-.5, y-.5, x+.5, y+.5)...)
		m.flushIfLong()
		return
	}

	lines := func(places ...[2]float64) {
		for i := 0; i < len(places); i += 2 {
			m.path = append(m.path, m.c.polyline(places[i], places[i+1])...)
		}
	}
	switch shape {
	case plus:
		lines(p(-1, 0), p(1, 0), p(0, -1), p(0, 1))
	case cross:
		lines(p(-.8, -.8), p(.8, .8), p(-.8, .8), p(.8, -.8))
	case star:
		lines(p(-1, 0), p(1, 0), p(0, -1), p(0, 1), p(-.8, -.8), p(.8, .8), p(-.8, .8), p(.8, -.8))
	case square, filledSquare:
		m.path = append(m.path, m.c.rectangle(x-.8*radius, y-.8*radius, x+.8*radius, y+.8*radius)...)
	case circle, disc:
		m.path.Move(m.c.point(x+.9*radius, y))
		m.path.Arc(m.c.point(x, y), .9*radius, 0, 2*math.Pi)
		m.path.Close()
	case triangle, filledTriangle:
		sides := m.c.polyline(p(0, -1.1), p(1, .7), p(-1, .7))
		sides.Close()
		m.path = append(m.path, sides...)
	}
	m.flushIfLong()
}

func (m *marks) flushIfLong() {
	if len(m.path) >= m.c.mostInPath() {
		m.flush()
	}
}

// flush draws what was added.
func (m *marks) flush() {
	// Circles are hollow, whatever mark the line would have.
	filled := m.style == graph.Dots
	if m.style == graph.LinesAndPoints || m.style == graph.Points {
		filled = m.look.mark == filledSquare || m.look.mark == disc || m.look.mark == filledTriangle
	}
	if filled {
		m.c.fill(m.path, m.look.colour)
	} else {
		m.c.stroke(m.path, thin, m.look.colour)
	}
	m.path = m.path[:0]
}
