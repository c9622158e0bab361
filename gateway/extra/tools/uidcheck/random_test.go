package uidcheck_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/extra/tools/uidcheck"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

var everyKind = []encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV}

// Any damage is repaired by one check: the next one finds nothing, and names that were not damaged
// keep their UIDs. If little memory makes the check read the table in parts, it takes two, because
// an error in one part may depend on another part.
func TestRun_random(t *testing.T) {
	seed := seedtest.Of(t)
	for n := range 60 {
		testRandom(t, newTable(t, embedded(t)), seed, n)
	}
	for n := range 5 {
		testRandom(t, newTable(t, opentest.HBase(t, tables...)), seed, n)
	}
}

func testRandom(t *testing.T, tab *table, seed uint64, n int) {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	good := map[string]bool{}
	for _, kind := range everyKind {
		for i := range 5 + rng.IntN(20) {
			name := fmt.Sprintf("n%d", i)
			tab.assign(kind, name)
			good[kind.String()+" "+name] = true
		}
	}
	before := tab.cells()
	for range 1 + rng.IntN(12) {
		for _, bad := range damage(tab, rng) {
			delete(good, bad)
		}
	}

	limit := func(c *uidcheck.Config) {}
	if n%3 == 0 {
		limit = func(c *uidcheck.Config) { c.Bytes = 700 }
	}
	first := tab.check(merge, limit)
	told := tab.text()
	if n%3 == 0 {
		tab.check(merge, limit)
	}
	if r := tab.check(limit); r.Errors+r.Warnings+r.Moving > 0 {
		t.Errorf("run %d: after the repair a check finds %+v: %s\nthe repair: %+v %s", n, r, tab.text(), first, told)
	}
	after := tab.cells()
	agree(t, after)
	for _, kind := range everyKind {
		for i := range 25 {
			name := fmt.Sprintf("n%d", i)
			cell := fmt.Sprintf("%q id:%s", name, kind)
			if good[kind.String()+" "+name] && before[cell] != after[cell] {
				t.Errorf("run %d: %s had UID %s and has %q", n, cell, before[cell], after[cell])
			}
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// damage damages the table in one way. It returns the names that it may have changed, each with
// its kind before it.
func damage(t *table, rng *rand.Rand) []string {
	kind := everyKind[rng.IntN(3)]
	q := kind.String()
	name := func() string { return fmt.Sprintf("n%d", rng.IntN(25)) }
	a, b, id := name(), name(), u(1+rng.IntN(40))
	ownerOf := func(id string) string { return string(t.value(id, "name", q)) }
	uidOf := func(name string) string { return string(t.value(name, "id", q)) }
	touched := []string{
		q + " " + a, q + " " + b, q + " " + ownerOf(id), q + " " + ownerOf(uidOf(a)),
		q + " " + ownerOf(uidOf(b)),
	}
	switch rng.IntN(9) {
	case 0:
		t.set(id, "name", q, nil)
	case 1:
		t.set(a, "id", q, nil)
	case 2:
		t.set(id, "name", q, []byte(a))
	case 3:
		t.set(a, "id", q, []byte(id))
	case 4: // a rename that was cut off after one step or two
		if uidOf(a) == "" || uidOf(b) != "" {
			return nil
		}
		t.set(uidOf(a), "name", q, []byte(b))
		if rng.IntN(2) == 0 {
			t.set(b, "id", q, []byte(uidOf(a)))
		}
	case 5:
		t.set("\x00", "id", q,
			[][]byte{nil, {}, {1}, encoding.AppendCounter(nil, 3), encoding.AppendCounter(nil, -1)}[rng.IntN(5)])
		return nil
	case 6:
		t.set(id, "name", q, []byte([]string{"", "\x00", "none"}[rng.IntN(3)]))
	case 7:
		t.set(a, "id", q, t.value(b, "id", q))
	case 8: // a UID whose assignment was cut off
		t.set(u(41+rng.IntN(9)), "name", q, []byte(fmt.Sprintf("new%d", rng.IntN(3))))
		return nil
	}
	return touched
}

// value returns the value of a cell, nil for none.
func (t *table) value(row, family, qualifier string) []byte {
	t.Helper()
	if row == "" {
		return nil
	}
	rows, err := t.Get(t.Context(), "tsdb-uid", family, [][]byte{[]byte(row)})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		for _, c := range r.Cells {
			if string(c.Qualifier) == qualifier {
				return append([]byte{}, c.Value...)
			}
		}
	}
	return nil
}

// agree checks that every name has a UID that leads back to it, and every UID a name that
// leads back to it, and that the counters are not behind.
func agree(t *testing.T, cells map[string]string) {
	t.Helper()
	for cell, value := range cells {
		var row, family, kind string
		if _, err := fmt.Sscanf(cell, "%q %2s:%s", &row, &family, &kind); err != nil || family != "id" {
			family = "name"
			if _, err := fmt.Sscanf(cell, "%q name:%s", &row, &kind); err != nil {
				t.Fatalf("cell %s is neither of id nor of name: %v", cell, err)
			}
		}
		if row == "\x00" {
			continue
		}
		back := fmt.Sprintf("%s name:%s", value, kind)
		id := value
		if family == "name" {
			back, id = fmt.Sprintf("%s id:%s", value, kind), fmt.Sprintf("%q", row)
		}
		if cells[back] != fmt.Sprintf("%q", row) {
			t.Errorf("%s is %s, but %s is %q", cell, value, back, cells[back])
		}
		var text, counter string
		fmt.Sscanf(id, "%q", &text)
		fmt.Sscanf(cells[`"\x00" id:`+kind], "%q", &counter)
		if encoding.UIDNumber([]byte(counter)) < encoding.UIDNumber([]byte(text)) {
			t.Errorf("%s is %s, but the counter is %q", cell, value, counter)
		}
	}
}

// A table in which no UID leads back to its name is repaired in parts, if the errors do not fit
// into memory. A sound table needs no memory for errors.
func TestRun_muchIsWrong(t *testing.T) {
	tab := newTable(t, embedded(t))
	var lost []store.Mutation
	for n := range 3000 {
		tab.assign(encoding.UIDTagV, fmt.Sprintf("v%d", n))
		lost = append(lost, store.Mutation{
			Kind:      store.DeleteCell,
			Row:       []byte(u(n + 1)),
			Family:    "name",
			Qualifier: []byte("tagv"),
		})
	}
	want := tab.cells()
	if err := tab.Apply(t.Context(), "tsdb-uid", lost); err != nil {
		t.Fatal(err)
	}
	parts := 0
	r := tab.check(fix, func(c *uidcheck.Config) {
		c.Bytes = 100_000
		c.Progress = func(line string) {
			if len(line) > 20 && line[:20] == "much is wrong: the t" {
				parts++
			}
		}
	})
	diff := cmp.Diff(want, tab.cells())
	if diff != "" || r.Errors != 3000 || r.Repaired != 3000 || r.Names[encoding.UIDTagV] != 3000 || parts < 5 {
		t.Errorf("%+v in %d parts: %.500s", r, parts, diff)
	}
	if _, err := tab.run(func(c *uidcheck.Config) { c.Bytes = 1 }); err != nil {
		t.Errorf("a sound table with 1 byte of memory: got %v, want no error", err)
	}
}
