package pebble

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/process/wait"
	"downpour/pushdown/store"
)

// openNarrow opens a store with a table on a disk of 1 GiB.
func openNarrow(t *testing.T) (*Store, *narrowDisk) {
	t.Helper()
	disk := &narrowDisk{FS: vfs.NewMem()}
	disk.free.Store(1 << 29)
	s := openMem(t, Options{FS: disk, Grouping: hourly, MemTableBytes: 256 << 10})
	err := s.CreateTable(t.Context(), store.TableSpec{Name: "t", Families: []store.FamilySpec{{Name: "t"}}})
	if err != nil {
		t.Fatal(err)
	}
	return s, disk
}

// pastHours are the first hours of some metrics.
func pastHours(first, metrics, hours int) (all []store.KeyRange) {
	for metric := first; metric < first+metrics; metric++ {
		all = append(all, store.KeyRange{
			Start: hourRow(byte(metric), 0, ""),
			Stop:  hourRow(byte(metric), uint32(hours), ""),
		})
	}
	return all
}

// Puts of many metrics fill a disk until they are refused. Then the older hours of each are deleted,
// though no table of pebble holds nothing else, and there is room for puts again.
func TestReclaim_whilePutsAreRefused(t *testing.T) {
	const metrics, series, disk = 50, 10, 80 << 20
	s, narrow := openNarrow(t)
	used := func() uint64 { return s.db.Metrics().DiskSpaceUsage() }
	rng := rand.New(rand.NewPCG(1, 1))
	put := func(hour int) error {
		narrow.free.Store(disk - min(disk, used()))
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
		return s.Apply(t.Context(), "t", batch)
	}

	hours := 0
	for ; ; hours++ {
		err := put(hours)
		if errors.Is(err, store.ErrFull) {
			break
		}
		if err != nil || hours > 1000 {
			t.Fatalf("after %d hours: %v, want that the disk is full", hours, err)
		}
		if hours%20 == 19 {
			if err := errors.Join(s.Flush(t.Context()),
				s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, true)); err != nil {
				t.Fatal(err)
			}
		}
	}
	past := pastHours(0, metrics, hours*3/4)
	if err := errors.Join(s.DeleteRows(t.Context(), "t", past), s.Reclaim(t.Context(), "t", past)); err != nil {
		t.Fatal(err)
	}

	// Files go soon after they are not needed any more.
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if err = put(hours); !errors.Is(err, store.ErrFull) {
			break
		}
		if err := wait.For(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Errorf("a put after %d of %d hours were deleted: %v", hours*3/4, hours, err)
	}
	if n, want := len(keysOf(t, s, "t")), metrics*series*(hours-hours*3/4+1); n != want {
		t.Errorf("%d rows, want %d", n, want)
	}
}

// Where less is free than a step writes at most, a step is smaller; where not even one range fits,
// there is no room.
func TestReclaim_steps(t *testing.T) { synctest.Test(t, reclaimSteps) }

func reclaimSteps(t *testing.T) {
	const metrics, hours, series = 20, 40, 65
	s, disk := openNarrow(t)
	hoursOf(t, s, metrics, hours, series)
	if err := errors.Join(s.Flush(t.Context()),
		s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, true)); err != nil {
		t.Fatal(err)
	}
	past := pastHours(0, metrics, 10)
	bounds, err := s.bounds("t", past)
	if err != nil {
		t.Fatal(err)
	}

	if n, err := s.reclaimSome(t.Context(), bounds); n != metrics || err != nil {
		t.Errorf("with room for all %d ranges: %d, %v", metrics, n, err)
	}
	disk.free.Store(keepFree + 10<<20)
	for left, steps := bounds, 0; len(left) > 0; steps++ {
		n, err := s.reclaimSome(t.Context(), left)
		if err != nil || n < 1 || n == metrics {
			t.Fatalf("step %d of %d ranges, with room for a part: %d, %v", steps, len(left), n, err)
		}
		left = left[n:]
	}
	disk.free.Store(keepFree + 1000)
	empty := store.KeyRange{Start: []byte{0, 0, 0}, Stop: []byte{0, 0, 0, 1}}
	err = s.Reclaim(t.Context(), "t", append([]store.KeyRange{empty}, past...))
	if !errors.Is(err, store.ErrFull) {
		t.Fatalf("with room for the first range alone: %v", err)
	}
	var need, free int
	_, text, _ := strings.Cut(err.Error(), " to write ")
	if _, err := fmt.Sscanf(text, "%d KiB of tables again: %d KiB are free", &need, &free); err != nil ||
		need <= 0 || need > 30<<10 || free != keepFree>>10 {
		t.Errorf("got %q, want that %d KiB are free, and how much is wanted of 20 MiB", text, keepFree>>10)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.reclaimSome(ended, bounds); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, err := s.reclaimSome(t.Context(), bounds); !errors.Is(err, store.ErrFull) {
		t.Errorf("with hardly any room: %v", err)
	}

	// A table of level 0 that spans all metrics is compacted with all of them.
	disk.free.Store(1 << 29)
	hoursOf(t, s, metrics, 1, 1)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	disk.free.Store(keepFree + 10<<20)
	if _, err := s.reclaimSome(t.Context(), bounds); !errors.Is(err, store.ErrFull) {
		t.Errorf("a step that writes all tables again, with room for a part: %v", err)
	}
	disk.free.Store(1 << 29)
}

