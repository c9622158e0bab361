package hbase

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// versions is a row of an HBase table as far as timestamps go: every version of a cell, and the
// deletions, which hide versions of their timestamp or an earlier one, even if those are written
// later. It calls between before each step of a replacement.
type versions struct {
	clock   int64
	cells   map[string][]version
	deleted map[string]int64 // by column; "" is the whole row
	between func(step int)
	step    int
	// unconditional is what servers before HBase 2.4 are.
	unconditional bool
}

type version struct {
	at    int64
	value string
}

func newVersions() *versions {
	return &versions{clock: 1000, cells: map[string][]version{}, deleted: map[string]int64{}}
}

// put writes with a timestamp, 0 for the clock.
func (v *versions) put(column, value string, at int64) {
	if at == 0 {
		at = v.clock
	}
	v.cells[column] = append(v.cells[column], version{at, value})
}

func (v *versions) remove(column string, at int64) {
	if at == 0 {
		at = v.clock
	}
	v.deleted[column] = max(v.deleted[column], at)
}

// get returns the newest version of a column that no deletion hides; of equal timestamps
// the one that came last.
func (v *versions) get(column string) (newest version, ok bool) {
	for _, x := range v.cells[column] {
		if x.at > max(v.deleted[column], v.deleted[""]) && x.at >= newest.at {
			newest, ok = x, true
		}
	}
	return newest, ok
}

func (v *versions) row() (r store.Row) {
	r.Key = []byte("row")
	for column := range v.cells {
		if x, ok := v.get(column); ok {
			r.Cells = append(r.Cells,
				store.Cell{Family: []byte("t"), Qualifier: []byte(column), Value: []byte(x.value), Timestamp: x.at})
		}
	}
	slices.SortFunc(r.Cells, func(a, b store.Cell) int { return bytes.Compare(a.Qualifier, b.Qualifier) })
	return r
}

func (v *versions) hook() {
	v.step++
	if v.between != nil {
		v.between(v.step)
	}
}

// moment is all the time that passes: the steps themselves take none, which is the worst
// case for timestamps.
func (v *versions) moment(context.Context) error {
	v.hook()
	v.clock++
	return nil
}

func (v *versions) Get(context.Context, string, string, [][]byte) ([]store.Row, error) {
	v.hook()
	if r := v.row(); len(r.Cells) > 0 {
		return []store.Row{r}, nil
	}
	return nil, nil
}

func (v *versions) Apply(_ context.Context, _ string, mutations []store.Mutation) error {
	v.hook()
	for _, m := range mutations {
		if m.Kind == store.Put {
			v.put(string(m.Qualifier), string(m.Value), m.Timestamp)
		} else {
			v.remove(string(m.Qualifier), m.Timestamp)
		}
	}
	return nil
}

func (v *versions) ChangeIf(ctx context.Context, table, _ string, changes []store.ConditionalChange) ([]bool, error) {
	v.hook()
	if v.unconditional {
		return nil, errUnconditional
	}
	held := make([]bool, len(changes))
	for i, c := range changes {
		cells := v.row().Cells
		held[i] = len(cells) >= c.If.Columns &&
			!slices.ContainsFunc(cells, func(x store.Cell) bool { return !slices.Contains(c.If.Stamps, x.Timestamp) })
		for _, x := range c.Put {
			if held[i] {
				v.put(string(x.Qualifier), string(x.Value), x.Timestamp)
			}
		}
	}
	return held, nil
}

// text prints what is visible.
func (v *versions) text() string {
	var b strings.Builder
	for _, c := range v.row().Cells {
		fmt.Fprintf(&b, "%s=%s@%d ", c.Qualifier, c.Value, c.Timestamp)
	}
	return b.String()
}

// A row compaction that has read the row puts its cell before what it has read is deleted: the row counts
// as changed, and is done once that cell was read, too. That cell may have the column of one that is deleted. A
// point that comes late is no such cell.
func TestReplace_compacted(t *testing.T) {
	ctx := t.Context()
	for name, tc := range map[string]struct {
		column string
		at     int64
		want   store.Outcome
	}{"compaction": {"ab", 990, store.Changed}, "compaction, the column of a part": {"a", 990, store.Changed},
		"late point": {"ab", 0, store.Replaced}} {
		v := newVersions()
		v.put("a", "a", 980)
		v.put("b", "b", 990)
		v.between = func(step int) {
			if step == 4 { // after the moment and two readings, before the deletion
				v.put(tc.column, "ab", tc.at)
			}
		}
		read := v.row()
		r := &replacer{
			rows:     v,
			changes:  []store.Replacement{{Read: read, Delete: read.Cells[:1]}},
			outcomes: make([]store.Outcome, 1),
			moment:   v.moment,
		}
		if err := r.run(ctx); err != nil || r.outcomes[0] != tc.want {
			t.Errorf("%s: %v, %v, want %v; the row has %s", name, r.outcomes[0], err, tc.want, v.text())
		}

		v.between, read = nil, v.row()
		r = &replacer{
			rows:     v,
			changes:  []store.Replacement{{Read: read, Delete: read.Cells}},
			outcomes: make([]store.Outcome, 1),
			moment:   v.moment,
		}
		if err := r.run(ctx); err != nil || r.outcomes[0] != store.Replaced || v.text() != "" {
			t.Errorf("%s, again: %v, %v, the row has %s", name, r.outcomes[0], err, v.text())
		}
	}
}

