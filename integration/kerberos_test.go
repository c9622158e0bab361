//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"downpour/integration/compare"
	"downpour/integration/e2e"
	store "downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/kerberos"
)

// securedCluster is an HBase with Kerberos, with OpenTSDB's tables.
type securedCluster struct {
	kdc    *e2e.KDC
	hbase  *e2e.HBase
	tables e2e.Tables
	keytab string // of the principal downpour
}

// startSecured starts one, with further options.
func startSecured(t *testing.T, o e2e.HBaseOptions) *securedCluster {
	t.Helper()
	ctx := within(t, patience)
	c := &securedCluster{tables: e2e.TablesWithPrefix("tsdb")}
	began := time.Now()
	c.kdc = must[*e2e.KDC](t)(e2e.StartKDC(ctx))
	closeAtEnd(t, c.kdc)
	c.keytab = must[string](t)(c.kdc.Keytab(ctx, "downpour"))

	o.KDC, o.RegionServers, o.RegionServerMiB, o.QuickStart = c.kdc, 1, 384, true
	c.hbase = must[*e2e.HBase](t)(e2e.StartHBase(ctx, o))
	closeAtEnd(t, c.hbase)
	t.Logf("KDC and secured HBase: up after %.1f s", time.Since(began).Seconds())
	if err := c.hbase.Admin.CreateOpenTSDBTables(ctx, c.tables); err != nil {
		t.Fatal(err)
	}
	return c
}

// env holds the variables of our programs on the cluster.
func (c *securedCluster) env(more map[string]string) map[string]string {
	env := map[string]string{
		"DOWNPOUR_STORE":          "hbase:" + c.hbase.Quorum(),
		"DOWNPOUR_AUTO_METRICS":   "true",
		"DOWNPOUR_HBASE_KERBEROS": "keytab:" + c.keytab + ":downpour@" + e2e.Realm,
		// Of the server _HOST is localhost, as hbase:meta has it.
		"DOWNPOUR_HBASE_PRINCIPAL": "hbase/_HOST@" + e2e.Realm,
		"DOWNPOUR_KRB5_CONF":       c.kdc.Krb5Conf(),
	}
	maps.Copy(env, more)
	return env
}

// A secured HBase with a KDC, and what they must not be: one cluster for all of it.
func TestKerberos(t *testing.T) {
	t.Parallel()
	c := startSecured(t, e2e.HBaseOptions{})
	t.Run("protections", c.protections)
	t.Run("ticketCache", c.ticketCache)
	t.Run("udp", c.udp)
	t.Run("pushdown", c.pushdown)
	t.Run("errors", c.errors)
	t.Run("zooKeeper", c.zooKeeper)
	t.Run("kdcAway", c.kdcAway)
}

const perProtection = 500 // points

var protections = []string{"privacy", "integrity", "authentication"}

// protections puts points through gateways with each protection, and queries all of them
// through each.
func (c *securedCluster) protections(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	var gateways []*e2e.Program
	for i, protection := range protections {
		g := startGateway(t, e2e.ProgramOptions{Env: c.env(map[string]string{"DOWNPOUR_HBASE_PROTECTION": protection})})
		gateways = append(gateways, g)
		var points []e2e.Point
		for p := range perProtection {
			points = append(points, e2e.Point{
				Metric:    "k.m",
				Timestamp: dataStart + int64(p),
				Value:     fmt.Appendf(nil, "%d", p*(i+1)),
				Tags:      map[string]string{"by": protection},
			})
		}
		if err := e2e.Put(ctx, g.URL, points); err != nil {
			t.Fatalf("%s: %v", protection, err)
		}
	}
	for i, g := range gateways {
		if err := c.query(ctx, g); err != nil {
			t.Errorf("%s: %v", protections[i], err)
		}
	}
}

