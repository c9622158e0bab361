package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/pushdown/process/logtest"
	"downpour/pushdown/store"
)

// smallDisk is a file system that can be full: then no file can be created or grow.
type smallDisk struct {
	vfs.FS
	full    atomic.Bool
	blind   atomic.Bool  // it cannot be asked how much is free
	refused atomic.Int64 // how often something was refused
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	switch {
	case d.blind.Load():
		return vfs.DiskUsage{TotalBytes: 1 << 30}, vfs.ErrUnsupported // nobody looks at the figures
	case d.full.Load():
		return vfs.DiskUsage{TotalBytes: 1 << 30}, nil
	}
	return vfs.DiskUsage{TotalBytes: 1 << 30, AvailBytes: 1 << 29}, nil
}

func (d *smallDisk) try() error {
	if !d.full.Load() {
		return nil
	}
	d.refused.Add(1)
	return syscall.ENOSPC
}

func (d *smallDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.try(); err != nil {
		return nil, err
	}
	f, err := d.FS.Create(name, category)
	return &smallFile{File: f, of: d}, err
}

// smallFile is a file of a smallDisk.
type smallFile struct {
	vfs.File
	of *smallDisk
	at int64
}

func (f *smallFile) Write(p []byte) (n int, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if f.at+int64(len(p)) > info.Size() {
		if err := f.of.try(); err != nil { // what fits is written, as a disk does
			n, _ = f.File.Write(p[:max(0, info.Size()-f.at)])
			f.at += int64(n)
			return n, err
		}
	}
	n, err = f.File.Write(p)
	f.at += int64(n)
	return n, err
}

