package compaction

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
)

var orders = flag.Int("orders", 2000, "drawn orders of what happens to a row")

const (
	rowBase = 1_356_998_400
	margin  = 100 // ms
	family  = encoding.FamilyData
)

// errKilled ends a job in the middle.
var errKilled = errors.New("killed")

// written is what the row must answer at one time.
type written struct {
	value encoding.Value
	stamp int64
	// loose is set if the value may be another one, or missing, or a duplicate that differs:
	// a TSD's deletion has masked it, or it was written over without fix_duplicates.
	loose bool
}

// world is a row of a table on a fake HBase, with all who change it.
type world struct {
	*testing.T
	fake  *hbasefake.Cluster
	st    *hbase.Store
	table string
	key   []byte
	rng   *rand.Rand
	now   int64
	fix   bool

	points   map[int32]written // acknowledged, by offset in ms
	appended []byte
	marked   int64 // time of the latest deletion, or of what a TSD has put last
	tsd      *tsd
	depth    int    // of jobs inside jobs
	log      string // what has happened
	quiet    bool   // all other clients have stopped
}

// tsd is an OpenTSDB server that compacts the row: it has read it, and perhaps put the
// compacted cell.
type tsd struct {
	at     int64 // when it has read
	read   []store.Cell
	merged store.Cell
	put    bool
}

func (w *world) note(format string, args ...any) {
	w.log += fmt.Sprintf("%d "+format+"\n", append([]any{w.now}, args...)...)
}

func (w *world) tick() { w.now += 1 + w.rng.Int64N(3) }

// disturbed is the store of a job, with the actions of others before each of its steps and after a
// change.
type disturbed struct {
	*hbase.Store
	others  func() error
	changed func(c store.ConditionalChange, held []bool) error
}

func (b disturbed) Features() store.Features {
	f := b.Store.Features()
	f.Versioned = b
	return f
}

func (b disturbed) Versions(ctx context.Context, table, family string, keys store.KeyRange,
	rows int) ([]store.VersionRow, []byte, error) {
	if err := b.others(); err != nil {
		return nil, nil, err
	}
	return b.Store.Versions(ctx, table, family, keys, rows)
}

func (b disturbed) ChangeIf(ctx context.Context, table, family string,
	changes []store.ConditionalChange) ([]bool, error) {
	if err := b.others(); err != nil {
		return nil, err
	}
	held, err := b.Store.ChangeIf(ctx, table, family, changes)
	if err == nil {
		err = b.changed(changes[0], held)
	}
	return held, err
}

// changed checks the row, and lets others do more.
func (w *world) changed(c store.ConditionalChange, held []bool) error {
	w.note("job put %d deleted %d: %v", len(c.Put), len(c.Delete), held)
	w.check()
	return w.others()
}

// compact runs a job over the row.
func (w *world) compact() (Counts, error) {
	w.depth++
	defer func() { w.depth-- }()
	var total Counts
	j := Job{
		Store:         disturbed{w.st, w.others, w.changed},
		Table:         w.table,
		Schema:        encoding.DefaultSchema(),
		FixDuplicates: w.fix,
		Margin:        margin * time.Millisecond,
		Now:           func() time.Time { return time.UnixMilli(w.now) },
		Reached:       func(c Counts, _ []byte) { total.Add(&c) },
	}
	err := j.Run(w.Context(), store.KeyRange{Start: w.key, Stop: append(slices.Clone(w.key), 0)}, nil)
	if err != nil && !errors.Is(err, errKilled) {
		w.fail("job: %v", err)
	}
	return total, err
}

// others does something of what others may do to the row at any moment. Its error kills the
// job that is running.
func (w *world) others() error {
	if w.quiet {
		return nil
	}
	for range w.rng.IntN(3) {
		w.tick()
		switch n := w.rng.IntN(20); {
		case n < 5:
			w.write(w.rng.Int32N(12) * 500)
		case n < 6:
			// A TSD that has read the row would bring it back.
			if w.tsd != nil && !w.tsd.put {
				continue
			}
			w.fake.DeleteRow(w.table, string(w.key), family)
			w.note("DELETE")
			clear(w.points)
			w.appended, w.marked = nil, w.now
		case n < 7 && w.rng.IntN(2) == 0:
			w.deleteColumn()
		case n < 7 && w.rng.IntN(3) == 0:
			w.append()
		case n < 10:
			w.stepTSD()
		case n < 12 && w.depth < 3:
			w.note("another job begins")
			w.compact()
			w.note("another job ends")
		case n < 14:
			w.fake.FlushVersions(w.table)
			w.note("flush")
		case n < 16:
			w.fake.CompactVersions(w.table)
			w.note("major compaction")
		case n < 18 && w.rng.IntN(4) == 0:
			w.annotate()
		case n < 17:
			w.note("killed")
			return errKilled
		}
		w.check()
	}
	return nil
}

