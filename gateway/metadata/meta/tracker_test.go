package meta

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

const created = 1356998400

func open(t testing.TB) *pebble.Store {
	return opentest.Embedded(t, tablestest.Specs(encoding.DefaultSchema())...)
}

func catalogConfig(s store.Store) Config {
	schema := encoding.DefaultSchema()
	return Config{
		Store:     s,
		UIDTable:  "tsdb-uid",
		MetaTable: "tsdb-meta",
		Schema:    schema,
		Names:     uid.New(uid.Config{Store: s, Table: "tsdb-uid", Schema: schema}),
		Now:       func() time.Time { return time.Unix(created, 0) },
	}
}

func tracker(s store.Store, flags Flags) *Tracker {
	return NewTracker(TrackerConfig{
		Config: catalogConfig(s),
		Flags:  flags,
		Every:  time.Hour,
		Log:    slog.New(slog.DiscardHandler),
	})
}

var all = Flags{Tracking: true, Incrementing: true, RealtimeTS: true, RealtimeUID: true}

// rowKey returns a row key of the series of metric 1 with tagk 1 = tagv n.
func rowKey(n int) []byte {
	s := encoding.DefaultSchema()
	tags := s.AppendTags(nil, []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, byte(n >> 8), byte(n)}}})
	return s.AppendRowKey(nil, encoding.UID{0, 0, 1}, created, tags)
}

