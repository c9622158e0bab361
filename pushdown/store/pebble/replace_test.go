package pebble

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
)

// Rows that are replaced are durable when Replace returns, also those before one that cannot be.
func TestReplace_durable(t *testing.T) {
	put := func(row string) store.Replacement {
		return store.Replacement{
			Read: store.Row{Key: []byte(row)},
			Put:  []store.Cell{{Qualifier: []byte("q"), Value: []byte("v"), Timestamp: 1}},
		}
	}
	for _, bad := range []string{"", "d"} { // a row that cannot be written, and one that cannot be read
		files := vfs.NewCrashableMem()
		s := openMem(t, Options{FS: files, IdleFlush: -1})
		create(t, s)
		apply(t, s, cell(store.Put, "b", "q", "v"))
		if err := s.db.Set(appendKey(nil, "tsdb", []byte("d"), "t", nil), []byte{9}, nil); err != nil {
			t.Fatal(err)
		}
		outcomes, err := s.Replace(t.Context(), "tsdb", "t",
			[]store.Replacement{put("a"), put("b"), put(bad), put("c")})
		if err == nil || outcomes[0] != store.Replaced || outcomes[1] != store.Changed {
			t.Errorf("got %v, %v, want the first row replaced, the second one changed, and an error of row %q",
				outcomes, err, bad)
		}
		left := openMem(t, Options{FS: files.CrashClone(vfs.CrashCloneCfg{}), IdleFlush: -1})
		if got := dump(t, left, store.Scan{Stop: []byte("d")}); got != "a/t:q=v b/t:q=v " {
			t.Errorf("row %q cannot be replaced: after a crash there is %q, want the row before it", bad, got)
		}
	}
}