// write writes a point, new or over another, in one of its forms.
func (w *world) write(offset int32) {
	q := encoding.Qualifier{OffsetMS: offset, Milli: offset%1000 != 0 || w.rng.IntN(3) == 0, Width: 1}
	old, over := w.points[offset]
	v := encoding.IntValue(int64(w.rng.IntN(100)))
	// Without fix_duplicates most points that are written again have their value.
	if over && !w.fix && !old.value.Float && w.rng.IntN(10) > 0 {
		v = old.value
	}
	value := encoding.AppendInt(nil, v.Int())
	if (!over || w.fix) && w.rng.IntN(4) == 0 {
		q.Float, q.Width = true, 8
		v = encoding.FloatValue(float64(v.Int()))
		value = encoding.AppendDouble(nil, v.Double())
	}

	// A clock may be behind, but not by the margin.
	stamp := max(w.now-w.rng.Int64N(margin/2), w.marked+1)
	for _, p := range w.points {
		if p.stamp == stamp {
			return
		}
	}
	w.fake.PutAt(w.table, string(w.key), family, string(encoding.AppendQualifier(nil, q)), string(value), stamp)
	w.note("put %d %v form %v at %d", offset, v, q.Milli, stamp)
	switch {
	case over && old.stamp > stamp && w.fix:
		// It is older than what is there.
	case over && old.value != v && !w.fix:
		w.points[offset] = written{value: v, stamp: stamp, loose: true}
	default:
		w.points[offset] = written{value: v, stamp: stamp, loose: over && old.loose && !w.fix}
	}
}

// deleteColumn deletes one cell, as a client of HBase or an fsck does: its points are deleted,
// unless another cell has them, too.
func (w *world) deleteColumn() {
	cells := w.cells()
	// A TSD that has read the row would bring it back.
	if len(cells) == 0 || w.tsd != nil {
		return
	}
	c := cells[w.rng.IntN(len(cells))]
	w.fake.Delete(w.table, string(w.key), family, string(c.Qualifier))
	w.note("column %x deleted", c.Qualifier)
	w.marked = w.now
	if bytes.Equal(c.Qualifier, encoding.AppendColumn) {
		w.appended = nil
	}

	left := map[int32]bool{}
	for _, other := range w.cells() {
		for _, offset := range w.offsets(other) {
			left[offset] = true
		}
	}
	for _, offset := range w.offsets(c) {
		p, ok := w.points[offset]
		switch {
		case ok && !left[offset]:
			delete(w.points, offset)
		case ok: // its value may be an earlier one
			p.loose = true
			w.points[offset] = p
		}
	}
}

// offsets returns the times of a cell's points, in ms of the hour.
func (w *world) offsets(c store.Cell) (all []int32) {
	d := encoding.RowDecoder{FixDuplicates: true}
	d.Reset(rowBase)
	var points encoding.Points
	if err := errors.Join(d.Add(c.Qualifier, c.Value, c.Timestamp), d.Finish(&points)); err != nil {
		w.fail("cell %x: %v", c.Qualifier, err)
	}
	for i := range points.Len() {
		ms, _ := points.At(i)
		all = append(all, int32(ms-rowBase*1000))
	}
	return all
}

// annotate puts an annotation, which no compaction touches.
func (w *world) annotate() {
	w.fake.PutAt(w.table, string(w.key), family, "\x01\x00\x07", "{}", w.now)
	w.note("annotation")
}

