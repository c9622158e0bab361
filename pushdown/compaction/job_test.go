package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/pushdown/store"
	"downpour/pushdown/store/drystore"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
)

// bench is a table on a fake HBase, and a job on it.
type bench struct {
	*testing.T
	fake *hbasefake.Cluster
	st   *hbase.Store
	job  Job
	sum  Counts
	now  int64
	// before is called before the changes of the job, which are counted from 1.
	before func(change int)
	refuse error // of all changes, if it is set
	// afterRead, if set, is called after each reading of rows.
	afterRead func()
	// failsAt is the number of the reading that fails, from 1.
	failsAt, reads int
	changes        int
	mu             sync.Mutex // guards changes: calls are concurrent
}

// newBench makes a table "tsdb" with regions divided at splits.
func newBench(t *testing.T, splits ...[]byte) *bench {
	b := &bench{
		T:    t,
		fake: opentest.Fake(t, hbasefake.Options{}),
		now:  (rowBase + 7200) * 1000,
	}
	b.st = opentest.HBaseWith(t, b.fake, hbase.Config{})
	b.fake.SetClock(func() int64 { return b.now })
	b.fake.CreateTable("tsdb", []string{family}, splits...)
	b.fake.KeepVersions("tsdb")
	b.job = Job{
		Store:   b,
		Table:   "tsdb",
		Schema:  encoding.DefaultSchema(),
		Margin:  margin * time.Millisecond,
		Now:     func() time.Time { return time.UnixMilli(b.now + 1000) },
		Reached: func(c Counts, _ []byte) { b.sum.Add(&c) },
	}
	return b
}

func (b *bench) Versions(ctx context.Context, table, family string, keys store.KeyRange,
	rows int) ([]store.VersionRow, []byte, error) {
	if b.reads++; b.reads == b.failsAt {
		return nil, nil, errRead
	}
	if b.afterRead != nil {
		defer b.afterRead()
	}
	return b.st.Versions(ctx, table, family, keys, rows)
}

func (b *bench) ChangeIf(ctx context.Context, table, family string, changes []store.ConditionalChange) ([]bool, error) {
	b.mu.Lock()
	b.changes++
	n := b.changes
	b.mu.Unlock()
	if b.before != nil {
		b.before(n)
	}
	if b.refuse != nil {
		return nil, b.refuse
	}
	return b.st.ChangeIf(ctx, table, family, changes)
}

func (b *bench) CheckVersions(ctx context.Context, table, family string) error {
	return b.st.CheckVersions(ctx, table, family)
}

// rowKey is the key of a series' row.
func rowKey(series byte) []byte {
	return encoding.DefaultSchema().AppendRowKey(nil, encoding.UID{0, 0, 1}, rowBase, []byte{0, 0, 1, 0, 0, series})
}

func (b *bench) put(series byte, qualifier, value string, later int64) {
	b.fake.PutAt("tsdb", string(rowKey(series)), family, qualifier, value, b.now+later)
}

// text is what can be read of the table.
func (b *bench) text() (lines string) {
	b.Helper()
	for row, err := range store.Rows(b.Context(), b.st, store.Scan{Table: "tsdb", Family: family}) {
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range row.Cells {
			lines += fmt.Sprintf("%d %x=%x@%d ", row.Key[len(row.Key)-1], c.Qualifier, c.Value, c.Timestamp-b.now)
		}
	}
	return strings.TrimSpace(lines)
}

func (b *bench) want(text string) {
	b.Helper()
	if got := b.text(); got != text {
		b.Errorf("the table has\n%s, want\n%s", got, text)
	}
}