// query compares the sum of what protections has put.
func (c *securedCluster) query(ctx context.Context, g *e2e.Program) error {
	var want bytes.Buffer
	want.WriteString(`[{"metric":"k.m","tags":{},"aggregateTags":["by"],"dps":{`)
	for p := range perProtection {
		fmt.Fprintf(&want, `%s"%d":%d`, map[bool]string{true: "", false: ","}[p == 0], dataStart+p, p*(1+2+3))
	}
	want.WriteString("}}]")
	a, err := e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&m=sum:k.m",
		g.URL, dataStart, dataStart+perProtection))
	if err != nil {
		return err
	}
	r, err := compare.Comparer{}.Answers(compare.Answer{Status: 200, Body: want.Bytes()},
		compare.Answer{Status: a.Status, Body: a.Body})
	if err == nil && !r.Equal() {
		err = fmt.Errorf("%v", r)
	}
	return err
}

// ticketCache reads with the tickets of a file that kinit has filled.
func (c *securedCluster) ticketCache(t *testing.T) {
	ctx := within(t, time.Minute)
	cache := must[string](t)(c.kdc.Kinit(ctx, c.keytab, "downpour"))
	g := startGateway(t, e2e.ProgramOptions{Env: c.env(map[string]string{
		"DOWNPOUR_HBASE_KERBEROS": "cache", "DOWNPOUR_HBASE_PRINCIPAL": "", "KRB5CCNAME": "FILE:" + cache,
		"DOWNPOUR_KRB5_CONF": "", "KRB5_CONFIG": c.kdc.Krb5Conf(),
	})})
	if err := c.query(ctx, g); err != nil {
		t.Error(err)
	}
}

// udp gets tickets by UDP: a program takes what the KDC takes there.
func (c *securedCluster) udp(t *testing.T) {
	ctx := within(t, time.Minute)
	before, _, err := c.kdc.Issued("downpour")
	if err != nil {
		t.Fatal(err)
	}
	g := startGateway(t,
		e2e.ProgramOptions{Env: c.env(map[string]string{"KRB5_CONFIG": must[string](t)(c.kdc.Krb5ConfUDP())})})
	if err := c.query(ctx, g); err != nil {
		t.Error(err)
	}
	after, _, err := c.kdc.Issued("downpour")
	if err != nil || after <= before {
		t.Errorf("%d tickets before and %d after, %v: want more", before, after, err)
	}
}

// pushdown reads by way of a pushdown server.
func (c *securedCluster) pushdown(t *testing.T) {
	ctx := within(t, time.Minute)
	env := c.env(nil)
	delete(env, "DOWNPOUR_AUTO_METRICS")
	p := must[*e2e.Program](t)(e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env}))
	closeAtEnd(t, p)
	g := startGateway(t, e2e.ProgramOptions{Env: c.env(map[string]string{"DOWNPOUR_PUSHDOWN": p.Addr})})
	if err := c.query(ctx, g); err != nil {
		t.Error(err)
	}
}

