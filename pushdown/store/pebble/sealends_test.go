package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// Of rows next to each other only append columns are sealed, and those of hours that have ended.
func TestSeal_notOthers(t *testing.T) {
	t.Parallel()
	s := openMem(t, sealedOptions(vfs.NewMem()))
	create(t, s)
	old, entries := sealedRow(0, 0), string(sealedEntries(0, 0))
	for series := range sealRows { // of one step: the next one finds none
		appendEntries(t, s, series, 0, []byte(entries))
	}
	appendEntries(t, s, 0, 1, []byte(entries))
	apply(t, s, cell(store.Append, string(old), "other", entries))
	if report, err := s.Seal(t.Context(), "tsdb", time.Time{}, hourEnd(-1), nil); report.Rows != 0 || err != nil {
		t.Errorf("%+v, %v, want nothing done, and nobody asked for its pace", report, err)
	}
	report := sealAll(t, s, hourEnd(0))
	if report.Rows != sealRows || report.Sealed != sealRows || report.Before <= report.After || report.After <= 0 {
		t.Errorf("%+v, want %d rows sealed, and smaller", report, sealRows)
	}
	if tags := storedTags(t, s); tags != [3]int{1, 0, sealRows} {
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
		if !errors.Is(err, want) || report.Rows != c.rows ||
			!strings.Contains(err.Error(), fmt.Sprintf("table %q: ", c.table)) {
			t.Errorf("%+v, %v, want %d rows looked at and %v of the table", report, err, c.rows, want)
		}
	}
}

// While what was replaced is removed, by a flush and a compaction, sealing ends with its context, too.
func TestSeal_endsAtLast(t *testing.T) {
	t.Parallel()
	for _, last := range []int64{1, 2} {
		var tables atomic.Int64
		tables.Store(-100)
		ctx, stop := context.WithCancel(t.Context())
		may := make(chan struct{})
		files := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") && tables.Add(1) == last {
				stop()
				<-may
			}
			return nil
		}))
		s := openMem(t, sealedOptions(files))
		create(t, s)
		appendEntries(t, s, 0, 0, sealedEntries(0, 0))
		compactAll(t, s) // so that no other compaction follows the flush
		tables.Store(0)
		report, err := s.Seal(ctx, "tsdb", time.Time{}, hourEnd(0), func(store.SealReport) error { return nil })
		close(may)
		if !errors.Is(err, context.Canceled) || report.Sealed != 1 {
			t.Errorf("at table %d: %+v, %v, want a row sealed, and %v", last, report, err, context.Canceled)
		}
	}
}

// What is to be removed reaches from the first row that was sealed to the last one, whatever steps they are of.
func TestSealing_extendReplaced(t *testing.T) {
	t.Parallel()
	key := func(series int) []byte {
		return appendKey(nil, "tsdb", sealedRow(series, 0), "t", encoding.AppendColumn)
	}
	p := sealing{table: "tsdb"}
	for _, series := range [][]int{{1, 2}, {4}} {
		p.cells = nil
		for _, n := range series {
			p.cells = append(p.cells, sealedCell{key: key(n)})
		}
		p.extendReplaced()
	}
	if r := p.replaced; !bytes.Equal(r.Start, key(1)) || compareKeys(key(4), r.End) >= 0 ||
		compareKeys(r.End, key(5)) > 0 {
		t.Errorf("from %v to %v, want rows 1 to 4", keyFormat(r.Start), keyFormat(r.End))
	}
}

// Rows are sealed about a mebibyte at a time, and what was replaced is removed after each 32 MiB. An error then is not
// forgotten.
func TestSeal_stretches(t *testing.T) {
	t.Parallel()
	opts := sealedOptions(vfs.NewMem())
	opts.MemTableBytes = 128 << 20 // so that none is flushed but by sealing
	s := openMem(t, opts)
	create(t, s)
	r := rand.New(rand.NewPCG(1, 1))
	var entries []byte
	for i := range int32(3600) {
		q := encoding.Qualifier{OffsetMS: i * 1000, Float: true, Width: 8}
		entries = encoding.AppendEntry(entries, q, encoding.AppendDouble(nil, r.NormFloat64()))
	}
	const rows = 2*(sealStretch>>20)*40 + 100 // each takes more than a fortieth of a mebibyte
	for series := range rows {
		appendEntries(t, s, series, 0, entries)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	flushes := s.db.Metrics().Flush.Count
	flushed := func() int64 { return s.db.Metrics().Flush.Count - flushes }
	var last store.SealReport
	var first int64 // bytes after which it was flushed
	ended := errors.New("ended")
	report, err := s.Seal(t.Context(), "tsdb", time.Time{}, hourEnd(0), func(r store.SealReport) error {
		if step := r.Before - last.Before; step > sealBytes+int64(2*len(entries)) {
			t.Errorf("a step of %d bytes", step)
		}
		if n := flushed(); (n > 0) != (last.After >= sealStretch) || n > 1 {
			t.Errorf("after %d bytes it was flushed %d times", last.After, n)
		}
		if flushed() > 0 && first == 0 {
			first = last.After
		}
		if last = r; first > 0 && r.After >= first+sealStretch {
			return ended
		}
		return nil
	})
	if !errors.Is(err, ended) || flushed() != 1 || report.Rows != report.Sealed {
		t.Errorf("%+v, %v, want each row counted once, %v, and nothing removed after that", report, err, ended)
	}
}
