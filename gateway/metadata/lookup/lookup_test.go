package lookup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"downpour/encoding"
	_ "downpour/encoding/seedtest" // gives rapid its seed
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/uid"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/open/opentest"
)

// fixture is a store with all series of the metrics m0 and m1 that have some of the keys k0 to
// k2 with values v0 to v2: each has a counter in the meta table and two hours in the data table.
type fixture struct {
	*Finder
	series []Series // in TSUID order
	schema encoding.Schema
}

func newFixture(t testing.TB, salt int) *fixture {
	t.Helper()
	specs := append(tablestest.Specs(encoding.DefaultSchema()), opentest.Table("empty", encoding.FamilyName))
	s := opentest.Embedded(t, specs...)
	schema := encoding.DefaultSchema()
	schema.SaltWidth, schema.SaltBuckets = salt, 4
	names := uid.New(uid.Config{Store: s, Table: "tsdb-uid", Schema: schema})
	f := &fixture{
		schema: schema,
		Finder: New(Config{Store: s, DataTable: "tsdb", MetaTable: "tsdb-meta", Schema: schema, Names: names}),
	}
	f.fill(t, s, names)
	return f
}

func (f *fixture) fill(t testing.TB, s store.Store, names *uid.Dictionary) {
	t.Helper()
	assign := func(kind encoding.UIDKind, name string) encoding.UID {
		u, err := names.Assign(t.Context(), kind, name)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	var data, meta []store.Mutation
	for n := range 2 * 64 {
		metric, tags := fmt.Sprintf("m%d", n/64), map[string]string{}
		var pairs []encoding.TagPair
		for k, v := 0, n%64; k < 3; k, v = k+1, v/4 {
			if v%4 == 3 {
				continue // the key is not there
			}
			key, value := fmt.Sprintf("k%d", k), fmt.Sprintf("v%d", v%4)
			tags[key] = value
			pairs = append(pairs, encoding.TagPair{
				K: assign(encoding.UIDTagK, key),
				V: assign(encoding.UIDTagV, value),
			})
		}
		if len(tags) == 0 {
			continue
		}
		m, packed := assign(encoding.UIDMetric, metric), f.schema.AppendTags(nil, pairs)
		tsuid := append(slices.Clone(m), packed...)
		f.series = append(f.series, Series{tsuid, metric, tags})
		meta = append(meta, store.Mutation{
			Row:       tsuid,
			Family:    "name",
			Qualifier: []byte("ts_ctr"),
			Value:     make([]byte, 8),
		})
		for _, base := range []uint32{1356998400, 1357002000} {
			data = append(data, store.Mutation{
				Row:       f.schema.AppendRowKey(nil, m, base, packed),
				Family:    "t",
				Qualifier: []byte{0, 0},
				Value:     []byte{1},
			})
		}
	}
	// A global annotation is no series.
	data = append(data, store.Mutation{
		Row:       f.schema.AppendRangeKey(nil, 0, make([]byte, 3), 1356998400),
		Family:    "t",
		Qualifier: []byte{1, 0, 0},
		Value:     []byte("{}"),
	})
	if err := s.Apply(t.Context(), "tsdb", data); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), "tsdb-meta", meta); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(f.series, func(a, b Series) int { return slices.Compare(a.TSUID, b.TSUID) })
}

// naive reports whether a query admits a series, by its names and without any index.
func naive(q Query, s Series) bool {
	if q.Metric != nil && *q.Metric != Any && *q.Metric != s.Metric {
		return false
	}
	alternatives, values := map[string][]string{}, []string{}
	for _, t := range q.Tags {
		switch {
		case !open(t.Key) && !open(t.Value):
			alternatives[*t.Key] = append(alternatives[*t.Key], *t.Value)
		case !open(t.Key):
			alternatives[*t.Key] = append(alternatives[*t.Key], Any)
		case !open(t.Value):
			values = append(values, *t.Value)
		}
	}
	for k, wanted := range alternatives {
		v, ok := s.Tags[k]
		if !ok || !slices.Contains(wanted, v) && !slices.Contains(wanted, Any) {
			return false
		}
	}
	if len(alternatives) > 0 || len(values) == 0 {
		return true
	}
	return slices.ContainsFunc(values, func(v string) bool {
		return slices.Contains(slices.Collect(maps.Values(s.Tags)), v)
	})
}

