// Package certificates reads the files of TLS: the authorities that are trusted, and our own
// certificate with its key. Files that have changed are read again, so that certificates can be
// replaced while a process runs.
package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// Files are PEM files.
type Files struct {
	// Roots has the certificates of the authorities that are trusted; empty means the
	// system's.
	Roots string
	// AndSystem trusts the system's authorities in addition to those of Roots.
	AndSystem bool
	// Cert and Key are our certificate, with those between it and its authority, and its
	// key; both or none.
	Cert, Key string
}

// Reader reads the files. Its methods may be called from several goroutines.
type Reader struct {
	files Files
	log   *slog.Logger

	mu   sync.Mutex
	read contents // what the files had when they were last read without a fault
	pool *x509.CertPool
	pair *tls.Certificate
	// fault is why the files cannot be used as they are now; it is logged once.
	fault string
}

// contents are the bytes of the files.
type contents struct{ roots, cert, key []byte }

// Open reads the files for the first time. Nothing may be wrong with them.
func Open(files Files, log *slog.Logger) (*Reader, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if (files.Cert == "") != (files.Key == "") {
		return nil, errors.New("only one of certificate and key is given, want both or none")
	}
	r := &Reader{files: files, log: log}
	return r, r.readAgain()
}

// Current returns the authorities that are trusted, nil for the system's, and our certificate, nil
// if there is none, as the files have them now. While the files are invalid, as when one of two has
// been replaced, the last valid ones are kept.
func (r *Reader) Current() (roots *x509.CertPool, pair *tls.Certificate) {
	r.mu.Lock()
	defer r.mu.Unlock()

	err := r.readAgain()
	switch {
	case err == nil:
		r.fault = ""
	case err.Error() != r.fault:
		r.fault = err.Error()
		r.log.Warn("cannot use the changed certificates; the previous ones stay in use", "error", err)
	}
	return r.pool, r.pair
}

// readAgain reads the files and keeps their contents. An error changes nothing. Contents are
// compared and not times, which a copy may keep.
func (r *Reader) readAgain() error {
	now, err := r.files.contents()
	if err != nil {
		return err
	}
	same := bytes.Equal(now.roots, r.read.roots) && bytes.Equal(now.cert, r.read.cert) &&
		bytes.Equal(now.key, r.read.key)
	if same && (r.pool != nil || r.pair != nil) {
		return nil
	}

	var pool *x509.CertPool
	if r.files.Roots != "" {
		authorities, err := parseAuthorities(now.roots)
		if err != nil {
			return fmt.Errorf("%s: %w", r.files.Roots, err)
		}
		pool = x509.NewCertPool()
		if r.files.AndSystem {
			// Some systems have none.
			if system, err := x509.SystemCertPool(); err == nil {
				pool = system
			}
		}
		for _, c := range authorities {
			pool.AddCert(c)
		}
	}
	var pair *tls.Certificate
	if r.files.Cert != "" {
		p, err := tls.X509KeyPair(now.cert, now.key)
		if err != nil {
			return fmt.Errorf("%s and %s: %w", r.files.Cert, r.files.Key, err)
		}
		pair = &p
	}
	r.read, r.pool, r.pair = now, pool, pair
	return nil
}

// parseAuthorities returns all certificates of a PEM file, which may have keys, too. A file that is
// being written ends inside a certificate: it is refused as a whole, because some authorities are
// still missing.
func parseAuthorities(text []byte) (all []*x509.Certificate, err error) {
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if bytes.Contains(rest, []byte("-----BEGIN")) {
				return nil, fmt.Errorf("got a block behind certificate %d that does not end, want PEM", len(all))
			}
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(all)+1, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New("got no certificate of an authority in PEM form")
	}
	return all, nil
}

// contents reads the files.
func (f Files) contents() (c contents, err error) {
	for _, file := range []struct {
		path string
		into *[]byte
	}{{f.Roots, &c.roots}, {f.Cert, &c.cert}, {f.Key, &c.key}} {
		if file.path == "" {
			continue
		}
		if *file.into, err = os.ReadFile(file.path); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Verify checks that a trusted authority has issued a certificate for a use. sent is what the
// other end has sent: its certificate first, then those between it and its authority. nil
// roots are the system's.
func Verify(sent []*x509.Certificate, roots *x509.CertPool, use x509.ExtKeyUsage) error {
	if len(sent) == 0 {
		return errors.New("the other end has sent no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range sent[1:] {
		between.AddCert(c)
	}
	_, err := sent[0].Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: between,
		KeyUsages:     []x509.ExtKeyUsage{use},
	})
	return err
}
