package rollupjob

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"downpour/encoding"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
)

// slot has the values of one series and interval while its points are added. They are those
// of the downsampling functions of package aggregate, added in the same order.
type slot struct {
	sum      float64
	count    int64
	min, max float64
	any      bool // there is a point, which may be NaN
}

var emptySlot = slot{min: math.Inf(1), max: math.Inf(-1)}

// add adds points in the order of time. NaN is skipped, and the first of equal values is kept.
func (s *slot) add(values []float64) {
	s.any = s.any || len(values) > 0
	for _, v := range values {
		if v == v { // not NaN
			s.sum += v
			s.count++
		}
		if v < s.min {
			s.min = v
		}
		if v > s.max {
			s.max = v
		}
	}
}

// value returns that of one of rollup.MadeColumns.
func (s *slot) value(column int) float64 {
	switch {
	case column == 1:
		return float64(s.count)
	case column == 0 && s.count == 0, column == 2 && math.IsInf(s.min, 1), column == 3 && math.IsInf(s.max, -1):
		return math.NaN()
	case column == 0:
		return s.sum
	case column == 2:
		return s.min
	}
	return s.max
}

// largest is the largest value whose sum is finite in any order, for as many points as a series can
// have.
const largest = 1e290

// addable reports whether the slot's sum can be added to others as its points could be.
func (s *slot) addable() bool {
	return s.count == 0 || -largest <= s.min && s.max <= largest
}

// unit is the rollups of a time that are being made: of all series of a metric in one salt
// bucket.
type unit struct {
	layout *layout
	Range
	series   map[string][]slot // by tags; a slot for each interval
	decoder  encoding.RowDecoder
	doubles  []float64
	maxSlots int // slots
	held     *memory.Lease

	points, rows            int64
	timesChecked, dataTimes int64 // rows whose first cell was checked; those that carry the time of a point
	readRaw                 string
}

// maxSlots bounds the slots of a unit. A unit that needs more is split. slotBytes is about the size
// of one, with its cells.
const (
	maxSlots  = 256 << 10
	slotBytes = 600
)

// pagePoints is about how many raw points are read in one call.
const pagePoints = 8 << 10

// errTooMany is returned for a unit with more than maxSlots slots.
var errTooMany = errors.New("too many series to roll up at a time")

// damageError is returned for a row that a query could not read, either.
type damageError struct {
	key []byte
	err error
}

func (e *damageError) Error() string { return fmt.Sprintf("row %x: %v", e.key, e.err) }
func (e *damageError) Unwrap() error { return e.err }

// newUnit returns a unit whose memory is held by the account of a context.
func newUnit(ctx context.Context, l *layout, r Range, fixDuplicates bool) *unit {
	return &unit{
		layout:   l,
		Range:    r,
		maxSlots: maxSlots,
		held:     memory.NewLease(ctx),
		series:   map[string][]slot{},
		decoder:  encoding.RowDecoder{FixDuplicates: fixDuplicates},
	}
}

// read adds all raw rows of a key range, and reports each page of them to pace.
func (u *unit) read(ctx context.Context, from store.Reader, table string, keys store.KeyRange,
	pace func(ctx context.Context, points int64) error) error {
	var reported int64
	scan := store.Scan{Table: table, Start: keys.Start, Stop: keys.Stop, Family: encoding.FamilyData}
	for row, err := range store.Rows(ctx, from, scan) {
		if err != nil {
			return err
		}
		if err := u.add(&row); err != nil {
			return err
		}
		if cost := u.points + rowCost*u.rows; cost-reported >= pagePoints {
			if err := pace(ctx, cost-reported); err != nil {
				return err
			}
			reported = cost
		}
	}
	if err := pace(ctx, u.points+rowCost*u.rows-reported); err != nil {
		return err
	}
	// As for the result cache: half of them are no chance.
	if u.dataTimes > 0 && 2*u.dataTimes >= u.timesChecked {
		u.readRaw = "cells carry the time of their data"
	}
	return nil
}

// add adds a raw row.
func (u *unit) add(row *store.Row) error {
	key, err := u.layout.schema.ParseRowKey(row.Key)
	if err != nil {
		return &damageError{slices.Clone(row.Key), err}
	}
	// Its points may be of an hour that is not rolled up here.
	if encoding.OffHour(key.BaseTime) {
		return &damageError{slices.Clone(row.Key),
			fmt.Errorf("base time: got %d, want a full hour (gateway fsck --fix moves its points)", key.BaseTime)}
	}
	u.decoder.Reset(key.BaseTime)
	for i := range row.Cells {
		c := &row.Cells[i]
		if err := u.decoder.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
			return &damageError{slices.Clone(row.Key), err}
		}
	}
	offsets, values, err := u.decoder.FinishDoubles(u.doubles)
	if err != nil {
		return &damageError{slices.Clone(row.Key), err}
	}
	u.doubles = values

	u.rows++
	u.points += int64(len(offsets))
	u.countDataTimes(row, key.BaseTime)
	// A query returns annotations, and counts a series that has no points.
	if len(offsets) == 0 || u.decoder.Skipped() > 0 || len(u.decoder.Annotations()) > 0 {
		u.readRaw = "rows with annotations, histograms or other cells that are no points"
	}
	if len(offsets) == 0 {
		return nil
	}
	slots, err := u.slots(key.Tags)
	if err != nil {
		return err
	}
	u.addPoints(slots, int64(key.BaseTime), offsets, values)
	return nil
}

