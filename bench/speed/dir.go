package speed

import (
	"os"
	"path/filepath"

	"downpour/integration/e2e"
)

// directory is a place for an embedded store.
type directory struct{ path string }

// tempDir makes a directory in the module's build directory, because the temporary
// directory of the system may be in memory.
func tempDir() (directory, error) {
	root, err := e2e.Root()
	if err != nil {
		return directory{}, err
	}
	parent := filepath.Join(root, "build", "run")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return directory{}, err
	}

	path, err := os.MkdirTemp(parent, "bench-")
	return directory{path}, err
}

// store is the address of the store that a gateway opens when it starts there.
func (d directory) store() string { return "pebble:" + filepath.Join(d.path, "data") }

func (d directory) remove() { os.RemoveAll(d.path) }
