package certificatestest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Authority issues certificates, as files. It is valid for a day.
type Authority struct {
	// File has its certificate as PEM.
	File string

	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	issued int64
}

// Certificate is one that an authority has issued: files with it and its key as PEM, and a
// file with both, which HBase calls a key store.
type Certificate struct{ CertFile, KeyFile, KeyStore string }

// NewAuthority makes an authority with its files in an existing directory.
func NewAuthority(dir string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := newTemplate(1, "test authority", time.Now())
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &Authority{File: filepath.Join(dir, "ca.pem"), dir: dir, cert: cert, key: key}
	return a, os.WriteFile(a.File, encode("CERTIFICATE", der), 0o600)
}

// Issue makes a certificate for names of hosts and addresses; the first is its common name. It is
// valid for a day around a moment.
func (a *Authority) Issue(moment time.Time, hosts ...string) (Certificate, error) {
	key, err := newKey()
	if err != nil {
		return Certificate{}, err
	}
	a.issued++
	template := newTemplate(1+a.issued, hosts[0], moment)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Certificate{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Certificate{}, err
	}

	name := filepath.Join(a.dir, fmt.Sprint(a.issued))
	c := Certificate{CertFile: name + "-cert.pem", KeyFile: name + "-key.pem", KeyStore: name + "-store.pem"}
	certPEM, keyPEM := encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)
	return c, errors.Join(
		os.WriteFile(c.CertFile, certPEM, 0o600),
		os.WriteFile(c.KeyFile, keyPEM, 0o600),
		os.WriteFile(c.KeyStore, slices.Concat(keyPEM, certPEM), 0o600))
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// newTemplate is a certificate that is valid for a day around a moment.
func newTemplate(serial int64, name string, moment time.Time) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: moment.Add(-12 * time.Hour), NotAfter: moment.Add(12 * time.Hour)}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
