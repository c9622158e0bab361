package changefeed

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// polledTest keeps the answer of a query on a store that cannot be watched.
type polledTest struct {
	*testing.T
	*world
	source *source
	query  string
	seen   picture
	log    bytes.Buffer
}

func newPolled(t *testing.T, poll Poll) *polledTest { return newPolledAt(t, poll, 0) }

// newPolledAt is newPolled with a clock of the store's writes that is behind.
func newPolledAt(t *testing.T, poll Poll, behind time.Duration) *polledTest {
	p := &polledTest{
		T:     t,
		world: newWorld(t, true),
		query: `{"start":"3h-ago","queries":[{"metric":"m","aggregator":"sum"},` +
			`{"metric":"m","aggregator":"avg","downsample":"1m-avg","tags":{"host":"*"}}]}`,
		seen: picture{},
	}
	t.Cleanup(p.world.close)
	p.cells, p.behind = true, behind
	p.stamp.Store(0)
	p.source = p.openSource(p.query, unwatched{p.store}, poll)
	p.source.feed.cfg.Log = slog.New(slog.NewTextHandler(&p.log, nil))
	t.Cleanup(p.source.Close)
	for ago := int64(9000); ago > 0; ago -= 30 {
		p.put(ago, "a", 1)
		p.put(ago, "b", 2)
	}
	p.tick(true, "first")
	return p
}

func (p *polledTest) put(ago int64, host string, v int64) {
	ms := (p.clock.Unix() - ago) * 1000
	p.apply(p.point(ms, false, encoding.IntValue(v), "host", host))
}

// tick moves the clock by a second and fails the test unless the answer is that of a fresh query,
// or another one if current is false.
func (p *polledTest) tick(current bool, what string) {
	p.Helper()
	p.clock = p.clock.Add(time.Second)
	a, err := p.source.Next(context.Background(), p.clock)
	if err != nil {
		p.Fatal(err)
	}
	if err := p.seen.apply(&a); err != nil {
		p.Fatal(err)
	}
	fresh, err := p.fresh(p.query)
	if err != nil {
		p.Fatal(err)
	}
	if diff := cmp.Diff(fresh.lines(), p.seen.lines()); (diff == "") != current {
		p.Errorf("%s: current %t, want %t\n%.2000s", what, !current, current, diff)
	}
}

func (p *polledTest) stats() Stats { return p.source.feed.Stats() }

// Points in order are in the answer at the next tick, without a look for late points, and without
// reading their rows, which are kept.
func TestPoller_inOrder(t *testing.T) {
	p := newPolled(t, Poll{Late: time.Hour})
	before := p.stats()
	for i := range int64(30) {
		p.put(0, "a", i)
		p.tick(true, "in order")
	}
	if s := p.stats(); s.Rows != before.Rows || s.Changed-before.Changed != 60 {
		t.Errorf("%+v, before %+v; want a change a tick and sub-query, and no row read for it", s, before)
	}
	p.put(0, "c", 5)
	p.tick(true, "a new series")
	p.put(3, "c", 6)
	p.tick(true, "within the overlap")
	p.put(0, "c", 7)
	p.put(0, "b", 7)
	p.tick(true, "two rows")
	p.put(1, "b", 8)
	p.tick(true, "overwritten")
	p.apply(p.point((p.clock.Unix()-2)*1000, false, encoding.FloatValue(1.5), "host", "b"))
	p.tick(true, "another type at a time of its own")
	p.cells = false
	p.put(0, "a", 9)
	p.tick(true, "appended")
	p.put(0, "a", 10)
	p.tick(true, "appended again")
	s := p.stats()
	if s.Loads != before.Loads || s.Late != before.Late || s.FullRuns != before.FullRuns {
		t.Errorf("%+v, before %+v; want no load, no look for late points, no run in full", s, before)
	}
	if n := s.Rows - before.Rows; n > 100 {
		t.Errorf("%d rows were read, want 100 at most for two sub-queries", n)
	}
}

// A late point is seen only by a look for late points. So is the first point of a series that the
// poller does not know to be alive; its next points are seen at once.
//
//fault:late-point-in-a-kept-row =>
func TestPoller_late(t *testing.T) {
	for name, poll := range map[string]Poll{
		"everything": {Late: 20 * time.Second},
		"written":    {Late: 20 * time.Second, CheapLoad: 1, Recheck: 1000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPolled(t, poll)
			p.put(0, "a", 1)
			p.put(0, "b", 1)
			p.tick(true, "in order")
			p.tick(true, "nothing new")
			for i, ago := range []int64{100, 5_000, 8_000} {
				p.put(ago, "a", 1000+int64(i))
				p.tick(false, "late")
				for range 20 {
					p.clock = p.clock.Add(time.Second - time.Millisecond)
				}
				p.tick(true, "late, after the look")
			}
			p.put(200, "slow", 7)
			p.clock = p.clock.Add(20 * time.Second)
			p.tick(true, "a slow series, after the look")
			p.put(180, "slow", 8)
			p.tick(true, "the slow series again")
			if s := p.stats(); s.Late < 4 {
				t.Errorf("%+v, want looks for late points", s)
			}
		})
	}
}

