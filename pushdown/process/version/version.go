// Package version holds the version of this release, for all programs: they are
// released together.
package version

import (
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

// describe describes a build. A build outside of a checkout has no commit.
func describe(info *debug.BuildInfo) string {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}

	parts := []string{"downpour " + Version}
	if commit := settings["vcs.revision"]; commit != "" {
		text := "commit " + commit[:min(12, len(commit))]
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
