package calls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"downpour/pushdown/process/certificates"
)

// Encryption is how connections to the servers are encrypted with TLS, which servers from
// HBase 2.6 on can speak. Below TLS the protocol is the same, with Kerberos or without.
type Encryption struct {
	// Certificates are read again for each new connection.
	Certificates *certificates.Reader
	// AnyName accepts a certificate of a trusted authority with any name. Otherwise it must have
	// the server's name as in hbase:meta.
	AnyName bool
}

// errTLS is wrapped in the errors of connections with TLS that cannot be used.
var errTLS = errors.New("TLS")

// encrypt makes TLS's handshake on a new connection to the server at addr and returns the connection to use in
// its place. On an error it closes nc.
func (e *Encryption) encrypt(ctx context.Context, nc net.Conn, addr string) (net.Conn, error) {
	c := tls.Client(nc, e.config(addr))
	if err := c.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, tlsError(err)
	}
	return &encryptedConn{c}, nil
}

// config returns TLS's settings for one connection, with the certificates that hold now.
func (e *Encryption) config(addr string) *tls.Config {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	roots, pair := e.Certificates.Current()
	cfg := &tls.Config{
		RootCAs:    roots,
		ServerName: host,
		MinVersion: tls.VersionTLS12,
		// Small records help browsers to show a page early. Here they only cost.
		DynamicRecordSizingDisabled: true,
	}
	if pair != nil {
		// Sent even if the server wants another authority: its refusal is clearer than one of a
		// missing certificate.
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	if e.AnyName {
		verify := func(s tls.ConnectionState) error {
			return certificates.Verify(s.PeerCertificates, roots, x509.ExtKeyUsageServerAuth)
		}
		cfg.InsecureSkipVerify = true // VerifyConnection verifies all but the name
		cfg.VerifyConnection = verify //fault:tls-any-authority-taken TestEncrypted_errors
	}
	return cfg
}

// tlsError explains a failed handshake. It names both ends' settings, because either may be wrong.
func tlsError(err error) error {
	var (
		noTLS   tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		remote  *net.OpError
	)
	switch {
	case errors.As(err, &noTLS):
		return fmt.Errorf(
			"%w: the server speaks none: it answers % x (DOWNPOUR_HBASE_TLS is on, and "+
				"hbase.server.netty.tls.enabled is not, or the server is older than HBase 2.6)",
			errTLS, noTLS.RecordHeader)
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: no authority in DOWNPOUR_HBASE_TLS has issued the server's certificate: %w", errTLS, err)
	case errors.As(err, &name):
		return fmt.Errorf(
			"%w: the server's certificate is for another name (with an authority of your own in "+
				"DOWNPOUR_HBASE_TLS, DOWNPOUR_HBASE_TLS_VERIFY_HOST=false takes any name): %w",
			errTLS, err)
	case errors.As(err, &remote) && remote.Op == "remote error":
		return fmt.Errorf(
			"%w: the server refuses us, see DOWNPOUR_HBASE_TLS_CERT and hbase.server.netty.tls.client.auth.mode: %w",
			errTLS, err)
	case endsUnanswered(err):
		return fmt.Errorf(
			"%w: the server has closed the connection in the handshake "+
				"(DOWNPOUR_HBASE_TLS is on; is hbase.server.netty.tls.enabled?)",
			errTLS)
	}
	return fmt.Errorf("%w: %w", errTLS, err)
}

// encryptedConn is a connection with TLS. It has no vectored writes: two parts of a call
// are two writes, which Conn.writeLock keeps together.
type encryptedConn struct{ *tls.Conn }

// Read reads bytes. With TLS 1.3 a server checks our certificate only after the handshake: its
// refusal comes here.
func (c *encryptedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Op == "remote error" {
		err = tlsError(err)
	}
	return n, err
}

// speaksTLS reports whether bytes from a server begin an alert or a handshake of TLS. No reply of
// HBase begins so: it would be too long.
func speaksTLS(b []byte) bool {
	return len(b) >= 2 && (b[0] == 0x15 || b[0] == 0x16) && b[1] == 3
}

// errWantsTLS is returned on a plain connection to a server that speaks TLS.
var errWantsTLS = fmt.Errorf("%w: the server wants it, and DOWNPOUR_HBASE_TLS is off", errTLS)
