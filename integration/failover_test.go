//go:build integration

package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// tcpBalancer passes connections on, byte by byte, to the first gateway that is ready.
type tcpBalancer struct {
	net.Listener
	urls []string
	work sync.WaitGroup
}

// newTCPBalancer listens on a port. It ends with the test.
func newTCPBalancer(ctx context.Context, t *testing.T, port int, urls ...string) *tcpBalancer {
	t.Helper()
	l := must[net.Listener](t)(net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)))
	b := &tcpBalancer{Listener: l, urls: urls}
	ctx, stop := context.WithCancel(ctx)
	b.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.work.Go(func() { b.pass(ctx, c) })
		}
	})
	t.Cleanup(func() { l.Close(); stop(); b.work.Wait() })
	return b
}

// pass connects a client with a gateway until one of them ends.
func (b *tcpBalancer) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	var gateway net.Conn
	for _, url := range b.urls {
		if a, err := e2e.Get(ctx, url+"/readyz"); err != nil || a.Status != http.StatusOK {
			continue
		}
		if c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
			gateway = c
			break
		}
	}
	if gateway == nil {
		return
	}

	defer context.AfterFunc(ctx, func() { client.Close(); gateway.Close() })()
	var back sync.WaitGroup
	back.Go(func() { io.Copy(client, gateway); client.Close() })
	io.Copy(gateway, client)
	gateway.Close()
	back.Wait()
}

// The page of a browser is live through a balancer of connections. The gateway that it is connected to
// is stopped, and later the other one is killed: each time the page comes back to the one that is
// left, and shows what is put from then on.
func TestFailover_page(t *testing.T) {
	t.Parallel()
	ctx := within(t, 10*time.Minute)
	tables := createTables(t)
	port := must[int](t)(e2e.FreePort())
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	env := map[string]string{"DOWNPOUR_ALLOW_ORIGINS": address, "DOWNPOUR_DRAIN": "1s"}
	gateways := []*e2e.Program{layouts[0].gateway(t, tables, env), layouts[0].gateway(t, tables, env)}
	newTCPBalancer(ctx, t, port, gateways[0].URL, gateways[1].URL)

	// The script asks here for what is to happen.
	steps := map[string]func() error{
		"/stop-first": func() error { return gateways[0].Process.Stop(ctx) },
		"/kill-second": func() error {
			if err := gateways[0].Restart(ctx); err != nil {
				return err
			}
			gateways[1].Process.Kill()
			return nil
		},
	}
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := steps[r.URL.Path](); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	defer control.Close()
	browserScript(t, "failover.mjs", address, control.URL)
}
