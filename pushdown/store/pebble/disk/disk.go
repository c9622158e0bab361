// Package disk is the file system that the embedded store gives pebble. It writes
// pebble's bytes unchanged, and adds what shows, at the next start, that some of them
// are missing:
//
//   - A log is longer than its records, by zeros. A log that ends with its last
//     record was cut. It begins with 64 KiB, and doubles whenever half is used.
//   - A marker, an empty file like pebble's own markers, has in its name the numbers
//     of the first and the newest log that records were synced to since the store was
//     opened: marker.downpour-logs.000007.000014-000016. These logs must exist. Before a database gets its
//     first sealed column, the marker also becomes one that older releases refuse:
//     marker.downpour-logs.000008.columns.v1-000014-000016.
//   - A MANIFEST is written twice, to MANIFEST-000005 and copy.MANIFEST-000005. Both are in the directory, durably,
//     before a marker names it: pebble itself would sync them together, and a crash could leave the marker alone.
//
// On a full disk pebble would give up, or try again without a pause. Here writes to
// logs and MANIFESTs wait until there is space, and writes to tables fail after a
// pause.
//
// Files in directories below that of the database are copies of its files, for a while. They are
// written as they are, and an error is an error.
package disk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// Config says where the files are and what to call when something happens.
type Config struct {
	FS  vfs.FS
	Dir string // of the database, in FS
	// Keep are names of files that are not removed but renamed, to unused-NAME.
	Keep []string
	// Fatal ends the process because the log cannot go on. It must not return.
	Fatal func(format string, args ...any)
	// OnFull is called when something waits for space, or has failed for want of it.
	// After that SpaceAgain is called whenever something succeeds, until it returns
	// true: a success alone does not say that there is space, because files that
	// have theirs already can be written on a full disk. Neither may block.
	OnFull     func(err error)
	SpaceAgain func() bool
}

// FS is a file system for one database.
type FS struct {
	vfs.FS
	cfg    Config
	dir    string // cfg.Dir as the directory of its files' paths
	marker *logMarker
	space  space
	// damaged are the blocks that are known to be damaged without reading them.
	damaged damagedBlocks
	// serving is set between the opening of the database and its closing. A log
	// that cannot be made ends the process then; otherwise it is an error.
	serving atomic.Bool
	newest  atomic.Uint64 // number of the newest log
	filled  atomic.Uint64 // number of the log that a record was written to last
	broken  atomic.Bool   // a log has failed
}

var _ vfs.FS = (*FS)(nil)

// New returns a file system for the database in cfg.Dir, which exists.
func New(cfg Config) (*FS, error) {
	d := &FS{FS: cfg.FS, cfg: cfg}
	d.dir = d.PathDir(d.PathJoin(cfg.Dir, "file"))
	d.space = space{onFull: cfg.OnFull, again: cfg.SpaceAgain}
	var err error
	d.marker, err = openLogMarker(d, cfg.Dir)
	return d, err
}

// Close releases the directory. Open files stay open.
func (d *FS) Close() error { return d.marker.close() }

// Columns reports whether the database may have sealed columns, which older releases cannot read.
func (d *FS) Columns() bool { return d.marker.columns() }

// SetColumns makes older releases refuse the database. It is durable when it returns.
func (d *FS) SetColumns() error { return d.marker.setColumns() }

// SetServing says whether the database is open.
func (d *FS) SetServing(on bool) { d.serving.Store(on) }

// Filled reports whether the newest log has records.
func (d *FS) Filled() bool { return d.filled.Load() == d.newest.Load() }

// Broken reports whether a log has failed.
func (d *FS) Broken() bool { return d.broken.Load() }

// foreign reports whether a file is none of the database, but lies in another directory.
func (d *FS) foreign(name string) bool { return d.PathDir(name) != d.dir }

// Unwrap returns the wrapped file system.
func (d *FS) Unwrap() vfs.FS { return d.FS }

// Create makes a file. Logs, MANIFESTs and tables are written as the package comment
// says.
func (d *FS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.foreign(name) {
		return d.FS.Create(name, category)
	}
	base := d.PathBase(name)
	if strings.HasPrefix(base, "marker.manifest.") {
		if err := d.syncDir(); err != nil { //fault:marker-before-manifest TestRotation
			return nil, err
		}
	}
	if strings.HasSuffix(base, ".sst") {
		f, err := d.FS.Create(name, category)
		if err != nil {
			// Pebble tries again by itself, so here is only a pause.
			return nil, d.space.failed(err)
		}
		return &table{File: f, fs: d}, nil
	}

	f, err := d.create(name, category)
	number, _, isLog := wal.ParseLogFilename(base)
	switch {
	case isLog && err == nil:
		return d.newLog(f, uint64(number), base)
	case isLog && d.serving.Load():
		// Pebble has no answer to this error but a panic.
		d.cfg.Fatal("cannot make log %s: %v", base, err)
		return nil, err
	case isManifest(base) && err == nil:
		return d.mirror(f, name, category)
	case err != nil:
		return nil, err
	}
	return &waitingFile{f, d}, nil
}

