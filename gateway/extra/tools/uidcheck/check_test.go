package uidcheck_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/gateway/extra/tools/uidcheck"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// findings are kinds of damage to a UID table, and what a check reports about each.
var findings = []struct {
	name   string
	damage func(*table)
	with   func(*uidcheck.Config) // the options of the repair; nil: fix
	check  string                 // what a check without repairs reports
	then   map[string]string      // cells that differ after the repair from those before the damage; "": no cell
	left   string                 // what the next check reports
}{{
	name: "a UID without its name", damage: func(t *table) { t.set(u(1), "name", "metrics", nil) },
	check: `error: metrics: "a" has UID 000001, which leads back to no name; fix: 000001 leads back to "a"`,
}, {
	name: "a UID with a name that has none", damage: func(t *table) { t.set(u(1), "name", "metrics", []byte("x")) },
	check: `error: metrics: "a" has UID 000001, which leads back to "x", which has none; fix: 000001 leads back to "a"`,
}, {
	name: "a UID with the name of another", damage: func(t *table) { t.set(u(1), "name", "metrics", []byte("b")) },
	check: `error: metrics: "a" has UID 000001, which leads back to "b", which has UID 000002; fix: ` +
		`000001 leads back to "a"`,
}, {
	name: "a UID with an empty name", damage: func(t *table) { t.set(u(1), "name", "metrics", []byte{}) },
	check: `error: metrics: "a" has UID 000001, which leads back to "", which has none; fix: 000001 leads back to "a"`,
}, {
	name: "a name without its UID", damage: func(t *table) { t.set("a", "id", "metrics", nil) },
	check: `warning: metrics: UID 000001 leads to "a", which has no UID; fix: "a" has UID 000001`,
}, {
	name: "a name without its UIDs", damage: func(t *table) {
		t.set("a", "id", "metrics", nil)
		t.set(u(3), "name", "metrics", []byte("a"))
	},
	check: "warning: metrics: UID 000003 leads to \"a\", which has no UID; fix: \"a\" has UID 000003\n" +
		"warning: metrics: UID 000001 leads to \"a\", which has UID 000003; fix: UID 000001 leads to nothing\n" +
		"error: metrics: the counter is 2, but UIDs up to 3 are in use: new names would get them first; fix: " +
		"the counter is 3",
	then: map[string]string{
		`"a" id:metrics`:              `"\x00\x00\x03"`,
		`"\x00\x00\x03" name:metrics`: `"a"`,
		`"\x00\x00\x01" name:metrics`: "",
		`"\x00" id:metrics`:           `"\x00\x00\x00\x00\x00\x00\x00\x03"`,
	},
}, {
	name: "a UID of a lost race", damage: func(t *table) {
		t.set(u(2), "name", "tagk", []byte("k"))
		t.set(u(2), "name", "tagk_meta", []byte("{}"))
		t.set("\x00", "id", "tagk", encoding.AppendCounter(nil, 2))
	},
	check: `warning: tagk: UID 000002 leads to "k", which has UID 000001; fix: UID 000002 leads to nothing`,
	then:  map[string]string{`"\x00" id:tagk`: `"\x00\x00\x00\x00\x00\x00\x00\x02"`},
}, {
	name: "two names of a UID", damage: func(t *table) { t.set("c", "id", "metrics", []byte(u(1))) },
	check: `error: metrics: COLLISION: "a", "c" have the same UID 000001, which leads back to "a"; ` +
		`points of all are stored as one name's`,
	then: map[string]string{`"c" id:metrics`: `"\x00\x00\x01"`},
	left: `error: metrics: COLLISION: "a", "c" have the same UID 000001, which leads back to "a"; ` +
		`points of all are stored as one name's`,
}, {
	name: "two names of a UID, for its owner", with: owner, damage: func(t *table) {
		t.set("c", "id", "metrics", []byte(u(1)))
	},
	check: `error: metrics: COLLISION: "a", "c" have the same UID 000001, which leads back to "a"; ` +
		`points of all are stored as one name's; fix: 000001 is the UID of "a" alone`,
}, {
	name: "two names of a UID, merged", with: merge, damage: func(t *table) {
		t.set("c", "id", "metrics", []byte(u(1)))
	},
	check: `error: metrics: COLLISION: "a", "c" have the same UID 000001, which leads back to "a"; ` +
		`points of all are stored as one name's; fix: 000001 is the UID of "fsck.a.c", and of no other name`,
	then: map[string]string{
		`"a" id:metrics`:              "",
		`"fsck.a.c" id:metrics`:       `"\x00\x00\x01"`,
		`"\x00\x00\x01" name:metrics`: `"fsck.a.c"`,
	},
}, {
	name: "two names of a UID that leads to neither", with: owner, damage: func(t *table) {
		t.set("c", "id", "metrics", []byte(u(1)))
		t.set(u(1), "name", "metrics", nil)
	},
	check: `error: metrics: COLLISION: "a", "c" have the same UID 000001, which leads back to no name; ` +
		`points of all are stored as one name's`,
	then: map[string]string{`"c" id:metrics`: `"\x00\x00\x01"`, `"\x00\x00\x01" name:metrics`: ""},
	left: `error: metrics: COLLISION: "a", "c" have the same UID 000001, which leads back to no name; ` +
		`points of all are stored as one name's`,
}, {
	name: "a name with the UID of another, whose own UID is known", with: owner, damage: func(t *table) {
		t.set("a", "id", "metrics", []byte(u(2)))
	},
	check: "error: metrics: COLLISION: \"a\", \"b\" have the same UID 000002, which leads back to \"b\"; " +
		"points of all are stored as one name's; fix: 000002 is the UID of \"b\" alone\n" +
		`warning: metrics: UID 000001 leads to "a", which has UID 000002; ` +
		`it stays, because that is not the name's alone`,
}, {
	name: "a UID of another width", damage: func(t *table) { t.set("a", "id", "metrics", []byte{0, 1}) },
	check: `error: metrics: "a" has UID 0001 of 2 bytes, want 3 (is the UID width right?)`,
	then:  map[string]string{`"a" id:metrics`: `"\x00\x01"`},
	left:  `error: metrics: "a" has UID 0001 of 2 bytes, want 3 (is the UID width right?)`,
}, {
	name: "a row of another width", damage: func(t *table) { t.set("\x00\x01", "name", "metrics", []byte("a")) },
	check: `error: metrics: UID 0001, which leads to "a", has 2 bytes, want 3 (is the UID width right?)`,
	then:  map[string]string{`"\x00\x01" name:metrics`: `"a"`},
	left:  `error: metrics: UID 0001, which leads to "a", has 2 bytes, want 3 (is the UID width right?)`,
}, {
	name: "a counter that lags", damage: func(t *table) {
		t.set("\x00", "id", "metrics", encoding.AppendCounter(nil, 1))
	},
	check: `error: metrics: the counter is 1, but UIDs up to 2 are in use: new names would get them first; fix: ` +
		`the counter is 2`,
}, {
	name: "no counter", damage: func(t *table) { t.set("\x00", "id", "metrics", nil) },
	check: `error: metrics: the counter is 0, but UIDs up to 2 are in use: new names would get them first; fix: ` +
		`the counter is 2`,
}, {
	name: "no number", damage: func(t *table) { t.set("\x00", "id", "metrics", []byte{1, 2}) },
	check: `error: metrics: the counter is 0102 of 2 bytes, want 8 bytes: no name can be assigned; fix: ` +
		`the counter is 2`,
}, {
	name: "UIDs that were drawn", damage: func(t *table) {
		t.set("z", "id", "metrics", []byte(u(0xA00000)))
		t.set(u(0xA00000), "name", "metrics", []byte("z"))
	},
	check: `warning: metrics: the counter is 2, but UIDs up to 10485760 are in use: ` +
		`new names would get them first; they do not look counted (tsd.core.uid.random_metrics?), so the counter stays`,
	then: map[string]string{`"z" id:metrics`: `"\xa0\x00\x00"`, `"\xa0\x00\x00" name:metrics`: `"z"`},
	left: `warning: metrics: the counter is 2, but UIDs up to 10485760 are in use: ` +
		`new names would get them first; they do not look counted (tsd.core.uid.random_metrics?), so the counter stays`,
}, {
	name: "UIDs that were drawn from the first on", damage: func(t *table) {
		t.set("z", "id", "metrics", []byte(u(0xA00000)))
		t.set(u(0xA00000), "name", "metrics", []byte("z"))
		t.set("\x00", "id", "metrics", nil)
	},
	check: `warning: metrics: the counter is 0, but UIDs up to 10485760 are in use: ` +
		`new names would get them first; they do not look counted (tsd.core.uid.random_metrics?), so the counter stays`,
	then: map[string]string{
		`"z" id:metrics`:              `"\xa0\x00\x00"`,
		`"\xa0\x00\x00" name:metrics`: `"z"`,
		`"\x00" id:metrics`:           "",
	},
	left: `warning: metrics: the counter is 0, but UIDs up to 10485760 are in use: ` +
		`new names would get them first; they do not look counted (tsd.core.uid.random_metrics?), so the counter stays`,
}, {
	name: "an unknown column", damage: func(t *table) { t.set("a", "id", "tagz", []byte("x")) },
	check: `warning: row 61: unknown column id:"tagz" of 1 bytes`,
	then:  map[string]string{`"a" id:tagz`: `"x"`},
	left:  `warning: row 61: unknown column id:"tagz" of 1 bytes`,
}, {
	name: "an unknown column, deleted", with: func(c *uidcheck.Config) { c.Fix, c.DeleteUnknown = true, true },
	damage: func(t *table) { t.set(u(1), "name", "tagz", []byte{}) },
	check:  `warning: row 000001: unknown column name:"tagz" of 0 bytes; fix: the column is deleted`,
}, {
	name: "what is not damaged", damage: func(t *table) {
		t.set("\x00", "id", encoding.ChangesQualifier, encoding.AppendCounter(nil, 7))
		t.set(u(1), "name", "metric_meta", []byte("no JSON"))
		t.set(u(1), "name", encoding.TSMetaQualifier, []byte("{}"))
	},
	then: map[string]string{
		`"\x00" id:downpour_changes`:      `"\x00\x00\x00\x00\x00\x00\x00\a"`,
		`"\x00\x00\x01" name:metric_meta`: `"no JSON"`,
		`"\x00\x00\x01" name:ts_meta`:     `"{}"`,
	},
}}

