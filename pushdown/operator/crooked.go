package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/store"
)

// A row whose base time is no full hour is crooked: TSDs have written the points of times after
// 2106 into such rows of other years. Its points are in two hours, between those of other rows,
// and a part may already have sent the results of these hours when it reads the row. So crooked
// rows are not handled in passing: a part that reads one ends with a CrookedError, and the plan
// is executed again with Plan.Straight. Then each part first reads the crooked rows of its
// hours and cuts them: after that all rows are of full hours, and a point is in the row of its
// hour.
//
// Most tables have none, and for them the cost is one look at each row's base time and, where a
// part seeks from key to key, a range after each hour, which has no key.

// CrookedError is returned for a crooked row of a plan that is not Straight.
type CrookedError struct {
	Row  []byte // the row's key
	Text string // names the row
}

// Error names the row.
func (e *CrookedError) Error() string { return e.Text }

// crookedError returns the error of a crooked row.
func crookedError(s encoding.Schema, row []byte) error {
	return &CrookedError{
		Row:  bytes.Clone(row),
		Text: fmt.Sprintf("row %X is of no full hour (%s)", row, describeRow(s, row)),
	}
}

// checkCrooked returns a CrookedError for a crooked row that holds, or may hold, points of the
// plan.
func (a *admission) checkCrooked(row []byte, key encoding.RowKey) error {
	if !encoding.Crooked(key.BaseTime) || a.plan.Rollup != nil || a.plan.Straight {
		return nil
	}
	if !a.reads.Contains(row) || !bytes.Equal(key.Metric, a.plan.Metric) ||
		!a.span(a.plan.Schema.AppendSpan(nil, row)) {
		return nil
	}
	return crookedError(a.plan.Schema, row)
}

// IsCrooked reports whether a row of a plan is crooked.
func IsCrooked(p *scanplan.Plan, row []byte) bool {
	key, err := p.Schema.ParseRowKey(row)
	return err == nil && p.Rollup == nil && encoding.Crooked(key.BaseTime)
}

// gaps are the keys of the part's crooked rows: between the hour's own and those of the next.
func (b *accessBuilder) gaps(from, to int64) (r rangeList) {
	for hour := from; hour < to; hour += encoding.RowSeconds {
		r.add(b.part.Range, b.keyHead(hour+1), b.keyHead(hour+encoding.RowSeconds))
	}
	return r
}

// withGaps adds the keys of crooked rows to those of an access path. Ranges of whole keys would
// pass over them.
func (b *accessBuilder) withGaps(a Access) Access {
	if b.plan.Rollup != nil || b.plan.Straight || len(a.Filter.Ranges) == 0 && !a.Nothing {
		return a
	}
	from, to := b.hours()
	all := slices.Concat(a.Filter.Ranges, b.gaps(from, to))
	slices.SortFunc(all, func(x, y store.KeyRange) int { return bytes.Compare(x.Start, y.Start) })
	var merged rangeList
	for _, r := range all {
		merged.add(b.part.Range, r.Start, r.Stop)
	}
	if len(merged) == 0 {
		return a
	}
	a.Filter.Ranges, a.Nothing = merged, false
	return a
}

// scanOf returns the scan of a part by an access path. It begins before the part where that
// begins the plan: the crooked rows there hold points of the part's first hour.
func scanOf(part *scanplan.Part, a Access) store.Scan {
	reads := part.Plan.Reads(part.Range)
	scan := store.Scan{
		Table:  part.Plan.Table,
		Family: encoding.FamilyData,
		Start:  reads.Start,
		Stop:   reads.Stop,
		Filter: a.Filter,
		Sealed: true,
	}
	if len(a.Filter.Ranges) > 0 && !bytes.Equal(reads.Start, part.Range.Start) {
		first := store.KeyRange{Start: reads.Start, Stop: part.Range.Start}
		scan.Filter.Ranges = slices.Concat([]store.KeyRange{first}, a.Filter.Ranges)
	}
	return scan
}

