package pebble

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// podRow is the key of a series-hour with the tags host (1), pod (2) and zone (3).
func podRow(hour, host, pod, zone int) []byte {
	key := binary.BigEndian.AppendUint32([]byte{0, 0, 1}, uint32(1767225600+3600*hour))
	for i, v := range []int{host, pod, zone} {
		key = append(key, 0, 0, byte(i+1), byte(v>>16), byte(v>>8), byte(v))
	}
	return key
}

// wantTag is a pattern for values of a tag.
func wantTag(tagk int, values ...int) store.Want {
	w := store.Want{Name: []byte{0, 0, byte(tagk)}}
	for _, v := range values {
		w.Values = append(w.Values, []byte{byte(v >> 16), byte(v >> 8), byte(v)})
	}
	return w
}

func podPattern(wants ...store.Want) *store.KeyPattern {
	return &store.KeyPattern{Head: 7, NameLen: 3, ValueLen: 3, Wants: wants}
}

// elementsLaw is a store that is written to, and read with and without sets of elements.
type elementsLaw struct {
	t     *testing.T
	rng   *rand.Rand
	files *vfs.MemFS
	s     *Store
}

// layouts are what a store may be opened with: its own layout, none, as a version without sets,
// or that of a table with salts.
func (l *elementsLaw) open() {
	o := Options{FS: l.files, MemTableBytes: 256 << 10, IdleFlush: -1, Grouping: hourly, Logger: quiet()}
	switch l.rng.IntN(6) {
	case 0:
		o.Grouping = nil
	case 1:
		salted := encoding.DefaultSchema()
		salted.SaltWidth = 1
		o.Grouping = salted.RowHours()
	}
	var err error
	if l.s, err = Open("data", o); err != nil {
		l.t.Fatal(err)
	}
}

// row draws the key of a row: of few series, so that their cells lie in several tables, or of
// many, so that blocks have different elements; or one that is no series.
func (l *elementsLaw) row() []byte {
	switch l.rng.IntN(40) {
	case 0:
		return podRow(l.rng.IntN(3), 1, 2, 3)[:1+l.rng.IntN(24)]
	case 1:
		return append(podRow(0, 1, 2, 3), byte(l.rng.IntN(2)))
	}
	most := 6
	if l.rng.IntN(3) > 0 {
		most = 2000
	}
	pod := l.rng.IntN(most)
	return podRow(l.rng.IntN(3), pod%20, pod, pod%7)
}

// write applies some mutations of a kind.
func (l *elementsLaw) write() {
	var ms []store.Mutation
	kind := store.MutationKind(l.rng.IntN(4))
	for range 1 + l.rng.IntN(300) {
		value := make([]byte, l.rng.IntN(300))
		for i := range value {
			value[i] = byte(l.rng.Uint32())
		}
		m := store.Mutation{Kind: kind, Row: l.row(), Family: "t", Qualifier: []byte{byte(l.rng.IntN(2))}, Value: value}
		if kind == store.DeleteCell || kind == store.DeleteRow {
			m.Value = nil
		}
		if kind == store.DeleteRow {
			m.Qualifier = nil
		}
		ms = append(ms, m)
	}
	if err := l.s.Apply(l.t.Context(), "tsdb", ms); err != nil {
		l.t.Fatal(err)
	}
}

// step changes the store, or the state that it is in.
func (l *elementsLaw) step() (did string) {
	switch l.rng.IntN(12) {
	case 0:
		if err := l.s.Close(); err != nil {
			l.t.Fatal(err)
		}
		l.open()
		return "reopen"
	case 1:
		left := l.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: l.rng.IntN(101), RNG: l.rng})
		if err := l.s.Close(); err != nil {
			l.t.Fatal(err)
		}
		l.files = left
		l.open()
		return "crash"
	case 2, 3:
		if err := l.s.Flush(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
		return "flush"
	case 4:
		if err := l.s.db.Compact(l.t.Context(), []byte("tsdb\x00\x00"), []byte("tsdb\x01\x00"), false); err != nil {
			l.t.Fatal(err)
		}
		return "compact"
	default:
		l.write()
		return "write"
	}
}

