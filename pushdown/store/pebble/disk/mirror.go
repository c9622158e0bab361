package disk

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mirrored is a MANIFEST and its copy. Both are synced before a sync returns, so
// that whatever one of them lacks was never relied on, or is in the other.
type mirrored struct {
	vfs.File
	copy vfs.File
	of   *FS
}

func (d *FS) mirror(f vfs.File, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	c, err := d.create(d.PathJoin(d.PathDir(name), CopyOf(d.PathBase(name))), category)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &mirrored{File: f, copy: c, of: d}, nil
}

// Write writes all of p to both, waiting for room.
func (m *mirrored) Write(p []byte) (int, error) {
	again := bytes.Clone(p) // a file may change what it is given
	if n, err := m.of.room.write(m.File, p); err != nil {
		return n, err
	}
	return m.of.room.write(m.copy, again)
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

// SyncTo makes both durable, all of them.
func (m *mirrored) SyncTo(int64) (bool, error) { return true, m.Sync() }

// Close closes both.
func (m *mirrored) Close() error { return errors.Join(m.File.Close(), m.copy.Close()) }
