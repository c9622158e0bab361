package retention

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// rangesPerScan is the number of ranges that one scan reads.
const rangesPerScan = 500

// blockBytes is the size of the blocks that a scan returns: while rows are deleted slowly the
// scanner waits for as many.
const blockBytes = 64 << 10

// walk calls each with the rows of ascending ranges, until it returns false or an error. A row is
// valid during the call.
func (j *Job) walk(
	ctx context.Context, table string, ranges iter.Seq[store.KeyRange], keysOnly bool,
	each func(store.Row) (bool, error),
) error {
	for some := range chunks(ranges, rangesPerScan) {
		scan := store.Scan{
			Table:      table,
			Start:      some[0].Start,
			Stop:       some[len(some)-1].Stop,
			Family:     encoding.FamilyData,
			Filter:     store.RowFilter{Ranges: some},
			KeysOnly:   keysOnly,
			BlockBytes: blockBytes,
		}
		for row, err := range store.Rows(ctx, j.Store, scan) {
			if err != nil {
				return fmt.Errorf("table %s: %w", table, err)
			}
			if !scan.Filter.Matches(row.Key) {
				continue // a store may return more
			}
			if more, err := each(row); !more || err != nil {
				return err
			}
		}
	}
	return nil
}

// missing reports whether an error means that a table was never made, and so has no rows.
func (p *past) missing(err error) bool {
	return p.table.Optional && errors.Is(err, store.ErrNoTable)
}

// count counts the rows that go, and, unless keysOnly, their bytes.
func (j *Job) count(ctx context.Context, p *past, keysOnly bool) error {
	tell := j.teller()
	ranged := j.Store.Features().RangeDeleter != nil
	err := j.walk(ctx, p.table.Name, p.ranges(everyMetric), keysOnly, func(row store.Row) (bool, error) {
		m, ok, err := p.metricOf(row.Key)
		if err != nil {
			return false, err
		}
		if !ok {
			p.impossibleRows++
			// Rows are deleted one by one then, which looks at each key.
			if !ranged {
				return true, nil
			}
			if len(p.impossible) == maxImpossible {
				return false, fmt.Errorf("table %s: more than %d rows have impossible keys: see gateway fsck",
					p.table.Name, maxImpossible)
			}
			p.impossible = append(p.impossible, bytes.Clone(row.Key))
			return true, nil
		}

		m.rows++
		p.rows++
		for _, c := range row.Cells {
			n := int64(len(row.Key) + len(c.Qualifier) + len(c.Value))
			m.bytes += n
			p.bytes += n
		}
		tell(func() string { return fmt.Sprintf("table %s: %d rows that are past so far", p.table.Name, p.rows) })
		return true, nil
	})
	if p.missing(err) {
		return nil
	}
	return err
}

// stay counts the rows of a table that do not go, up to enough.
func (j *Job) stay(ctx context.Context, p *past, enough int64) (n int64, err error) {
	if enough == 0 {
		return 0, nil
	}
	tell := j.teller()
	err = j.walk(ctx, p.table.Name, gaps(p.ranges(everyMetric)), true, func(store.Row) (bool, error) {
		n++
		tell(func() string { return fmt.Sprintf("table %s: %d rows that stay so far", p.table.Name, n) })
		return n < enough, nil
	})
	return n, err
}
