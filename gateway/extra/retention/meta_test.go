package retention_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/extra/retention"
	"downpour/gateway/metadata/meta"
	"downpour/pushdown/store"
)

const metaTable = "tsdb-meta"

func tsuid(metricIndex, series int) []byte {
	return append(slices.Clone(metric(metricIndex)), 0, 0, 1, 0, byte(series>>8), byte(series))
}

// describe writes a TSMeta, unless text is empty, and a counter, unless it is 0.
func (w *world) describe(tsuid []byte, text string, counter int64) {
	w.Helper()
	var all []store.Mutation
	if text != "" {
		all = append(all, store.Mutation{
			Row:       tsuid,
			Family:    encoding.FamilyName,
			Qualifier: []byte(encoding.TSMetaQualifier),
			Value:     []byte(text),
		})
	}
	if counter != 0 {
		all = append(all, store.Mutation{
			Row:       tsuid,
			Family:    encoding.FamilyName,
			Qualifier: []byte(encoding.MetaCounterQualifier),
			Value:     encoding.AppendCounter(nil, counter),
		})
	}
	if err := w.store.Apply(w.Context(), metaTable, all); err != nil {
		w.Fatal(err)
	}
}

// plainTSMeta is the TSMeta that puts make.
func plainTSMeta(tsuid []byte) string {
	return fmt.Sprintf(`{"tsuid":"%s","displayName":"","description":"","notes":"","created":1,"custom":null,`+
		`"units":"","dataType":"","retention":0,"max":"NaN","min":"NaN"}`, encoding.UID(tsuid))
}

// described returns the cells of the meta table, by row: T for a TSMeta and the value of the counter.
func (w *world) described() map[string]string {
	w.Helper()
	out := map[string]string{}
	for row, err := range store.Rows(w.Context(), w.store, store.Scan{Table: metaTable, Family: encoding.FamilyName}) {
		if err != nil {
			w.Fatal(err)
		}
		text := ""
		for _, c := range row.Cells {
			switch string(c.Qualifier) {
			case encoding.TSMetaQualifier:
				text = "T" + text
			case encoding.MetaCounterQualifier:
				n, _ := encoding.ParseCounter(c.Value)
				text += fmt.Sprint(n)
			}
		}
		out[fmt.Sprintf("%x", row.Key)] = text
	}
	return out
}

// The meta data of series that have no row left is deleted. That of series with a row of points or rollups, that of
// metrics that are kept, and what somebody has written stay.
func TestMeta(t *testing.T) {
	both(t, func(w *world) {
		w.job.Rules = parse(t, "^sys 2d 1h=20d\nnet keep\n")
		young, past := int64(now/hour*hour), int64((now-10*86_400)/hour*hour)
		w.put("tsdb", 0, young, 1)
		w.put("tsdb", 0, past, 2)
		w.put("tsdb", 0, past, 3)
		w.put(rollupTable, 0, daily.BaseTime(past), 3)
		w.put("tsdb", 1, now/hour*hour-86_400, 4)
		for series := range 6 {
			for m := range 4 {
				w.describe(tsuid(m, series), plainTSMeta(tsuid(m, series)), int64(10*m+series+1))
			}
		}
		w.describe(tsuid(0, 5), `{"tsuid":"","notes":"mine"}`, 0)
		w.describe(tsuid(0, 6), "", 3) // a counter alone
		w.describe(tsuid(0, 7), "x", 3)
		for i := range 10 { // most rows stay
			w.put("tsdb", 3, young, i)
		}

		want := w.described()
		plan := &retention.Meta{Job: w.job, Table: metaTable, DryRun: true, Bytes: 700}
		report, err := plan.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Of metric 0 series 1 has a young row and 3 a row of rollups; of metric 1 that is 4.
		counts := retention.MetaReport{Series: 14, TSMeta: 3 + 5, Counters: 4 + 5, Written: 2, DryRun: true}
		if d := cmp.Diff(&counts, report); d != "" {
			t.Errorf("dry run (-want +got)\n%s", d)
		}
		if d := cmp.Diff(want, w.described()); d != "" {
			t.Errorf("a dry run has deleted:\n%s", d)
		}

		// Before the rows are gone only series without any go.
		for i, gone := range [][][2]int{{{0, 0}, {0, 4}, {0, 6}, {1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 5}}, {{0, 2}}} {
			if i == 1 {
				if _, err := w.job.Run(t.Context(), 0, 0); err != nil {
					t.Fatal(err)
				}
			}
			run := &retention.Meta{Job: w.job, Table: metaTable, Bytes: 700}
			if report, err = run.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, s := range gone {
				delete(want, fmt.Sprintf("%x", tsuid(s[0], s[1])))
			}
			if d := cmp.Diff(want, w.described()); d != "" {
				t.Errorf("after run %d: %v (-want +got)\n%s", i, report, d)
			}
		}
		if report.TSMeta != 1 || report.Counters != 1 || report.Written != 2 || report.Changed != 0 {
			t.Errorf("got %v", report)
		}
	})
}

