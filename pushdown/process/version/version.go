// Package version holds the version of this release, for all programs: they are
// released together.
package version

// Version is the version by semantic versioning. /api/version and the telnet
// command version answer with OpenTSDB's instead, which is what clients ask for.
const Version = "0.1.0"

// String is what a program prints when it is asked for its version.
func String() string { return "downpour " + Version }
