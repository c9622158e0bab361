package fsck_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/extra/tools/fsck"
	"downpour/gateway/extra/tools/fsck/damage"
)

var schema = encoding.DefaultSchema()

// series returns the series of metric n with tagk 1 = tagv n.
func series(n byte) damage.Series {
	tags := schema.AppendTags(nil, []encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, 0, n}}})
	return damage.Series{Metric: encoding.UID{0, 0, n}, Tags: tags}
}

// draw draws n damaged rows of two series, and of series 9, whose names are missing.
func draw(seed uint64, n int) []damage.Row {
	return damage.Draw(seed, n, damage.Config{
		Schema:  schema,
		Series:  []damage.Series{series(1), series(2)},
		Orphans: []damage.Series{series(9)},
		First:   1356998400,
		BadKeys: true,
	})
}

func factsOf(r *damage.Row) (f fsck.Facts) {
	if r.Orphan {
		f.Orphan = "metric 000009"
	}
	return f
}

// apply returns the row with the puts and deletions of a result.
func apply(row fsck.Row, r *fsck.Result) fsck.Row {
	after := fsck.Row{Key: row.Key}
	gone := func(c fsck.Cell, by []fsck.Cell) bool {
		return slices.ContainsFunc(by, func(x fsck.Cell) bool { return bytes.Equal(x.Qualifier, c.Qualifier) })
	}
	for _, c := range row.Cells {
		if !gone(c, r.Delete) && !gone(c, r.Put) {
			after.Cells = append(after.Cells, c)
		}
	}
	for _, c := range r.Put {
		after.Cells = append(after.Cells, fsck.Cell{
			Qualifier: bytes.Clone(c.Qualifier),
			Value:     bytes.Clone(c.Value),
			Timestamp: c.Timestamp,
		})
	}
	slices.SortFunc(after.Cells, func(a, b fsck.Cell) int { return bytes.Compare(a.Qualifier, b.Qualifier) })
	return after
}

// optionSets returns all repairs together, and random subsets of them, with the oldest value
// kept and with the newest.
func optionSets(rng *rand.Rand) (all []fsck.Options) {
	for _, newest := range []bool{false, true} {
		o := fsck.Options{LastWriteWins: newest}
		o.All()
		all = append(all, o)
		for range 6 {
			b := func() bool { return rng.IntN(2) == 0 }
			all = append(all, fsck.Options{
				Fix:                  true,
				Compact:              b(),
				DeleteBadRows:        b(),
				DeleteOrphans:        b(),
				DeleteUnknownColumns: b(),
				DeleteBadCompacts:    b(),
				DeleteBadValues:      b(),
				ResolveDuplicates:    b(),
				LastWriteWins:        newest,
			})
		}
	}
	return all
}

// describe prints a row for a failure.
func describe(r *damage.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "row % X, %q\n", r.Key, r.Damage)
	writeCells(&b, r.Cells)
	return b.String()
}

func writeCells(b *strings.Builder, cells []fsck.Cell) {
	for _, c := range cells {
		fmt.Fprintf(b, "  % X = % X @%d\n", c.Qualifier, c.Value, c.Timestamp)
	}
}

// With any options, a repair leaves nothing that the options allow to be repaired, loses no good
// point, keeps one of several values of a time, and does not change what a query answers.
func TestCheck_repairs(t *testing.T) {
	const rows = 400
	rng := seedtest.Rand(t)
	for range 3 {
		checker := fsck.Checker{Schema: schema}
		drawn := draw(rng.Uint64(), rows)
		damaged := 0
		for i := range drawn {
			if tsdbErrors(drawn[i].Cells) > 0 {
				damaged++
			}
		}
		if damaged < rows/4 {
			t.Errorf("OpenTSDB's tool would find %d damaged rows of %d, want at least a quarter", damaged, rows)
		}
		for i := range drawn {
			for _, o := range optionSets(rng) {
				checker.Options = o
				if err := checkRepair(&checker, &drawn[i]); err != nil {
					t.Fatalf("row %d, options %+v: %v\n%s", i, o, err, describe(&drawn[i]))
				}
			}
		}
	}
}

