package calls

import (
	"context"
	"log/slog"
	"net"
	"time"
)

// Config is how servers are connected to, and how long they are waited for. All fields except
// Security and Encryption are needed.
type Config struct {
	// EffectiveUser is the user name that is sent to the servers.
	EffectiveUser string
	// Logger gets lost connections and silent servers, as warnings.
	Logger *slog.Logger
	// Dial opens connections.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// DialTimeout bounds one connect with all of its handshakes.
	DialTimeout time.Duration
	// RPCTimeout and WriteTimeout bound one call, the latter one of mutations.
	RPCTimeout, WriteTimeout time.Duration
	// ProbeAfter is how long a server may be silent before it gets a probe.
	ProbeAfter time.Duration

	// Security authenticates both ends; nil means simple authentication, which is none.
	Security *Security
	// Encryption speaks TLS; nil speaks none.
	Encryption *Encryption
}
