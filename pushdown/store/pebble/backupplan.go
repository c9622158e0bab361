package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
)

// PlanBackUp says what BackUp would write, and whether it could, and changes nothing. It needs no checkpoint: it
// uses the files of the store as they are now. Some may be gone, and others there, when the backup is made.
func PlanBackUp(_ context.Context, b Backup, opts Options) (report store.BackupReport, err error) {
	opts = opts.withDefaults()
	b.Checkpoint = checkpointPrefix // only its form is checked
	if err := b.checkPlace(opts.FS); err != nil {
		return report, err
	}
	if err := writable(opts.FS, b.To); err != nil {
		return report, fmt.Errorf("directory of backups %s: %w", b.To, err)
	}

	w := backupWriter{Backup: b, opts: opts, files: opts.FS}
	names, err := backupsIn(w.files, b.To)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return report, fmt.Errorf("directory of backups %s: %w", b.To, err)
	}
	w.readNewest(names)
	files, err := w.files.List(b.Store)
	if err != nil {
		return report, fmt.Errorf("data directory %s: %w", b.Store, err)
	}
	for _, name := range files {
		info, err := w.files.Stat(w.files.PathJoin(b.Store, name))
		if !isStoreFile(name) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return report, fmt.Errorf("data directory %s: %w", b.Store, err)
		}
		from, size := originOf(info)
		report.Files++
		report.Bytes += size
		if old, ok := w.old[name]; !ok || !strings.HasSuffix(name, ".sst") || old.Bytes != size || old.origin != from {
			report.New++
			report.NewBytes += size
		}
	}
	if report.Files == 0 {
		return report, fmt.Errorf("data directory %s: it holds no files of a store", b.Store)
	}
	if b.Keep > 0 {
		for _, name := range names[:max(0, len(names)+1-b.Keep)] {
			if path := w.files.PathJoin(b.To, name); exists(w.files, w.files.PathJoin(path, listName)) {
				report.Removed = append(report.Removed, path)
			}
		}
	}
	return report, nil
}

// The rights that access(2) checks: its W_OK and X_OK.
const (
	mayWrite = 2
	mayEnter = 1
)

// writable returns an error unless a directory is there and can be written to, or can be made.
func writable(files vfs.FS, dir string) error {
	for {
		info, err := files.Stat(dir)
		switch parent := files.PathDir(dir); {
		case errors.Is(err, fs.ErrNotExist) && parent != dir:
			dir = parent
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is no directory", dir)
		case files != vfs.Default: // a test's, which has no rights
			return nil
		}
		if err := syscall.Access(dir, mayWrite|mayEnter); err != nil {
			return fmt.Errorf("%s cannot be written to: %w", dir, err)
		}
		return nil
	}
}

func exists(files vfs.FS, path string) bool {
	_, err := files.Stat(path)
	return err == nil
}

// PlanRestore says what Restore would put in place, and changes nothing. It refuses what Restore refuses, and reads
// and checks every file of the backup.
func PlanRestore(ctx context.Context, from, dir string, opts Options, done func(files, of int)) (
	report store.BackupReport, err error) {
	opts = opts.withDefaults()
	path, list, err := findBackup(opts.FS, from)
	if err != nil {
		return report, err
	}
	report = store.BackupReport{Path: path, Files: len(list.Files), Bytes: list.bytes()}
	r := restore{opts: opts, files: opts.FS, from: path, dir: dir, list: list}
	if err := r.couldBegin(); err != nil {
		return report, fmt.Errorf("restore of %s into %s: %w", path, dir, err)
	}
	_, found, err := CheckBackup(ctx, path, opts, done)
	if err == nil && len(found.Faults) > 0 {
		err = &store.DamageError{Faults: found.Faults}
	}
	if err != nil {
		err = fmt.Errorf("restore of %s into %s: %w", path, dir, err)
	}
	return report, err
}

// couldBegin returns why a restore would not begin.
func (r *restore) couldBegin() error {
	if err := writable(r.files, r.dir); err != nil {
		return err
	}
	if exists(r.files, r.dir) {
		if _, err := r.leftovers(); err != nil {
			return err
		}
	}
	// The disk is that of the nearest directory that is there.
	at := *r
	for !exists(at.files, at.dir) && at.files.PathDir(at.dir) != at.dir {
		at.dir = at.files.PathDir(at.dir)
	}
	return at.space()
}
