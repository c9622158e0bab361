package zones

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A zone has the rules of this release, not the machine's: Paraguay has kept summer
// time since October 2024, which release 2024b did not know.
func TestLoad(t *testing.T) {
	// The machine has another zone under this name.
	dir := t.TempDir()
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	data, err := fs.ReadFile(z, "Etc/GMT+7")
	if err := errors.Join(err, os.Mkdir(filepath.Join(dir, "America"), 0o700),
		os.WriteFile(filepath.Join(dir, "America/Asuncion"), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZONEINFO", dir)

	for name, want := range map[string]int{"America/Asuncion": -3 * 3600, "Europe/Berlin": 2 * 3600, "UTC": 0, "": 0,
		"ROC": 8 * 3600, "US/Pacific": -7 * 3600} {
		zone, err := Load(name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if isUTC := name == "" || name == "UTC"; isUTC != (zone == time.UTC) {
			t.Errorf("%q is %v, want the library's own UTC: %t", name, zone, isUTC)
		}
		if _, got := time.Date(2025, 7, 1, 12, 0, 0, 0, time.UTC).In(zone).Zone(); got != want {
			t.Errorf("%q: %d s from UTC in July 2025, want %d", name, got, want)
		}
	}
	for _, name := range []string{"Local", "Nowhere", "../UTC", "Europe", "europe/berlin", "posix/UTC"} {
		if zone, err := Load(name); err == nil {
			t.Errorf("%q is %s, want an error", name, zone)
		}
	}
}
