package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"downpour/encoding"
	"downpour/encoding/column"
	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
)

// sealedOptions are those of a store whose rows have times.
func sealedOptions(files vfs.FS) Options {
	return Options{FS: files, IdleFlush: -1, Logger: quiet(), Grouping: sealedSchema.RowHours()}
}

// hourEnd is when an hour of sealedRow ends.
func hourEnd(hour int) time.Time { return time.Unix(sealedFirst+3600*int64(hour+1), 0) }

// sealAll seals what is older than a time.
func sealAll(t testing.TB, s *Store, before time.Time) store.SealReport {
	t.Helper()
	report, err := s.Seal(t.Context(), "tsdb", time.Time{}, before, func(store.SealReport) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// cellsOf reads all cells of table tsdb, by scans or row by row. sealed takes sealed columns, and gives their
// entries back.
func cellsOf(t testing.TB, s *Store, how string) map[string]string {
	t.Helper()
	sc, err := s.Scan(t.Context(), store.Scan{Table: "tsdb", Family: "t", Sealed: how == "sealed"})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	cells := map[string]string{}
	var u encoding.Unsealer
	for {
		rows, err := sc.Next()
		if err == io.EOF {
			return cells
		}
		if err != nil {
			t.Fatal(err)
		}
		if how == "get" {
			if rows, err = s.Get(t.Context(), "tsdb", "t", rowKeys(rows)); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range rows {
			for _, c := range r.Cells {
				v := c.Value
				if how == "sealed" && bytes.Equal(c.Qualifier, encoding.AppendColumn) {
					if v, err = u.Unseal(nil, v); err != nil {
						t.Fatal(err)
					}
				}
				cells[fmt.Sprintf("%x %x %d", r.Key, c.Qualifier, c.Timestamp)] = string(v)
			}
		}
	}
}

func rowKeys(rows []store.Row) (keys [][]byte) {
	for _, r := range rows {
		keys = append(keys, bytes.Clone(r.Key))
	}
	return keys
}

// wantCells compares what is read in each way.
func wantCells(t testing.TB, s *Store, want map[string]string) {
	t.Helper()
	for _, how := range []string{"scan", "get", "sealed"} {
		got := cellsOf(t, s, how)
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("%s: cell %s is % x, want % x", how, k, got[k], v)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d cells, want %d", how, len(got), len(want))
		}
	}
}

// storedTags counts the tags of what is stored in append columns of old rows.
func storedTags(t testing.TB, s *Store) (tags [3]int) {
	t.Helper()
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		if _, ok := appendHour(s.opts.Grouping, it.Key()); ok {
			tags[it.Value()[0]]++
		}
	}
	return tags
}

// A directory of 0.1.0 opens and answers the same before, while and after its rows are sealed, and is smaller
// then. Late points are read with the others, and sealed once they are many. What is sealed is not written again.
func TestSeal_oldDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/rows-v1")); err != nil {
		t.Fatal(err)
	}
	open := func() *Store {
		s, err := Open(dir, sealedOptions(nil))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	want := map[string]string{}
	for series := range oldSeries {
		for hour := range oldHours {
			want[fmt.Sprintf("%x 050000 0", sealedRow(series, hour))] = string(sealedEntries(series, hour))
		}
	}
	wantCells(t, s, want)
	compactAll(t, s)
	before := tableBytes(t, s)

	calls := 0
	report, err := s.Seal(t.Context(), "tsdb", time.Time{}, hourEnd(oldHours-2), func(store.SealReport) error {
		calls++
		wantCells(t, s, want)
		return nil
	})
	if err != nil || report.Sealed != oldSeries*(oldHours-1) || calls == 0 {
		t.Fatalf("%+v, %d calls, %v, want %d rows sealed", report, calls, err, oldSeries*(oldHours-1))
	}
	wantCells(t, s, want)
	if after := tableBytes(t, s); after >= before {
		t.Errorf("%d bytes in tables, as before: want what was replaced removed, without a compaction", after)
	}
	if tags := storedTags(t, s); tags != [3]int{oldSeries, 0, oldSeries * (oldHours - 1)} {
		t.Errorf("%d appended, %d put and %d sealed columns, want the last hour as it was", tags[0], tags[1], tags[2])
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open()
	wantCells(t, s, want)
	sealAll(t, s, hourEnd(oldHours-1))
	if after := tableBytes(t, s); after*10 > before*8 {
		t.Errorf("%d bytes in tables, want less than eight tenths of %d", after, before)
	}
	if report := sealAll(t, s, hourEnd(oldHours-1)); report != (store.SealReport{Rows: oldSeries * oldHours}) {
		t.Errorf("a second pass: %+v, want nothing to seal", report)
	}
	report, err = s.Seal(t.Context(), "tsdb", hourEnd(0), hourEnd(1), func(store.SealReport) error { return nil })
	if err != nil || report != (store.SealReport{Rows: oldSeries}) {
		t.Errorf("a pass over the second hour: %+v, %v, want its %d rows looked at", report, err, oldSeries)
	}

	// A few late points are no reason to write a row again; many are.
	late := sealedEntries(0, 9)
	for _, n := range []int{3, 60, 600} {
		appendEntries(t, s, 0, 0, late[:n])
		want[fmt.Sprintf("%x 050000 0", sealedRow(0, 0))] += string(late[:n])
		wantCells(t, s, want)
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if report := sealAll(t, s, hourEnd(oldHours-1)); report.Sealed > 0 != (n > leastUnsealed) {
			t.Errorf("%d late bytes: %+v", n, report)
		}
		wantCells(t, s, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	report2, err := Check(t.Context(), dir, sealedOptions(nil), nil)
	if err != nil || len(report2.Faults) > 0 {
		t.Errorf("check: %+v, %v", report2, err)
	}
}

func compactAll(t testing.TB, s *Store) {
	t.Helper()
	err := errors.Join(s.Flush(t.Context()), s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false))
	if err != nil {
		t.Fatal(err)
	}
}

// tableBytes are the bytes of all tables in use.
func tableBytes(t testing.TB, s *Store) (n uint64) {
	t.Helper()
	levels, err := s.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range levels {
		for _, table := range l {
			n += table.Size
		}
	}
	return n
}

// Whatever is written, deleted, flushed and sealed in whichever order, rows are what they are in a store that
// seals nothing.
func TestSeal_sameRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sealing, plain := openRapid(t), openRapid(t)
		defer sealing.Close()
		defer plain.Close()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		garbage := rapid.Bool().Draw(t, "garbage")
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			both := func(do func(*Store) error) {
				if err := errors.Join(do(sealing), do(plain)); err != nil {
					t.Fatal(err)
				}
			}
			switch what := r.IntN(12); {
			case what < 6:
				m := drawnMutation(r, garbage)
				both(func(s *Store) error { return s.Apply(context.Background(), "tsdb", []store.Mutation{m}) })
			case what == 6:
				both(func(s *Store) error { return s.Flush(context.Background()) })
			case what == 7:
				row := sealedRow(r.IntN(3), r.IntN(2))
				both(func(s *Store) error {
					return s.DeleteRows(context.Background(),
						"tsdb", []store.KeyRange{{Start: row, Stop: append(bytes.Clone(row), 0)}})
				})
			case what == 8:
				// What was read of a row is what it is compared with, sealed or not.
				row := sealedRow(r.IntN(3), r.IntN(2))
				both(func(s *Store) error {
					rows, err := s.Get(context.Background(), "tsdb", "t", [][]byte{row})
					if err != nil || len(rows) == 0 {
						return err
					}
					out, err := s.Replace(context.Background(), "tsdb", "t", []store.Replacement{{
						Read: rows[0],
						Put:  []store.Cell{{Qualifier: []byte{1, 0, 0}, Value: []byte("note"), Timestamp: 1}},
					}})
					if err == nil && out[0] != store.Replaced {
						err = fmt.Errorf("a row that nobody has changed is said to be")
					}
					return err
				})
			default:
				before := hourEnd(r.IntN(3) - 1)
				if _, err := sealing.Seal(context.Background(), "tsdb",
					time.Time{}, before, func(store.SealReport) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, how := range []string{"scan", "get", "sealed"} {
			if garbage && how == "sealed" {
				continue // behind garbage nobody knows entries from blocks
			}
			got, want := rapidCells(t, sealing, how), rapidCells(t, plain, "scan")
			if got != want {
				t.Fatalf("%s: got\n%s\nwant\n%s", how, got, want)
			}
		}
	})
}

func openRapid(t *rapid.T) *Store {
	s, err := Open("data", sealedOptions(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	spec := store.TableSpec{Name: "tsdb", Families: []store.FamilySpec{{Name: "t"}}}
	if err := s.CreateTable(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	return s
}

// drawnMutation is a change of one of a few rows.
func drawnMutation(r *rand.Rand, garbage bool) store.Mutation {
	m := store.Mutation{
		Kind:      store.Append,
		Row:       sealedRow(r.IntN(3), r.IntN(2)),
		Family:    "t",
		Qualifier: encoding.AppendColumn,
	}
	entries := sealedEntries(r.IntN(10), r.IntN(10))
	from := r.IntN(len(entries))
	switch r.IntN(8) {
	case 0:
		m.Kind, m.Value = store.Put, entries // as fsck puts it
		m.Timestamp = 1 + r.Int64N(100)
	case 1:
		m.Kind = store.DeleteCell
	case 2:
		m.Kind = store.DeleteRow
	case 3:
		m.Value = entries[:from/12*12]
		if garbage { // as likely as not nothing that can be read
			m.Value = entries[from:]
		}
	default:
		m.Value = entries
	}
	return m
}

// rapidCells is cellsOf as text.
func rapidCells(t *rapid.T, s *Store, how string) string {
	var b strings.Builder
	var u encoding.Unsealer
	for rows, err := range store.Blocks(context.Background(),
		s, store.Scan{Table: "tsdb", Family: "t", Sealed: how == "sealed"}) {
		if err == nil && how == "get" {
			rows, err = s.Get(context.Background(), "tsdb", "t", rowKeys(rows))
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			for _, c := range r.Cells {
				v := c.Value
				if how == "sealed" && c.Timestamp == 0 {
					if v, err = u.Unseal(nil, v); err != nil {
						t.Fatal(err)
					}
				}
				fmt.Fprintf(&b, "%x %x %d %x\n", r.Key, c.Qualifier, c.Timestamp, v)
			}
		}
	}
	return b.String()
}

// between calls do once, when the directory is marked for its first sealed column: between reading and writing rows.
func between(do func()) *errorfs.Toggle {
	done := false
	toggle := &errorfs.Toggle{}
	toggle.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "marker.downpour-logs") &&
			strings.Contains(op.Path, "columns") && !done {
			done = true
			do()
		}
		return nil
	})
	return toggle
}

// A row that gets a point, or is deleted, between the reading of its column and the writing of the sealed one
// keeps what it has got.
//
//fault:sealed-over-a-later-point !bytes.Equal(stored, c.old) => false
func TestSeal_concurrent(t *testing.T) {
	t.Parallel()
	var s *Store
	toggle := between(func() {
		appendEntries(t, s, 0, 0, []byte{0x00, 0x10, 0x07})
		apply(t, s, store.Mutation{Kind: store.DeleteRow, Row: sealedRow(1, 0), Family: "t"})
	})
	s = openMem(t, sealedOptions(errorfs.Wrap(vfs.NewMem(), toggle)))
	create(t, s)
	for series := range 3 {
		appendEntries(t, s, series, 0, sealedEntries(series, 0))
	}
	toggle.On()
	if report := sealAll(t, s, hourEnd(0)); report.Sealed != 1 {
		t.Errorf("%+v, want one row sealed", report)
	}
	wantCells(t, s, map[string]string{
		fmt.Sprintf("%x 050000 0", sealedRow(0, 0)): string(sealedEntries(0, 0)) + "\x00\x10\x07",
		fmt.Sprintf("%x 050000 0", sealedRow(2, 0)): string(sealedEntries(2, 0)),
	})
}

// Before the first sealed column is written, the directory is one that older releases refuse. Where that cannot
// be made durable, nothing is sealed.
//
//fault:columns-without-version p.s.disk.SetColumns() => error(nil)
func TestSeal_version(t *testing.T) {
	t.Parallel()
	files := vfs.NewMem()
	broken := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "marker.downpour-logs") {
			return errorfs.ErrInjected
		}
		return nil
	})}
	s := openMem(t, sealedOptions(errorfs.Wrap(files, broken)))
	create(t, s)
	appendEntries(t, s, 0, 0, sealedEntries(0, 0))
	marker := func() string {
		logs, err := disk.ReadLogs(files, "data")
		if err != nil {
			t.Fatal(err)
		}
		return logs.String()
	}
	broken.On()
	if _, err := s.Seal(t.Context(), "tsdb", time.Time{}, hourEnd(0), nil); !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("sealed without the marker: %v", err)
	}
	broken.Off()
	if tags := storedTags(t, s); tags != [3]int{1, 0, 0} || strings.Contains(marker(), "columns") {
		t.Errorf("columns %v, marker %s, want nothing sealed", tags, marker())
	}

	sealAll(t, s, hourEnd(0))
	if tags := storedTags(t, s); tags != [3]int{0, 0, 1} {
		t.Errorf("columns %v, want one sealed", tags)
	}
	// 0.1.0 reads the marker so.
	var first, newest uint64
	if _, err := fmt.Sscanf(marker(), "%d-%d", &first, &newest); err == nil {
		t.Errorf("0.1.0 would take the marker %s", marker())
	}
	// It stays so, whatever is written later.
	appendEntries(t, s, 1, 0, sealedEntries(1, 0))
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	appendEntries(t, s, 1, 0, sealedEntries(1, 1))
	if !strings.HasPrefix(marker(), "columns.v1-") {
		t.Errorf("marker %s, want columns.v1-", marker())
	}
}

