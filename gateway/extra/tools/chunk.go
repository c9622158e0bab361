package tools

import "slices"

// chunkLines and chunkBytes bound a chunk.
const (
	chunkLines = 50_000
	chunkBytes = 8 << 20
)

// chunk is a run of lines that are written together, in the order names, points,
// meta lines.
type chunk struct {
	names     []nameLine
	lines     []linePoint
	text      []byte // backs linePoint.names of all lines
	meta      []metaLine
	metaBytes int       // length of the meta lines
	bad       []refusal // lines that cannot be parsed
	blank     int64
	end       position
	sent      sending
}

// placeNext returns the place of the line that the chunk takes next; before is
// the position in front of it.
func (c *chunk) placeNext(before position) place {
	return place{before, int64(len(c.lines)), int64(len(c.meta)), c.blank}
}

// placeOf returns the place of a line by its number. A line that is in none of
// the lists could not be parsed and so ended the chunk: its place is the end.
func (c *chunk) placeOf(line int64) place {
	n, ok := slices.BinarySearchFunc(c.lines, line, func(p linePoint, line int64) int { return int(p.number - line) })
	if ok {
		return c.lines[n].at
	}

	n, ok = slices.BinarySearchFunc(c.meta, line, func(r metaLine, line int64) int { return int(r.line - line) })
	if ok {
		return c.meta[n].at
	}
	return c.placeNext(c.end)
}

// sorted sorts refusals by line number.
func sorted(all []refusal) []refusal {
	slices.SortFunc(all, func(a, b refusal) int { return int(a.line - b.line) })
	return all
}
