//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"maps"
	"testing"
	"time"

	"downpour/integration/compare"
	"downpour/integration/e2e"
)

// securedCluster is an HBase with Kerberos, with OpenTSDB's tables.
type securedCluster struct {
	kdc    *e2e.KDC
	hbase  *e2e.HBase
	tables e2e.Tables
	keytab string // of the principal downpour
}

func startSecured(t *testing.T, o e2e.KDCOptions) *securedCluster {
	t.Helper()
	ctx := within(t, patience)
	c := &securedCluster{tables: e2e.TablesWithPrefix("tsdb")}
	began := time.Now()
	c.kdc = must[*e2e.KDC](t)(e2e.StartKDC(ctx, o))
	closeAtEnd(t, c.kdc)
	c.keytab = must[string](t)(c.kdc.Keytab(ctx, "downpour"))

	c.hbase = must[*e2e.HBase](t)(e2e.StartHBase(ctx, e2e.HBaseOptions{KDC: c.kdc, RegionServers: 1, RegionServerMiB: 384, QuickStart: true}))
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
		"DOWNPOUR_HBASE_KERBEROS": "keytab:" + c.keytab,
		// Of the server _HOST is localhost, as hbase:meta has it.
		"DOWNPOUR_HBASE_PRINCIPAL": "downpour@" + e2e.Realm,
		"KRB5_CONFIG":              c.kdc.Krb5Conf(),
	}
	maps.Copy(env, more)
	return env
}

// Points that are put through a gateway into a secured HBase, with each protection, are
// the ones that queries of all the others find.
func TestKerberos_putAndQuery(t *testing.T) {
	c := startSecured(t, e2e.KDCOptions{})
	ctx := within(t, 2*time.Minute)

	const perGateway = 500
	protections := []string{"privacy", "integrity", "authentication"}
	var gateways []*e2e.Program
	for i, protection := range protections {
		g := startGateway(t, e2e.ProgramOptions{Env: c.env(map[string]string{"DOWNPOUR_HBASE_PROTECTION": protection})})
		gateways = append(gateways, g)
		var points []e2e.Point
		for p := range perGateway {
			points = append(points, e2e.Point{Metric: "k.m", Timestamp: dataStart + int64(p), Value: fmt.Appendf(nil, "%d", p*(i+1)), Tags: map[string]string{"by": protection}})
		}
		if err := e2e.Put(ctx, g.URL, points); err != nil {
			t.Fatalf("%s: %v", protection, err)
		}
	}

	var want bytes.Buffer
	want.WriteString(`[{"metric":"k.m","tags":{},"aggregateTags":["by"],"dps":{`)
	for p := range perGateway {
		fmt.Fprintf(&want, `%s"%d":%d`, map[bool]string{true: "", false: ","}[p == 0], dataStart+p, p*(1+2+3))
	}
	want.WriteString("}}]")
	for i, g := range gateways {
		a := must[e2e.Answer](t)(e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&end=%d&m=sum:k.m", g.URL, dataStart, dataStart+perGateway)))
		r, err := compare.Comparer{}.Answers(compare.Answer{Status: 200, Body: want.Bytes()}, compare.Answer{Status: a.Status, Body: a.Body})
		if err != nil || !r.Equal() {
			t.Errorf("%s: error %v, %v", protections[i], err, r)
		}
	}
}