// The clock of the region servers may be behind the gateway's or ahead of it. Points in order show
// by how much, and the look for late points allows for that.
func TestPoller_clockBehind(t *testing.T) {
	for name, behind := range map[string]time.Duration{"80 s": 80 * time.Second, "9 min": 9 * time.Minute,
		"ahead": -9 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			p := newPolledAt(t, Poll{Late: 20 * time.Second, CheapLoad: 1, Recheck: 1000 * time.Hour}, behind)
			for _, cells := range []bool{true, false} {
				p.cells = cells
				for i := range int64(5) {
					p.put(0, "a", i)
					p.tick(true, "in order")
				}
				for i, ago := range []int64{5_000, 8_000} {
					p.put(ago, "a", 1000+int64(i))
					p.clock = p.clock.Add(20 * time.Second)
					p.tick(true, "late, after the look")
				}
			}
			if s := p.stats(); s.Late < 4 || s.Loads != 2 {
				t.Errorf("%+v, want looks for late points, and no view loaded again for them", s)
			}
		})
	}
}

// A delay counts for one to two hours, as ten minutes at most.
func TestDelay(t *testing.T) {
	at := epoch
	var d delay
	f := func(after, behind, want time.Duration) {
		t.Helper()
		at = at.Add(after)
		d.observe(at.Add(-behind).UnixMilli())
		if got := d.longest().Round(time.Second); got != want {
			t.Errorf("got the longest delay %v, want %v", got, want)
		}
		d.scanEnded(at)
	}
	f(0, time.Hour, 0) // before the first scan a point means nothing
	f(0, 80*time.Second, 80*time.Second)
	f(time.Second, 11*time.Second, 80*time.Second)
	f(time.Second, -time.Hour, 80*time.Second) // a clock that is ahead
	f(61*time.Minute, time.Second, 80*time.Second)
	f(61*time.Minute, time.Second, 80*time.Second)
	f(time.Second, 11*time.Second, 10*time.Second)
	f(0, 11*time.Minute, 10*time.Minute)
}

// When a TSD compacts a row, the cells that were kept of it disappear; the answer stays right.
func TestPoller_compacted(t *testing.T) {
	p := newPolled(t, Poll{Late: time.Hour})
	p.put(0, "a", 5)
	p.tick(true, "in order")
	key, _ := p.row(p.clock.UnixMilli(), "host", "a")
	p.compact(p, key)
	p.tick(true, "compacted")
	p.put(0, "a", 6)
	p.tick(true, "in order after that")
}

// compact makes one cell of a row's points, as a TSD does. It leaves rows alone that have anything
// but points in single cells.
func (w *world) compact(t interface{ Fatalf(string, ...any) }, key []byte) {
	rows, err := w.store.Get(context.Background(), "tsdb", "t", [][]byte{key})
	if err != nil || len(rows) > 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if len(rows) == 0 {
		return
	}
	var cell encoding.CellBuilder
	var all []store.Mutation
	for _, c := range rows[0].Cells {
		if offsetOf(c.Qualifier) == everywhere {
			return
		}
		q, _, err := encoding.ParseQualifier(c.Qualifier)
		if err != nil {
			t.Fatalf("qualifier of a cell: %v", err)
		}
		cell.Add(q, c.Value)
		all = append(all, store.Mutation{Kind: store.DeleteCell, Row: key, Family: "t", Qualifier: c.Qualifier})
	}
	qualifier, value := cell.Cell()
	w.apply(append(all, store.Mutation{Row: key, Family: "t", Qualifier: qualifier, Value: value})...)
}

// If cells have the time of their points as timestamps, a look by time of writing would find
// nothing. So everything is read, and the log says so.
func TestPoller_dataTime(t *testing.T) {
	p := newPolled(t, Poll{Late: 20 * time.Second, CheapLoad: 1, Recheck: 1000 * time.Hour})
	write := func(ago int64, v int64) {
		ms := (p.clock.Unix() - ago) * 1000
		m := p.point(ms, false, encoding.IntValue(v), "host", "a")
		m.Timestamp = ms
		p.apply(m)
	}
	for i := range int64(700) { // until most cells that were seen have the time of their points
		write(-i%3, i)
		p.tick(true, "in order")
		if i > 30 && strings.Contains(p.log.String(), "use_otsdb_timestamp") {
			break
		}
	}
	write(8_000, 77)
	p.clock = p.clock.Add(20 * time.Second)
	p.tick(true, "late, with the time of its data")
	if n := strings.Count(p.log.String(), "use_otsdb_timestamp"); n != 2 {
		t.Errorf("the log says it %d times, want once for each sub-query", n)
	}
}
