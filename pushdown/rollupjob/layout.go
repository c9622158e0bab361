package rollupjob

import (
	"bytes"
	"fmt"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
)

// Tables are those of raw rows, rollups and records.
type Tables struct {
	Data  string // raw rows
	State string // records; the table of our own
}

// Range is a half-open interval of time, in seconds since 1970.
type Range struct{ From, To int64 }

// empty reports whether r has no time.
func (r Range) empty() bool { return r.From >= r.To }

// intersect returns the times of both.
func (r Range) intersect(o Range) Range { return Range{max(r.From, o.From), min(r.To, o.To)} }

// daySeconds is about what is rolled up at a time.
const daySeconds = 86_400

// layout is the layout of a table of rollups.
type layout struct {
	schema  encoding.Schema
	table   string
	rows    encoding.RollupLayout
	columns []column
	// settings names everything that determines the rollups of raw rows.
	settings string
}

// column is a configured one of Columns.
type column struct {
	encoding.RollupColumn
	value int // index in rollup.MadeColumns
}

// newLayout returns the layout of an interval's table.
func newLayout(s encoding.Schema, t Tables, c *rollup.Config, i *rollup.Interval, fixDuplicates bool) *layout {
	l := &layout{schema: s, table: i.Table, rows: i.Layout}
	l.settings = fmt.Sprintf("1 %s %d/%s fix_duplicates=%v", t.Data, i.Layout.Interval, i.Layout.Span, fixDuplicates)
	for value, name := range rollup.ComputedColumns {
		if id, ok := c.ID(name); ok {
			l.columns = append(l.columns, column{encoding.RollupColumn{ID: id, Name: name}, value})
			l.settings += fmt.Sprintf(" %s=%d", name, id)
		}
	}
	slices.SortFunc(l.columns, func(a, b column) int { return int(a.ID) - int(b.ID) })
	return l
}

// step is the shortest time that can be rolled up: whole intervals and whole hours.
func (l *layout) step() int64 { return max(l.rows.Interval, encoding.RowSeconds) }

// piece is the time that is rolled up as a unit: about a day, in whole steps.
func (l *layout) piece() int64 { return l.grain(daySeconds) }

// grain is the shortest time that can be rolled up and is not shorter than another.
func (l *layout) grain(least int64) int64 {
	return (max(least, 1) + l.step() - 1) / l.step() * l.step()
}

// rawKeys returns the keys of the raw rows of a metric that can hold points of a time, in one salt
// bucket: those of its hours, and before them those of no full hour, which reach into the first.
func (l *layout) rawKeys(bucket int, metric encoding.UID, r Range) store.KeyRange {
	if r.From > 0 {
		r.From -= encoding.RowSeconds - 1
	}
	return l.keys(bucket, metric, r)
}

// keys returns the keys of a metric between two base times in one salt bucket.
func (l *layout) keys(bucket int, metric encoding.UID, r Range) store.KeyRange {
	return store.KeyRange{
		Start: l.schema.AppendRangeKey(nil, bucket, metric, encoding.KeyTime(r.From)),
		Stop:  l.schema.AppendRangeKey(nil, bucket, metric, encoding.KeyTime(r.To)),
	}
}

// rolledKeys returns the keys of the rollup rows that hold a time.
func (l *layout) rolledKeys(bucket int, metric encoding.UID, r Range) store.KeyRange {
	from, to := l.rows.Span.BaseTime(r.From), l.rows.Span.Next(l.rows.Span.BaseTime(r.To-1))
	return l.keys(bucket, metric, Range{from, to})
}

// qualifiers are those of the layout's columns, ascending.
func (l *layout) qualifiers() (out []store.KeyRange) {
	var prefixes [][]byte
	for _, c := range l.columns {
		of := c.Prefixes()
		prefixes = append(prefixes, of[:]...)
	}
	slices.SortFunc(prefixes, bytes.Compare)
	for i, p := range prefixes {
		// An ID may be the letter that an old column's name begins with.
		if i > 0 && bytes.HasPrefix(p, out[len(out)-1].Start) {
			continue
		}
		out = append(out, store.KeyRange{Start: p, Stop: encoding.PrefixEnd(p)})
	}
	return out
}

// timeOf returns the start of the interval that a cell of a row holds a value of; ok is false
// for a cell of another column.
func (l *layout) timeOf(base int64, qualifier []byte) (seconds int64, ok bool) {
	for i := range l.columns {
		if index, _, _, ok := l.columns[i].ParseQualifier(qualifier); ok {
			return base + int64(index)*l.rows.Interval, true
		}
	}
	return 0, false
}
