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

	Merged       store.Cell // all points of the row
	MergedExists bool       // the row has the merged cell already: it is not put
	// Stamps and VisibleCells are for the condition that nobody has changed the row since it was read:
	// the timestamps of all cells that no marker hides, ascending, and how many of the cells can be
	// read, including those without points.
	Stamps       []int64
	VisibleCells int
	// Delete are the cells of points that the merged cell replaces, and older versions of them, so that
	// no version comes back when a newer one is deleted.
	Delete []store.Version

	PointCells int // cells of points that can be read, before compaction
	PointBytes int // of their qualifiers and values
}

// Decide returns what to do with a row of the data table, of the hour that begins at base,
// in seconds. The plan shares memory with the row.
func Decide(row store.VersionRow, base uint32, o Options) Plan {
	h := newHistory(row.Versions)
	var p Plan
	var pointCells []store.Version
	for _, v := range h.visible {
		if hasPoints(v.Qualifier) {
			pointCells = append(pointCells, v)
			p.PointBytes += len(v.Qualifier) + len(v.Value)
		}
	}
	p.PointCells = len(pointCells)

	p.Reason = h.refusal(pointCells, base, o)
	if p.Reason != None {
		return p
	}
	if p.Merged, p.Reason = mergeCells(pointCells, base, o.FixDuplicates); p.Reason != None {
		return p
	}
	if p.MergedExists, p.Reason = h.hasMerged(p.Merged); p.Reason != None {
		return p
	}

	p.VisibleCells = len(h.visible)
	p.Stamps = h.stamps()
	p.Delete = h.replacedBy(p.Merged)
	return p
}

// isVersion reports whether a version has the qualifier and the timestamp of a cell.
func isVersion(v store.Version, c store.Cell) bool {
	return bytes.Equal(v.Qualifier, c.Qualifier) && v.Timestamp == c.Timestamp
}

// hasMerged reports whether the row has the merged cell already, as after an interrupted compaction. The
// reason is not None if putting the merged cell would change another one, or would have no effect.
func (h *history) hasMerged(merged store.Cell) (exists bool, reason Reason) {
	for _, v := range h.visible {
		if isVersion(v, merged) {
			if !bytes.Equal(v.Value, merged.Value) {
				return false, Undecided
			}
			exists = true
		}
	}
	if h.hides(store.Version{Qualifier: merged.Qualifier, Timestamp: merged.Timestamp}) {
		return false, Hidden
	}
	return exists, None
}

// stamps returns the timestamps of all cells that no marker hides, ascending, each once.
func (h *history) stamps() (stamps []int64) {
	for _, v := range h.unhidden {
		stamps = append(stamps, v.Timestamp)
	}
	slices.Sort(stamps)
	return slices.Compact(stamps)
}

// replacedBy returns the markers that delete all versions of cells with points but the merged cell. They
// include versions that a marker hides already: HBase may drop that marker before the version, when it
// writes its memory to files and there is a newer version of the column.
func (h *history) replacedBy(merged store.Cell) (markers []store.Version) {
	for _, v := range h.puts { //fault:compaction-bares-older-versions TestDecide_answers
		result := isVersion(v, merged)
		if !result {
			markers = append(markers,
				store.Version{Kind: store.VersionMarker, Qualifier: v.Qualifier, Timestamp: v.Timestamp})
		}
	}
	return markers
}

// refusal returns why a row with these cells of points is not compacted, None if it may be, as far as that is
// known without decoding the points.
func (h *history) refusal(pointCells []store.Version, base uint32, o Options) Reason {
	for _, v := range h.visible {
		if len(v.Qualifier) == 0 {
			return Unreadable
		}
		if bytes.Equal(v.Qualifier, encoding.AppendColumn) {
			return Appended
		}
	}
	if len(pointCells) < 2 {
		return Single
	}
	hourIsYoung := (int64(base)+encoding.RowSeconds)*1000 > o.OlderThan
	if hourIsYoung || h.newest > o.OlderThan {
		return Young
	}
	return None
}

// mergeCells returns the cell of all points of a row's cells, or the reason why they cannot be merged. It
// makes sure that a query reads the same points at each moment of the compaction: from the cells alone,
// from the cells and the merged one, and from the merged one alone.
func mergeCells(cells []store.Version, base uint32, fixDuplicates bool) (merged store.Cell, reason Reason) {
	before, err := readPoints(base, fixDuplicates, cells)
	if duplicate := (*encoding.DuplicateError)(nil); errors.As(err, &duplicate) {
		return merged, Duplicates
	}
	if err != nil {
		return merged, Unreadable
	}

	var points []point
	dated := 0 // cells whose timestamp is the time of their first or last point
	for _, c := range cells {
		first := len(points)
		if points, err = appendPoints(points, c); err != nil {
			return merged, Unreadable
		}
		at := c.Timestamp - int64(base)*1000
		if at == int64(points[first].q.OffsetMS) || at == int64(points[len(points)-1].q.OffsetMS) {
			dated++
		}
	}
	// That may be chance: one in a thousand points is written in the millisecond that its whole second
	// names.
	if 2*dated > len(cells) {
		return merged, DataTimes
	}

	merged, ok := mergePoints(points)
	if !ok {
		return merged, Undecided
	}
	if len(merged.Qualifier)+len(merged.Value) > maxCell {
		return merged, Large
	}

	put := store.Version{Qualifier: merged.Qualifier, Value: merged.Value, Timestamp: merged.Timestamp}
	for _, readable := range [][]store.Version{{put}, append(slices.Clone(cells), put)} {
		after, err := readPoints(base, fixDuplicates, readable)
		if err != nil || !slices.Equal(after.Time, before.Time) || !slices.Equal(after.Bits, before.Bits) ||
			!slices.Equal(after.Float, before.Float) {
			return merged, Unreadable
		}
	}
	return merged, None
}

// readPoints returns the points of cells as a query reads them.
func readPoints(base uint32, fix bool, cells []store.Version) (points encoding.Points, err error) {
	d := encoding.RowDecoder{FixDuplicates: fix}
	d.Reset(base)
	for _, c := range cells {
		if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
			return points, err
		}
	}
	return points, d.Finish(&points)
}
