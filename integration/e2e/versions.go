package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// HBaseVersions returns the versions of HBase that setup knows: first the one that is used
// where none is requested, then those of HBASE_MATRIX_VERSIONS, which are got for make matrix alone, last the newest
// of the others.
func HBaseVersions() ([]string, error) {
	dir, err := Root()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "integration", "setup", "versions.env")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var versions []string
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "HBASE_VERSION", "HBASE_MATRIX_VERSIONS", "HBASE_OTHER_VERSIONS":
			versions = append(versions, strings.Fields(strings.Trim(value, `"`))...)
		}
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("%s: got no HBASE_VERSION", path)
	}
	return versions, nil
}

// hbaseClassPath reads the class path that setup wrote for a version of HBase; "" is the
// usual one.
func hbaseClassPath(version string) (string, error) {
	versions, err := HBaseVersions()
	if err != nil {
		return "", err
	}
	if version == "" || version == versions[0] {
		return classPath("hbase")
	}
	dir, err := Root()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, "build", "hbase", version+".classpath"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("HBase %s: %w", version, ErrNotSetUp)
	}
	return strings.TrimSpace(string(text)), err
}
