package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/pushdown/store"
)

// settle compacts a store, and waits until what it does not need any more is deleted.
func settle(t *testing.T, s *Store) {
	t.Helper()
	err := errors.Join(s.Flush(t.Context()), s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false))
	if err != nil {
		t.Fatal(err)
	}
	s.db.TestOnlyWaitForCleaning()
}

// A plan has the files, and names the backups that would be removed, of the backup that is made then, and makes
// nothing itself.
func TestPlanBackUp(t *testing.T) {
	files := vfs.NewMem()
	s, _, _ := smallStoreIn(t, files)
	plan := func(to string, keep int) store.BackupReport {
		t.Helper()
		r, err := PlanBackUp(t.Context(), Backup{Store: "data", To: to, Keep: keep},
			Options{FS: files, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	if r := plan("new/backups", 1); r.Files == 0 || r.New != r.Files || r.NewBytes != r.Bytes || r.Removed != nil {
		t.Errorf("the first one: got %+v, want all files new, and nothing removed", r)
	}
	if _, err := files.Stat("new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the plan has made the directory: %v", err)
	}

	apply(t, s, cell(store.Put, "new", "q", strings.Repeat("n", 3000)))
	settle(t, s)
	mustBackUp(t, s, files, 0)
	if err := files.MkdirAll("backups/20200101T000000.000Z", 0o700); err != nil { // which none has made
		t.Fatal(err)
	}
	for _, keep := range []int{0, 1, 2, 3, 9} {
		planned := plan("backups", keep)
		tables := len(tableNames(sorted(t, files, "data")))
		if planned.New != planned.Files-tables || planned.NewBytes <= 0 || planned.NewBytes >= planned.Bytes {
			t.Errorf("got %+v, want all files new other than the %d tables", planned, tables)
		}
		made := mustBackUp(t, s, files, keep)
		if planned.Files != made.Files || planned.New != made.New || !slices.Equal(planned.Removed, made.Removed) {
			t.Errorf("keep %d: planned %+v, made %+v, want the same files and backups removed", keep, planned, made)
		}
	}
}

// Nothing of another store is taken over, and a backup whose list cannot be read is as none.
func TestPlanBackUp_others(t *testing.T) {
	files := vfs.NewMem()
	s, _, _ := smallStoreIn(t, files)
	settle(t, s)
	r := mustBackUp(t, s, files, 0)
	list, err := readList(files, r.Path)
	if err != nil {
		t.Fatal(err)
	}
	table := slices.IndexFunc(list.Files, func(f backupFile) bool { return strings.HasSuffix(f.Name, ".sst") })
	f := func(what string, change func(*backupFile)) {
		t.Helper()
		changed := *list
		changed.Files = slices.Clone(list.Files)
		change(&changed.Files[table])
		if err := changed.write(files, r.Path); err != nil {
			t.Fatal(err)
		}
		plan, err := PlanBackUp(t.Context(), Backup{Store: "data", To: "backups"}, Options{FS: files, Logger: quiet()})
		tables := len(tableNames(sorted(t, files, "data")))
		if err != nil || plan.New != plan.Files-tables+1 {
			t.Errorf("%s: got %+v, %v, want one table of %d new", what, plan, err, tables)
		}
		made := mustBackUp(t, s, files, 0)
		if made.New != plan.New {
			t.Errorf("%s: made %+v, planned %+v, want as many new files", what, made, plan)
		}
		if err := files.RemoveAll(made.Path); err != nil { // the changed one is the newest again
			t.Fatal(err)
		}
	}
	f("another size", func(b *backupFile) { b.Bytes++ })
	f("another time", func(b *backupFile) { b.Modified++ })
	f("another file", func(b *backupFile) { b.Inode++ })
	f("another name", func(b *backupFile) { b.Name = "999999.sst" })
	if err := writeFile(files, files.PathJoin(r.Path, listName), []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	plan, err := PlanBackUp(t.Context(), Backup{Store: "data", To: "backups"}, Options{FS: files, Logger: quiet()})
	if err != nil || plan.New != plan.Files {
		t.Errorf("a damaged list: got %+v, %v, want all files new", plan, err)
	}
}

// smallBelow is a file system of two disks: a small one below a directory, and one that has room. It says nothing of
// the disk of a directory that is not there.
type smallBelow struct {
	vfs.FS
	dir string
}

func (d smallBelow) GetDiskUsage(dir string) (usage vfs.DiskUsage, err error) {
	usage.AvailBytes = 1 << 40
	if strings.HasPrefix(dir, d.dir) {
		usage.AvailBytes = 1 << 10
	}
	_, err = d.Stat(dir)
	return usage, err
}

// What a backup or a restore would refuse, its plan refuses.
func TestPlan_refused(t *testing.T) {
	mem := vfs.NewMem()
	s, _, _ := smallStoreIn(t, mem)
	settle(t, s)
	r := mustBackUp(t, s, mem, 0)
	if err := errors.Join(mem.MkdirAll("empty", 0o700), writeFile(mem, "file", nil)); err != nil {
		t.Fatal(err)
	}
	backUp := func(files vfs.FS, dir, to, want string) {
		t.Helper()
		_, err := PlanBackUp(t.Context(), Backup{Store: dir, To: to}, Options{FS: files, Logger: quiet()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("backup of %s to %s: got %v, want %q", dir, to, err, want)
		}
	}
	restore := func(files vfs.FS, from, dir, want string) {
		t.Helper()
		_, err := PlanRestore(t.Context(), from, dir, Options{FS: files, Logger: quiet()}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("restore of %s into %s: got %v, want %q", from, dir, err, want)
		}
	}
	failing := func(kind errorfs.OpKind, path string) vfs.FS {
		return errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind && op.Path == path {
				return syscall.EIO
			}
			return nil
		}))
	}
	const eio = "input/output error"
	names := sorted(t, mem, r.Path)
	marker := names[slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "marker.") })]
	table := "data/" + tableNames(names)[0]

	backUp(mem, "data", "data/backups", "lies in the data directory")
	backUp(mem, "data", "file", "directory of backups file: file is no directory")
	backUp(failing(errorfs.OpStat, "backups"), "data", "backups", "directory of backups backups: "+eio)
	backUp(failing(errorfs.OpList, "backups"), "data", "backups", "directory of backups backups: "+eio)
	backUp(failing(errorfs.OpList, "data"), "data", "backups", "data directory data: "+eio)
	backUp(failing(errorfs.OpStat, table), "data", "backups", "data directory data: "+eio)
	backUp(mem, "nowhere", "backups", "data directory nowhere: ")
	backUp(mem, "empty", "backups", "data directory empty: it holds no files of a store")

	at := "restore of " + r.Path + " into "
	restore(mem, "nowhere", "new", "nowhere")
	restore(mem, "backups", "data", at+"data: it is not empty")
	restore(mem, "backups", "file/new", at+"file/new: ")
	restore(sized{mem, 1 << 10}, "backups", "deep/new", at+"deep/new: "+store.ErrFull.Error())
	restore(sized{mem, 1 << 10}, "backups", "empty", at+"empty: "+store.ErrFull.Error())
	restore(smallBelow{mem, "empty"}, "backups", "empty/deep/new", at+"empty/deep/new: "+store.ErrFull.Error())
	restore(failing(errorfs.OpList, r.Path), "backups", "new", at+"new: ")
	if err := mem.Remove(mem.PathJoin(r.Path, filepath.Base(table))); err != nil {
		t.Fatal(err)
	}
	restore(mem, "backups", "new", filepath.Base(table)+": missing")
	restore(failing(errorfs.OpOpen, r.Path+"/"+marker), "backups", "new", eio) // not only that a table is missing
	if _, err := mem.Stat("new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a plan has made the directory: %v", err)
	}
}