// cellSeed is the seed of hashCells.
var cellSeed = maphash.MakeSeed()

// hashCells hashes qualifiers, values and times of a row's cells.
func hashCells(cells []store.Cell) uint64 {
	var h maphash.Hash
	h.SetSeed(cellSeed)
	for _, c := range cells {
		maphash.WriteComparable(&h, c.Timestamp)
		maphash.WriteComparable(&h, len(c.Value))
		h.Write(c.Qualifier)
		h.Write(c.Value)
	}
	return h.Sum64()
}

// check compares what scans with patterns return with the rows of a scan of all that match.
func (l *elementsLaw) check() error {
	rows := map[string]uint64{} // by key, a hash of its cells
	var keys []string
	for r, err := range store.Rows(l.t.Context(), l.s, store.Scan{Table: "tsdb"}) {
		if err != nil {
			return err
		}
		keys = append(keys, string(r.Key))
		rows[string(r.Key)] = hashCells(r.Cells)
	}
	for range 8 {
		pod := l.rng.IntN(8)
		if l.rng.IntN(2) > 0 {
			pod = l.rng.IntN(2000)
		}
		p := podPattern(wantTag(2, pod))
		switch l.rng.IntN(5) {
		case 0:
			p = podPattern(wantTag(1, pod%20), wantTag(2, pod))
		case 1:
			p = podPattern(wantTag(2, pod, pod+1, pod+20), wantTag(3))
		case 2:
			p = podPattern(wantTag(1, pod%20), wantTag(3, pod%7))
			p.Exact = true
		}
		filter := store.RowFilter{Pattern: p}
		if l.rng.IntN(2) > 0 {
			filter.Ranges = []store.KeyRange{
				{Start: podRow(0, 3, 0, 0), Stop: podRow(0, 7, 0, 0)},
				{Start: podRow(1, 0, 0, 0)},
			}
		}

		var want []string
		for _, k := range keys {
			if filter.Matches([]byte(k)) {
				want = append(want, k)
			}
		}
		for r, err := range store.Rows(l.t.Context(), l.s, store.Scan{Table: "tsdb", Filter: filter}) {
			if err != nil {
				return fmt.Errorf("%+v: %w", *p, err)
			}
			if len(want) == 0 || want[0] != string(r.Key) {
				return fmt.Errorf("%+v: row %x, want %x", *p, r.Key, want)
			}
			if hashCells(r.Cells) != rows[want[0]] {
				return fmt.Errorf("%+v: row %x has other cells than in a scan of all rows: %+v", *p, r.Key, r.Cells)
			}
			want = want[1:]
		}
		if len(want) > 0 {
			return fmt.Errorf("%+v: rows are missing: %x", *p, want)
		}
	}
	return nil
}

