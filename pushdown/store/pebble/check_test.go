package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/journal"
)

func check(t *testing.T, i image) store.CheckReport {
	t.Helper()
	files := i.files(t)
	r, err := Check(t.Context(), "data",
		Options{FS: files, Logger: quiet(), CacheBytes: 1 << 20, Grouping: hourly}, nil)
	if err != nil {
		t.Fatal(err)
	}
	after := take(t, files)
	delete(after, "LOCK")
	for name, data := range after {
		if !bytes.Equal(data, i[name]) {
			t.Errorf("check has changed %s", name)
		}
	}
	return r
}

// Check finds no fault in a whole store. It finds each changed byte of a table, of the MANIFEST, of
// its copy and of the used part of a log, and each missing table.
func TestCheck(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	killed, closed, _ := smallStore(t)
	for state, i := range map[string]image{"killed": killed, "closed": closed} {
		r := check(t, i)
		size := int64(0)
		for _, data := range i {
			size += int64(len(data))
		}
		if len(r.Faults) > 0 || r.Tables == 0 || r.Bytes != size || r.Logs != 1 {
			t.Errorf("%s: %+v, want %d bytes of tables and a log, and no faults", state, r, size)
		}
		used := tablesInUse(t, i)
		if r.Tables != len(used) {
			t.Errorf("%s: %d tables are read, want %d", state, r.Tables, len(used))
		}
		list := harms(i)
		if !*soak {
			rng.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
			list = list[:300]
		}
		for _, h := range list {
			data := h.do(i[h.file], rng)
			if data == nil || !slices.Contains(used, h.file) && !strings.Contains(h.file, "MANIFEST") &&
				(state == "closed" || !strings.HasSuffix(h.file, ".log")) {
				continue
			}
			if strings.HasSuffix(h.file, ".log") && h.how == "cut" && int64(h.at) >= endOfLog(t, h.file, i[h.file]) {
				continue // only some of the zeros behind the records are gone, which is no fault
			}
			r := check(t, i.with(h.file, data))
			if !slices.ContainsFunc(r.Faults, func(f store.Fault) bool { return f.File == h.file }) {
				t.Errorf("%s, %+v: %v, want it found", state, h, r.Faults)
			}
		}
	}
	for _, name := range tablesInUse(t, closed) {
		gone := maps.Clone(closed)
		delete(gone, name)
		if r := check(t, gone); len(r.Faults) != 1 || r.Faults[0].File != name {
			t.Errorf("%s is missing: %v, want it found", name, r.Faults)
		}
	}
	if r := check(t, killed.with("000099.sst", []byte("begun")).with("000098.sst", nil)); len(r.Faults) > 0 {
		t.Errorf("tables that were being written: %v, want no faults", r.Faults)
	}
}

// A check of a store whose markers the next start repairs says so, and reads what it always reads.
func TestCheck_markers(t *testing.T) {
	killed, closed, _ := smallStore(t)
	for state, i := range map[string]image{"killed": killed, "closed": closed} {
		whole := check(t, i)
		unversioned := maps.Clone(i)
		maps.DeleteFunc(unversioned, func(name string, _ []byte) bool {
			return strings.HasPrefix(name, "marker.format-version.")
		})
		for want, harmed := range map[string]image{
			"marker.format-version.*: missing": unversioned,
			"MANIFEST-000099: never written":   i.with("marker.manifest.000900.MANIFEST-000099", nil),
		} {
			r := check(t, harmed)
			if len(r.Faults) != 1 || !strings.Contains(r.Faults[0].String(), want) || r.Tables != whole.Tables {
				t.Errorf("%s: got %v of %d tables, want %q of %d", state, r.Faults, r.Tables, want, whole.Tables)
			}
		}
	}
}

