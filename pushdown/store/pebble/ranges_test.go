package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding/seedtest"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

// keysOf returns the keys of a table's rows.
func keysOf(t *testing.T, s *Store, table string) (keys []string) {
	t.Helper()
	for row, err := range store.Rows(t.Context(), s, store.Scan{Table: table}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, string(row.Key))
	}
	return keys
}

// awkwardRow draws a short key of few different bytes, so that many begin alike.
func awkwardRow(rng *rand.Rand) []byte {
	key := []byte{"\x00\x01r\xff"[rng.IntN(4)]}
	for range rng.IntN(4) {
		key = append(key, "\x00\x01r\xff"[rng.IntN(4)])
	}
	return key
}

// Exactly the rows in the ranges are gone, whatever their keys are and wherever pebble has put them,
// also after a restart; rows of another table stay, and what is put later is found.
func TestDeleteRows(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	files := vfs.NewMem()
	reopen := func() *Store {
		s, err := Open("data", Options{FS: files, MemTableBytes: 64 << 10, IdleFlush: -1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := reopen()
	defer func() { s.Close() }()
	create(t, s)
	spec := store.TableSpec{Name: "tsdb2", Families: []store.FamilySpec{{Name: "t"}}}
	if err := s.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	model := map[string]bool{}
	for range 400 {
		switch rng.IntN(8) {
		case 0:
			from, to := awkwardRow(rng), awkwardRow(rng)
			ranges := []store.KeyRange{{Start: from, Stop: to}, {Start: awkwardRow(rng), Stop: awkwardRow(rng)}}
			if err := s.DeleteRows(t.Context(), "tsdb", ranges); err != nil {
				t.Fatal(err)
			}
			for key := range model {
				if ranges[0].Contains([]byte(key)) || ranges[1].Contains([]byte(key)) {
					delete(model, key)
				}
			}
			if rng.IntN(4) == 0 {
				if err := s.Reclaim(t.Context(), "tsdb", ranges); err != nil {
					t.Fatal(err)
				}
			}
		case 1:
			if rng.IntN(4) > 0 {
				if err := s.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = reopen()
		default:
			key := awkwardRow(rng)
			m := store.Mutation{
				Kind:      []store.MutationKind{store.Put, store.Append}[rng.IntN(2)],
				Row:       key,
				Family:    "t",
				Qualifier: awkwardRow(rng),
				Value:     []byte("v"),
			}
			for _, table := range []string{"tsdb", "tsdb2"} {
				if err := s.Apply(t.Context(), table, []store.Mutation{m}); err != nil {
					t.Fatal(err)
				}
			}
			model[string(key)] = true
		}
		var want []string
		for key := range model {
			want = append(want, key)
		}
		slices.Sort(want)
		if d := cmp.Diff(want, keysOf(t, s, "tsdb")); d != "" {
			t.Fatalf("(-want +got)\n%s", d)
		}
	}
	if n := len(keysOf(t, s, "tsdb2")); n < 50 {
		t.Errorf("another table has %d rows, want all that were put", n)
	}
}

// A range without a bound is refused; one that ends before it begins has no rows.
func TestDeleteRows_bounds(t *testing.T) {
	s := openMem(t, Options{})
	create(t, s)
	apply(t, s, cell(store.Put, "r", "q", "v"))
	for _, r := range []store.KeyRange{{}, {Start: []byte("a")}, {Stop: []byte("z")}} {
		if err := s.DeleteRows(t.Context(), "tsdb", []store.KeyRange{r}); err == nil ||
			!strings.Contains(err.Error(), "want both bounds") {
			t.Errorf("%v: %v", r, err)
		}
	}
	for _, r := range [][]store.KeyRange{nil, {keyRange("z", "a")}, {keyRange("r", "r")}} {
		if err := errors.Join(s.DeleteRows(t.Context(), "tsdb", r), s.Reclaim(t.Context(), "tsdb", r)); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
	none := []store.KeyRange{keyRange("a", "z")}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	size := func(ctx context.Context, table string, ranges []store.KeyRange) error {
		_, err := s.DiskBytes(ctx, table, ranges)
		return err
	}
	for _, call := range []func(context.Context, string, []store.KeyRange) error{s.DeleteRows, s.Reclaim, size} {
		if err := call(t.Context(), "none", none); !errors.Is(err, store.ErrNoTable) {
			t.Errorf("no table: %v", err)
		}
		if err := call(ended, "tsdb", none); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v", err)
		}
	}
	if got := dump(t, s, store.Scan{}); got != "r/t:q=v " {
		t.Errorf("the table has %q", got)
	}
}

// A scan that is open sees the rows as they were.
func TestDeleteRows_openScan(t *testing.T) {
	s := openMem(t, Options{})
	create(t, s)
	apply(t, s, cell(store.Put, "a", "q", "v"), cell(store.Append, "b", "q", "v"))
	sc, err := s.Scan(t.Context(), store.Scan{Table: "tsdb"})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	ranges := []store.KeyRange{keyRange("a", "c")}
	if err := errors.Join(s.DeleteRows(t.Context(), "tsdb", ranges), s.Flush(t.Context()),
		s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, true)); err != nil {
		t.Fatal(err)
	}
	if got := drain(t, sc); got != "a/t:q=v b/t:q=v " {
		t.Errorf("the scan has %q", got)
	}
	if got := dump(t, s, store.Scan{}); got != "" {
		t.Errorf("a later scan has %q", got)
	}
}

// Version tokens of one range are equal only if nothing in it was written or deleted between, whatever
// the ranges are that are deleted; those of other hours and metrics stay.
func TestVersion_ranges(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := openGrouped(t)
	r := store.KeyRange{Start: hourRow(1, 10, ""), Stop: hourRow(1, 13, "")}
	kept, seen := 0, map[string]bool{s.mustVersion(t, r): true}
	for range 300 {
		before := s.mustVersion(t, r)
		metric, from, to := byte(1+rng.IntN(2)), uint32(rng.IntN(20)), uint32(rng.IntN(20))
		in := metric == 1 && from < to && from < 13 && to > 10
		del := store.KeyRange{Start: hourRow(metric, from, ""), Stop: hourRow(metric, to, "")}
		if from >= to {
			continue
		}
		if rng.IntN(30) == 0 {
			del.Stop, in = hourRow(metric+1, to, ""), true // of two metrics: counts for all
		}
		if err := s.DeleteRows(t.Context(), "t", []store.KeyRange{del}); err != nil {
			t.Fatal(err)
		}
		after := s.mustVersion(t, r)
		same := after == before
		if !same && seen[after] {
			t.Fatalf("the token %q came back", after)
		}
		seen[after] = true
		if in && same {
			t.Fatalf("hours %d to %d of metric %d are deleted, and the token %q of hours 10 to 13 of metric 1 stays",
				from, to, metric, before)
		}
		if same {
			kept++
		}
		// A deletion elsewhere leaves the token; one next to it, too, unless an earlier one was wider.
		if metric != 1 && !in && !same {
			t.Fatalf("a deletion of metric %d changes the token of metric 1", metric)
		}
	}
	if kept == 0 {
		t.Error("no token stayed")
	}
}

// A deletion changes the tokens of its own hours, the first and the last among them.
func TestVersion_rangesBounds(t *testing.T) {
	r := store.KeyRange{Start: hourRow(1, 10, ""), Stop: hourRow(1, 13, "")}
	for hours, want := range map[[2]uint32]bool{
		{1, 10}: false, {1, 11}: true, {11, 12}: true, {12, 20}: true, {13, 20}: false,
	} {
		s := openGrouped(t)
		before := s.mustVersion(t, r)
		del := store.KeyRange{Start: hourRow(1, hours[0], ""), Stop: hourRow(1, hours[1], "")}
		if err := s.DeleteRows(t.Context(), "t", []store.KeyRange{del}); err != nil {
			t.Fatal(err)
		}
		if changed := s.mustVersion(t, r) != before; changed != want {
			t.Errorf("hours %v are deleted: the token of hours 10 to 13 changes %v, want %v", hours, changed, want)
		}
	}
}

// While a deletion of ranges becomes visible there is no token of its hours.
func TestVersion_rangesInProgress(t *testing.T) {
	s := openGrouped(t)
	here := store.KeyRange{Start: hourRow(1, 0, ""), Stop: hourRow(1, 1, "")}
	there := store.KeyRange{Start: hourRow(1, 5, ""), Stop: hourRow(1, 6, "")}
	s.mustVersion(t, here)
	end := s.changes.beginRanges("t", []store.KeyRange{{Start: hourRow(1, 0, ""), Stop: hourRow(1, 3, "")}})
	if s.mustVersion(t, here) != "" || s.mustVersion(t, store.KeyRange{}) != "" {
		t.Error("a token while rows are being deleted, want none of their hours and of the whole table")
	}
	if s.mustVersion(t, there) == "" {
		t.Error("no token of another hour")
	}
	end()
	all := s.changes.beginRanges("t", []store.KeyRange{{Start: hourRow(1, 0, ""), Stop: hourRow(2, 3, "")}})
	if s.mustVersion(t, here) != "" || s.mustVersion(t, there) != "" {
		t.Error("tokens while rows of two metrics are being deleted, want none")
	}
	all()
	if s.mustVersion(t, here) == "" || s.mustVersion(t, store.KeyRange{}) == "" {
		t.Error("no token afterwards")
	}
}

// If very many prefixes have deletions, all are forgotten, and all tokens are others.
func TestVersion_manyDeletions(t *testing.T) {
	s := openGrouped(t)
	r := store.KeyRange{Start: hourRow(1, 10, ""), Stop: hourRow(1, 13, "")}
	seen := map[string]bool{s.mustVersion(t, r): true}
	for range 2 {
		var ranges []store.KeyRange
		for i := range maxGroups + 1 {
			prefix := []byte{byte(1 + i>>16), byte(i >> 8), byte(i), 0, 0, 0}
			ranges = append(ranges, store.KeyRange{
				Start: append(slices.Clone(prefix), 0),
				Stop:  append(slices.Clone(prefix), 9),
			})
		}
		if err := s.DeleteRows(t.Context(), "t", ranges); err != nil {
			t.Fatal(err)
		}
		if n := len(s.changes.deletions); n > maxGroups {
			t.Errorf("%d deletions are kept", n)
		}
		token := s.mustVersion(t, r)
		if seen[token] || token == "" {
			t.Errorf("token %q", token)
		}
		seen[token] = true
	}
}

// A watch of rows in a range that is deleted has lost something, and is called; any other has not.
func TestWatch_ranges(t *testing.T) {
	s := openWatched(t)
	var notified [4]int
	var watches [4]store.Watch
	for i, ranges := range [][]store.KeyRange{
		{keyRange("b", "d"), keyRange("x", "")},
		{keyRange("f", "h")},
		{keyRange("a", "a\x01"), keyRange("e", "f")},
		{keyRange("d", "e")},
	} {
		w, err := s.Watch("tsdb", ranges, func() { notified[i]++ })
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		watches[i] = w
	}
	apply(t, s, cell(store.Put, "c", "q", "v"), cell(store.Put, "g", "q", "v"))
	if err := s.DeleteRows(t.Context(), "tsdb", []store.KeyRange{keyRange("c", "e"), keyRange("y", "z")}); err != nil {
		t.Fatal(err)
	}
	rows, lost := taken(watches[0])
	if len(rows) != 0 || !lost || notified[0] != 2 {
		t.Errorf("watch of deleted rows: %q, lost %t, notified %d times", rows, lost, notified[0])
	}
	if rows, lost := taken(watches[1]); !slices.Equal(rows, []string{"g"}) || lost || notified[1] != 1 {
		t.Errorf("watch of other rows: %q, lost %t, notified %d times", rows, lost, notified[1])
	}
	if rows, lost := taken(watches[2]); len(rows) != 0 || lost || notified[2] != 0 {
		t.Errorf("watch of rows next to them: %q, lost %t, notified %d times", rows, lost, notified[2])
	}
	if _, lost := taken(watches[3]); !lost || notified[3] != 1 {
		t.Errorf("watch of rows that are all deleted: lost %t, notified %d times", lost, notified[3])
	}
	apply(t, s, cell(store.Put, "c", "q", "v"))
	if rows, lost := taken(watches[0]); !slices.Equal(rows, []string{"c"}) || lost {
		t.Errorf("afterwards: %q, lost %t", rows, lost)
	}
}

// A crash leaves a deletion of ranges whole or not at all, and an acknowledged one is there.
func TestDeleteRows_crash(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		files := vfs.NewCrashableMem()
		s, err := Open("data", Options{FS: files, IdleFlush: -1})
		if err != nil {
			t.Fatal(err)
		}
		create(t, s)
		for _, row := range []string{"a1", "a2", "b1", "b2", "c"} {
			apply(t, s, cell(store.Append, row, "q", "v"))
		}
		acknowledged := rng.IntN(2) == 0
		ranges := []store.KeyRange{keyRange("a", "b"), keyRange("b2", "b3")}
		if acknowledged {
			if err := s.DeleteRows(t.Context(), "tsdb", ranges); err != nil {
				t.Fatal(err)
			}
		} else {
			b := s.newBatch(0)
			bounds, err := s.bounds("tsdb", ranges)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range bounds {
				if err := b.DeleteRange(k.Start, k.End, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.makeRangesVisible(b, "tsdb", ranges); err != nil {
				t.Fatal(err)
			}
		}
		after := files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}

		again, err := Open("data", Options{FS: after, IdleFlush: -1})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(keysOf(t, again, "tsdb"), " ")
		if got != "b1 c" && (acknowledged || got != "a1 a2 b1 b2 c") {
			t.Errorf("after a crash, acknowledged %t: %q", acknowledged, got)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// hoursOf fills a table with so many hours of each of some metrics.
func hoursOf(t *testing.T, s *Store, metrics, hours, series int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	for hour := range hours {
		var batch []store.Mutation
		for metric := range metrics {
			for i := range series {
				value := make([]byte, 400)
				for j := range value {
					value[j] = byte(rng.Uint32())
				}
				batch = append(batch, store.Mutation{
					Kind:      store.Put,
					Row:       hourRow(byte(metric), uint32(hour), fmt.Sprintf("%06d", i)),
					Family:    "t",
					Qualifier: []byte("q"),
					Value:     value,
				})
			}
		}
		if err := s.Apply(t.Context(), "t", batch); err != nil {
			t.Fatal(err)
		}
	}
}

// Most of what deleted rows took on the disk is free when Reclaim returns, if they are the older
// hours of many metrics, too, so that each table of pebble has some of them; and the rows that stay
// are all there. Where deleted rows take little, nothing is written again.
func TestReclaim(t *testing.T) {
	s := openMem(t, Options{Grouping: hourly, MemTableBytes: 256 << 10})
	spec := store.TableSpec{Name: "t", Families: []store.FamilySpec{{Name: "t"}}}
	if err := s.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	const metrics, hours, series = 20, 40, 50
	hoursOf(t, s, metrics, hours, series)
	if err := errors.Join(s.Flush(t.Context()),
		s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, true)); err != nil {
		t.Fatal(err)
	}
	ranges := func(until uint32) (all []store.KeyRange) {
		for metric := range byte(metrics) {
			all = append(all, store.KeyRange{Start: hourRow(metric, 0, ""), Stop: hourRow(metric, until, "")})
		}
		return all
	}
	used := func() int64 { return int64(s.db.Metrics().DiskSpaceUsage()) }
	before, err := s.DiskBytes(t.Context(), "t", ranges(hours))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.DiskBytes(t.Context(), "t", ranges(30)); err != nil || n < before*2/3 || n > before*5/6 {
		t.Errorf("three quarters of the rows take %d bytes of %d, %v", n, before, err)
	}

	compactions := s.db.Metrics().Compact.Count
	if err := errors.Join(s.DeleteRows(t.Context(), "t", ranges(1)),
		s.Reclaim(t.Context(), "t", ranges(1))); err != nil {
		t.Fatal(err)
	}
	if n := s.db.Metrics().Compact.Count - compactions; n > 8 {
		t.Errorf("%d compactions to free a fortieth", n)
	}
	if err := errors.Join(s.DeleteRows(t.Context(), "t", ranges(30)),
		s.Reclaim(t.Context(), "t", ranges(30))); err != nil {
		t.Fatal(err)
	}
	if n, err := s.DiskBytes(t.Context(), "t", ranges(30)); err != nil || n > before/reclaimPart {
		t.Errorf("deleted rows take %d bytes of %d, %v", n, before, err)
	}
	// Files go soon after they are not needed any more.
	free := func() bool { return used() < before*2/5 }
	for deadline := time.Now().Add(time.Minute); !free() && time.Now().Before(deadline); {
		if err := wait.For(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if !free() {
		t.Errorf("%d bytes of %d are used after three quarters were deleted", used(), before)
	}
	if n, want := len(keysOf(t, s, "t")), metrics*(hours-30)*series; n != want {
		t.Errorf("%d rows, want %d", n, want)
	}
	t.Logf("%d bytes of %d are used", used(), before)
}

// narrowDisk says how much is free.
type narrowDisk struct {
	vfs.FS
	free atomic.Uint64
}

func (d *narrowDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{TotalBytes: 1 << 30, AvailBytes: d.free.Load()}, nil
}

// On a disk that has no room for puts, rows can be deleted as long as there is any, which makes room.
func TestDeleteRows_fullDisk(t *testing.T) {
	disk := &narrowDisk{FS: vfs.NewMem()}
	disk.free.Store(1 << 29)
	s := openMem(t, Options{FS: disk})
	create(t, s)
	apply(t, s, cell(store.Put, "a", "q", string(bytes.Repeat([]byte("x"), 1000))))
	disk.free.Store(4 << 20)
	if err := s.Apply(t.Context(), "tsdb",
		[]store.Mutation{cell(store.Put, "b", "q", "v")}); !errors.Is(err, store.ErrFull) {
		t.Errorf("a put: %v", err)
	}
	if err := s.DeleteRows(t.Context(), "tsdb", []store.KeyRange{keyRange("a", "b")}); err != nil {
		t.Errorf("a deletion: %v", err)
	}
	if got := dump(t, s, store.Scan{}); got != "" {
		t.Errorf("the table has %q", got)
	}
	disk.free.Store(100 << 10)
	if err := s.DeleteRows(t.Context(), "tsdb", []store.KeyRange{keyRange("a", "b")}); !errors.Is(err, store.ErrFull) ||
		!strings.Contains(err.Error(), "100 KiB are free, deleting takes 1024 KiB") {
		t.Errorf("a deletion without any room: %v", err)
	}
	disk.free.Store(1 << 29)
}
