package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

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
		if len(r.Faults) > 0 || r.Tables == 0 || r.Bytes == 0 || r.Logs == 0 {
			t.Errorf("%s: %+v, want no faults", state, r)
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
