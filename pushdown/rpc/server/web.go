package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"downpour/pushdown/rpc/wire"
)

// readyTimeout bounds how long a readiness check waits for the store.
const readyTimeout = 2 * time.Second

// ready returns why a part would fail now, nil if it would not.
func (s *service) ready(ctx context.Context) error {
	if s.ending() {
		return wire.ErrEnding
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	_, err := s.store.Regions(ctx, s.cfg.Table, nil, nil)
	return err
}

// web returns the server of HTTP/1 on the same port:
//
//	/healthz  200: the process lives
//	/readyz   200: the store is reached and has the table; 503 with the reason if not
//	/metrics  Prometheus text; if there are tokens, one with scope read is needed
func (s *Server) web() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.service.ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	metrics := promhttp.HandlerFor(s.service.count.gatherers(), promhttp.HandlerOpts{})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), wire.Bearer)
		if s.cfg.Allow != nil && !requestCertified(r.Context()) && !s.cfg.Allow(token) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "no token for reading in the header Authorization", http.StatusUnauthorized)
			return
		}
		metrics.ServeHTTP(w, r)
	})
	return &http.Server{
		Handler:        mux,
		ConnContext:    withCertified,
		ReadTimeout:    10 * time.Second,
		WriteTimeout:   30 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 32 << 10,
	}
}

// health answers gRPC's own health checks as /readyz does. It does not offer Watch,
// because such a call would keep a server from ending.
type health struct {
	healthpb.UnimplementedHealthServer
	service *service
}

// healthService is the prefix of the health service's methods. They need no token.
const healthService = "/grpc.health.v1.Health/"

// Check reports whether parts would succeed now. The request names the server ("") or
// Flight.
func (h health) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if n := r.GetService(); n != "" && n != wire.FlightService {
		return nil, status.Errorf(codes.NotFound, "service %q, want none or %q", n, wire.FlightService)
	}
	answer := healthpb.HealthCheckResponse_SERVING
	if h.service.ready(ctx) != nil {
		answer = healthpb.HealthCheckResponse_NOT_SERVING
	}
	return &healthpb.HealthCheckResponse{Status: answer}, nil
}
