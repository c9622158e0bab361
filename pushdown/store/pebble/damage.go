package pebble

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
)

// unreadable turns the error of a read that met a corrupt block into store.ErrDamaged
// with the table's file and the rows in it. Other errors, and nil, are returned as
// they are.
func unreadable(err error) error {
	var known *disk.DamagedError
	if errors.As(err, &known) {
		return known.Err // as worded when the block was first met
	}
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	if i := pebble.ExtractDataCorruptionInfo(err); i != nil {
		return damageError(i)
	}
	return fmt.Errorf("%w: %w", store.ErrDamaged, err)
}

// damageError returns the error of a corrupt table.
func damageError(i *pebble.DataCorruptionInfo) error {
	return fmt.Errorf("%w: %s, with keys from %v to %v: %v",
		store.ErrDamaged, filepath.Base(i.Path), keyFormat(i.Bounds.Start), keyFormat(i.Bounds.End.Key), i.Details)
}