// Each kind of damage is reported and repaired, and the next check finds only what cannot be
// repaired with the options. A check without repairs writes nothing.
func TestRun_findings(t *testing.T) {
	for _, test := range findings {
		t.Run(test.name, func(t *testing.T) {
			tab := newTable(t, embedded(t))
			tab.assign(encoding.UIDMetric, "a", "b")
			tab.assign(encoding.UIDTagK, "k")
			want := tab.cells()
			test.damage(tab)
			damaged := tab.cells()
			with := test.with
			if with == nil {
				with = fix
			}

			tab.check(with, func(c *uidcheck.Config) { c.Fix = false })
			if diff := cmp.Diff(test.check, tab.text()); diff != "" {
				t.Errorf("the check: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(damaged, tab.cells()); diff != "" {
				t.Errorf("the check has written: -before +after\n%s", diff)
			}

			tab.check(with)
			for cell, value := range test.then {
				want[cell] = value
				if value == "" {
					delete(want, cell)
				}
			}
			if diff := cmp.Diff(want, tab.cells()); diff != "" {
				t.Errorf("the table after the repair: -want +got\n%s\n%s", diff, tab.text())
			}
			r := tab.check()
			if diff := cmp.Diff(test.left, tab.text()); diff != "" || (r.Errors+r.Warnings == 0) != (test.left == "") {
				t.Errorf("the next check, %+v: -want +got\n%s", r, diff)
			}
		})
	}
}

// A stray UID, to which no name leads, is deleted only if no row in any table of points has it.
func TestRun_usedUIDsStay(t *testing.T) {
	for _, kind := range []encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV} {
		for _, where := range []string{"tsdb", "tsdb-rollup-1h", ""} {
			tab := newTable(t, embedded(t))
			tab.assign(kind, "a")
			tab.set(u(9), "name", kind.String(), []byte("a"))
			tab.set("\x00", "id", kind.String(), encoding.AppendCounter(nil, 9))
			ids := [3]string{u(5), u(5), u(5)}
			ids[kind] = u(9)
			schema := encoding.DefaultSchema()
			row := schema.AppendRowKey(nil, encoding.UID(ids[0]), 1356998400, []byte(u(1)+u(2)+ids[1]+ids[2]))
			if where != "" {
				if where != "tsdb" {
					spec := store.TableSpec{Name: where, Families: []store.FamilySpec{{Name: "t"}}}
					if err := tab.CreateTable(t.Context(), spec); err != nil {
						t.Fatal(err)
					}
				}
				if err := tab.Apply(t.Context(), where,
					[]store.Mutation{{Row: row, Family: "t", Qualifier: []byte{0, 0}, Value: []byte{1}}}); err != nil {
					t.Fatal(err)
				}
			}
			before := tab.cells()
			r := tab.check(fix)
			if diff := cmp.Diff(before, tab.cells()); (diff == "") != (where != "") || r.Warnings != 1 ||
				r.Repaired != map[bool]int64{true: 0, false: 1}[where != ""] {
				t.Errorf("%s with a row in %q: got %+v %s, want a repair only without a row\n%s",
					kind, where, r, tab.text(), diff)
			}
		}
	}
}