func checkRepair(checker *fsck.Checker, r *damage.Row) error {
	facts := factsOf(r)
	result := checker.Check(r.Row, facts)
	if err := consistent(r, result); err != nil {
		return err
	}
	after := apply(r.Row, result)

	gone := r.BadKey && checker.Options.DeleteBadRows || r.Orphan && checker.Options.DeleteOrphans
	if gone != (len(after.Cells) == 0) {
		return fmt.Errorf("%d cells are left, want none: %t", len(after.Cells), gone)
	}
	if gone {
		return nil
	}

	left := readable(after.Cells)
	for _, p := range r.Good {
		if !slices.Contains(left[p.OffsetMS], p.Value) {
			return fmt.Errorf("the good point at %d ms, %v, is gone; left:\n%s", p.OffsetMS, p.Value, text(after))
		}
	}
	for offset, values := range r.Doubled {
		if !slices.ContainsFunc(values, func(v encoding.Value) bool { return slices.Contains(left[offset], v) }) {
			return fmt.Errorf("of the values at %d ms none is left:\n%s", offset, text(after))
		}
	}
	if r.BadKey || r.Orphan {
		return nil
	}

	again := checker.Check(after, facts)
	if len(again.Put)+len(again.Delete) > 0 {
		return fmt.Errorf("the repaired row is repaired again: %+v\n%s", again.Findings, text(after))
	}
	for _, f := range again.Findings {
		if f.Planned || checker.Options.DeleteBadRows && checker.Options == all(checker.Options) && f.Kind.IsError() {
			return fmt.Errorf("found after the repair: %+v\n%s", f, text(after))
		}
	}
	return sameAnswer(checker, r, after)
}

// text prints the cells of a row.
func text(r fsck.Row) string {
	var b strings.Builder
	writeCells(&b, r.Cells)
	return b.String()
}

func all(o fsck.Options) fsck.Options {
	o.All()
	return o
}

// consistent checks that a result can be carried out: it deletes only cells that are there and
// that it does not write, writes no cell twice, and none with a timestamp older than the cell's.
func consistent(r *damage.Row, result *fsck.Result) error {
	for _, d := range result.Delete {
		i := slices.IndexFunc(r.Cells, func(c fsck.Cell) bool { return sameCell(c, d) })
		written := slices.ContainsFunc(result.Put, func(p fsck.Cell) bool {
			return bytes.Equal(p.Qualifier, d.Qualifier)
		})
		if i < 0 || written {
			return fmt.Errorf("deletes % X, which is not there or is written", d.Qualifier)
		}
	}
	for i, p := range result.Put {
		for _, c := range r.Cells {
			if bytes.Equal(c.Qualifier, p.Qualifier) && p.Timestamp < c.Timestamp {
				return fmt.Errorf("writes % X at %d, behind %d", p.Qualifier, p.Timestamp, c.Timestamp)
			}
		}
		if slices.ContainsFunc(result.Put[i+1:], func(o fsck.Cell) bool {
			return bytes.Equal(o.Qualifier, p.Qualifier)
		}) {
			return fmt.Errorf("writes % X twice", p.Qualifier)
		}
	}
	for _, f := range result.Findings {
		if f.Planned && (f.Remedy == "" || f.Left != "") {
			return fmt.Errorf("plans %+v", f)
		}
	}
	return nil
}

func sameCell(a, b fsck.Cell) bool {
	return bytes.Equal(a.Qualifier, b.Qualifier) && bytes.Equal(a.Value, b.Value) && a.Timestamp == b.Timestamp
}

// answer returns the points that a query reads from a row, or its error.
func answer(cells []fsck.Cell, newest bool) (points []string, err error) {
	d := encoding.RowDecoder{FixDuplicates: newest}
	d.Reset(1356998400)
	for _, c := range cells {
		if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
			return nil, err
		}
	}
	var p encoding.Points
	if err := d.Finish(&p); err != nil {
		return nil, err
	}
	for i := range p.Len() {
		at, v := p.At(i)
		points = append(points, fmt.Sprint(at, " ", v))
	}
	return points, nil
}

