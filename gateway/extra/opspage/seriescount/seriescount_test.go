package seriescount_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/opspage/seriescount"
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

// meta returns a meta table with a row for each key.
func meta(t *testing.T, keys ...string) *pebble.Store {
	t.Helper()
	s := opentest.Embedded(t, opentest.Table("meta", encoding.FamilyName))
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

// The metrics with most series come first, and the tag keys with most values; a value that several
// series have counts once, and a UID without a name is shown in hex.
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
	cfg := seriescount.Config{Store: st, Table: "meta", Schema: encoding.DefaultSchema(), Names: names}
	want := &seriescount.Counts{Series: 6, Complete: true, Unreadable: 1, AllMetrics: 3, AllTagKeys: 2,
		Metrics: []seriescount.Named{{Name: "cpu", Count: 3}, {Name: "mem", Count: 2}, {Name: "000003", Count: 1}},
		TagKeys: []seriescount.Named{{Name: "host", Count: 3}, {Name: "dc", Count: 1}}}
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
	cfg := seriescount.Config{Store: meta(t, keys...), Table: "meta", Schema: encoding.DefaultSchema(), Names: names}
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