// append adds a point at a new time to the append column.
func (w *world) append() {
	offset := int32(10_000 + 1000*len(w.appended))
	w.appended = encoding.AppendEntry(w.appended, encoding.Qualifier{OffsetMS: offset, Width: 1}, []byte{7})
	w.fake.PutAt(w.table, string(w.key), family, string(encoding.AppendColumn), string(w.appended), w.now)
	w.points[offset] = written{value: encoding.IntValue(7), stamp: w.now}
	w.note("append %d", offset)
}

// cells returns what can be read of the row.
func (w *world) cells() []store.Cell {
	rows, err := w.st.Get(w.Context(), w.table, family, [][]byte{w.key})
	if err != nil {
		w.fail("get: %v", err)
	}
	if len(rows) == 0 {
		return nil
	}
	return rows[0].Cells
}

// stepTSD takes the next step of a TSD's row compaction: it reads the row, puts the compacted
// cell, and deletes the columns of the others, all as of now.
// Source: CompactionQueue.Compaction.
func (w *world) stepTSD() {
	switch {
	case w.tsd == nil:
		w.tsd = w.newTSD()
	case !w.tsd.put:
		// A row that has the compacted cell gets no other.
		there := slices.ContainsFunc(w.tsd.read, func(c store.Cell) bool {
			return bytes.Equal(c.Qualifier, w.tsd.merged.Qualifier) && bytes.Equal(c.Value, w.tsd.merged.Value)
		})
		if !there {
			w.fake.PutAt(w.table, string(w.key), family, string(w.tsd.merged.Qualifier), string(w.tsd.merged.Value),
				w.now)
			w.note("TSD puts %x", w.tsd.merged.Qualifier)
			w.loosen()
			w.marked = w.now
		}
		w.tsd.put = true
	default:
		for _, c := range w.tsd.read {
			if !bytes.Equal(c.Qualifier, w.tsd.merged.Qualifier) {
				w.fake.Delete(w.table, string(w.key), family, string(c.Qualifier))
			}
		}
		w.note("TSD deletes columns")
		w.loosen()
		w.marked, w.tsd = w.now, nil
	}
}

// newTSD reads the row as a TSD that compacts it; nil if it leaves the row.
func (w *world) newTSD() *tsd {
	t := &tsd{at: w.now}
	var points []point
	var versions []store.Version
	for _, c := range w.cells() {
		if bytes.Equal(c.Qualifier, encoding.AppendColumn) {
			return nil
		}
		if !hasPoints(c.Qualifier) {
			continue
		}
		v := store.Version{Qualifier: c.Qualifier, Value: c.Value, Timestamp: c.Timestamp}
		versions = append(versions, v)
		t.read = append(t.read, c.Clone())
		points, _ = appendPoints(points, v)
	}
	if _, err := readPoints(rowBase, w.fix, versions); err != nil || len(t.read) < 2 {
		return nil
	}
	var ok bool
	if t.merged, ok = mergePoints(points); !ok {
		return nil
	}
	w.note("TSD reads %d cells", len(t.read))
	return t
}

// loosen lets points have any value that were written since the TSD has read the row: what it
// puts is newer, and what it deletes as of now may be theirs.
func (w *world) loosen() {
	for offset, p := range w.points {
		read := slices.ContainsFunc(w.tsd.read,
			func(c store.Cell) bool { return c.Timestamp >= p.stamp && p.stamp < w.tsd.at-margin })
		// A cell of another point may have the same timestamp.
		exact := slices.ContainsFunc(w.tsd.read, func(c store.Cell) bool {
			return c.Timestamp == p.stamp && slices.Contains(w.offsets(c), offset)
		})
		if !read && !exact {
			p.loose = true
			w.points[offset] = p
		}
	}
}

// check compares what a reader gets with what was acknowledged.
func (w *world) check() {
	w.Helper()
	d := encoding.RowDecoder{FixDuplicates: w.fix}
	d.Reset(rowBase)
	for _, c := range w.cells() {
		if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
			w.fail("cell %x: %v", c.Qualifier, err)
		}
	}
	var got encoding.Points
	err := d.Finish(&got)
	if duplicate := (*encoding.DuplicateError)(nil); errors.As(err, &duplicate) {
		if p, ok := w.points[duplicate.OffsetMS]; ok && p.loose {
			return
		}
	}
	if err != nil {
		w.fail("reading: %v", err)
	}

	seen := map[int32]bool{}
	for i := range got.Len() {
		ms, v := got.At(i)
		offset := int32(ms - rowBase*1000)
		p, ok := w.points[offset]
		if !ok {
			w.fail("a point at %d is back: %v", offset, v)
		}
		if !p.loose && p.value != v {
			w.fail("the point at %d is %v, want %v", offset, v, p.value)
		}
		seen[offset] = true
	}
	for offset, p := range w.points {
		if !seen[offset] && !p.loose {
			w.fail("the point at %d is lost: %v", offset, p.value)
		}
	}
}

