package speed

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"downpour/bench"
	"downpour/bench/peer"
	"downpour/bench/report"
	"downpour/bench/workload"
	"downpour/encoding"
	"downpour/gateway/query/plan"
	"downpour/gateway/write"
	"downpour/integration/e2e"
	"downpour/pushdown/process/certificates/certificatestest"
	"downpour/pushdown/store"
)

// protection is a way in which connections to HBase are protected.
type protection struct {
	name string // as java/Scans.java names it
	what string // in the report
	// The aim: at most so many times as long as over plain connections, or as the scan of the same
	// rows by HBase's own client over connections of the same kind. 0 is none.
	timesSimple, timesJava float64
}

// protectionKinds are those that are measured. The first is that of which times are multiples.
var protectionKinds = []protection{
	{name: "simple", what: "plain connections"},
	{name: "authentication", what: "Kerberos, authentication", timesSimple: 1.05},
	{name: "integrity", what: "Kerberos, integrity", timesJava: 1.2},
	{name: "privacy", what: "Kerberos, privacy", timesJava: 1.5},
	{name: "TLS", what: "TLS", timesJava: 1.3},
}

// anyProtection has the servers of a secured cluster take each kind of connection, so that
// one cluster serves all of them and only the client differs.
var anyProtection = map[string]string{
	"hbase.ipc.server.fallback-to-simple-auth-allowed": "true",
	"hbase.server.netty.tls.supportplaintext":          "true",
}

// securedCluster is a cluster that takes each kind of connection, with a data set in one region.
type securedCluster struct {
	dir    directory // certificates
	kdc    *e2e.KDC
	hbase  *e2e.HBase
	java   map[string]*e2e.JavaProgram // HBase's own client, by protection
	store  store.Store
	roots  string // file of the authority
	keytab string
	tables e2e.Tables
	data   workload.Devops
	metric encoding.UID
}

// close ends what has been started.
func (c *securedCluster) close() {
	if c.store != nil {
		c.store.Close()
	}
	for _, java := range c.java {
		java.Close()
	}
	if c.hbase != nil {
		c.hbase.Close()
	}
	if c.kdc != nil {
		c.kdc.Close()
	}
	if c.dir.path != "" {
		c.dir.remove()
	}
}

// start starts the cluster, of the newest HBase that setup gets: earlier ones have no TLS.
func (c *securedCluster) start(ctx context.Context, s *stage) (err error) {
	if c.dir, err = tempDir(); err != nil {
		return err
	}
	authority, err := certificatestest.NewAuthority(c.dir.path)
	if err != nil {
		return err
	}
	servers, err := authority.Issue(time.Now(), "localhost", "127.0.0.1")
	if err != nil {
		return err
	}
	c.roots = authority.File

	if c.kdc, err = e2e.StartKDC(ctx); err != nil {
		return err
	}
	if c.keytab, err = c.kdc.Keytab(ctx, "downpour"); err != nil {
		return err
	}
	versions, err := e2e.HBaseVersions()
	if err != nil {
		return err
	}
	newest := versions[len(versions)-1]
	s.cfg.Progress.Sayf("starting HBase %s with Kerberos and TLS", newest)
	c.hbase, err = e2e.StartHBase(ctx, e2e.HBaseOptions{Version: newest, RegionServers: 1, RegionServerMiB: 3072, KDC: c.kdc,
		TLS: &e2e.HBaseTLS{KeyStore: servers.KeyStore, TrustStore: authority.File}, Site: anyProtection})
	if err != nil {
		return err
	}
	s.cfg.Report.AddPeer(report.Peer{Name: peer.HBase + ", secured", Version: newest + ", one region server of 3 GiB"})

	c.java = map[string]*e2e.JavaProgram{}
	for _, p := range protectionKinds {
		java, err := c.hbase.StartJava(ctx, "scans-"+p.name, filepath.Join("bench", "speed", "java", "Scans.java"), 512, "-Dscans.protection="+p.name)
		if err != nil {
			return err
		}
		c.java[p.name] = java
	}
	return nil
}

// load writes the data set, compacted, in one file.
func (c *securedCluster) load(ctx context.Context, s *stage, d workload.Devops) (err error) {
	c.data, c.tables = d, e2e.TablesWithPrefix("protected")
	if c.store, err = s.cfg.Open("hbase:" + c.hbase.Quorum()); err != nil {
		return err
	}
	if err := createTables(ctx, c.store, c.tables); err != nil {
		return err
	}

	s.cfg.Progress.Sayf("loading %s", d)
	c.metric, err = load(ctx, c.store, c.hbase, c.tables, d, write.MultiPoint)
	return err
}

// env holds the settings of a gateway whose connections are protected in a way.
func (c *securedCluster) env(p protection, scan map[string]string) map[string]string {
	env := map[string]string{}
	maps.Copy(env, scan)
	switch p.name {
	case "simple":
	case "TLS":
		env["DOWNPOUR_HBASE_TLS"] = c.roots
	default:
		maps.Copy(env, map[string]string{
			"DOWNPOUR_HBASE_KERBEROS":   "keytab:" + c.keytab + ":downpour@" + e2e.Realm,
			"DOWNPOUR_HBASE_PROTECTION": p.name, "DOWNPOUR_KRB5_CONF": c.kdc.Krb5Conf(),
		})
	}
	return env
}

// gateway starts a gateway whose connections are protected in a way.
func (c *securedCluster) gateway(ctx context.Context, s *stage, p protection) (*peer.Server, error) {
	return s.started(peer.StartDownpour(ctx, peer.Options{Quorum: c.hbase.Quorum(), Tables: c.tables, Env: c.env(p, s.cfg.ScanEnv)}))
}