// slots returns the slots of a series.
func (u *unit) slots(tags []byte) ([]slot, error) {
	if s, ok := u.series[string(tags)]; ok {
		return s, nil
	}
	n := int((u.To - u.From) / u.layout.rows.Interval)
	if (len(u.series)+1)*n > u.maxSlots {
		return nil, errTooMany
	}
	if err := u.held.Reserve(int64(n) * slotBytes); err != nil {
		return nil, err
	}
	s := slices.Repeat([]slot{emptySlot}, n)
	u.series[string(tags)] = s
	return s, nil
}

// addPoints adds the points of a row, whose times are offsets in ms from its base time.
func (u *unit) addPoints(slots []slot, base int64, offsets []int32, values []float64) {
	width := u.layout.rows.Interval
	for len(offsets) > 0 {
		at := base + int64(offsets[0])/1000
		index := (at - u.From) / width
		end := (u.From + (index+1)*width - base) * 1000 // ms from the base time
		n := 1
		for n < len(offsets) && int64(offsets[n]) < end {
			n++
		}
		slots[index].add(values[:n])
		if !slots[index].addable() {
			u.readRaw = "values near the largest double"
		}
		offsets, values = offsets[n:], values[n:]
	}
}

// countDataTimes counts the row in timesChecked, and in dataTimes if its first cell of points carries the
// time of one of them.
func (u *unit) countDataTimes(row *store.Row, base uint32) {
	for i := range row.Cells {
		c := &row.Cells[i]
		if len(c.Qualifier) == 0 || len(c.Qualifier)%2 != 0 {
			continue
		}
		u.timesChecked++
		for rest := c.Qualifier; len(rest) > 0; {
			q, more, err := encoding.ParseQualifier(rest)
			if err != nil {
				return
			}
			if int64(base)*1000+int64(q.OffsetMS) == c.Timestamp {
				u.dataTimes++
				return
			}
			rest = more
		}
		return
	}
}

// rolledRow is a row of a rollup table with cells of the layout's columns.
type rolledRow struct {
	key   []byte
	cells []store.Cell // ascending by qualifier
	times []int64      // of each cell: the begin of its interval
}

// Len, Less and Swap sort the cells of a row, with their times.
func (r *rolledRow) Len() int { return len(r.cells) }

// Less compares qualifiers.
func (r *rolledRow) Less(i, k int) bool {
	return bytes.Compare(r.cells[i].Qualifier, r.cells[k].Qualifier) < 0
}

// Swap swaps two cells.
func (r *rolledRow) Swap(i, k int) {
	r.cells[i], r.cells[k] = r.cells[k], r.cells[i]
	r.times[i], r.times[k] = r.times[k], r.times[i]
}

// make returns the rows that hold the unit's rollups, ascending by key.
func (u *unit) make(bucket int, metric encoding.UID) (rows []rolledRow) {
	head := append(u.layout.schema.AppendSalt(nil, bucket), metric...)
	for tags, slots := range u.series {
		var row *rolledRow
		last := int64(-1)
		for i := range slots {
			if !slots[i].any {
				continue
			}
			at := u.From + int64(i)*u.layout.rows.Interval
			base, index, err := u.layout.rows.Split(at)
			if err != nil { // Intervals has made sure that rows hold whole intervals
				panic(err)
			}
			if base != last {
				key := binary.BigEndian.AppendUint32(slices.Clone(head), encoding.KeyTime(base))
				rows = append(rows, rolledRow{key: append(key, tags...)})
				row, last = &rows[len(rows)-1], base
			}
			for _, c := range u.layout.columns {
				row.cells = append(row.cells, cellOf(c.ID, index, slots[i].value(c.value)))
				row.times = append(row.times, at)
			}
		}
	}

	for i := range rows {
		sort.Sort(&rows[i])
	}
	slices.SortFunc(rows, func(a, b rolledRow) int { return strings.Compare(string(a.key), string(b.key)) })
	return rows
}

// maxInteger is the largest integer up to which doubles hold each.
const maxInteger = 1 << 53

// cellOf returns the cell of a value: an integer if it is one, which takes fewer bytes.
func cellOf(id byte, index int, v float64) store.Cell {
	if n := int64(v); math.Abs(v) <= maxInteger && float64(n) == v && (n != 0 || !math.Signbit(v)) {
		return store.Cell{
			Qualifier: encoding.AppendRollupQualifier(nil, id, index, false, encoding.IntWidth(n)),
			Value:     encoding.AppendInt(nil, n),
		}
	}
	return store.Cell{
		Qualifier: encoding.AppendRollupQualifier(nil, id, index, true, 8),
		Value:     encoding.AppendDouble(nil, v),
	}
}
