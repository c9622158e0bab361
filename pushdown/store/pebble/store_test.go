package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"

	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// create makes table tsdb with family t.
func create(t testing.TB, s *Store) {
	t.Helper()
	err := s.CreateTable(t.Context(), store.TableSpec{Name: "tsdb", Families: []store.FamilySpec{{Name: "t"}}})
	if err != nil {
		t.Fatal(err)
	}
}

// cell is a mutation of table tsdb's family t.
func cell(kind store.MutationKind, row, qualifier, value string) store.Mutation {
	return store.Mutation{Kind: kind, Row: []byte(row), Family: "t", Qualifier: []byte(qualifier), Value: []byte(value)}
}

// apply writes to table tsdb.
func apply(t testing.TB, s *Store, ms ...store.Mutation) {
	t.Helper()
	if err := s.Apply(t.Context(), "tsdb", ms); err != nil {
		t.Fatal(err)
	}
}

// dump prints all cells that a scan returns.
func dump(t testing.TB, s *Store, scan store.Scan) string {
	t.Helper()
	scan.Table = "tsdb"
	sc, err := s.Scan(t.Context(), scan)
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	return drain(t, sc)
}

// drain prints what is left of a scan.
func drain(t testing.TB, sc store.Scanner) string {
	t.Helper()
	var b strings.Builder
	for {
		rows, err := sc.Next()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			for _, c := range r.Cells {
				fmt.Fprintf(&b, "%s/%s:%s=%s ", r.Key, c.Family, c.Qualifier, c.Value)
			}
		}
	}
}

// What was written is there after a restart, tables and families too.
func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "data")
	for range 3 {
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if ok, _ := s.TableExists(t.Context(), "tsdb"); !ok {
			create(t, s)
		}
		apply(t, s, cell(store.Append, "r", "q", "x"), cell(store.Put, "s", "q", "v"))
		if _, err := s.Increment(t.Context(), "tsdb", store.CellKey{Row: []byte("c"), Family: "t"}, 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, want := dump(t, s, store.Scan{}), "c/t:=\x00\x00\x00\x00\x00\x00\x00\x03 r/t:q=xxx s/t:q=v "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for d := dir; d != filepath.Dir(filepath.Dir(filepath.Dir(dir))); d = filepath.Dir(d) {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v, want mode 0700", d, info.Mode(), err)
		}
	}
}

