package rollupjob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"downpour/encoding"
	"downpour/pushdown/lease"
	"downpour/pushdown/store"
)

// Records have a row each in the table of state, and one cell in it:
//
//	rollup/tsdb-rollup-1h/000001/03/1354752000   s:record   {"sections":[…]}
//
// which is table, metric, salt, and the start of the record's time, in seconds and ten
// digits; it has periodPieces pieces, about a month. Its value is replaced on the
// condition that it is the one that was read.
const (
	recordPrefix = "rollup/"
	recordColumn = "record"
)

// periodPieces is the number of pieces of a record. A query of a week reads one or two records of
// each salt bucket, and each day's rollups rewrite one.
const periodPieces = 32

// period is the time that a record is of. Each begins at a multiple of it.
func (l *layout) period() int64 { return periodPieces * l.piece() }

// recordKey returns the key of the row of the record that begins at a time.
func recordKey(l *layout, metric encoding.UID, bucket int, begin int64) []byte {
	return fmt.Appendf(nil, "%s%s/%x/%x/%010d", recordPrefix, l.table, []byte(metric),
		l.schema.AppendSalt(nil, bucket), begin)
}

// records are what is known in one salt bucket of all periods that have times of a range.
type records struct {
	record                  // of all of them
	values map[int64][]byte // those in the table, by the begin of the period
}

// maxGets is the most periods whose records are got by their keys; of more they are scanned.
const maxGets = 4

// readRecords returns, by salt bucket, what is recorded of a metric in the periods that have
// times of r.
func readRecords(ctx context.Context, from store.Reader, t Tables, l *layout, metric encoding.UID, buckets []int,
	r Range) ([]records, error) {
	type place struct {
		of    int // index in out
		begin int64
	}
	out := make([]records, len(buckets))
	places := map[string]place{}
	var keys [][]byte
	var ranges []store.KeyRange
	first, last := r.From/l.period()*l.period(), (r.To-1)/l.period()*l.period()
	for i, bucket := range buckets {
		out[i].values = map[int64][]byte{}
		for begin := first; begin <= last; begin += l.period() {
			key := recordKey(l, metric, bucket, begin)
			places[string(key)] = place{i, begin}
			keys = append(keys, key)
		}
		ranges = append(ranges,
			store.KeyRange{
				Start: recordKey(l, metric, bucket, first),
				Stop:  recordKey(l, metric, bucket, last+l.period()),
			})
	}

	add := func(row store.Row) error {
		at, ok := places[string(row.Key)]
		if !ok {
			return nil // a scan may return others
		}
		for _, c := range row.Cells {
			if string(c.Qualifier) != recordColumn {
				continue
			}
			one, err := l.parseRecord(c.Value, at.begin)
			if err != nil {
				return fmt.Errorf("row %q of table %s: %w", row.Key, t.State, err)
			}
			out[at.of].values[at.begin] = bytes.Clone(c.Value)
			for _, s := range one.Sections { // the periods of a salt bucket ascend
				out[at.of].add(s)
			}
		}
		return nil
	}
	if (last-first)/l.period() >= maxGets {
		keys = nil
	}
	// The first job that writes makes the table.
	if err := eachRecord(ctx, from, t.State, keys, ranges, add); err != nil && !errors.Is(err, store.ErrNoTable) {
		return nil, fmt.Errorf("cannot read what is recorded of rollups: %w", err)
	}
	return out, nil
}

// eachRecord calls f for the rows of records, ascending: for those of some keys, or, without
// any, for those in ranges.
func eachRecord(ctx context.Context, from store.Reader, table string, keys [][]byte, ranges []store.KeyRange,
	f func(store.Row) error) error {
	if len(keys) > 0 {
		rows, err := from.Get(ctx, table, lease.Family, keys)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := f(row); err != nil {
				return err
			}
		}
		return nil
	}

	scan := store.Scan{
		Table:  table,
		Start:  ranges[0].Start,
		Stop:   ranges[len(ranges)-1].Stop,
		Family: lease.Family,
		Filter: store.RowFilter{Ranges: ranges},
	}
	for row, err := range store.Rows(ctx, from, scan) {
		if err == nil {
			err = f(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseRecord reads the record of the period that begins at a time.
func (l *layout) parseRecord(value []byte, begin int64) (r record, err error) {
	if err := json.Unmarshal(value, &r); err != nil {
		return r, err
	}
	if err := r.validate(); err != nil {
		return r, err
	}
	if n := len(r.Sections); n > 0 &&
		(r.Sections[0].times().From < begin || r.Sections[n-1].times().To > begin+l.period()) {
		return r, fmt.Errorf("got times from %d to %d, want them from %d to %d", r.Sections[0].times().From,
			r.Sections[n-1].times().To, begin, begin+l.period())
	}
	return r, nil
}

// byPeriod returns the record of each period, by its begin.
func (l *layout) byPeriod(r *record) map[int64]*record {
	out := map[int64]*record{}
	for _, s := range r.Sections {
		for _, p := range s.Pieces {
			begin := p.From / l.period() * l.period()
			if out[begin] == nil {
				out[begin] = new(record)
			}
			s.Pieces = []piece{p}
			out[begin].add(s)
		}
	}
	return out
}

// save writes the records that were changed, each on the condition that the table's is still the
// one last read or saved.
func (r *records) save(ctx context.Context, to store.Atomic, t Tables, l *layout, metric encoding.UID,
	bucket int) error {
	now := l.byPeriod(&r.record)
	for begin := range r.values {
		if now[begin] == nil {
			now[begin] = new(record) // nothing is left
		}
	}
	for begin, one := range now {
		value, err := json.Marshal(one)
		if err != nil {
			return err
		}
		old := r.values[begin]
		if bytes.Equal(value, old) {
			continue
		}
		cell := store.CellKey{
			Row:       recordKey(l, metric, bucket, begin),
			Family:    lease.Family,
			Qualifier: []byte(recordColumn),
		}
		ok, err := to.CompareAndPut(ctx, t.State, cell, old, value)
		if err == nil && !ok {
			err = errRecord
		}
		if err != nil {
			return fmt.Errorf("cannot record what was rolled up in table %s: %w", t.State, err)
		}
		r.values[begin] = value
	}
	return nil
}
