package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
)

// ErrExposed is returned when a server would listen on an address that other machines
// can reach, without a token file and without leave to do so.
var ErrExposed = errors.New("listening beyond loopback needs DOWNPOUR_TOKEN_FILE, or DOWNPOUR_INSECURE=true")

// checkListen returns ErrExposed for an address to listen on that other machines can
// reach, unless tokens guard it or Insecure allows it.
func (c *Common) checkListen(variable, address string) error {
	local, err := Loopback(address)
	if err != nil {
		return fmt.Errorf("%s: got %q, want HOST:PORT: %w", variable, address, err)
	}
	if c.TokenFile == "" && !c.Insecure && !local {
		return fmt.Errorf("%s=%s: %w", variable, address, ErrExposed)
	}
	return nil
}

// CheckAddress returns an error for an address, to connect to or to compare with, that
// is not a host and a port: it would never connect, or never compare equal, and nobody
// would notice.
func CheckAddress(variable, address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err == nil && host != "" && bad == nil && n > 0 {
		return nil
	}
	return fmt.Errorf("%s: got %q, want HOST:PORT", variable, address)
}

// Loopback tells whether HOST:PORT can be reached from this machine only. It asks no
// name server. An empty host listens everywhere.
func Loopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	if host == "localhost" {
		return true, nil
	}
	// Any other name may stand for any address.
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback(), nil
}

// ServerTLS returns the TLS configuration to listen with, nil without a certificate.
func (c *Common) ServerTLS() (*tls.Config, error) {
	if c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_TLS_CERT=%s, DOWNPOUR_TLS_KEY=%s: %w", c.TLSCert, c.TLSKey, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// ClientTLS returns the TLS configuration to connect to pushdown servers with, nil
// without a certificate. The servers of one installation share the certificate, or have
// theirs signed by an authority that is in its file or known to the system.
func (c *Common) ClientTLS() (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.TLSCert)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_TLS_CERT: %w", err)
	}

	pool, err := x509.SystemCertPool()
	if err != nil { // some systems have none
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("DOWNPOUR_TLS_CERT=%s holds no certificate", c.TLSCert)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
