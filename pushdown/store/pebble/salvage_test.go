package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
	"downpour/pushdown/store/pebble/journal"
)

// logged writes batches of one point each, in rows of six hours, which stay in the log, and returns
// the directory as a kill leaves it.
func logged(t *testing.T, batches int) image {
	t.Helper()
	files := vfs.NewCrashableMem()
	s, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	for i := range batches {
		m := store.Mutation{
			Kind:      store.Append,
			Row:       benchRow(i, i*benchHours/batches),
			Family:    "t",
			Qualifier: []byte{5, 0, 0},
			Value:     benchPoint(nil, i, 0, 0),
		}
		apply(t, s, m)
	}
	i := takeKilled(t, files)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return i
}

// logOf is the image's only log.
func logOf(t *testing.T, i image) (name string, r journal.Reading) {
	t.Helper()
	for file, data := range i {
		if number, ok := strings.CutSuffix(file, ".log"); ok {
			n, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return file, journal.Log(data, n)
		}
	}
	t.Fatal("no log")
	return "", r
}

// countRows counts the rows of table tsdb.
func countRows(t *testing.T, s *Store) int {
	t.Helper()
	rows := 0
	for block, err := range store.Blocks(context.Background(), s, store.Scan{Table: "tsdb"}) {
		if err != nil {
			t.Fatal(err)
		}
		rows += len(block)
	}
	return rows
}

// unused returns the names of files that the database does not use any more, and that were kept.
func (i image) unused() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(i)) {
		if strings.HasPrefix(name, "unused-") {
			names = append(names, name)
		}
	}
	return names
}

