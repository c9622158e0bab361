// Package disk is the file system that the embedded store gives pebble. It keeps
// what pebble writes as pebble wrote it, and adds what is needed to notice, at the
// next start, that some of it is missing:
//
//   - A log is longer than what stands in it, by zeros. One that ends with its
//     last record was cut. It has 64 KiB, and twice as much whenever half is used.
//   - A marker, which like pebble's own is an empty file, holds in its name the
//     numbers of the first and the newest log that records were synced to since the
//     store was opened: marker.downpour-logs.000007.000014-000016. These must exist.
//   - A MANIFEST is written twice, to MANIFEST-000005 and copy.MANIFEST-000005.
//
// It also keeps pebble from giving up or trying without pause on a disk that is
// full: what the log and the MANIFEST need is waited for, tables fail after a
// pause.
package disk

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// Config says where the files are and who is told.
type Config struct {
	// FS has the files, in Dir.
	FS  vfs.FS
	Dir string
	// Keep are names of files that are not removed but renamed, to unused-NAME.
	Keep []string
	// Fatal ends the process: the log cannot go on. It must not return.
	Fatal func(format string, args ...any)
	// Full is told when something waits for room or has failed for want of it.
	// Room is asked then, whenever something succeeds, whether that is over: what
	// has its room already can be written to a full disk. Neither may block.
	Full func(err error)
	Room func() bool
}

// FS is a file system for one database.
type FS struct {
	vfs.FS
	cfg   Config
	marks *marks
	room  room
	// spoiled are blocks that need not be read to know that they are damaged.
	spoiled spoiled
	// serving is set between the opening of the database and its closing: a log
	// that cannot be made ends the process then, and is an error else.
	serving atomic.Bool
	newest  atomic.Uint64 // number of the newest log
	filled  atomic.Uint64 // of the one that a record was written to last
	broken  atomic.Bool   // a log has failed
}

var _ vfs.FS = (*FS)(nil)

// New wraps a file system whose directory exists.
func New(cfg Config) (*FS, error) {
	d := &FS{FS: cfg.FS, cfg: cfg}
	d.room = room{full: cfg.Full, room: cfg.Room}
	var err error
	d.marks, err = openMarks(d, cfg.Dir)
	return d, err
}

// Close lets go of the directory; files that are open stay so.
func (d *FS) Close() error { return d.marks.close() }

// Serve says whether the database is open.
func (d *FS) Serve(on bool) { d.serving.Store(on) }

// Filled tells whether the newest log holds records.
func (d *FS) Filled() bool { return d.filled.Load() == d.newest.Load() }

// Broken tells whether a log has failed.
func (d *FS) Broken() bool { return d.broken.Load() }

// Unwrap is the file system below.
func (d *FS) Unwrap() vfs.FS { return d.FS }

// Create makes a file: logs, MANIFESTs and tables as the package comment says.
func (d *FS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	base := d.PathBase(name)
	if strings.HasSuffix(base, ".sst") {
		f, err := d.FS.Create(name, category)
		if err != nil {
			return nil, d.room.failed(err)
		}
		return &table{File: f, of: d}, nil
	}
	f, err := d.create(name, category)
	number, _, isLog := wal.ParseLogFilename(base)
	switch {
	case isLog && err == nil:
		return d.newLog(f, uint64(number), base)
	case isLog && d.serving.Load():
		d.cfg.Fatal("log %s cannot be made: %v", base, err)
		return nil, err
	case isManifest(base) && err == nil:
		return d.mirror(f, name, category)
	case err != nil:
		return nil, err
	}
	return &waiting{f, d}, nil
}

// Open opens a file to read it.
func (d *FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.Open(name, opts...)
	if base := d.PathBase(name); err == nil && strings.HasSuffix(base, ".sst") {
		return &reader{f, d, base}, nil
	}
	return f, err
}

// OpenDir opens a directory to sync it.
func (d *FS) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &directory{f, d}, nil
}

// directory is one whose entries must be on disk before pebble goes on.
type directory struct {
	vfs.File
	of *FS
}

// Sync is File.Sync. Pebble has no answer to an error but a panic.
func (f *directory) Sync() error {
	err := f.File.Sync()
	if err != nil && f.of.serving.Load() {
		f.of.cfg.Fatal("the directory's entries: %v", err)
	}
	return err
}

// create waits for room.
func (d *FS) create(name string, category vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = d.room.wait(func() error {
		f, err = d.FS.Create(name, category)
		return err
	})
	return f, err
}

// Remove removes a file, and its copy.
func (d *FS) Remove(name string) error {
	if base := d.PathBase(name); slices.Contains(d.cfg.Keep, base) {
		return d.FS.Rename(name, d.PathJoin(d.PathDir(name), "unused-"+base))
	}
	d.forget(name)
	return d.FS.Remove(name)
}

// Rename renames a file. A MANIFEST that changes its name is used no more.
func (d *FS) Rename(from, to string) error {
	d.forget(from)
	return d.FS.Rename(from, to)
}

// forget removes the copy of a MANIFEST. One that stays is removed at the next
// start.
func (d *FS) forget(name string) {
	if base := d.PathBase(name); isManifest(base) {
		_ = d.FS.Remove(d.PathJoin(d.PathDir(name), CopyOf(base)))
	}
}

// waiting is a file whose writes wait for room.
type waiting struct {
	vfs.File
	of *FS
}

// Write writes all of p, however long that takes.
func (f *waiting) Write(p []byte) (n int, err error) { return f.of.room.write(f.File, p) }

// table is a file whose writes fail when there is no room, after a pause: pebble
// removes it and begins anew.
type table struct {
	vfs.File
	of     *FS
	failed bool
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
	return f.of.room.failed(err)
}

// synced is for the end of a sync. A table that is synced whole ends a row of
// failures, one that is only given up does not.
func (f *table) synced(err error) error {
	if err == nil && !f.failed {
		f.of.room.succeeded()
	}
	return f.fail(err)
}

// isManifest tells a MANIFEST by its name.
func isManifest(base string) bool {
	return strings.HasPrefix(base, "MANIFEST-")
}

// CopyOf is the name of the copy of a MANIFEST.
func CopyOf(manifest string) string { return "copy." + manifest }

// LogName is the name of a log's file.
func LogName(number uint64) string { return fmt.Sprintf("%06d.log", number) }