// Where a MANIFEST or its marker is lost, nobody knows which tables count: all are read, and the check does not fail.
func TestCheck_lost(t *testing.T) {
	killed, _, _ := smallStore(t)
	used := tablesInUse(t, killed)
	damaged := bytes.Clone(killed[used[0]])
	damaged[10] ^= 1
	harmed := killed.with(used[0], damaged).with("000099.sst", []byte("begun"))
	const marker, manifest, copied = "marker.manifest.000001.MANIFEST-000001", "MANIFEST-000001", "copy.MANIFEST-000001"
	for what, c := range map[string]struct {
		without []string
		file    string
	}{
		"the marker":   {[]string{marker}, "marker.manifest.*"},
		"the MANIFEST": {[]string{manifest, copied}, manifest},
	} {
		i := maps.Clone(harmed)
		for _, name := range c.without {
			delete(i, name)
		}
		var files []string
		r := check(t, i)
		for _, f := range r.Faults {
			if f.Kind == store.Lost || f.Kind == store.Unreadable {
				files = append(files, f.File)
			}
		}
		if r.Tables != len(used)+1 || len(files) < 3 || files[0] != c.file ||
			!slices.Equal(files[len(files)-2:], []string{used[0], "000099.sst"}) {
			t.Errorf("without %s: got %d tables, %v, want %d, and %s, %s and 000099.sst", what, r.Tables, r.Faults,
				len(used)+1, c.file, used[0])
		}
	}
}

// A check of the file of pebble's options says that one cannot be read, or is of another store.
func TestCheck_options(t *testing.T) {
	killed, _, _ := smallStore(t)
	const name = "OPTIONS-000003"
	other := bytes.Replace(killed[name], []byte("merger="), []byte("merger=another."), 1)
	for text, kind := range map[string]store.FaultKind{"no options": store.Mended, string(other): store.Lost} {
		r := check(t, killed.with(name, []byte(text)))
		if len(r.Faults) != 1 || r.Faults[0].File != name || r.Faults[0].Kind != kind || r.Tables == 0 {
			t.Errorf("got %v of %d tables, want one of %s that is %s, and tables read", r.Faults, r.Tables, name, kind)
		}
	}
}

// What is known of an earlier check is not read again. All else is.
func TestCheckFiles_known(t *testing.T) {
	killed, _, _ := smallStore(t)
	used := tablesInUse(t, killed)
	harmed := killed
	for _, name := range used {
		data := bytes.Clone(killed[name])
		data[10] ^= 1
		harmed = harmed.with(name, data)
	}
	for _, known := range used {
		opts := Options{FS: harmed.files(t), Logger: quiet(), Grouping: hourly}.withDefaults()
		r, err := checkFiles(t.Context(), "data", opts, map[string]bool{known: true}, nil)
		if err != nil || r.Tables != len(used)-1 || len(r.Faults) == 0 ||
			slices.ContainsFunc(r.Faults, func(f store.Fault) bool { return f.File == known }) {
			t.Errorf("%s is known: got %d tables, %v, %v, want the others, and their damage",
				known, r.Tables, r.Faults, err)
		}
	}
}

// checkTable checks a table with a block for each row, harmed after it was written.
func checkTable(t *testing.T, write func(w *sstable.Writer) error, harm func(table []byte)) store.CheckReport {
	t.Helper()
	opts := Options{FS: image{}.files(t), Logger: quiet(), Grouping: hourly}.withDefaults()
	var report store.CheckReport
	c := checker{opts: opts, dir: "data", report: &report}
	f, err := opts.FS.Create("data/000001.sst", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	options := opts.pebbleOptions(c.log()).MakeWriterOptions(0, formatVersion.MaxTableFormat())
	options.BlockSize = 1
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), options)
	if err := errors.Join(write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	table := take(t, opts.FS)["000001.sst"]
	harm(table)
	if err := writeFile(opts.FS, "data/000001.sst", table); err != nil {
		t.Fatal(err)
	}
	if err := c.checkTable(t.Context(), "000001.sst"); err != nil || report.Tables != 1 {
		t.Errorf("got %+v, %v, want one table", report, err)
	}
	return report
}

// Deletions, of cells and of ranges, have no value, which is no damage.
func TestCheckTable_deletions(t *testing.T) {
	r := checkTable(t, func(w *sstable.Writer) error {
		return errors.Join(w.Set(hourKey(1), []byte{tagAppend}), w.Delete(hourKey(2)),
			w.DeleteRange(hourKey(4), hourKey(5)))
	}, func([]byte) {})
	if len(r.Faults) > 0 {
		t.Errorf("got %v, want no faults", r.Faults)
	}
}