// If one bit of a log is flipped, the store refuses to open and names file and offset. Opened with
// Salvage it has all batches but that one, logs how many bytes of which hours are lost, and keeps
// the damaged log under another name, and files that it deletes otherwise. Afterwards it deletes as usual.
func TestSalvage_log(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	const batches = 300
	i := logged(t, batches)
	name, whole := logOf(t, i)
	if len(whole.Records) < batches {
		t.Fatalf("%d records, want %d", len(whole.Records), batches)
	}
	for range 20 {
		hit := 1 + rng.IntN(len(whole.Records)-2) // not the first, which creates the table, nor the last
		rec := whole.Records[hit]
		data := bytes.Clone(i[name])
		data[rec.Start+rng.Int64N(rec.End-rec.Start)] ^= 1 << rng.IntN(8)
		files := i.with(name, data).files(t)

		_, err := Open("data", Options{FS: files, Logger: quiet()})
		var damaged *store.DamageError
		if !errors.As(err, &damaged) || len(damaged.Faults) != 1 || damaged.Faults[0].File != name ||
			damaged.Faults[0].Offset != rec.Start {
			t.Fatalf("record %d at %d: %v, want it refused there", hit, rec.Start, err)
		}

		var log bytes.Buffer
		s, err := Open("data", Options{
			FS:       files,
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			Salvage:  true,
			Grouping: hourly,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := countRows(t, s); got != batches-1 {
			t.Errorf("record %d of %d: %d rows, want %d", hit, len(whole.Records), got, batches-1)
		}
		hour := time.Unix(1297573200+3600*int64((hit-1)*benchHours/batches), 0).UTC().Format("2006-01-02 15:04")
		for _, want := range []string{
			name, fmt.Sprintf("offset %d", rec.Start), fmt.Sprintf("%d bytes", rec.End-rec.Start),
			"hours from", hour,
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("record %d at %d, byte changed: %q is not told: %s", hit, rec.Start, want, &log)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		kept := take(t, files)
		if log := kept["damaged-"+name]; !bytes.Equal(log, data) {
			t.Errorf("the damaged log is kept with %d bytes, want %d", len(log), len(data))
		}
		unused := kept.unused()
		if !slices.Contains(unused, "unused-"+name) {
			t.Errorf("%v are kept, want the repaired log, too", unused)
		}
		s, err = Open("data", Options{FS: files, Logger: quiet()})
		if err != nil {
			t.Fatalf("without the flag, afterwards: %v", err)
		}
		if got := countRows(t, s); got != batches-1 {
			t.Errorf("afterwards %d rows, want %d", got, batches-1)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := take(t, files).unused(); !slices.Equal(got, unused) {
			t.Errorf("without the flag %v are kept, want only %v", got, unused)
		}
	}
}

// If a file is missing, the store reads everything without it or refuses to open. Opened with
// Salvage it reads what is left: everything if only a marker is missing, or the one file that holds no
// rows but the catalogue. After a clean end no log is needed.
func TestMissingFiles(t *testing.T) {
	killed, closed, want := smallStore(t)
	rowless := 0
	for name := range killed {
		var log bytes.Buffer
		i := killed.with(name, nil)
		delete(i, name)
		files, logger := i.files(t), slog.New(slog.NewTextHandler(&log, nil))
		s, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: logger})
		if err == nil {
			got, err := all(s)
			if err != nil || got != want {
				t.Errorf("without %s: got %q, %v, want %q", name, got, err, want)
			}
			if strings.HasPrefix(name, "copy.") && log.Len() > 0 { // earlier versions have made none
				t.Errorf("without %s: got %s, want no line", name, &log)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			t.Logf("without %s: all", name)
			continue
		}
		t.Logf("without %s: %v", name, err)
		table := strings.HasSuffix(name, ".sst")
		if table {
			salvageNotDurable(t, i, name)
		}
		log.Reset()
		s, err = Open("data", Options{FS: files, IdleFlush: -1, Logger: logger, Salvage: true})
		if err != nil {
			t.Errorf("without %s, salvaged: %v", name, err)
			continue
		}
		if table && !strings.Contains(log.String(), "what needs it will fail: "+name) {
			t.Errorf("without %s, salvaged: no line says what will fail: %s", name, &log)
		}
		if got, err := all(s); table && err == nil && got == want {
			rowless++
		} else if (got == want) != strings.HasPrefix(name, "marker.") || table != errors.Is(err, store.ErrDamaged) {
			t.Errorf("without %s, salvaged: got %q, %v, want all only without a marker, "+
				"and damage only without a table", name, got, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if rowless != 1 {
		t.Errorf("%d table files hold no rows, want one", rowless)
	}
	for name := range closed {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		i := closed.with(name, nil)
		delete(i, name)
		if got, told, err := reading(t, i, Options{}); err != nil || got != want {
			t.Errorf("closed, without %s: got %q, %v, want %q: %s", name, got, err, want, told)
		}
	}
}

// salvageNotDurable opens a store without a table on a disk that fails to sync the empty file in its place: it would be
// missing again after a crash.
func salvageNotDurable(t *testing.T, i image, table string) {
	t.Helper()
	files := errorfs.Wrap(i.files(t), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync && strings.HasSuffix(op.Path, table) {
			return syscall.EIO
		}
		return nil
	}))
	if _, err := Open("data", Options{FS: files, Logger: quiet(), Salvage: true}); !errors.Is(err, syscall.EIO) {
		t.Errorf("without %s, salvaged on a disk that fails: got %v, want %v", table, err, syscall.EIO)
	}
}

// holding is a file system that creates no table until may is closed.
type holding struct {
	vfs.FS
	may chan struct{}
}

func (h holding) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		<-h.may
	}
	return h.FS.Create(name, category)
}

// severalLogs returns a directory with logs that were closed and one that was not, the names of
// the logs, and what a scan returns.
func severalLogs(t *testing.T) (i image, logs []string, want string) {
	t.Helper()
	files, may := vfs.NewCrashableMem(), make(chan struct{})
	s, err := Open("data", Options{FS: holding{files, may}, MemTableBytes: 64 << 10, IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	for n := range 120 {
		apply(t, s, cell(store.Put, fmt.Sprintf("row%03d", n), "q", strings.Repeat("x", 1000+n)))
	}
	want = dump(t, s, store.Scan{})
	i = takeKilled(t, files)
	for _, name := range slices.Sorted(maps.Keys(i)) {
		if strings.HasSuffix(name, ".log") {
			logs = append(logs, name)
		}
	}
	close(may)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(logs) < 3 {
		t.Fatalf("logs %q, want at least 3", logs)
	}
	return i, logs, want
}

// If one of several logs is missing, or is cut at the end of a batch, the store refuses to open,
// even if what is left would make sense by itself. Opened with Salvage it logs the loss.
func TestDamage_severalLogs(t *testing.T) {
	i, logs, want := severalLogs(t)
	if got, told, err := reading(t, i, Options{}); err != nil || got != want || told != "" {
		t.Fatalf("whole: %d bytes, want %d: %v, %s", len(got), len(want), err, told)
	}
	refused := func(what string, i image, name string) {
		t.Helper()
		_, _, err := reading(t, i, Options{})
		if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want a refusal that names the log", what, err)
		}
		got, told, err := reading(t, i, Options{Salvage: true})
		if errors.Is(err, store.ErrNoTable) {
			err = nil // the table was made in the first log; a gateway makes it again
		}
		if err != nil || len(got) >= len(want) || !strings.Contains(told, name) {
			t.Errorf("%s, salvaged: %d bytes of %d, %v, want fewer bytes and the log named in: %s",
				what, len(got), len(want), err, told)
		}
	}
	for n, name := range logs {
		gone := maps.Clone(i)
		delete(gone, name)
		named := name
		if n > 0 && n < len(logs)-1 {
			named = logs[n+1] // the next log shows that there was one before it, but not its name
		}
		refused("without "+name, gone, named)
		number, err := strconv.ParseUint(strings.TrimSuffix(name, ".log"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		records := journal.Log(i[name], number).Records
		for _, rec := range records[:len(records)-1] {
			refused(fmt.Sprintf("%s cut at %d", name, rec.End), i.with(name, i[name][:rec.End]), name)
		}
	}
}

// If a MANIFEST and its copy are damaged at the same record, the store opens salvaged
// with the records before it. Both files are saved under other names first: the records
// behind the damage are in them alone.
func TestSalvage_manifestAndCopy(t *testing.T) {
	killed, _, _ := smallStore(t)
	var name string
	for file := range killed {
		if strings.HasPrefix(file, "MANIFEST-") {
			name = file
		}
	}
	copyName := disk.CopyOf(name)
	records := journal.Manifest(killed[name]).Records
	if len(records) < 3 || killed[copyName] == nil {
		t.Fatalf("%d records, a copy of %d bytes: want three or more, and a copy", len(records), len(killed[copyName]))
	}

	damaged := killed
	for _, file := range []string{name, copyName} {
		data := bytes.Clone(killed[file])
		data[records[1].End-1] ^= 1
		damaged = damaged.with(file, data)
	}
	files := damaged.files(t)
	if _, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet()}); !errors.Is(err, store.ErrDamaged) {
		t.Fatalf("got %v, want %v", err, store.ErrDamaged)
	}
	for _, unsaved := range []string{name, copyName} {
		failing := errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, "damaged-"+unsaved) {
				return syscall.EIO
			}
			return nil
		}))
		if _, err := Open("data", Options{FS: failing, Logger: quiet(), Salvage: true}); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s cannot be saved: got %v, want %v", unsaved, err, syscall.EIO)
		}
	}
	s, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet(), Salvage: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}

	after := take(t, files)
	if kept := after[name]; !bytes.Equal(kept, killed[name][:records[0].End]) {
		t.Errorf("the store has opened with %d bytes of the MANIFEST, want the %d before the damage",
			len(kept), records[0].End)
	}
	for _, file := range []string{name, copyName} {
		if !bytes.Equal(after["damaged-"+file], damaged[file]) {
			t.Errorf("damaged-%s has %d bytes, want the %d that were there",
				file, len(after["damaged-"+file]), len(damaged[file]))
		}
	}
}