// steps records what is put and deleted, by column.
type steps struct {
	*versions
	did string
}

func (s *steps) Apply(ctx context.Context, table string, mutations []store.Mutation) error {
	for _, m := range mutations {
		s.did += fmt.Sprintf("%s%q ", map[store.MutationKind]string{store.Put: "+"}[m.Kind], m.Qualifier)
	}
	s.did += "| "
	return s.versions.Apply(ctx, table, mutations)
}

// A marker of the change is before puts without a condition, and behind them as behind deletions. A row without
// deletions gets none for them.
func TestReplace_markers(t *testing.T) {
	for want, deletes := range map[string]int{
		`"\xff" +"ab" "\xff" | "a" "b" "\xff" | `: 2,
		`"\xff" +"ab" "\xff" | | `:                0,
	} {
		v := &steps{versions: newVersions()}
		v.unconditional = true
		v.put("a", "a", 980)
		v.put("b", "b", 980)
		read := v.row()
		r := &replacer{
			rows: v,
			changes: []store.Replacement{{
				Read:   read,
				Put:    []store.Cell{{Qualifier: []byte("ab"), Value: []byte("ab"), Timestamp: 980}},
				Delete: read.Cells[:deletes],
			}},
			outcomes: make([]store.Outcome, 1),
			moment:   v.moment,
		}
		if err := r.run(t.Context()); err != nil || v.did != want || r.outcomes[0] != store.Replaced {
			t.Errorf("%d deletions: %s, %v, outcome %d, want %s", deletes, v.did, err, r.outcomes[0], want)
		}
	}
}

// failing is a store that cannot change rows on conditions now.
type failing struct{ *versions }

func (f failing) ChangeIf(context.Context, string, string, []store.ConditionalChange) ([]bool, error) {
	return nil, store.ErrUnavailable
}

// What another writer does at a step decides the outcome, as does a cell without a time.
func TestReplace_outcomes(t *testing.T) {
	for name, tc := range map[string]struct {
		at   int // before which step
		does func(v *versions)
		time int64 // of the put
		want store.Outcome
		kept bool // the old cells are
	}{
		"nothing":               {2, func(*versions) {}, 980, store.Replaced, false},
		"a cell without a time": {2, func(*versions) {}, 0, store.Undatable, false},
		"another value":         {2, func(v *versions) { v.put("a", "X", 0) }, 980, store.Changed, false},
		"the same value again":  {2, func(v *versions) { v.put("a", "a", 0) }, 980, store.Changed, false},
		"the same value again, before HBase 2.4": {2, func(v *versions) {
			v.put("a", "a", 0)
			v.unconditional = true
		}, 980, store.Changed, false},
		"another column": {2, func(v *versions) {
			v.remove("a", 0)
			v.put("aa", "a", 980)
		}, 980, store.Changed, true},
		"between reading and put": {3, func(v *versions) { v.put("a", "X", 0) }, 980, store.Changed, false},
		"another job puts the same, next to a column for a moment": {3, func(v *versions) {
			v.put("ab", "ab", 980)
			v.put("x", "x", 0)
			v.between = func(int) { v.remove("x", 0) }
		}, 980, store.Changed, false},
		"a deletion is undone": {6, func(v *versions) { delete(v.deleted, "a") }, 980, store.Changed, false},
	} {
		v := newVersions()
		v.put("a", "a", 980)
		v.put("b", "b", 970)
		v.between = func(step int) {
			if step == tc.at {
				tc.does(v)
			}
		}
		read := v.row()
		r := &replacer{
			rows: v,
			changes: []store.Replacement{{
				Read:   read,
				Put:    []store.Cell{{Qualifier: []byte("ab"), Value: []byte("ab"), Timestamp: tc.time}},
				Delete: read.Cells,
			}},
			outcomes: make([]store.Outcome, 1),
			moment:   v.moment,
		}
		if tc.kept {
			r.changes[0].Delete = nil
		}
		if err := r.run(t.Context()); err != nil || r.outcomes[0] != tc.want {
			t.Errorf("%s: outcome %d, %v, want %d; the row has %s", name, r.outcomes[0], err, tc.want, v.text())
		}
	}
	r := &replacer{rows: failing{newVersions()}, changes: make([]store.Replacement, 1),
		outcomes: make([]store.Outcome, 1), moment: newVersions().moment}
	r.changes[0].Put = []store.Cell{{Timestamp: 1}}
	wantError(t, r.run(t.Context()), store.ErrUnavailable)
}