// openScan opens the scan of a part by an access path. The rows of a straight plan are of full
// hours. extra is about the bytes that are held in addition to the scanner's blocks.
func openScan(ctx context.Context, from store.Reader, part *scanplan.Part, path Access, prefixes *access.PrefixCache,
	scan store.Scan, stats *Stats) (_ store.Scanner, extra int64, err error) {
	var cut []store.Row
	if part.Plan.Straight {
		if cut, extra, err = cutCrooked(ctx, from, part, stats); err != nil {
			return nil, 0, err
		}
	}
	var sc store.Scanner
	if path.Long > 0 {
		sc = newLongScanner(ctx, from, part, path, prefixes, scan, stats)
	} else if sc, err = from.Scan(ctx, scan); err != nil {
		return nil, 0, err
	}
	if part.Plan.Straight {
		sc = &straightScanner{Scanner: sc, plan: &part.Plan, cut: cut}
	}
	return sc, extra, nil
}

// hoursAtOnce is the number of hours in which one scan searches for crooked rows.
const hoursAtOnce = 2048

// cutCrooked reads the crooked rows of a part's hours and cuts them into rows of full hours: those
// in the part, ascending, each key once.
func cutCrooked(ctx context.Context, from store.Reader, part *scanplan.Part,
	stats *Stats) (cut []store.Row, held int64, err error) {
	p := &part.Plan
	first, last := (&accessBuilder{plan: p, part: part}).hours()
	// The part may begin or end inside an hour, whose crooked rows come after all other rows.
	whole := *part
	whole.Range = scanplan.KeyRange{Start: part.Range.Start[:p.Schema.BaseTimeAt()]}
	whole.Range.Stop = encoding.PrefixEnd(whole.Range.Start)
	b := &accessBuilder{plan: p, part: &whole, tags: p.Tags}
	var pattern *store.KeyPattern
	if len(p.TSUIDs) == 0 {
		pattern, _ = b.pattern(p.Tags)
	}

	admit, rows := newAdmission(part), map[string]*store.Row{}
	l := learner{ctx: ctx, from: from, part: part}
	for at := max(first-encoding.RowSeconds, 0); at < last; {
		// Most of a long time may have no rows at all.
		key, err := l.firstKey(b.keyHead(at), b.keyHead(last))
		if err != nil {
			return nil, 0, err
		}
		if key == nil {
			break
		}
		row, err := p.Schema.ParseRowKey(key)
		if err != nil {
			return nil, 0, dataError(p.Schema, key, err)
		}
		at = encoding.Hour(int64(row.BaseTime))
		gaps := b.gaps(at, min(at+hoursAtOnce*encoding.RowSeconds, last))
		at += hoursAtOnce * encoding.RowSeconds
		scan := store.Scan{
			Table:  p.Table,
			Family: encoding.FamilyData,
			Start:  gaps[0].Start,
			Stop:   gaps[len(gaps)-1].Stop,
			Filter: store.RowFilter{Ranges: gaps, Pattern: pattern},
		}
		for row, err := range store.Rows(ctx, from, scan) {
			if err != nil {
				return nil, 0, err
			}
			if !IsCrooked(p, row.Key) || !admit.span(p.Schema.AppendSpan(nil, row.Key)) {
				continue
			}
			n, err := admit.cut(&row, rows)
			if err != nil {
				if err := stats.leaveOut(p, dataError(p.Schema, row.Key, err)); err != nil {
					return nil, 0, err
				}
				continue
			}
			if held += n; p.MaxBytes > 0 && held > p.MaxBytes {
				return nil, 0, &LimitError{Limit: p.MaxBytes, Need: held}
			}
		}
	}

	for _, r := range rows {
		cut = append(cut, *r)
	}
	slices.SortFunc(cut, func(x, y store.Row) int { return bytes.Compare(x.Key, y.Key) })
	return cut, held, nil
}