// cells returns all cells of a table, row:qualifier to value; values of 8 bytes are in hex.
func cells(t *testing.T, s store.Reader, table string) map[string]string {
	t.Helper()
	sc, err := s.Scan(t.Context(), store.Scan{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	out := map[string]string{}
	for {
		rows, err := sc.Next()
		if err != nil {
			return out
		}
		for _, r := range rows {
			for _, c := range r.Cells {
				value := string(c.Value)
				if len(value) == 8 {
					value = fmt.Sprintf("%X", value)
				}
				out[fmt.Sprintf("%X:%s", r.Key, c.Qualifier)] = value
			}
		}
	}
}

const tsmeta = `{"tsuid":"%s","displayName":"","description":"","notes":"","created":1356998400,"custom":null,` +
	`"units":"","dataType":"","retention":0,"max":"NaN","min":"NaN"}`

// The tracker writes what OpenTSDB 2.4.1 writes under each combination of its settings.
func TestTracker_flags(t *testing.T) {
	const series = "000001000001000007"
	f := func(flags Flags, want map[string]string) {
		t.Helper()
		s := open(t)
		tr := tracker(s, flags)
		tr.Stored(rowKey(7), 2)
		tr.Stored(rowKey(7), 3)
		tr.Assigned(encoding.UIDTagV, "web", encoding.UID{0, 0, 9})
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
		got := cells(t, s, "tsdb-meta")
		for k, v := range cells(t, s, "tsdb-uid") {
			got[k] = v
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: %s", flags, diff)
		}
	}
	described := fmt.Sprintf(tsmeta, series)
	f(Flags{}, map[string]string{})
	f(Flags{Tracking: true}, map[string]string{series + ":ts_ctr": "0000000000000001"})
	f(Flags{Tracking: true, Incrementing: true}, map[string]string{series + ":ts_ctr": "0000000000000001"})
	f(Flags{RealtimeTS: true, Incrementing: true}, map[string]string{})
	f(Flags{Tracking: true, RealtimeTS: true}, map[string]string{series + ":ts_meta": described})
	f(Flags{Tracking: true, RealtimeTS: true, Incrementing: true},
		map[string]string{series + ":ts_ctr": "0000000000000005", series + ":ts_meta": described})
	f(Flags{RealtimeUID: true}, map[string]string{"000009:tagv_meta": `{"type":"TAGV","displayName":"",` +
		`"description":"","notes":"","created":1356998400,"custom":null}`})
}

// flaky fails calls that change one cell, before or after the change is made.
type flaky struct {
	store.Store
	rnd    *rand.Rand
	mu     sync.Mutex
	broken atomic.Bool
}

func (*flaky) Features() store.Features { return store.Features{} }

func (f *flaky) fails() (before, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken.Load() && f.rnd.IntN(3) == 0, f.broken.Load() && f.rnd.IntN(3) == 0
}

func (f *flaky) Increment(ctx context.Context, table string, c store.CellKey, delta int64) (int64, error) {
	before, _ := f.fails() // an increment that failed must not have happened, for counts to be exact
	if before {
		return 0, store.ErrUnavailable
	}
	return f.Store.Increment(ctx, table, c, delta)
}

func (f *flaky) CompareAndPut(ctx context.Context, table string, c store.CellKey, old, value []byte) (bool, error) {
	before, after := f.fails()
	if before {
		return false, store.ErrUnavailable
	}
	ok, err := f.Store.CompareAndPut(ctx, table, c, old, value)
	if after {
		return false, store.ErrUnavailable
	}
	return ok, err
}

// However often the store fails, and with two trackers on the same tables, every series gets one
// TSMeta, and every point is counted once if points are counted.
func TestTracker_property(t *testing.T) {
	oneByOne := func(f *flaky) store.Store { return f }
	together := func(f *flaky) store.Store { return &flakyMany{f} }
	counted, uncounted := all, Flags{Tracking: true, RealtimeTS: true}
	t.Run("counted one by one", func(t *testing.T) { testTracker(t, counted, 40, oneByOne) })
	t.Run("counted together", func(t *testing.T) { testTracker(t, counted, 3*newPerWrite, together) })
	t.Run("not counted, one by one", func(t *testing.T) { testTracker(t, uncounted, 3*newPerWrite, oneByOne) })
	t.Run("not counted, together", func(t *testing.T) { testTracker(t, uncounted, 3*newPerWrite, together) })
}

// flakyMany is a flaky store that changes many cells at once, or none if it fails.
type flakyMany struct{ *flaky }

func (f *flakyMany) Features() store.Features {
	return store.Features{IncrementAll: f.IncrementAll, PutAbsent: f.PutAbsent}
}

func (f *flakyMany) IncrementAll(
	ctx context.Context, table string, cells []store.CellKey, deltas []int64,
) ([]int64, error) {
	if before, _ := f.fails(); before {
		return nil, store.ErrUnavailable
	}
	return f.Store.Features().IncrementAll(ctx, table, cells, deltas)
}

func (f *flakyMany) PutAbsent(
	ctx context.Context, table string, cells []store.CellKey, values [][]byte,
) ([]bool, error) {
	if before, _ := f.fails(); before {
		return nil, store.ErrUnavailable
	}
	return f.Store.Features().PutAbsent(ctx, table, cells, values)
}

func testTracker(t *testing.T, flags Flags, series int, wrap func(*flaky) store.Store) {
	seed := seedtest.Of(t)
	s := &flaky{Store: open(t), rnd: rand.New(rand.NewPCG(seed, 0))}
	s.broken.Store(true)
	const rounds = 30
	trackers := []*Tracker{tracker(wrap(s), flags), tracker(wrap(s), flags)}
	want := make([]int64, series)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range rounds {
		var wg sync.WaitGroup
		for _, tr := range trackers {
			for range series / 2 {
				n, points := rnd.IntN(series), 1+rnd.IntN(5)
				want[n] += int64(points)
				wg.Go(func() { tr.Stored(rowKey(n), points) })
			}
			wg.Go(func() { _ = tr.Flush(context.Background()) })
		}
		wg.Wait()
	}
	s.broken.Store(false)
	for _, tr := range trackers {
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	}

	expected := map[string]string{}
	for n, points := range want {
		if points > 0 {
			name := encoding.UID(encoding.DefaultSchema().AppendTSUID(nil, rowKey(n))).String()
			expected[name+":ts_meta"] = fmt.Sprintf(tsmeta, name)
			if flags.Incrementing {
				expected[name+":ts_ctr"] = fmt.Sprintf("%016X", points)
			}
		}
	}
	if diff := cmp.Diff(expected, cells(t, s, "tsdb-meta")); diff != "" {
		t.Error(diff)
	}
}

// A series whose counter is damaged keeps no other from being counted.
func TestTracker_damagedCounter(t *testing.T) {
	s := open(t)
	var series []string
	for n := range 3 {
		series = append(series, string(encoding.DefaultSchema().AppendTSUID(nil, rowKey(n))))
	}
	damaged := store.Mutation{
		Row:       []byte(series[1]),
		Family:    encoding.FamilyName,
		Qualifier: []byte(encoding.MetaCounterQualifier),
		Value:     []byte("short"),
	}
	if err := s.Apply(t.Context(), "tsdb-meta", []store.Mutation{damaged}); err != nil {
		t.Fatal(err)
	}

	tr := tracker(s, all)
	for n := range series {
		tr.Stored(rowKey(n), 7)
	}
	if err := tr.Close(); err == nil || !strings.Contains(err.Error(), "counter has 5 bytes") {
		t.Errorf("Close: %v, want that a counter has 5 bytes", err)
	}
	got := cells(t, s, "tsdb-meta")
	for n, want := range []string{"0000000000000007", "short", "0000000000000007"} {
		name := encoding.UID(series[n]).String()
		if got[name+":ts_ctr"] != want || (got[name+":ts_meta"] != "") != (n != 1) {
			t.Errorf("series %d: counter %q, TSMeta %q", n, got[name+":ts_ctr"], got[name+":ts_meta"])
		}
	}
}

// blocked is a store whose increments wait until gate is closed.
type blocked struct {
	store.Store
	gate chan struct{}
}

func (*blocked) Features() store.Features { return store.Features{} }

func (b *blocked) Increment(ctx context.Context, table string, c store.CellKey, delta int64) (int64, error) {
	select {
	case <-b.gate:
		return b.Store.Increment(ctx, table, c, delta)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// While the store does not respond, the tracker does not block puts, and what waits for the
// store is bounded.
func TestTracker_neverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &blocked{open(t), make(chan struct{})}
		tr := NewTracker(TrackerConfig{
			Config: catalogConfig(b),
			Flags:  all,
			Bytes:  10 * seenBytes,
			Log:    slog.New(slog.DiscardHandler),
		})
		for n := range 1000 {
			tr.Stored(rowKey(n), 1)
			tr.Assigned(encoding.UIDTagV, "x", encoding.UID{0, byte(n >> 8), byte(n)})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tr.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush while the store does not respond: got %v, want that its deadline ends it", err)
		}
		tr.mu.Lock()
		if n := len(tr.pending.series); n > 10 {
			t.Errorf("%d series wait, want at most 10", n)
		}
		tr.mu.Unlock()
		close(b.gate)
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		b.Store.Close()
	})
}

// UIDs that could not be written and do not fit any more are counted as dropped, like those that
// come when there is no room.
func TestTracker_toldWhatIsDropped(t *testing.T) {
	tr := NewTracker(TrackerConfig{
		Config: catalogConfig(open(t)),
		Flags:  all,
		Bytes:  10 * givenBytes,
		Log:    slog.New(slog.DiscardHandler),
	})
	defer tr.Close()
	<-tr.turn // without its turn the tracker does not flush by itself
	defer func() { tr.turn <- struct{}{} }()
	for n := range 7 {
		tr.Assigned(encoding.UIDTagV, "x", encoding.UID{0, 0, byte(n)})
	}
	tr.mu.Lock()
	rest := tr.pending
	tr.pending = &collected{}
	tr.mu.Unlock()
	for n := range 8 {
		tr.Assigned(encoding.UIDTagV, "x", encoding.UID{0, 1, byte(n)})
	}
	tr.collectAgain(rest, true)

	tr.mu.Lock()
	defer tr.mu.Unlock()
	if kept := len(tr.pending.uids); kept != 10 || tr.dropped != 5 {
		t.Errorf("%d UIDs wait and %d are dropped, want 10 and 5", kept, tr.dropped)
	}
}
