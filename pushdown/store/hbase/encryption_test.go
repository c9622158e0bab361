package hbase

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"downpour/pushdown/process/certificates"
	"downpour/pushdown/process/certificates/certificatestest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/kerberos/kerberostest"
	"downpour/pushdown/store/hbase/sasl"
)

// fronts are listeners before servers. What comes there is handed on.
type fronts struct {
	t       *testing.T
	handle  func(nc net.Conn, behind func() (net.Conn, error))
	leave   string // the address that has none
	wg      sync.WaitGroup
	mu      sync.Mutex
	addrs   map[string]string // by the address behind
	closing []func() error
}

func newFronts(t *testing.T, handle func(net.Conn, func() (net.Conn, error))) *fronts {
	f := &fronts{t: t, handle: handle, addrs: map[string]string{}}
	t.Cleanup(func() {
		f.mu.Lock()
		for _, stop := range f.closing {
			stop()
		}
		f.mu.Unlock()
		f.wg.Wait()
	})
	return f
}

// dialer returns a dialer that goes through the fronts to what next would dial.
func (f *fronts) dialer(next func(context.Context, string,
	string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		if addr == f.leave {
			return d.DialContext(ctx, network, addr)
		}
		front, err := f.before(addr, func() (net.Conn, error) { return next(context.Background(), network, addr) })
		if err != nil {
			return nil, err
		}
		return d.DialContext(ctx, network, front)
	}
}

// before returns the address of the listener before an address.
func (f *fronts) before(addr string, behind func() (net.Conn, error)) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if front := f.addrs[addr]; front != "" {
		return front, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	f.addrs[addr] = l.Addr().String()
	f.closing = append(f.closing, l.Close)
	f.wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.closing = append(f.closing, nc.Close)
			f.mu.Unlock()
			f.wg.Go(func() {
				defer nc.Close()
				f.handle(nc, behind)
			})
		}
	})
	return f.addrs[addr], nil
}

// tlsFronts speak TLS with a configuration that is fetched at each connection.
func tlsFronts(t *testing.T, config func() *tls.Config) *fronts {
	return newFronts(t, func(nc net.Conn, behind func() (net.Conn, error)) {
		c := tls.Server(nc, config())
		if c.Handshake() != nil {
			// Until the client leaves: an end with unread bytes would be a reset.
			io.Copy(io.Discard, nc)
			return
		}
		b, err := behind()
		if err != nil {
			return
		}
		defer b.Close()
		var wg sync.WaitGroup
		wg.Go(func() {
			defer nc.Close()
			io.Copy(c, b)
		})
		io.Copy(b, c)
		b.Close()
		wg.Wait()
	})
}

// serverConfig is a server with a certificate.
func serverConfig(t *testing.T, c certificatestest.Certificate, change ...func(*tls.Config)) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{pair}}
	for _, f := range change {
		f(cfg)
	}
	return cfg
}

// encryption is a client that trusts an authority.
func encryption(t *testing.T, files certificates.Files) *calls.Encryption {
	t.Helper()
	r, err := certificates.Open(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &calls.Encryption{Certificates: r}
}

// startEncrypted starts a fake cluster behind fronts, and a store on it.
func startEncrypted(t *testing.T, f *fronts, e *calls.Encryption, change ...func(*Config)) *cluster {
	t.Helper()
	return start(t, hbasefake.Options{Servers: 2}, append([]func(*Config){func(cfg *Config) {
		f.leave = cfg.Quorum
		cfg.Dial = f.dialer((&net.Dialer{}).DialContext)
		cfg.Encryption = e
	}}, change...)...)
}

// Many goroutines write and read at once, small calls and some that need many records. What
// is read is what was written.
func TestEncrypted_calls(t *testing.T) {
	ca := certificatestest.NewCA(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			cfg := serverConfig(t, ca.Issue("127.0.0.1"), func(cfg *tls.Config) { cfg.MaxVersion = version })
			f := tlsFronts(t, func() *tls.Config { return cfg })
			startEncrypted(t, f, encryption(t, certificates.Files{Roots: ca.File}), slowWrites).manyCalls()
		})
	}
}