func drawQuery(t *rapid.T) Query {
	part := func(label string, of ...string) *string {
		text := rapid.SampledFrom(append(of, "", Any)).Draw(t, label)
		if text == "" {
			return nil
		}
		return &text
	}
	q := Query{Metric: part("metric", "m0", "m1")}
	for range rapid.IntRange(0, 4).Draw(t, "tags") {
		q.Tags = append(q.Tags, Tag{part("key", "k0", "k1", "k2"), part("value", "v0", "v1", "v2")})
	}
	return q
}

// A lookup finds the series that naive admits, in the order of their rows in the meta table. In
// the data table it finds each once for every hour.
func TestFind_property(t *testing.T) {
	for _, salt := range []int{0, 1} {
		f := newFixture(t, salt)
		rapid.Check(t, func(t *rapid.T) {
			q := drawQuery(t)
			var want []Series
			for _, s := range f.series {
				if naive(q, s) {
					want = append(want, s)
				}
			}
			q.Meta = true
			q.Limit = rapid.SampledFrom([]int{0, 1, 7, 1000}).Draw(t, "limit")
			got, err := f.Find(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			limited := want
			if q.Limit > 0 {
				limited = want[:min(q.Limit, len(want))]
			}
			if diff := gocmp.Diff(append([]Series{}, limited...), append([]Series{}, got...)); diff != "" {
				t.Fatalf("meta table: %s", diff)
			}
			f.dataTable(t, q, want)
		})
	}
}

func (f *fixture) dataTable(t *rapid.T, q Query, want []Series) {
	q.Meta, q.Limit = false, 0
	got, err := f.Find(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	twice := []Series{}
	for _, s := range want {
		twice = append(twice, s, s)
	}
	slices.SortFunc(got, func(a, b Series) int { return slices.Compare(a.TSUID, b.TSUID) })
	if diff := gocmp.Diff(twice, append([]Series{}, got...)); diff != "" {
		t.Fatalf("data table: %s", diff)
	}
}

// The values of a tag are those of the series that match, whatever else these have, each once; of
// more than the limit so many are returned, and it is said. Where the meta table has no series, they are those
// of a metric's recent rows.
func TestValues(t *testing.T) {
	f := newFixture(t, 0)
	cfg := f.cfg
	cfg.MetaTable = "empty"
	cfg.Now = func() time.Time { return time.Unix(1357002000+60, 0) }
	untracked := New(cfg)
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t)
		key := rapid.SampledFrom([]string{"k0", "k1", "k2"}).Draw(t, "of")
		limit := rapid.IntRange(1, 5).Draw(t, "limit")

		wanted := q
		if !slices.ContainsFunc(q.Tags, func(t Tag) bool { return t.Key != nil && *t.Key == key }) {
			wanted.Tags = append(slices.Clone(q.Tags), Tag{Key: &key})
		}
		values := map[string]bool{}
		for _, s := range f.series {
			if v, ok := s.Tags[key]; ok && naive(wanted, s) {
				values[v] = true
			}
		}
		want := slices.Sorted(maps.Keys(values))

		check := func(finder *Finder, want []string, since int64) {
			t.Helper()
			got, err := finder.Values(t.Context(), q, key, limit)
			if err != nil {
				t.Fatal(err)
			}
			if got.More != (len(want) > limit) || got.Since != since {
				t.Fatalf("got %+v, want more %t, since %d: there are %v", got, len(want) > limit, since, want)
			}
			if !got.More && !slices.Equal(got.Values, want) {
				t.Fatalf("got %v, want %v", got.Values, want)
			}
			unwanted := func(v string) bool { return !slices.Contains(want, v) }
			if got.More && (len(got.Values) != limit || slices.ContainsFunc(got.Values, unwanted)) {
				t.Fatalf("got %v, want %d of %v", got.Values, limit, want)
			}
		}
		check(f.Finder, want, 0)
		if q.Metric == nil || *q.Metric == "" || *q.Metric == Any { // not each row of the table
			check(untracked, nil, 0)
		} else {
			check(untracked, want, 1356998400)
		}
	})

	m := "m0"
	var unknown *uid.NoSuchNameError
	if _, err := f.Values(t.Context(), Query{Metric: &m}, "no such key", 5); !errors.As(err, &unknown) {
		t.Errorf("error %v, want that the key has no UID", err)
	}

	// Further back only where nothing is nearer.
	for hours, since := range map[int64]int64{1: 1356998400, 5: 1356998400 - 18*3600, 500: 1356998400 - 219*3600} {
		cfg.Now = func() time.Time { return time.Unix(1356998400+hours*3600, 0) }
		got, err := New(cfg).Values(t.Context(), Query{Metric: &m}, "k0", 5)
		if err != nil || len(got.Values) == 0 || got.Since != since {
			t.Errorf("rows %d hours ago: %+v, %v; want those since %d", hours, got, err, since)
		}
	}
	cfg.Now = func() time.Time { return time.Unix(1356998400+10_000*3600, 0) }
	if got, err := New(cfg).Values(t.Context(), Query{Metric: &m}, "k0", 5); err != nil || len(got.Values) > 0 {
		t.Errorf("rows of a year ago: %+v, %v; want none", got, err)
	}
}