// between is a store in which something happens while rows are deleted.
type between struct {
	store.Store
	before func()
	after  func()
}

func (*between) Features() store.Features { return store.Features{} }

// Replace implements store.Cells.
func (b *between) Replace(
	ctx context.Context, table, family string, changes []store.Replacement,
) ([]store.Outcome, error) {
	if b.before != nil {
		b.before()
	}
	outcomes, err := b.Store.Replace(ctx, table, family, changes)
	if b.after != nil {
		b.after()
	}
	return outcomes, err
}

// A series that gets a point while its meta data is deleted has meta data afterwards: as it was, or as
// the next point makes it.
func TestMeta_points(t *testing.T) {
	increment := func(w *world, n int64) {
		cell := store.CellKey{
			Row:       tsuid(0, 1),
			Family:    encoding.FamilyName,
			Qualifier: []byte(encoding.MetaCounterQualifier),
		}
		if _, err := w.store.Increment(w.Context(), metaTable, cell, n); err != nil {
			w.Fatal(err)
		}
	}
	for _, c := range []struct {
		what          string
		before, after func(w *world)
		want          string // "" for nothing
		changed       int64
	}{
		{"nothing", nil, nil, "", 0},
		{"it is counted before", func(w *world) { increment(w, 2) }, nil, "T7", 1},
		{"it is counted after, in a counter of its own", nil, func(w *world) { increment(w, 2) }, "T2", 1},
		{"it has a row before", func(w *world) { w.put("tsdb", 0, now/hour*hour, 1) }, nil, "T5", 1},
		{"it has a row after", nil, func(w *world) { w.put("tsdb", 0, now/hour*hour, 1) }, "T5", 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			both(t, func(w *world) {
				w.job.Rules = parse(t, ". 2d")
				w.describe(tsuid(0, 1), plainTSMeta(tsuid(0, 1)), 5)
				b := &between{Store: w.store}
				if c.before != nil {
					b.before = func() { c.before(w) }
				}
				if c.after != nil {
					b.after = func() { c.after(w) }
				}
				w.job.Store = b
				report, err := (&retention.Meta{Job: w.job, Table: metaTable}).Run(t.Context())
				if err != nil || report.Changed != c.changed {
					t.Errorf("%v, %v", report, err)
				}
				if got := w.described()[fmt.Sprintf("%x", tsuid(0, 1))]; got != c.want {
					t.Errorf("the series has %q, want %q", got, c.want)
				}
			})
		})
	}
}

