package pebble

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/pushdown/store"
)

// Used logs are deleted: at rest a store is little more than its tables.
func TestStore_keepsNoUsedLogs(t *testing.T) {
	files := vfs.NewMem()
	s, err := Open("db", Options{FS: files, MemTableBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	create(t, s)
	for i := range 40 { // ten memtables
		apply(t, s, cell(store.Put, "row"+string(rune('a'+i)), "q", strings.Repeat("x", 64<<10)))
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var logs []string
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		all, err := files.List("db")
		if err != nil {
			t.Fatal(err)
		}
		logs = nil
		for _, name := range all {
			if strings.HasSuffix(name, ".log") {
				logs = append(logs, name)
			}
		}
		if len(logs) <= 1 {
			return
		}
	}
	t.Errorf("logs %q are left, want only the one that is written", logs)
}