func (b *bench) run() {
	b.Helper()
	if err := b.job.Check(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.sum, b.changes = Counts{}, 0
	if err := b.job.Run(b.Context(), store.KeyRange{}, nil); err != nil {
		b.Fatal(err)
	}
}

// TestJob_rows: rows of several regions and pages are compacted, and counted with those left. A dry
// run counts the same and writes nothing; a second run has nothing to do.
func TestJob_rows(t *testing.T) {
	b := newBench(t, rowKey(100), rowKey(200))
	want := ""
	for series := range 251 {
		b.put(byte(series), "\x00\x00", "\x01", 0)
		b.put(byte(series), "\x00\x10", "\x02", 1)
		if series%5 == 0 {
			b.put(byte(series), "\x05\x00\x00", "\x00\x20\x03", 1)
			want += fmt.Sprintf("%d 0000=01@0 %d 0010=02@1 %d 050000=002003@1 ", series, series, series)
		} else {
			want += fmt.Sprintf("%d 00000010=010200@1 ", series)
		}
	}
	text := b.text()

	b.job.Store = drystore.New(b.st).Features().Versioned
	b.run()
	b.want(text)
	dry := b.sum
	b.job.Store = b
	b.run()
	b.want(strings.TrimSpace(want))
	if b.sum != dry || b.sum.Compacted != 200 || b.sum.Left[Appended] != 51 || b.sum.Cells != 400 ||
		b.sum.Bytes != 1200 || b.sum.BytesNow != 1400 || b.sum.Versions != 400 {
		t.Errorf("counts %+v, in a dry run %+v", b.sum, dry)
	}
	b.run()
	if b.sum.Compacted != 0 || b.sum.Left[Single] != 200 {
		t.Errorf("a second run: %v", &b.sum)
	}
}

// TestJob_hidden: what is put and then hidden by a deletion of its column takes nothing with it.
func TestJob_hidden(t *testing.T) {
	b := newBench(t)
	b.put(1, "\x00\x00", "\x01", 0)
	b.put(1, "\x00\x10", "\x02", 1)
	b.before = func(change int) {
		if change == 2 {
			b.now += 1 // so that the deletion covers what was put
			b.fake.Delete("tsdb", string(rowKey(1)), family, "\x00\x00\x00\x10")
		}
	}
	b.run()
	b.want("1 0000=01@-1 1 0010=02@0")
	if b.sum.Compacted != 0 || b.sum.Left[Hidden] != 1 {
		t.Errorf("counts %v", &b.sum)
	}
}

// TestJob_anotherCell: a TSD that relies on another cell with all points, which a point written
// in another form makes it choose, finds that cell.
func TestJob_anotherCell(t *testing.T) {
	b := newBench(t)
	b.put(1, "\x00\x00\x00\x10", "\x01\x02\x00", 0)         // what the TSD will choose
	b.put(1, "\x00\x00\xf0\x00\xfa\x00", "\x01\x02\x01", 1) // what the job chooses
	young := int64(5000)
	b.before = func(change int) {
		if change == 1 { // the deletion; nothing was to be put
			b.put(1, "\x00\x10", "\x02", young)
		}
	}
	b.run()
	b.want("1 00000010=010200@0 1 0000f000fa00=010201@1 1 0010=02@5000")
	if b.sum.Left[Young] != 1 {
		t.Errorf("counts %v", &b.sum)
	}
}

// TestJob_writtenInBetween: a row that is written to each time is left, and counted; a
// deleted row does not come back, and a killed job leaves points twice, which the next
// one merges.
//
//fault:compaction-takes-every-condition-for-true = held => = held || true
func TestJob_writtenInBetween(t *testing.T) {
	b := newBench(t)
	b.put(1, "\x00\x00", "\x01", 0)
	b.put(1, "\x00\x10", "\x02", 1)
	b.before = func(change int) { b.put(1, "\x00\x10", "\x02", int64(10+change)) }
	b.run()
	b.want("1 0000=01@0 1 0010=02@14")
	if b.sum.Left[Changed] != 1 || b.sum.Rows != 1 {
		t.Errorf("counts %v", &b.sum)
	}

	// The put is done and the deletion is not.
	killed := errors.New("killed")
	ctx, cancel := context.WithCancelCause(t.Context())
	b.changes, b.before = 0, func(change int) {
		if change == 2 {
			cancel(killed)
		}
	}
	if err := b.job.Run(ctx, store.KeyRange{}, nil); err == nil {
		t.Fatal("a killed job ends without an error")
	}
	b.want("1 0000=01@0 1 00000010=010200@14 1 0010=02@14")
	b.before = nil
	b.run()
	b.want("1 00000010=010200@14")

	b.put(1, "\x00\x20", "\x03", 20)
	b.before = func(int) { b.fake.DeleteRow("tsdb", string(rowKey(1)), family) }
	b.now += 50
	b.run()
	b.fake.FlushVersions("tsdb")
	b.fake.CompactVersions("tsdb")
	b.want("")
}

// TestJob_withoutPoints: a row whose points are deleted is not counted, one of an append column is.
func TestJob_withoutPoints(t *testing.T) {
	b := newBench(t)
	b.put(1, "\x00\x00", "\x01", 0)
	b.fake.DeleteRow("tsdb", string(rowKey(1)), family)
	b.put(2, "\x05\x00\x00", "\x00\x20\x03", 0)
	b.run()
	if b.sum.Rows != 1 || b.sum.Left[Appended] != 1 {
		t.Errorf("counts %v, want one row left for its append column", &b.sum)
	}
}

// TestJob_refusedChanges: if the store takes no changes, the job ends with its error, and the table is as before.
func TestJob_refusedChanges(t *testing.T) {
	b := newBench(t)
	b.put(1, "\x00\x00", "\x01", 0)
	b.put(1, "\x00\x10", "\x02", 1)
	b.refuse = errors.New("no memory")
	if err := b.job.Run(t.Context(), store.KeyRange{}, nil); !errors.Is(err, b.refuse) {
		t.Errorf("got %v, want %v", err, b.refuse)
	}
	b.want("1 0000=01@0 1 0010=02@1")
}

var errRead = errors.New("no answer")

// TestJob_unread: the job ends with the error of a reading, also of that of a row that was written to.
func TestJob_unread(t *testing.T) {
	for n := range 2 {
		b := newBench(t)
		b.put(1, "\x00\x00", "\x01", 0)
		b.put(1, "\x00\x10", "\x02", 1)
		b.before = func(int) { b.put(1, "\x00\x10", "\x03", 2) }
		b.failsAt = n + 1
		if err := b.job.Run(t.Context(), store.KeyRange{}, nil); !errors.Is(err, errRead) {
			t.Errorf("reading %d fails: got %v, want %v", b.failsAt, err, errRead)
		}
	}
}

// TestJob_mergedExists: a merged cell that an earlier job has put is not put again.
func TestJob_mergedExists(t *testing.T) {
	b := newBench(t)
	b.put(1, "\x00\x00", "\x01", 0)
	b.put(1, "\x00\x10", "\x02", 1)
	b.put(1, "\x00\x00\x00\x10", "\x01\x02\x00", 1)
	b.run()
	b.want("1 00000010=010200@1")
	if b.changes != 1 {
		t.Errorf("%d changes, want the deletion of the parts alone", b.changes)
	}
}

// TestJob_someWrittenInBetween: of the rows of one call those that were written to are read again, the one before its
// merged cell was put as the one before its parts were deleted.
func TestJob_someWrittenInBetween(t *testing.T) {
	b := newBench(t)
	for series := range byte(3) {
		b.put(series, "\x00\x00", "\x01", 0)
		b.put(series, "\x00\x10", "\x02", 1)
	}
	b.before = func(change int) {
		switch change {
		case 1:
			b.put(1, "\x00\x10", "\x03", 2)
		case 2:
			b.put(0, "\x00\x10", "\x02", 3)
		}
	}
	b.run()
	b.want("0 00000010=010200@3 1 00000010=010300@2 2 00000010=010200@1")
	if b.sum.Compacted != 3 || b.sum.Rows != 3 {
		t.Errorf("counts %v", &b.sum)
	}
}

// TestJob_partlyDeleted: a cell of the row that is deleted between reading and putting does not
// come back, whatever other cells are left.
//
//fault:compaction-brings-a-deleted-cell-back Columns: w.plan.VisibleCells, =>
func TestJob_partlyDeleted(t *testing.T) {
	for name, tc := range map[string]struct{ qualifier, value, want string }{
		// Those that are left are compacted then.
		"a point is left":       {"\x00\x20", "\x03", "1 00000020=010300@-1"},
		"an annotation is left": {"\x01\x00\x07", "{}", "1 0000=01@-3 1 010007=7b7d@-1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put(1, "\x00\x00", "\x01", -3)
			b.put(1, "\x00\x10", "\x02", -2)
			b.put(1, tc.qualifier, tc.value, -1)
			b.before = func(change int) {
				if change == 1 { // the put
					b.fake.Delete("tsdb", string(rowKey(1)), family, "\x00\x10")
				}
			}
			b.run()
			b.want(tc.want)
		})
	}
}