// forgetful is a dictionary in which a value has no name any more.
type forgetful struct {
	of    Names
	value string
}

func (f forgetful) Resolve(ctx context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	return f.of.Resolve(ctx, kind, name)
}

func (f forgetful) Names(ctx context.Context, kind encoding.UIDKind, uids []encoding.UID) ([]string, error) {
	names, err := f.of.Names(ctx, kind, uids)
	if i := slices.Index(names, f.value); i >= 0 {
		return nil, &uid.NoSuchIDError{Kind: kind, UID: uids[i]}
	}
	return names, err
}

// A value whose name was deleted while rows have it is left out; the others are there.
func TestValues_nameless(t *testing.T) {
	f := newFixture(t, 0)
	cfg := f.cfg
	cfg.Names = forgetful{f.cfg.Names, "v1"}
	m := "m0"
	got, err := New(cfg).Values(t.Context(), Query{Metric: &m}, "k0", 5)
	if err != nil || !slices.Equal(got.Values, []string{"v0", "v2"}) {
		t.Errorf("got %+v, %v, want v0 and v2", got, err)
	}
}

// A lookup of one metric in a salted data table divides the limit among the 4 salt buckets: each
// may return its quotient, at least 1. A lookup of all metrics is one scan with the whole limit.
func TestFind_saltedLimit(t *testing.T) {
	f := newFixture(t, 1)
	m := "m0"
	for limit, want := range map[int]int{1: 4, 4: 4, 11: 8} {
		got, err := f.Find(t.Context(), Query{Metric: &m, Limit: limit})
		if err != nil || len(got) != want {
			t.Errorf("limit %d: %d series, %v, want %d", limit, len(got), err, want)
		}
		if got, err := f.Find(t.Context(), Query{Limit: limit}); err != nil || len(got) != limit {
			t.Errorf("all metrics, limit %d: %d series, %v", limit, len(got), err)
		}
	}
}

func TestTSUID(t *testing.T) {
	f := newFixture(t, 0)
	s := f.series[len(f.series)/2]
	got, err := f.TSUID(t.Context(), s.Metric, s.Tags)
	if err != nil || cmp.Compare(got.String(), s.TSUID.String()) != 0 {
		t.Errorf("%v: got %s, %v, want its TSUID", s, got, err)
	}
	if _, err := f.TSUID(t.Context(), "m0", nil); err == nil {
		t.Error("a metric without tags is taken for a series, want an error")
	}
}

// numbered names each UID by its hex text, with so many letters before it.
type numbered struct {
	letters int
	calls   int
	called  func()
}

