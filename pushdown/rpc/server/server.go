package server

import (
	"context"
	"net"
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
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(wire.MaxTicket),
		grpc.MaxSendMsgSize(wire.MaxMessage),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxHeaderListSize(64 << 10),
		grpc.ConnectionTimeout(greeting),
		grpc.StreamInterceptor(s.guardStream),
		grpc.UnaryInterceptor(s.guardUnary),
	}
	s.grpc = grpc.NewServer(opts...) // what comes to it is decrypted already, see port
	flight.RegisterFlightServiceServer(s.grpc, s.service)
	healthpb.RegisterHealthServer(s.grpc, health{service: s.service})
	return s, nil
}

// Serve answers on l, Flight and HTTP alike, until ctx ends. Then it takes no
// new parts, refuses those that wait for their turn, and lets the running ones
// end, at most for Config.Drain, before it cuts them off; a gateway sees a
// refusal or a cut stream and asks elsewhere. It closes l. It is called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	p, web := newPort(l, s.cfg.TLS), s.web()
	accepting := make(chan error, 1)
	go func() { accepting <- p.run() }()
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { _ = s.grpc.Serve(p.rpc) })
	serving.Go(func() { _ = web.Serve(p.web) })
	var err error
	select {
	case err = <-accepting:
	case <-ctx.Done():
		l.Close()
		<-accepting
	}
	s.service.end()
	force := time.AfterFunc(s.cfg.Drain, s.grpc.Stop)
	defer force.Stop()
	s.grpc.GracefulStop()
	web.Close()
	p.close()
	return err
}

// authorize checks a call's token.
func (s *Server) authorize(ctx context.Context) error {
	if s.cfg.Allow == nil {
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

func (s *Server) guardStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	if err := s.authorize(stream.Context()); err != nil {
		return err
	}
	defer s.recover(info.FullMethod, &err)
	return next(srv, stream)
}

func (s *Server) guardUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
	if open := strings.HasPrefix(info.FullMethod, healthService); open {
		return next(ctx, req)
	}
	if err := s.authorize(ctx); err != nil {
		return nil, err
	}
	defer s.recover(info.FullMethod, &err)
	return next(ctx, req)
}

// recover turns a panic into an error of its call: one bad part must not end
// the others.
func (s *Server) recover(method string, err *error) {
	if p := recover(); p != nil {
		s.cfg.Log.Error("panic in a call", "method", method, "panic", p)
		*err = status.Errorf(codes.Internal, "panic: %v", p)
	}
}
