package settings

import (
	"os"
	"path/filepath"
	"testing"
)

// All paths to an embedded store give one address, whether it exists or not.
func TestStoreAddress(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for given, want := range map[string]string{
		"pebble:real": "pebble:" + dir + "/real", "pebble:link": "pebble:" + dir + "/real",
		"pebble:" + dir + "/link": "pebble:" + dir + "/real",
		"pebble:link/not/yet":     "pebble:" + dir + "/real/not/yet", "hbase:zk1:2181": "hbase:zk1:2181",
	} {
		if got := (&Common{Store: given}).StoreAddress(); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
}