// cut adds the cells of a crooked row to rows of full hours, if these are in the part, and returns
// about the bytes that this takes.
func (a *admission) cut(r *store.Row, rows map[string]*store.Row) (held int64, err error) {
	hours, err := CutRow(a.plan.Schema, r)
	if err != nil {
		return 0, err
	}
	for _, h := range hours {
		if key, err := a.plan.Schema.ParseRowKey(h.Key); err != nil || !a.row(h.Key, key) {
			continue
		}
		to := rows[string(h.Key)]
		if to == nil {
			to = &store.Row{Key: h.Key}
			rows[string(h.Key)] = to
			held += rowBytes + int64(len(h.Key))
		}
		for _, c := range h.Cells {
			held += cellBytes + int64(len(c.Qualifier)+len(c.Value))
		}
		to.Cells = append(to.Cells, h.Cells...)
	}
	return held, nil
}

// CutRow returns the cells of a crooked row as rows of full hours, at unchanged times: at most two,
// with copies of the cells. Times after encoding.MaxTime are left out.
func CutRow(s encoding.Schema, r *store.Row) (rows []store.Row, err error) {
	key, err := s.ParseRowKey(r.Key)
	if err != nil {
		return nil, err
	}
	hour := encoding.Hour(int64(key.BaseTime))
	var cells [2][]store.Cell
	for i := range r.Cells {
		c := r.Cells[i].Clone()
		parts := [2]encoding.SplitPart{}
		if parts[0], parts[1], err = encoding.SplitCell(c.Qualifier, c.Value,
			int32(int64(key.BaseTime)-hour)); err != nil {
			return nil, err
		}
		for k, p := range parts {
			if len(p.Qualifier) > 0 {
				cells[k] = append(cells[k],
					store.Cell{Family: c.Family, Qualifier: p.Qualifier, Value: p.Value, Timestamp: c.Timestamp})
			}
		}
	}
	for k := range cells {
		base, err := encoding.BaseTime(hour + int64(k)*encoding.RowSeconds)
		if err != nil || len(cells[k]) == 0 {
			continue // no row holds such times
		}
		head := binary.BigEndian.AppendUint32(bytes.Clone(r.Key[:s.BaseTimeAt()]), base)
		rows = append(rows, store.Row{Key: append(head, key.Tags...), Cells: cells[k]})
	}
	return rows, nil
}

// straightScanner is a scan whose crooked rows were read before: it leaves them out, and adds
// what they were cut into.
type straightScanner struct {
	store.Scanner
	plan  *scanplan.Plan
	cut   []store.Row // still to be returned
	block []store.Row
	done  bool
}

// Next returns the next rows; see store.Scanner.
func (s *straightScanner) Next() ([]store.Row, error) {
	s.block = s.block[:0]
	for len(s.block) == 0 && !s.done {
		rows, err := s.Scanner.Next()
		if s.done = errors.Is(err, io.EOF); err != nil && !s.done {
			return nil, err
		}
		for _, r := range rows {
			if IsCrooked(s.plan, r.Key) {
				continue
			}
			s.takeBefore(r.Key)
			if len(s.cut) > 0 && bytes.Equal(s.cut[0].Key, r.Key) {
				r.Cells = slices.Concat(r.Cells, s.cut[0].Cells)
				slices.SortStableFunc(r.Cells, func(x, y store.Cell) int {
					return cmp.Or(bytes.Compare(x.Qualifier, y.Qualifier), cmp.Compare(x.Timestamp, y.Timestamp))
				})
				s.cut = s.cut[1:]
			}
			s.block = append(s.block, r)
		}
	}
	if s.done {
		s.takeBefore(nil)
	}
	if len(s.block) == 0 {
		return nil, io.EOF
	}
	return s.block, nil
}

// takeBefore takes over the rows before a key, all with nil.
func (s *straightScanner) takeBefore(key []byte) {
	for len(s.cut) > 0 && (key == nil || bytes.Compare(s.cut[0].Key, key) < 0) {
		s.block = append(s.block, s.cut[0])
		s.cut = s.cut[1:]
	}
}
