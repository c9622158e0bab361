package pebble

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
)

// Of rows next to each other only append columns are sealed, and those of hours that have ended.
func TestSeal_notOthers(t *testing.T) {
	t.Parallel()
	s := openMem(t, sealedOptions(vfs.NewMem()))
	create(t, s)
	old, entries := sealedRow(0, 0), string(sealedEntries(0, 0))
	appendEntries(t, s, 0, 0, []byte(entries))
	appendEntries(t, s, 0, 1, []byte(entries))
	apply(t, s, cell(store.Append, string(old), "other", entries))
	report := sealAll(t, s, hourEnd(0))
	if report.Rows != 1 || report.Sealed != 1 || report.Before <= report.After || report.After <= 0 {
		t.Errorf("%+v, want one row sealed, and smaller", report)
	}
	if tags := storedTags(t, s); tags != [3]int{1, 0, 1} {
		t.Errorf("%d appended, %d put and %d sealed columns, want the later hour as it was", tags[0], tags[1], tags[2])
	}
	stored, closer, err := s.db.Get(appendKey(nil, "tsdb", old, "t", []byte("other")))
	if err != nil || stored[0] != tagAppend {
		t.Errorf("another column: %.3x, %v, want it as it was", stored, err)
	}
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
}

// Sealing ends with the error of its pace, with its context, and without a table.
func TestSeal_ends(t *testing.T) {
	t.Parallel()
	s := openMem(t, sealedOptions(vfs.NewMem()))
	create(t, s)
	for series := range 2 * sealRows {
		appendEntries(t, s, series, 0, sealedEntries(series, 0))
	}
	paced := errors.New("paced")
	for want, c := range map[error]struct {
		table string
		pace  func(stop func()) error
		rows  int64
	}{
		paced:            {"tsdb", func(func()) error { return paced }, sealRows},
		context.Canceled: {"tsdb", func(stop func()) error { stop(); return nil }, sealRows},
		store.ErrNoTable: {"none", nil, 0},
	} {
		ctx, stop := context.WithCancel(t.Context())
		report, err := s.Seal(ctx, c.table, time.Time{}, hourEnd(0),
			func(store.SealReport) error { return c.pace(stop) })
		stop()
		if !errors.Is(err, want) || report.Rows != c.rows {
			t.Errorf("%+v, %v, want %d rows looked at and %v", report, err, c.rows, want)
		}
	}
}
