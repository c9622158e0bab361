package retention

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"downpour/encoding"
	"downpour/gateway/extra/retention/rules"
	"downpour/pushdown/store"
)

// Table is a table with rows of metrics.
type Table struct {
	Name string
	// Interval is that of the rollups in it, "" for points.
	Interval string
	// Span is the time of a row.
	Span encoding.RowSpan
	// Optional says that the table may never have been made, and has no rows then.
	Optional bool
}

// metric is a metric whose rows go at some age.
type metric struct {
	name string
	uid  encoding.UID
	age  rules.Age // in the table
	rule *rules.Rule
	// from and cut are the base times between which rows go: the first that may, and the
	// first that stays.
	from, cut uint32
	rows      int64
	bytes     int64
}

// past are the rows of one table that go.
type past struct {
	schema  encoding.Schema
	table   Table
	metrics []metric // in the order of their UIDs
	kept    int      // metrics that keep all rows
	byUID   map[string]int
	// impossible are keys in the ranges that no row has, of stores that delete ranges. They stay. impossibleRows counts
	// them on all stores.
	impossible     [][]byte
	impossibleRows int
	rows           int64
	bytes          int64
	others, own    []encoding.UID // all metrics, see Job.writers
	err            error          // why the rest of the table is not looked at in this run
}

// maxImpossible bounds the keys that are kept of rows with an impossible one.
const maxImpossible = 10_000

// keys returns the keys of a metric in a salt bucket.
func (p *past) keys(bucket int, m *metric) store.KeyRange {
	return store.KeyRange{
		Start: p.schema.AppendRangeKey(nil, bucket, m.uid, m.from),
		Stop:  p.schema.AppendRangeKey(nil, bucket, m.uid, m.cut),
	}
}

// ranges yields the keys of all metrics that wanted admits, in order.
func (p *past) ranges(wanted func(*metric) bool) iter.Seq[store.KeyRange] {
	return func(yield func(store.KeyRange) bool) {
		for bucket := range p.schema.Buckets() {
			for i := range p.metrics {
				if m := &p.metrics[i]; wanted(m) && !yield(p.keys(bucket, m)) {
					return
				}
			}
		}
	}
}

// fromStart yields the keys of all rows of the metrics that are past, also of those that earlier
// runs have deleted.
func (p *past) fromStart() iter.Seq[store.KeyRange] {
	return func(yield func(store.KeyRange) bool) {
		for bucket := range p.schema.Buckets() {
			for i := range p.metrics {
				m := p.metrics[i]
				m.from = 0
				if !yield(p.keys(bucket, &m)) {
					return
				}
			}
		}
	}
}

func everyMetric(*metric) bool { return true }

func withRows(m *metric) bool { return m.rows > 0 }

// chunks yields up to n ranges at a time.
func chunks(ranges iter.Seq[store.KeyRange], n int) iter.Seq[[]store.KeyRange] {
	return func(yield func([]store.KeyRange) bool) {
		var some []store.KeyRange
		for r := range ranges {
			if some = append(some, r); len(some) < n {
				continue
			}
			if !yield(some) {
				return
			}
			some = nil
		}
		if len(some) > 0 {
			yield(some)
		}
	}
}

// gaps yields the keys that lie in none of ascending ranges.
func gaps(ranges iter.Seq[store.KeyRange]) iter.Seq[store.KeyRange] {
	return func(yield func(store.KeyRange) bool) {
		var start []byte
		for r := range ranges {
			if bytes.Compare(start, r.Start) < 0 && !yield(store.KeyRange{Start: start, Stop: r.Start}) {
				return
			}
			start = r.Stop
		}
		yield(store.KeyRange{Start: start})
	}
}

// around yields ascending ranges without some ascending keys.
func around(ranges iter.Seq[store.KeyRange], keys [][]byte) iter.Seq[store.KeyRange] {
	return func(yield func(store.KeyRange) bool) {
		for r := range ranges {
			for len(keys) > 0 && bytes.Compare(keys[0], r.Start) < 0 {
				keys = keys[1:]
			}
			for ; len(keys) > 0 &&
				r.Contains(keys[0]); keys = keys[1:] { //fault:retention-of-impossible-rows TestRun_drawn
				if !yield(store.KeyRange{Start: r.Start, Stop: keys[0]}) {
					return
				}
				r.Start = append(bytes.Clone(keys[0]), 0)
			}
			if !yield(r) {
				return
			}
		}
	}
}

// metricOf returns the metric of a row that goes. ok is false for a key that no row has.
func (p *past) metricOf(key []byte) (m *metric, ok bool, err error) {
	k, err := p.schema.ParseRowKey(key)
	if err != nil {
		return nil, false, nil
	}
	i, found := p.byUID[string(k.Metric)]
	// The store has returned it for a range of ours: anything else is an error of this program,
	// after which nothing may be deleted.
	if !found || k.BaseTime < p.metrics[i].from || k.BaseTime >= p.metrics[i].cut {
		return nil, false, fmt.Errorf("%w: table %s: row %x", errNoneThatGoes, p.table.Name, key)
	}
	return &p.metrics[i], true, nil
}

// find lists the metrics whose rows go. Of each table it leaves out the rows of before, which are
// gone: those that went at the time since, in seconds, 0 for none. kept is the number of
// metrics that no rule matches.
func (j *Job) find(ctx context.Context, since, now int64) (all []*past, kept int, err error) {
	ruled := map[string][]metric{} // by UID: a damaged UID table may lead two names to one UID
	for e, err := range j.Names(ctx) {
		if err != nil {
			return nil, 0, fmt.Errorf("the names of metrics: %w", err)
		}
		if encoding.UIDNumber(e.UID) == 0 {
			continue // no metric's
		}
		uid := encoding.UID(bytes.Clone(e.UID))
		ruled[string(uid)] = append(ruled[string(uid)], metric{
			name: strings.Clone(e.Name),
			uid:  uid,
			rule: j.Rules.Of(e.Name),
		})
	}

	others, own := j.writers(ruled)
	for _, t := range j.Tables {
		p := &past{schema: j.Schema, table: t, byUID: map[string]int{}, others: others, own: own}
		for _, names := range ruled {
			if m, ok := cutOf(names, t, since, now); ok {
				p.metrics = append(p.metrics, m)
			} else {
				p.kept++
			}
		}
		slices.SortFunc(p.metrics, func(a, b metric) int { return bytes.Compare(a.uid, b.uid) })
		for i := range p.metrics {
			p.byUID[string(p.metrics[i].uid)] = i
		}
		all = append(all, p)
	}
	for _, names := range ruled {
		if slices.ContainsFunc(names, func(m metric) bool { return m.rule == nil }) {
			kept++
		}
	}
	return all, kept, nil
}

// cutOf returns the metric of a UID, which has mostly one name, with its cut in a table. Of several names the one
// whose rows are kept longest counts. ok is false if no row goes.
func cutOf(names []metric, t Table, since, now int64) (m metric, ok bool) {
	for i, n := range names {
		n.age = rules.Keep
		if n.rule != nil {
			n.age = n.rule.Age(t.Interval)
		}
		if i == 0 || rules.Longest(m.age, n.age) == n.age {
			m = n
		}
	}

	if m.cut, ok = m.age.Cut(now, t.Span); !ok {
		return m, false
	}
	if before, some := m.age.Cut(since, t.Span); some && since > 0 {
		m.from = before
	}
	return m, m.from < m.cut
}
