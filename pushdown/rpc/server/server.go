package server

import (
	"context"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"downpour/pushdown/rpc/wire"
	"downpour/pushdown/store"
)

// Server serves parts over Arrow Flight.
type Server struct {
	cfg     Config
	service *service
	grpc    *grpc.Server
}

// NewServer returns a server that reads from st, which stays the caller's.
func NewServer(cfg Config, st store.Reader) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()

	s := &Server{cfg: cfg, service: newService(cfg, st)}
	// Clients ping every 10 s, see client.New. gRPC's default policy would end their connections:
	// it allows one ping in 5 minutes.
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(wire.MaxTicket),
		grpc.MaxSendMsgSize(wire.MaxMessage),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             5 * time.Second,
			PermitWithoutStream: true,
		}),
		grpc.MaxHeaderListSize(64 << 10),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.StreamInterceptor(s.guardStream),
		grpc.UnaryInterceptor(s.guardUnary),
	}

	// protocolMux has decrypted its connections already.
	s.grpc = grpc.NewServer(append(opts, grpc.Creds(fromMux{}))...)
	flight.RegisterFlightServiceServer(s.grpc, s.service)
	healthpb.RegisterHealthServer(s.grpc, health{service: s.service})
	return s, nil
}

// Serve serves Flight and HTTP on l until ctx ends. Then it refuses new parts and those
// that wait for a slot, and lets the running ones end for at most Config.Drain before
// it cuts them off. After a refusal or a cut stream, a gateway has the part executed
// elsewhere. Serve closes l. It may be called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	mux, web := newProtocolMux(l, s.cfg.TLS, s.cfg.Prove, s.cfg.Log), s.web()
	accepting := make(chan error, 1)
	go func() { accepting <- mux.run() }()

	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { _ = s.grpc.Serve(mux.rpc) })
	serving.Go(func() { _ = web.Serve(mux.web) })

	var err error
	select {
	case err = <-accepting:
	case <-ctx.Done():
		l.Close()
		<-accepting
	}

	// Parts that wait for a slot are refused first: GracefulStop waits for them, too. Until then
	// health and metrics are answered, on open connections.
	s.service.startEnding()
	force := time.AfterFunc(s.cfg.Drain, s.grpc.Stop)
	defer force.Stop()
	s.grpc.GracefulStop()
	web.Close()
	mux.close()
	return err
}

// Parts returns how many parts run or wait for a slot, for jobs that yield to them.
func (s *Server) Parts() int { return len(s.service.queue) }

// authorize checks a call's token, unless its client has shown a certificate. The error is a
// status for the client.
func (s *Server) authorize(ctx context.Context) error {
	if s.cfg.Allow == nil || callCertified(ctx) {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get(wire.Authorization) {
		if token, ok := strings.CutPrefix(v, wire.Bearer); ok && s.cfg.Allow(token) {
			return nil
		}
	}
	return status.Error(codes.Unauthenticated, "no token for reading in the metadata key authorization")
}

// guardStream is the interceptor of streaming calls.
func (s *Server) guardStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	next grpc.StreamHandler) (err error) {
	if err := s.authorize(stream.Context()); err != nil {
		return err
	}
	defer s.recover(info.FullMethod, &err)
	return next(srv, stream)
}

// guardUnary is the interceptor of other calls.
func (s *Server) guardUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	next grpc.UnaryHandler) (_ any, err error) {
	// Health checks need no token.
	if strings.HasPrefix(info.FullMethod, healthService) {
		return next(ctx, req)
	}
	if err := s.authorize(ctx); err != nil {
		return nil, err
	}
	defer s.recover(info.FullMethod, &err)
	return next(ctx, req)
}

// recover turns a panic into an error of its call, so that one bad part does not
// end the others.
func (s *Server) recover(method string, err *error) {
	if p := recover(); p != nil {
		s.cfg.Log.Error("panic in a call", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = status.Errorf(codes.Internal, "panic: %v", p)
	}
}