// TestJob_faults: lost replies, refusals and regions that move or split change nothing.
func TestJob_faults(t *testing.T) {
	b := newBench(t)
	for series := range byte(20) {
		b.put(series, "\x00\x00", "\x01", 0)
		b.put(series, "\x00\x10", "\x02", 1)
	}
	b.fake.SetHook(func(c hbasefake.Call) hbasefake.Fault {
		if c.Method == "Multi" && c.N%2 == 0 {
			return hbasefake.Fault{
				Kind: []hbasefake.FaultKind{hbasefake.DropAfter, hbasefake.DropBefore,
					hbasefake.RefuseActions}[c.N/2%3],
				Exception: "org.apache.hadoop.hbase.RegionTooBusyException",
			}
		}
		return hbasefake.Fault{}
	})
	b.before = func(change int) {
		if change == 1 {
			b.fake.SplitRegion("tsdb", rowKey(7))
		} else {
			b.fake.MoveRegion("tsdb", rowKey(9))
		}
	}
	b.run()
	if b.sum.Compacted != 20 || b.sum.Rows != 20 || strings.Count(b.text(), "00000010=010200@1") != 20 {
		t.Errorf("counts %v, the table has %s", &b.sum, b.text())
	}
}

// TestJob_refused: tables in which versions behave otherwise are not compacted.
func TestJob_refused(t *testing.T) {
	for name, value := range map[string]string{"KEEP_DELETED_CELLS": "TRUE", "NEW_VERSION_BEHAVIOR": "true"} {
		b := newBench(t)
		b.fake.Alter("tsdb", family, name, value)
		if err := b.job.Check(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
		b.fake.Alter("tsdb", family, name, "FALSE")
		if err := b.job.Check(t.Context()); err != nil {
			t.Errorf("%s=FALSE: %v", name, err)
		}
	}
}

// TestJob_suspended: a process that slept for long after it had read a row reads it
// again: a point was deleted since, and a second job has put a cell of the rest and was
// cut off. The row has as many columns as were read then, and no other timestamp.
func TestJob_suspended(t *testing.T) {
	b := newBench(t)
	for i, at := range []int64{-3, -2, -1} {
		b.put(1, string([]byte{0, byte(16 * i)}), string([]byte{byte(i + 1)}), at)
	}
	reads := 0
	b.afterRead = func() {
		if reads++; reads > 1 {
			return
		}
		b.fake.Delete("tsdb", string(rowKey(1)), family, "\x00\x10")
		b.now += 20_000
		b.put(1, "\x00\x00\x00\x20", "\x01\x03\x00", -20_001)
	}
	b.run()
	if text := b.text(); strings.Contains(text, "001000") || !strings.Contains(text, "00000020=010300") || reads < 2 ||
		b.sum.Compacted != 1 {
		t.Errorf("after %d readings, %v, the row is %s: want the deleted point to stay away", reads, &b.sum, text)
	}
}