func (f *smallFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.of.try(); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

// quietly checks that not much was tried and logged in the time that has passed.
func (d *smallDisk) quietly(t *testing.T, what string, log *logtest.Log, passed time.Duration) {
	t.Helper()
	tries, lines := d.refused.Swap(0), strings.Count(log.String(), "\n")
	if most := int64(passed/time.Second)*4 + 20; tries > most {
		t.Errorf("%s: %d tries in %v, want at most %d", what, tries, passed, most)
	}
	if lines > 3+int(passed/time.Minute) {
		t.Errorf("%s: %d lines in %v: %s", what, lines, passed, log)
	}
	t.Logf("%s: %d tries, %d lines in %v", what, tries, lines, passed)
}

// On a disk that is known to be full, puts are refused at once and reads go on;
// what waits in the background tries now and then. With room again all goes on.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, log := &smallDisk{FS: vfs.NewMem()}, new(logtest.Log)
		s, err := Open("data", Options{
			FS:            disk,
			MemTableBytes: 64 << 10,
			IdleFlush:     300 * time.Millisecond,
			Logger:        log.Logger(),
		})
		if err != nil {
			t.Fatal(err)
		}
		create(t, s)
		apply(t, s, cell(store.Put, "before", "q", strings.Repeat("x", 20_000)))
		before := store.CellKey{Row: []byte("before"), Family: "t", Qualifier: []byte("q")}
		disk.full.Store(true)
		flushed := flushing(t, s)
		for range 10 {
			time.Sleep(time.Minute)
			err := s.Apply(t.Context(), "tsdb", []store.Mutation{cell(store.Put, "full", "q", "v")})
			if !errors.Is(err, store.ErrFull) ||
				!strings.Contains(err.Error(), "0 KiB are free, the last 52428 KiB are kept back") {
				t.Errorf("a put: %v, want that there is no room", err)
			}
			if _, err := s.Increment(t.Context(), "tsdb",
				store.CellKey{Row: []byte("c"), Family: "t"}, 1); !errors.Is(err, store.ErrFull) {
				t.Errorf("an increment: %v, want that there is no room", err)
			}
			if wrote, err := s.PutAbsent(t.Context(), "tsdb",
				[]store.CellKey{before}, [][]byte{nil}); err != nil || wrote[0] {
				t.Errorf("a put of a cell that exists: %v, %v, want that nothing is to be written", wrote, err)
			}
			if got := dump(t, s, store.Scan{}); !strings.HasPrefix(got, "before/t:q=xxx") || len(got) > 20_100 {
				t.Errorf("a scan: %.100q, want the row that was there before", got)
			}
		}
		disk.quietly(t, "full", log, 10*time.Minute)
		disk.full.Store(false)
		<-flushed
		apply(t, s, cell(store.Put, "after", "q", "v"))
		for _, want := range []string{
			"writes wait or are refused until there is room", "there is room on the disk again",
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say that %s: %s", want, log)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// What is refused for want of room says how much there is and how much is wanted, to the last byte, once in the log,
// which says when there is room again.
func TestFullDisk_figures(t *testing.T) {
	disk, log := &narrowDisk{FS: vfs.NewMem()}, new(logtest.Log)
	disk.free.Store(1 << 29)
	s := openMem(t, Options{FS: disk, IdleFlush: -1, Logger: log.Logger()})
	create(t, s)
	usage, err := disk.GetDiskUsage("data")
	if err != nil {
		t.Fatal(err)
	}
	reserve := reserveOf(usage)
	put := func() error { return s.Apply(t.Context(), "tsdb", []store.Mutation{cell(store.Put, "row", "q", "v")}) }
	for _, c := range []struct {
		try  func() error
		need uint64
		want string
	}{
		{put, reserve, "of the data directory data: %d KiB are free, the last %d KiB are kept back"},
		{s.roomToSeal, 2*reserve + sealStretch, "to seal rows: %d KiB are free, want %d"},
		{
			func() error { return s.spaceToOpen(&examination{replay: 5 << 20, bytes: 2 << 20}) },
			7<<20 + startBytes, "of the data directory data: %d KiB are free, the start needs %d KiB",
		},
	} {
		disk.free.Store(c.need)
		if err := c.try(); err != nil {
			t.Errorf("with %d bytes: %v", c.need, err)
		}
		disk.free.Store(c.need - 1)
		want := fmt.Sprintf(c.want, (c.need-1)>>10, c.need>>10)
		if err := c.try(); !errors.Is(err, store.ErrFull) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("with a byte less: %v, want %s", err, want)
		}
	}
	disk.free.Store(1 << 29)
	const full, again = "writes wait or are refused until there is room", "there is room on the disk again"
	if said := log.String(); strings.Count(said, full) != 1 || strings.Contains(said, again) {
		t.Errorf("the log says %s", said)
	}
	if err := put(); err != nil || !strings.Contains(log.String(), again) {
		t.Errorf("%v, and the log says %s", err, log)
	}
}

// flushing begins a flush, and returns a channel that is closed at its end.
func flushing(t *testing.T, s *Store) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
	return done
}

