package changefeed

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	_ "downpour/encoding/seedtest" // gives rapid its seed
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// Points in order are taken in without reading their rows, except in a bucket that began before the
// view was loaded. Late points need their rows to be read.
func TestWatched_inOrder(t *testing.T) {
	for query, reads := range map[string]int64{`"aggregator":"sum"`: 0, `"aggregator":"max","rate":true`: 0,
		`"aggregator":"sum","downsample":"10s-avg"`:                    0,
		`"aggregator":"sum","downsample":"1m-p99-zero"`:                2,
		`"aggregator":"avg","downsample":"1h-dev","tags":{"host":"*"}`: 2} {
		w := newWorld(t, false)
		t.Cleanup(w.close)
		tick := w.ticking(t, fmt.Sprintf(`{"start":"2h-ago","queries":[{"metric":"m",%s}]}`, query))
		for _, c := range []bool{false, true} {
			w.cells = c
			before := tick()
			for range 30 {
				w.clock = w.clock.Add(10 * time.Second)
				for _, h := range []string{"a", "b"} {
					w.apply(w.point(w.clock.UnixMilli(), true, encoding.FloatValue(0.1*float64(w.clock.Unix()%100)),
						"host", h))
				}
				tick()
			}
			if s := tick(); s.Rows-before.Rows != reads || s.Changed-before.Changed != 60 {
				t.Errorf("%s: %d rows were read for %d changes, want %d for 60", query, s.Rows-before.Rows,
					s.Changed-before.Changed, reads)
			}
			reads = 0
		}
		before := tick()
		w.apply(w.point(w.clock.UnixMilli()-5000, true, encoding.IntValue(1), "host", "a"))
		tick()
		now := w.clock.UnixMilli()
		w.apply(w.point(now+2, true, encoding.IntValue(2), "host", "b"),
			w.point(now+1, true, encoding.IntValue(2), "host", "b"))
		if s := tick(); s.Rows-before.Rows != 2 {
			t.Errorf("%s: %d rows read for two late points, want 2", query, s.Rows-before.Rows)
		}
	}
}

// ticking returns a tick of a live query, which fails the test unless the answer is that of a
// fresh one. At the beginning two series have a point each.
func (w *world) ticking(t *testing.T, query string) (tick func() Stats) {
	for _, h := range []string{"a", "b"} {
		w.apply(w.point(w.clock.UnixMilli(), true, encoding.IntValue(1), "host", h))
	}
	s := w.openSource(query, w.store, Poll{})
	t.Cleanup(s.Close)
	seen := picture{}
	return func() Stats {
		t.Helper()
		a, err := s.Next(context.Background(), w.clock)
		if err != nil {
			t.Fatal(err)
		}
		if err := seen.apply(&a); err != nil {
			t.Fatal(err)
		}
		fresh, err := w.fresh(query)
		if diff := cmp.Diff(fresh.lines(), seen.lines()); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", query, err, diff)
		}
		return s.feed.Stats()
	}
}

// Changed rows of series that the filters exclude are not read.
func TestWatched_others(t *testing.T) {
	w := newWorld(t, false)
	t.Cleanup(w.close)
	tick := w.ticking(t, `{"start":"2h-ago","queries":[{"metric":"m","aggregator":"sum","tags":{"host":"a"}}]}`)
	before := tick()
	for range 3 {
		w.apply(w.point(w.clock.UnixMilli()-7, true, encoding.IntValue(1), "host", "b"))
	}
	if s := tick(); s.Rows != before.Rows || s.Changed-before.Changed != 1 {
		t.Errorf("%d rows were read for %d changes, want none for 1", s.Rows-before.Rows, s.Changed-before.Changed)
	}
}

// If a column is deleted or overwritten, points that were appended to it before are not in the
// answer, not even one that is reported after the deletion.
func TestWatched_reportedLate(t *testing.T) {
	for _, kind := range []store.MutationKind{store.DeleteCell, store.Put} {
		reportedLate(t, kind)
	}
}

