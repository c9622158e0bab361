package pebble

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble/journal"
)

// While no table can be created logs stay, those too that were closed without a record because nothing was
// written between two flushes. They are no damage when the store is opened again.
func TestEmptyLog(t *testing.T) {
	files := vfs.NewCrashableMem()
	var broken atomic.Bool
	s, err := Open("data", Options{
		FS: errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if broken.Load() && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
				return fs.ErrPermission
			}
			return nil
		})),
		IdleFlush: -1,
		Logger:    quiet(),
	})
	if err != nil {
		t.Fatal(err)
	}
	create(t, s)
	broken.Store(true)
	for _, row := range []string{"a", "b"} {
		apply(t, s, cell(store.Put, row, "q", "v"))
		for range 2 {
			if _, err := s.db.AsyncFlush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	i := takeKilled(t, files)
	broken.Store(false)
	if err := s.Close(); err != nil && !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
	got, said, err := reading(t, i, Options{})
	if err != nil || got != "a/t:q=v b/t:q=v " {
		t.Errorf("got %q, %v, want both rows: %s", got, err, said)
	}
}

// A log's batches are numbered by those that hold something; records that are too short for a batch
// hold nothing.
func TestLogFile_sequenceNumbers(t *testing.T) {
	batch := func(number uint64, count uint32) journal.Record {
		b := binary.LittleEndian.AppendUint64(nil, number)
		return journal.Record{Data: binary.LittleEndian.AppendUint32(b, count)}
	}
	short := journal.Record{Data: []byte{1}}
	l := logFile{Reading: journal.Reading{
		Records: []journal.Record{short, batch(3, 0), batch(5, 2), short, batch(7, 1)},
	}}
	if first, end := l.sequenceNumbers(); first != 5 || end != 8 {
		t.Errorf("got %d to %d, want 5 to 8", first, end)
	}
}
