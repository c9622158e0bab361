package version

import (
	"os"
	"regexp"
	"runtime/debug"
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

func TestDescribe(t *testing.T) {
	cases := []struct {
		name     string
		settings map[string]string
		want     string
	}{
		{"from a checkout, with C",
			map[string]string{"vcs.revision": "073d1483c0de4f", "vcs.modified": "false", "CGO_ENABLED": "1"},
			"downpour " + Version + ", commit 073d1483c0de, go1.26.0, time zones 2025c"},
		{"with changes, without C",
			map[string]string{"vcs.revision": "073d1483c0de4f", "vcs.modified": "true", "CGO_ENABLED": "0"},
			"downpour " + Version + ", commit 073d1483c0de with changes, go1.26.0, time zones 2025c, without C"},
		{"from a folder", map[string]string{"CGO_ENABLED": "1"},
			"downpour " + Version + ", go1.26.0, time zones 2025c"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			info := &debug.BuildInfo{GoVersion: "go1.26.0"}
			for key, value := range c.settings {
				info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
			}
			if got := describe(info); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
