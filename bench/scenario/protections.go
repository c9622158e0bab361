package scenario

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"downpour/bench/peer"
	"downpour/bench/place"
	"downpour/bench/report"
	"downpour/encoding"
	"downpour/gateway/query/plan"
	"downpour/integration/e2e"
	"downpour/pushdown/process/certificates/certificatestest"
)

// The sides of a secured cluster, by how their connections are protected.
const (
	plain          = "simple"
	authentication = "authentication"
	integrity      = "integrity"
	privacy        = "privacy"
	encrypted      = "TLS"
)

// protectionKinds are all of them, as java/Scans.java names them.
var protectionKinds = []string{plain, authentication, integrity, privacy, encrypted}

// protectedBy is the side of a kind, called by name in figures.
func protectedBy(kind, name string) side {
	return side{name: name, reads: true, further: func(s *stage) map[string]string { return s.set.secured.env(kind) }}
}

// anyProtection has the servers of a secured cluster take each kind of connection, so that
// one cluster serves all of them and only the client differs.
var anyProtection = map[string]string{
	"hbase.ipc.server.fallback-to-simple-auth-allowed": "true",
	"hbase.server.netty.tls.supportplaintext":          "true",
}

// securedCluster is a cluster that takes each kind of connection, so that only the client differs.
type securedCluster struct {
	dir    string // certificates
	kdc    *e2e.KDC
	hbase  *e2e.HBase
	java   map[string]*e2e.JavaProgram // HBase's own client, by protection
	roots  string                      // file of the authority
	keytab string
	maker  place.Maker
}

// close ends what has been started.
func (c *securedCluster) close() {
	c.maker.Close()
	for _, java := range c.java {
		java.Close()
	}
	if c.hbase != nil {
		c.hbase.Close()
	}
	if c.kdc != nil {
		c.kdc.Close()
	}
	if c.dir != "" {
		os.RemoveAll(c.dir)
	}
}

// start starts the cluster, of the newest HBase that setup gets: earlier ones have no TLS.
func (c *securedCluster) start(ctx context.Context, s *stage) (err error) {
	if c.dir, err = place.TempDir("bench-"); err != nil {
		return err
	}
	authority, err := certificatestest.NewAuthority(c.dir)
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
	c.hbase, err = e2e.StartHBase(ctx, e2e.HBaseOptions{
		Version: newest, RegionServers: 1, RegionServerMiB: 3072, KDC: c.kdc, Site: anyProtection,
		TLS: &e2e.HBaseTLS{KeyStore: servers.KeyStore, TrustStore: authority.File},
	})
	if err != nil {
		return err
	}
	s.cfg.Report.AddPeer(report.Peer{Name: peer.HBase + ", secured", Version: newest + ", one region server of 3 GiB"})

	c.java = map[string]*e2e.JavaProgram{}
	source := filepath.Join("bench", "scenario", "java", "Scans.java")
	for _, kind := range protectionKinds {
		java, err := c.hbase.StartJava(ctx, "scans-"+kind, source, 512, "-Dscans.protection="+kind)
		if err != nil {
			return err
		}
		c.java[kind] = java
	}
	return nil
}

// secure starts a cluster for the data set, in a place there.
func (t *set) secure(ctx context.Context, s *stage) (err error) {
	c := &securedCluster{}
	t.secured, t.end = c, append(t.end, c.close)
	if err := c.start(ctx, s); err != nil {
		return err
	}
	c.maker = place.Maker{
		Name: "protected", HBase: c.hbase, Open: s.cfg.Open, Report: &report.Report{}, Progress: s.cfg.Progress,
	}
	t.at, err = c.maker.OnHBase(ctx, nil)
	return err
}

// env holds the settings of a gateway whose connections are protected in a way.
func (c *securedCluster) env(kind string) map[string]string {
	switch kind {
	case plain:
		return nil
	case encrypted:
		return map[string]string{"DOWNPOUR_HBASE_TLS": c.roots}
	}
	return map[string]string{
		"DOWNPOUR_HBASE_KERBEROS":   "keytab:" + c.keytab + ":downpour@" + e2e.Realm,
		"DOWNPOUR_HBASE_PROTECTION": kind,
		"DOWNPOUR_KRB5_CONF":        c.kdc.Krb5Conf(),
	}
}

// javaScan reads the rows of the data set by HBase's own client, in one scan, and returns how
// long that took.
func (c *securedCluster) javaScan(ctx context.Context, t *set, kind string) (time.Duration, error) {
	from, to := plan.ScanRange(t.data.Start*1000, t.data.End()*1000-1000, nil)
	schema := encoding.DefaultSchema()
	key := func(at int64) string {
		return hex.EncodeToString(schema.AppendRangeKey(nil, 0, t.metric, uint32(at)))
	}
	lines, err := c.java[kind].Call(ctx, t.at.Tables.Data, key(from), key(to))
	if err != nil {
		return 0, err
	}

	var took time.Duration
	var rows, cells int64
	if _, err := fmt.Sscan(strings.Join(lines, " "), &took, &rows, &cells); err != nil {
		return 0, fmt.Errorf("scan by HBase's client: answer %q: %w", lines, err)
	}
	if want := rowsIn(t.data); rows != want {
		return 0, fmt.Errorf("scan by HBase's client, %s: got %d rows, want %d", kind, rows, want)
	}
	return took, nil
}