// The errors of Open distinguish a directory that is in use from one that cannot be written.
func TestLocked(t *testing.T) {
	for name, files := range map[string]vfs.FS{"disk": vfs.Default, "memory": vfs.NewMem()} {
		dir := filepath.Join(t.TempDir(), "data")
		s, err := Open(dir, Options{FS: files})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{FS: files}); !errors.Is(err, store.ErrLocked) ||
			!strings.Contains(err.Error(), dir) || name == "disk" && !strings.Contains(err.Error(), "current process") {
			t.Errorf("%s: second open: %v, want ErrLocked with the directory, by this process", name, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(dir, Options{FS: files}); err != nil {
			t.Errorf("%s: open after close: %v", name, err)
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var path *fs.PathError
	if _, err := Open(filepath.Join(file, "data"), Options{}); err == nil || errors.Is(err, store.ErrLocked) ||
		!errors.As(err, &path) {
		t.Errorf("open below a file: %v, want its path error", err)
	}
}

func TestRefused(t *testing.T) {
	s := openMem(t, Options{})
	create(t, s)
	family := func(name string, attributes ...string) store.TableSpec {
		return store.TableSpec{
			Name:     "t2",
			Families: []store.FamilySpec{{Name: name, Attributes: map[string]string{attributes[0]: attributes[1]}}},
		}
	}
	for want, spec := range map[string]store.TableSpec{
		"table name is empty":             {},
		"has no family":                   {Name: "t2"},
		`byte 1 is 0x00`:                  {Name: "a\x00b", Families: []store.FamilySpec{{Name: "t"}}},
		"family name is empty":            family("", "BLOOMFILTER", "ROW"),
		`TTL is "3600", want FOREVER`:     family("t", "TTL", "3600"),
		`VERSIONS is "3", want 1`:         family("t", "VERSIONS", "3"),
		`table "t2": family "t" twice`:    {Name: "t2", Families: []store.FamilySpec{{Name: "t"}, {Name: "t"}}},
		`family name "\x01": byte 0 is 0`: family("\x01", "BLOOMFILTER", "ROW"),
	} {
		if err := s.CreateTable(t.Context(), spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("create %+v: %v, want %q", spec, err, want)
		}
	}
	for want, m := range map[string]store.Mutation{
		"mutation 0 of 1: row key is empty":         {Family: "t"},
		"row key has 32768 bytes":                   {Family: "t", Row: make([]byte, 1<<15)},
		"has 16777216 bytes, want at most 16777209": {Family: "t", Row: []byte{1}, Qualifier: make([]byte, 1<<24)},
		`has no family "u", it has ["t"]`:           {Family: "u", Row: []byte{1}},
		"family is empty":                           {Row: []byte{1}},
		"timestamp -1 ms":                           {Family: "t", Row: []byte{1}, Timestamp: -1},
		"mutation kind is 9":                        {Family: "t", Row: []byte{1}, Kind: 9},
	} {
		if err := s.Apply(t.Context(), "tsdb", []store.Mutation{m}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("apply: %v, want %q", err, want)
		}
	}
	apply(t, s, cell(store.Put, "c", "", "seven!!"))
	if _, err := s.Increment(t.Context(), "tsdb", store.CellKey{Row: []byte("c"), Family: "t"}, 1); err == nil ||
		!strings.Contains(err.Error(), "counter has 7 bytes, want 8") {
		t.Errorf("increment of 7 bytes: %v, want an error", err)
	}
	if got := dump(t, s, store.Scan{}); got != "c/t:=seven!! " {
		t.Errorf("after refusals: %q, want only what was accepted", got)
	}
	apply(t, s, store.Mutation{Family: "t", Row: make([]byte, 1<<15-1)})
}

// A scan sees the table as it was when it was opened.
func TestScanIsASnapshot(t *testing.T) {
	s := openMem(t, Options{})
	create(t, s)
	apply(t, s, cell(store.Append, "a", "q", "1"), cell(store.Append, "b", "q", "1"))
	sc, err := s.Scan(t.Context(), store.Scan{Table: "tsdb"})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	apply(t, s, cell(store.Append, "b", "q", "2"), cell(store.DeleteCell, "a", "q", ""), cell(store.Put, "c", "q", "3"))
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := drain(t, sc), "a/t:q=1 b/t:q=1 "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := dump(t, s, store.Scan{}), "b/t:q=12 c/t:q=3 "; got != want {
		t.Errorf("a later scan: got %q, want %q", got, want)
	}
}

// Close ends scans that are open: their Next returns ErrClosed.
func TestCloseEndsScans(t *testing.T) {
	s := openMem(t, Options{})
	create(t, s)
	apply(t, s, cell(store.Put, "a", "q", "1"), cell(store.Put, "b", "q", "1"))
	var scans [2]store.Scanner
	for i := range scans {
		sc, err := s.Scan(t.Context(), store.Scan{Table: "tsdb", BlockBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sc.Next(); err != nil {
			t.Fatal(err)
		}
		scans[i] = sc
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, sc := range scans {
		if _, err := sc.Next(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("next after the store's close: %v, want ErrClosed", err)
		}
		if err := sc.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A scan seeks the ranges of its filter: rows between them are not looked at. In the ranges it
// returns the rows whose keys match the pattern.
func TestScanSkips(t *testing.T) {
	s := openMem(t, Options{})
	create(t, s)
	var ms []store.Mutation
	for i := range 2000 {
		ms = append(ms, cell(store.Put, fmt.Sprintf("r%04d", i), "q", "v"))
	}
	apply(t, s, ms...)
	sc, err := s.Scan(t.Context(), store.Scan{Table: "tsdb", Filter: store.RowFilter{
		Ranges: []store.KeyRange{
			{Start: []byte("r0010"), Stop: []byte("r0020")},
			{Start: []byte("r1990"), Stop: []byte("r1995")},
		},
		Pattern: &store.KeyPattern{Head: 1, NameLen: 2, ValueLen: 2, Wants: []store.Want{{Name: []byte("19")}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	if got, want := drain(t, sc), "r1990/t:q=v r1991/t:q=v r1992/t:q=v r1993/t:q=v r1994/t:q=v "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if st := sc.Stats(); st.RowsScanned != 15 || st.Rows != 5 || st.Cells != 5 || st.RPCs != 1 {
		t.Errorf("stats %+v, want 15 rows looked at, 5 rows and cells delivered in one block", st)
	}
	if err := sc.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sc.Next(); err != io.EOF {
		t.Errorf("next after the end and Close: %v, want %v", err, io.EOF)
	}
	if n := len(s.scanners.open); n != 0 {
		t.Errorf("the store remembers %d scans that are closed", n)
	}
}

// When writing pauses, the store flushes by itself if it holds many appends or many bytes.
func TestIdleFlush(t *testing.T) {
	var appends []store.Mutation
	for i := range idleAppends {
		appends = append(appends, cell(store.Append, fmt.Sprint(i%10), "q", "v"))
	}
	idleFlushes(t, appends)
	idleFlushes(t, []store.Mutation{cell(store.Put, "r", "q", strings.Repeat("v", idleBytes))})
}

func idleFlushes(t *testing.T, ms []store.Mutation) {
	t.Helper()
	log := new(logtest.Log)
	s := openMem(t, Options{IdleFlush: time.Millisecond, Logger: log.Logger()})
	create(t, s)
	flushes := s.db.Metrics().Flush.Count
	apply(t, s, ms...)
	awaitFlush(t, s, flushes)
	if appends, bytes := s.early.appends.Load(), s.early.bytes.Load(); appends != 0 || bytes != 0 {
		t.Errorf("%d appends and %d bytes pending after the flush", appends, bytes)
	}
	if text := log.String(); text != "" {
		t.Errorf("got %s, want no line", text)
	}
}

// The store flushes, however long writing goes on, once a scan would have to join many appends to rows.
// What is appended to other rows does not count.
func TestEarlyFlush_repeats(t *testing.T) {
	s := openMem(t, Options{IdleFlush: time.Hour, MemTableBytes: 64 << 20}) // far from full
	create(t, s)
	flushes := s.db.Metrics().Flush.Count
	appendTo := func(rows, n int) {
		for at := 0; at < n; at += 1024 {
			var ms []store.Mutation
			for i := at; i < at+1024; i++ {
				ms = append(ms, cell(store.Append, fmt.Sprint(i%rows), "q", "v"))
			}
			apply(t, s, ms...)
		}
	}

	// Some rows look like others in the sketch, by no means half of them.
	appendTo(mostRepeats, mostRepeats)
	if got := s.early.repeats.Load(); got > mostRepeats/8 {
		t.Errorf("%d of %d first appends counted as repeats", got, mostRepeats)
	}
	appendTo(1024, 4*mostRepeats) // the first memtables of a store are small
	awaitFlush(t, s, flushes)
}

// Directories that are made outlast a crash, or the store does not open. One that is there needs nothing of others.
func TestOpen_makesDirectories(t *testing.T) {
	for _, broken := range []errorfs.Op{
		{Kind: errorfs.OpMkdirAll, Path: "above"},
		{Kind: errorfs.OpMkdirAll, Path: "above/data"},
		{Kind: errorfs.OpFileSync, Path: "."},
		{Kind: errorfs.OpFileSync, Path: "above"},
	} {
		toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == broken.Kind && op.Path == broken.Path {
				return errorfs.ErrInjected
			}
			return nil
		})}
		files := errorfs.Wrap(vfs.NewMem(), toggle)
		open := func() error {
			s, err := Open("above/data", Options{FS: files, IdleFlush: -1, Logger: quiet()})
			if err == nil {
				err = s.Close()
			}
			return err
		}
		toggle.On()
		if err := open(); !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("%+v fails: %v", broken, err)
		}
		toggle.Off()
		if err := open(); err != nil {
			t.Fatal(err)
		}
		if toggle.On(); broken.Path == "." { // pebble syncs and makes the others again
			if err := open(); err != nil {
				t.Errorf("%+v fails above a directory that is there: %v", broken, err)
			}
		}
	}
}

// A flush that cannot end does so with its context, and goes on in the background.
func TestFlush_context(t *testing.T) {
	may := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	files := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			cancel()
			<-may
		}
		return nil
	}))
	s := openMem(t, Options{FS: files, IdleFlush: -1})
	create(t, s)
	if err := s.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	close(may)
	if err := s.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// awaitFlush waits until the store has flushed more often than before.
func awaitFlush(t *testing.T, s *Store, before int64) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); s.db.Metrics().Flush.Count == before; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("no flush")
		}
	}
}

// quiet drops log lines.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// sized is a file system on an empty disk of so many bytes.
type sized struct {
	vfs.FS
	bytes uint64
}

func (s sized) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{TotalBytes: s.bytes, AvailBytes: s.bytes}, nil
}

// Memtables are small where little is kept back of the disk.
func TestOpen_smallDisk(t *testing.T) {
	f := func(disk, asked, want uint64) {
		t.Helper()
		s := openMem(t, Options{FS: sized{vfs.NewMem(), disk}, MemTableBytes: asked})
		if got := s.opts.MemTableBytes; got != want {
			t.Errorf("on a disk of %d MiB, of %d KiB asked: got memtables of %d KiB, want %d", disk>>20, asked>>10,
				got>>10, want>>10)
		}
	}
	f(48<<20, 16<<20, 4<<20)
	f(48<<20, 64<<10, 64<<10)
	f(1600<<20, 16<<20, 5<<20) // a twentieth, 80 MiB, is kept back
	f(1<<40, 16<<20, 16<<20)

	blind := &smallDisk{FS: vfs.NewMem()}
	blind.blind.Store(true)
	if s := openMem(t, Options{FS: blind, MemTableBytes: 16 << 20}); s.opts.MemTableBytes != 16<<20 {
		t.Errorf("on a disk of unknown size: memtables of %d KiB", s.opts.MemTableBytes>>10)
	}
}

// The families of a table are known after a start, too, in their order and each once, whatever attributes they have.
func TestReopen_families(t *testing.T) {
	files := vfs.NewMem()
	opts := Options{FS: files, IdleFlush: -1}
	s, err := Open("data", opts)
	if err != nil {
		t.Fatal(err)
	}
	attributes := map[string]string{"BLOOMFILTER": "ROW", "VERSIONS": "1"}
	if err := s.CreateTable(t.Context(), store.TableSpec{
		Name:     "tsdb",
		Families: []store.FamilySpec{{Name: "t", Attributes: attributes}, {Name: "f", Attributes: attributes}},
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := s.Apply(t.Context(), "tsdb", []store.Mutation{{Family: "u", Row: []byte("r")}})
		if want := `has no family "u", it has ["f" "t"]`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		stored, closer, err := s.db.Get(appendKey(nil, catalogue, []byte("tsdb"), "f", []byte("BLOOMFILTER")))
		if err != nil || !bytes.HasSuffix(stored, []byte("ROW")) {
			t.Fatalf("an attribute: %q, %v", stored, err)
		}
		if err := errors.Join(closer.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
		if s, err = Open("data", opts); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
