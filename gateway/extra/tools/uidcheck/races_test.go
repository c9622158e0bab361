package uidcheck_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/tools/uidcheck"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

// between is a store that calls before ahead of each call, with its number and name. Calls that
// before makes itself do not count.
type between struct {
	store.Store
	calls  int
	before func(n int, call string)
	inside atomic.Bool
}

func (*between) Features() store.Features { return store.Features{} }

func (b *between) call(name string) {
	if b.inside.Swap(true) {
		return
	}
	defer b.inside.Store(false)
	b.calls++
	b.before(b.calls, name)
}

func (b *between) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	b.call("scan")
	return b.Store.Scan(ctx, s)
}

func (b *between) Get(ctx context.Context, table, family string, keys [][]byte) ([]store.Row, error) {
	b.call("get")
	return b.Store.Get(ctx, table, family, keys)
}

func (b *between) Apply(ctx context.Context, table string, m []store.Mutation) error {
	b.call("apply")
	return b.Store.Apply(ctx, table, m)
}

func (b *between) Increment(ctx context.Context, table string, c store.CellKey, delta int64) (int64, error) {
	b.call("increment")
	return b.Store.Increment(ctx, table, c, delta)
}

func (b *between) CompareAndPut(ctx context.Context, table string, c store.CellKey, old, value []byte) (bool, error) {
	b.call("compare and put")
	return b.Store.CompareAndPut(ctx, table, c, old, value)
}

// A name that another process assigns or renames between any two steps of a repair is as that
// process has left it, and after another repair a check finds nothing.
func TestRun_namesChangeMeanwhile(t *testing.T) {
	for at := 1; ; at++ {
		inner := embedded(t)
		tab := newTable(t, inner)
		tab.assign(encoding.UIDMetric, "a", "b", "c", "d", "e")
		tab.set(u(1), "name", "metrics", nil)
		tab.set(u(6), "name", "metrics", []byte("b"))
		tab.set("c", "id", "metrics", nil)
		tab.set("x", "id", "metrics", []byte(u(5)))

		other := uid.New(uid.Config{Store: inner, Table: "tsdb-uid", Schema: encoding.DefaultSchema()})
		var assigned encoding.UID
		s := &between{Store: inner, before: func(n int, _ string) {
			if n != at {
				return
			}
			var err error
			if assigned, err = other.Assign(t.Context(), encoding.UIDMetric, "new"); err != nil {
				t.Fatal(err)
			}
			if err := other.Rename(t.Context(), encoding.UIDMetric, "d", "renamed"); err != nil {
				t.Fatal(err)
			}
		}}
		tab.check(owner, func(c *uidcheck.Config) { c.Store = s })
		told := tab.text()
		if s.calls < at {
			if at < 20 {
				t.Errorf("only %d calls were made, want at least 20", s.calls)
			}
			return
		}
		want := map[string]string{
			`"new" id:metrics`: fmt.Sprintf("%q", []byte(assigned)),
			fmt.Sprintf("%q name:metrics", []byte(assigned)): `"new"`,
			`"renamed" id:metrics`:                           `"\x00\x00\x04"`,
			`"\x00\x00\x04" name:metrics`:                    `"renamed"`,
			`"d" id:metrics`:                                 "",
			`"a" id:metrics`:                                 `"\x00\x00\x01"`,
			`"\x00\x00\x01" name:metrics`:                    `"a"`,
			`"c" id:metrics`:                                 `"\x00\x00\x03"`,
		}
		got := tab.cells()
		for cell, value := range want {
			if got[cell] != value {
				t.Errorf("changed before call %d: %s is %q, want %q\n%s", at, cell, got[cell], value, told)
			}
		}
		tab.check(owner)
		if r := tab.check(); r.Errors+r.Warnings > 0 {
			t.Errorf("changed before call %d: the last check has found %s", at, tab.text())
		}
	}
}

