package pebble

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
)

// Staged writes are visible at once. They are durable once Sync has returned, or the store is
// closed.
//
//fault:sync-without-waiting pebble.Sync => pebble.NoSync
func TestStaged_sync(t *testing.T) {
	files := vfs.NewCrashableMem()
	s := openMem(t, Options{FS: files, IdleFlush: -1})
	create(t, s)
	counter := store.CellKey{Row: []byte("counter"), Family: "t", Qualifier: []byte("n")}
	count := func(delta int64) {
		t.Helper()
		if _, err := s.Staged().Increment(t.Context(), "tsdb", counter, delta); err != nil {
			t.Fatal(err)
		}
	}
	before := s.early.bytes.Load()
	count(5)
	if s.staging.Wait(); s.early.bytes.Load() == before {
		t.Error("what is staged does not count for a flush")
	}
	if wrote, err := s.Staged().CompareAndPut(t.Context(), "tsdb",
		store.CellKey{Row: []byte("name"), Family: "t"}, nil, []byte("v")); !wrote || err != nil {
		t.Fatalf("compare and put: %t, %v, want it to write", wrote, err)
	}
	if wrote, err := s.Staged().CompareAndPut(t.Context(), "tsdb",
		store.CellKey{Row: []byte("name"), Family: "t"}, nil, []byte("w")); wrote || err != nil {
		t.Fatalf("compare and put again: %t, %v, want the first one to be visible", wrote, err)
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	afterCrash(t, files, "counter/t:n=\x00\x00\x00\x00\x00\x00\x00\x05 name/t:=v ")
	count(2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	afterCrash(t, files, "counter/t:n=\x00\x00\x00\x00\x00\x00\x00\x07 name/t:=v ")
	if err := s.Sync(t.Context()); err != store.ErrClosed {
		t.Errorf("after Close: %v, want %v", err, store.ErrClosed)
	}
}

// afterCrash opens what is left when nothing unsynced reaches the disk.
func afterCrash(t *testing.T, files *vfs.MemFS, want string) {
	t.Helper()
	s, err := Open("data", Options{FS: files.CrashClone(vfs.CrashCloneCfg{}), IdleFlush: -1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := dump(t, s, store.Scan{}); got != want {
		t.Errorf("after a crash: %q, want %q", got, want)
	}
}
