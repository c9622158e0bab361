package hbase

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/calls"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/hbase/kerberos"
	"downpour/pushdown/store/hbase/kerberos/kerberostest"
	"downpour/pushdown/store/hbase/sasl"
)

// secured is a fake cluster behind servers that want Kerberos.
type secured struct {
	*cluster
	kdc    *kerberostest.KDC
	dials  atomic.Int64
	server func(n int64) kerberostest.Server // of the n-th connection, from 1; without its keytab
	master string                            // the keytab of the master, if it has a principal of its own

	mu      sync.Mutex
	proxies map[string]string // by the address behind
}

const fakeServer = "hbase/server"

// startSecured starts a fake cluster, whose connections except to ZooKeeper go through
// servers that want Kerberos, and a store on it.
func startSecured(t *testing.T, server func(n int64) kerberostest.Server, change ...func(*Config)) *secured {
	t.Helper()
	s := &secured{kdc: kerberostest.StartKDC(t), server: server, proxies: map[string]string{}}
	keytab := s.kdc.AddPrincipal(fakeServer, "secret of the server")
	client, err := kerberos.Open(kerberos.Config{
		Keytab: s.kdc.AddPrincipal("downpour", "ours"), Principal: "downpour", Krb5Conf: s.kdc.Krb5Conf(),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}

	var stops []func()
	t.Cleanup(func() {
		for _, stop := range stops {
			stop()
		}
	})
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		if addr == s.Address() {
			return d.DialContext(ctx, network, addr)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.proxies[addr] == "" {
			next := func() kerberostest.Server {
				sv := s.server(s.dials.Add(1))
				sv.Keytab = keytab
				if s.master != "" && addr == s.Nodes()[0] {
					sv.Keytab = s.master
				}
				return sv
			}
			proxy, stop, err := kerberostest.Listen(next, func() (net.Conn, error) { return net.Dial("tcp", addr) })
			if err != nil {
				return nil, err
			}
			s.proxies[addr] = proxy
			stops = append(stops, stop)
		}
		return d.DialContext(ctx, network, s.proxies[addr])
	}
	s.cluster = start(t, hbasefake.Options{Servers: 2}, append([]func(*Config){func(cfg *Config) {
		cfg.Dial = dial
		cfg.Security = &calls.Security{Client: client, RegionServer: fakeServer}
	}}, change...)...)
	return s
}

func steady(s kerberostest.Server) func(int64) kerberostest.Server {
	return func(int64) kerberostest.Server { return s }
}

// Many goroutines write and read at once, small calls and some that need many tokens, with
// each protection. What is read is what was written.
func TestSecured_calls(t *testing.T) {
	for _, protection := range []sasl.Protection{sasl.Authentication, sasl.Integrity, sasl.Privacy} {
		for _, server := range []kerberostest.Server{{}, {Subkey: true, Piece: 7}, {MaxMessage: 2000, Piece: 1 << 20}} {
			t.Run(fmt.Sprintf("%v subkey %v piece %d", protection, server.Subkey, server.Piece), func(t *testing.T) {
				c := startSecured(t, steady(server),
					func(cfg *Config) { cfg.Security.Protections = sasl.Protections(protection) })
				c.manyCalls()
			})
		}
	}
}

// Servers that authenticate us want to serve the principal that we are.
func TestSecured_user(t *testing.T) {
	c := startSecured(t, steady(kerberostest.Server{}))
	if got := c.st.cfg.routing(nil).Calls.EffectiveUser; got != "downpour@TEST.EXAMPLE" {
		t.Errorf("we are %s to servers, want our principal", got)
	}
}

// manyCalls writes and reads small and large rows from many goroutines at once.
func (c *cluster) manyCalls() {
	c.CreateTable("t", []string{"t"}, []byte("r1"))
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			row := fmt.Appendf(nil, "r%d-%d", g%3, g)
			value := strings.Repeat(fmt.Sprint(g), 1+g*g*20)
			ms := []store.Mutation{
				{Row: row, Family: "t", Qualifier: []byte("q"), Value: []byte(value)},
				{Row: row, Family: "t", Qualifier: []byte("p"), Value: []byte("small")},
			}
			if err := c.st.Apply(c.ctx, "t", ms); err != nil {
				c.Errorf("%s: %v", row, err)
			}
			rows, err := c.st.Get(c.ctx, "t", "t", [][]byte{row})
			if err != nil || len(rows) != 1 || len(rows[0].Cells) != 2 || string(rows[0].Cells[1].Value) != value {
				c.Errorf("%s: got %d rows, %v", row, len(rows), err)
			}
		})
	}
	wg.Wait()
}

// A reply that was changed on the way ends the connection, and the call is sent again on
// another.
func TestSecured_changedReply(t *testing.T) {
	for _, protection := range []sasl.Protection{sasl.Integrity, sasl.Privacy} {
		c := startSecured(t, func(n int64) kerberostest.Server {
			return kerberostest.Server{Damage: 3 - int(min(n, 3)), Offer: sasl.Protections(protection)}
		})
		c.CreateTable("t", []string{"t"})
		c.Put("t", "r", "t", "q", "value")
		rows, err := c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r")})
		if err != nil || len(rows) != 1 || string(rows[0].Cells[0].Value) != "value" {
			t.Errorf("%v: got %v, %v", protection, rows, err)
		}
		if n := c.dials.Load(); n < 3 {
			t.Errorf("%v: %d connections, want at least 3: two had a changed reply", protection, n)
		}
	}
}

