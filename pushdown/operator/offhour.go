package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/store"
)

// An off-hour row is a row whose base time is not a full hour. TSDs have written the points of times
// after 2106 into such rows of other years. The points of an off-hour row belong to two hours, between
// those of other rows, and a part may already have sent the results of these hours when it reads the
// row. So a part that reads an off-hour row ends with an OffHourError, and the gateway executes the plan
// again with Plan.SplitOffHour. Each part then first reads the off-hour rows of its hours and splits
// them into rows of full hours, which it merges into its scan: every point is in the row of its hour.
//
// Most tables have no off-hour row. For them the cost is a check of each row's base time and, where a
// part seeks from key to key, one more range of keys after each hour, which is empty.

// OffHourError is returned for an off-hour row of a plan without SplitOffHour.
type OffHourError struct {
	Row  []byte // the row's key
	Text string // names the row
}

// Error names the row.
func (e *OffHourError) Error() string { return e.Text }

// offHourError returns the error of an off-hour row.
func offHourError(s encoding.Schema, row []byte) error {
	return &OffHourError{
		Row:  bytes.Clone(row),
		Text: fmt.Sprintf("row %X is of no full hour (%s)", row, describeRow(s, row)),
	}
}

// refuseOffHour returns an OffHourError for an off-hour row that holds, or may hold, points of the
// plan, unless the plan splits such rows.
func (a *admission) refuseOffHour(row []byte, key encoding.RowKey) error {
	if !encoding.OffHour(key.BaseTime) || a.plan.Rollup != nil || a.plan.SplitOffHour {
		return nil
	}
	if !a.reads.Contains(row) || !bytes.Equal(key.Metric, a.plan.Metric) ||
		!a.span(a.plan.Schema.AppendSpan(nil, row)) {
		return nil
	}
	return offHourError(a.plan.Schema, row)
}

// IsOffHour reports whether the base time of a plan's row is not a full hour. Rows of rollup tables
// begin at other times, and are never off-hour rows.
func IsOffHour(p *scanplan.Plan, row []byte) bool {
	key, err := p.Schema.ParseRowKey(row)
	return err == nil && p.Rollup == nil && encoding.OffHour(key.BaseTime)
}

// offHourKeys returns the keys that the part's off-hour rows can have: for each hour from from to to, in
// seconds, those between the keys of this hour's rows and the keys of the next.
func (b *accessBuilder) offHourKeys(from, to int64) (r rangeList) {
	for hour := from; hour < to; hour += encoding.RowSeconds {
		r.add(b.part.Range, b.keyHead(hour+1), b.keyHead(hour+encoding.RowSeconds))
	}
	return r
}

// withOffHourKeys adds the keys of off-hour rows to the ranges of an access path, so that the scan sees
// such a row and the part fails. Without them a scan of key ranges would silently pass over its points.
func (b *accessBuilder) withOffHourKeys(a Access) Access {
	if b.plan.Rollup != nil || b.plan.SplitOffHour || len(a.Filter.Ranges) == 0 && !a.Nothing {
		return a
	}
	from, to := b.hours()
	all := slices.Concat(a.Filter.Ranges, b.offHourKeys(from, to))
	slices.SortFunc(all, func(x, y store.KeyRange) int { return bytes.Compare(x.Start, y.Start) })
	merged := make(rangeList, 0, len(all))
	for _, r := range all {
		merged.add(b.part.Range, r.Start, r.Stop)
	}
	if len(merged) == 0 {
		return a
	}
	a.Filter.Ranges, a.Nothing = merged, false
	return a
}

// hoursPerOffHourScan is the number of hours in which one scan searches for off-hour rows.
const hoursPerOffHourScan = 2048

// splitOffHourRows reads the off-hour rows that can hold points of a part, and splits them into rows of
// full hours. It returns the rows of these that are in the part, by ascending keys, each key once, and
// about the memory that they take. Damaged rows are an error, or are counted in stats if the plan leaves
// them out.
func splitOffHourRows(ctx context.Context, from store.Reader, part *scanplan.Part,
	stats *Stats) (rows []store.Row, memory int64, err error) {
	p := &part.Plan
	firstHour, endHour := (&accessBuilder{plan: p, part: part}).hours()
	// The part may begin or end inside an hour, whose off-hour rows come after all other rows. So keys are
	// made for a part that has all hours of the salt bucket and metric, and no end.
	wholeMetric := *part
	wholeMetric.Range = scanplan.KeyRange{Start: part.Range.Start[:p.Schema.BaseTimeAt()]}
	keys := &accessBuilder{plan: p, part: &wholeMetric, tags: p.Tags}
	pattern, _ := keys.pattern(p.Tags)

	s := &offHourSplitter{admission: newAdmission(part), byKey: map[string]*store.Row{}, stats: stats}
	find := learner{ctx: ctx, from: from, part: part}
	// An off-hour row of the hour before the part's first one has points in it.
	for hour := max(firstHour-encoding.RowSeconds, 0); hour < endHour; {
		// Most of a long time may have no rows at all: continue at the next row of any kind.
		next, err := find.firstKey(keys.keyHead(hour), keys.keyHead(endHour))
		if err != nil {
			return nil, 0, err
		}
		if next == nil {
			break
		}
		row, err := p.Schema.ParseRowKey(next)
		if err != nil {
			return nil, 0, dataError(p, next, err)
		}
		hour = encoding.Hour(int64(row.BaseTime))
		ranges := keys.offHourKeys(hour, min(hour+hoursPerOffHourScan*encoding.RowSeconds, endHour))
		hour += hoursPerOffHourScan * encoding.RowSeconds
		if err := s.scan(ctx, from, ranges, pattern); err != nil {
			return nil, 0, err
		}
	}
	return s.rows(), s.memory, nil
}