// sameAnswer checks that a query that had an answer before the repair has the same one after it.
// If all repairs are allowed, a query has an answer and OpenTSDB's tool finds no error.
func sameAnswer(checker *fsck.Checker, r *damage.Row, after fsck.Row) error {
	newest := checker.Options.LastWriteWins
	before, failed := answer(r.Cells, newest)
	now, err := answer(after.Cells, newest)
	if err != nil && checker.Options == all(checker.Options) {
		return fmt.Errorf("a query of the repaired row fails: %v", err)
	}
	if checker.Options == all(checker.Options) {
		if n := tsdbErrors(after.Cells); n > 0 {
			return fmt.Errorf("OpenTSDB's tool would find %d errors in the repaired row:\n%s", n, text(after))
		}
	}
	if failed != nil {
		return nil
	}
	if d := cmp.Diff(before, now); d != "" || err != nil {
		return fmt.Errorf("a query answers otherwise: %v\n%s", err, d)
	}
	return nil
}

// tsdbErrors counts the errors that OpenTSDB's tool finds in a row's cells, mistakes of the tool
// included. Source: Fsck.FsckWorker, Internal.extractDataPoints.
func tsdbErrors(cells []fsck.Cell) (n int) {
	at := map[int32]int{}
	for _, c := range cells {
		q, v := c.Qualifier, c.Value
		if len(q) < 2 || len(q)%2 == 1 {
			if len(q) != 3 && len(q) != 5 {
				n++
			}
			continue
		}
		milli := q[0]&0xF0 == 0xF0
		flags := q[len(q)-1]
		width := int(flags&7) + 1

		// A single point.
		if len(q) == 2 && !milli || len(q) == 4 && milli {
			p, _, _ := encoding.ParseQualifier(q)
			at[p.OffsetMS]++
			switch {
			case flags&8 == 0 && len(v) != width:
				n++
			case flags&8 != 0 && (len(v) != 4 && len(v) != 8 || len(v) != width):
				n++
			}
			continue
		}

		// A compacted cell. One that begins with 05 is taken for an append column.
		if len(q) == 2 || len(v) == 0 || int8(v[len(v)-1]) > 1 || q[0] == 5 {
			n++
			continue
		}
		used, last := 0, int32(-1)
		for left := q; len(left) > 0; {
			w := encoding.QualifierWidth(left[0])
			if len(left) < w {
				n++
				break
			}
			p, _, _ := encoding.ParseQualifier(left)
			if p.OffsetMS < last {
				n++
			}
			at[p.OffsetMS]++
			last = p.OffsetMS
			used += p.Width
			left = left[w:]
		}
		if used != len(v)-1 {
			n++
		}
	}
	for _, times := range at {
		n += times - 1
	}
	return n
}

// readable returns every value that can be read from cells, by time. It accepts as much damage
// as it can and shares no code with the package.
func readable(cells []fsck.Cell) map[int32][]encoding.Value {
	found := map[int32][]encoding.Value{}
	take := func(q encoding.Qualifier, b []byte) {
		if v, err := encoding.ParseValue(q, b); err == nil {
			found[q.OffsetMS] = append(found[q.OffsetMS], v)
		}
	}
	for _, c := range cells {
		if len(c.Qualifier)%2 == 1 {
			if c.Qualifier[0] == 5 {
				for b := c.Value; len(b) > 0; {
					q, rest, err := encoding.ParseQualifier(b)
					if err != nil || len(rest) < q.Width {
						break
					}
					take(q, rest[:q.Width])
					b = rest[q.Width:]
				}
			}
			continue
		}

		q, rest, err := encoding.ParseQualifier(c.Qualifier)
		if err == nil && len(rest) == 0 {
			if bytes.HasPrefix(c.Value, []byte{255, 255, 255, 255}) && q.Float && q.Width == 4 && len(c.Value) == 8 {
				take(q, c.Value[4:])
			}
			take(q, c.Value)
			continue
		}
		value := c.Value
		for left := c.Qualifier; len(left) > 1; {
			q, _, _ := encoding.ParseQualifier(left)
			if len(value) < q.Width || len(left) < encoding.QualifierWidth(left[0]) {
				break
			}
			if q.OffsetMS < encoding.RowSeconds*1000 {
				take(q, value[:q.Width])
			}
			left, value = left[encoding.QualifierWidth(left[0]):], value[q.Width:]
		}
	}
	return found
}