// javaScan reads the rows of the data set by HBase's own client, in one scan, and returns how
// long that took.
func (c *securedCluster) javaScan(ctx context.Context, p protection) (time.Duration, error) {
	from, to := plan.ScanRange(c.data.Start*1000, c.data.End()*1000-1000, nil)
	schema := encoding.DefaultSchema()
	key := func(at int64) string {
		return hex.EncodeToString(schema.AppendRangeKey(nil, 0, c.metric, uint32(at)))
	}
	lines, err := c.java[p.name].Call(ctx, c.tables.Data, key(from), key(to))
	if err != nil {
		return 0, err
	}

	var took time.Duration
	var rows, cells int64
	if _, err := fmt.Sscan(strings.Join(lines, " "), &took, &rows, &cells); err != nil {
		return 0, fmt.Errorf("scan by HBase's client: answer %q: %w", lines, err)
	}
	if want := rowsIn(c.data); rows != want {
		return 0, fmt.Errorf("scan by HBase's client, %s: got %d rows, want %d", p.name, rows, want)
	}
	return took, nil
}

// protections measures what protecting connections to HBase costs: a large query by gateways of
// which each protects its connections in another way, beside HBase's own client, which scans the same rows
// over connections of the same kind; then the first query of new processes.
func protections(ctx context.Context, s *stage, g group) (err error) {
	d := s.cfg.dataAt(g.scale)
	d.MetricCount = 1
	var c securedCluster
	defer c.close()
	if err := c.start(ctx, s); err != nil {
		return err
	}
	if err := c.load(ctx, s, d); err != nil {
		return err
	}

	var gateways []*peer.Server
	defer func() {
		for _, gateway := range gateways {
			gateway.Close()
		}
	}()
	query := d.Whole("sum:5m-avg:%s")
	for _, p := range protectionKinds {
		gateway, err := c.gateway(ctx, s, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.what, err)
		}
		gateways = append(gateways, gateway)
		if err := peer.Agree(ctx, gateways[0], gateway, query); err != nil {
			return fmt.Errorf("%s: %w", p.what, err)
		}
	}
	if err := c.queries(ctx, s, g, gateways, query); err != nil {
		return err
	}
	return c.firstQueries(ctx, s, query)
}

// queries measures the query by each gateway and the scan by HBase's client.
func (c *securedCluster) queries(ctx context.Context, s *stage, g group, gateways []*peer.Server, query workload.Query) error {
	s.cfg.Progress.Sayf("measuring %s", g)
	const warm = 8 // Java compiles what runs often
	variants := workload.Take(s.cfg.Rounds+warm, query.Vary(slack, 1, s.cfg.Data.Seed))
	ofQuery := func(p protection) string { return "sum:5m-avg, compacted rows, " + p.what }
	ofJava := func(p protection) string { return "the same rows scanned by HBase's client, " + p.what }
	points := int64(c.data.Points())

	var steps []bench.Step
	for i, p := range protectionKinds {
		ours := bench.Step{Name: ofQuery(p), Of: ofQuery(protectionKinds[0]), Work: points, Unit: "points", Run: bench.Timed(func(ctx context.Context, round int) error {
			return gateways[i].Drain(ctx, variants[(round+len(variants))%len(variants)])
		})}
		java := bench.Step{Name: ofJava(p), Of: ofJava(protectionKinds[0]), Work: points, Unit: "points",
			Run: func(ctx context.Context, _ int) (time.Duration, error) { return c.javaScan(ctx, p) }}
		steps = append(steps, ours, java)
	}
	figures, err := s.interleave(ctx, steps, warm, s.cfg.Rounds)
	if err != nil {
		return err
	}

	for _, p := range protectionKinds {
		if p.timesSimple > 0 {
			s.aim(within("protections", g, ofQuery(p), p.timesSimple, figures[ofQuery(p)], figures[ofQuery(protectionKinds[0])], protectionKinds[0].what))
		}
		if p.timesJava > 0 {
			s.aim(within("protections", g, ofQuery(p), p.timesJava, figures[ofQuery(p)], figures[ofJava(p)], "scan of the same rows by HBase's own client, the same protection"))
		}
	}
	return nil
}

// firstQueries measures the first query of gateways that have just started, and the time from
// their start to its answer. A gateway has looked at its tables by then, so it has connections.
func (c *securedCluster) firstQueries(ctx context.Context, s *stage, query workload.Query) error {
	s.cfg.Progress.Sayf("measuring first queries of new processes")
	var steps []bench.Step
	for _, p := range protectionKinds {
		first := func(whole bool) func(context.Context, int) (time.Duration, error) {
			return func(ctx context.Context, _ int) (time.Duration, error) {
				began := time.Now()
				gateway, err := c.gateway(ctx, s, p)
				if err != nil {
					return 0, err
				}
				if !whole {
					began = time.Now()
				}
				err = gateway.Drain(ctx, query)
				return time.Since(began), errors.Join(err, gateway.Close())
			}
		}
		for _, of := range []struct {
			name string
			run  func(context.Context, int) (time.Duration, error)
		}{{"first query of a process, ", first(false)}, {"a process's start and first query, ", first(true)}} {
			steps = append(steps, bench.Step{Name: of.name + p.what, Of: of.name + protectionKinds[0].what, Work: 1, Unit: "queries", Run: of.run})
		}
	}
	_, err := s.interleave(ctx, steps, 1, s.cfg.Rounds)
	return err
}