// On a disk that others have filled a put waits, unacknowledged, and reads go on;
// what was acknowledged is there after a kill, and all goes on with room again.
func TestFullDisk_byOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, log := &smallDisk{FS: vfs.NewMem()}, new(logtest.Log)
		disk.blind.Store(true)
		s, err := Open("data", Options{FS: disk, MemTableBytes: 64 << 10, IdleFlush: -1, Logger: log.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		create(t, s)
		apply(t, s, cell(store.Put, "before", "q", strings.Repeat("x", 20_000)))
		disk.full.Store(true)
		acked := make(chan int, 100)
		go func() {
			defer close(acked)
			for n := range 20 {
				if err := s.Apply(t.Context(), "tsdb", []store.Mutation{cell(store.Put, fmt.Sprintf("row%02d", n), "q",
					strings.Repeat("x", 20_000))}); err != nil {
					t.Error(err)
				}
				acked <- n
			}
		}()
		time.Sleep(10 * time.Minute)
		if len(acked) == 20 {
			t.Fatal("all was acknowledged on a full disk")
		}
		if got := dump(t, s, store.Scan{Stop: []byte("c")}); !strings.HasPrefix(got, "before/t:q=xxx") {
			t.Errorf("a scan: %.100q, want the row of before first", got)
		}
		disk.quietly(t, "full", log, 10*time.Minute)

		left := take(t, disk.FS)
		before := len(acked)
		killed, err := Open("data", Options{FS: left.files(t), IdleFlush: -1, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		for n := range before {
			if !strings.Contains(dump(t, killed, store.Scan{}), fmt.Sprintf("row%02d/", n)) {
				t.Errorf("row %d of %d that were acknowledged is lost", n, before)
			}
		}
		if err := killed.Close(); err != nil {
			t.Error(err)
		}

		disk.full.Store(false)
		n := 0
		for range acked {
			n++
		}
		if got := strings.Count(dump(t, s, store.Scan{}), "row"); got != 20 || n != 20 {
			t.Errorf("%d rows, %d acknowledged, want 20", got, n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A start on a full disk fails and says how much room it needs. Where it cannot be asked how much
// is free, the start waits, trying and logging little, and goes on once there is room.
func TestFullDisk_start(t *testing.T) {
	i := logged(t, 50)
	synctest.Test(t, func(t *testing.T) {
		disk, log := &smallDisk{FS: i.files(t)}, new(logtest.Log)
		disk.full.Store(true)
		for _, dir := range []string{"data", "new"} {
			if _, err := Open(dir, Options{FS: disk, Logger: log.Logger()}); !errors.Is(err, store.ErrFull) ||
				!strings.Contains(err.Error(), "the start needs 1") {
				t.Errorf("start in %s: %v, want that there is no room", dir, err)
			}
		}
		disk.refused.Store(0)
		disk.blind.Store(true)
		opened := make(chan *Store)
		go func() {
			s, err := Open("data", Options{FS: disk, Logger: log.Logger(), IdleFlush: -1})
			if err != nil {
				t.Error(err)
			}
			opened <- s
		}()
		time.Sleep(10 * time.Minute)
		disk.quietly(t, "start", log, 10*time.Minute)
		disk.full.Store(false)
		s := <-opened
		if got := countRows(t, s); got != 50 {
			t.Errorf("%d rows, want 50", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Close ends in time, whatever waits for room, and nothing that was acknowledged is lost by that.
func TestFullDisk_close(t *testing.T) {
	for _, blind := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			disk, log := &smallDisk{FS: vfs.NewMem()}, new(logtest.Log)
			disk.blind.Store(blind)
			s, err := Open("data", Options{FS: disk, MemTableBytes: 64 << 10, IdleFlush: -1, Logger: log.Logger()})
			if err != nil {
				t.Fatal(err)
			}
			create(t, s)
			apply(t, s, cell(store.Put, "row", "q", "v"))
			disk.full.Store(true)
			began := time.Now()
			err = s.Close()
			if took := time.Since(began); took > closeWithin || blind != (err != nil) {
				t.Errorf("close on a full disk, blind %t: %v after %v, want an error only if blind, and an end in time",
					blind, err, took)
			}
			got, told, err := reading(t, take(t, disk.FS), Options{})
			if err != nil || got != "row/t:q=v " {
				t.Errorf("afterwards: %q, %v, want the row; logged: %s", got, err, told)
			}
			disk.full.Store(false)
			synctest.Wait()
			time.Sleep(time.Minute) // simulated by synctest: what Close has not waited for ends
		})
	}
}

// If tables cannot be written for another reason than a full disk, puts are refused before they
// would have to wait for ever, and reads go on. Puts go on when the disk is sound again.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bad atomic.Bool
		files := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if bad.Load() && op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
				return syscall.EIO
			}
			return nil
		}))
		log := new(logtest.Log)
		s, err := Open("data", Options{FS: files, MemTableBytes: 64 << 10, IdleFlush: -1, Logger: log.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		create(t, s)
		bad.Store(true)
		put := func(n int) error {
			time.Sleep(100 * time.Millisecond) // the first flush fails before all memtables are full
			return s.Apply(t.Context(), "tsdb",
				[]store.Mutation{cell(store.Put, fmt.Sprintf("row%04d", n), "q", strings.Repeat("x", 10_000))})
		}
		rows := 0
		for err = put(rows); err == nil && rows < 1000; err = put(rows) {
			rows++
		}
		if !errors.Is(err, store.ErrStalled) || !strings.Contains(err.Error(), "input/output error") || rows < 10 {
			t.Fatalf("after %d rows: %v, want that it is stalled, and why", rows, err)
		}
		time.Sleep(10 * time.Minute)
		if got := countRows(t, s); got != rows {
			t.Errorf("%d rows, want %d", got, rows)
		}
		if lines := strings.Count(log.String(), "\n"); lines > 13 ||
			len(log.Lines("work in the background failed, ")) == 0 {
			t.Errorf("%d lines in 10 minutes, want at most 13, and why: %s", lines, log)
		}
		bad.Store(false)
		time.Sleep(time.Minute)
		if err := put(rows); err != nil {
			t.Errorf("a put afterwards: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// notCompacting is a file system on which no compaction can create a table.
type notCompacting struct {
	vfs.FS
	bad atomic.Bool
}

func (c *notCompacting) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if c.bad.Load() && category == "pebble-compaction" {
		return nil, syscall.EIO
	}
	return c.FS.Create(name, category)
}

// If tables cannot be compacted, puts are refused before a scan would have to read too many of them. Puts go on when
// the disk is sound again.
func TestStalled_compactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := &notCompacting{FS: vfs.NewMem()}
		s, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		create(t, s)
		files.bad.Store(true)
		put := func() error {
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // simulated by synctest
			return s.Apply(t.Context(), "tsdb", []store.Mutation{cell(store.Put, "row", "q", "v")})
		}
		puts := 0
		for err = put(); err == nil && puts < 2*maxSublevels; err = put() {
			puts++
		}
		if !errors.Is(err, store.ErrStalled) || !errors.Is(err, syscall.EIO) || puts < maxSublevels/2 {
			t.Errorf("after %d puts: %v, want that it is stalled, and why", puts, err)
		}
		files.bad.Store(false)
		time.Sleep(time.Minute)
		if err := put(); err != nil {
			t.Errorf("a put afterwards: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// If tables cannot be compacted, because they cannot be read, that is tried now and then, and puts are refused before
// they would have to wait for ever, with the reason.
func TestStalled_compaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		files := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, ".sst") {
				if tries.Add(1) > 1000 {
					time.Sleep(time.Second) // simulated by synctest, so that the test ends though it fails
				}
				return syscall.EIO
			}
			return nil
		}))
		s, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		create(t, s)
		flushes := 0
		for ; flushes <= maxSublevels && err == nil; flushes++ {
			if err = s.Flush(t.Context()); err == nil {
				err = s.Apply(t.Context(), "tsdb", []store.Mutation{cell(store.Put, "row", "q", fmt.Sprint(flushes))})
			}
			time.Sleep(time.Second)
		}
		if !errors.Is(err, store.ErrStalled) || !strings.Contains(err.Error(), "input/output error") ||
			flushes < maxSublevels/2 {
			t.Errorf("after %d flushes: %v, want that it is stalled, and why", flushes, err)
		}
		if n := tries.Load(); n > 200 {
			t.Errorf("tables were read %d times in %d s, want at most 200", n, flushes)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A damaged table keeps others from being compacted with it. Any number of puts are accepted all
// the same: newer tables are compacted among themselves.
func TestStalled_damagedTable(t *testing.T) {
	i, table, _ := tableStore(t)
	data := bytes.Clone(i[table])
	data[len(data)/2] ^= 1
	s, err := Open("data", Options{FS: i.with(table, data).files(t), IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for flushes := range 2 * maxSublevels {
		var ms []store.Mutation
		for n := range 20 {
			ms = append(ms, cell(store.Put, fmt.Sprintf("row%04d", n*50), "q", fmt.Sprint(flushes)))
		}
		// Compactions may be slower than this.
		for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
			err := s.Apply(t.Context(), "tsdb", ms)
			if err == nil {
				break
			}
			if !errors.Is(err, store.ErrStalled) || time.Now().After(end) {
				t.Fatalf("after %d flushes: %v, want the put to be accepted, if need be after a while", flushes, err)
			}
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if there, err := readRow(s, 0); err != nil || !there {
		t.Errorf("the first row is there: %t, %v, want it there", there, err)
	}
}
