// Package authtest has what tests of TLS listeners need: self-signed certificates.
package authtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificate is a self-signed certificate for 127.0.0.1 that is valid for an hour.
type Certificate struct {
	// CertFile and KeyFile are files with the certificate and its key as PEM, for
	// DOWNPOUR_TLS_CERT and DOWNPOUR_TLS_KEY.
	CertFile, KeyFile string
	// Server is for a server that presents it, Roots for a client that trusts
	// it and nothing else.
	Server tls.Certificate
	Roots  *x509.CertPool
}

// NewCertificate makes a new certificate at each call. Its files are removed with the
// test's.
func NewCertificate(t testing.TB) Certificate {
	t.Helper()
	dir := t.TempDir()
	c := Certificate{
		CertFile: filepath.Join(dir, "cert.pem"),
		KeyFile:  filepath.Join(dir, "key.pem"),
		Roots:    x509.NewCertPool(),
	}
	cert, key, err := selfSigned()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{c.CertFile: cert, c.KeyFile: key} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c.Server, err = tls.X509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	c.Roots.AddCert(c.Server.Leaf)
	return c
}

// selfSigned returns a certificate and its key, both PEM.
func selfSigned() (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), err
}
