package graph

import (
	"regexp"
	"strconv"
	"strings"

	"downpour/gateway/extra/graph/gnuformat"
	"downpour/gateway/query"
)

// rangePattern is [from:to], either perhaps in quotes; to may be missing. OpenTSDB's own
// refuses a second number of one digit, as in [0:5], which gnuplot knows.
// Source: GraphHandler.RANGE_VALIDATOR.
var rangePattern = regexp.MustCompile(`^\["?(-?\d+\.?\d*(?:[eE]-?\d+)?)"?:"?(-?\d+\.?\d*(?:[eE]-?\d+)?)?"?\]$`)

// ranges reads what the vertical axes show.
func (p *parser) ranges() {
	for name, axis := range p.each("yrange", "y2range") {
		text, ok := p.pop(name)
		if !ok {
			continue
		}
		m := rangePattern.FindStringSubmatch(text)
		if m == nil {
			p.fail("'%s' was invalid. Must be in the format [min:max].", name)
			return
		}

		r := Range{Fixed: true, FixedToo: m[2] != ""}
		var err, errTo error
		r.From, err = strconv.ParseFloat(m[1], 64)
		if r.FixedToo {
			r.To, errTo = strconv.ParseFloat(m[2], 64)
		}

		switch {
		case err != nil || errTo != nil:
			p.fail("'%s' was invalid. Must be in the format [min:max].", name)
		// gnuplot fails on an empty range.
		case r.FixedToo && r.From == r.To:
			p.fail("'%s' was invalid. It is empty: %s", name, text)
		}
		axis.Range = r
	}
}

// each goes over two parameters, of the left and of the right axis.
func (p *parser) each(left, right string) func(func(string, *Axis) bool) {
	return func(yield func(string, *Axis) bool) {
		if yield(left, &p.o.Left) {
			yield(right, &p.o.Right)
		}
	}
}

// labelPattern is found in every label; its A-z is OpenTSDB's. Source: GraphHandler.LABEL_VALIDATOR.
var labelPattern = regexp.MustCompile(`[a-zA-z0-9 \-_]`)

// label reads a text that is drawn.
func (p *parser) label(name string, to *string) {
	text, ok := p.pop(name)
	if ok && !labelPattern.MatchString(text) {
		p.fail(`'%s' was invalid. Must satisfy the pattern [a-zA-z0-9 \-_]`, name)
	}
	if ok {
		*to = text
	}
}

func (p *parser) labels() {
	for name, axis := range p.each("ylabel", "y2label") {
		p.label(name, &axis.Label)
	}
}

func (p *parser) title() { p.label("title", &p.o.Title) }

// formats reads the formats of numbers and times. OpenTSDB decodes them twice and so
// refuses most of them.
func (p *parser) formats() {
	for name, axis := range p.each("yformat", "y2format") {
		if text, ok := p.pop(name); ok {
			var err error
			if axis.Format, err = gnuformat.ParseNumber(text); err != nil {
				p.badFormat(name, err)
			}
		}
	}
	if text, ok := p.pop("xformat"); ok {
		var err error
		if p.o.TimeFormat, err = gnuformat.ParseTime(text); err != nil {
			p.badFormat("xformat", err)
		}
	}
}

// badFormat refuses a format. Source: GraphHandler.FORMAT_VALIDATOR.
func (p *parser) badFormat(name string, reason error) {
	if p.err == nil {
		e := query.Bad(`'%s' was invalid. Must satisfy the pattern (%%[a-zA-Z])+[:\/]?\s?`, name)
		e.Details = "It has " + reason.Error()
		p.err = e
	}
}

func (p *parser) scales() {
	for name, axis := range p.each("ylog", "y2log") {
		_, axis.Log = p.pop(name)
	}
}

// checkLog refuses ranges that a logarithmic axis cannot show, on which gnuplot fails.
func (p *parser) checkLog() error {
	for name, axis := range p.each("yrange", "y2range") {
		if axis.Log && axis.Range.Fixed && (axis.Range.From <= 0 || axis.Range.FixedToo && axis.Range.To <= 0) {
			return query.Bad("'%s' was invalid. A logarithmic axis has only values above 0", name)
		}
	}
	return nil
}

// axes reads o, gnuplot's options of each sub-query. The only one that has a meaning is
// the axis: the others would go into gnuplot's script as they are.
// Source: GraphHandler.doGraph.
func (p *parser) axes(queries int) {
	p.o.OnRight = make([]bool, queries)
	for i, text := range p.values["o"] {
		if i < queries {
			// gnuplot's names of the right axis, with the lower or the upper axis of times.
			p.o.OnRight[i] = strings.Contains(text, "x1y2") || strings.Contains(text, "x2y2")
		}
	}
}