// What is wrong stands in the error.
func TestSecured_errors(t *testing.T) {
	header := append(unhexed(t, "00000033 32 08ffffffff0f 12 2a 0a 24"),
		"org.apache.hadoop.hbase.BadAuthExcept"[:36]...)
	header = append(header, unhexed(t, "12 02 6e6f")...)
	for _, tc := range []struct {
		name   string
		server kerberostest.Server
		change func(*Config)
		want   string
	}{
		{name: "simple", server: kerberostest.Server{Simple: true}, want: "DOWNPOUR_HBASE_ALLOW_SIMPLE"},
		{
			name:   "refused",
			server: kerberostest.Server{Refusal: "GSS initiate failed"},
			want:   "refuses our ticket for hbase/server: javax.security.sasl.SaslException: GSS initiate failed",
		},
		{
			name:   "reply of another request",
			server: kerberostest.Server{WrongTime: true},
			want:   "has not proven its identity",
		},
		{
			name:   "no common protection",
			server: kerberostest.Server{Offer: sasl.Protections(sasl.Authentication)},
			change: func(cfg *Config) { cfg.Security.Protections = sasl.Protections(sasl.Privacy) },
			want:   "the server offers authentication, want privacy",
		},
		{
			name:   "principal that the KDC does not know",
			change: func(cfg *Config) { cfg.Security.RegionServer = "hbase/other" },
			want:   "does not know the server's principal hbase/other@TEST.EXAMPLE",
		},
		{
			name:   "header refused, privacy",
			server: kerberostest.Server{HeaderRefusal: header},
			want:   "the server refuses the connection: org.apache.hadoop.hbase.BadAuthExcep: no",
		},
		{
			name:   "header refused, authentication",
			server: kerberostest.Server{HeaderRefusal: header, Offer: sasl.Protections(sasl.Authentication)},
			want:   "the server refuses the connection: org.apache.hadoop.hbase.BadAuthExcep: no",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := startSecured(t, steady(tc.server), func(cfg *Config) {
				cfg.RetryTimeout = time.Nanosecond
				if tc.change != nil {
					tc.change(cfg)
				}
			})
			c.CreateTable("t", []string{"t"})
			// A call that comes to a connection which has just ended gets only that
			// error, and the next one makes another connection.
			var err error
			for range 20 {
				if _, err = c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r")}); err == nil ||
					strings.Contains(err.Error(), tc.want) {
					break
				}
			}
			if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want ErrUnavailable with %q", err, tc.want)
			}
		})
	}
}

func unhexed(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A server without authentication is taken if that is allowed, and works.
func TestSecured_allowSimple(t *testing.T) {
	c := startSecured(t, steady(kerberostest.Server{Simple: true}),
		func(cfg *Config) { cfg.Security.AllowSimple = true })
	c.CreateTable("t", []string{"t"})
	c.Put("t", "r", "t", "q", "value")
	if rows, err := c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r")}); err != nil || len(rows) != 1 {
		t.Errorf("got %v, %v", rows, err)
	}
}

// A server whose key is a new one refuses the old ticket; a new one is got.
func TestSecured_newKey(t *testing.T) {
	c := startSecured(t, steady(kerberostest.Server{}))
	c.CreateTable("t", []string{"t"})
	get := func() {
		t.Helper()
		if _, err := c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r")}); err != nil {
			t.Fatal(err)
		}
	}
	get()
	before := c.kdc.Count(fakeServer)

	c.kdc.AddPrincipal(fakeServer, "another secret") // in the same keytab
	for i := range 2 {
		c.StopServer(i)
		if err := c.RestartServer(i); err != nil {
			t.Fatal(err)
		}
	}
	get()
	if after := c.kdc.Count(fakeServer); before != 1 || after != 2 {
		t.Errorf("%d tickets before and %d after the change, want 1 and 2", before, after)
	}
}

// An open store keeps the tickets alive while no connection is made.
func TestSecured_kept(t *testing.T) {
	c := startSecured(t, steady(kerberostest.Server{}))
	c.kdc.SetLife(4 * time.Second)
	c.CreateTable("t", []string{"t"})
	if _, err := c.st.Get(c.ctx, "t", "t", [][]byte{[]byte("r")}); err != nil {
		t.Fatal(err)
	}
	dials := c.dials.Load()
	ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
	defer cancel()
	for _, name := range []string{"krbtgt/" + kerberostest.Realm, fakeServer} {
		if err := c.kdc.Wait(ctx, name, 3); err != nil {
			t.Error(err)
		}
	}
	if n := c.dials.Load(); n != dials {
		t.Errorf("%d connections were made meanwhile, want none", n-dials)
	}
}

// The master may have a principal of its own. A bootstrap node may be a master or a region server: the principal that a
// node accepts is found, and used for it from then on.
func TestSecured_masters(t *testing.T) {
	c := startSecured(t, steady(kerberostest.Server{}), func(cfg *Config) { cfg.Security.Master = "hbase/master" })
	c.master = c.kdc.AddPrincipal("hbase/master", "secret of the master")
	for name, nodes := range map[string][]string{"zookeeper": nil, "master": c.Nodes()[:1], "region": c.Nodes()[1:]} {
		cfg := c.st.cfg
		if nodes != nil {
			cfg.Quorum, cfg.Nodes = "", nodes
		}
		st := must(Open(cfg))
		spec := store.TableSpec{Name: name, Families: []store.FamilySpec{{Name: "t"}}}
		if err := st.CreateTable(c.ctx, spec); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := st.Apply(c.ctx, name, puts("a")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		st.Close()
	}
}
