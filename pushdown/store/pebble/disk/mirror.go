package disk

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mirrored is a MANIFEST and its copy. Both are synced before a sync returns: what is
// missing in one of them is in the other, unless it was never reported as durable.
type mirrored struct {
	vfs.File
	copy vfs.File
	fs   *FS
}

// mirror creates the copy of a MANIFEST and returns a file that writes to both.
func (d *FS) mirror(f vfs.File, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	c, err := d.create(d.PathJoin(d.PathDir(name), CopyOf(d.PathBase(name))), category)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &mirrored{File: f, copy: c, fs: d}, nil
}

// Write writes all of p to both, waiting for space.
func (m *mirrored) Write(p []byte) (int, error) {
	again := bytes.Clone(p) // a file may change what it is given
	if n, err := m.fs.space.write(m.File, p); err != nil {
		return n, err
	}
	return m.fs.space.write(m.copy, again)
}

// Sync makes both durable.
func (m *mirrored) Sync() error {
	if err := m.File.Sync(); err != nil {
		return err
	}
	return m.copy.Sync()
}

// SyncData makes both durable.
func (m *mirrored) SyncData() error { return m.Sync() }

// SyncTo makes all of both durable.
func (m *mirrored) SyncTo(int64) (bool, error) { return true, m.Sync() }

// Close closes both.
func (m *mirrored) Close() error { return errors.Join(m.File.Close(), m.copy.Close()) }
