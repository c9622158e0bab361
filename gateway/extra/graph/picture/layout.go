package picture

import (
	"image/color"
	"math"

	"downpour/gateway/extra/graph"
)

// layout is where everything of a picture has its place.
type layout struct {
	*Picture
	c     *canvas
	lines []line

	left, right         *scale
	hasRight            bool // the right axis has ticks of its own
	times               []timeTick
	key                 *key
	x0, y0, x1, y1      float64 // the frame: upper left and lower right corner
	foreground, midtone color.Color
}

// Distances in pixels.
const (
	edge      = 10 // between the picture's border and what is next to it
	gap       = 6  // between a text and what it belongs to
	tickSize  = 6
	smallTick = 3
	minFrame  = 20 // of either side, where all else takes the room
)

// Room for one labelled tick, in pixels.
const (
	roomPerValue = 30
	roomPerTime  = 90
)

// layOut gives everything its place. Title, key, times and values take their room next to the frame,
// and the frame has what is left.
func (p *Picture) layOut(c *canvas, lines []line) *layout {
	o := p.Options
	l := &layout{
		Picture:    p,
		c:          c,
		lines:      lines,
		foreground: o.Foreground,
		midtone:    blend(o.Foreground, o.Background, 0.3),
	}
	l.x0, l.y0, l.x1, l.y1 = edge, edge, c.width-edge-gap, c.height-edge
	if o.Title != "" {
		l.y0 += lineRow + gap
	}
	if l.key = l.newKey(); l.key != nil {
		l.key.takeRoom(l)
	}

	// First the times: their labels take height, by which the values' ticks are counted.
	l.placeTimes()
	l.placeValues()
	l.x1, l.y1 = math.Max(l.x1, l.x0+minFrame), math.Max(l.y1, l.y0+minFrame)
	return l
}

// placeTimes makes the ticks below the frame and their room.
func (l *layout) placeTimes() {
	format := l.Options.TimeFormat
	if format == nil {
		format = usualFormat(l.Start, l.End)
	}
	most := min(max(int((l.x1-l.x0)/roomPerTime), 2), 12)
	l.times = timeTicks(l.Start, l.End, l.Zone, most, format)
	// The labels stand upright, so that their length is height that the frame loses.
	longest := 0.0
	for i := range l.times {
		t := &l.times[i]
		t.label = printable(t.label, l.c.height/3)
		longest = math.Max(longest, textWidth(t.label))
	}
	l.y1 -= longest + gap
}

// placeValues makes the axes of values and their room.
func (l *layout) placeValues() {
	ticks := min(max(int((l.y1-l.y0)/roomPerValue), 2), 10)
	low, high := l.extent(false)
	l.left = newScale(&l.Options.Left, low, high, ticks)
	l.x0 += l.labelRoom(l.left, &l.Options.Left)

	for i := range l.lines {
		l.hasRight = l.hasRight || l.lines[i].onRight
	}
	low, high = l.extent(true)
	l.right = newScale(&l.Options.Right, low, high, ticks)
	if l.hasRight {
		l.x1 -= l.labelRoom(l.right, &l.Options.Right)
	} else if l.Options.Right.Label != "" {
		l.x1 -= lineRow // the label alone: the ticks are those of the left axis
	}
}

// extent returns the values of an axis' lines. Low is above high where there is none.
func (l *layout) extent(right bool) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range l.lines {
		if l.lines[i].onRight == right {
			low, high = math.Min(low, l.lines[i].low), math.Max(high, l.lines[i].high)
		}
	}
	return low, high
}

// labelRoom returns how much room an axis' labels take next to the frame.
func (l *layout) labelRoom(s *scale, a *graph.Axis) float64 {
	longest := 0.0
	for i := range s.ticks {
		t := &s.ticks[i]
		t.label = printable(t.label, l.c.width/4)
		longest = math.Max(longest, textWidth(t.label))
	}
	if a.Label != "" {
		longest += lineRow
	}
	return longest + gap
}

// x returns where a time stands.
func (l *layout) x(ms float64) float64 {
	return l.x0 + (ms-float64(l.Start))/float64(l.End-l.Start)*(l.x1-l.x0)
}

// y returns where a value stands on an axis.
func (l *layout) y(s *scale, v float64) (float64, bool) {
	place, ok := s.at(v)
	return l.y1 - place*(l.y1-l.y0), ok
}

// blend mixes two colours; share is that of the first.
func blend(a, b color.NRGBA, share float64) color.NRGBA {
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*share + float64(b)*(1-share))) }
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// crisp moves a coordinate to the middle of a pixel, where a thin line has sharp edges.
func crisp(v float64) float64 { return math.Floor(v) + 0.5 }