func reportedLate(t *testing.T, kind store.MutationKind) {
	w := newWorld(t, false)
	t.Cleanup(w.close)
	over := &tardy{Store: w.store, report: (*tardyWatch).all}
	query := `{"start":"1h-ago","queries":[{"metric":"m","aggregator":"sum"}]}`
	at := w.clock.UnixMilli()
	w.cells = true
	w.apply(w.point(at-9000, true, encoding.IntValue(1), "host", "a"))
	w.cells = false
	w.apply(w.point(at-8000, true, encoding.IntValue(2), "host", "a"))
	s := w.openSource(query, over, Poll{})
	t.Cleanup(s.Close)
	seen := picture{}
	l := &law{world: w, query: query, source: s, seen: seen}
	next := func() {
		t.Helper()
		if err := l.applyNext(); err != nil {
			t.Fatal(err)
		}
	}
	next()
	added := w.point(at-7000, true, encoding.IntValue(4), "host", "a")
	gone := w.point(at-6000, true, encoding.IntValue(8), "host", "a")
	gone.Kind = kind
	w.apply(added)
	w.apply(gone)
	for _, m := range []store.Mutation{gone, added} {
		over.report = func(*tardyWatch) []store.Change {
			return []store.Change{{
				Row:    m.Row,
				Writes: []store.Mutation{m},
			}}
		}
		next()
		fresh, err := w.fresh(query)
		if diff := cmp.Diff(fresh.lines(), seen.lines()); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

// tardy is a store whose watches report only those changes that report returns.
type tardy struct {
	*pebble.Store
	report func(*tardyWatch) []store.Change
}

func (s *tardy) Features() store.Features {
	f := s.Store.Features()
	f.Watch = s.Watch
	return f
}

type tardyWatch struct {
	store.Watch
	of      *tardy
	pending []store.Change // of one write each
}

func (s *tardy) Watch(table string, ranges []store.KeyRange, changed func()) (store.Watch, error) {
	w, err := s.Store.Watch(table, ranges, changed)
	return &tardyWatch{Watch: w, of: s}, err
}

func (w *tardyWatch) Take() ([]store.Change, bool) {
	changes, lost := w.Watch.Take()
	slices.SortFunc(changes, func(a, b store.Change) int { return bytes.Compare(a.Row, b.Row) })
	w.pending = append(w.pending, apart(changes)...)
	return w.of.report(w), lost
}

// all reports everything that is pending.
func (w *tardyWatch) all() []store.Change {
	out := together(w.pending)
	w.pending = nil
	return out
}

// Once all concurrent writes are reported, in whatever order and however late, the answer is that
// of a fresh query.
func TestLaw_tardy(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, false)
		defer w.close()
		l := &law{T: rt, world: w, deletes: true, seen: picture{}}
		over := &tardy{Store: w.store}
		l.start(over, Poll{})
		defer l.source.Close()
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 1))
		over.report = func(t *tardyWatch) []store.Change {
			p := t.pending
			order.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
			n := order.IntN(len(p) + 1)
			t.pending = p[n:]
			return together(p[:n])
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			w.cells = rapid.Bool().Draw(rt, "cells")
			l.act()
			if rapid.IntRange(0, 2).Draw(rt, "tick") > 0 {
				_ = l.applyNext() // an error is allowed here: rows may be incomplete
			}
		}
		over.report = (*tardyWatch).all
		l.tick()
	})
}

// apart splits changes into changes of one write each.
func apart(changes []store.Change) (out []store.Change) {
	for _, c := range changes {
		for _, m := range c.Writes {
			out = append(out, store.Change{Row: c.Row, Writes: []store.Mutation{m}})
		}
	}
	return out
}

// together joins the changes of each row.
func together(changes []store.Change) (out []store.Change) {
	at := map[string]int{}
	for _, c := range changes {
		i, known := at[string(c.Row)]
		if !known {
			i, at[string(c.Row)] = len(out), len(out)
			out = append(out, store.Change{Row: c.Row})
		}
		out[i].Writes = append(out[i].Writes, c.Writes...)
	}
	return out
}

// If the finder reports writes, the number of rows that must be read at every change is bounded.
// If it does not, every changed row is read anyway, and there is no bound.
func TestSubQuery_readFromNowOn(t *testing.T) {
	read := func(f finder) error {
		s := &subQuery{finder: f}
		for i := range maxAlwaysRead + 1 {
			if err := s.readFromNowOn(fmt.Append(nil, i)); err != nil {
				return err
			}
		}
		return nil
	}

	if err := read(&watched{}); err != errTooManyRereads {
		t.Errorf("a watch: got %v, want %v", err, errTooManyRereads)
	}
	if err := read(&poller{}); err != nil {
		t.Errorf("a poller: got %v, want no error", err)
	}
}