// Rows may come in any order.
func TestReplace_order(t *testing.T) {
	slowly(t, func(c *cluster) {
		c.KeepVersions("t")
		if err := c.st.Apply(c.ctx, "t", puts("r1", "r2")); err != nil {
			t.Fatal(err)
		}
		var changes []store.Replacement
		for _, row := range must(c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r2"), []byte("r1")})) {
			put := row.Cells[0]
			put.Qualifier = []byte("new")
			changes = append(changes, store.Replacement{Read: row, Put: []store.Cell{put}, Delete: row.Cells})
		}
		got, err := c.st.Replace(c.ctx, "t", "t", changes)
		if err != nil || !slices.Equal(got, []store.Outcome{store.Replaced, store.Replaced}) {
			t.Errorf("outcomes %v, %v, want both replaced", got, err)
		}
		c.mustRead(store.Scan{}, []string{"r1 new v", "r2 new v"})
	})
}

// Whatever another writer does before any step of a replacement, what it has put is there in the
// end, and so is each value that the row had, unless the other writer has removed it or put
// another in its place. What was removed or written over before the put is no part of it, where the server knows
// conditions.
func TestReplace_others(t *testing.T) {
	ctx := t.Context()
	rng := seedtest.Rand(t)
	for range 20_000 {
		v := newVersions()
		v.unconditional = rng.IntN(4) == 0

		all, change := drawReplacement(v, rng)

		// The other writer puts or removes once, before one step, with the clock's timestamp.
		at, what := 1+rng.IntN(6), rng.IntN(4)
		column := string(rune('a' + rng.IntN(len(all)+1)))
		did := ""
		v.between = func(step int) {
			if step != at {
				return
			}
			switch what {
			case 0, 1:
				v.put(column, "X", 0)
				did = "put " + column
			case 2:
				v.remove(column, 0)
				did = "removed " + column
			default:
				v.remove("", 0)
				did = "removed all"
			}
		}

		r := &replacer{
			rows:     v,
			changes:  []store.Replacement{change},
			outcomes: make([]store.Outcome, 1),
			moment:   v.moment,
		}
		if err := r.run(ctx); err != nil {
			t.Fatal(err)
		}
		text := v.text()
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("%s before step %d; %v, outcome %d; the row is now %s: %s",
				did, at, change, r.outcomes[0], text, fmt.Sprintf(format, args...))
		}

		if strings.HasPrefix(did, "put") && !strings.Contains(text, column+"=X") {
			fail("what the other writer has put is lost")
		}
		if did == "removed all" {
			continue
		}
		for _, letter := range all {
			gone := did != "" && column == string(letter)
			there := strings.ContainsRune(values(v.row()), letter)
			if !gone && !there {
				fail("%c is lost", letter)
			}
			if gone && there && at <= putStep && !v.unconditional {
				fail("%c is back", letter)
			}
		}
		if did == "" && r.outcomes[0] == store.Changed {
			fail("the outcome is that the row was changed, but nobody changed it")
		}
	}
}

// drawReplacement gives a row cells a, b, …, each with its own letter. All become the cell "all", or
// the first of them is rewritten in its place.
func drawReplacement(v *versions, rng *rand.Rand) (all string, change store.Replacement) {
	for i := range 1 + rng.IntN(4) {
		name := string(rune('a' + i))
		v.put(name, name, 900+rng.Int64N(101))
		all += name
	}
	if rng.IntN(4) == 0 {
		v.remove("all", 900+rng.Int64N(101)) // an earlier row compaction
	}
	read := v.row()
	change = store.Replacement{
		Read:   read,
		Put:    []store.Cell{{Qualifier: []byte("all"), Value: []byte(all)}},
		Delete: read.Cells,
	}
	if rng.IntN(2) == 0 {
		change.Put[0].Qualifier, change.Put[0].Value, change.Delete = []byte("a"), []byte("a."), nil
	}
	for _, c := range read.Cells {
		change.Put[0].Timestamp = max(change.Put[0].Timestamp, c.Timestamp)
	}
	return all, change
}

// putStep is the step of a replacement in which the new cells are put, behind the moment and a reading.
const putStep = 3

func values(r store.Row) string {
	var b strings.Builder
	for _, c := range r.Cells {
		b.Write(c.Value)
	}
	return b.String()
}

// A row that was deleted does not come back.
func TestReplace_deletedRow(t *testing.T) {
	for n := range 10 {
		v, at := newVersions(), 2+n%5
		v.unconditional = n >= 5
		v.put("a", "a", 900)
		v.put("b", "b", 950)
		read := v.row()
		v.between = func(step int) {
			if step == at {
				v.remove("", 0)
			}
		}
		r := &replacer{
			rows: v,
			changes: []store.Replacement{{
				Read:   read,
				Put:    []store.Cell{{Qualifier: []byte("ab"), Value: []byte("ab"), Timestamp: 950}},
				Delete: read.Cells,
			}},
			outcomes: make([]store.Outcome, 1),
			moment:   v.moment,
		}
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := v.text(); text != "" {
			t.Errorf("deleted before step %d, unconditional %t, but the row is now %s", at, v.unconditional, text)
		}
	}
}
