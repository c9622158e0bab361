package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
	"downpour/pushdown/store/pebble/journal"
)

// A repair on a disk that fails is an error that names the file, and leaves the damaged file as it was: the next one
// goes through, and saves it.
func TestExamine_repairFails(t *testing.T) {
	i := logged(t, 50)
	log, whole := logOf(t, i)
	for _, name := range slices.Sorted(maps.Keys(i)) {
		at := len(i[name]) - 1 // the copy of the MANIFEST stays whole
		if name == log {
			at = int(whole.Records[25].End) - 1
		} else if !strings.HasPrefix(name, "MANIFEST-") {
			continue
		}
		data := bytes.Clone(i[name])
		data[at] ^= 1
		repairFails(t, i.with(name, data), name)
	}
}

func repairFails(t *testing.T, damaged image, name string) {
	t.Helper()
	mem := damaged.files(t)
	for _, fault := range []struct {
		kind errorfs.OpKind
		path string
	}{
		{errorfs.OpOpen, "data/" + name},
		{errorfs.OpFileRead, "data/" + name},
		{errorfs.OpCreate, "data/mending.damaged-" + name},
		{errorfs.OpFileWrite, "data/mending.damaged-" + name},
		{errorfs.OpFileSync, "data/mending.damaged-" + name},
		{errorfs.OpRename, "data/mending.damaged-" + name}, // to damaged-
	} {
		files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == fault.kind && op.Path == fault.path {
				return &fs.PathError{Op: "try", Path: op.Path, Err: syscall.EIO}
			}
			return nil
		}))
		_, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet(), Salvage: true})
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), name) ||
			strings.Contains(fault.path, "mending.") != strings.Contains(err.Error(), "cannot repair "+name) {
			t.Fatalf("%v of %s: got %v, want %v of %s", fault.kind, fault.path, err, syscall.EIO, name)
		}
		if !bytes.Equal(take(t, mem)[name], damaged[name]) {
			t.Fatalf("%v of %s: the file is changed, and not saved", fault.kind, fault.path)
		}
	}
	s, err := Open("data", Options{FS: mem, IdleFlush: -1, Logger: quiet(), Salvage: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := take(t, mem)["damaged-"+name]; !bytes.Equal(got, damaged[name]) {
		t.Errorf("damaged-%s has %d bytes, want the %d that were damaged", name, len(got), len(damaged[name]))
	}
}

// Copies of MANIFESTs that are not used any more are removed, and that is no news.
func TestExamine_oldCopies(t *testing.T) {
	_, closed, want := smallStore(t)
	old := disk.CopyOf("MANIFEST-000000")
	i := closed.with(old, []byte("old"))
	if r := check(t, i); len(r.Faults) != 0 {
		t.Errorf("check: got %v, want no faults", r.Faults)
	}
	if got, told, err := reading(t, i, Options{}); got != want || told != "" || err != nil {
		t.Errorf("got %q, %v, %s, want %q and no line", got, err, told, want)
	}
	files := i.files(t)
	s := openMem(t, Options{FS: files, IdleFlush: -1})
	if _, err := files.Stat("data/" + old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old copy: got %v, want it gone", err)
	}
	if got := dump(t, s, store.Scan{}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Without a marker and a MANIFEST nobody knows which tables count: not even Salvage opens the store, and it stays as it
// is. A directory in which nothing but a MANIFEST was begun is a new one.
func TestExamine_unmarked(t *testing.T) {
	_, closed, _ := smallStore(t)
	i := maps.Clone(closed)
	maps.DeleteFunc(i, func(name string, _ []byte) bool { return strings.Contains(name, "MANIFEST") })
	files := i.files(t)
	for _, salvage := range []bool{false, true} {
		_, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet(), Salvage: salvage})
		if err == nil || strings.Contains(err.Error(), "there is no MANIFEST either") != salvage ||
			errors.Is(err, store.ErrDamaged) == salvage {
			t.Errorf("salvage %t: got %v", salvage, err)
		}
	}
	after := take(t, files)
	delete(after, "LOCK")
	delete(i, "LOCK")
	if !maps.EqualFunc(after, i, bytes.Equal) {
		t.Errorf("%v is left of %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(i)))
	}
	if got, told, err := reading(t, image{"MANIFEST-000001": []byte("begun")}, Options{}); !errors.Is(err,
		store.ErrNoTable) || told != "" {
		t.Errorf("a MANIFEST alone: got %q, %v, %s, want a store without tables", got, err, told)
	}
}

// The first log that is not flushed is that of the last edit that names one.
func TestFirstUnflushedLog(t *testing.T) {
	edit := func(fields ...any) journal.Record {
		var b []byte
		for _, f := range fields {
			switch f := f.(type) {
			case int:
				b = binary.AppendUvarint(b, uint64(f))
			case string:
				b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
			}
		}
		return journal.Record{Data: b}
	}
	f := func(want uint64, edits ...journal.Record) {
		t.Helper()
		if got := firstUnflushedLog(edits); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	f(0)
	f(7, edit(1, "comparer", 2, 7))
	f(7, edit(2, 7))
	f(9, edit(1, "comparer", 2, 7), edit(2, 9), edit(3, 11))
	f(300, edit(2, 300), edit(1, "comparer"), edit(1, "comparer", 3, 8), edit())
	f(300, edit(2, 300), edit(1, 200, 2, 5), edit(1), edit(2), journal.Record{Data: []byte{2, 0x80}})
	f(3, edit(1, "", 2, 3))
}

// Of an error that a read returns, what pebble says of damage becomes the damage of a file.
func TestUnreadable(t *testing.T) {
	found := errors.New("found before")
	for _, c := range []struct{ err, want error }{
		{nil, nil},
		{syscall.EIO, syscall.EIO},
		{&disk.DamagedError{Err: found}, found},
	} {
		if got := unreadable(c.err); got != c.want {
			t.Errorf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
	got := unreadable(pebble.ErrCorruption)
	if !errors.Is(got, store.ErrDamaged) || !errors.Is(got, pebble.ErrCorruption) {
		t.Errorf("got %v, want that it is damage, and what pebble says", got)
	}
}
