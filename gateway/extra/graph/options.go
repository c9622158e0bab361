// Package graph reads how a picture of /q shall look: its size, axes, formats, key, colours
// and style. It words its errors as OpenTSDB does, and checks in the same order. Package
// picture draws what it has read.
//
//	wxh=800x400&yrange=[0:]&ylabel=load&title=demo&key=out+right+top
//
// In OpenTSDB the parameters go into a script of gnuplot; what they mean is gnuplot's.
// Source: GraphHandler.setPlotDimensions, setPlotParams; Plot.
package graph

import (
	"image/color"
	"strconv"
	"strings"
	"unicode/utf8"

	"downpour/gateway/extra/graph/gnuformat"
	"downpour/gateway/query"
)

// Options are how a picture shall look.
type Options struct {
	Width, Height int // pixels
	Title         string
	Left, Right   Axis
	// TimeFormat is that of the times below the picture, nil for one that suits them.
	TimeFormat *gnuformat.Time
	Key        Key
	// Background and Foreground are colours; the latter is that of the frame and of texts.
	Background, Foreground color.NRGBA
	Style                  Style
	Smooth                 Smooth
	// OnRight says of each sub-query whether its lines belong to the right axis.
	OnRight []bool
}

// Axis is a vertical axis.
type Axis struct {
	Label  string
	Range  Range
	Log    bool
	Format *gnuformat.Number // nil for one that suits the values
}

// Range is what an axis shows. The first value may be the larger one: then the axis is
// upside down.
type Range struct {
	From, To float64
	Fixed    bool // From counts
	FixedToo bool // To counts as well
}

// Size of a picture in pixels. MaxPixels is four bytes each, twice while it is made into
// a file, and allows a screen of 3840x2160.
const (
	defaultWidth, defaultHeight = 1024, 768
	minSide                     = 100
	maxSide                     = 1<<15 - 1 // a short in Java
	MaxPixels                   = 8 << 20
)

// maxText bounds the bytes of a label: a picture shows less.
const maxText = 1024

// Parse reads the parameters of a request with so many sub-queries. All errors are
// *query.Error.
func Parse(values map[string][]string, queries int) (*Options, error) {
	p := &parser{values: values, o: &Options{
		Width: defaultWidth, Height: defaultHeight,
		Key:        Key{Box: true, Horizontal: End, Vertical: Start},
		Background: color.NRGBA{255, 255, 255, 255}, Foreground: color.NRGBA{0, 0, 0, 255},
	}}

	// In OpenTSDB's order, because the first mistake is the answer.
	for _, step := range []func(){
		p.dimensions, p.ranges, p.labels, p.formats, p.scales, p.key, p.title, p.colours, p.lines, p.noKey,
	} {
		if step(); p.err != nil {
			return nil, p.err
		}
	}

	// What OpenTSDB does not check comes after all that it does.
	p.axes(queries)
	return p.o, p.checkLog()
}

// parser reads parameters until the first mistake.
type parser struct {
	values map[string][]string
	o      *Options
	err    error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = query.Bad(format, args...)
	}
}

// dimensions reads wxh. Source: GraphHandler.setPlotDimensions.
func (p *parser) dimensions() {
	text := strings.TrimSpace(last(p.values["wxh"]))
	if text == "" {
		return
	}
	width, height, ok := strings.Cut(text, "x")
	if !ok || !digits(width) || !digits(height) {
		p.fail(`'wxh' was invalid. Must satisfy the pattern ^\d+x\d+$`)
		return
	}
	// As there, lengths are checked before numbers, each with a text of its own. OpenTSDB looks
	// for the x behind three bytes, and so checks the length of the width alone.
	if len(text) < len("100x100") {
		p.fail("Parameter wxh too short: %s", text)
		return
	}
	if len(width) < len("100") {
		p.fail("Invalid wxh parameter: %s", text)
		return
	}

	for _, side := range []struct {
		text string
		to   *int
	}{{width, &p.o.Width}, {height, &p.o.Height}} {
		n, err := strconv.ParseInt(side.text, 10, 32)
		switch {
		case err != nil:
			p.fail(`Can't parse wxh '%s': For input string: "%s"`, text, side.text)
		case n > maxSide:
			p.fail(`Can't parse wxh '%s': Value out of range. Value:"%s" Radix:10`, text, side.text)
		}
		*side.to = int(n)
	}

	switch w, h := p.o.Width, p.o.Height; {
	case p.err != nil: // a side is no number: that is the first mistake
	case w < minSide:
		p.fail("Invalid wxh parameter: %s, width smaller than %d in %dx%d", text, minSide, w, h)
	case h < minSide:
		p.fail("Invalid wxh parameter: %s, height smaller than %d in %dx%d", text, minSide, w, h)
	case w*h > MaxPixels:
		p.err = query.TooMuch("A picture of %dx%d has %d pixels, at most %d", w, h, w*h, MaxPixels)
	}
}

func digits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// pop returns a parameter's value, and whether it is there.
// Source: GraphHandler.popParam.
func (p *parser) pop(name string) (string, bool) {
	given := p.values[name]
	if len(given) == 0 || p.err != nil { // nothing is read after the first mistake
		return "", false
	}

	// The server has decoded the value once; OpenTSDB does so twice.
	text := decodedAgain(strings.TrimSpace(last(given)))
	if strings.Contains(text, "`") || strings.Contains(text, "&#96;") {
		// gnuplot would run what stands between two of them.
		p.fail("Parameter %s contained a back-tick. That's a no-no.", name)
	}
	if len(text) > maxText {
		p.fail("Parameter %s has %d bytes, at most %d", name, len(text), maxText)
	}
	return text, p.err == nil
}

// decodedAgain decodes a value a second time, as OpenTSDB does, so that links which were
// encoded twice because of that go on working. What cannot be decoded stays: there it is an
// error, and in "%.2f" the percent sign is meant. A plus sign stays too, which OpenTSDB
// makes a blank: in a value that was encoded once, as "a%2Bb", it is meant.
func decodedAgain(text string) string {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			out = append(out, text[i])
			continue
		}
		if i+2 >= len(text) {
			return text
		}
		b, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		if err != nil {
			return text
		}
		out = append(out, byte(b))
		i += 2
	}
	if !utf8.Valid(out) {
		return text
	}
	return string(out)
}
