// Package version holds the version of this release, for all programs: they are
// released together.
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"downpour/encoding/zones"
)

// Version is the version by semantic versioning. /api/version and the telnet command
// version answer with OpenTSDB's instead, which clients check.
const Version = "0.1.0"

// String is what a program prints as its version, such as "downpour 0.1.0, commit
// 073d1483c0de, go1.26.0, time zones 2025c, without C": what was built, with which Go and
// time zones, and whether the embedded store's cache is outside of Go's heap.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "downpour " + Version
	}
	return describe(info)
}

// Build returns the commit that this program was built from, "unknown" outside of a checkout, and Go's version.
func Build() (commit, goVersion string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown", runtime.Version()
	}
	return cmp.Or(commitOf(settingsOf(info)), "unknown"), info.GoVersion
}

func settingsOf(info *debug.BuildInfo) map[string]string {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings
}

func commitOf(settings map[string]string) string {
	commit := settings["vcs.revision"]
	return commit[:min(12, len(commit))]
}

// describe describes a build. A build outside of a checkout has no commit.
func describe(info *debug.BuildInfo) string {
	settings := settingsOf(info)
	parts := []string{"downpour " + Version}
	if commit := commitOf(settings); commit != "" {
		text := "commit " + commit
		if settings["vcs.modified"] == "true" {
			text += " with changes"
		}
		parts = append(parts, text)
	}
	parts = append(parts, info.GoVersion, "time zones "+zones.Release)
	if settings["CGO_ENABLED"] != "1" {
		parts = append(parts, "without C")
	}
	return strings.Join(parts, ", ")
}
