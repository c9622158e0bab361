package compaction

import (
	"errors"
	"fmt"
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

// clocks is a row that jobs compact, and its twin in another table, which gets the same changes but
// is not compacted. Regions of both move between a server whose clock is right and one whose clock
// is behind, by a varying time. The clock of the jobs may be ahead or behind, too.
type clocks struct {
	*testing.T
	fake *hbasefake.Cluster
	st   *hbase.Store
	key  []byte
	rng  *rand.Rand
	now  int64
	fix  bool

	tables [2]string // that of the jobs and the twin
	slow   bool      // the regions are on the server whose clock is behind
	behind int64     // that clock
	ahead  int64     // the jobs' clock
	marked int64     // time of the latest deletion
	depth  int       // of jobs inside jobs
	quiet  bool      // all other clients have stopped
	log    string
}

// mostApart is how much two of the clocks differ at most, before and after they jump: less than the margin.
const mostApart = margin - 1

func (w *clocks) note(format string, args ...any) {
	w.log += fmt.Sprintf("%d (%d) "+format+"\n", append([]any{w.now, w.now - w.serverBehind()}, args...)...)
}

// serverBehind is how much the clock of the regions' server is behind.
func (w *clocks) serverBehind() int64 {
	if w.slow {
		return w.behind
	}
	return 0
}

// changed checks the row.
func (w *clocks) changed(c store.ConditionalChange, held []bool) error {
	w.note("job put %d deleted %d: %v", len(c.Put), len(c.Delete), held)
	w.check()
	return nil
}

// compact runs a job over the row.
func (w *clocks) compact() (total Counts) {
	w.depth++
	defer func() { w.depth-- }()
	j := Job{
		Store:         disturbed{w.st, w.others, w.changed},
		Table:         w.tables[0],
		Schema:        encoding.DefaultSchema(),
		FixDuplicates: w.fix,
		Margin:        margin * time.Millisecond,
		Now:           func() time.Time { return time.UnixMilli(w.now + w.ahead) },
		Reached:       func(c Counts, _ []byte) { total.Add(&c) },
	}
	if err := j.Run(w.Context(), store.KeyRange{Start: w.key, Stop: append(slices.Clone(w.key), 0)}, nil); err != nil &&
		!errors.Is(err, errKilled) {
		w.fail("job: %v", err)
	}
	return total
}

// others does something of what others may do at any moment. Its error kills the job that is running.
func (w *clocks) others() error {
	if w.quiet {
		return nil
	}
	for range w.rng.IntN(3) {
		w.now += w.rng.Int64N(margin / 4)
		switch n := w.rng.IntN(20); {
		case n < 5:
			w.write()
		case n < 7:
			for _, t := range w.tables {
				w.fake.DeleteRow(t, string(w.key), family)
			}
			w.marked = max(w.marked, w.now-w.serverBehind())
			w.note("DELETE")
		case n < 11:
			w.move()
		case n < 13:
			w.set()
		case n < 15 && w.depth < 3:
			w.note("another job begins")
			w.compact()
			w.note("another job ends")
		case n < 17:
			w.fake.FlushVersions(w.tables[w.rng.IntN(2)])
			w.note("flush")
		case n < 19:
			w.fake.CompactVersions(w.tables[w.rng.IntN(2)])
			w.note("major compaction")
		default:
			w.note("killed")
			return errKilled
		}
		w.check()
	}
	return nil
}

// move moves the regions to the other server.
func (w *clocks) move() {
	for _, t := range w.tables {
		w.fake.MoveRegion(t, w.key)
	}
	w.slow = !w.slow
	w.note("move")
}

// set draws how wrong the clocks are, often as wrong as they may be: that of the one server jumps, and so
// does that of the jobs.
func (w *clocks) set() {
	w.ahead = min(w.rng.Int64N(2*mostApart)-2*mostApart/3, mostApart/3)
	w.behind = min(w.rng.Int64N(2*mostApart), 2*mostApart/3)
	w.fake.SetBehind(1, w.behind)
	w.note("behind %d, jobs ahead %d", w.behind, w.ahead)
}

// write writes a point, new or over another, at the time of the row's server. Without
// fix_duplicates a point that is written again has its old value, because a compacted row would
// refuse another. Points that HBase would hide under an earlier deletion, until a major compaction,
// are not written.
func (w *clocks) write() {
	if w.now-w.serverBehind() <= w.marked {
		return
	}
	offset := w.rng.Int32N(8) * 500
	q := encoding.Qualifier{OffsetMS: offset, Milli: offset%1000 != 0 || w.rng.IntN(3) == 0, Width: 1}
	v := int64(offset / 500)
	if w.fix {
		v = int64(w.rng.IntN(100))
	}
	for _, t := range w.tables {
		w.fake.PutAt(t, string(w.key), family, string(encoding.AppendQualifier(nil, q)),
			string(encoding.AppendInt(nil, v)), 0)
	}
	w.note("put %d %d form %v", offset, v, q.Milli)
}

// answer returns what a reader gets of a table, and the cells of it.
func (w *clocks) answer(table string) (points, cells string) {
	rows, err := w.st.Get(w.Context(), table, family, [][]byte{w.key})
	if err != nil {
		w.Fatal(err)
	}
	d := encoding.RowDecoder{FixDuplicates: w.fix}
	d.Reset(rowBase)
	for _, row := range rows {
		for _, c := range row.Cells {
			cells += fmt.Sprintf("  %x=%x@%d\n", c.Qualifier, c.Value, c.Timestamp)
			if err := d.Add(c.Qualifier, c.Value, c.Timestamp); err != nil {
				w.Fatalf("cell %x: %v", c.Qualifier, err)
			}
		}
	}
	var got encoding.Points
	if err := d.Finish(&got); err != nil {
		return err.Error(), cells
	}
	for i := range got.Len() {
		ms, v := got.At(i)
		points += fmt.Sprintf("%d=%v ", ms-rowBase*1000, v)
	}
	return points, cells
}

// check compares the answers of both tables.
func (w *clocks) check() {
	w.Helper()
	if got, _ := w.answer(w.tables[0]); got != w.twin() {
		w.fail("the row has %s, its twin %s", got, w.twin())
	}
}

func (w *clocks) twin() string {
	points, _ := w.answer(w.tables[1])
	return points
}

func (w *clocks) fail(format string, args ...any) {
	w.Helper()
	_, row := w.answer(w.tables[0])
	_, twin := w.answer(w.tables[1])
	w.Fatalf("%s\nfix_duplicates %v\n%sthe row:\n%sits twin:\n%s", fmt.Sprintf(format, args...), w.fix, w.log, row,
		twin)
}

// TestOrders_clocks draws what happens to a row while its region moves between servers whose clocks
// differ by almost the margin: it is written to, written over and deleted, jobs compact it, one in the
// middle of another, and are killed, memory is flushed, files are compacted, and clocks jump. At each
// step readers get the same as from a row with the same changes that is not compacted. Effects of a
// slow clock on HBase itself, such as a deletion that does not reach newer cells, are therefore the
// same for both.
func TestOrders_clocks(t *testing.T) {
	fake := opentest.Fake(t, hbasefake.Options{})
	st := opentest.HBaseWith(t, fake, hbase.Config{})
	seed := seedtest.Of(t)

	key := encoding.DefaultSchema().AppendRowKey(nil, encoding.UID{0, 0, 1}, rowBase, []byte{0, 0, 1, 0, 0, 1})
	var among, whole int64
	for order := range (*orders + 1) / 2 {
		w := &clocks{
			T:      t,
			fake:   fake,
			st:     st,
			key:    key,
			rng:    rand.New(rand.NewPCG(seed, uint64(order))),
			now:    (rowBase + 7200) * 1000,
			tables: [2]string{fmt.Sprintf("t%d", order), fmt.Sprintf("twin%d", order)},
		}
		w.fix = w.rng.IntN(2) == 0
		w.note("order %d", order)
		fake.SetClock(func() int64 { return w.now })
		for _, table := range w.tables {
			fake.CreateTable(table, []string{family})
			fake.KeepVersions(table)
		}
		w.set()
		for range 2 + w.rng.IntN(5) {
			w.now += 1 + w.rng.Int64N(3)
			w.write()
		}
		for range 4 {
			w.now += w.rng.Int64N(3 * margin)
			c := w.compact()
			among += c.Compacted
		}
		whole += w.settle()
		for _, table := range w.tables {
			fake.DropTable(table)
		}
	}
	t.Logf("%d rows compacted among changes, %d at the end", among, whole)
	if among == 0 || whole == 0 {
		t.Error("no row was compacted")
	}
}

// settle lets a job end undisturbed, and HBase drop all that it may drop.
func (w *clocks) settle() (compacted int64) {
	w.quiet = true
	w.now += 3 * margin
	w.check()
	c := w.compact()
	w.check()
	if again := w.compact(); again.Compacted > 0 {
		w.fail("a second job has compacted the row again")
	}
	if n := c.Left[Changed] + c.Left[Young] + c.Left[Unreadable]; n > 0 {
		w.fail("an undisturbed job leaves the row: %v", &c)
	}
	for range 2 {
		for _, table := range w.tables {
			w.fake.CompactVersions(table)
			w.fake.FlushVersions(table)
		}
		w.check()
	}
	return c.Compacted
}
