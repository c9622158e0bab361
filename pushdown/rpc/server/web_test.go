package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"downpour/pushdown/rpc/auth/authtest"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/server"
	"downpour/pushdown/rpc/wire"
)

// get sends a request by HTTP/1 to the Flight port.
func (p *peer) get(scheme, path, token string, cfg *tls.Config) (status int, body string) {
	p.t.Helper()
	transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true} // Prometheus and curl offer HTTP/2 too
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, scheme+"://"+p.addr+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// Health, readiness and metrics are on the Flight port, for programs that speak
// HTTP/1 and for gRPC's health check.
func TestWeb(t *testing.T) {
	m := points(100)
	p := start(t, m, nil)
	if _, err := text(p.open(part())); err != nil {
		t.Fatal(err)
	}
	bad := part()
	bad.Plan.Table = "other"
	if _, err := text(p.open(bad)); err == nil {
		t.Fatal("a plan for another table is taken")
	}
	f := func(path string, status int, wants ...string) {
		t.Helper()
		got, body := p.get("http", path, "", nil)
		if got != status {
			t.Errorf("%s: status %d, want %d: %s", path, got, status, body)
		}
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in\n%s", path, want, body)
			}
		}
	}
	f("/healthz", 200, "alive")
	f("/readyz", 200, "ready")
	f("/metrics", 200,
		`downpour_pushdown_parts_total{outcome="complete"} 1`, `downpour_pushdown_parts_total{outcome="refused"} 1`,
		"downpour_pushdown_points_total 540", "downpour_pushdown_rows_total 15", "downpour_pushdown_parts_running 0",
		"go_goroutines")
	f("/anything", 404)
	if code := p.health(""); code != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health %s, want serving", code)
	}
	m.Away.Store(true)
	f("/healthz", 200)
	f("/readyz", 503, "store unavailable")
	if code := p.health(wire.FlightService); code != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health without a store %s, want not serving", code)
	}
}

// health is gRPC's health check of a service.
func (p *peer) health(service string) healthpb.HealthCheckResponse_ServingStatus {
	p.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+p.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	answer, err := healthpb.NewHealthClient(conn).Check(p.t.Context(), &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.Status
}

// With tokens, metrics need one; health and readiness do not.
func TestWeb_token(t *testing.T) {
	const token = "0123456789abcdef"
	p := start(t, points(100), func(c *server.Config, o *client.Options) {
		c.Allow, o.Token = func(got string) bool { return got == token }, always(token)
	})
	f := func(path, token string, want int) {
		t.Helper()
		if got, body := p.get("http", path, token, nil); got != want {
			t.Errorf("%s with %q: status %d, want %d: %s", path, token, got, want, body)
		}
	}
	f("/metrics", "", 401)
	f("/metrics", "0123456789abcdeF", 401)
	f("/metrics", token, 200)
	f("/healthz", "", 200)
	f("/readyz", "", 200)
	if code := p.health(""); code != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health %s, want serving", code)
	}
}

// With TLS the port serves Flight and HTTP too. Clients without TLS, and those that do not trust
// the certificate, are not served.
func TestServe_tls(t *testing.T) {
	made := authtest.NewCertificate(t)
	trust := &tls.Config{RootCAs: made.Roots, MinVersion: tls.VersionTLS12}
	p := start(t, points(100), func(c *server.Config, o *client.Options) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{made.Server}, MinVersion: tls.VersionTLS12}
		o.TLS = func() *tls.Config { return trust }
	})
	if _, err := text(p.open(part())); err != nil {
		t.Error(err)
	}
	if code, body := p.get("https", "/healthz", "", trust); code != 200 {
		t.Errorf("status %d, want 200: %s", code, body)
	}
	plain, err := client.New(p.addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if _, err := plain.Hello(ctx); err == nil {
		t.Error("a plain connection is served")
	}
	untrusting, err := grpc.NewClient("passthrough:///"+p.addr,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{})))
	if err != nil {
		t.Fatal(err)
	}
	defer untrusting.Close()
	if _, err := healthpb.NewHealthClient(untrusting).Check(ctx,
		&healthpb.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a client that does not know the certificate: %v, want Unavailable", err)
	}
}
