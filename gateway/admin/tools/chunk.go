package tools

import "slices"

// chunkLines and chunkBytes bound what is read before it is written.
const (
	chunkLines = 50_000
	chunkBytes = 8 << 20
)

// chunk is a run of lines that are written together.
type chunk struct {
	names   []listedName
	lines   []linePoint
	text    []byte // of the lines' names
	remarks []remark
	said    int // bytes of the remarks
	bad     []refusal
	blank   int64
	end     position
	sent    sending
}

// here is the place of the line that is read into the chunk next.
func (c *chunk) here(before position) place {
	return place{before, int64(len(c.lines)), int64(len(c.remarks)), c.blank}
}

// placeOf is the place of a line; of one that was not taken into the chunk, and
// so ended it, the chunk's end.
func (c *chunk) placeOf(line int64) place {
	n, ok := slices.BinarySearchFunc(c.lines, line, func(p linePoint, line int64) int { return int(p.number - line) })
	if ok {
		return c.lines[n].at
	}
	n, ok = slices.BinarySearchFunc(c.remarks, line, func(r remark, line int64) int { return int(r.line - line) })
	if ok {
		return c.remarks[n].at
	}
	return c.here(c.end)
}

// sorted are refusals in the order of their lines.
func sorted(all []refusal) []refusal {
	slices.SortFunc(all, func(a, b refusal) int { return int(a.line - b.line) })
	return all
}