func (n *numbered) Resolve(_ context.Context, kind encoding.UIDKind, name string) (encoding.UID, error) {
	return nil, &uid.NoSuchNameError{Kind: kind, Name: name}
}

func (n *numbered) Names(_ context.Context, _ encoding.UIDKind, uids []encoding.UID) ([]string, error) {
	n.calls++
	if n.called != nil {
		n.called()
	}
	names := make([]string, len(uids))
	for i, u := range uids {
		names[i] = strings.Repeat("x", n.letters) + u.String()
	}
	return names, nil
}

func endless(meta bool) *faultstore.Endless {
	schema := encoding.DefaultSchema()
	return &faultstore.Endless{Rows: 1000, Row: func(n int) store.Row {
		tags := []byte{0, 0, 1, byte(n >> 16), byte(n >> 8), byte(n)}
		if meta {
			return store.Row{Key: append([]byte{0, 0, 1}, tags...)}
		}
		return store.Row{Key: schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, 0, tags)}
	}}
}

// A lookup in either table ends within one block when its client leaves, and within a few
// thousand series if that happens while their names are looked up.
func TestFind_clientLeaves(t *testing.T) {
	for _, meta := range []bool{false, true} {
		ctx, leave := context.WithCancel(t.Context())
		from := endless(meta)
		from.Block = func(n int) {
			if n == 3 {
				leave()
			}
		}
		f := New(Config{Store: from, Schema: encoding.DefaultSchema(), Names: &numbered{}})
		if _, err := f.Find(ctx, Query{Meta: meta}); !errors.Is(err, context.Canceled) || from.Blocks() > 4 {
			t.Errorf("meta %t: %v after %d blocks, want that it ends after block 3", meta, err, from.Blocks())
		}

		ctx, leave = context.WithCancel(t.Context())
		names := &numbered{}
		names.called = leave
		f = New(Config{Store: endless(meta), Schema: encoding.DefaultSchema(), Names: names})
		if _, err := f.Find(ctx, Query{Meta: meta, Limit: 50_000}); !errors.Is(err, context.Canceled) ||
			names.calls > 3 {
			t.Errorf("meta %t: %v after %d calls for names, want that it ends after at most 3", meta, err, names.calls)
		}
	}
}

// The answer of a lookup is bounded in series, in bytes, and by the memory of the process.
func TestFind_bounded(t *testing.T) {
	names := &numbered{}
	f := New(Config{Store: endless(true), Schema: encoding.DefaultSchema(), Names: names})
	var many TooManyError
	if _, err := f.Find(t.Context(), Query{Meta: true}); !errors.As(err, &many) || names.calls > 0 {
		t.Errorf("%v after %d calls for names, want that there are too many series, before any call", err, names.calls)
	}
	names.letters = MaxBytes / 5000
	if _, err := f.Find(t.Context(), Query{Meta: true, Limit: 10_000}); !errors.As(err, &many) || names.calls > 3*3 {
		t.Errorf("%v after %d calls for names, want that the answer is too large, after 9 at most", err, names.calls)
	}
	if found, err := f.Find(t.Context(), Query{Meta: true, Limit: 1000}); err != nil || len(found) != 1000 {
		t.Errorf("%d found, %v", len(found), err)
	}

	// The memory of the process bounds TSUIDs first, before names are looked up, and then names.
	ctx := memory.With(t.Context(), memory.New(memory.Least).Open(memory.Query))
	names.calls = 0
	var large *memory.LimitError
	if _, err := f.Find(ctx, Query{Meta: true, Limit: 900_000}); !errors.As(err, &large) || names.calls > 0 {
		t.Errorf("%v after %d calls for names, want that the process lacks the memory", err, names.calls)
	}
	ctx = memory.With(t.Context(), memory.New(memory.Least).Open(memory.Query))
	if _, err := f.Find(ctx, Query{Meta: true, Limit: 3000}); !errors.As(err, &large) || names.calls == 0 {
		t.Errorf("%v after %d calls for names, want that the process lacks the memory", err, names.calls)
	}
}
