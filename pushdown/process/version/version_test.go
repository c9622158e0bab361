package version

import (
	"os"
	"regexp"
	"testing"
)

// Version is the newest release in CHANGELOG.md.
func TestVersion_changelog(t *testing.T) {
	text, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}

	heading := regexp.MustCompile(`(?m)^## (\d\S*)`).FindSubmatch(text)
	if heading == nil || string(heading[1]) != Version {
		t.Errorf("newest release in CHANGELOG.md: %q, want %s", heading, Version)
	}
}