func (w *world) fail(format string, args ...any) {
	w.Helper()
	text := ""
	for _, c := range w.cells() {
		text += fmt.Sprintf("  %x=%x@%d\n", c.Qualifier, c.Value, c.Timestamp)
	}
	offsets := slices.Sorted(maps.Keys(w.points))
	for _, o := range offsets {
		text += fmt.Sprintf("  want %d: %+v\n", o, w.points[o])
	}
	w.Fatalf("%s\nfix_duplicates %v\n%sthe row:\n%s", fmt.Sprintf(format, args...), w.fix, w.log, text)
}

// TestOrders draws changes to a row while jobs compact it, in any order with their steps:
// points are written late, over and again, rows deleted, columns appended to, TSDs and other
// jobs compact the row, memory is flushed, files are compacted, and jobs are killed and
// started again. No reader ever misses an acknowledged point, gets another value, or one that
// was deleted.
func TestOrders(t *testing.T) {
	fake := opentest.Fake(t, hbasefake.Options{Servers: 1})
	st := opentest.HBaseWith(t, fake, hbase.Config{})
	seed := seedtest.Of(t)

	key := encoding.DefaultSchema().AppendRowKey(nil, encoding.UID{0, 0, 1}, rowBase, []byte{0, 0, 1, 0, 0, 1})
	var compacted, whole int64
	for order := range *orders {
		w := &world{
			T:      t,
			fake:   fake,
			st:     st,
			table:  fmt.Sprintf("t%d", order),
			key:    key,
			rng:    rand.New(rand.NewPCG(seed, uint64(order))),
			now:    (rowBase + 7200) * 1000,
			points: map[int32]written{},
		}
		w.note("order %d", order)
		if order > 0 && order%10_000 == 0 {
			t.Logf("%d orders", order)
		}
		w.fix = w.rng.IntN(2) == 0
		fake.SetClock(func() int64 { return w.now })
		fake.CreateTable(w.table, []string{family})
		fake.KeepVersions(w.table)
		for range 2 + w.rng.IntN(5) {
			w.tick()
			w.write(w.rng.Int32N(12) * 500)
		}

		for range 3 {
			// All earlier writes are now as old as the margin, and all actions of TSDs are
			// complete.
			for w.tsd != nil {
				w.stepTSD()
			}
			w.now += 2 * margin
			c, _ := w.compact()
			compacted += c.Compacted
		}
		for w.tsd != nil {
			w.stepTSD()
		}
		w.settle(&whole)
		fake.DropTable(w.table)
	}
	t.Logf("%d rows compacted among changes, %d at the end", compacted, whole)
	if compacted == 0 || whole == 0 {
		t.Error("no row was compacted")
	}
}

// settle lets a job end undisturbed, and HBase drop all that it may drop.
func (w *world) settle(whole *int64) {
	w.quiet = true
	w.now += 2 * margin
	w.check()
	c, _ := w.compact()
	w.check()
	again, _ := w.compact()
	if again.Compacted > 0 {
		w.fail("a second job has compacted the row again")
	}
	if c.Compacted > 0 {
		*whole++
		cells := slices.DeleteFunc(w.cells(), func(c store.Cell) bool { return !hasPoints(c.Qualifier) })
		if len(cells) != 1 {
			w.fail("the compacted row has %d cells of points", len(cells))
		}
	}
	if n := c.Left[Changed] + c.Left[Young] + c.Left[Unreadable]; n > 0 {
		w.fail("an undisturbed job leaves the row: %v", &c)
	}
	for range 2 {
		w.fake.CompactVersions(w.table)
		w.check()
		w.fake.FlushVersions(w.table)
		w.check()
	}
}
