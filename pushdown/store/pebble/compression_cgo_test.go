//go:build cgo

package pebble

import "testing"

// With zstd in C, so are tables in which no bytes repeat.
func TestCompression_nothingRepeats(t *testing.T) { testCompression(t, drawnRow) }