// slowWrites has each write to a server take so long that the others that wait have their turn
// before the next part of the same call, if nothing keeps its parts together.
func slowWrites(cfg *Config) {
	dial := cfg.Dial
	cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		return &slowConn{nc}, err
	}
}

type slowConn struct{ net.Conn }

// Write writes, and returns later. A mutex that was waited for longer than a millisecond goes to
// who waits.
func (c *slowConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	for began := time.Now(); time.Since(began) < 2*time.Millisecond; {
		runtime.Gosched()
	}
	return n, err
}

// Kerberos works inside of TLS, with and without tokens of its own.
func TestEncrypted_kerberos(t *testing.T) {
	ca := certificatestest.NewCA(t)
	cfg := serverConfig(t, ca.Issue("127.0.0.1"))
	for _, protection := range []sasl.Protection{sasl.Authentication, sasl.Privacy} {
		t.Run(fmt.Sprint(protection), func(t *testing.T) {
			f := tlsFronts(t, func() *tls.Config { return cfg })
			c := startSecured(t, steady(kerberostest.Server{}), func(c *Config) {
				f.leave = c.Quorum
				c.Dial = f.dialer(c.Dial)
				c.Encryption = encryption(t, certificates.Files{Roots: ca.File})
				c.Security.Protections = sasl.Protections(protection)
			})
			c.manyCalls()
		})
	}
}

// What is wrong stands in the error, with the settings of both ends.
//
//fault:tls-any-authority-taken cfg.VerifyConnection => _
func TestEncrypted_errors(t *testing.T) {
	ca, other := certificatestest.NewCA(t), certificatestest.NewCA(t)
	clients := x509.NewCertPool()
	pem, err := os.ReadFile(ca.File)
	if err != nil || !clients.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	demanding := func(version uint16) func(*tls.Config) {
		return func(cfg *tls.Config) {
			cfg.ClientAuth, cfg.ClientCAs, cfg.MaxVersion = tls.RequireAndVerifyClientCert, clients, version
		}
	}
	ours, theirs := ca.Issue("us"), other.Issue("us")
	for _, tc := range []struct {
		name   string
		server *tls.Config
		files  certificates.Files
		any    bool   // takes any name
		want   string // empty if it works
	}{
		{"authority", serverConfig(t, other.Issue("127.0.0.1")), certificates.Files{}, false,
			"no authority in DOWNPOUR_HBASE_TLS has issued"},
		{"authority, any name", serverConfig(t, other.Issue("127.0.0.1")), certificates.Files{}, true,
			"no authority in DOWNPOUR_HBASE_TLS has issued"},
		{"name", serverConfig(t, ca.Issue("other.example")), certificates.Files{}, false,
			"DOWNPOUR_HBASE_TLS_VERIFY_HOST=false takes any name"},
		{"any name", serverConfig(t, ca.Issue("other.example")), certificates.Files{}, true, ""},
		{"expired", serverConfig(t, ca.IssueAt(time.Now().Add(-24*time.Hour), "127.0.0.1")), certificates.Files{},
			false, "expired"},
		{"expired, any name", serverConfig(t, ca.IssueAt(time.Now().Add(-24*time.Hour), "127.0.0.1")),
			certificates.Files{}, true, "expired"},
		{"no certificate, 1.2", serverConfig(t, ca.Issue("127.0.0.1"), demanding(tls.VersionTLS12)),
			certificates.Files{}, false, "see DOWNPOUR_HBASE_TLS_CERT and hbase.server.netty.tls.client.auth.mode"},
		{"no certificate, 1.3", serverConfig(t, ca.Issue("127.0.0.1"), demanding(tls.VersionTLS13)),
			certificates.Files{}, false, "see DOWNPOUR_HBASE_TLS_CERT and hbase.server.netty.tls.client.auth.mode"},
		{"another's certificate", serverConfig(t, ca.Issue("127.0.0.1"), demanding(tls.VersionTLS12)),
			certificates.Files{Cert: theirs.CertFile, Key: theirs.KeyFile}, false,
			"see DOWNPOUR_HBASE_TLS_CERT and hbase.server.netty.tls.client.auth.mode"},
		{"mutual, 1.2", serverConfig(t, ca.Issue("127.0.0.1"), demanding(tls.VersionTLS12)),
			certificates.Files{Cert: ours.CertFile, Key: ours.KeyFile}, false, ""},
		{"mutual, 1.3", serverConfig(t, ca.Issue("127.0.0.1"), demanding(tls.VersionTLS13)),
			certificates.Files{Cert: ours.CertFile, Key: ours.KeyFile}, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.files.Roots = ca.File
			e := encryption(t, tc.files)
			e.AnyName = tc.any
			c := startEncrypted(t, tlsFronts(t, func() *tls.Config { return tc.server }), e,
				func(cfg *Config) { cfg.RetryTimeout = time.Nanosecond })
			c.wantFault(tc.want)
		})
	}
}