// Whatever puts record, also a gateway that knows the series from before: after its meta data was
// deleted a series has it again with its next points, where it is not known any more at the latest
// after an hour.
func TestMeta_tracked(t *testing.T) {
	for _, flags := range []meta.Flags{
		{Tracking: true},
		{Tracking: true, RealtimeTS: true},
		{Tracking: true, RealtimeTS: true, Incrementing: true},
	} {
		t.Run(fmt.Sprintf("%+v", flags), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := embedded(t, rand.New(rand.NewPCG(1, 1)))
				w.job.Rules = parse(t, ". 2d")
				tracker := meta.NewTracker(meta.TrackerConfig{
					Flags:  flags,
					Config: meta.Config{Store: w.store, UIDTable: "tsdb-uid", MetaTable: metaTable, Schema: w.schema},
				})
				put := func(base int64) {
					w.put("tsdb", 0, base, 1)
					for key := range w.rows["tsdb"] {
						tracker.Stored([]byte(key), 1)
						break
					}
					if err := tracker.Flush(t.Context()); err != nil {
						t.Error(err)
					}
				}
				put((now - 10*86_400) / hour * hour)
				had := w.described()
				if len(had) != 1 {
					t.Fatalf("got %v", had)
				}
				if _, err := w.job.Run(t.Context(), 0, 100); err != nil {
					t.Fatal(err)
				}
				if report, err := (&retention.Meta{Job: w.job, Table: metaTable}).Run(t.Context()); err != nil ||
					len(w.described()) != 0 {
					t.Fatalf("%v, %v: %v", report, err, w.described())
				}

				put(now / hour * hour)
				time.Sleep(time.Hour)
				put(now / hour * hour)
				for key, text := range w.described() {
					if (text[0] == 'T') != flags.RealtimeTS {
						t.Errorf("series %s has %q", key, text)
					}
				}
				if len(w.described()) != 1 {
					t.Errorf("got %v, want what it had: %v", w.described(), had)
				}
				if err := tracker.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// However points come while meta data is deleted, no series that has a row is without meta data once
// its points are recorded.
func TestMeta_drawn(t *testing.T) {
	seed := seedtest.Of(t)
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		t.Run(name, func(t *testing.T) {
			for round := range 15 {
				rng := rand.New(rand.NewPCG(seed, uint64(round)))
				w := stores[name](t, rng)
				w.job.Rules = parse(t, ". 2d")
				flags := meta.Flags{Tracking: true, RealtimeTS: true, Incrementing: true}
				tracker := meta.NewTracker(meta.TrackerConfig{
					Flags:  flags,
					Every:  time.Millisecond,
					Config: meta.Config{Store: w.store, UIDTable: "tsdb-uid", MetaTable: metaTable, Schema: w.schema},
				})
				put := func(series int) {
					base := int64(now / hour * hour)
					key := w.schema.AppendRowKey(nil, metric(0), uint32(base), []byte{0, 0, 1, 0, 0, byte(series)})
					m := store.Mutation{
						Row:       key,
						Family:    encoding.FamilyData,
						Qualifier: []byte{0, 0},
						Value:     []byte{1},
					}
					if err := w.store.Apply(t.Context(), "tsdb", []store.Mutation{m}); err != nil {
						t.Error(err)
					}
					tracker.Stored(key, 1)
				}
				for series := range 20 {
					w.describe(tsuid(0, series), plainTSMeta(tsuid(0, series)), 5)
				}
				drawn := rng.Perm(20)[:10]
				done := make(chan struct{})
				go func() {
					defer close(done)
					for _, series := range drawn {
						put(series)
					}
				}()
				if _, err := (&retention.Meta{Job: w.job, Table: metaTable}).Run(t.Context()); err != nil {
					t.Error(err)
				}
				<-done
				if err := tracker.Close(); err != nil {
					t.Error(err)
				}
				got := w.described()
				for _, series := range drawn {
					if text := got[fmt.Sprintf("%x", tsuid(0, series))]; len(text) < 2 || text[0] != 'T' {
						t.Errorf("round %d: series %d has %q, want a TSMeta and a counter", round, series, text)
					}
				}
			}
		})
	}
}