// The hours of damaged blocks reach from the row before all of them to the row behind, which may be of an earlier hour:
// it may have another metric.
func TestCheckTable_hours(t *testing.T) {
	values := [][]byte{[]byte("\x00the first"), []byte("\x00the second"), []byte("\x00the third")}
	for _, c := range []struct {
		hours       [3]uint32
		damaged     []int
		first, last int64 // -1 for no times
	}{
		{[3]uint32{3, 5, 9}, []int{0}, 5, 5},
		{[3]uint32{3, 5, 9}, []int{1}, 3, 9},
		{[3]uint32{3, 5, 9}, []int{2}, 5, 5},
		{[3]uint32{3, 5, 9}, []int{0, 1}, 9, 9},
		{[3]uint32{3, 5, 9}, []int{1, 2}, 3, 3},
		{[3]uint32{3, 5, 9}, []int{0, 2}, -1, -1},
		{[3]uint32{9, 5, 3}, []int{1}, 3, 9},
		{[3]uint32{9, 5, 9}, []int{1}, 9, 9},
	} {
		r := checkTable(t, func(w *sstable.Writer) (err error) {
			for n, hour := range c.hours {
				key := appendKey(nil, "t", hourRow(byte(n), hour, ""), "t", []byte("q"))
				err = errors.Join(err, w.Set(key, values[n]))
			}
			return err
		}, func(table []byte) {
			for _, n := range c.damaged {
				table[bytes.Index(table, values[n])] ^= 4
			}
		})
		if len(r.Faults) != len(c.damaged) {
			t.Errorf("%v damaged: got %v", c.damaged, r.Faults)
		}
		for _, f := range r.Faults {
			if c.first >= 0 {
				wantHours(t, fmt.Sprint(c.hours, c.damaged), f, c.first, c.last)
			} else if !f.First.IsZero() || !f.Last.IsZero() {
				t.Errorf("%v damaged: got %v, want no times", c.damaged, f)
			}
		}
	}
}

// A check on a disk that fails once returns the error, or one more fault that says so: that is no damage, nor is all
// well.
func TestCheck_failingDisk(t *testing.T) {
	killed, _, _ := smallStore(t)
	for name, i := range map[string]image{
		"whole": killed, "another MANIFEST": killed.with("marker.manifest.000900.MANIFEST-000099", nil),
	} {
		mem, before := i.files(t), len(check(t, i).Faults)
		for _, kind := range []errorfs.OpKind{
			errorfs.OpList, errorfs.OpOpen, errorfs.OpStat,
			errorfs.OpFileStat, errorfs.OpFileRead, errorfs.OpFileReadAt,
		} {
			tried := 0
			for ; ; tried++ {
				failed, files := failing(mem, kind, tried)
				r, err := Check(t.Context(), "data", Options{FS: files, Logger: quiet(), Grouping: hourly}, nil)
				at := failed.Load()
				if at == nil {
					break
				}
				said := slices.ContainsFunc(r.Faults, func(f store.Fault) bool {
					return strings.Contains(f.What, syscall.EIO.Error())
				})
				if !errors.Is(err, syscall.EIO) && (err != nil || len(r.Faults) != before+1 || !said) {
					t.Errorf("%s: %v of %v: got %v, %v, want %v", name, kind, at, r.Faults, err, syscall.EIO)
				}
			}
			if tried == 0 {
				t.Errorf("%s: %v: none was tried", name, kind)
			}
		}
	}
}

// failing is a file system on which an operation of a kind fails after so many. It says on which file one did.
func failing(files vfs.FS, kind errorfs.OpKind, after int) (path *atomic.Value, failing vfs.FS) {
	path = &atomic.Value{}
	var n atomic.Int64
	return path, errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != kind || n.Add(1) != int64(after)+1 {
			return nil
		}
		path.Store(op.Path)
		return &fs.PathError{Op: "try", Path: op.Path, Err: syscall.EIO}
	}))
}

// tablesInUse returns the files of the tables that pebble uses.
func tablesInUse(t *testing.T, i image) []string {
	t.Helper()
	p := Options{FS: i.files(t), Logger: quiet()}.withDefaults().pebbleOptions(fatalLogger{log: quiet()})
	p.ReadOnly = true
	db, err := pebble.Open("data", p)
	if err != nil {
		t.Fatal(err)
	}
	levels, err := db.SSTables()
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return onlyInUse(tableNames(slices.Sorted(maps.Keys(i))), levels)
}

