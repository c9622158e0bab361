package metapurge_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/gateway/extra/tools/metapurge"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/drystore"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/open/opentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tables = tablestest.Specs(encoding.DefaultSchema())

// filled fills a store with the names of one metric and three tag values, and with meta data.
func filled(t *testing.T, s store.Store) store.Store {
	t.Helper()
	put := func(table, row, family, qualifier, value string) {
		m := store.Mutation{Row: []byte(row), Family: family, Qualifier: []byte(qualifier), Value: []byte(value)}
		if err := s.Apply(t.Context(), table, []store.Mutation{m}); err != nil {
			t.Fatal(err)
		}
	}
	for kind := encoding.UIDMetric; kind <= encoding.UIDTagV; kind++ {
		put("tsdb-uid", "\x00", "id", kind.String(), "\x00\x00\x00\x00\x00\x00\x00\x01")
	}
	put("tsdb-uid", "\x00\x00\x01", "name", "metrics", "m")
	put("tsdb-uid", "\x00\x00\x01", "name", "metric_meta", "{}")
	put("tsdb-uid", "\x00\x00\x01", "name", "ts_meta", "{}")
	for n := range 3 {
		u := string([]byte{byte(n * 100), 0, 2}) // far beyond the largest metric UID
		put("tsdb-uid", fmt.Sprintf("v%d", n), "id", "tagv", u)
		put("tsdb-uid", u, "name", "tagv", fmt.Sprintf("v%d", n))
		put("tsdb-uid", u, "name", "tagk_meta", "{}")
		put("tsdb-uid", u, "name", "tagv_meta", []string{"{}", `{"custom":{"a":"b"}}`, "no JSON"}[n])
		put("tsdb-meta", "\x00\x00\x01\x00\x00\x01"+u, "name", "ts_ctr", "\x00\x00\x00\x00\x00\x00\x00\x09")
		put("tsdb-meta", "\x00\x00\x01\x00\x00\x01"+u, "name", "ts_meta",
			[]string{"{}", `{"retention":3}`, `{"notes":"n"}`}[n])
	}
	return s
}

// cells returns the cells of the UID and the meta table.
func cells(t *testing.T, s store.Reader) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, table := range []string{"tsdb-uid", "tsdb-meta"} {
		for row, err := range store.Rows(t.Context(), s, store.Scan{Table: table}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range row.Cells {
				all[fmt.Sprintf("%s %q %s:%s", table, row.Key, c.Family, c.Qualifier)] = string(c.Value)
			}
		}
	}
	return all
}

func run(ctx context.Context, s metapurge.Store) (*metapurge.Report, error) {
	return metapurge.Run(ctx, metapurge.Config{Store: s, UID: "tsdb-uid", Meta: "tsdb-meta", Progress: func(string) {}})
}

// names returns the cells that a purge leaves: all but meta data.
func names() map[string]string {
	const one = "\x00\x00\x00\x00\x00\x00\x00\x01"
	want := map[string]string{
		`tsdb-uid "\x00" id:metrics`:           one,
		`tsdb-uid "\x00" id:tagk`:              one,
		`tsdb-uid "\x00" id:tagv`:              one,
		`tsdb-uid "\x00\x00\x01" name:metrics`: "m",
	}
	for n := range 3 {
		u := string([]byte{byte(n * 100), 0, 2})
		want[fmt.Sprintf("tsdb-uid %q id:tagv", fmt.Sprintf("v%d", n))] = u
		want[fmt.Sprintf("tsdb-uid %q name:tagv", u)] = fmt.Sprintf("v%d", n)
	}
	return want
}

// A purge deletes all meta data, also in rows beyond the largest metric UID, and leaves names. A
// dry run counts the same and writes nothing.
func TestRun(t *testing.T) {
	opentest.Both(t, tables, func(t *testing.T, s store.Store) {
		filled(t, s)
		before := cells(t, s)
		want := &metapurge.Report{UIDMeta: 7, TSMeta: 4, Counters: 3, Written: 4}
		r, err := run(t.Context(), drystore.New(s, "tsdb-uid", "tsdb-meta"))
		if diff := cmp.Diff(want, r); diff != "" || err != nil {
			t.Errorf("dry: %v -want +got\n%s", err, diff)
		}
		if diff := cmp.Diff(before, cells(t, s)); diff != "" {
			t.Errorf("dry: -before +after\n%s", diff)
		}
		r, err = run(t.Context(), s)
		if diff := cmp.Diff(want, r); diff != "" || err != nil {
			t.Errorf("%v -want +got\n%s", err, diff)
		}
		if diff := cmp.Diff(names(), cells(t, s)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if r, err := run(t.Context(), s); *r != (metapurge.Report{}) || err != nil {
			t.Errorf("again: got %+v, %v, want nothing to delete", r, err)
		}
	})
}

// A purge that fails at any call of the store is completed by a second one.
func TestRun_interrupted(t *testing.T) {
	broken := errors.New("broken")
	for n := 1; ; n++ {
		inner := filled(t, opentest.Embedded(t, tables...))
		s := faultstore.New(inner, faultstore.Rule{Nth: n, Err: broken})
		_, err := run(t.Context(), s)
		if s.Hits()[0] == 0 {
			if n < 5 || err != nil {
				t.Errorf("%d calls were made, %v, want at least 4 and no error", n-1, err)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Errorf("call %d fails: got %v, want that call's error", n, err)
		}
		if _, err := run(t.Context(), inner); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(names(), cells(t, inner)); diff != "" {
			t.Errorf("call %d fails: -want +got\n%s", n, diff)
		}
	}
}

// rewriting is a store in which another process writes the first object of each deletion just
// before it.
type rewriting struct{ store.Store }

func (rewriting) Features() store.Features { return store.Features{} }

func (r rewriting) Apply(ctx context.Context, table string, all []store.Mutation) error {
	m := all[0]
	m.Kind, m.Value, m.Timestamp = store.Put, []byte("new"), m.Timestamp+1
	if err := r.Store.Apply(ctx, table, []store.Mutation{m}); err != nil {
		return err
	}
	return r.Store.Apply(ctx, table, all)
}

// On HBase an object that is written after the purge has read it and before it deletes it stays.
func TestRun_writtenMeanwhile(t *testing.T) {
	s := filled(t, opentest.HBase(t, tables...))
	if _, err := run(t.Context(), rewriting{s}); err != nil {
		t.Fatal(err)
	}
	want := names()
	want[`tsdb-uid "\x00\x00\x01" name:metric_meta`] = "new"
	want[`tsdb-meta "\x00\x00\x01\x00\x00\x01\x00\x00\x02" name:ts_ctr`] = "new"
	if diff := cmp.Diff(want, cells(t, s)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
