package certificates

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"downpour/pushdown/process/certificates/certificatestest"
)

// Replaced certificates are used immediately, also if one file is replaced after the other: in
// between, the old ones are kept, and one log line has the reason.
func TestReader_replaced(t *testing.T) {
	ca := certificatestest.NewCA(t)
	first, second := ca.Issue("one.example"), ca.Issue("two.example")
	dir := t.TempDir()
	files := Files{Roots: ca.File, Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	copyFile(t, first.CertFile, files.Cert)
	copyFile(t, first.KeyFile, files.Key)
	var log bytes.Buffer
	r, err := Open(files, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	name := func() string {
		t.Helper()
		roots, pair := r.Current()
		if roots == nil || pair == nil {
			t.Fatal("got no authorities or no certificate")
		}
		return pair.Leaf.DNSNames[0]
	}
	if got := name(); got != "one.example" {
		t.Errorf("at first: got %s", got)
	}

	copyFile(t, second.CertFile, files.Cert)
	if got := name() + name(); got != "one.exampleone.example" {
		t.Errorf("between: got %s", got)
	}
	if n := strings.Count(log.String(), "cannot use the changed certificates"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, log.String())
	}
	copyFile(t, second.KeyFile, files.Key)
	if got := name(); got != "two.example" {
		t.Errorf("after: got %s", got)
	}

	other := certificatestest.NewCA(t)
	before, _ := r.Current()
	copyFile(t, other.File, ca.File)
	if after, _ := r.Current(); after.Equal(before) {
		t.Error("a replaced authority is not trusted")
	}
	if err := os.Remove(ca.File); err != nil {
		t.Fatal(err)
	}
	if after, _ := r.Current(); after == nil {
		t.Error("without the file no authority is trusted, want the previous ones")
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A fault at the start is an error that names the file.
func TestOpen_refuses(t *testing.T) {
	ca := certificatestest.NewCA(t)
	one, two := ca.Issue("one"), ca.Issue("two")
	f := func(files Files, want string) {
		t.Helper()
		if _, err := Open(files, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", files, err, want)
		}
	}
	f(Files{Roots: one.KeyFile}, one.KeyFile+": got no certificate of an authority")
	f(Files{Roots: ca.File + ".away"}, "no such file")
	f(Files{Cert: one.CertFile}, "only one of certificate and key")
	f(Files{Cert: one.CertFile, Key: two.KeyFile}, two.KeyFile)
	f(Files{Cert: one.KeyFile, Key: one.KeyFile}, one.KeyFile)
}

// Without files the system's authorities are trusted, and there is no certificate.
func TestReader_nothing(t *testing.T) {
	r, err := Open(Files{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if roots, pair := r.Current(); roots != nil || pair != (*tls.Certificate)(nil) {
		t.Errorf("got %v, %v", roots, pair)
	}
}

// A file of authorities that is just being written, or has a damaged one among others, is refused
// as a whole: the previous ones are kept.
func TestReader_tornAuthorities(t *testing.T) {
	one, two := certificatestest.NewCA(t), certificatestest.NewCA(t)
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	both := "# the authorities of this house\n" + read(one.File) + read(two.File)
	name := filepath.Join(t.TempDir(), "roots")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(both)
	r, err := Open(Files{Roots: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := r.Current()
	for what, text := range map[string]string{
		"torn": both[:len(both)-100],
		"damaged": strings.Replace(both, read(two.File),
			"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n", 1),
		"empty": "",
	} {
		write(text)
		if after, _ := r.Current(); !after.Equal(before) {
			t.Errorf("%s: other authorities are trusted than before", what)
		}
	}
	write(read(one.File))
	if after, _ := r.Current(); after.Equal(before) {
		t.Error("one authority instead of two: those of before are still trusted")
	}
}
