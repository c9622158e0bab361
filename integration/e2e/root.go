package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Root returns the directory of the module, found by going up from the working
// directory to the first go.mod.
func Root() (string, error) { return root() }

var root = sync.OnceValues(func() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("module root: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("module root: no go.mod in %s or above it", start)
		}
	}
})

// ErrNotSetUp marks the absence of something that `make setup` installs.
var ErrNotSetUp = errors.New("not set up: run make setup")

// classPath reads the class path that setup wrote for the named servers
// ("hbase", "opentsdb").
func classPath(name string) (string, error) {
	dir, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "build", "setup", name+".classpath")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s class path: %w", name, ErrNotSetUp)
	}
	if err != nil {
		return "", fmt.Errorf("%s class path: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// runDir makes a fresh directory build/run/NAME-… for the files and logs of one
// set of processes. It lies in the module and not in the system's temporary
// directory so that logs kept after a failure are easy to find.
func runDir(name string) (string, error) {
	dir, err := Root()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(dir, "build", "run")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	made, err := os.MkdirTemp(parent, name+"-")
	if err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	return made, nil
}
