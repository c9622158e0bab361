// Package certificatestest makes certificates for tests and benchmarks: an authority, and
// certificates that it has issued, as files.
package certificatestest

import (
	"testing"
	"time"
)

// CA is an authority of a test, which an error ends.
type CA struct {
	// File has its certificate as PEM.
	File string

	t         testing.TB
	authority *Authority
}

// NewCA makes an authority. Its files are removed with the test's.
func NewCA(t testing.TB) *CA {
	t.Helper()
	a, err := NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &CA{File: a.File, t: t, authority: a}
}

// Issue is IssueAt of a certificate that is valid now.
func (ca *CA) Issue(hosts ...string) Certificate {
	ca.t.Helper()
	return ca.IssueAt(time.Now(), hosts...)
}

// IssueAt is Authority.Issue.
func (ca *CA) IssueAt(moment time.Time, hosts ...string) Certificate {
	ca.t.Helper()
	c, err := ca.authority.Issue(moment, hosts...)
	if err != nil {
		ca.t.Fatal(err)
	}
	return c
}
