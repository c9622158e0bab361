package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"golang.org/x/sync/errgroup"

	"downpour/encoding/seedtest"
	"downpour/pushdown/store"
)

// backUp makes a backup of an open store in directory backups.
func backUp(s *Store, files vfs.FS, keep int) (store.BackupReport, error) {
	name, remove, err := s.Checkpoint(context.Background())
	if err != nil {
		return store.BackupReport{}, err
	}
	r, err := BackUp(context.Background(),
		Backup{Store: s.dir, Checkpoint: name, To: "backups", Keep: keep}, Options{FS: files, Logger: quiet()})
	return r, errors.Join(err, remove())
}

func mustBackUp(t *testing.T, s *Store, files vfs.FS, keep int) store.BackupReport {
	t.Helper()
	r, err := backUp(s, files, keep)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sound checks a backup and its restored copy, which is opened for f.
func sound(files vfs.FS, backup string, f func(s *Store) error) (err error) {
	_, report, err := CheckBackup(context.Background(), backup, Options{FS: files, Logger: quiet()}, nil)
	if err != nil {
		return err
	}
	if len(report.Faults) > 0 {
		return fmt.Errorf("backup %s: %v, want no faults", backup, report.Faults)
	}
	defer func() { err = errors.Join(err, files.RemoveAll("restored")) }()
	if _, err := Restore(context.Background(), backup, "restored",
		Options{FS: files, Logger: quiet()}, nil); err != nil {
		return err
	}
	if report, err = Check(context.Background(), "restored", Options{FS: files, Logger: quiet()}, nil); err != nil ||
		len(report.Faults) > 0 {
		return fmt.Errorf("the restored store: %v, %w, want no faults", report.Faults, err)
	}
	s, err := Open("restored", Options{FS: files, IdleFlush: -1, Logger: quiet()})
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

// crashProgress is what had been reported to writers before a moment.
type crashProgress struct {
	acked   []uint32
	counted []int64
}

func progressOf(writers []*crashWriter) (p crashProgress) {
	for _, w := range writers {
		p.acked, p.counted = append(p.acked, w.acked.Load()), append(p.counted, w.counted.Load())
	}
	return p
}

// check checks a store that has what was acknowledged before p.
func (p crashProgress) check(s *Store, writers []*crashWriter) (err error) {
	for i, w := range writers {
		err = errors.Join(err, w.check(s, p.acked[i], w.begun.Load(), p.counted[i], w.wanted.Load()))
	}
	return err
}

// writing runs writers on a store for the time of f.
func writing(t *testing.T, s *Store, rng *rand.Rand, f func(writers []*crashWriter)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	g, ctx := errgroup.WithContext(ctx)
	writers := make([]*crashWriter, 3)
	for i := range writers {
		writers[i] = &crashWriter{id: i}
		own := rand.New(rand.NewPCG(rng.Uint64(), 2))
		g.Go(func() error { return writers[i].run(ctx, s, own) })
	}
	f(writers)
	stop()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// await waits for some batches of a writer.
func await(w *crashWriter, batches int) {
	for until := w.acked.Load() + uint32(batches); w.acked.Load() < until; {
		runtime.Gosched()
	}
}

func seeded(t *testing.T) *rand.Rand {
	seed := seedtest.Of(t)
	return rand.New(rand.NewPCG(seed, 1))
}

// A backup that is taken while puts run has everything that was acknowledged before it began, and
// nothing half. Its restored copy passes the check.
func TestBackUp_underPuts(t *testing.T) {
	rng := seeded(t)
	backups := 25
	if *soak {
		backups = 500
	}
	files := vfs.NewMem()
	s := openMem(t, Options{FS: files, MemTableBytes: 64 << 10, IdleFlush: -1})
	create(t, s)
	writing(t, s, rng, func(writers []*crashWriter) {
		for range backups {
			await(writers[0], rng.IntN(60))
			before := progressOf(writers)
			r, err := backUp(s, files, 2)
			if err == nil {
				err = sound(files, r.Path, func(s *Store) error { return before.check(s, writers) })
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	if names, err := backupsIn(files, "backups"); err != nil || len(names) != 2 {
		t.Errorf("backups %v, %v, want the last two", names, err)
	}
	if names, err := files.List("data"); err != nil ||
		slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, checkpointPrefix) }) {
		t.Errorf("data directory: %v, %v, want no checkpoint left", names, err)
	}
}

// stepping is a file system that calls step before whatever changes a file or a directory whose
// path contains a text.
type stepping struct {
	vfs.FS
	of   string
	step func(what string)
}

func (d *stepping) before(what, path string) {
	if d.step != nil && strings.Contains(path, d.of) {
		d.step(what + " " + path)
	}
}

func (d *stepping) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	d.before("create", name)
	f, err := d.FS.Create(name, category)
	return steppingFile{f, d, name}, err
}

func (d *stepping) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	return steppingFile{f, d, name}, err
}

func (d *stepping) Link(from, to string) error {
	d.before("link", to)
	return d.FS.Link(from, to)
}

func (d *stepping) Rename(from, to string) error {
	d.before("rename", to)
	return d.FS.Rename(from, to)
}

func (d *stepping) Remove(name string) error {
	d.before("remove", name)
	return d.FS.Remove(name)
}

func (d *stepping) RemoveAll(name string) error {
	d.before("remove", name)
	return d.FS.RemoveAll(name)
}

func (d *stepping) MkdirAll(name string, mode os.FileMode) error {
	d.before("mkdir", name)
	return d.FS.MkdirAll(name, mode)
}

type steppingFile struct {
	vfs.File
	of   *stepping
	name string
}

func (f steppingFile) Write(p []byte) (int, error) {
	f.of.before("write", f.name)
	return f.File.Write(p)
}

func (f steppingFile) Sync() error {
	f.of.before("sync", f.name)
	return f.File.Sync()
}

// A crash before any step of a backup, from the checkpoint to the removal of the oldest backup,
// leaves the earlier backups and the store as they were, and the next backup as good as any.
func TestBackUp_crash(t *testing.T) {
	rng := seeded(t)
	states := 2
	if *soak {
		states = 100
	}
	mem := vfs.NewCrashableMem()
	files := &stepping{FS: mem}
	s, _, first := smallStoreIn(t, files)
	apply(t, s, cell(store.Append, "row00", "q", "<second>"))
	r, second := mustBackUp(t, s, files, 0), dump(t, s, store.Scan{})
	apply(t, s, cell(store.Append, "row00", "q", "<third>"))
	third := dump(t, s, store.Scan{})

	steps := map[string]int{}
	files.step = func(what string) {
		if !strings.Contains(what, checkpointPrefix) && !strings.Contains(what, "backups") || t.Failed() {
			return
		}
		steps[strings.Fields(what)[0]]++
		for range states {
			left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			if err := afterBackupCrash(left, r.Path, first, second, third); err != nil {
				t.Errorf("before %s: %v", what, err)
			}
		}
	}
	if _, err := backUp(s, files, 2); err != nil {
		t.Error(err)
	}
	files.step = nil
	t.Logf("steps: %v", steps)
	if steps["link"] == 0 || steps["rename"] == 0 || steps["remove"] == 0 || steps["sync"] < 10 {
		t.Errorf("steps: %v, want links, renames, removals and syncs", steps)
	}
}

// afterBackupCrash checks what a crash in a third backup has left: the second one, in path, and
// each other that has a name.
func afterBackupCrash(left *vfs.MemFS, path, first, second, third string) error {
	names, err := backupsIn(left, "backups")
	if err != nil || !slices.Contains(names, filepath.Base(path)) {
		return fmt.Errorf("backups %v, %w, want %s", names, err, path)
	}
	same := func(want ...string) func(*Store) error {
		return func(s *Store) error {
			if got, err := all(s); err != nil || !slices.Contains(want, got) {
				return fmt.Errorf("it has %.300q, %w, want one of %.300q", got, err, want)
			}
			return nil
		}
	}
	for i, name := range names {
		want := same(first)
		if name == filepath.Base(path) {
			want = same(second)
		} else if i > 0 {
			want = same(third)
		}
		if err := sound(left, "backups/"+name, want); err != nil {
			return fmt.Errorf("backup %d of %d: %w", i, len(names), err)
		}
	}

	s, err := Open("data", Options{FS: left, IdleFlush: -1, Logger: quiet()})
	if err != nil {
		return err
	}
	err = same(third)(s)
	r, backupErr := backUp(s, left, 1)
	if err = errors.Join(err, backupErr, s.Close()); err != nil {
		return fmt.Errorf("the store and a backup after the crash: %w", err)
	}
	names, err = left.List("backups")
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{filepath.Base(r.Path), "LOCK"}) {
		return fmt.Errorf("after a backup that keeps one: %v, %w", names, err)
	}
	return sound(left, r.Path, same(third))
}

// smallStoreIn makes a store with tables and a log in data, and a backup of it in backups.
func smallStoreIn(t *testing.T, files vfs.FS) (s *Store, r store.BackupReport, want string) {
	t.Helper()
	s = openMem(t, Options{FS: files, IdleFlush: -1})
	create(t, s)
	for i := range 12 {
		apply(t, s, cell(store.Append, fmt.Sprintf("row%02d", i%8), "q", fmt.Sprintf("<%d>", i)),
			cell(store.Put, fmt.Sprintf("put%02d", i), "q", strings.Repeat("v", 3000)))
		if i == 5 {
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s, mustBackUp(t, s, files, 0), dump(t, s, store.Scan{})
}

// crossDevice is a file system on which directory backups is another one: no links reach it.
type crossDevice struct{ vfs.FS }

func (d crossDevice) Link(from, to string) error {
	if strings.HasPrefix(from, "backups") != strings.HasPrefix(to, "backups") {
		return errors.New("invalid cross-device link")
	}
	return d.FS.Link(from, to)
}

// A second backup takes the tables over that have not changed, on the same file system and on
// another one. Tables of another store with the same names are not taken over.
func TestBackUp_incremental(t *testing.T) {
	for what, files := range map[string]vfs.FS{"same": vfs.NewMem(), "another": crossDevice{vfs.NewMem()}} {
		s := openMem(t, Options{FS: files, IdleFlush: -1})
		create(t, s)
		for n := range 3 {
			apply(t, s, cell(store.Put, fmt.Sprintf("row%d", n), "q", strings.Repeat("x", 10_000)))
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false); err != nil {
			t.Fatal(err)
		}
		first := mustBackUp(t, s, files, 0)
		if first.New != first.Files || (first.Linked > 0) != (what == "same") {
			t.Errorf("%s: the first backup: %+v, want all files new, and tables linked on the same file system",
				what, first)
		}
		apply(t, s, cell(store.Put, "row9", "q", "y"))
		second := mustBackUp(t, s, files, 0)
		tables := len(tableNames(sorted(t, files, second.Path)))
		if tables == 0 || second.New != second.Files-tables {
			t.Errorf("%s: the second backup: %+v, want the %d tables taken over", what, second, tables)
		}
		for _, r := range []store.BackupReport{first, second} {
			if err := sound(files, r.Path, func(*Store) error { return nil }); err != nil {
				t.Error(err)
			}
		}

		// Another store, whose tables have the same numbers and sizes, and other values.
		other, err := Open("other", Options{FS: files, IdleFlush: -1, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		create(t, other)
		for n := range 3 {
			apply(t, other, cell(store.Put, fmt.Sprintf("row%d", n), "q", strings.Repeat("z", 10_000)))
			if err := other.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := other.db.Compact(t.Context(), []byte{0}, []byte{0xff, 0}, false); err != nil {
			t.Fatal(err)
		}
		want := dump(t, other, store.Scan{})
		third := mustBackUp(t, other, files, 0)
		err = sound(files, third.Path, func(s *Store) error {
			if got := dump(t, s, store.Scan{}); got != want {
				return fmt.Errorf("%s: the other store's backup has %.60q, want %.60q", what, got, want)
			}
			return nil
		})
		if err := errors.Join(err, other.Close()); err != nil {
			t.Error(err)
		}
	}
}

func sorted(t *testing.T, files vfs.FS, dir string) []string {
	t.Helper()
	names, err := files.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// A damaged table is not backed up: the backup fails, names it, and leaves what is there.
func TestBackUp_damagedStore(t *testing.T) {
	i, table, _ := tableStore(t)
	data := bytes.Clone(i[table])
	data[len(data)/2] ^= 1
	files := i.with(table, data).files(t)
	s := openMem(t, Options{FS: files, IdleFlush: -1, Logger: quiet()})
	_, err := backUp(s, files, 0)
	var damaged *store.DamageError
	if !errors.As(err, &damaged) || len(damaged.Faults) == 0 || damaged.Faults[0].File != table {
		t.Errorf("got %v, want the damage of %s", err, table)
	}
	if names := sorted(t, files, "backups"); !slices.Equal(names, []string{"LOCK"}) {
		t.Errorf("%v is left, want nothing", names)
	}
}

// On a full disk a backup or a restore fails, says so, and leaves nothing; puts go on.
func TestBackUp_fullDisk(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewMem()}
	disk.blind.Store(true)
	s := openMem(t, Options{FS: disk, IdleFlush: -1})
	create(t, s)
	apply(t, s, cell(store.Put, "row", "q", "v"))
	mustBackUp(t, s, disk, 0)
	name, remove, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	disk.full.Store(true)
	_, err = BackUp(t.Context(), Backup{Store: "data", Checkpoint: name, To: "backups"},
		Options{FS: disk, Logger: quiet()})
	if !errors.Is(err, store.ErrFull) || !strings.HasPrefix(err.Error(), "directory of backups backups: ") {
		t.Errorf("backup: %v, want that there is no room, and where", err)
	}
	if _, err := Restore(t.Context(), "backups", "restored",
		Options{FS: disk, Logger: quiet()}, nil); !errors.Is(err, store.ErrFull) {
		t.Errorf("restore: %v, want that there is no room", err)
	}
	disk.blind.Store(false)
	if _, _, err := s.Checkpoint(t.Context()); !errors.Is(err, store.ErrFull) {
		t.Errorf("checkpoint: %v, want that there is no room", err)
	}
	_, err = Restore(t.Context(), "backups", "restored", Options{FS: disk, Logger: quiet()}, nil)
	if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "the restore needs") {
		t.Errorf("restore: %v, want that there is no room", err)
	}
	disk.full.Store(false)
	if names := sorted(t, disk, "backups"); len(names) != 2 {
		t.Errorf("%v is left, want the first backup", names)
	}
	apply(t, s, cell(store.Put, "row2", "q", "v"))
	if err := remove(); err != nil {
		t.Error(err)
	}
}

// A backup cannot be made inside of the store, by whatever name, nor of a directory that is no
// checkpoint. On a real file system it is a link, and a link to a directory is followed.
func TestBackUp_place(t *testing.T) {
	root := t.TempDir()
	data := filepath.Join(root, "data")
	s, err := Open(data, Options{IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	create(t, s)
	apply(t, s, cell(store.Put, "row", "q", "v"))
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	name, remove, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(data, filepath.Join(root, "link")),
		os.Mkdir(filepath.Join(root, "real"), 0o700), os.Symlink("real", filepath.Join(root, "backups")),
		os.Symlink("missing", filepath.Join(root, "dangling"))); err != nil {
		t.Fatal(err)
	}
	f := func(to, checkpoint, want string) {
		t.Helper()
		_, err := BackUp(t.Context(), Backup{Store: data, Checkpoint: checkpoint, To: filepath.Join(root, to)},
			Options{Logger: quiet()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of %s: %v, want %q", to, checkpoint, err, want)
		}
	}
	f("data", name, "lies in the data directory")
	f("data/backups/a", name, "lies in the data directory")
	f("link", name, "lies in the data directory")
	f("link/new/a", name, "lies in the data directory")
	f("real/../data/b", name, "lies in the data directory")
	f("dangling/a", name, filepath.Join(root, "dangling")+": lstat")
	f("backups", "gone", "want the name of a directory that begins with checkpoint-")
	f("backups", "../real", "want the name of a directory that begins with checkpoint-")
	f("backups", "checkpoint-/../..", "want the name of a directory that begins with checkpoint-")
	f("backups", "checkpoint-gone", "no such file")
	// Two directories that are not there, with one parent, are two.
	if _, err := BackUp(t.Context(),
		Backup{Store: filepath.Join(root, "new", "store"), Checkpoint: name, To: filepath.Join(root, "new", "backups")},
		Options{Logger: quiet()}); err == nil || !strings.Contains(err.Error(), "has another one") {
		t.Errorf("a store that is not there: %v, want an error that says so", err)
	}
	r, err := BackUp(t.Context(), Backup{Store: data, Checkpoint: name, To: filepath.Join(root, "backups")},
		Options{Logger: quiet()})
	if err != nil || r.Linked == 0 {
		t.Errorf("got %+v, %v, want tables that are linked", r, err)
	}
	if _, err := os.Stat(filepath.Join(root, "real", filepath.Base(r.Path), listName)); err != nil {
		t.Error(err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
}

// On a real disk the tables of backups are those of the store, also where a backup takes them over, and the lists have
// their numbers and sizes. A plan needs no options.
func TestBackUp_links(t *testing.T) {
	root := t.TempDir()
	data, to := filepath.Join(root, "data"), filepath.Join(root, "backups")
	s, err := Open(data, Options{IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	create(t, s)
	apply(t, s, cell(store.Put, "row", "q", strings.Repeat("v", 10_000)))
	settle(t, s)
	for _, first := range []bool{true, false} {
		plan, err := PlanBackUp(t.Context(), Backup{Store: data, To: to}, Options{Logger: quiet()})
		if err != nil {
			t.Error(err)
		}
		name, remove, err := s.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := BackUp(t.Context(), Backup{Store: data, Checkpoint: name, To: to}, Options{Logger: quiet()})
		if err := errors.Join(err, remove()); err != nil {
			t.Fatal(err)
		}
		list, err := readList(vfs.Default, r.Path)
		if err != nil {
			t.Fatal(err)
		}
		var all, tables int64
		for _, f := range list.Files {
			info, err := os.Stat(filepath.Join(r.Path, f.Name))
			if err != nil {
				t.Fatal(err)
			}
			if all += info.Size(); !strings.HasSuffix(f.Name, ".sst") {
				continue
			}
			tables += info.Size()
			of, err := os.Stat(filepath.Join(data, f.Name))
			if err != nil || !os.SameFile(info, of) || f.Inode == 0 {
				t.Errorf("%s has number %d, %v, want it to be a link to the store's", f.Name, f.Inode, err)
			}
		}
		fresh := all
		if !first {
			fresh -= tables
		}
		if tables == 0 || r.Bytes != all || r.NewBytes != fresh || list.bytes() != all || plan.New != r.New {
			t.Errorf("got %+v of %+v, want %d bytes, %d of them new", r, plan, all, fresh)
		}
	}
	restored := filepath.Join(root, "restored")
	if r, err := PlanRestore(t.Context(), to, restored, Options{Logger: quiet()}, nil); err != nil || r.Files == 0 {
		t.Errorf("plan of a restore: got %+v, %v", r, err)
	}
}

// The backups of one place are in the order in which they were made, also if the clock is set
// back, and the newest is never the one to be removed.
func TestBackUp_clockSetBack(t *testing.T) {
	files := vfs.NewMem()
	s := openMem(t, Options{FS: files, IdleFlush: -1})
	create(t, s)
	var now atomic.Int64
	now.Store(1_800_000_000)
	last := ""
	for hour := range 5 {
		name, remove, err := s.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := BackUp(t.Context(), Backup{Store: "data", Checkpoint: name, To: "backups", Keep: 2},
			Options{FS: files, Logger: quiet(), Now: func() time.Time { return time.Unix(now.Load(), 0) }})
		if err := errors.Join(err, remove()); err != nil {
			t.Fatal(err)
		}
		if r.Path <= last {
			t.Errorf("%s was made after %s", r.Path, last)
		}
		if hour == 0 && r.Path != "backups/20270115T080000.000Z" {
			t.Errorf("the first one is %s, want it named by the clock", r.Path)
		}
		last = r.Path
		now.Add(map[bool]int64{true: -3600, false: 24 * 3600}[hour < 3])
	}
	if want := "backups/20270116T050000.000Z"; last != want {
		t.Errorf("the last one is %s, want %s: the clock is right again", last, want)
	}
	if names, err := backupsIn(files, "backups"); err != nil || len(names) != 2 || "backups/"+names[1] != last {
		t.Errorf("%v, %v, want two, the last of which is %s", names, err, last)
	}
}

// What a killed process has left of checkpoints, the next opening removes, or says why it cannot.
func TestOpen_removesCheckpoints(t *testing.T) {
	var failing atomic.Bool
	files := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && op.Kind == errorfs.OpRemoveAll && strings.Contains(op.Path, checkpointPrefix) {
			return syscall.EIO
		}
		return nil
	}))
	s, err := Open("data", Options{FS: files, IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	for range 2 { // each has a name of its own
		if _, _, err := s.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	if _, err := Open("data", Options{FS: files, Logger: quiet()}); !errors.Is(err, syscall.EIO) {
		t.Errorf("checkpoints that cannot be removed: %v, want %v", err, syscall.EIO)
	}
	failing.Store(false)
	openMem(t, Options{FS: files})
	names := sorted(t, files, "data")
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, checkpointPrefix) }) {
		t.Errorf("%v, want no checkpoint left", names)
	}
}
