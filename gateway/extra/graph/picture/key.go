package picture

import (
	"fmt"
	"math"

	"downpour/gateway/extra/graph"
)

// key is the legend: names, each with a piece of its line.
type key struct {
	options graph.Key
	names   []string // those that have room, of the lines of these places
	of      []int
	more    string // how many others there are, "" for none
	columns int
	rows    int
	cell    float64 // the width of a column
	// Where it stands: the upper left corner.
	x, y, width, height float64
}

// sampleWidth is that of the piece of line next to a name.
const sampleWidth = 34

// A frame smaller than this has no room for a key inside of it.
const (
	leastKeyWidth  = 150
	leastKeyHeight = 60
)

// newKey chooses the names that have room. It returns nil if nothing has. As in gnuplot, a
// series without points has no entry.
func (l *layout) newKey() *key {
	k := &key{options: l.Options.Key, columns: 1}
	mostWidth, mostHeight := l.x1-l.x0-2*gap, l.y1-l.y0-2*gap
	if k.options.Hidden || mostWidth < leastKeyWidth || mostHeight < leastKeyHeight {
		return nil
	}

	// Next to the frame it takes half of the width at most. Above or below it, or with names
	// side by side, it takes a third of the height.
	atSide := k.options.Horizontal != graph.Middle
	if k.options.Outside && atSide {
		mostWidth /= 2
	}
	if k.options.Sideways || k.options.Outside && !atSide {
		mostHeight /= 3
	}

	rows, entries := max(1, int(mostHeight/lineRow)), 0
	longest := 0.0
	for i := range l.lines {
		if l.lines[i].samples.Len() == 0 {
			continue
		}
		if entries++; len(k.names) < mostKeyNames {
			name := printable(l.lines[i].name, mostWidth-sampleWidth-3*gap)
			longest = math.Max(longest, textWidth(name))
			k.names, k.of = append(k.names, name), append(k.of, i)
		}
	}
	if entries == 0 {
		return nil
	}

	k.cell = longest + sampleWidth + 2*gap
	if k.options.Sideways {
		k.columns = min(max(1, int(mostWidth/k.cell)), len(k.names))
	}
	// The last place shows how many names have no room.
	if room := min(rows*k.columns, mostKeyNames); entries > room {
		k.names = k.names[:room-1]
		k.more = fmt.Sprintf("and %d more", entries-len(k.names))
		entries = room
	}

	k.rows = (entries + k.columns - 1) / k.columns
	k.width, k.height = float64(k.columns)*k.cell+gap, float64(k.rows)*lineRow+gap
	return k
}

// mostKeyNames is about how many names have room in a large picture.
const mostKeyNames = 500

// takeRoom takes room next to the frame for a key that stands outside of it: at a side, or
// above or below if it is in the middle.
func (k *key) takeRoom(l *layout) {
	if !k.options.Outside {
		return
	}
	switch {
	case k.options.Horizontal == graph.Start:
		l.x0 += k.width + gap
	case k.options.Horizontal == graph.End:
		l.x1 -= k.width + gap
	case k.options.Vertical == graph.Start:
		l.y0 += k.height + gap
	default:
		l.y1 -= k.height + gap
	}
}

// place finds where the key stands, once the frame has its place.
func (k *key) place(l *layout) {
	within := func(p graph.Place, from, to, size float64) float64 {
		switch p {
		case graph.Start:
			return from + gap
		case graph.End:
			return to - gap - size
		}
		return (from + to - size) / 2
	}
	k.x, k.y = within(k.options.Horizontal, l.x0, l.x1, k.width), within(k.options.Vertical, l.y0, l.y1, k.height)
	if !k.options.Outside {
		return
	}

	// Outside, it stands at the border where takeRoom took its room. In the other direction it
	// keeps its place along the frame.
	switch {
	case k.options.Horizontal == graph.Start:
		k.x = gap
	case k.options.Horizontal == graph.End:
		k.x = l.c.width - k.width - gap
	case k.options.Vertical == graph.Start:
		k.y = l.y0 - k.height - gap // below the title
	default:
		k.y = l.c.height - k.height - gap // below the labels of the times
	}
}

// drawKey draws the key over the lines, so that its names can be read.
func (l *layout) drawKey() {
	k := l.key
	if k == nil {
		return
	}
	k.place(l)
	box := l.c.rectangle(crisp(k.x), crisp(k.y), crisp(k.x+k.width), crisp(k.y+k.height))
	// A little of the lines behind it can be seen.
	background := l.Options.Background
	background.A = 0xd0
	l.c.fill(box, background)
	if k.options.Box {
		l.c.stroke(box, thin, l.foreground)
	}

	// The last text says how many names have no room; no line belongs to it.
	for i, name := range append(k.names, k.more) {
		left := k.x + float64(i%k.columns)*k.cell
		baseline := k.y + gap/2 + float64(i/k.columns+1)*lineRow - 3
		// Names end where their lines begin, as gnuplot has them. The sample is at the middle
		// of the letters, 4 pixels above their baseline.
		l.c.text(left+k.cell-sampleWidth-gap-textWidth(name), baseline, name, l.foreground)
		if i < len(k.names) {
			l.drawSample(&l.lines[k.of[i]], left+k.cell-sampleWidth, baseline-4)
		}
	}
}

// drawSample draws a piece of a line with a mark in its middle.
func (l *layout) drawSample(ln *line, x, y float64) {
	m := &marks{c: l.c, look: ln.look, style: l.Options.Style}
	if m.style == graph.LinesAndPoints {
		l.c.stroke(l.c.polyline([2]float64{x, y}, [2]float64{x + sampleWidth - gap, y}), thick, ln.look.colour)
	}
	if l.marked(ln) {
		m.add(x+(sampleWidth-gap)/2, y)
	}
	m.flush()
}
