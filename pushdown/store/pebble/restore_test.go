package pebble

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/pushdown/store"
)

// A crash before any step of a restore leaves an empty directory, one that does not open, or the
// whole store. The same restore then goes through where it did not. In which order the list has the files does not
// matter.
func TestRestore_crash(t *testing.T) {
	rng := seeded(t)
	states := 5
	if *soak {
		states = 200
	}
	mem := vfs.NewCrashableMem()
	files := &stepping{FS: mem, of: "restored"}
	_, r, want := smallStoreIn(t, files)
	list, err := readList(files, r.Path)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(list.Files)
	if err := list.write(files, r.Path); err != nil {
		t.Fatal(err)
	}
	steps, outcomes := map[string]int{}, map[string]int{}
	look := func(what string) {
		steps[strings.Fields(what)[0]]++
		for range states {
			left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			outcome, err := afterRestoreCrash(left, want)
			if err != nil || what == "the end" && outcome != "all is there" {
				t.Errorf("before %s: %s, %v", what, outcome, err)
			}
			outcomes[outcome]++
		}
	}
	files.step = look
	if _, err := Restore(t.Context(), "backups", "restored", Options{FS: files, Logger: quiet()}, nil); err != nil {
		t.Error(err)
	}
	files.step = nil
	look("the end")
	if _, err := mem.Stat("restored/" + restoringName); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("at the end: %v, want that %s is gone", err, restoringName)
	}
	t.Logf("steps: %v, outcomes: %v", steps, outcomes)
	if steps["rename"] < 5 || steps["sync"] < 10 || len(outcomes) != 3 {
		t.Errorf("steps: %v, outcomes: %v, want renames and syncs, and all outcomes", steps, outcomes)
	}
}

// Files that the backup does not have: the restore that was cut off may have been one of another.
const (
	ofAnother    = "999999.sst"
	logOfAnother = restoringName + "/999999.log"
)

func afterRestoreCrash(left *vfs.MemFS, want string) (outcome string, err error) {
	names, _ := left.List("restored")
	names = slices.DeleteFunc(names, func(name string) bool { return name == "LOCK" })
	outcome = "nothing is there"
	if len(names) > 0 {
		s, err := Open("restored", Options{FS: left, IdleFlush: -1, Logger: quiet()})
		if err == nil {
			got, err := all(s)
			if err = errors.Join(err, s.Close()); err == nil && got != want {
				err = fmt.Errorf("opens with %q, want %q", got, want)
			}
			return "all is there", err
		}
		if outcome = "cut off"; !strings.Contains(err.Error(), "was cut off") {
			return outcome, fmt.Errorf("opens with %w, want that the restore was cut off", err)
		}
		if _, err := Check(context.Background(), "restored", Options{FS: left, Logger: quiet()}, nil); err == nil ||
			!strings.Contains(err.Error(), "was cut off") {
			return outcome, fmt.Errorf("check: %w, want that the restore was cut off", err)
		}
		if err := errors.Join(writeFile(left, "restored/"+ofAnother, nil),
			writeFile(left, "restored/"+logOfAnother, []byte("begun"))); err != nil {
			return outcome, err
		}
	}
	if _, err := Restore(context.Background(), "backups", "restored",
		Options{FS: left, Logger: quiet()}, nil); err != nil {
		return outcome, fmt.Errorf("the second restore: %w", err)
	}
	if _, err := left.Stat("restored/" + ofAnother); err == nil {
		return outcome, errors.New("the second restore leaves files of the first")
	}
	s, err := Open("restored", Options{FS: left, IdleFlush: -1, Logger: quiet()})
	if err != nil {
		return outcome, err
	}
	got, err := all(s)
	if err = errors.Join(err, s.Close()); err == nil && got != want {
		err = fmt.Errorf("after the second restore %q, want %q", got, want)
	}
	return outcome, err
}