// The plan of a restore says what is restored then, also where a restore was cut off, and makes nothing.
func TestPlanRestore(t *testing.T) {
	files := vfs.NewMem()
	smallStoreIn(t, files)
	if err := errors.Join(files.MkdirAll("begun/"+restoringName, 0o700),
		writeFile(files, "begun/000004.log", []byte("begun"))); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"new/deep", "begun"} {
		calls := 0
		planned, err := PlanRestore(t.Context(), "backups", dir, Options{FS: files, Logger: quiet()},
			func(int, int) { calls++ })
		if err != nil || calls == 0 {
			t.Errorf("%s: got %v after %d calls", dir, err, calls)
		}
		if _, err := files.Stat("new"); dir != "begun" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the plan has made the directory: %v", err)
		}
		if data, err := readFile(files, "begun/000004.log"); err != nil || !bytes.Equal(data, []byte("begun")) {
			t.Errorf("the plan has changed the file of a restore that was cut off: %q, %v", data, err)
		}
		made, err := Restore(t.Context(), "backups", dir, Options{FS: files, Logger: quiet()}, nil)
		if err != nil || fmt.Sprint(planned) != fmt.Sprint(made) {
			t.Errorf("%s: planned %+v, made %+v, %v", dir, planned, made, err)
		}
	}
}