// open returns a client of ours and a function that reads with it on new connections. A
// fault is an error at once, and not tried again.
func (c *securedCluster) open(
	t *testing.T, cfg kerberos.Config, change func(*store.Security),
) func(context.Context) error {
	t.Helper()
	cfg.Krb5Conf = c.kdc.Krb5Conf()
	client, err := kerberos.Open(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	security := &store.Security{Client: client}
	if change != nil {
		change(security)
	}
	return func(ctx context.Context) error { return c.read(ctx, security) }
}

// read reads a row on new connections.
func (c *securedCluster) read(ctx context.Context, security *store.Security) error {
	return c.readFrom(ctx, store.Config{Quorum: c.hbase.Quorum(), Security: security, RetryTimeout: time.Nanosecond})
}

// readFrom reads a row of a cluster on new connections.
func (c *securedCluster) readFrom(ctx context.Context, cfg store.Config) error {
	st, err := store.Open(cfg)
	if err != nil {
		return err
	}
	defer st.Close()
	_, err = st.Get(ctx, c.tables.UID, "id", [][]byte{[]byte("k.m")})
	return err
}

// errors has real servers refuse us, and wants the cause in the error.
func (c *securedCluster) errors(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	ours := kerberos.Config{Keytab: c.keytab, Principal: "downpour"}

	stale := must[string](t)(c.kdc.Keytab(ctx, "stale"))
	must[string](t)(c.kdc.Keytab(ctx, "stale")) // with new keys
	short := must[string](t)(c.kdc.Keytab(ctx, "short"))
	cache := must[string](t)(c.kdc.Kinit(ctx, short, "short", "-l", "1s"))

	for _, tc := range []struct {
		name   string
		cfg    kerberos.Config
		change func(*store.Security)
		want   string
	}{
		{
			"unknown server",
			ours,
			func(s *store.Security) { s.RegionServer = "hbase/other" },
			"does not know the server's principal hbase/other@" + e2e.Realm,
		},
		{
			"another server",
			ours,
			func(s *store.Security) { s.RegionServer = "stale" },
			"refuses our ticket for stale: javax.security.sasl.SaslException: GSS initiate failed",
		},
		{
			"stale keytab",
			kerberos.Config{Keytab: stale, Principal: "stale"},
			nil,
			"the keytab's key of stale@" + e2e.Realm + " is not the one that the KDC has",
		},
		{"ticket cache that has ended", kerberos.Config{TicketCache: cache}, nil, "its ticket has expired"},
	} {
		read := c.open(t, tc.cfg, tc.change)
		err := e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
			if err := read(ctx); err == nil || !strings.Contains(err.Error(), tc.want) {
				return fmt.Errorf("got %v, want %q", err, tc.want)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}

	if err := c.read(ctx, nil); err == nil || !strings.Contains(err.Error(), "Authentication is required") {
		t.Errorf("without Kerberos: got %v, want that authentication is required", err)
	}
}

// zooKeeper asks a ZooKeeper that wants sessions to be authenticated: the error says so, and
// what to set; with that the same cluster is read.
func (c *securedCluster) zooKeeper(t *testing.T) {
	ctx := within(t, time.Minute)
	z := must[*e2e.ZooKeeper](t)(e2e.StartSecuredZooKeeper(ctx))
	closeAtEnd(t, z)
	client := must[*kerberos.Client](t)(
		kerberos.Open(kerberos.Config{Keytab: c.keytab, Principal: "downpour", Krb5Conf: c.kdc.Krb5Conf()}, nil),
	)
	read := func(cfg store.Config) error {
		cfg.Security, cfg.RetryTimeout = &store.Security{Client: client}, time.Nanosecond
		return c.readFrom(ctx, cfg)
	}

	want := z.Addr() + ": it wants sessions to be authenticated with SASL"
	// It closes connections until it has started.
	err := e2e.Until(ctx, 100*time.Millisecond, func(context.Context) error {
		if err := read(store.Config{Quorum: z.Addr()}); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "DOWNPOUR_STORE=hbase+rpc://") {
			return fmt.Errorf("got %v, want %q, and what to set", err, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := read(store.Config{Nodes: []string{c.hbase.MasterAddr(), c.hbase.RegionServerAddr(0)}}); err != nil {
		t.Errorf("bootstrap nodes: %v", err)
	}
}

// kdcAway stops the KDC: a running gateway goes on; a client that has no ticket yet learns why
// it cannot, and succeeds when the KDC is back.
func (c *securedCluster) kdcAway(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	g := startGateway(t, e2e.ProgramOptions{Env: c.env(nil)})
	withTicket := c.open(t, kerberos.Config{Keytab: c.keytab, Principal: "downpour"}, nil)
	without := c.open(t, kerberos.Config{Keytab: c.keytab, Principal: "downpour"}, nil)
	if err := withTicket(ctx); err != nil {
		t.Fatal(err)
	}

	c.kdc.Stop()
	if err := c.query(ctx, g); err != nil {
		t.Errorf("gateway: %v", err)
	}
	if err := withTicket(ctx); err != nil {
		t.Errorf("new connections with tickets: %v", err)
	}
	if err := without(ctx); err == nil || !strings.Contains(err.Error(), "no KDC of "+e2e.Realm+" can be reached") {
		t.Errorf("without a ticket: got %v, want that no KDC can be reached", err)
	}
	// A program that starts in the meantime waits, and says why.
	soon, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if _, err := e2e.StartGateway(soon, e2e.ProgramOptions{Env: c.env(nil)}); err == nil ||
		!strings.Contains(err.Error(), "no KDC of "+e2e.Realm+" can be reached") {
		t.Errorf("a gateway's start: got %v, want that no KDC can be reached", err)
	}
	if err := c.kdc.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := e2e.Until(ctx, 100*time.Millisecond, without); err != nil {
		t.Errorf("the KDC is back: %v", err)
	}
}
