package pebble

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"downpour/pushdown/store"
)

// While no table can be created logs stay, those too that were closed without a record because nothing was
// written between two flushes. They are no damage when the store is opened again.
func TestEmptyLog(t *testing.T) {
	files := vfs.NewMem()
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
	i := take(t, files)
	broken.Store(false)
	if err := s.Close(); err != nil && !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
	got, said, err := reading(t, i, Options{})
	if err != nil || got != "a/t:q=v b/t:q=v " {
		t.Errorf("got %q, %v, want both rows: %s", got, err, said)
	}
}