// The checker accepts any cells without a panic, its result can be carried out, and it repairs
// nothing in a row that it has repaired.
func FuzzCheck(f *testing.F) {
	for _, r := range draw(7, 200) {
		var b []byte
		for _, c := range r.Cells {
			b = append(append(append(b, byte(len(c.Qualifier)), byte(len(c.Value))), c.Qualifier...), c.Value...)
		}
		f.Add(b, uint16(511)) // with all options
	}
	f.Fuzz(func(t *testing.T, b []byte, flags uint16) {
		row := fsck.Row{Key: schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, 1356998400, series(1).Tags)}
		cut := func(n byte) []byte {
			k := min(int(n), len(b))
			out := b[:k]
			b = b[k:]
			return out
		}
		for at := int64(1); len(b) > 1; at++ {
			nq, nv := b[0], b[1]
			b = b[2:]
			row.Cells = append(row.Cells, fsck.Cell{Qualifier: cut(nq), Value: cut(nv), Timestamp: at % 7})
		}
		byQualifier := func(a, b fsck.Cell) int { return bytes.Compare(a.Qualifier, b.Qualifier) }
		slices.SortStableFunc(row.Cells, byQualifier)
		row.Cells = slices.CompactFunc(row.Cells, func(a, b fsck.Cell) bool {
			return bytes.Equal(a.Qualifier, b.Qualifier)
		})

		bit := func(n int) bool { return flags>>n&1 == 1 }
		o := fsck.Options{
			Fix:                  bit(0),
			Compact:              bit(1),
			DeleteUnknownColumns: bit(2),
			DeleteBadCompacts:    bit(3),
			DeleteBadValues:      bit(4),
			ResolveDuplicates:    bit(5),
			LastWriteWins:        bit(6),
		}
		c := fsck.Checker{Schema: schema, Options: o}
		result := c.Check(row, fsck.Facts{})
		if err := consistent(&damage.Row{Row: row}, result); err != nil {
			t.Fatal(err)
		}
		after := apply(row, result)
		if again := c.Check(after, fsck.Facts{}); len(again.Put)+len(again.Delete) > 0 {
			t.Fatalf("repaired again: %+v", again)
		}
	})
}

// A repair of integers that are longer than they have to be, ended between its put and its deletion, leaves a
// row whose queries fail; the next run with the same options ends it.
func TestCheck_cutRepair(t *testing.T) {
	long := func(v byte) string { return "\x00\x00\x00\x00\x00\x00\x00" + string(v) }
	cell := func(q, v string) fsck.Cell {
		return fsck.Cell{Qualifier: []byte(q), Value: []byte(v), Timestamp: 1000}
	}
	key := schema.AppendRowKey(nil, series(1).Metric, 1356998400, series(1).Tags)
	for name, cells := range map[string][]fsck.Cell{
		"single":    {cell("\x00\x07", long(5))},
		"compacted": {cell("\x00\x07\x00\x17", long(5)+long(6)+"\x00")},
	} {
		t.Run(name, func(t *testing.T) {
			c := fsck.Checker{Schema: schema, Options: fsck.Options{Fix: true}}
			row := fsck.Row{Key: key, Cells: cells}
			whole := apply(row, c.Check(row, fsck.Facts{}))

			r := c.Check(row, fsck.Facts{})
			if len(r.Put) == 0 || len(r.Delete) == 0 {
				t.Fatalf("got %d puts and %d deletions, want a repair of both", len(r.Put), len(r.Delete))
			}
			r.Delete = nil
			half := apply(row, r)
			var d encoding.RowDecoder
			d.Reset(1356998400)
			for _, x := range half.Cells {
				if err := d.Add(x.Qualifier, x.Value, x.Timestamp); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Finish(new(encoding.Points)); err == nil {
				t.Fatal("half a repair can be read, so nothing is shown")
			}

			if diff := cmp.Diff(whole, apply(half, c.Check(half, fsck.Facts{}))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
