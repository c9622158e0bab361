package merge

import (
	"fmt"
	"slices"
	"sort"

	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/downsample"
)

// The tests merge series that are in memory. They cut them at random into rows, parts and batches,
// as stores and pushdown servers would.

// series is one span with all its points in ascending order.
type series struct {
	metric encoding.UID
	tags   []byte
	points encoding.Points
	notes  [][]byte
}

func (s *series) span(schema encoding.Schema) []byte {
	return schema.AppendSpan(nil, schema.AppendRowKey(nil, s.metric, 0, s.tags))
}

// choose returns a number below n.
type choose func(n int) int

// newPlan makes a plan with the scan range that OpenTSDB reads. start and end
// are ms. Source: TsdbQuery.getScanStartTimeSeconds, getScanEndTimeSeconds.
func newPlan(schema encoding.Schema, metric encoding.UID, start, end int64, d *scanplan.Downsample) *scanplan.Plan {
	p := &scanplan.Plan{
		Version:    scanplan.Version,
		Schema:     schema,
		Table:      "tsdb",
		Metric:     metric,
		Start:      start,
		End:        end,
		Downsample: d,
	}
	from, to := start/1000, end/1000+1
	if d == nil || d.All {
		to += 3600 - to%3600
	} else {
		from -= 1000 * from % d.Interval / 1000
		to += (d.Interval - 1000*to%d.Interval) / 1000
		to = (to + 3599) / 3600 * 3600
	}
	p.From, p.To = max(0, from-from%3600), to
	for bucket := range schema.Buckets() {
		p.Ranges = append(p.Ranges, scanplan.KeyRange{
			Start: schema.AppendRangeKey(nil, bucket, metric, uint32(p.From)),
			Stop:  schema.AppendRangeKey(nil, bucket, metric, uint32(p.To)),
		})
	}
	return p
}

// cut cuts the plan's ranges into parts, between hours or between two series of
// an hour.
func cut(p *scanplan.Plan, all []series, pick choose) (parts []scanplan.KeyRange) {
	hours := int((p.To - p.From) / 3600)
	for bucket, r := range p.Ranges {
		keys := []scanplan.HexBytes{r.Start, r.Stop}
		for range pick(4) {
			key := p.Schema.AppendRangeKey(nil, bucket, p.Metric, uint32(p.From+3600*int64(pick(hours))))
			if len(all) > 0 && pick(2) == 0 {
				key = append(key, all[pick(len(all))].tags...)
			}
			keys = append(keys, key)
		}
		slices.SortFunc(keys, slices.Compare[scanplan.HexBytes])
		for i := 1; i < len(keys); i++ {
			if string(keys[i-1]) != string(keys[i]) {
				parts = append(parts, scanplan.KeyRange{Start: keys[i-1], Stop: keys[i]})
			}
		}
	}
	return parts
}

// partPoints returns the points of a series that lie in a part, and the times, in s, between which
// the part has rows of the series.
func partPoints(p *scanplan.Plan, r scanplan.KeyRange, s *series) (points encoding.Points, from, to int64) {
	hour := func(i int) string {
		return string(p.Schema.AppendRowKey(nil, s.metric, uint32(p.From+3600*int64(i)), s.tags))
	}
	n := int((p.To - p.From) / 3600)
	if string(r.Start[:p.Schema.SaltWidth]) != hour(0)[:p.Schema.SaltWidth] {
		return points, 0, 0
	}
	from = p.From + 3600*int64(sort.Search(n, func(i int) bool { return hour(i) >= string(r.Start) }))
	to = p.From + 3600*int64(sort.Search(n, func(i int) bool { return hour(i) >= string(r.Stop) }))
	i := sort.Search(s.points.Len(), func(i int) bool { return s.points.Time[i] >= from*1000 })
	j := sort.Search(s.points.Len(), func(i int) bool { return s.points.Time[i] >= to*1000 })
	return s.points.Slice(i, max(i, j)), from, to
}

