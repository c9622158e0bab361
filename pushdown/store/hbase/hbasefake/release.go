package hbasefake

import "fmt"

// release is a version of HBase, which determines what servers lack.
type release struct{ major, minor int }

// newest lacks nothing.
var newest = release{major: 1 << 20}

// parseVersion parses "MAJOR.MINOR…"; anything else is newest.
func parseVersion(version string) release {
	r := release{}
	if _, err := fmt.Sscanf(version, "%d.%d", &r.major, &r.minor); err != nil {
		return newest
	}
	return r
}

// lacks is the exception of a server that does not have a method.
func lacks(method string) error {
	return throw(
		doNotRetry, "/127.0.0.1:16000 is unable to read call parameter from client 127.0.0.1; "+
			"java.lang.UnsupportedOperationException: %s", method)
}

// before reports whether a release came before another.
func (r release) before(major, minor int) bool {
	return r.major < major || r.major == major && r.minor < minor
}
