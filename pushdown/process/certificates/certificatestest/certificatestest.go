// Package certificatestest makes certificates for tests: an authority, and certificates that
// it has issued, as files.
package certificatestest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA is an authority that is valid for a day.
type CA struct {
	// File has its certificate as PEM.
	File string

	t      testing.TB
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	issued int64
}

// Certificate is one that an authority has issued: files with it and its key as PEM, and a
// file with both, which HBase calls a key store.
type Certificate struct{ CertFile, KeyFile, KeyStore string }

// NewCA makes an authority. Its files are removed with the test's.
func NewCA(t testing.TB) *CA {
	t.Helper()
	dir := t.TempDir()
	ca := &CA{t: t, dir: dir, File: filepath.Join(dir, "ca.pem"), key: newKey(t)}
	template := newTemplate(1, "test authority", time.Now())
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &ca.key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	ca.write(ca.File, encode("CERTIFICATE", der))
	return ca
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newTemplate is a certificate that is valid for a day around now.
func newTemplate(serial int64, name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-12 * time.Hour), NotAfter: now.Add(12 * time.Hour)}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func (ca *CA) write(path string, parts ...[]byte) {
	ca.t.Helper()
	var text []byte
	for _, p := range parts {
		text = append(text, p...)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		ca.t.Fatal(err)
	}
}

// Issue makes a certificate for names of hosts and addresses, of which the first is its
// common name.
func (ca *CA) Issue(hosts ...string) Certificate { return ca.IssueAt(time.Now(), hosts...) }

// IssueAt is Issue of a certificate that is valid for a day around a moment.
func (ca *CA) IssueAt(moment time.Time, hosts ...string) Certificate {
	ca.t.Helper()
	ca.issued++
	key := newKey(ca.t)
	template := newTemplate(1+ca.issued, hosts[0], moment)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		ca.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		ca.t.Fatal(err)
	}

	name := filepath.Join(ca.dir, fmt.Sprint(ca.issued))
	c := Certificate{CertFile: name + "-cert.pem", KeyFile: name + "-key.pem", KeyStore: name + "-store.pem"}
	certPEM, keyPEM := encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)
	ca.write(c.CertFile, certPEM)
	ca.write(c.KeyFile, keyPEM)
	ca.write(c.KeyStore, keyPEM, certPEM)
	return c
}
