package resultcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/operator/window"
	"downpour/pushdown/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	base  = 1_356_998_400 // 2013-01-01
	hours = 4
)

// world is a table of a few series of two metrics, in hours long past, that is still written to.
type world struct {
	*testing.T
	rng    *rand.Rand
	store  store.Store
	schema encoding.Schema
	cache  *Cache
	extra  []func() // what else may happen to the store
}

func newWorld(t *testing.T, rng *rand.Rand, st store.Store) *world {
	w := &world{T: t, rng: rng, store: st, schema: encoding.DefaultSchema(), cache: New(64<<10<<rng.IntN(8), nil)}
	if rng.IntN(3) == 0 {
		w.schema.SaltWidth, w.schema.SaltBuckets = 1, 3
	}
	for range 60 {
		w.change()
	}
	return w
}

// row is a random row key.
func (w *world) row() []byte {
	tags := w.schema.AppendTags(nil,
		[]encoding.TagPair{operatortest.Tag(1, 1+w.rng.IntN(3)), operatortest.Tag(2, 1+w.rng.IntN(2))})
	return w.schema.AppendRowKey(nil, operatortest.UID(1+w.rng.IntN(2)), uint32(base+3600*w.rng.IntN(hours)), tags)
}

// point is a random qualifier and value; few, so that there are overwrites.
func (w *world) point() (encoding.Qualifier, []byte) {
	return operatortest.Encode((base+int64(w.rng.IntN(12))*300)*1000, encoding.IntValue(int64(w.rng.IntN(5))))
}

// change writes, overwrites, appends, compacts or deletes.
func (w *world) change() {
	m := store.Mutation{Row: w.row(), Family: encoding.FamilyData}
	q, value := w.point()
	m.Qualifier = encoding.AppendQualifier(nil, q)
	switch w.rng.IntN(8) {
	case 0:
		m.Kind = store.DeleteCell
	case 1:
		if w.rng.IntN(3) == 0 {
			m.Kind = store.DeleteRow
			break
		}
		fallthrough
	case 2:
		m.Kind, m.Qualifier, m.Value = store.Append, encoding.AppendColumn, encoding.AppendEntry(nil, q, value)
	case 3:
		w.compact(m.Row)
		return
	default:
		m.Kind, m.Value = store.Put, value
	}
	w.apply(m)
}

// put writes one point, which is one change of a region.
func (w *world) put() {
	w.Helper()
	q, value := w.point()
	w.apply(store.Mutation{
		Row:       w.row(),
		Family:    encoding.FamilyData,
		Qualifier: encoding.AppendQualifier(nil, q),
		Value:     value,
	})
}

func (w *world) apply(mutations ...store.Mutation) {
	w.Helper()
	if err := w.store.Apply(w.Context(), operatortest.Table, mutations); err != nil {
		w.Fatal(err)
	}
}

// compact does what OpenTSDB does with an old row: one cell in place of all.
func (w *world) compact(key []byte) {
	rows, err := w.store.Get(w.Context(), operatortest.Table, encoding.FamilyData, [][]byte{key})
	if err != nil {
		w.Fatal(err)
	}
	var b encoding.CellBuilder
	b.Reset()
	var mutations []store.Mutation
	for _, r := range rows {
		for _, c := range r.Cells {
			if q, rest, err := encoding.ParseQualifier(c.Qualifier); err == nil && len(rest) == 0 {
				b.Add(q, c.Value)
				mutations = append(mutations,
					store.Mutation{
						Kind:      store.DeleteCell,
						Row:       key,
						Family:    encoding.FamilyData,
						Qualifier: bytes.Clone(c.Qualifier),
					})
			}
		}
	}
	if len(mutations) < 2 {
		return
	}
	qualifier, value := b.Cell()
	w.apply(append(mutations, store.Mutation{
		Row:       key,
		Family:    encoding.FamilyData,
		Qualifier: qualifier,
		Value:     value,
	})...)
}

