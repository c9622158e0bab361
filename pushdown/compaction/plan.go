package compaction

import (
	"bytes"
	"errors"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Reason is why a row is not compacted.
type Reason uint8

// Reasons.
const (
	None        Reason = iota // it is compacted
	Single                    // it has at most one cell of points
	Young                     // its hour, or its newest cell, is younger than the margin
	Appended                  // it has an append column, which OpenTSDB leaves, too
	Duplicates                // two values of one time differ, and duplicates are not resolved
	Undecided                 // it is unknown which of two values counts: their cells have one timestamp
	DataTimes                 // its cells carry the time of their points
	Unreadable                // a cell cannot be read
	Hidden                    // the deletion of an earlier cell would hide the merged one, until a major compaction
	Large                     // the merged cell would have more than maxCell bytes
	Changed                   // others have written to it each time it was tried
	reasonCount int    = iota
)

// String is the reason, after "rows left: ".
func (r Reason) String() string {
	return [...]string{"compacted", "one cell", "young", "append column", "duplicates that differ",
		"equally old values that differ",
		"cells carry the time of their points", "unreadable", "hidden until a major compaction", "too large",
		"written to meanwhile"}[r]
}

// maxCell bounds the bytes of a merged cell, qualifier and value.
const maxCell = 1 << 20

// marker is the qualifier of a column that never exists, whose deletion marks a row as changed, see
// store.ConditionalChange.
var marker = []byte{0xff}

// Options of a plan.
type Options struct {
	FixDuplicates bool  // tsd.storage.fix_duplicates: the newest of several values counts
	OlderThan     int64 // ms since 1970; the row's hour has ended, and its newest version was written, before
}

// Plan is what to do with a row.
type Plan struct {
	Reason Reason // None, or why nothing is to be done
	Merged store.Cell
	There  bool    // the row has the merged cell: it is not put
	Stamps []int64 // of all cells that can be read, and of what they hide
	// Columns is how many cells can be read, including those without points.
	Columns int
	Delete  []store.Version // the merged cell's parts, and older versions that they hide
	Cells   int             // of points, that can be read now
	Bytes   int             // of their qualifiers and values
}

// Decide returns what to do with a row of the data table, of the hour that begins at base,
// in seconds. The plan shares memory with the row.
func Decide(row store.VersionRow, base uint32, o Options) Plan {
	h := newHistory(row.Versions)
	var p Plan
	var parts []store.Version // of points, that can be read
	for _, v := range h.visible {
		if hasPoints(v.Qualifier) {
			parts = append(parts, v)
			p.Bytes += len(v.Qualifier) + len(v.Value)
		}
	}
	p.Cells = len(parts)

	p.Reason = h.stays(parts, base, o)
	if p.Reason != None {
		return p
	}
	if p.Reason = p.merge(parts, base, o.FixDuplicates); p.Reason != None {
		return p
	}

	p.Columns = len(h.visible)
	for _, v := range h.visible {
		if bytes.Equal(v.Qualifier, p.Merged.Qualifier) && v.Timestamp == p.Merged.Timestamp {
			if p.There = bytes.Equal(v.Value, p.Merged.Value); !p.There {
				p.Reason = Undecided
				return p
			}
		}
	}
	if !p.There && h.hides(store.Version{Qualifier: p.Merged.Qualifier, Timestamp: p.Merged.Timestamp}) {
		p.Reason = Hidden
		return p
	}

	for _, v := range h.alive {
		p.Stamps = append(p.Stamps, v.Timestamp)
	}
	slices.Sort(p.Stamps)
	p.Stamps = slices.Compact(p.Stamps)

	// Those that are hidden, too: HBase may drop their markers before them, when it writes its
	// memory to files and there is a newer version of their column.
	for _, v := range h.puts { //fault:compaction-bares-older-versions TestDecide_answers
		result := bytes.Equal(v.Qualifier, p.Merged.Qualifier) && v.Timestamp == p.Merged.Timestamp
		if !result {
			p.Delete = append(p.Delete,
				store.Version{Kind: store.VersionMarker, Qualifier: v.Qualifier, Timestamp: v.Timestamp})
		}
	}
	return p
}

// stays returns why a row is not compacted, as far as that is known without reading its points.
func (h *history) stays(parts []store.Version, base uint32, o Options) Reason {
	for _, v := range h.visible {
		if len(v.Qualifier) == 0 {
			return Unreadable
		}
		if bytes.Equal(v.Qualifier, encoding.AppendColumn) {
			return Appended
		}
	}
	if len(parts) < 2 {
		return Single
	}
	if (int64(base)+encoding.RowSeconds)*1000 > o.OlderThan || h.newest > o.OlderThan { //fault:compaction-of-young-cells TestOrders
		return Young
	}
	return None
}

// merge makes the merged cell, and makes sure that readers get the same points before it is put,
// while it is next to its parts, and from it alone.
func (p *Plan) merge(parts []store.Version, base uint32, fix bool) Reason {
	before, err := read(base, fix, parts)
	if duplicate := (*encoding.DuplicateError)(nil); errors.As(err, &duplicate) {
		return Duplicates
	}
	if err != nil {
		return Unreadable
	}

	var points []point
	dated := 0 // cells with the time of a point of theirs
	for _, c := range parts {
		first := len(points)
		if points, err = cut(points, c); err != nil {
			return Unreadable
		}
		at := c.Timestamp - int64(base)*1000
		if at == int64(points[first].q.OffsetMS) || at == int64(points[len(points)-1].q.OffsetMS) {
			dated++
		}
	}
	// One in a thousand points is written in the millisecond that its whole second names.
	if 2*dated > len(parts) {
		return DataTimes
	}

	var ok bool
	if p.Merged, ok = merge(points); !ok {
		return Undecided
	}
	if len(p.Merged.Qualifier)+len(p.Merged.Value) > maxCell {
		return Large
	}

	merged := store.Version{Qualifier: p.Merged.Qualifier, Value: p.Merged.Value, Timestamp: p.Merged.Timestamp}
	for _, cells := range [][]store.Version{{merged}, append(slices.Clone(parts), merged)} {
		after, err := read(base, fix, cells)
		if err != nil || !slices.Equal(after.Time, before.Time) || !slices.Equal(after.Bits, before.Bits) ||
			!slices.Equal(after.Float, before.Float) {
			return Unreadable
		}
	}
	return None
}

// read returns the points of cells as a query reads them.
func read(base uint32, fix bool, cells []store.Version) (points encoding.Points, err error) {
	d := encoding.RowDecoder{FixDuplicates: fix}
	d.Reset(base)
	for _, c := range cells {
		if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
			return points, err
		}
	}
	return points, d.Finish(&points)
}