// A change that another process has half made when the table is read is not repaired: the check
// waits for Settle before it repairs, and the process completes the change in the meantime.
func TestRun_awaitsOthers(t *testing.T) {
	for name, test := range map[string]struct{ half, rest func(*table) }{
		"an assignment": {
			func(t *table) { t.set(u(2), "name", "metrics", []byte("b")) },
			func(t *table) { t.set("b", "id", "metrics", []byte(u(2))) },
		},
		"a rename": {
			func(t *table) { t.set(u(1), "name", "metrics", []byte("z")) },
			func(t *table) { t.set("z", "id", "metrics", []byte(u(1))); t.set("a", "id", "metrics", nil) },
		},
		"a deletion of a name with two UIDs": {
			func(t *table) { t.set(u(2), "name", "metrics", []byte("a")) },
			func(t *table) { t.set("a", "id", "metrics", nil); t.set(u(1), "name", "metrics", nil) },
		},
		"a deletion": {
			func(t *table) { t.set("a", "id", "metrics", nil) },
			func(t *table) { t.set(u(1), "name", "metrics", nil) },
		},
	} {
		tab := newTable(t, embedded(t))
		tab.assign(encoding.UIDMetric, "a")
		tab.set("\x00", "id", "metrics", encoding.AppendCounter(nil, 2))
		test.half(tab)
		var want map[string]string
		r := tab.check(merge, func(c *uidcheck.Config) {
			c.Settle = 1
			c.Progress = func(line string) {
				if strings.HasPrefix(line, "before repairs: ") {
					test.rest(tab)
					want = tab.cells()
				}
			}
		})
		if diff := cmp.Diff(want, tab.cells()); diff != "" || want == nil || r.Errors+r.Warnings > 0 {
			t.Errorf("%s: got %+v %s, want nothing found\n-others' +after\n%s", name, r, tab.text(), diff)
		}
	}
}

// A cell that another process changes after the check has read it again and before it is repaired
// keeps the value of that process.
func TestRun_cellChangesLast(t *testing.T) {
	for name, damage := range map[string]func(*table){
		"name id:metrics":   func(t *table) { t.set("a", "id", "metrics", nil) },
		"name name:metrics": func(t *table) { t.set(u(1), "name", "metrics", nil) },
		"old name:metrics":  func(t *table) { t.set(u(1), "name", "metrics", []byte("old")) },
		"counter":           func(t *table) { t.set("\x00", "id", "metrics", []byte{1}) },
	} {
		inner := embedded(t)
		tab := newTable(t, inner)
		tab.assign(encoding.UIDMetric, "a")
		damage(tab)
		var want map[string]string
		s := &between{Store: inner}
		s.before = func(_ int, call string) {
			if call != "compare and put" || want != nil {
				return
			}
			switch name {
			case "name id:metrics":
				tab.set("a", "id", "metrics", []byte(u(7)))
			case "counter":
				tab.set("\x00", "id", "metrics", encoding.AppendCounter(nil, 100))
			default:
				tab.set(u(1), "name", "metrics", []byte("other"))
			}
			want = tab.cells()
		}
		r := tab.check(fix, func(c *uidcheck.Config) { c.Store = s })
		if diff := cmp.Diff(want, tab.cells()); diff != "" || r.Repaired > 0 || r.Moving != 1 ||
			!strings.Contains(tab.text(), "not repaired: it has just been changed") {
			t.Errorf("%s: %+v %s\n-others' +after\n%s", name, r, tab.text(), diff)
		}
	}
}

// The counter is raised by an increment, so that an assignment by another process at the same time
// is not undone.
func TestRun_counterRisesMeanwhile(t *testing.T) {
	opentest.Both(t, tables, func(t *testing.T, inner store.Store) {
		tab := newTable(t, inner)
		tab.assign(encoding.UIDMetric, "a", "b", "c")
		tab.set("z", "id", "metrics", []byte(u(8)))
		tab.set(u(8), "name", "metrics", []byte("z"))
		s := &between{Store: inner, before: func(_ int, call string) {
			if call == "increment" {
				tab.assign(encoding.UIDMetric, "d")
			}
		}}
		tab.check(fix, func(c *uidcheck.Config) { c.Store = s })
		got := tab.value("\x00", "id", "metrics")
		if string(got) != string(encoding.AppendCounter(nil, 9)) || string(tab.value("d", "id", "metrics")) != u(4) {
			t.Errorf("the counter is %x, want 9, and d with UID 4: %s", got, tab.text())
		}
	})
}

// A name is withdrawn from this process while it is being repaired, and not afterwards.
func TestRun_withdraws(t *testing.T) {
	inner := embedded(t)
	tab := newTable(t, inner)
	tab.assign(encoding.UIDMetric, "a", "b")
	tab.set(u(1), "name", "metrics", []byte("b"))
	busy := 0
	s := &between{Store: inner, before: func(_ int, call string) {
		if call == "compare and put" {
			_, err := (uid.Staged{Dictionary: tab.names}).Resolve(t.Context(), encoding.UIDMetric, "a")
			if err != nil && strings.Contains(err.Error(), "deleted or renamed") {
				busy++
			}
		}
	}}
	tab.check(fix, func(c *uidcheck.Config) { c.Store = s })
	id, err := tab.names.Resolve(t.Context(), encoding.UIDMetric, "a")
	name, err2 := tab.names.Name(t.Context(), encoding.UIDMetric, encoding.UID(u(1)))
	if busy != 1 || err != nil || err2 != nil || string(id) != u(1) || name != "a" {
		t.Errorf("busy %d times, then UID %s, %v, name %s, %v; want busy once, then 000001 and a",
			busy, id, err, name, err2)
	}
}