// shipped returns what a part sends of one series: raw points, or the buckets that lie entirely in
// the part and the raw points before and after them.
func shipped(p *scanplan.Plan, span []byte, points encoding.Points, from, to int64, pick choose) (rows []batch.Series) {
	d := p.Downsample
	if d == nil || d.All || d.Calendar || pick(4) == 0 {
		return raggedRaw(span, points, pick)
	}
	first := (from*1000 + d.Interval - 1) / d.Interval * d.Interval
	last := to * 1000 / d.Interval * d.Interval
	i := sort.Search(points.Len(), func(i int) bool { return points.Time[i] >= first })
	j := sort.Search(points.Len(), func(i int) bool { return points.Time[i] >= max(first, last) })
	b, err := downsample.New(d, p.From, p.To, p.Start, p.End)
	if err != nil {
		panic(err)
	}
	whole := points.Slice(i, j)
	b.Points(whole.Time, whole.AppendDoubles(nil))
	times, values := b.Finish()
	rows = append(raggedRaw(span, points.Slice(0, i), pick), batch.Series{Span: span, Time: times, Value: values})
	rest := points.Slice(j, points.Len())
	if pick(2) == 0 && i == 0 { // all in one row
		return []batch.Series{{Span: span, Time: times, Value: values, Raw: rest}}
	}
	return append(rows, raggedRaw(span, rest, pick)...)
}

// raggedRaw puts points into up to three rows.
func raggedRaw(span []byte, points encoding.Points, pick choose) (rows []batch.Series) {
	for points.Len() > 0 {
		n := points.Len()
		if len(rows) < 2 {
			n = 1 + pick(n)
		}
		rows = append(rows, batch.Series{Span: span, Raw: points.Slice(0, n)})
		points = points.Slice(n, points.Len())
	}
	return rows
}

// partRecords returns the batches of one part, cut at random. The rows of a series keep their
// order, and rows of other series come between them.
func partRecords(p *scanplan.Plan, r scanplan.KeyRange, all []series, pick choose) []batch.Record {
	w := batch.NewSeriesWriter(arrowmemory.DefaultAllocator)
	defer w.Release()
	var queues [][]batch.Series
	for i := range all {
		s := &all[i]
		points, from, to := partPoints(p, r, s)
		span := s.span(p.Schema)
		rows := shipped(p, span, points, from, to, pick)
		rows = slices.DeleteFunc(rows, func(r batch.Series) bool { return len(r.Time)+r.Raw.Len() == 0 })
		if len(rows) == 0 && points.Len() > 0 {
			rows = append(rows, batch.Series{Span: span, Raw: points.Slice(0, 1)}) // a presence marker
		}
		if len(s.notes) > 0 && from == p.From && to > from {
			rows = append(rows, batch.Series{Span: span, Notes: s.notes})
		}
		if len(rows) > 0 {
			queues = append(queues, rows)
		}
	}
	var records []batch.Record
	for len(queues) > 0 {
		i := pick(len(queues))
		w.Append(&queues[i][0])
		if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
			queues = slices.Delete(queues, i, i+1)
		}
		if pick(3) == 0 {
			records = append(records, w.Record())
		}
	}
	return append(records, w.Record())
}

// answer cuts series into parts and batches and merges them. The batches of each part arrive in
// order, between those of other parts.
func answer(p *scanplan.Plan, all []series, pick choose) ([]Group, error) {
	m, err := added(p, all, pick)
	if err != nil {
		return nil, err
	}
	return m.Finish()
}

// added returns a Merger that has got all batches.
func added(p *scanplan.Plan, all []series, pick choose) (*Merger, error) {
	m := New(p, nil)
	return m, addTo(m, p, all, pick)
}

// addTo gives a Merger all batches of a plan.
func addTo(m *Merger, p *scanplan.Plan, all []series, pick choose) error {
	parts := cut(p, all, pick)
	queues := make([][]batch.Record, len(parts))
	for i, r := range parts {
		queues[i] = partRecords(p, r, all, pick)
	}
	for left := len(parts); left > 0; {
		i := pick(len(parts))
		for len(queues[i]) == 0 {
			i = (i + 1) % len(parts)
		}
		err := m.Add(parts[i], queues[i][0])
		queues[i][0].Release()
		if err != nil {
			return err
		}
		if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
			left--
		}
	}
	return nil
}

// whole merges series that are not cut: the expected answer.
func whole(p *scanplan.Plan, all []series) ([]Group, error) {
	return answer(p, all, func(n int) int { return 0 })
}

// text returns groups as text that has the type and all bits of every point.
func text(groups []Group) string {
	out := ""
	for _, g := range groups {
		out += fmt.Sprintf("group %x spans %x tags %v aggregated %v tsuids %v notes %q\n", g.Key, g.Spans, g.Tags,
			g.Aggregated, g.TSUIDs, g.Notes)
		for i := range g.Points.Len() {
			ms, v := g.Points.At(i)
			if !v.Float {
				out += fmt.Sprintf("  %d %d\n", ms, v.Int())
			} else if d := v.Double(); d != d {
				out += fmt.Sprintf("  %d NaN\n", ms)
			} else {
				out += fmt.Sprintf("  %d %v %x\n", ms, d, v.Bits)
			}
		}
	}
	return out
}
