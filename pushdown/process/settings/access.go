package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"

	"downpour/pushdown/process/certificates"
)

// ErrExposed is returned when a server would listen on an address that other machines
// can reach, without a token file and without leave to do so.
var ErrExposed = errors.New("listening beyond loopback needs DOWNPOUR_TOKEN_FILE, or DOWNPOUR_INSECURE=true")

// pushdownListen is the variable of the address at which a pushdown server listens.
const pushdownListen = "DOWNPOUR_PUSHDOWN_LISTEN"

// checkListen returns ErrExposed for an address to listen on that other machines can
// reach, unless tokens, or certificates of gateways, guard it or Insecure allows it.
func (c *Common) checkListen(variable, address string) error {
	local, err := Loopback(address)
	if err != nil {
		return fmt.Errorf("%s: got %q, want HOST:PORT: %w", variable, address, err)
	}
	guarded := c.TokenFile != "" || c.PushdownCA != "" && variable == pushdownListen
	if !guarded && !c.Insecure && !local {
		return fmt.Errorf("%s=%s: %w", variable, address, ErrExposed)
	}
	return nil
}

// CheckAddress returns an error for an address, to connect to or to compare with, that
// is not a host and a port: it would silently never connect, or never compare equal.
func CheckAddress(variable, address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err == nil && host != "" && bad == nil && n > 0 {
		return nil
	}
	return fmt.Errorf("%s: got %q, want HOST:PORT", variable, address)
}

// Loopback reports whether HOST:PORT can be reached from this machine only. It resolves no names.
// An empty host listens everywhere.
func Loopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	if host == "localhost" {
		return true, nil
	}
	// Any other name may have any address.
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback(), nil
}

// certificates returns what reads the files of our certificate, and of the authorities that
// are trusted.
func (c *Common) certificates(roots string, log *slog.Logger) (*certificates.Reader, error) {
	r, err := certificates.Open(certificates.Files{Roots: roots, Cert: c.TLSCert, Key: c.TLSKey}, log)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_TLS_CERT=%s, DOWNPOUR_TLS_KEY=%s, DOWNPOUR_PUSHDOWN_CA=%s: %w", c.TLSCert,
			c.TLSKey, roots, err)
	}
	return r, nil
}

// ServerTLS returns the TLS configuration to listen with, nil without a certificate. A
// replaced certificate counts from the next connection on.
func (c *Common) ServerTLS(log *slog.Logger) (*tls.Config, error) {
	if c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	r, err := c.certificates("", log)
	if err != nil {
		return nil, err
	}
	return serverTLS(r), nil
}

func serverTLS(r *certificates.Reader) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			_, pair := r.Current()
			return pair, nil
		},
	}
}

// PushdownServerTLS is ServerTLS of a pushdown server. With PushdownCA clients may show a
// certificate, which must then be one of that authority; without one they need a token.
func (c *Common) PushdownServerTLS(log *slog.Logger) (*tls.Config, error) {
	if c.PushdownCA == "" {
		return c.ServerTLS(log)
	}
	r, err := c.certificates(c.PushdownCA, log)
	if err != nil {
		return nil, err
	}
	cfg := serverTLS(r)
	cfg.ClientAuth = tls.RequestClientCert
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return nil
		}
		roots, _ := r.Current()
		return certificates.Verify(s.PeerCertificates, roots, x509.ExtKeyUsageClientAuth)
	}
	return cfg, nil
}

// PushdownTLS returns a function that makes the TLS configuration of a new connection to a
// pushdown server; nil without a certificate. With PushdownCA our certificate is shown, and
// that of the server must be of the authority. Otherwise it is verified as ClientTLS does.
// Replaced files count from the next connection on.
func (c *Common) PushdownTLS(log *slog.Logger) (func() *tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	if c.PushdownCA == "" {
		r, err := c.shared(log)
		if err != nil {
			return nil, err
		}
		return func() *tls.Config { return trusting(r) }, nil
	}
	r, err := c.certificates(c.PushdownCA, log)
	if err != nil {
		return nil, err
	}
	return func() *tls.Config {
		cfg := trusting(r)
		_, pair := r.Current()
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
		return cfg
	}, nil
}

// ClientTLS returns the TLS configuration to connect to pushdown servers with, nil
// without a certificate. The servers of one installation share the certificate, or have
// theirs signed by an authority that is in its file or known to the system.
func (c *Common) ClientTLS() (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	r, err := c.shared(nil)
	if err != nil {
		return nil, err
	}
	return trusting(r), nil
}

// shared returns what reads the certificate that the servers of an installation share.
func (c *Common) shared(log *slog.Logger) (*certificates.Reader, error) {
	r, err := certificates.Open(certificates.Files{Roots: c.TLSCert, AndSystem: true}, log)
	if err != nil {
		return nil, fmt.Errorf("DOWNPOUR_TLS_CERT: %w", err)
	}
	return r, nil
}

// trusting returns a configuration of clients that trust the authorities of now.
func trusting(r *certificates.Reader) *tls.Config {
	roots, _ := r.Current()
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