// imageOf reads the files of a directory.
func imageOf(t *testing.T, files vfs.FS, dir string) image {
	t.Helper()
	i := image{}
	for _, name := range sorted(t, files, dir) {
		data, err := readFile(files, files.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		i[name] = data
	}
	return i
}

// If a byte of a backup is changed, or a file is missing, check finds it, and restore refuses it
// and leaves the data directory as it was.
//
//fault:restore-of-other-files sum != f.SHA256 => false
func TestRestore_damagedBackup(t *testing.T) {
	rng := seeded(t)
	files := vfs.NewMem()
	_, r, _ := smallStoreIn(t, files)
	whole := imageOf(t, files, r.Path)
	says := map[string]string{
		"changed": "is not the file that was backed up", "cut": "bytes, should have", "missing": "missing",
	}
	for round := range 60 {
		name := slices.Sorted(maps.Keys(whole))[round%len(whole)]
		data, how := bytes.Clone(whole[name]), "changed"
		switch {
		case len(data) == 0 || rng.IntN(4) == 0:
			data, how = nil, "missing"
		case rng.IntN(4) == 0:
			data, how = data[:rng.IntN(len(data))], "cut"
		default:
			data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		}
		if name == listName && how == "changed" {
			continue // some bytes of it do not matter; the others are those of a file that is missing or differs
		}
		damaged := whole.with(name, data).files(t) // in data
		if how == "missing" {
			if err := damaged.Remove("data/" + name); err != nil {
				t.Fatal(err)
			}
		}
		_, report, err := CheckBackup(t.Context(), "data", Options{FS: damaged, Logger: quiet()}, nil)
		found := func(f store.Fault) bool { return f.File == name && strings.Contains(f.What, says[how]) }
		if name != listName && (err != nil || !slices.ContainsFunc(report.Faults, found)) {
			t.Errorf("%s is %s: check finds %v, %v", name, how, report.Faults, err)
		}
		_, err = Restore(t.Context(), "data", "target", Options{FS: damaged, Logger: quiet()}, nil)
		if err == nil || !strings.Contains(err.Error(), name) || name != listName && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s is %s: restore returns %v, want it refused by name", name, how, err)
		}
		if names, err := damaged.List("target"); err == nil && len(names) > 1 {
			t.Errorf("%s is %s: %v is left, want nothing", name, how, names)
		}
	}
}

// A table that was damaged before it was backed up, so that the list has its digest, is found and refused, too.
func TestRestore_damagedBefore(t *testing.T) {
	files := vfs.NewMem()
	_, r, _ := smallStoreIn(t, files)
	list, err := readList(files, r.Path)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range list.Files {
		if !strings.HasSuffix(f.Name, ".sst") {
			continue
		}
		path := files.PathJoin(r.Path, f.Name)
		data, err := readFile(files, path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		list.Files[i].SHA256 = fmt.Sprintf("%x", sha256.Sum256(data))
		if err := errors.Join(files.Remove(path), writeFile(files, path, data), list.write(files, r.Path)); err != nil {
			t.Fatal(err)
		}
		_, report, err := CheckBackup(t.Context(), "backups", Options{FS: files, Logger: quiet()}, nil)
		if err != nil || len(report.Faults) != 1 || report.Faults[0].File != f.Name {
			t.Errorf("check: got %v, %v, want the damage of %s", report.Faults, err, f.Name)
		}
		_, err = Restore(t.Context(), r.Path, "target", Options{FS: files, Logger: quiet()}, nil)
		if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), f.Name) {
			t.Errorf("got %v, want the damage of %s", err, f.Name)
		}
		return
	}
	t.Error("the backup has no table")
}

// What is no backup, or is on a disk that fails, was not checked, whatever file it is that cannot be read.
func TestCheckBackup_failure(t *testing.T) {
	mem := vfs.NewMem()
	_, r, _ := smallStoreIn(t, mem)
	if _, _, err := CheckBackup(t.Context(), "data", Options{FS: mem, Logger: quiet()}, nil); err == nil ||
		!strings.Contains(err.Error(), "is no backup") {
		t.Errorf("a data directory: got %v, want that it is no backup", err)
	}
	for _, kind := range []errorfs.OpKind{errorfs.OpList, errorfs.OpOpen} {
		files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind && (op.Path == r.Path || strings.Contains(op.Path, "marker.format-version.")) {
				return syscall.EIO
			}
			return nil
		}))
		path, _, err := CheckBackup(t.Context(), "backups", Options{FS: files, Logger: quiet()}, nil)
		if path != r.Path || !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), r.Path) {
			t.Errorf("%v: got %s, %v, want %v of %s", kind, path, err, syscall.EIO, r.Path)
		}
	}
}

// Where nobody can see whether a restore has ended, the store does not open, and a restore removes nothing.
func TestRestore_unknown(t *testing.T) {
	mem := vfs.NewMem()
	smallStoreIn(t, mem)
	if _, err := Restore(t.Context(), "backups", "restored", Options{FS: mem, Logger: quiet()}, nil); err != nil {
		t.Fatal(err)
	}
	if err := mem.MkdirAll("restored/"+restoringName, 0o700); err != nil { // as a crash may leave it
		t.Fatal(err)
	}
	before := sorted(t, mem, "restored")
	var lists atomic.Int64
	files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpList && op.Path == "restored" && lists.Add(1) == 2 {
			return syscall.EIO
		}
		return nil
	}))
	if _, err := Restore(t.Context(), "backups", "restored", Options{FS: files, Logger: quiet()}, nil); !errors.Is(err,
		syscall.EIO) {
		t.Errorf("restore: %v, want %v", err, syscall.EIO)
	}
	lists.Store(1)
	if _, err := Open("restored", Options{FS: files, Logger: quiet()}); !errors.Is(err, syscall.EIO) {
		t.Errorf("open: %v, want %v", err, syscall.EIO)
	}
	if after := sorted(t, mem, "restored"); !slices.Equal(after, before) {
		t.Errorf("%v is left of %v", after, before)
	}
}

