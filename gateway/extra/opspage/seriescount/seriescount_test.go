package seriescount_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/opspage/seriescount"
	"downpour/gateway/extra/opspage/uidusage"
	"downpour/gateway/uid"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

// dictionary has the names of some UIDs.
type dictionary map[string]string

func (d dictionary) Name(_ context.Context, kind encoding.UIDKind, u encoding.UID) (string, error) {
	if name, ok := d[kind.String()+u.String()]; ok {
		return name, nil
	}
	return "", &uid.NoSuchIDError{Kind: kind, UID: u}
}

func (d dictionary) Each(_ context.Context, kind encoding.UIDKind, _ string) iter.Seq2[uid.Entry, error] {
	return func(yield func(uid.Entry, error) bool) {
		for i := range byte(4) {
			u := encoding.UID{0, 0, i}
			if name, ok := d[kind.String()+u.String()]; ok && !yield(uid.Entry{Name: name, UID: u}, nil) {
				return
			}
		}
	}
}

// Usage says that the last metric of three and the last seven tag values of nine are new.
func (d dictionary) Usage(context.Context, time.Time) ([]uid.Usage, error) {
	return []uid.Usage{
		{Kind: encoding.UIDMetric, Used: 3, Most: 1<<24 - 1, New: 1},
		{Kind: encoding.UIDTagK, Used: 2, Most: 1<<24 - 1},
		{Kind: encoding.UIDTagV, Used: 9, Most: 1<<24 - 1, New: 7},
	}, nil
}

// uids are these, as they are reported.
var uids = []uidusage.UIDs{
	{Kind: "metrics", Used: 3, Most: 1<<24 - 1, Grown: 1, Within: 86_400_000},
	{Kind: "tagk", Used: 2, Most: 1<<24 - 1, Within: 86_400_000},
	{Kind: "tagv", Used: 9, Most: 1<<24 - 1, Grown: 7, Within: 86_400_000},
}

// meta returns a meta table with a row for each key, and an empty data table.
func meta(t *testing.T, keys ...string) *pebble.Store {
	t.Helper()
	s := opentest.Embedded(t, opentest.Table("meta", encoding.FamilyName), opentest.Table("data", encoding.FamilyData))
	var rows []store.Mutation
	for _, k := range keys {
		// Two cells are one series.
		for _, q := range []string{encoding.MetaCounterQualifier, encoding.TSMetaQualifier} {
			rows = append(rows, store.Mutation{
				Row:       []byte(k),
				Family:    encoding.FamilyName,
				Qualifier: []byte(q),
				Value:     []byte("x"),
			})
		}
	}
	if err := s.Apply(t.Context(), "meta", rows); err != nil {
		t.Fatal(err)
	}
	return s
}

var names = dictionary{"metrics000001": "cpu", "metrics000002": "mem", "tagk000001": "host", "tagk000002": "dc"}

const now = 1356998400 + 600

func config(st store.Reader) seriescount.Config {
	return seriescount.Config{
		Store:     st,
		Table:     "meta",
		DataTable: "data",
		Schema:    encoding.DefaultSchema(),
		Names:     names,
		Now:       func() time.Time { return time.Unix(now, 0) },
	}
}

