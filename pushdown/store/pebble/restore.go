package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
)

// restoringName is the directory in a data directory that a restore writes to. While it is
// there, and no marker names a MANIFEST, the restore has not ended.
const restoringName = "restoring"

// Restore copies a backup into an empty data directory, which it makes if it is not there.
// from is a backup, or a directory of backups, whose newest is taken. Every file is
// compared with the backup's list, and every block, log and MANIFEST of the copy is checked,
// before anything is put in place; until everything is, the directory does not open. A
// restore that was cut off is made again by the same call.
//
// Errors: store.ErrLocked if the data directory is in use; store.ErrFull; *store.DamageError
// for a backup that is damaged.
func Restore(ctx context.Context, from, dir string, opts Options, done func(files, of int)) (
	report store.BackupReport, err error) {
	opts = opts.withDefaults()
	// Nothing is made for a backup that is none.
	path, list, err := findBackup(opts.FS, from)
	if err != nil {
		return report, err
	}
	if err := makeDir(opts.FS, dir); err != nil {
		return report, fmt.Errorf("data directory %s: %w", dir, err)
	}
	lock, err := lockDir(opts.FS, dir)
	if err != nil {
		return report, err
	}

	r := restore{
		opts:      opts,
		files:     opts.FS,
		from:      path,
		dir:       dir,
		temporary: opts.FS.PathJoin(dir, restoringName),
		list:      list,
	}
	err = r.run(ctx, done)
	if disk.IsFull(err) {
		err = fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	if err != nil {
		err = fmt.Errorf("restore of %s into %s: %w", path, dir, err)
	}
	return store.BackupReport{Path: path, Files: len(list.Files), Bytes: list.bytes()}, errors.Join(err, lock.Close())
}

// restore is one restore.
type restore struct {
	opts            Options
	files           vfs.FS
	from, dir       string
	temporary       string // where the files are while they are not checked
	list            *backupList
	manifestsMarker string // the file that makes the files a database
}

// run restores. If it fails before the first file is in place, it leaves the data directory
// as it was.
func (r *restore) run(ctx context.Context, done func(files, of int)) error {
	if err := r.clear(); err != nil {
		return err
	}
	if err := r.space(); err != nil {
		return err
	}
	if err := r.files.MkdirAll(r.temporary, 0o700); err != nil {
		return err
	}
	err := syncDir(r.files, r.dir)
	if err == nil {
		err = r.copy(ctx, done)
	}
	if err == nil {
		err = r.check(ctx)
	}
	if err != nil {
		return errors.Join(err, r.files.RemoveAll(r.temporary))
	}
	return r.putInPlace()
}

// leftovers refuses a data directory that is not empty, and returns what a restore has left there that was
// cut off.
func (r *restore) leftovers() (left []string, err error) {
	names, err := r.files.List(r.dir)
	if err != nil {
		return nil, err
	}
	// A restore begins in an empty directory and ends with the marker. So where its directory
	// is, and no marker, files of a store are its own.
	unfinished, err := restoring(r.files, r.dir)
	if err != nil {
		return nil, err
	}

	for _, name := range names {
		switch {
		case name == "LOCK" || name == "lost+found": // the latter in the root of a file system
		case unfinished && (name == restoringName || isStoreFile(name)):
			left = append(left, name)
		default:
			return nil, fmt.Errorf(
				"it is not empty, but holds %s; want an empty directory, or one that is not there", name)
		}
	}
	return left, nil
}

// clear refuses a data directory that is not empty. What a restore has left that was cut off
// is removed.
func (r *restore) clear() error {
	left, err := r.leftovers()
	if err != nil || len(left) == 0 {
		return err
	}
	// The directory goes last: the others are a restore's because it is there.
	for _, name := range left {
		if name != restoringName {
			err = errors.Join(err, r.files.Remove(r.files.PathJoin(r.dir, name)))
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(syncDir(r.files, r.dir), r.files.RemoveAll(r.temporary))
}

// space refuses a restore for which there is not enough.
func (r *restore) space() error {
	usage, err := r.files.GetDiskUsage(r.dir)
	if err != nil {
		return nil
	}
	if need := uint64(r.list.bytes()) + startBytes; usage.AvailBytes < need {
		return fmt.Errorf("%w: %d KiB are free, the restore needs %d KiB",
			store.ErrFull, usage.AvailBytes>>10, need>>10)
	}
	return nil
}

// copy copies the files of the backup, and compares each with the list.
func (r *restore) copy(ctx context.Context, done func(files, of int)) error {
	var faults []store.Fault
	buffer := make([]byte, 1<<20)
	for i, f := range r.list.Files {
		if done != nil {
			done(i, len(r.list.Files))
		}
		if strings.HasPrefix(f.Name, "marker.manifest.") {
			r.manifestsMarker = f.Name
		}
		to, err := r.files.Create(r.files.PathJoin(r.temporary, f.Name), vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		fault, err := compareFile(ctx, r.files, r.from, f, to, buffer)
		if err == nil {
			err = to.Sync()
		}
		if err := errors.Join(err, to.Close()); err != nil {
			return err
		}
		if fault != nil {
			faults = append(faults, *fault)
		}
	}
	if len(faults) > 0 {
		return &store.DamageError{Faults: faults}
	}
	if r.manifestsMarker == "" {
		return fmt.Errorf("%s names no marker.manifest", listName)
	}
	return nil
}

// compareFile reads a file of a backup, writes it to another unless that is nil, and returns
// how it differs from the list, nil if it does not.
func compareFile(ctx context.Context, files vfs.FS, dir string, f backupFile, to vfs.File, buffer []byte) (
	*store.Fault, error) {
	fault := store.Fault{Kind: store.Lost, File: f.Name, Offset: -1, Bytes: -1, What: "missing"}
	from, err := files.Open(files.PathJoin(dir, f.Name), vfs.SequentialReadsOption)
	if errors.Is(err, fs.ErrNotExist) {
		return &fault, nil
	}
	if err != nil {
		return nil, err
	}

	sum, n, err := digest(ctx, from, to, buffer)
	if err := errors.Join(err, from.Close()); err != nil {
		return nil, err
	}
	switch {
	case n != f.Bytes:
		fault.What = fmt.Sprintf("has %d bytes, should have %d", n, f.Bytes)
	case sum != f.SHA256: //fault:restore-of-other-files TestRestore_damagedBackup
		fault.What = fmt.Sprintf("is not the file that was backed up: its SHA-256 is %s, should be %s", sum, f.SHA256)
	default:
		return nil, nil
	}
	return &fault, nil
}

// check reads every block of the copy.
func (r *restore) check(ctx context.Context) error {
	report, err := checkFiles(ctx, r.temporary, r.opts, nil, nil)
	if err == nil && len(report.Faults) > 0 {
		err = &store.DamageError{Faults: report.Faults}
	}
	return err
}

// putInPlace moves the files to where the store has them. The marker of the MANIFEST comes
// last, when all others are there for ever: with it the directory is a database.
func (r *restore) putInPlace() error {
	for _, f := range r.list.Files {
		if f.Name == r.manifestsMarker {
			continue
		}
		if err := r.move(f.Name); err != nil {
			return err
		}
	}
	if err := errors.Join(syncDir(r.files, r.temporary), syncDir(r.files, r.dir)); err != nil {
		return err
	}
	if err := r.move(r.manifestsMarker); err != nil {
		return err
	}
	if err := errors.Join(syncDir(r.files, r.temporary), syncDir(r.files, r.dir)); err != nil {
		return err
	}
	return endRestore(r.files, r.dir)
}

func (r *restore) move(name string) error {
	return r.files.Rename(r.files.PathJoin(r.temporary, name), r.files.PathJoin(r.dir, name))
}

// restoring reports whether a restore into a data directory has begun and not ended.
func restoring(files vfs.FS, dir string) (bool, error) {
	_, err := files.Stat(files.PathJoin(dir, restoringName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	marker, err := atomicfs.ReadMarker(files, dir, "manifest")
	return marker == "", err
}

// checkRestored returns an error for a data directory into which a restore has begun and not
// ended.
func checkRestored(files vfs.FS, dir string) error {
	unfinished, err := restoring(files, dir)
	if err == nil && unfinished {
		err = fmt.Errorf(
			"data directory %s: a restore into it was cut off; run gateway restore again, or remove what is in it",
			dir)
	}
	return err
}

// endRestore removes the directory of a restore that has put everything in place. One that
// has not is an error.
func endRestore(files vfs.FS, dir string) error {
	if err := checkRestored(files, dir); err != nil {
		return err
	}
	path := files.PathJoin(dir, restoringName)
	if _, err := files.Stat(path); err != nil {
		return nil
	}
	return errors.Join(files.RemoveAll(path), syncDir(files, dir))
}

// CheckBackup reads all files of a backup, or of the newest in a directory of backups, and
// reports what is wrong with them. It changes nothing.
func CheckBackup(ctx context.Context, dir string, opts Options, done func(tables, of int)) (
	path string, report store.CheckReport, err error) {
	opts = opts.withDefaults()
	path, list, err := findBackup(opts.FS, dir)
	if err != nil {
		return "", report, err
	}
	report, err = checkFiles(ctx, path, opts, nil, done)
	if err != nil {
		return path, report, fmt.Errorf("backup %s: %w", path, err)
	}
	buffer := make([]byte, 1<<20)
	for _, f := range list.Files {
		fault, err := compareFile(ctx, opts.FS, path, f, nil, buffer)
		if err != nil {
			return path, report, fmt.Errorf("backup %s: %w", path, err)
		}
		if fault != nil {
			report.Faults = append(report.Faults, *fault)
		}
	}
	return path, report, nil
}