// The search for rows with a stray UID ends once each has been found: here at the first of 1500
// rows, so that no progress is reported, and without a read of the second table.
func TestRun_usedUIDsEndTheSearch(t *testing.T) {
	for _, kind := range []encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagV} {
		inner := embedded(t)
		tab := newTable(t, inner)
		tab.assign(kind, "a")
		tab.set(u(9), "name", kind.String(), []byte("a"))
		schema := encoding.DefaultSchema()
		ids := [3]string{u(5), u(5), u(5)}
		ids[kind] = u(9)
		var points []store.Mutation
		for hour := range 1500 {
			row := schema.AppendRowKey(nil, encoding.UID(ids[0]), uint32(hour)*3600, []byte(ids[1]+ids[2]))
			points = append(points, store.Mutation{Row: row, Family: "t", Qualifier: []byte{0, 0}, Value: []byte{1}})
		}
		if err := tab.Apply(t.Context(), "tsdb", points); err != nil {
			t.Fatal(err)
		}

		faults := faultstore.New(inner, faultstore.Rule{
			Op:    faultstore.Scan,
			Table: "tsdb-rollup-1h",
			Err:   errors.New("read for nothing"),
		})
		tab.check(fix, func(c *uidcheck.Config) {
			c.Store = faults
			c.Progress = func(line string) {
				if strings.HasPrefix(line, "tsdb: ") {
					t.Errorf("%s: %s, want that only 1 key is read", kind, line)
				}
			}
		})
		want := fmt.Sprintf(`warning: %s: UID 000009 leads to "a", which has UID 000001; `+
			`it stays, because row %x and perhaps others have it`, kind, points[0].Row)
		if got := tab.lines[0]; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// If several UIDs lead to a name that has none, the name gets the one that rows of points have.
func TestRun_usedUIDsWin(t *testing.T) {
	tab := newTable(t, embedded(t))
	for n := range 3 {
		tab.set(u(n+1), "name", "metrics", []byte("a"))
	}
	schema := encoding.DefaultSchema()
	err := tab.Apply(t.Context(), "tsdb", []store.Mutation{{
		Row:       schema.AppendRowKey(nil, encoding.UID(u(2)), 0, []byte(u(1)+u(1))),
		Family:    "t",
		Qualifier: []byte{0, 0},
		Value:     []byte{1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	tab.check(fix)
	want := map[string]string{
		`"a" id:metrics`:              `"\x00\x00\x02"`,
		`"\x00\x00\x02" name:metrics`: `"a"`,
		`"\x00" id:metrics`:           `"\x00\x00\x00\x00\x00\x00\x00\x03"`,
	}
	if diff := cmp.Diff(want, tab.cells()); diff != "" {
		t.Errorf("-want +got\n%s\n%s", diff, tab.text())
	}
}

// An error of any call of the store ends the check, and the next check repairs the rest.
func TestRun_errors(t *testing.T) {
	broken := errors.New("broken")
	for n := 1; ; n++ {
		inner := embedded(t)
		tab := newTable(t, inner)
		tab.assign(encoding.UIDMetric, "a", "b", "c")
		want := tab.cells()
		tab.set(u(1), "name", "metrics", []byte("x"))
		tab.set(u(2), "name", "metrics", []byte{})
		tab.set("c", "id", "metrics", nil)
		tab.set("\x00", "id", "metrics", nil)
		tab.set(u(4), "name", "metrics", []byte("b"))

		faults := faultstore.New(inner, faultstore.Rule{Nth: n, Err: broken})
		_, err := tab.run(fix, func(c *uidcheck.Config) { c.Store = faults })
		if faults.Hits()[0] == 0 {
			if n < 20 || err != nil {
				t.Errorf("%d calls were made, %v, want at least 19 and no error", n-1, err)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Errorf("call %d fails: got %v, want that call's error", n, err)
		}
		want[`"\x00" id:metrics`] = `"\x00\x00\x00\x00\x00\x00\x00\x04"`
		tab.check(fix)
		got := tab.cells()
		if got[`"\x00" id:metrics`] == `"\x00\x00\x00\x00\x00\x00\x00\x03"` { // the first run has removed UID 4
			want[`"\x00" id:metrics`] = `"\x00\x00\x00\x00\x00\x00\x00\x03"`
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("call %d fails, the next check repairs: -want +got\n%s", n, diff)
		}
	}
}
