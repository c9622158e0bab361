package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/disk"
	"downpour/pushdown/store/pebble/journal"
)

// testLog is a log of records, and the records' offsets. An open one ends with zeros.
func testLog(number uint64, open bool, records ...string) (data []byte, at []journal.Record) {
	var in []journal.Record
	for _, r := range records {
		in = append(in, journal.Record{Data: []byte(r)})
	}
	data = journal.AppendLog(nil, number, in)
	at = journal.Log(data, number).Records
	if open {
		data = append(data[:at[len(at)-1].End], make([]byte, 4096)...)
	}
	return data, at
}

// What was copied of a log while it was written to is cut where it is not whole. Before the mark,
// and in a log that another one follows, everything must be whole.
//
//fault:checkpoint-without-its-mark !marked => !marked && false
func TestCompleteLogs(t *testing.T) {
	const mark = "checkpoint-0123"
	big := strings.Repeat("x", 3000)
	f := func(what string, first, second []byte, want error, kept ...string) {
		t.Helper()
		files := image{"000007.log": first, "000009.log": second}.files(t)
		err := completeLogs(files, "data", []uint64{7, 9}, mark, false)
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if err != nil {
			return
		}
		var got []string
		var named disk.Logs
		for _, n := range []uint64{7, 9} {
			data := take(t, files)[disk.LogName(n)]
			r := journal.Log(data, n)
			if data != nil && (!r.Closed || len(r.Holes) > 0) {
				t.Errorf("%s: log %d is not whole", what, n)
			}
			for _, rec := range r.Records {
				got = append(got, string(rec.Data[:4]))
				if named.Newest = n; named.First == 0 {
					named.First = n
				}
			}
		}
		if !slices.Equal(got, kept) {
			t.Errorf("%s: kept %q, want %q", what, got, kept)
		}
		if l, err := disk.ReadLogs(files, "data"); err != nil || l != named {
			t.Errorf("%s: the marker names %v, %v, want %v", what, l, err, named)
		}
	}
	blank := func(data []byte, r journal.Record) []byte {
		data = bytes.Clone(data)
		clear(data[r.Start:r.End])
		return data
	}
	closed, at7 := testLog(7, false, "aaaa"+big, "bbbb"+mark)
	open, at9 := testLog(9, true, "cccc"+big, "dddd"+big, "eeee"+big)
	marked, atMarked := testLog(9, true, "cccc"+big, "dddd"+mark, "eeee"+big)
	plain, _ := testLog(7, false, "aaaa"+big, "bbbb"+big)
	early, atEarly := testLog(7, false, "aaaa"+mark, "bbbb"+big, "cccc"+big)

	f("whole", closed, open, nil, "aaaa", "bbbb", "cccc", "dddd", "eeee")
	f("a hole behind the mark", closed, blank(open, at9[1]), nil, "aaaa", "bbbb", "cccc")
	f("an end that is missing", closed, blank(open, at9[2]), nil, "aaaa", "bbbb", "cccc", "dddd")
	f("nothing in the last log", closed, make([]byte, 4096), nil, "aaaa", "bbbb")
	f("a hole behind the mark of the same log", plain, blank(marked, atMarked[2]), nil, "aaaa", "bbbb", "cccc", "dddd")
	f("a hole before the mark", plain, blank(marked, atMarked[0]), store.ErrDamaged)
	f("a hole where the mark is", plain, blank(marked, atMarked[1]), store.ErrDamaged)
	f("no mark", plain, open, errFlushed)
	f("a hole in a closed log", blank(closed, at7[0]), open, store.ErrDamaged)
	f("a hole behind the mark in a closed log", blank(early, atEarly[1]), open, store.ErrDamaged)
	f("the end of a closed log is missing", closed[:len(closed)-11], open, store.ErrDamaged)
}

// What is visible and not yet on the disk is in a checkpoint, and a checkpoint that cannot be made
// leaves nothing.
func TestCheckpoint_staged(t *testing.T) {
	files := vfs.NewMem()
	s := openMem(t, Options{FS: files, IdleFlush: -1})
	create(t, s)
	for n := range 50 {
		key := store.CellKey{Row: fmt.Appendf(nil, "row%d", n), Family: "t", Qualifier: []byte("q")}
		if _, err := s.Staged().Increment(t.Context(), "tsdb", key, 1); err != nil {
			t.Fatal(err)
		}
		want := dump(t, s, store.Scan{})
		r := mustBackUp(t, s, files, 1)
		err := sound(files, r.Path, func(s *Store) error {
			if got := dump(t, s, store.Scan{}); got != want {
				return fmt.Errorf("after %d increments %.100q, want %.100q", n+1, got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Checkpoint(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after Close: %v, want that it is closed", err)
	}
}

// A checkpoint that cannot be written is an error of its caller. It is no failure of the store's own
// log, which would end the process, and nothing is left of it.
func TestCheckpoint_failure(t *testing.T) {
	var failing atomic.Pointer[errorfs.OpKind]
	files := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		kind := failing.Load()
		if kind == nil || op.Kind != *kind || !strings.Contains(op.Path, checkpointPrefix) ||
			op.Kind == errorfs.OpCreate && !strings.HasSuffix(op.Path, ".log") {
			return nil
		}
		return syscall.EIO
	}))
	s := openMem(t, Options{
		FS:        files,
		IdleFlush: -1,
		Logger:    quiet(),
		Exit:      func(int) { t.Error("the process would end") },
	})
	create(t, s)
	apply(t, s, cell(store.Put, "row", "q", "v"))
	for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileSync, errorfs.OpFileWrite} {
		failing.Store(&kind)
		if _, _, err := s.Checkpoint(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Errorf("%v: got %v, want %v", kind, err, syscall.EIO)
		}
		failing.Store(nil)
		names := sorted(t, files, "data")
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, checkpointPrefix) }) {
			t.Errorf("%v: %v, want no checkpoint left", kind, names)
		}
	}
	apply(t, s, cell(store.Put, "row2", "q", "v"))
	mustBackUp(t, s, files, 0)

	// The copy of the MANIFEST is no file of pebble's.
	name, _, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	noCopy := errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.Contains(op.Path, disk.CopyOf("MANIFEST-")) {
			return syscall.EIO
		}
		return nil
	}))
	if err := completeCheckpoint(noCopy, "data/"+name, name, false); !errors.Is(err, syscall.EIO) {
		t.Errorf("without a copy of the MANIFEST: got %v, want %v", err, syscall.EIO)
	}
}