// part draws a part of a plan out of few, so that they come again; fields on which the answer does
// not depend are drawn each time.
func (w *world) part() *scanplan.Part {
	from := base + 3600*int64(w.rng.IntN(hours-1))
	to := from + 3600*(1+int64(w.rng.IntN(2)))
	wide := operatortest.Plan(w.schema, operatortest.UID(1+w.rng.IntN(2)), from-3600*int64(w.rng.IntN(2)),
		to+3600*int64(w.rng.IntN(2)))
	wide.Start += w.rng.Int64N(3600_000)
	wide.End -= w.rng.Int64N(3600_000)
	wide.FixDuplicates = true
	inner := operatortest.Plan(w.schema, wide.Metric, from, to)
	p := &scanplan.Part{Plan: wide, Range: inner.Ranges[w.rng.IntN(len(inner.Ranges))]}
	minutes := []int64{0, 5, 60, 7}[w.rng.IntN(4)]
	switch {
	case minutes == 7:
		p.Plan.Aggregator, p.Plan.Window = scanplan.None, &scanplan.Window{
			Function: "count_over_time", Range: []int64{60_000, 3_000_000, 7_200_000}[w.rng.IntN(3)], Step: 600_000,
			First: (base-3600)*1000 + 600_000*w.rng.Int64N(12), Last: (base+hours*3600)*1000 - w.rng.Int64N(9_000_000),
		}
		if w.rng.IntN(2) == 0 {
			p.Plan.Window.Groups = &scanplan.WindowGroups{Function: window.Count, Without: w.rng.IntN(2) == 0}
		}
		return p
	case minutes > 0:
		p.Plan.Downsample = &scanplan.Downsample{Interval: minutes * 60_000, Function: "avg", Fill: scanplan.FillNone}
	}
	if p.Plan.Downsample.DividesHour() && w.rng.IntN(2) == 0 {
		p.Mode = scanplan.PartialAggregation
	}
	if w.rng.IntN(3) == 0 {
		p.Plan.Tags = []scanplan.TagPredicate{{
			TagK:   operatortest.UID(1),
			Op:     scanplan.In,
			Values: []encoding.UID{operatortest.UID(2)},
		}}
	}
	if w.rng.IntN(2) == 0 {
		p.Plan.GroupBy = []encoding.UID{operatortest.UID(2)}
	}
	if w.rng.IntN(2) == 0 {
		p.Plan.Aggregator = "max"
	}
	return p
}

// answer is all that an operator returns, as bytes, and its counts. opened is what
// opening it returned.
func (w *world) answer(mode scanplan.Mode, op operator.Operator,
	opened error) (all []byte, stats operator.Stats, err error) {
	w.Helper()
	if opened != nil {
		return nil, operator.Stats{}, opened
	}
	if mode == scanplan.PerSeries {
		op = operatortest.CheckedWindows(op, w.Errorf)
	}
	err = operatortest.Drain(context.Background(), op, func(r batch.Record) error {
		b, err := batch.Encode(r)
		all = append(all, b...)
		return err
	})
	return all, op.Stats(), err
}

// ask compares the answers with and without the cache.
func (w *world) ask(p *scanplan.Part) operator.Stats {
	w.Helper()
	opts := operator.Options{FlushBytes: 1 << 10}
	op, err := Open(w.cache, w.store, p, opts)
	got, stats, err := w.answer(p.Mode, op, err)
	if errors.Is(err, ErrUnproven) { // then callers retry; the regions' openings are known by now
		op, err = Open(w.cache, w.store, p, opts)
		got, stats, err = w.answer(p.Mode, op, err)
	}
	if err != nil {
		w.Fatal(err)
	}
	op, err = operator.New(w.store, p, opts)
	want, fresh, err := w.answer(p.Mode, op, err)
	if err != nil {
		w.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		w.Fatalf("%d bytes, want %d; cache hits %d\n%s", len(got), len(want), stats.CacheHits, p.Plan.String())
	}
	if stats.Points != fresh.Points || stats.Rows != fresh.Rows || stats.Bytes != fresh.Bytes ||
		stats.RowsScanned != fresh.RowsScanned || stats.Spans != fresh.Spans || stats.Batches != fresh.Batches {
		w.Fatalf("stats %+v, want %+v", stats, fresh)
	}
	return stats
}

// live alternately changes the table and queries parts. Each query checks the property
// of this package: the cache never changes an answer.
func (w *world) live(asks int) (c Counts) {
	parts := []*scanplan.Part{w.part(), w.part()}
	for range asks {
		p := parts[w.rng.IntN(len(parts))]
		if w.rng.IntN(4) == 0 {
			p = w.part()
			parts[w.rng.IntN(len(parts))] = p
		}
		for range max(0, w.rng.IntN(6)-3) {
			w.change()
		}
		if len(w.extra) > 0 && w.rng.IntN(12) == 0 {
			w.extra[w.rng.IntN(len(w.extra))]()
		}
		w.ask(p)
	}
	return w.cache.Counts()
}

// seeds runs a test with n seeds. All runs together must have seen at least
// n hits and n changes.
func seeds(t *testing.T, n int, run func(t *testing.T, rng *rand.Rand) Counts) {
	var sum Counts
	first := seedtest.Of(t)
	for seed := first; seed < first+uint64(n); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c := run(t, rand.New(rand.NewPCG(seed, 0)))
			sum.Hits += c.Hits
			sum.Changed += c.Changed
		})
	}
	t.Logf("%d hits, %d changes", sum.Hits, sum.Changed)
	if sum.Hits < int64(n) || sum.Changed < int64(n) {
		t.Errorf("%d hits and %d changes in %d runs, want at least one of each for each run", sum.Hits, sum.Changed, n)
	}
}