// Where the meta table has no series, those with a row of the last full hour are counted, also in salted tables: no
// row of the hour before it, or of that which has begun.
func TestRun_rows(t *testing.T) {
	for _, salt := range []int{0, 1} {
		st := meta(t)
		cfg := config(st)
		cfg.Schema.SaltWidth, cfg.Schema.SaltBuckets = salt, 3
		put := func(hour int64, metric byte, hosts int) {
			var rows []store.Mutation
			for i := range hosts {
				host := []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, byte(i)}}}
				base, tags := uint32(1356998400+3600*hour), cfg.Schema.AppendTags(nil, host)
				rows = append(rows, store.Mutation{
					Row:    cfg.Schema.AppendRowKey(nil, encoding.UID{0, 0, metric}, base, tags),
					Family: encoding.FamilyData, Qualifier: []byte{0, 0}, Value: []byte{1},
				})
			}
			if err := st.Apply(t.Context(), "data", rows); err != nil {
				t.Fatal(err)
			}
		}
		want := &seriescount.Counts{
			Complete: true, Metrics: []seriescount.Named{}, TagKeys: []seriescount.Named{}, UIDs: uids,
		}
		run := func() {
			t.Helper()
			got, err := seriescount.Run(t.Context(), t.Context(), cfg, 10)
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("salt %d: error %v, -want +got\n%s", salt, err, d)
			}
		}
		run()
		cfg.Table = []string{"meta", "no table"}[salt]
		run()
		put(-2, 1, 9)
		put(-1, 1, 2)
		put(-1, 2, 4)
		put(0, 1, 7)
		want.Series, want.AllMetrics, want.AllTagKeys, want.Hour = 6, 2, 1, 1356998400-3600
		want.Metrics = []seriescount.Named{{Name: "mem", Count: 4, New: 1}, {Name: "cpu", Count: 2}}
		want.TagKeys = []seriescount.Named{{Name: "host", Count: 4, New: 1}}
		run()
	}
}

// The metrics with most series come first, and the tag keys with most values; a value that several
// series have counts once, and a UID without a name is shown in hex. What has a new name is new.
func TestRun(t *testing.T) {
	st := meta(t,
		"\x00\x00\x01\x00\x00\x01\x00\x00\x01",                         // cpu{host=1}
		"\x00\x00\x01\x00\x00\x01\x00\x00\x02",                         // cpu{host=2}
		"\x00\x00\x01\x00\x00\x01\x00\x00\x02\x00\x00\x02\x00\x00\x09", // cpu{host=2,dc=9}
		"\x00\x00\x02\x00\x00\x01\x00\x00\x01\x00\x00\x02\x00\x00\x09", // mem{host=1,dc=9}
		"\x00\x00\x02\x00\x00\x01\x00\x00\x03",                         // mem{host=3}
		"\x00\x00\x03\x00\x00\x01\x00\x00\x01",                         // a metric without a name
		"short",
	)
	cfg := config(st)
	want := &seriescount.Counts{Series: 6, Complete: true, Unreadable: 1, AllMetrics: 3, AllTagKeys: 2, UIDs: uids,
		Metrics: []seriescount.Named{
			{Name: "cpu", Count: 3, New: 1}, {Name: "mem", Count: 2, New: 2}, {Name: "000003", Count: 1, New: 1},
		},
		TagKeys: []seriescount.Named{{Name: "host", Count: 3, New: 1}, {Name: "dc", Count: 1, New: 1}}}
	got, err := seriescount.Run(t.Context(), t.Context(), cfg, 10)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("error %v, -want +got\n%s", err, d)
	}
	want.Metrics, want.TagKeys = want.Metrics[:1], want.TagKeys[:1]
	got, err = seriescount.Run(t.Context(), t.Context(), cfg, 1)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("the first of each: error %v, -want +got\n%s", err, d)
	}
}

// A count whose time is over says that it is not complete. One whose client has left, or for which
// there is no memory, is an error.
func TestRun_ends(t *testing.T) {
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = string([]byte{0, 0, 1, 0, 0, 1, 0, byte(i >> 8), byte(i)})
	}
	cfg := config(meta(t, keys...))
	over, end := context.WithCancel(t.Context())
	end()
	got, err := seriescount.Run(t.Context(), over, cfg, 10)
	if err != nil || got.Complete || got.Series == 5000 {
		t.Errorf("the time is over: %+v, %v; want counts that are not complete", got, err)
	}
	if _, err := seriescount.Run(over, over, cfg, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("the client has left: %v, want its end", err)
	}

	account := memory.New(100_000).Open(memory.Query)
	defer account.Close()
	ctx := memory.With(t.Context(), account)
	var short *memory.LimitError
	if _, err := seriescount.Run(ctx, ctx, cfg, 10); !errors.As(err, &short) {
		t.Errorf("without memory: %v, want the limit", err)
	}
}