// endOfLog is where the last record of a log ends.
func endOfLog(t *testing.T, name string, data []byte) int64 {
	t.Helper()
	number, err := strconv.ParseUint(strings.TrimSuffix(name, ".log"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return journal.Log(data, number).End
}

// A check names the hours of the rows of a damaged record of a log, if these can be read, and not of
// the records around it.
func TestCheck_hoursOfLog(t *testing.T) {
	for _, log := range []string{"the first", "another"} { // their records have other headers
		files := vfs.NewCrashableMem()
		opts := Options{FS: files, Grouping: hourly, Logger: quiet()}
		s, err := Open("data", opts)
		if err != nil {
			t.Fatal(err)
		}
		create(t, s)
		if log == "another" {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = Open("data", opts); err != nil {
				t.Fatal(err)
			}
		}
		for _, hour := range []uint32{1, 5, 9} {
			apply(t, s, cell(store.Put, string(hourRow(1, hour, "tags")), "q", fmt.Sprintf("value of %d", hour)))
		}
		i := takeKilled(t, files)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		checked := 0
		for name, data := range i {
			at := bytes.Index(data, []byte("value of 5"))
			if !strings.HasSuffix(name, ".log") || at < 0 {
				continue
			}
			checked++
			harmed := bytes.Clone(data)
			harmed[at] ^= 1
			r := check(t, i.with(name, harmed))
			want := time.Unix(1356998400+5*3600, 0)
			if len(r.Faults) != 1 || !r.Faults[0].First.Equal(want) || !r.Faults[0].Last.Equal(want) {
				t.Errorf("%s log: got %+v, want one fault of rows of %v", log, r.Faults, want)
			}
		}
		if checked != 1 {
			t.Errorf("%d logs have the record, want 1", checked)
		}
	}
}

// A check names the hours before and after a damaged block of many, and those after one at the begin.
func TestCheck_hoursOfBlock(t *testing.T) {
	files := vfs.NewMem()
	s, err := Open("data", Options{FS: files, Grouping: hourly, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	const rows = 1000
	rng := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 400)
	for hour := range uint32(rows) {
		for i := range value {
			value[i] = byte(rng.Uint32()) // so that it does not compress
		}
		apply(t, s, cell(store.Put, string(hourRow(1, hour, "tags")), "q", string(value)))
	}
	if err := errors.Join(s.Flush(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	i := take(t, files)
	for name, data := range i {
		if !strings.HasSuffix(name, ".sst") || len(data) < rows*len(value) {
			continue
		}
		for at, inside := range map[int]bool{200: false, len(data) / 2: true} {
			harmed := bytes.Clone(data)
			harmed[at] ^= 1
			r := check(t, i.with(name, harmed))
			if len(r.Faults) != 1 || r.Faults[0].First.IsZero() {
				t.Fatalf("got %v, want a fault of hours", r.Faults)
			}
			hours := r.Faults[0].Last.Sub(r.Faults[0].First) / time.Hour
			if inside != (hours > 10) || hours > 200 {
				t.Errorf("a byte at %d: got %v, want a block of many hours: %v", at, r.Faults, inside)
			}
		}
		return
	}
	t.Error("no table has all rows")
}

// A check names the hours of the rows of a damaged block.
func TestCheck_hours(t *testing.T) {
	files := image{}.files(t)
	s, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	load(t, s, 360)
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), "data",
		Options{FS: files, Logger: quiet()}, nil); !errors.Is(err, store.ErrLocked) {
		t.Errorf("check of an open store: %v, want that it is locked", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	i := take(t, files)
	first := time.Unix(1297573200, 0)
	for name, data := range i {
		if !strings.HasSuffix(name, ".sst") || len(data) < 1<<20 {
			continue
		}
		harmed := bytes.Clone(data)
		harmed[len(data)/2] ^= 1
		r := check(t, i.with(name, harmed))
		if len(r.Faults) != 1 || r.Faults[0].Kind != store.Unreadable || r.Faults[0].Bytes > 40<<10 ||
			r.Faults[0].First.Before(first) || r.Faults[0].Last.After(first.Add(benchHours*time.Hour)) ||
			r.Faults[0].Last.Sub(r.Faults[0].First) > time.Hour {
			t.Errorf("%s: %v, want one block of an hour or two", name, r.Faults)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, "data",
		Options{FS: files, Logger: quiet()}, func(int, int) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that is cancelled: %v, want context.Canceled", err)
	}
}