// A sealed column that is damaged, or made of blocks that repeat 65,536 points, inside a block of a
// table that is not, is an error that names its row; a check finds it.
func TestSeal_damagedColumn(t *testing.T) {
	t.Parallel()
	files := vfs.NewMem()
	s := openMem(t, sealedOptions(files))
	create(t, s)
	for series := range 4 {
		appendEntries(t, s, series, 0, sealedEntries(series, 0))
	}
	sealAll(t, s, hourEnd(0))
	keyOf := func(series int) []byte {
		return appendKey(nil, "tsdb", sealedRow(series, 0), "t", encoding.AppendColumn)
	}
	stored, closer, err := s.db.Get(keyOf(1))
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(stored)
	damaged[len(damaged)/2] ^= 1
	var many column.Points
	for i := range int32(column.MaxPoints) {
		many.Append(i, column.FlagMillis, 7)
	}
	blocks := bytes.Repeat(new(column.Encoder).Append(nil, many), 20)
	forged := append(appendSealedHeader(nil, len(blocks)), blocks...)
	if err := errors.Join(closer.Close(), s.db.Set(keyOf(1), damaged, nil),
		s.db.Set(keyOf(3), forged, nil)); err != nil {
		t.Fatal(err)
	}
	for _, series := range []int{1, 3} {
		_, err := s.Get(t.Context(), "tsdb", "t", [][]byte{sealedRow(series, 0)})
		name := fmt.Sprintf("tsdb/%x/t:050000", sealedRow(series, 0))
		if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want damage of %s", err, name)
		}
	}
	if rows, err := s.Get(t.Context(), "tsdb", "t", [][]byte{sealedRow(0, 0), sealedRow(2, 0)}); err != nil ||
		len(rows) != 2 {
		t.Errorf("the other rows: %d, %v", len(rows), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := Check(t.Context(), "data", sealedOptions(files), nil)
	if err != nil || len(report.Faults) != 2 || report.Faults[0].Kind != store.Unreadable ||
		report.Faults[0].First.Unix() != sealedFirst {
		t.Errorf("check: %+v, %v, want two sealed columns that cannot be read, of %d", report, err, sealedFirst)
	}
}

// A full disk ends sealing with store.ErrFull; what was there is there, and the next pass goes on.
func TestSeal_fullDisk(t *testing.T) {
	t.Parallel()
	d := &smallDisk{FS: vfs.NewMem()}
	s := openMem(t, sealedOptions(d))
	create(t, s)
	want := map[string]string{}
	for series := range 200 {
		appendEntries(t, s, series, 0, sealedEntries(series, 0))
		want[fmt.Sprintf("%x 050000 0", sealedRow(series, 0))] = string(sealedEntries(series, 0))
	}
	report, err := s.Seal(t.Context(), "tsdb", time.Time{}, hourEnd(0), func(store.SealReport) error {
		d.full.Store(true)
		return nil
	})
	if !errors.Is(err, store.ErrFull) || report.Sealed == 0 || report.Sealed == 200 {
		t.Errorf("%+v, %v, want some rows sealed and a full disk", report, err)
	}
	wantCells(t, s, want)
	d.full.Store(false)
	if report := sealAll(t, s, hourEnd(0)); report.Sealed == 0 {
		t.Error("the next pass seals nothing")
	}
	if tags := storedTags(t, s); tags != [3]int{0, 0, 200} {
		t.Errorf("columns %v, want all sealed", tags)
	}
	wantCells(t, s, want)
}

// A backup of a store with sealed columns has a format of its own, which 0.1.0 refuses by its number; it is restored,
// checked and opened, and refused by older releases like the store. One without has the format that it always had.
//
//fault:backup-of-columns-as-before w.list.Format = listFormatColumns => w.list.Format = listFormat
func TestSeal_backup(t *testing.T) {
	t.Parallel()
	files := vfs.NewMem()
	s := openMem(t, sealedOptions(files))
	create(t, s)
	want := map[string]string{}
	for series := range 20 {
		appendEntries(t, s, series, 0, sealedEntries(series, 0))
		want[fmt.Sprintf("%x 050000 0", sealedRow(series, 0))] = string(sealedEntries(series, 0))
	}
	check := func(format int) {
		t.Helper()
		r := mustBackUp(t, s, files, 0)
		text, err := readFile(files, files.PathJoin(r.Path, listName))
		if err != nil || !strings.HasPrefix(string(text), fmt.Sprintf(`{"format":%d,`, format)) {
			t.Errorf("%.20s, %v, want format %d", text, err, format)
		}
		logs, err := disk.ReadLogs(files, r.Path)
		if err != nil || logs.Columns != (format == 2) {
			t.Errorf("the backup's marker: %v, %v", logs, err)
		}
		if err := sound(files, r.Path, func(restored *Store) error {
			wantCells(t, restored, want)
			if restored.disk.Columns() != (format == 2) {
				t.Errorf("a restored backup of format %d: columns %t", format, restored.disk.Columns())
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	check(1)
	if report := sealAll(t, s, hourEnd(0)); report.Sealed != 20 {
		t.Fatalf("%+v, want 20 rows sealed", report)
	}
	check(2)
}

// Any bit of the files of a store with sealed columns that is another one is a refusal, an error, or no loss:
// never another answer.
func TestSeal_flippedBits(t *testing.T) {
	t.Parallel()
	r := seedtest.Rand(t)
	files := vfs.NewMem()
	s := openMem(t, sealedOptions(files))
	create(t, s)
	want := map[string]string{}
	for series := range 10 {
		appendEntries(t, s, series, 0, sealedEntries(series, 0))
		want[fmt.Sprintf("%x 050000 0", sealedRow(series, 0))] = string(sealedEntries(series, 0))
	}
	sealAll(t, s, hourEnd(0))
	appendEntries(t, s, 3, 0, sealedEntries(3, 1))
	want[fmt.Sprintf("%x 050000 0", sealedRow(3, 0))] += string(sealedEntries(3, 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole := take(t, files)
	flips := 60
	if *soak {
		flips = 20_000
	}
	noticed := 0
	for name, data := range whole {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		for range flips {
			damaged := bytes.Clone(data)
			damaged[r.IntN(len(damaged))] ^= 1 << r.IntN(8)
			if readsOrFails(t, whole.with(name, damaged).files(t), want) {
				noticed++
			}
		}
	}
	if noticed == 0 {
		t.Error("no flipped bit was noticed: the test tries nothing")
	}
}

// readsOrFails opens a store and reads its rows, and reports whether that has failed. Rows that are read are what
// they were.
func readsOrFails(t *testing.T, files vfs.FS, want map[string]string) (failed bool) {
	t.Helper()
	s, err := Open("data", sealedOptions(files))
	if err != nil {
		return true
	}
	defer s.Close()
	for i := range 10 {
		rows, err := s.Get(t.Context(), "tsdb", "t", [][]byte{sealedRow(i, 0)})
		if err != nil {
			failed = true
			continue
		}
		k := fmt.Sprintf("%x 050000 0", sealedRow(i, 0))
		if len(rows) != 1 || string(rows[0].Cells[0].Value) != want[k] {
			t.Fatalf("row %d: %d rows, not what it was", i, len(rows))
		}
	}
	return failed
}

// A block of a scan that takes sealed columns has no more points than one of entries: those who read it have
// reserved memory for these. Its columns are shorter all the same.
//
//fault:sealed-rows-fill-no-block encoding.SealedPoints(v.bytes) * leastEntry => 0
func TestSeal_blocks(t *testing.T) {
	t.Parallel()
	s := openMem(t, sealedOptions(vfs.NewMem()))
	create(t, s)
	for series := range 60 {
		appendEntries(t, s, 5*series, 0, sealedEntries(5*series, 0)) // 360 points of three bytes or some more
	}
	sealAll(t, s, hourEnd(0))
	const size = 4096
	bytes := map[bool]int{}
	for _, sealed := range []bool{false, true} {
		n := 0
		scan := store.Scan{Table: "tsdb", Family: "t", Sealed: sealed, BlockBytes: size}
		for rows, err := range store.Blocks(t.Context(), s, scan) {
			if err != nil {
				t.Fatal(err)
			}
			if n += len(rows); len(rows) > 1+size/(3*360) {
				t.Errorf("sealed %t: a block of %d rows, want at most %d", sealed, len(rows), 1+size/(3*360))
			}
			for _, row := range rows {
				bytes[sealed] += len(row.Cells[0].Value)
			}
		}
		if n != 60 {
			t.Errorf("sealed %t: %d rows, want 60", sealed, n)
		}
	}
	if bytes[true] >= bytes[false] {
		t.Errorf("columns of %d bytes, of %d bytes of entries", bytes[true], bytes[false])
	}
}