// Open opens a file to read it.
func (d *FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.Open(name, opts...)
	if base := d.PathBase(name); err == nil && strings.HasSuffix(base, ".sst") && !d.foreign(name) {
		return &tableReader{f, d, base}, nil
	}
	return f, err
}

// OpenDir opens a directory to sync it.
func (d *FS) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	if own := d.PathJoin(name) == d.PathJoin(d.dir); !own && d.PathDir(name) == d.dir {
		return passing{f}, nil
	}
	return &directory{f, d}, nil
}

// syncDir makes the entries of the database's directory durable.
func (d *FS) syncDir() error {
	dir, err := d.OpenDir(d.cfg.Dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// directory is a directory whose entries must be on disk before pebble goes on.
type directory struct {
	vfs.File
	fs *FS
}

// Sync is File.Sync. Pebble has no answer to an error but a panic.
func (f *directory) Sync() error {
	err := f.File.Sync()
	if err != nil && f.fs.serving.Load() {
		f.fs.cfg.Fatal("cannot sync the directory: %v", err)
	}
	return err
}

// passing is a directory below that of the database. What is in it need not outlast a
// crash, and pebble would panic if it could not be synced.
type passing struct{ vfs.File }

// Sync does nothing.
func (passing) Sync() error { return nil }

// create makes a file, waiting for space.
func (d *FS) create(name string, category vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = d.space.wait(func() error {
		f, err = d.FS.Create(name, category)
		return err
	})
	return f, err
}

// Remove removes a file, and the copy of a MANIFEST. Files of Config.Keep are renamed.
func (d *FS) Remove(name string) error {
	if base := d.PathBase(name); slices.Contains(d.cfg.Keep, base) && !d.foreign(name) {
		return d.FS.Rename(name, d.PathJoin(d.PathDir(name), "unused-"+base))
	}
	d.removeCopy(name)
	return d.FS.Remove(name)
}

// Rename renames a file. A MANIFEST that is renamed is not used any more, so its copy
// is removed.
func (d *FS) Rename(from, to string) error {
	d.removeCopy(from)
	return d.FS.Rename(from, to)
}

// removeCopy removes the copy of a MANIFEST. If that fails, the next start removes it.
func (d *FS) removeCopy(name string) {
	if base := d.PathBase(name); isManifest(base) && !d.foreign(name) {
		_ = d.FS.Remove(d.PathJoin(d.PathDir(name), CopyOf(base)))
	}
}

// waitingFile is a file whose writes wait for space.
type waitingFile struct {
	vfs.File
	fs *FS
}

// Write writes all of p, however long that takes.
func (f *waitingFile) Write(p []byte) (n int, err error) { return f.fs.space.write(f.File, p) }

// table is a file whose writes fail after a pause when there is no space: pebble
// removes it and starts the flush or compaction again.
type table struct {
	vfs.File
	fs     *FS
	failed bool // a write or a sync has failed
}

// Write is File.Write.
func (f *table) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fail(err)
}

// Sync is File.Sync.
func (f *table) Sync() error { return f.synced(f.File.Sync()) }

// SyncData is File.SyncData.
func (f *table) SyncData() error { return f.synced(f.File.SyncData()) }

func (f *table) fail(err error) error {
	f.failed = f.failed || err != nil
	return f.fs.space.failed(err)
}

// synced is called with the outcome of a sync. A complete table ends a row of
// failures; a table that has failed before, and that pebble is about to remove, does
// not.
func (f *table) synced(err error) error {
	if err == nil && !f.failed {
		f.fs.space.succeeded()
	}
	return f.fail(err)
}

// isManifest reports whether a name is that of a MANIFEST.
func isManifest(base string) bool {
	return strings.HasPrefix(base, "MANIFEST-")
}

// CopyOf returns the name of the copy of a MANIFEST.
func CopyOf(manifest string) string { return "copy." + manifest }

// LogName returns the name of a log's file.
func LogName(number uint64) string { return fmt.Sprintf("%06d.log", number) }
