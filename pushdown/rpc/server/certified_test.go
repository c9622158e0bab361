package server_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/pushdown/process/certificates/certificatestest"
	"downpour/pushdown/process/logtest"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/server"
)

// identity is the configuration of a gateway or pushdown server with files of its own, so that
// they can be replaced.
func identity(t *testing.T, ca *certificatestest.CA, host string) *settings.Common {
	t.Helper()
	dir := t.TempDir()
	c := &settings.Common{
		TLSCert:    filepath.Join(dir, "cert"),
		TLSKey:     filepath.Join(dir, "key"),
		PushdownCA: filepath.Join(dir, "ca"),
	}
	reissue(t, c, ca, host)
	return c
}

// reissue replaces the files.
func reissue(t *testing.T, c *settings.Common, ca *certificatestest.CA, host string) {
	t.Helper()
	issued := ca.Issue(host)
	for from, to := range map[string]string{issued.CertFile: c.TLSCert, issued.KeyFile: c.TLSKey,
		ca.File: c.PushdownCA} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A certificate of the authority counts as a token for reading, for Flight and for HTTP. Without
// one a token is needed, and one of another authority ends the connection. All files can be
// replaced while the server runs.
func TestServe_certificates(t *testing.T) {
	ca, other := certificatestest.NewCA(t), certificatestest.NewCA(t)
	ours := identity(t, ca, "127.0.0.1")
	var logged logtest.Log
	p := start(t, points(100), func(c *server.Config, o *client.Options) {
		var err error
		if c.TLS, err = ours.PushdownServerTLS(nil); err != nil {
			t.Fatal(err)
		}
		c.Allow = func(token string) bool { return token == "token of a reader" }
		c.Log = slog.New(slog.NewTextHandler(&logged, nil))
		o.TLS = connecting(t, identity(t, ca, "gateway"))
	})
	if _, err := text(p.open(part())); err != nil {
		t.Error(err)
	}

	stranger := identity(t, other, "gateway")
	reissue(t, ours, ca, "127.0.0.1") // the certificate's own replacement changes nothing
	authority, err := os.ReadFile(ca.File)
	if err == nil {
		err = os.WriteFile(stranger.PushdownCA, authority, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	hello := func(who string, opts client.Options, ok bool) {
		t.Helper()
		c, err := client.New(p.addr, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if _, err = c.Hello(ctx); ok != (err == nil) {
			t.Errorf("%s: got %v, want it served %t", who, err, ok)
		}
	}
	uncertified := func() *tls.Config {
		cfg := connecting(t, identity(t, ca, "gateway"))()
		cfg.GetClientCertificate = nil
		return cfg
	}
	hello("one of the authority", client.Options{TLS: connecting(t, identity(t, ca, "gateway"))}, true)
	hello("no certificate", client.Options{TLS: uncertified}, false)
	hello("no certificate, but a token", client.Options{TLS: uncertified, Token: always("token of a reader")}, true)
	hello("another authority", client.Options{TLS: connecting(t, stranger), Token: always("token of a reader")}, false)

	// The client hears of the refusal before the server has logged it, and one a second is logged: it
	// is called again until the log has it.
	const refusal = "certificate signed by unknown authority"
	for end := time.Now().Add(time.Minute); !strings.Contains(logged.String(), refusal) && time.Now().Before(end); {
		hello("another authority again", client.Options{TLS: connecting(t, stranger)}, false)
	}
	if log := logged.String(); !strings.Contains(log, "refused a TLS connection") ||
		!strings.Contains(log, "peer=127.0.0.1:") || !strings.Contains(log, refusal) {
		t.Errorf("the log of the server: %s, want who was refused, and why", log)
	}

	web := func(cfg *tls.Config, path string, want int) {
		t.Helper()
		if code, body := p.get("https", path, "", cfg); code != want {
			t.Errorf("%s: status %d, want %d: %s", path, code, want, body)
		}
	}
	web(uncertified(), "/healthz", 200)
	web(uncertified(), "/metrics", 401)
	web(connecting(t, identity(t, ca, "gateway"))(), "/metrics", 200)

	// Another authority in all files.
	gateway := identity(t, ca, "gateway")
	connect := connecting(t, gateway)
	hello("before", client.Options{TLS: connect}, true)
	reissue(t, ours, other, "127.0.0.1")
	reissue(t, gateway, other, "gateway")
	hello("after", client.Options{TLS: connect}, true)
	hello("as before", client.Options{TLS: connecting(t, identity(t, ca, "gateway"))}, false)
}

// connecting makes the configuration of a gateway's connections.
func connecting(t *testing.T, c *settings.Common) func() *tls.Config {
	t.Helper()
	f, err := c.PushdownTLS(nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