// A scan that skips blocks returns what a scan of all rows does, whatever is written, deleted,
// flushed and compacted, after crashes, and next to tables without sets or of other layouts.
func TestElements_law(t *testing.T) {
	seed := seedtest.Of(t)
	rounds := 3
	if *soak {
		rounds = 300
	}
	for n := range rounds {
		l := &elementsLaw{t: t, rng: rand.New(rand.NewPCG(seed, uint64(n))), files: vfs.NewCrashableMem()}
		l.open()
		create(t, l.s)
		for i := range 50 {
			did := l.step()
			if err := l.check(); err != nil {
				t.Fatalf("round %d, step %d, after %s: %v", n, i, did, err)
			}
		}
		if err := l.s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// fillPods puts a cell into a row of each of many pods in three hours, and flushes them.
func fillPods(t *testing.T, s *Store, pods int) {
	t.Helper()
	for hour := range 3 {
		var ms []store.Mutation
		for pod := range pods {
			ms = append(ms, store.Mutation{
				Kind:      store.Put,
				Row:       podRow(hour, pod%50, pod, pod%7),
				Family:    "t",
				Qualifier: []byte("q"),
				Value:     []byte("some value"),
			})
		}
		apply(t, s, ms...)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// lookedAt scans with a pattern and returns how many rows there are and how many were looked at.
func lookedAt(t *testing.T, s *Store, p *store.KeyPattern) (rows int, looked int64) {
	t.Helper()
	sc, err := s.Scan(t.Context(), store.Scan{Table: "tsdb", Filter: store.RowFilter{Pattern: p}})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	for {
		got, err := sc.Next()
		if err != nil {
			return rows, sc.Stats().RowsScanned
		}
		rows += len(got)
	}
}

// One pod of many is found without looking at the rows of most others, at once and after a start.
func TestElements_skip(t *testing.T) {
	files := vfs.NewMem()
	s := openMem(t, Options{FS: files, Grouping: hourly, IdleFlush: -1})
	create(t, s)
	const pods = 10_000
	fillPods(t, s, pods)
	for range 2 {
		for _, pod := range []int{0, 4711, 9999} {
			if rows, looked := lookedAt(t, s, podPattern(wantTag(2, pod))); rows != 3 || looked > 3*pods/5 {
				t.Errorf("pod %d: %d rows, %d looked at, want 3 and at most a fifth of all", pod, rows, looked)
			}
		}
		if rows, looked := lookedAt(t, s, podPattern(wantTag(2, pods))); rows != 0 || looked > 3*pods/5 {
			t.Errorf("no pod: %d rows, %d looked at, want none and at most a fifth of all", rows, looked)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openMem(t, Options{FS: files, Grouping: hourly, IdleFlush: -1})
	}
}

// A deletion in a table of its own counts: the blocks that hold it are not skipped.
func TestElements_deletion(t *testing.T) {
	s := openMem(t, Options{FS: vfs.NewMem(), Grouping: hourly, IdleFlush: -1})
	create(t, s)
	fillPods(t, s, 5000)
	if err := s.db.Compact(t.Context(), []byte("tsdb\x00\x00"), []byte("tsdb\x01\x00"), false); err != nil {
		t.Fatal(err)
	}
	var gone []store.Mutation
	for pod := 0; pod < 5000; pod += 2 {
		kind := store.DeleteCell
		if pod%4 == 0 {
			kind = store.DeleteRow
		}
		gone = append(gone, store.Mutation{
			Kind:      kind,
			Row:       podRow(1, pod%50, pod, pod%7),
			Family:    "t",
			Qualifier: []byte("q"),
		})
	}
	apply(t, s, gone...)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for pod := 0; pod < 5000; pod += 97 {
		if rows, _ := lookedAt(t, s, podPattern(wantTag(2, pod))); rows != 2+pod%2 {
			t.Errorf("pod %d: %d rows, want %d", pod, rows, 2+pod%2)
		}
	}
}

// addRow adds a cell of a row to a collector.
func addRow(t *testing.T, c *elementCollector, table string, row []byte) {
	t.Helper()
	key := pebble.MakeInternalKey(appendKey(nil, table, row, "t", []byte("q")), 1, pebble.InternalKeyKindSet)
	if err := c.AddPointKey(key, nil); err != nil {
		t.Fatal(err)
	}
}

// finish returns the set of a collector's block.
func finish(t *testing.T, c *elementCollector) []byte {
	t.Helper()
	set, err := c.FinishDataBlock(nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func intersects(t *testing.T, p *store.KeyPattern, set []byte) bool {
	t.Helper()
	ok, err := newElementFilter(layoutOf(hourly), p).Intersects(set)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// Each block has a set of its own, with all elements of its rows, also those that the row before
// has, and hardly any others.
func TestElements_sets(t *testing.T) {
	c := newElementCollector(layoutOf(hourly))
	wrong := 0
	for block := range 20 {
		// In every other block rows of tables with names of this length and another, and no whole
		// elements. The other blocks begin with elements of the block before.
		others := block%2 == 0
		if others {
			addRow(t, c, "tsdc", podRow(0, 7, 900_000+block, 4))
			addRow(t, c, "tsdb-uid", podRow(0, 7, 900_000+block, 5))
			addRow(t, c, "tsdb-uid", []byte("a name of some length"))
		}
		for i := range 500 {
			addRow(t, c, "tsdb", podRow(0, 7, block*500+i, 2))
		}
		set := finish(t, c)
		for i := range 500 {
			if !intersects(t, podPattern(wantTag(1, 7), wantTag(2, block*500+i), wantTag(3, 2)), set) {
				t.Fatalf("block %d: pod %d is not in its set", block, block*500+i)
			}
			if intersects(t, podPattern(wantTag(2, 100_000+block*500+i)), set) {
				wrong++
			}
		}
		if others && (!intersects(t, podPattern(wantTag(2, 900_000+block), wantTag(3, 4)), set) ||
			!intersects(t, podPattern(wantTag(2, 900_000+block), wantTag(3, 5)), set)) {
			t.Fatalf("block %d: elements of other tables are not in its set", block)
		}
		if intersects(t, podPattern(wantTag(1, 8)), set) && intersects(t, podPattern(wantTag(1, 9)), set) {
			t.Fatalf("block %d: two hosts that it does not have are in its set", block)
		}
	}
	if wrong > 50 {
		t.Errorf("%d of 10000 pods are in a set that they are not of, want about 11", wrong)
	}
}

// An element of a longer row of an earlier block, where the row before has none, is an element of this block.
func TestElements_longerThanBefore(t *testing.T) {
	c := newElementCollector(elementLayout{head: 2, width: 3})
	for _, row := range []string{"hhAAAEEEFFF", "hh"} {
		addRow(t, c, "t", []byte(row))
	}
	finish(t, c)
	for _, row := range []string{"hhBBB", "hhCCCDDDFFF"} {
		addRow(t, c, "t", []byte(row))
	}
	if n := len(c.hashes.all); n != 4 {
		t.Errorf("the block has %d elements, want B, C, D and F", n)
	}
}

// Whatever rows of whichever tables follow each other, the set of a block is that of the elements of all rows that are
// whole, each once. Elements are few, so that parts of two in a row look like one in a row of another table.
func TestElements_mixedTables(t *testing.T) {
	r := seedtest.Rand(t)
	l := elementLayout{head: 2, width: 3}
	c := newElementCollector(l)
	for block := range 60 {
		var hashes []uint64
		seen := map[string]bool{}
		for range 300 {
			row := make([]byte, r.IntN(12))
			for i := range row {
				row[i] = byte(r.IntN(8))
			}
			addRow(t, c, strings.Repeat("t", 1+r.IntN(6)), row)
			if len(row) < l.head || (len(row)-l.head)%l.width != 0 {
				continue
			}
			for e := range slices.Chunk(row[l.head:], l.width) {
				if !seen[string(e)] {
					seen[string(e)] = true
					hashes = append(hashes, hashElement(e))
				}
			}
		}
		if got, want := finish(t, c), l.appendSet(nil, hashes); !bytes.Equal(got, want) {
			t.Fatalf("block %d: set %x, want %x, of %d elements", block, got, want, len(hashes))
		}
	}
}

// What says nothing of a block does not exclude it: no set, one of another layout, and too many
// elements. An empty set excludes it.
func TestElements_unknown(t *testing.T) {
	p := podPattern(wantTag(2, 5))
	c := newElementCollector(layoutOf(hourly))
	if intersects(t, p, finish(t, c)) {
		t.Error("a block without elements may hold one")
	}
	if !intersects(t, p, nil) {
		t.Error("a block without a set is excluded")
	}
	addRow(t, c, "tsdb", podRow(0, 1, 2, 3))
	set := finish(t, c)
	if intersects(t, p, set) {
		t.Error("pod 5 is in a set without it")
	}
	set[0]++
	if !intersects(t, p, set) {
		t.Error("a set of keys with another head excludes a block")
	}

	for i := range maxElements + 10 {
		addRow(t, c, "tsdb", podRow(0, 1, 1000+i, 3))
	}
	if set := finish(t, c); !intersects(t, podPattern(wantTag(2, 1000+maxElements+9)), set) {
		t.Error("the last of too many elements is not in the set")
	}
	addRow(t, c, "tsdb", podRow(0, 1, 2, 3))
	if set := finish(t, c); intersects(t, p, set) || !intersects(t, podPattern(wantTag(2, 2)), set) {
		t.Error("the set behind one of too many elements is not its block's")
	}
}

// Patterns that a set does not answer have no filter.
func TestElements_noFilter(t *testing.T) {
	l := layoutOf(hourly)
	many := make([]int, maxWantedElements+1)
	for i := range many {
		many[i] = i
	}
	for name, f := range map[string]*elementFilter{
		"no pattern":      newElementFilter(l, nil),
		"no want":         newElementFilter(l, podPattern()),
		"any value":       newElementFilter(l, podPattern(wantTag(2))),
		"too many values": newElementFilter(l, podPattern(wantTag(2, many...))),
		"another head": newElementFilter(l,
			&store.KeyPattern{Head: 8, NameLen: 3, ValueLen: 3, Wants: []store.Want{wantTag(2, 5)}}),
		"another width": newElementFilter(l,
			&store.KeyPattern{Head: 7, NameLen: 3, ValueLen: 4, Wants: []store.Want{wantTag(2, 5)}}),
		"unknown elements": newElementFilter(layoutOf(ungrouped{}), podPattern(wantTag(2, 5))),
		"no elements": newElementFilter(layoutOf(ungrouped{}),
			&store.KeyPattern{Wants: []store.Want{{Values: [][]byte{{}}}}}),
	} {
		if f != nil {
			t.Errorf("%s: there is a filter", name)
		}
	}
	if newElementFilter(l, podPattern(wantTag(2, many[1:]...))) == nil {
		t.Errorf("%d values: there is no filter", maxWantedElements)
	}
}

// elementsAt is a Grouping of rows with elements somewhere.
type elementsAt struct {
	ungrouped
	elementLayout
}

func (g elementsAt) Elements() (head, width int) { return g.head, g.width }

// Of a layout that the two bytes of a set cannot say, nothing is known.
func TestElements_layouts(t *testing.T) {
	for l, ok := range map[elementLayout]bool{
		{0, 1}:     true,
		{255, 255}: true,
		{7, 0}:     false,
		{7, -1}:    false,
		{7, 256}:   false,
		{-1, 6}:    false,
		{256, 6}:   false,
	} {
		want := elementLayout{}
		if ok {
			want = l
		}
		if got := layoutOf(elementsAt{elementLayout: l}); got != want {
			t.Errorf("%+v: got %+v, want %+v", l, got, want)
		}
	}
}

// The bytes of a set lie in tables.
func TestFrozenElements(t *testing.T) {
	if elementsName != "downpour.elements.v1" {
		t.Errorf("name %q", elementsName)
	}
	c := newElementCollector(layoutOf(hourly))
	row, err := hex.DecodeString("0000014d576550000001000002")
	if err != nil {
		t.Fatal(err)
	}
	addRow(t, c, "tsdb", row)
	set := finish(t, c)
	if got, want := hex.EncodeToString(set), "07065555"; got != want {
		t.Errorf("set %s, want %s", got, want)
	}
	addRow(t, c, "tsdb", podRow(0, 1, 2, 3))
	if got, want := hex.EncodeToString(finish(t, c)), "070613e9f34a6d2d"; got != want {
		t.Errorf("set of three elements %s, want %s", got, want)
	}
	for n, want := range map[int]uint64{8: 0x46e58edb5713a811, 16: 0x630ae60fac1f4da5, 20: 0x90459f08bd5151b7} {
		if got := hashElement(bytes.Repeat([]byte{1, 2, 3, 4, 5}, 4)[:n]); got != want {
			t.Errorf("hash of %d bytes %#x, want %#x", n, got, want)
		}
	}
}