// A step writes the tables that have a part of its ranges, and in a small database those that a table of level 0
// among them spans.
func TestReclaim_writtenAnew(t *testing.T) {
	s := openMem(t, Options{})
	table := func(size uint64, first, last string) pebble.SSTableInfo {
		var i pebble.SSTableInfo
		i.Size = size
		i.Smallest.UserKey = appendKey(nil, "t", []byte(first), "t", nil)
		i.Largest.UserKey = appendKey(nil, "t", []byte(last), "t", nil)
		return i
	}
	const mib = 1 << 20
	bounds := func(rows ...string) (all []pebble.KeyRange) {
		for _, row := range rows {
			all = append(all, pebble.KeyRange{
				Start: appendKey(nil, "t", []byte(row), "", nil),
				End:   appendKey(nil, "t", []byte(row+"~"), "", nil),
			})
		}
		return all
	}
	levels := func(below uint64, top ...pebble.SSTableInfo) [][]pebble.SSTableInfo {
		return [][]pebble.SSTableInfo{
			top, {table(below, "b", "c")}, {table(below, "d", "e"), table(below, "f", "g")},
		}
	}
	dToE := []pebble.KeyRange{{Start: bounds("d")[0].Start, End: bounds("e")[0].End}}
	for _, c := range []struct {
		top   []pebble.SSTableInfo
		below uint64 // bytes of each of three tables: b to c, d to e, f to g
		want  uint64
	}{
		{nil, 10 * mib, 10 * mib},
		{[]pebble.SSTableInfo{table(1, "a", "c")}, 10 * mib, 10 * mib}, // not of the range
		{[]pebble.SSTableInfo{table(1, "b", "d")}, 10 * mib, 20*mib + 1},
		{[]pebble.SSTableInfo{table(1, "e", "g")}, 10 * mib, 20*mib + 1},
		{[]pebble.SSTableInfo{table(1, "c", "d"), table(2, "e", "f1")}, 10 * mib, 30*mib + 3},
		{[]pebble.SSTableInfo{table(1, "c", "f1"), table(2, "d", "d1")}, 10 * mib, 30*mib + 3},
		{[]pebble.SSTableInfo{table(1, "b", "g")}, 30 * mib, 30*mib + 1},
	} {
		if got := s.writtenAnew(levels(c.below, c.top...), dToE, 1); got != c.want {
			t.Errorf("%d tables of level 0, %d MiB each below: got %d, want %d", len(c.top), c.below/mib, got, c.want)
		}
	}
	// Rows that are deleted are not written: those of later ranges, too, if their tables are.
	create(t, s)
	b := s.newBatch(0)
	for _, row := range []string{"d1", "f1"} {
		b.put("t", []byte(row), "t", nil, 1, make([]byte, 100))
	}
	if err := errors.Join(s.commit(b), s.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	for last, want := range map[string]uint64{"e": 20*mib + 1, "g": 30*mib + 1} {
		ranges := bounds("d", "f")
		counted := ranges
		if last == "e" {
			counted = ranges[:1]
		}
		deleted, err := s.diskBytes(counted)
		if err != nil || deleted == 0 {
			t.Fatal(deleted, err)
		}
		if got := s.writtenAnew(levels(10*mib, table(1, "c", last)), ranges, 1); got != want-uint64(deleted) {
			t.Errorf("with a table of level 0 up to %s: got %d, want %d without %d", last, got, want, deleted)
		}
	}
}
