package last

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/metadata/lookup"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

const hour = 1356998400

// tsuid is metric 1, tagk 1 = tagv 1.
var tsuid = encoding.UID{0, 0, 1, 0, 0, 1, 0, 0, 1}

func fixture(t *testing.T, now int64, counted bool) (*Points, *pebble.Store) {
	t.Helper()
	s := opentest.Embedded(t, tablestest.Specs(encoding.DefaultSchema())...)
	schema := encoding.DefaultSchema()
	names := uid.New(uid.Config{Store: s, Table: "tsdb-uid", Schema: schema})
	for kind, name := range []string{"m", "host", "a"} {
		if _, err := names.Assign(t.Context(), encoding.UIDKind(kind), name); err != nil {
			t.Fatal(err)
		}
	}
	find := lookup.New(lookup.Config{Store: s, DataTable: "tsdb", MetaTable: "tsdb-meta", Schema: schema, Names: names})
	return New(Config{Store: s, DataTable: "tsdb", MetaTable: "tsdb-meta", Schema: schema, Find: find, Counted: counted,
		Now: func() time.Time { return time.Unix(now, 0) }}), s
}

// at puts cells into the row of the hour base of the series tsuid.
func at(t *testing.T, s store.Writer, base uint32, cells map[string]string) {
	t.Helper()
	row := encoding.DefaultSchema().AppendRowKey(nil, encoding.UID(tsuid[:3]), base, tsuid[3:])
	for q, v := range cells {
		if err := s.Apply(t.Context(), "tsdb",
			[]store.Mutation{{Row: row, Family: "t", Qualifier: []byte(q), Value: []byte(v)}}); err != nil {
			t.Fatal(err)
		}
	}
}

// count writes the counter of the series tsuid with a timestamp in s.
func count(t *testing.T, s store.Writer, at int64) {
	t.Helper()
	m := store.Mutation{
		Row:       tsuid,
		Family:    "name",
		Qualifier: []byte("ts_ctr"),
		Value:     make([]byte, 8),
		Timestamp: at * 1000,
	}
	if err := s.Apply(t.Context(), "tsdb-meta", []store.Mutation{m}); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, p *Points, q Query, want ...Point) {
	t.Helper()
	got, err := p.Find(t.Context(), q)
	if err != nil {
		t.Errorf("%+v: %v", q, err)
	}
	if diff := cmp.Diff(append([]Point{}, want...), append([]Point{}, got...)); diff != "" {
		t.Errorf("%+v: %s", q, diff)
	}
}

func bySeries(back int) Query {
	return Query{Subs: []Sub{{TSUIDs: []encoding.UID{tsuid}}}, Back: back}
}

func byName(back int) Query {
	return Query{Subs: []Sub{{Metric: "m", Tags: map[string]string{"host": "a"}}}, Back: back}
}

// A search of the last hours finds the last point of the newest hour that has one, and passes
// over hours that have only annotations.
func TestFind_back(t *testing.T) {
	p, s := fixture(t, hour+3*3600+10, true)
	// Second 1 of the hour: 2
	at(t, s, hour, map[string]string{"\x00\x00": "\x01", "\x05\x00\x00": "\x00\x17\x00\x00\x00\x00\x00\x00\x00\x02"})
	at(t, s, hour+3600, map[string]string{"\x01\x00\x00": `{"startTime":1}`})
	want := Point{tsuid, (hour + 1) * 1000, encoding.IntValue(2)}
	for _, q := range []Query{bySeries(3), byName(3), byName(5000)} {
		check(t, p, q, want)
	}
	check(t, p, bySeries(2))
	check(t, p, byName(2))
	young, _ := fixture(t, 7200, true) // 100 hours back is before 1970
	check(t, young, bySeries(100))
}

// Without hours to look back, the timestamp of the series' counter says where to look: in its
// hour and in the one before. Without counters it is the current hour.
func TestFind_counter(t *testing.T) {
	p, s := fixture(t, hour+100*3600, true)
	at(t, s, hour, map[string]string{"\x00\x0B": "\x3f\x80\x00\x00"})
	check(t, p, bySeries(0))
	check(t, p, byName(0))
	want := Point{tsuid, hour * 1000, encoding.FloatValue(1)}
	for _, written := range []int64{hour, hour + 3599, hour + 3600, hour + 7199} {
		count(t, s, written)
		check(t, p, bySeries(0), want)
		check(t, p, byName(0), want)
	}
	count(t, s, hour+7200)
	check(t, p, bySeries(0))
	check(t, p, Query{Subs: []Sub{{Metric: "m"}}})

	untracked, s := fixture(t, hour+5, false)
	at(t, s, hour, map[string]string{"\x00\x00": "\x07"})
	check(t, untracked, bySeries(0), Point{tsuid, hour * 1000, encoding.IntValue(7)})
}