// A restore is refused into a directory that is in use or not empty, and from one that is no
// backup, or of a later version.
func TestRestore_refused(t *testing.T) {
	files := vfs.NewMem()
	_, r, _ := smallStoreIn(t, files)
	put := func(path, text string) {
		t.Helper()
		if err := errors.Join(files.MkdirAll(files.PathDir(path), 0o700),
			writeFile(files, path, []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	put("full/notes", "")
	put("later/"+listName, `{"format":3,"files":[]}`)
	put("evil/"+listName, `{"format":1,"files":[{"name":"../data/000004.log"}]}`)
	put("broken/"+listName, `{"format":1,`)
	put("empty/20260101T000000.000Z/x", "")
	f := func(from, to, want string) {
		t.Helper()
		_, err := Restore(t.Context(), from, to, Options{FS: files, Logger: quiet()}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s into %s: %v, want %q", from, to, err, want)
		}
	}
	f("backups", "data", "in use")
	closed, err := Open("closed", Options{FS: files, IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	create(t, closed)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	before := imageOf(t, files, "closed")
	f("backups", "closed", "not empty, but holds ")
	if after := imageOf(t, files, "closed"); !maps.EqualFunc(before, after, bytes.Equal) {
		t.Error("a restore that was refused has changed the store that is there")
	}
	f("backups", "full", "restore of "+r.Path+" into full: it is not empty, but holds notes")
	f("full", "new", "is no backup, and holds none")
	f("nowhere", "new", "file does not exist")
	f("empty", "new", "is no backup")
	f("later", "new", "format 3, want 1 or 2: it is of a later version")
	f("evil", "new", `names the file "../data/000004.log"`)
	f("broken", "new", "is damaged")
	if _, err := files.Stat("new"); err == nil {
		t.Error("a restore that was refused has made the directory")
	}
	if err := sound(files, r.Path, func(*Store) error { return nil }); err != nil {
		t.Error(err)
	}
}

// A restore needs room for the files of the backup and for the start of the store, and no more.
func TestRestore_space(t *testing.T) {
	files := vfs.NewMem()
	_, r, _ := smallStoreIn(t, files)
	list, err := readList(files, r.Path)
	if err != nil {
		t.Fatal(err)
	}
	need := uint64(list.bytes()) + startBytes
	for free, want := range map[uint64]error{need - 1: store.ErrFull, need: nil} {
		to := fmt.Sprint("new", free)
		_, err := Restore(t.Context(), r.Path, to, Options{FS: sized{files, free}, Logger: quiet()}, nil)
		if !errors.Is(err, want) {
			t.Errorf("%d bytes are free of %d: got %v, want %v", free, need, err, want)
		}
		text := fmt.Sprintf("%d KiB are free, the restore needs %d KiB", free>>10, need>>10)
		if want != nil && !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("got %v, want %s", err, text)
		}
	}
}

var writeBackup = flag.String("write-backup", "",
	"write the backup of TestRestore_old into this new directory; only for a new format")

// A backup of an old store, and an old backup, are restored as what they were.
func TestRestore_old(t *testing.T) {
	root := t.TempDir()
	data := filepath.Join(root, "data")
	if err := os.CopyFS(data, os.DirFS("testdata/v1")); err != nil {
		t.Fatal(err)
	}
	s, err := Open(data, Options{IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	apply(t, s, cell(store.Put, "c", "q", "in the log"))
	name, remove, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(root, "backups")
	if *writeBackup != "" {
		to = *writeBackup
	}
	_, err = BackUp(t.Context(), Backup{Store: data, Checkpoint: name, To: to}, Options{Logger: quiet()})
	if err := errors.Join(err, remove()); err != nil {
		t.Fatal(err)
	}

	for _, from := range []string{to, "testdata/backup-v1"} {
		if _, report, err := CheckBackup(t.Context(), from, Options{Logger: quiet()}, nil); err != nil ||
			len(report.Faults) > 0 {
			t.Errorf("%s: check finds %v, %v", from, report.Faults, err)
		}
		restored := filepath.Join(t.TempDir(), "restored")
		if _, err := Restore(t.Context(), from, restored, Options{Logger: quiet()}, nil); err != nil {
			t.Fatal(err)
		}
		r, err := Open(restored, Options{IdleFlush: -1, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := dump(t, r, store.Scan{}), oldDatabase+"c/t:q=in the log "; got != want {
			t.Errorf("%s: got %q\nwant %q", from, got, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
