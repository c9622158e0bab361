// Package picture draws lines over time, as gnuplot draws them for OpenTSDB's /q: a frame
// with a grid, times below it, values at its left and perhaps at its right, a key, and
// annotations as vertical lines. It makes a PNG or an SVG of what it is given; it asks no
// store and reads no clock, starts no process and writes no file.
//
//	title
//	 100 ┌──────────────┬────────────┐     the key stands in the frame or
//	     │      ╱╲      │   m{a=b} ─┼│     next to it
//	  50 ├ ╱╲ ╱  ╲      │            │
//	     │╱  V    ╲_____│____        │
//	   0 └──────────────┴─[note]─────┘
//	   00:00          00:10        00:20
//
// What is drawn is bounded by pixels: of points that lie in one column of pixels a line
// keeps the first, the last, the highest and the lowest.
// Source: Plot.
package picture

import (
	"fmt"
	"time"

	"downpour/encoding"
	"downpour/gateway/extra/graph"
)

// Picture is what is drawn.
type Picture struct {
	// Start and End, in ms since 1970, are the times at the sides of the frame.
	Start, End int64
	Zone       *time.Location
	Series     []Series
	Notes      []Note
	Options    *graph.Options
}

// Series is one line. Its points may lie outside of the picture's times; a NaN is no point.
type Series struct {
	Name    string
	Points  encoding.Points // only read
	OnRight bool            // belongs to the right axis
}

// Note is an annotation at a time in ms.
type Note struct {
	Time int64
	Text string
}

// Form is the form of a picture.
type Form string

// The forms.
const (
	PNG Form = "png"
	SVG Form = "svg"
)

// MaxSeries is how many lines a picture may have. More of them look alike, and
// each takes time.
const MaxSeries = 1000

// TooManyError is returned for a picture of too many lines.
type TooManyError struct{ Series int }

// Error says how many there are, and how many there may be.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("the picture would have %d lines, at most %d", e.Series, MaxSeries)
}

// Guard is what bounds the drawing. Reserve is called before memory is allocated, Check
// again and again while time goes by; the error of either ends the drawing.
type Guard struct {
	Reserve func(bytes int64) error
	Check   func() error
}

// Draw returns the picture as a file. The error is the guard's, or a *TooManyError.
func (p *Picture) Draw(form Form, guard Guard) ([]byte, error) {
	if len(p.Series) > MaxSeries {
		return nil, &TooManyError{len(p.Series)}
	}
	if err := guard.Check(); err != nil {
		return nil, err
	}
	c, err := newCanvas(form, p.Options, guard)
	if err != nil {
		return nil, err
	}

	lines, err := p.lines(guard)
	if err != nil {
		return nil, err
	}
	l := p.layOut(c, lines)
	if err := l.draw(); err != nil {
		return nil, err
	}
	return c.file(paletteOf(p.Options, len(p.Series)))
}