func TestFind_refused(t *testing.T) {
	p, s := fixture(t, hour, true)
	var refused *RefusedError
	for _, q := range []Query{
		bySeries(-1),
		bySeries(MaxBack + 1),
		{Subs: []Sub{{}}},
		{Subs: []Sub{{Metric: "m"}}, Back: 1},
		{Subs: []Sub{{TSUIDs: []encoding.UID{{0, 0, 1}}}}},
	} {
		if _, err := p.Find(t.Context(), q); !errors.As(err, &refused) {
			t.Errorf("%+v: got %v, want a *RefusedError", q, err)
		}
	}
	var unknown *uid.NoSuchNameError
	if _, err := p.Find(t.Context(), Query{Subs: []Sub{{Metric: "nope"}}}); !errors.As(err, &unknown) {
		t.Errorf("unknown metric: got %v, want no such name", err)
	}
	// Two values of one time fail the query, as they fail other queries.
	at(t, s, hour, map[string]string{"\x00\x00": "\x07", "\xF0\x00\x00\x00": "\x08"})
	if _, err := p.Find(t.Context(), bySeries(1)); err == nil {
		t.Error("two values of one time: got no error")
	}
}

// one resolves every name to the UID 000001.
type one struct{}

func (one) Resolve(context.Context, encoding.UIDKind, string) (encoding.UID, error) {
	return encoding.UID{0, 0, 1}, nil
}

func (one) Names(context.Context, encoding.UIDKind, []encoding.UID) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// counters is a store of endlessly many series, each with a counter and no points. Get counts
// its calls and ignores contexts.
type counters struct {
	faultstore.Endless
	gets int
	got  func(n int)
}

func (*counters) Features() store.Features { return store.Features{} }

func (c *counters) Get(_ context.Context, table, _ string, keys [][]byte) ([]store.Row, error) {
	if c.gets++; c.got != nil {
		c.got(c.gets)
	}
	if table == "tsdb-meta" {
		return []store.Row{c.Row(0)}, nil
	}
	return nil, nil
}

func newCounters() *counters {
	c := &counters{}
	c.Rows, c.Row = 1000, func(n int) store.Row {
		return store.Row{Key: []byte{0, 0, 1, 0, 0, 1, byte(n >> 16), byte(n >> 8), byte(n)},
			Cells: []store.Cell{{Qualifier: []byte(encoding.MetaCounterQualifier), Timestamp: hour * 1000}}}
	}
	return c
}

// When its client leaves, a query ends within one block of series or one read of rows, whether
// it lists the series of a metric, reads those named, looks back, or has many sub-queries.
func TestFind_clientLeaves(t *testing.T) {
	byName := Sub{Metric: "m", Tags: map[string]string{"k": "v"}}
	byTSUID := Sub{TSUIDs: slices.Repeat([]encoding.UID{tsuid}, 1000)}
	f := func(what string, q Query, leaveAtBlock, leaveAtGet, blocks, gets int) {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		from := newCounters()
		from.Block = func(n int) {
			if n == leaveAtBlock {
				leave()
			}
			if n > 200 { // more series than a query may have
				t.Fatalf("%s: %d blocks", what, n)
			}
		}
		from.got = func(n int) {
			if n == leaveAtGet {
				leave()
			}
		}
		schema := encoding.DefaultSchema()
		find := lookup.New(lookup.Config{Store: from, MetaTable: "tsdb-meta", Schema: schema, Names: one{}})
		p := New(Config{
			Store:     from,
			DataTable: "tsdb",
			MetaTable: "tsdb-meta",
			Schema:    schema,
			Find:      find,
			Counted:   true,
		})
		if _, err := p.Find(ctx, q); !errors.Is(err, context.Canceled) || from.Blocks() > blocks || from.gets > gets {
			t.Errorf("%s: %v after %d blocks and %d reads, want its end after %d and %d at most",
				what, err, from.Blocks(), from.gets, blocks, gets)
		}
	}
	f("series of a metric", Query{Subs: []Sub{byName}}, 3, 0, 4, 0)
	f("series named", Query{Subs: []Sub{byTSUID}}, 0, 5, 0, 6)
	f("looking back", Query{Subs: []Sub{byTSUID}, Back: MaxBack}, 0, 5, 0, 5)
	f("sub-queries", Query{Subs: slices.Repeat([]Sub{byTSUID}, 1000), Back: 1}, 0, 1000, 0, 1001)
}

// The number of series of all sub-queries together is bounded.
func TestFind_tooMany(t *testing.T) {
	p, s := fixture(t, hour, false)
	at(t, s, hour, map[string]string{"\x00\x00": "\x01"})
	subs := slices.Repeat([]Sub{{TSUIDs: slices.Repeat([]encoding.UID{tsuid}, MaxSeries/10)}}, 11)
	var refused *RefusedError
	_, err := p.Find(t.Context(), Query{Subs: subs})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "More than 100000 series") {
		t.Errorf("got %v, want a refusal of more than 100000 series", err)
	}
}
