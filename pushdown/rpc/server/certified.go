package server

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// A client that has shown a certificate needs no token: Config.TLS accepts only those of its own
// authority. protocolMux has made the handshake; the code below passes its outcome to gRPC and
// HTTP.

// fromMux are the credentials of connections that protocolMux has decrypted.
type fromMux struct{}

// certified reports whether the client of a connection has shown a certificate.
type certified bool

// AuthType is part of credentials.AuthInfo.
func (certified) AuthType() string { return "certificate" }

// ServerHandshake returns the connection as it is, and what the handshake has shown.
func (fromMux) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return c, isCertified(c), nil
}

// ClientHandshake is for clients, which have other credentials.
func (fromMux) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("credentials of a server")
}

// Info is part of credentials.TransportCredentials.
func (fromMux) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns a copy.
func (fromMux) Clone() credentials.TransportCredentials { return fromMux{} }

// OverrideServerName is for clients.
func (fromMux) OverrideServerName(string) error { return nil }

func isCertified(c net.Conn) certified {
	p, ok := c.(*peekedConn)
	return certified(ok && p.certified)
}

// callCertified reports whether the client of a call has shown a certificate.
func callCertified(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	shown, ok := p.AuthInfo.(certified)
	return ok && bool(shown)
}

// certifiedKey is the key of isCertified's result in the context of a request.
type certifiedKey struct{}

// withCertified is the http.Server's ConnContext.
func withCertified(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, certifiedKey{}, isCertified(c))
}

// requestCertified reports whether the client of an HTTP request has shown a certificate.
func requestCertified(ctx context.Context) bool {
	shown, ok := ctx.Value(certifiedKey{}).(certified)
	return ok && bool(shown)
}
