package pebble

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
)

// unreadable words the error of a read. One that has met a corrupt block becomes
// store.ErrDamaged and names the table's file and the rows that are in it.
func unreadable(err error) error {
	var known *disk.SpoiledError
	if errors.As(err, &known) {
		return known.Err
	}
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	if i := pebble.ExtractDataCorruptionInfo(err); i != nil {
		return damage(i)
	}
	return fmt.Errorf("%w: %w", store.ErrDamaged, err)
}

// damage is the error of a corrupt table.
func damage(i *pebble.DataCorruptionInfo) error {
	return fmt.Errorf("%w: %s, with keys from %v to %v: %v", store.ErrDamaged, filepath.Base(i.Path), keyFormat(i.Bounds.Start), keyFormat(i.Bounds.End.Key), i.Details)
}
