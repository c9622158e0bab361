package graph

import (
	"image/color"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Key says where the legend stands.
type Key struct {
	Hidden     bool
	Box        bool
	Outside    bool // of the frame
	Sideways   bool // one name next to the other
	Horizontal Place
	Vertical   Place
}

// Place is one of three in a direction: Start is left or top, End right or bottom.
type Place uint8

// The places.
const (
	Start Place = iota
	Middle
	End
)

// Style is how points are drawn. Source: GraphHandler.STYLE_VALIDATOR.
type Style string

// The styles.
const (
	LinesAndPoints Style = "linespoint"
	Points         Style = "points"
	Circles        Style = "circles"
	Dots           Style = "dots"
)

// Smooth is how the points of a line are made into others, "" for not at all.
// Source: GraphHandler.SMOOTH_VALIDATOR.
type Smooth string

// Ways of smoothing. Others that gnuplot has are read and leave the line as it is.
const (
	Unique             Smooth = "unique"     // the mean of points of one time
	Frequency          Smooth = "frequency"  // their sum
	NormalFrequency    Smooth = "fnormal"    // their sum, of all 1
	Cumulative         Smooth = "cumulative" // the sum of all up to here
	NormalCumulative   Smooth = "cnormal"    // the same, of all 1
	Splines            Smooth = "csplines"
	ApproximateSplines Smooth = "acsplines"
	MonotoneSplines    Smooth = "mcsplines"
	Bezier             Smooth = "bezier"
	BezierUnique       Smooth = "sbezier"
)

const smoothPattern = "unique|frequency|fnormal|cumulative|cnormal|bins|csplines|acsplines|mcsplines|bezier|" +
	"sbezier|unwrap|zsort"

// key reads where the legend stands, in gnuplot's words. Without the parameter it has a
// box, with it only if it says so.
func (p *parser) key() {
	text, ok := p.pop("key")
	if !ok {
		return
	}

	k := Key{Horizontal: End, Vertical: Start}
	centred := 0
	across, up := false, false // whether a word has said where it stands in that direction
	for word := range strings.FieldsSeq(text) {
		switch strings.ToLower(word) {
		case "left":
			k.Horizontal, across = Start, true
		case "right":
			k.Horizontal, across = End, true
		case "top":
			k.Vertical, up = Start, true
		case "bottom":
			k.Vertical, up = End, true
		case "center", "centre":
			centred++
		case "out", "outside":
			k.Outside = true
		case "in", "inside":
			k.Outside = false
		case "below", "under":
			k.Outside, k.Horizontal, k.Vertical, across, up = true, Middle, End, true, true
		case "above", "over":
			k.Outside, k.Horizontal, k.Vertical, across, up = true, Middle, Start, true, true
		case "horiz", "horizontal":
			k.Sideways = true
		case "vert", "vertical":
			k.Sideways = false
		case "box":
			k.Box = true
		case "nobox":
			k.Box = false
		default:
			p.fail("'key' was invalid. Must satisfy the pattern (out|left|top|center|right|horiz|box|bottom)?\\s?")
			return
		}
	}

	// "center" is for the direction in which nothing else is said, and first for the
	// horizontal one.
	if centred > 0 && (!across || centred > 1) {
		k.Horizontal = Middle
	}
	if centred > 0 && (across && !up || centred > 1) {
		k.Vertical = Middle
	}
	p.o.Key = k
}

// noKey hides the legend, whatever key says.
func (p *parser) noKey() {
	if _, ok := p.pop("nokey"); ok {
		p.o.Key.Hidden = true
	}
}

// colourPattern is an x and six digits. Source: GraphHandler.COLOR_VALIDATOR.
var colourPattern = regexp.MustCompile(`^[xX][0-9a-fA-F]{6}$`)

// colours reads those of the background, and of the frame and texts.
func (p *parser) colours() {
	for _, c := range []struct {
		name string
		to   *color.NRGBA
	}{{"bgcolor", &p.o.Background}, {"fgcolor", &p.o.Foreground}} {
		text, ok := p.pop(c.name)
		if !ok {
			continue
		}
		if !colourPattern.MatchString(text) {
			p.fail("'%s' was invalid. Must be a hex value e.g. 'xFFFFFF'", c.name)
			return
		}
		n, _ := strconv.ParseUint(text[1:], 16, 32) // six digits, by the pattern
		*c.to = color.NRGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255}
	}
}

// lines reads how lines are drawn.
func (p *parser) lines() {
	if text, ok := p.pop("smooth"); ok {
		if !slices.Contains(strings.Split(smoothPattern, "|"), text) {
			p.fail("'smooth' was invalid. Must satisfy the pattern %s", smoothPattern)
		}
		p.o.Smooth = Smooth(text)
	}

	p.o.Style = LinesAndPoints
	if text, ok := p.pop("style"); ok {
		// gnuplot's own name has an s.
		style := Style(text)
		if text == "linespoints" {
			style = LinesAndPoints
		}
		if !slices.Contains([]Style{LinesAndPoints, Points, Circles, Dots}, style) {
			p.fail("'style' was invalid. Must satisfy the pattern (linespoint|points|circles|dots)")
		}
		p.o.Style = style
	}
}
