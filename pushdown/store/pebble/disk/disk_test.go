package disk

import (
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

const category = vfs.WriteCategoryUnspecified

// world is a database's directory, "data", on a disk that fails as a test wants.
type world struct {
	*FS
	mem    *vfs.MemFS
	fail   func(errorfs.Op) error
	ops    []errorfs.Op // of the underlying files, since the test has emptied it
	fatal  []string     // what Fatal was called with
	full   int          // calls of OnFull
	again  int          // calls of SpaceAgain
	spaced bool         // what SpaceAgain returns
}

func newWorld(t *testing.T, keep ...string) *world {
	t.Helper()
	w := &world{mem: vfs.NewCrashableMem()}
	root, err := w.mem.OpenDir("")
	if err := errors.Join(err, w.mem.MkdirAll("data/below", 0o700), root.Sync(), root.Close()); err != nil {
		t.Fatal(err)
	}
	files := errorfs.Wrap(w.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		w.ops = append(w.ops, op)
		if w.fail != nil {
			return w.fail(op)
		}
		return nil
	}))
	w.FS, err = New(Config{
		FS: closing{files, w}, Dir: "data", Keep: keep,
		Fatal:      func(format string, _ ...any) { w.fatal = append(w.fatal, format) },
		OnFull:     func(error) { w.full++ },
		SpaceAgain: func() bool { w.again++; return w.spaced },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// closing lets files fail when they are closed, too.
type closing struct {
	vfs.FS
	w *world
}

func (c closing) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return closingFile{f, c.w, name}, nil
}

type closingFile struct {
	vfs.File
	w    *world
	name string
}

func (f closingFile) Close() error {
	if f.w.fail != nil {
		if err := f.w.fail(errorfs.Op{Kind: errorfs.OpFileClose, Path: f.name}); err != nil {
			return errors.Join(err, f.File.Close())
		}
	}
	return f.File.Close()
}

// failing fails operations of a kind, on files whose names contain a text, n times or, if n is negative, always.
func failing(err error, kind errorfs.OpKind, name string, n int) func(errorfs.Op) error {
	return func(op errorfs.Op) error {
		if op.Kind != kind || !strings.Contains(op.Path, name) || n == 0 {
			return nil
		}
		n--
		return err
	}
}

// make makes a file.
func (w *world) make(t *testing.T, name string) vfs.File {
	t.Helper()
	f, err := w.Create(name, category)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write writes to a file and syncs it.
func write(t *testing.T, f vfs.File, text string) {
	t.Helper()
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// read returns the bytes of a file on a disk; "none" if there is none.
func read(t *testing.T, files vfs.FS, name string) string {
	t.Helper()
	f, err := files.Open(name)
	if err != nil {
		return "none"
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A directory whose markers cannot be read is not opened.
func TestNew_noMarkers(t *testing.T) {
	w := newWorld(t)
	w.fail = failing(syscall.EIO, errorfs.OpList, "data", -1)
	if _, err := New(w.cfg); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	w.fail = nil
}

// A MANIFEST is written twice, and both are durable before a sync returns. When it is removed or renamed, its copy is
// gone. Files in other directories are as they are.
func TestManifest(t *testing.T) {
	w := newWorld(t, "MANIFEST-000003")
	for name, copied := range map[string]string{
		"data/MANIFEST-000001": "one", "data/MANIFEST-000002": "one", "data/MANIFEST-000003": "one",
		"data/below/MANIFEST-000001": "none", "data/OPTIONS-000001": "none",
	} {
		f := w.make(t, name)
		if err := w.syncDir(); err != nil {
			t.Fatal(err)
		}
		write(t, f, "one")
		crashed := w.mem.CrashClone(vfs.CrashCloneCfg{})
		dir, base := w.PathDir(name), w.PathBase(name)
		if got := read(t, crashed, w.PathJoin(dir, CopyOf(base))); got != copied {
			t.Errorf("%s: its copy is %q after a crash, want %q", name, got, copied)
		}
		if got := read(t, crashed, name); dir == "data" && got != "one" {
			t.Errorf("%s is %q after a crash, want %q", name, got, "one")
		}
		for _, sync := range []func() error{f.SyncData, func() error { _, err := f.SyncTo(1); return err }} {
			if _, err := f.Write([]byte("+")); err != nil {
				t.Fatal(err)
			}
			if err := sync(); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		w.Remove("data/MANIFEST-000001"), w.Rename("data/MANIFEST-000002", "data/damaged-MANIFEST-000002"),
		w.Remove("data/MANIFEST-000003"), w.Remove("data/below/MANIFEST-000001"), w.Remove("data/OPTIONS-000001"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	left, err := w.mem.List("data")
	slices.Sort(left)
	want := []string{"below", "copy.MANIFEST-000003", "damaged-MANIFEST-000002", "unused-MANIFEST-000003"}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("got %q, %v, want %q", left, err, want)
	}
}

// A copy of a MANIFEST belongs to the database alone: those in other directories stay. One that is gone already is no
// error.
func TestManifest_elsewhere(t *testing.T) {
	w := newWorld(t, "MANIFEST-000003")
	for _, name := range []string{"data/below/MANIFEST-000001", "data/below/copy.MANIFEST-000001",
		"data/below/MANIFEST-000003", "data/MANIFEST-000001", "data/OPTIONS-1", "data/copy.OPTIONS-1"} {
		if err := w.make(t, name).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.mem.Remove("data/copy.MANIFEST-000001"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Rename("data/below/MANIFEST-000001", "data/below/moved"),
		w.Remove("data/below/MANIFEST-000003"), w.Remove("data/MANIFEST-000001"), w.Remove("data/OPTIONS-1"),
	); err != nil {
		t.Error(err)
	}
	if got := read(t, w.mem, "data/below/unused-MANIFEST-000003"); got != "none" {
		t.Error("a file in another directory is kept")
	}
	if got := read(t, w.mem, "data/copy.OPTIONS-1"); got != "" {
		t.Errorf("a file that looks like a copy, of what is not copied, is %q", got)
	}
	if got := read(t, w.mem, "data/below/copy.MANIFEST-000001"); got != "" {
		t.Errorf("the copy in another directory is %q", got)
	}
}

// Whatever fails at a MANIFEST or its copy is an error.
func TestManifest_fails(t *testing.T) {
	for _, name := range []string{"/MANIFEST", "/copy."} {
		for _, kind := range []errorfs.OpKind{
			errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileClose,
		} {
			w := newWorld(t)
			w.fail = failing(syscall.EIO, kind, name, -1)
			f, err := w.Create("data/MANIFEST-000001", category)
			if err == nil {
				_, err = f.Write([]byte("one"))
				err = errors.Join(err, f.Sync(), f.Close())
			}
			if w.fail = nil; !errors.Is(err, syscall.EIO) {
				t.Errorf("%s, %v: got %v", name, kind, err)
			}
		}
	}
}

// A MANIFEST is in the directory, durably, before its marker is made; without that, there is no marker.
func TestManifest_marker(t *testing.T) {
	w := newWorld(t)
	write(t, w.make(t, "data/MANIFEST-000001"), "one")
	w.ops = nil
	if err := w.make(t, "data/marker.manifest.000001.MANIFEST-000001").Close(); err != nil {
		t.Fatal(err)
	}
	if crashed := w.mem.CrashClone(vfs.CrashCloneCfg{}); read(t, crashed, "data/MANIFEST-000001") != "one" ||
		read(t, crashed, "data/copy.MANIFEST-000001") != "one" {
		t.Error("a crash has lost a MANIFEST or its copy after its marker was made")
	}
	w.ops = nil
	if err := w.make(t, "data/marker.other.000001").Close(); err != nil || len(w.ops) != 1 {
		t.Errorf("another marker: %v, %v", w.ops, err)
	}
	for _, kind := range []errorfs.OpKind{errorfs.OpOpenDir, errorfs.OpFileSync} {
		w.fail = failing(syscall.EIO, kind, "data", -1)
		if _, err := w.Create("data/marker.manifest.000002.MANIFEST-000002", category); !errors.Is(err, syscall.EIO) {
			t.Errorf("%v: got %v", kind, err)
		}
	}
	w.fail = nil
	if got := read(t, w.mem, "data/marker.manifest.000002.MANIFEST-000002"); got != "none" {
		t.Errorf("a marker was made of a MANIFEST that may be lost: %q", got)
	}
}

// A directory of the database that cannot be synced ends the process while it serves. One below is not synced.
func TestDirectory(t *testing.T) {
	w := newWorld(t)
	for name, synced := range map[string]bool{"data": true, "data/": true, "data/below": false, "": true} {
		for _, serving := range []bool{true, false} {
			w.fail, w.ops, w.fatal = nil, nil, nil
			d, err := w.OpenDir(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Sync(); err != nil || len(w.ops) == 2 != synced {
				t.Errorf("%q: %v, %v, want a sync %t", name, w.ops, err, synced)
			}
			w.fail = failing(syscall.EIO, errorfs.OpFileSync, "", -1)
			w.SetServing(serving)
			if err := d.Sync(); errors.Is(err, syscall.EIO) != synced || len(w.fatal) == 1 != (synced && serving) {
				t.Errorf("%q cannot be synced, serving %t: %v, %q", name, serving, err, w.fatal)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	w.fail = failing(syscall.EIO, errorfs.OpOpenDir, "", -1)
	if _, err := w.OpenDir("data"); !errors.Is(err, syscall.EIO) {
		t.Errorf("it cannot be opened: got %v", err)
	}
	w.fail = nil
}

// On a full disk the making and writing of MANIFESTs, logs and other files waits, and so does the growing of a log.
// That is said each time, and whether there is space again is asked after each success until it is so.
func TestFull(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		for _, name := range []string{"MANIFEST-000001", "000001.log", "OPTIONS-000001"} {
			for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt} {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					began := time.Now()
					w.fail = failing(full, kind, "", 9)
					f := w.make(t, "data/"+name)
					if _, err := f.Write([]byte("text")); err != nil {
						t.Fatal(err)
					}
					if kind == errorfs.OpFileWriteAt && !strings.HasSuffix(name, ".log") {
						return // only logs are made longer
					}
					// 10 ms, 20 ms and so on, of nine attempts: 1 s is the longest.
					if got, want := time.Since(began), 3270*time.Millisecond; got != want || w.full != 9 {
						t.Errorf("%s, %v: waited for %v, said %d times, want %v and 9", name, kind, got, w.full, want)
					}
					if w.again == 0 {
						t.Errorf("%s, %v: nobody has looked whether there is space again", name, kind)
					}
					w.spaced, w.again = true, 0
					if _, err := f.Write([]byte("text")); err != nil || w.again != 1 {
						t.Errorf("%s, %v: %v, asked %d times, want once", name, kind, err, w.again)
					}
					if err := f.Close(); err != nil {
						t.Error(err)
					}
					if b := read(t, w.mem, "data/"+name); !strings.HasPrefix(b, "texttext") {
						t.Errorf("%s, %v: %d bytes, %.9q", name, kind, len(b), b)
					}
				})
			}
		}
	}
	if IsFull(syscall.EIO) || IsFull(nil) {
		t.Error("a disk is full that is not")
	}
}

// An error of another kind does not show that there is space again.
func TestFull_anotherError(t *testing.T) {
	again := 0
	s := space{onFull: func(error) {}, again: func() bool { again++; return true }}
	for i, err := range []error{nil, syscall.ENOSPC, syscall.EIO, nil, nil} {
		s.observe(err)
		if want := i / 3; again != want {
			t.Errorf("after attempt %d: asked %d times, want %d", i, again, want)
		}
	}
}

// What can be written of a text before the disk is full is not written again.
func TestFull_inPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := space{onFull: func(error) {}, again: func() bool { return true }}
		var text strings.Builder
		left := 3
		n, err := s.write(writer(func(p []byte) (int, error) {
			m := min(len(p), left)
			text.Write(p[:m])
			if left = 2; m < len(p) {
				return m, syscall.ENOSPC
			}
			return m, nil
		}), []byte("abcdefgh"))
		if n != 8 || err != nil || text.String() != "abcdefgh" {
			t.Errorf("%d bytes, %v, %q", n, err, text.String())
		}
	})
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// A table that cannot be made, written or synced fails after a pause, which becomes longer until a table was synced
// that has not failed before. Only such a table shows that there is space again.
func TestTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		paused := func(what string, want time.Duration, f func() error) {
			t.Helper()
			began := time.Now()
			if err := f(); !errors.Is(err, syscall.ENOSPC) || time.Since(began) != want {
				t.Errorf("%s: %v after %v, want %v", what, err, time.Since(began), want)
			}
		}
		w.fail = failing(syscall.ENOSPC, errorfs.OpCreate, ".sst", -1)
		create := func() error { _, err := w.Create("data/000001.sst", category); return err }
		paused("made", 20*time.Millisecond, create)
		paused("made again", 40*time.Millisecond, create)

		w.fail = nil
		f := w.make(t, "data/000001.sst")
		w.fail = failing(syscall.ENOSPC, errorfs.OpFileWrite, ".sst", -1)
		paused("written", 80*time.Millisecond, func() error { _, err := f.Write([]byte("text")); return err })
		w.fail = nil
		if err := errors.Join(f.Sync(), f.SyncData()); err != nil || w.again != 0 {
			t.Errorf("a table that has failed: %v, looked for space %d times", err, w.again)
		}
		w.fail = failing(syscall.ENOSPC, errorfs.OpFileSync, ".sst", -1)
		paused("synced", 160*time.Millisecond, f.Sync)
		w.fail = failing(syscall.ENOSPC, errorfs.OpFileSyncData, ".sst", -1)
		paused("synced as data", 320*time.Millisecond, f.SyncData)
		if err := f.Close(); err != nil {
			t.Error(err)
		}

		w.fail = nil
		f = w.make(t, "data/000002.sst")
		if _, err := f.Write([]byte("text")); err != nil || w.again != 0 {
			t.Errorf("%v, looked for space %d times before the table was complete", err, w.again)
		}
		if err := f.Sync(); err != nil || w.again != 1 {
			t.Errorf("%v, looked for space %d times, want once", err, w.again)
		}
		w.fail = failing(syscall.ENOSPC, errorfs.OpFileSync, ".sst", -1)
		paused("after a success", 20*time.Millisecond, f.Sync)
		if w.again != 1 {
			t.Errorf("looked for space %d times, want once: the last sync has failed", w.again)
		}
		for range 20 {
			_ = create() // succeeds
			_ = f.Sync()
		}
		paused("after many", time.Second, f.Sync)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A block that was found damaged is not read for a minute, and then again. Other blocks are read, and other files.
func TestDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{
			"data/000001.sst", "data/000002.sst", "data/below/000001.sst", "data/000001.log",
		} {
			f := w.make(t, name)
			write(t, f, "some text")
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		damaged := func(name string, offset int64) bool {
			t.Helper()
			f, err := w.Open("data/" + name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			b := make([]byte, 2)
			n, err := f.ReadAt(b, offset)
			var found *DamagedError
			if errors.As(err, &found) {
				if !errors.Is(err, syscall.EBADMSG) || err.Error() != syscall.EBADMSG.Error() {
					t.Errorf("got %v, want %v", err, syscall.EBADMSG)
				}
			} else if err != nil || n != 2 || string(b) != "some text"[offset:offset+2] {
				t.Errorf("%s at %d: %q, %v", name, offset, b, err)
			}
			return found != nil
		}
		if damaged("000001.sst", 2) {
			t.Error("a block is damaged before one was found")
		}
		w.AddDamaged("000001.sst", 2, syscall.EBADMSG)
		w.AddDamaged("000001.log", 2, syscall.EBADMSG)
		w.AddDamaged("000002.sst", 4, syscall.EBADMSG)
		got := []bool{damaged("000001.sst", 2), damaged("000002.sst", 4), damaged("000001.sst", 4),
			damaged("000002.sst", 2), damaged("below/000001.sst", 2), damaged("000001.log", 2)}
		if !slices.Equal(got, []bool{true, true, false, false, false, false}) {
			t.Errorf("damaged: %t, want the first two alone", got)
		}
		time.Sleep(damagedFor)
		if !damaged("000001.sst", 2) {
			t.Error("it is read again after just a minute")
		}
		if time.Sleep(time.Nanosecond); damaged("000001.sst", 2) {
			t.Error("it is not read again after more than a minute")
		}
		if _, err := w.Open("data/000009.sst"); err == nil {
			t.Error("a table is opened that is not there")
		}
	})
}
