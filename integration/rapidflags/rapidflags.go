// Package rapidflags knows the flags of property tests for those who want only to see that a test fails.
package rapidflags

import (
	"os"
	"path/filepath"
	"strings"
)

// Of returns the flags for the tests of the package in a folder, none if it has no property tests:
// that a test fails is enough, no small example is looked for, and no file with one is left among
// the sources.
func Of(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), `"pgregory.net/rapid"`) {
			return []string{"-rapid.shrinktime=0s", "-rapid.nofailfile"}
		}
	}
	return nil
}