// offHourSplitter collects the rows of full hours into which the off-hour rows of a part are split.
type offHourSplitter struct {
	admission
	byKey  map[string]*store.Row
	memory int64  // about the bytes of the rows
	stats  *Stats // counts damaged rows that are left out
}

// scan reads the rows of ascending key ranges, and adds the off-hour ones.
func (s *offHourSplitter) scan(ctx context.Context, from store.Reader, ranges rangeList,
	pattern *store.KeyPattern) error {
	p := s.plan
	scan := store.Scan{
		Table:  p.Table,
		Family: encoding.FamilyData,
		Start:  ranges[0].Start,
		Stop:   ranges[len(ranges)-1].Stop,
		Filter: store.RowFilter{Ranges: ranges, Pattern: pattern},
	}
	for row, err := range store.Rows(ctx, from, scan) {
		if err != nil {
			return err
		}
		if !IsOffHour(p, row.Key) || !s.span(p.Schema.AppendSpan(nil, row.Key)) {
			continue
		}
		if err := s.add(&row); err != nil {
			if err := s.stats.leaveOut(p, dataError(p, row.Key, err)); err != nil {
				return err
			}
			continue
		}
		if p.MaxBytes > 0 && s.memory > p.MaxBytes {
			return &LimitError{Limit: p.MaxBytes, Need: s.memory}
		}
	}
	return nil
}

// add splits an off-hour row, and adds the cells of those of its hours that are in the part. Nothing is
// added if there is an error.
func (s *offHourSplitter) add(r *store.Row) error {
	hours, err := SplitOffHourRow(s.plan.Schema, r)
	if err != nil {
		return err
	}
	for _, h := range hours {
		if key, err := s.plan.Schema.ParseRowKey(h.Key); err != nil || !s.row(h.Key, key) {
			continue
		}
		to := s.byKey[string(h.Key)]
		if to == nil {
			to = &store.Row{Key: h.Key}
			s.byKey[string(h.Key)] = to
			s.memory += rowBytes + int64(len(h.Key))
		}
		for _, c := range h.Cells {
			s.memory += cellBytes + int64(len(c.Qualifier)+len(c.Value))
		}
		to.Cells = append(to.Cells, h.Cells...)
	}
	return nil
}

// rows returns the collected rows by ascending keys.
func (s *offHourSplitter) rows() (rows []store.Row) {
	for _, r := range s.byKey {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(x, y store.Row) int { return bytes.Compare(x.Key, y.Key) })
	return rows
}

// SplitOffHourRow returns the cells of an off-hour row as rows of full hours, at unchanged times: at most
// two rows, with copies of the cells. Times after encoding.MaxTime are left out.
func SplitOffHourRow(s encoding.Schema, r *store.Row) (rows []store.Row, err error) {
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

// splitScanner is a scan of a part whose off-hour rows were read and split before it: it leaves these
// rows out, and merges the split ones into its rows.
type splitScanner struct {
	store.Scanner
	plan  *scanplan.Plan
	split []store.Row // still to be returned, by ascending keys
	block []store.Row // the last result of Next
	done  bool        // the inner scanner has ended
}

// Next returns the next rows by ascending keys, and io.EOF after the last. They are valid until the next
// call.
func (s *splitScanner) Next() ([]store.Row, error) {
	s.block = s.block[:0]
	for len(s.block) == 0 && !s.done {
		rows, err := s.Scanner.Next()
		if s.done = err == io.EOF; err != nil && !s.done {
			return nil, err
		}
		for _, r := range rows {
			if IsOffHour(s.plan, r.Key) {
				continue
			}
			s.takeBefore(r.Key)
			if len(s.split) > 0 && bytes.Equal(s.split[0].Key, r.Key) {
				r.Cells = slices.Concat(r.Cells, s.split[0].Cells)
				slices.SortStableFunc(r.Cells, func(x, y store.Cell) int {
					return cmp.Or(bytes.Compare(x.Qualifier, y.Qualifier), cmp.Compare(x.Timestamp, y.Timestamp))
				})
				s.split = s.split[1:]
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

// takeBefore moves the split rows before a key into the block; all of them if the key is nil.
func (s *splitScanner) takeBefore(key []byte) {
	for len(s.split) > 0 && (key == nil || bytes.Compare(s.split[0].Key, key) < 0) {
		s.block = append(s.block, s.split[0])
		s.split = s.split[1:]
	}
}
