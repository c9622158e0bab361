package uidcheck_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/gateway/extra/tools/uidcheck"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tables = tablestest.Specs(encoding.DefaultSchema())

func embedded(t *testing.T) store.Store { return opentest.Embedded(t, tables...) }

// table is a UID table, with the lines that the last check has reported.
type table struct {
	*testing.T
	store.Store
	names *uid.Dictionary
	lines []string
}

func newTable(t *testing.T, s store.Store) *table {
	return &table{
		T:     t,
		Store: s,
		names: uid.New(uid.Config{Store: s, Table: "tsdb-uid", Schema: encoding.DefaultSchema()}),
	}
}

// assign assigns UIDs to names of a kind; in a new table they count from 1.
func (t *table) assign(kind encoding.UIDKind, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := t.names.Assign(t.Context(), kind, name); err != nil {
			t.Fatal(err)
		}
	}
}

// set writes a cell, or deletes it if value is nil.
func (t *table) set(row, family, qualifier string, value []byte) {
	t.Helper()
	m := store.Mutation{Row: []byte(row), Family: family, Qualifier: []byte(qualifier), Value: value}
	if value == nil {
		m.Kind = store.DeleteCell
	}
	if err := t.Apply(t.Context(), "tsdb-uid", []store.Mutation{m}); err != nil {
		t.Fatal(err)
	}
}

// cells returns the cells of the UID table as text, row family:qualifier to value.
func (t *table) cells() map[string]string {
	t.Helper()
	all := map[string]string{}
	for row, err := range store.Rows(t.Context(), t.Store, store.Scan{Table: "tsdb-uid"}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range row.Cells {
			all[fmt.Sprintf("%q %s:%s", row.Key, c.Family, c.Qualifier)] = fmt.Sprintf("%q", c.Value)
		}
	}
	return all
}

// check runs a check with a changed configuration, and wants no error.
func (t *table) check(change ...func(*uidcheck.Config)) *uidcheck.Report {
	t.Helper()
	report, err := t.run(change...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (t *table) run(change ...func(*uidcheck.Config)) (*uidcheck.Report, error) {
	t.lines = nil
	cfg := uidcheck.Config{
		Store:    t.Store,
		Table:    "tsdb-uid",
		Points:   []string{"tsdb", "tsdb-rollup-1h"},
		Schema:   encoding.DefaultSchema(),
		Say:      func(line string) { t.lines = append(t.lines, line) },
		Progress: func(string) {},
		Withdraw: func(ctx context.Context, kind encoding.UIDKind, names ...string) (func(...encoding.UID), error) {
			w, err := t.names.Withdraw(ctx, kind, names...)
			if err != nil {
				return nil, err
			}
			return w.End, nil
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	return uidcheck.Run(t.Context(), cfg)
}

func fix(c *uidcheck.Config)   { c.Fix = true }
func owner(c *uidcheck.Config) { c.Fix, c.Collisions = true, uidcheck.Owner }
func merge(c *uidcheck.Config) { c.Fix, c.Collisions = true, uidcheck.Merge }

func (t *table) text() string { return strings.Join(t.lines, "\n") }

// u returns the UID with a number, of the default width.
func u(n int) string { return string([]byte{byte(n >> 16), byte(n >> 8), byte(n)}) }
