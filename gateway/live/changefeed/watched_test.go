package changefeed

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// A row that has only an annotation makes a group without points. When the row is deleted, the
// group goes, although no point was lost.
func TestWatched_annotationGoes(t *testing.T) {
	w := newWorld(t, false)
	t.Cleanup(w.close)
	query := `{"start":"1h-ago","queries":[{"metric":"m","aggregator":"sum","tags":{"host":"*"}}]}`
	w.apply(w.point(w.clock.UnixMilli(), true, encoding.IntValue(1), "host", "a"))
	s := w.openSource(query, w.store, Poll{})
	t.Cleanup(s.Close)
	seen := picture{}
	key, _ := w.row(w.clock.UnixMilli(), "host", "b")
	annotation := store.Mutation{Row: key, Family: "t", Qualifier: []byte{1, 0, 0}, Value: []byte(`{"startTime":1}`)}
	for _, step := range []struct {
		write  *store.Mutation
		groups int
	}{{nil, 1}, {&annotation, 2}, {&store.Mutation{Kind: store.DeleteRow, Row: key, Family: "t"}, 1}} {
		if step.write != nil {
			w.apply(*step.write)
		}
		w.clock = w.clock.Add(time.Second)
		a, err := s.Next(context.Background(), w.clock)
		if err != nil {
			t.Fatal(err)
		}
		if err := seen.apply(&a); err != nil {
			t.Fatal(err)
		}
		fresh, err := w.fresh(query)
		if diff := cmp.Diff(fresh.lines(), seen.lines()); diff != "" || err != nil || len(seen) != step.groups {
			t.Errorf("%d groups, want %d; %v\n%s", len(seen), step.groups, err, diff)
		}
	}
}

// Without the fix rate-start, a series' first rate counts in its group at all times before its
// second point. A late point of another series at such a time must be seen all the same.
func TestWatched_lateBeforeARate(t *testing.T) {
	w := newWorld(t, false)
	t.Cleanup(w.close)
	put := func(host string, seconds, value int64) {
		w.apply(w.point(w.clock.UnixMilli()+seconds*1000, true, encoding.IntValue(value), "host", host))
	}
	for at := int64(-60); at < 0; at += 10 {
		put("a", at, at*at)
	}
	tick := w.ticking(t, `{"start":"1h-ago","queries":[{"metric":"m","aggregator":"sum","rate":true}]}`)
	tick()
	w.clock = w.clock.Add(10 * time.Second)
	put("b", 0, 100)
	tick()
	put("a", -35, 50)
	tick()
}

// After a watch has lost changes the view is loaded again.
func TestWatched_lost(t *testing.T) {
	w := newWorld(t, false)
	t.Cleanup(w.close)
	query := `{"start":"1h-ago","queries":[{"metric":"m","aggregator":"sum"}]}`
	w.apply(w.point(w.clock.UnixMilli(), true, encoding.IntValue(1), "host", "a"))
	s := w.openSource(query, w.store, Poll{})
	t.Cleanup(s.Close)
	if _, err := s.Next(t.Context(), w.clock); err != nil {
		t.Fatal(err)
	}
	s.subs[0].finder = forgetful{s.subs[0].finder}
	w.apply(w.point(w.clock.UnixMilli()-5000, true, encoding.IntValue(7), "host", "b"))
	a, err := s.Next(t.Context(), w.clock)
	if err != nil || a.Kept[0] || len(a.Results) != 1 || a.Results[0].Points.Len() != 2 {
		t.Errorf("%+v, %v; want the whole answer, two points", a, err)
	}
}

// forgetful is a finder that has lost all changes.
type forgetful struct{ finder }

func (f forgetful) find(ctx context.Context, now time.Time) ([]store.Change, bool, error) {
	_, _, err := f.finder.find(ctx, now)
	return nil, true, err
}