// If the marker of the MANIFEST is missing, a store that is salvaged gets it first, and then what else is damaged is
// found: it is logged, or an error, as ever.
func TestSalvage_markerAndOthers(t *testing.T) {
	const batches = 50
	i := logged(t, batches)
	var manifest string
	for file := range i {
		if strings.HasPrefix(file, "MANIFEST-") {
			manifest = file
		}
		if strings.HasPrefix(file, "marker.manifest.") {
			delete(i, file)
		}
	}
	log, whole := logOf(t, i)
	data := bytes.Clone(i[log])
	data[whole.Records[batches/2].End-1] ^= 1
	var told bytes.Buffer
	files := i.with(log, data).files(t)
	s, err := Open("data", Options{FS: files, Logger: slog.New(slog.NewTextHandler(&told, nil)), Salvage: true})
	if err != nil {
		t.Fatal(err)
	}
	got := countRows(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got != batches-1 || !strings.Contains(told.String(), log) {
		t.Errorf("got %d rows, want %d, and the damaged log named in: %s", got, batches-1, &told)
	}
	for _, name := range []string{"damaged-" + log, "unused-" + log} {
		if take(t, files)[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}

	useless := i.with(manifest, []byte("useless")).with(disk.CopyOf(manifest), nil)
	if _, told, err := reading(t, useless, Options{Salvage: true}); err == nil ||
		!strings.Contains(err.Error(), "take the directory from a backup") {
		t.Errorf("without a MANIFEST, too: %v, want to be advised to take a backup\n%s", err, told)
	}
}

// The faults of tables are in the order of the tables' names, whatever that of the levels is. Where pebble says
// anything else of a table, there are none.
func TestTableFaults(t *testing.T) {
	text := "L0: 000012: file 000012 (type sstable) unknown to the objstorage provider: file does not exist\n" +
		"L6: 000005: object size mismatch (data/000005.sst): 100 (disk) != 820 (MANIFEST)\n" +
		"L6: 000007: stat data/000007.sst: no such file or directory"
	want := []string{
		"false 000005.sst has 100 bytes, should have 820",
		"true 000007.sst missing",
		"true 000012.sst missing",
	}
	f := func(text string, want []string) {
		t.Helper()
		var got []string
		for _, f := range tableFaults(errors.New(text)) {
			got = append(got, fmt.Sprint(f.Kind == store.Lost, " ", f.File, " ", f.What))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(text, want)
	f(text+"\nL6: 000008: stat data/000008.sst: input/output error", nil)
}

// A table is not missing while the disk cannot say whether it is there: Salvage would put an empty file there.
//
//fault:unseen-table-taken-for-missing !isMissing.MatchString(m[2]) => false
func TestSalvage_unseenTable(t *testing.T) {
	killed, _, _ := smallStore(t)
	for _, table := range tablesInUse(t, killed) {
		mem := killed.files(t)
		files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpStat && op.Path == "data/"+table {
				return syscall.EIO
			}
			return nil
		}))
		if _, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet(), Salvage: true}); !errors.Is(err,
			syscall.EIO) {
			t.Errorf("got %v, want %v", err, syscall.EIO)
		}
		if got := take(t, mem)[table]; !bytes.Equal(got, killed[table]) {
			t.Errorf("%s has %d bytes, want the %d that it had", table, len(got), len(killed[table]))
		}
	}
}
