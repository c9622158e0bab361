// Package client executes parts on pushdown servers. Its operators return the same
// batches and the same errors as those that run in process. Errors do not name the
// server: they reach clients, and the caller knows the address.
package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/rpc/wire"
)

// Options are a client's settings. The zero value connects without a token and
// without TLS.
type Options struct {
	// Token returns what is sent with a call, as it is when the call begins; "" and a nil Token send none.
	Token func() string
	// TLS makes the configuration of each connection; nil is for plain ones.
	TLS func() *tls.Config
	// Prove, if set, has the server of each new connection to an address prove who it is, before anything is sent to
	// it, a token above all; see package proof. An error ends the connection.
	Prove func(ctx context.Context, c net.Conn, address string) error
	// Dial connects to a server; nil is the system's dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Stall is how long a server may send neither a batch nor a heartbeat. Default
	// 2 s, eight heartbeats.
	Stall time.Duration
	// Mem provides the memory of batches. Default: garbage-collected.
	Mem batch.Allocator
}

// DefaultStall is the default of Options.Stall.
const DefaultStall = 2 * time.Second

// Client is a connection to one server, for any number of parts at a time. It
// connects when it is first used, and again after the connection was lost.
type Client struct {
	address string
	opts    Options
	conn    *grpc.ClientConn
	flight  flight.FlightServiceClient
}

// New returns a client for the server at address, host:port. It does not connect. It fails for an
// invalid address.
func New(address string, opts Options) (*Client, error) {
	if opts.Stall <= 0 {
		opts.Stall = DefaultStall
	}
	if opts.Mem == nil {
		opts.Mem = memory.DefaultAllocator
	}
	// Lengths in messages are only a peer's claims: they must not allocate what they like.
	opts.Mem = cappedAllocator{opts.Mem}

	creds := insecure.NewCredentials()
	if opts.TLS != nil {
		creds = freshTLS{credentials.NewTLS(opts.TLS()), opts.TLS}
	}
	if opts.Prove != nil {
		creds = proven{creds, address, opts.Prove}
	}

	// passthrough leaves the name to the dialer, which looks it up for each connection.
	retry := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}
	settings := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(wire.MaxMessage), grpc.MaxCallSendMsgSize(wire.MaxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: 2 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDisableServiceConfig(),
	}
	if opts.Dial != nil {
		settings = append(settings, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return opts.Dial(ctx, "tcp", address)
		}))
	}
	conn, err := grpc.NewClient("passthrough:///"+address, settings...)
	if err != nil {
		return nil, fmt.Errorf("pushdown server %s: %w", address, err)
	}

	return &Client{address: address, opts: opts, conn: conn, flight: flight.NewFlightServiceClient(conn)}, nil
}

// Address is the server's address.
func (c *Client) Address() string { return c.address }

// Close ends the connection and everything that runs on it.
func (c *Client) Close() error { return c.conn.Close() }

// withMetadata adds to a call's metadata which batches this gateway reads, and the token.
func (c *Client) withMetadata(ctx context.Context) context.Context {
	ctx = metadata.AppendToOutgoingContext(ctx, wire.BatchKey, batch.Version)
	if c.opts.Token == nil {
		return ctx
	}
	token := c.opts.Token()
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, wire.Authorization, wire.Bearer+token)
}

// Hello requests the server's description. Without an answer the error is a wire.ErrServer, or the
// context's.
func (c *Client) Hello(ctx context.Context) (h wire.Hello, err error) {
	stream, err := c.flight.DoAction(c.withMetadata(ctx), &flight.Action{Type: wire.ActionHello})
	if err != nil {
		return h, wire.Error(err, nil)
	}
	result, err := stream.Recv()
	if err != nil {
		return h, wire.Error(err, stream.Trailer())
	}
	if err := json.Unmarshal(result.GetBody(), &h); err != nil {
		return h, fmt.Errorf("%w: hello: %w", wire.ErrServer, err)
	}
	_, _ = stream.Recv() // the end of the stream, which frees the call
	return h, nil
}

// DropCaches has the server drop its cached answers. If it returns an error, a
// wire.ErrServer or the context's, the server may or may not have done so.
func (c *Client) DropCaches(ctx context.Context) error {
	stream, err := c.flight.DoAction(c.withMetadata(ctx), &flight.Action{Type: wire.ActionDropCaches})
	if err != nil {
		return wire.Error(err, nil)
	}
	if _, err := stream.Recv(); err != io.EOF {
		return wire.Error(err, stream.Trailer())
	}
	return nil
}

// Open returns the operator of a part that the server executes, beginning with the
// first Next, within a budget. The error is an operator.ErrBadPlan: the part cannot be written as a
// ticket.
func (c *Client) Open(part *scanplan.Part, budget operator.Budget) (operator.Operator, error) {
	ticket, err := part.MarshalTicket()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", operator.ErrBadPlan, err)
	}

	schema := batch.NarrowSchema()
	switch {
	case part.Plan.Histograms != nil:
		schema = batch.HistogramSchema()
	case part.Mode.IsPartial():
		schema = batch.PartialSchema()
	case part.Mode == scanplan.Aligned:
		schema = batch.AlignedSchema()
	}
	return &remote{client: c, ticket: ticket, schema: schema, budget: budget}, nil
}

// freshTLS has each connection use the configuration as it is then: certificates may have been
// replaced.
type freshTLS struct {
	credentials.TransportCredentials
	config func() *tls.Config
}

// ClientHandshake makes the handshake of one connection.
func (f freshTLS) ClientHandshake(ctx context.Context, authority string,
	c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(f.config()).ClientHandshake(ctx, authority, c)
}

// Clone returns a copy.
func (f freshTLS) Clone() credentials.TransportCredentials {
	return freshTLS{f.TransportCredentials.Clone(), f.config}
}

// proven has the server of each connection prove who it is.
type proven struct {
	credentials.TransportCredentials
	address string
	prove   func(ctx context.Context, c net.Conn, address string) error
}

// ClientHandshake makes the handshake of one connection.
func (p proven) ClientHandshake(ctx context.Context, authority string,
	c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := p.TransportCredentials.ClientHandshake(ctx, authority, c)
	if err != nil {
		return nil, nil, err
	}
	if err := p.prove(ctx, c, p.address); err != nil { //fault:token-for-a-stranger TestClient_stranger
		c.Close()
		return nil, nil, err
	}
	return c, info, nil
}

// Clone returns a copy.
func (p proven) Clone() credentials.TransportCredentials {
	return proven{p.TransportCredentials.Clone(), p.address, p.prove}
}