// faultAttempts is how often wantFault reads: a write to a connection that is broken already may
// fail before the server's reason is read, and then the error of that attempt has none.
const faultAttempts = 100

// wantFault reads a row and wants the text in the error; "" wants none.
func (c *cluster) wantFault(want string) {
	c.Helper()
	c.CreateTable("t", []string{"t"})
	var err error
	for range faultAttempts {
		_, err = c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r")})
		if want == "" || err == nil || strings.Contains(err.Error(), want) {
			break
		}
	}
	if want == "" && err != nil ||
		want != "" && (!errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), want)) {
		c.Errorf("got %v, want ErrUnavailable with %q", err, want)
	}
}

// Only one end speaks TLS.
func TestEncrypted_oneEnd(t *testing.T) {
	ca := certificatestest.NewCA(t)
	answering := func(answer string) func(*testing.T) *fronts {
		return func(t *testing.T) *fronts {
			return newFronts(t, func(nc net.Conn, _ func() (net.Conn, error)) {
				nc.Read(make([]byte, 4<<10))
				io.WriteString(nc, answer)
			})
		}
	}
	speaking := func(t *testing.T) *fronts {
		cfg := serverConfig(t, ca.Issue("127.0.0.1"))
		return newFronts(t, func(nc net.Conn, _ func() (net.Conn, error)) { tls.Server(nc, cfg).Handshake() })
	}
	for _, tc := range []struct {
		name   string
		fronts func(*testing.T) *fronts
		we     bool
		want   string
	}{
		{"we, it answers", answering("\x00\x00\x01\x02\x08\xff\xff"), true,
			"the server speaks none: it answers 00 00 01 02 08"},
		{"we, it closes", answering(""), true, "closed the connection in the handshake"},
		{"it, with an alert", answering("\x15\x03\x01\x00\x02\x02\x46"), false,
			"the server wants it, and DOWNPOUR_HBASE_TLS is off"},
		{"it, it closes", speaking, false, "as one does that wants TLS (DOWNPOUR_HBASE_TLS is off)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var e *calls.Encryption
			if tc.we {
				e = encryption(t, certificates.Files{Roots: ca.File})
			}
			startEncrypted(t, tc.fronts(t), e,
				func(cfg *Config) { cfg.RetryTimeout = time.Nanosecond }).wantFault(tc.want)
		})
	}
}

// Authority and certificates of both ends are replaced while the store runs: connections
// that are open go on, new ones use what is new.
func TestEncrypted_replaced(t *testing.T) {
	ca := certificatestest.NewCA(t)
	var mu sync.Mutex
	server := serverConfig(t, ca.Issue("127.0.0.1"))
	f := tlsFronts(t, func() *tls.Config {
		mu.Lock()
		defer mu.Unlock()
		return server
	})
	c := startEncrypted(t, f, encryption(t, certificates.Files{Roots: ca.File}))
	c.wantFault("")

	next := certificatestest.NewCA(t)
	mu.Lock()
	server = serverConfig(t, next.Issue("127.0.0.1"))
	mu.Unlock()
	if _, err := c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r")}); err != nil {
		t.Errorf("on an open connection: %v", err)
	}
	authority, err := os.ReadFile(next.File)
	if err == nil {
		err = os.WriteFile(ca.File, authority, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		c.StopServer(i)
		if err := c.RestartServer(i); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r")}); err != nil {
		t.Errorf("on a new connection: %v", err)
	}
}
