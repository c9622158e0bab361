//go:build integration

package integration

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"downpour/integration/compare"
	"downpour/integration/conformance"
	"downpour/integration/e2e"
	"downpour/pushdown/process/certificates"
	"downpour/pushdown/process/certificates/certificatestest"
	store "downpour/pushdown/store/hbase"
)

var matrixFlag = flag.Bool("matrix", false, "TestMatrix: every version of HBase, "+
	"protection and way to find servers, and write the table of pushdown/docs/hbase.md")

// kind is a way to set a cluster up. Its protections are tried one after the other.
type kind struct {
	name        string
	kdc         bool
	tls, mutual bool
	since       string   // the first version that has it; empty for all
	protections []string // as the table names them
}

var kinds = []kind{
	{name: "simple", protections: []string{"simple"}},
	{
		name:        "Kerberos",
		kdc:         true,
		protections: []string{"Kerberos, authentication", "Kerberos, integrity", "Kerberos, privacy"},
	},
	{name: "TLS", tls: true, since: "2.6", protections: []string{"TLS"}},
	{name: "mutual TLS", tls: true, mutual: true, since: "2.6", protections: []string{"mutual TLS"}},
	{
		name:        "mutual TLS with Kerberos",
		kdc:         true,
		tls:         true,
		mutual:      true,
		since:       "2.6",
		protections: []string{"mutual TLS and Kerberos, privacy"},
	},
}

// ways are the forms of DOWNPOUR_STORE.
var ways = []string{"ZooKeeper", "bootstrap nodes"}

// cell is one entry of the table: version, protection, way.
type cell struct{ version, protection, way string }

// Versions of HBase, protections of connections and ways to find servers: in each cell of the
// table our tables are made, points put, recorded questions asked, a live query goes on, a region is split, rows are
// compacted and a region server is killed, and everything is as it was recorded. Without -matrix it is the cell that
// most others are not like: the newest release, mutual TLS, bootstrap nodes.
func TestMatrix(t *testing.T) {
	t.Parallel()
	known := must[[]string](t)(e2e.HBaseVersions())
	usual := known[len(known)-1] // the newest that setup gets for make test
	versions := slices.Sorted(slices.Values(known))
	outcomes := map[cell]string{}
	for _, version := range versions {
		for _, k := range kinds {
			switch {
			case k.since != "" && strings.TrimSuffix(version, "-hadoop3") < k.since:
				for _, p := range k.protections {
					for _, way := range ways {
						outcomes[cell{version, p, way}] = "no TLS before " + k.since
					}
				}
			case *matrixFlag || version == usual && k.name == "mutual TLS":
				t.Run(version+" "+k.name, func(t *testing.T) { k.run(t, version, outcomes) })
				// At once, so that a run that is cut off is not wasted.
				if *matrixFlag {
					writeMatrix(t, versions, outcomes)
				}
			}
		}
	}
}

// arena is one running cluster of a kind.
type arena struct {
	kind
	hbase  *e2e.HBase
	kdc    *e2e.KDC
	keytab string
	ca     *certificatestest.CA
	ours   certificatestest.Certificate
}

// run starts a cluster and tries its cells.
func (k kind) run(t *testing.T, version string, outcomes map[cell]string) {
	a := k.start(t, version)
	for i, protection := range k.protections {
		for j, way := range ways {
			if !*matrixFlag && way != "bootstrap nodes" {
				continue
			}
			c := cell{version, protection, way}
			outcomes[c] = "failed"
			t.Run(protection+", "+way, func(t *testing.T) {
				began := time.Now()
				a.try(t, version, fmt.Sprintf("m%d%d", i, j), a.env(protection, way))
				outcomes[c] = "equal"
				t.Logf("took %v", time.Since(began).Round(time.Second))
			})
		}
	}
	if k.mutual && !k.kdc {
		t.Run("refusals", a.refusals)
	}
}

func (k kind) start(t *testing.T, version string) *arena {
	t.Helper()
	ctx := within(t, patience)
	a := &arena{kind: k}
	o := e2e.HBaseOptions{
		Version:         version,
		RegionServers:   2,
		RegionServerMiB: 384,
		SessionTimeout:  4 * time.Second,
		QuickStart:      true,
	}
	if k.kdc {
		a.kdc = must[*e2e.KDC](t)(e2e.StartKDC(ctx))
		closeAtEnd(t, a.kdc)
		a.keytab = must[string](t)(a.kdc.Keytab(ctx, "downpour"))
		o.KDC = a.kdc
	}
	if k.tls {
		a.ca = certificatestest.NewCA(t)
		servers := a.ca.Issue("localhost", "127.0.0.1")
		a.ours = a.ca.Issue("localhost", "127.0.0.1")
		o.TLS = &e2e.HBaseTLS{KeyStore: servers.KeyStore, TrustStore: a.ca.File, Mutual: k.mutual}
	}
	began := time.Now()
	a.hbase = must[*e2e.HBase](t)(e2e.StartHBase(ctx, o))
	closeAtEnd(t, a.hbase)
	t.Logf("HBase %s, %s: up after %.1f s", version, k.name, time.Since(began).Seconds())
	return a
}

// env holds the variables of our programs for a protection and a way.
func (a *arena) env(protection, way string) map[string]string {
	env := map[string]string{"DOWNPOUR_STORE": "hbase:" + a.hbase.Quorum()}
	if way == "bootstrap nodes" {
		// The master, and a region server that will be killed.
		env["DOWNPOUR_STORE"] = "hbase+rpc://" + a.hbase.MasterAddr() + "," + a.hbase.RegionServerAddr(1)
	}
	if a.kdc != nil {
		_, kerberos, _ := strings.Cut(protection, "Kerberos, ")
		maps.Copy(env, map[string]string{
			"DOWNPOUR_HBASE_KERBEROS":   "keytab:" + a.keytab + ":downpour@" + e2e.Realm,
			"DOWNPOUR_HBASE_PROTECTION": kerberos, "DOWNPOUR_KRB5_CONF": a.kdc.Krb5Conf(),
		})
	}
	if a.ca != nil {
		env["DOWNPOUR_HBASE_TLS"] = a.ca.File
	}
	if a.mutual {
		env["DOWNPOUR_HBASE_TLS_CERT"], env["DOWNPOUR_HBASE_TLS_KEY"] = a.ours.CertFile, a.ours.KeyFile
	}
	return env
}

// try tries one cell in tables of its own, which our command makes. The killed server is back at its end.
func (a *arena) try(t *testing.T, version, prefix string, env map[string]string) {
	ctx := within(t, 5*time.Minute)
	tables := e2e.TablesWithPrefix(prefix)
	maps.Copy(env, map[string]string{
		"DOWNPOUR_TABLE_DATA": tables.Data, "DOWNPOUR_TABLE_UID": tables.UID, "DOWNPOUR_TABLE_STATE": prefix + "-state",
		"DOWNPOUR_TABLE_META": tables.Meta, "DOWNPOUR_TABLE_TREE": tables.Tree,
	})
	if status, out := gatewayCommand(ctx, t, env, "-create-tables"); status != 0 {
		t.Fatalf("-create-tables: exit status %d\n%s", status, out)
	}
	p := must[*e2e.Program](t)(e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env}))
	closeAtEnd(t, p)
	ofGateway := maps.Clone(env)
	maps.Copy(ofGateway, map[string]string{
		"DOWNPOUR_PUSHDOWN":     p.Addr,
		"DOWNPOUR_AUTO_METRICS": "true",
		"DOWNPOUR_RESULT_CACHE": "off",
	})
	g := startGateway(t, e2e.ProgramOptions{Env: ofGateway})

	r := must[*conformance.Data](t)(conformance.Load("seed1"))
	if err := errors.Join(assignRecorded(ctx, g, r), putRecorded(ctx, g, r)); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	livePoint := func(ago int64) []e2e.Point {
		return []e2e.Point{
			{Metric: "live.m", Timestamp: now - ago, Value: fmt.Append(nil, ago), Tags: map[string]string{"host": "a"}},
		}
	}
	put(ctx, t, g.URL, livePoint(100))
	live := subscribeLive(t, g,
		`{"start":"1h-ago","queries":[{"metric":"live.m","aggregator":"sum","downsample":"1s-sum"}]}`, g.URL)
	settle := func(ago int64, what string) {
		t.Helper()
		put(ctx, t, g.URL, livePoint(ago))
		live.settle(ctx, what)
	}
	settle(90, "live")
	mustBeRecorded(ctx, t, g, r, "at first")

	rows := must[[]e2e.Cell](t)(a.hbase.Admin.Scan(ctx, tables.Data))
	if err := a.hbase.Admin.Split(ctx, tables.Data, rows[len(rows)/2].Row); err != nil {
		t.Fatal(err)
	}
	mustBeRecorded(ctx, t, g, r, "after a split")
	settle(80, "live after a split")

	compactRecorded(ctx, t, version, env, r)
	mustBeRecorded(ctx, t, g, r, "after row compaction")

	// On local files a killed server may lose what is in its log alone.
	for _, table := range tables.All() {
		if err := a.hbase.Admin.Flush(ctx, table); err != nil {
			t.Fatal(err)
		}
	}
	a.hbase.KillRegionServer(1)
	// An answer that comes while regions are served nowhere is the recorded one or a refusal.
	mustBeRecorded(ctx, t, g, r, "after a server was killed")
	settle(70, "live after a server was killed")

	// HBase 1 leaves regions unassigned for ever when a server is back before its session has ended.
	if err := a.hbase.WaitReady(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := a.hbase.StartRegionServer(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := a.hbase.WaitReady(ctx, 2); err != nil {
		t.Fatal(err)
	}
}

// gatewayCommand runs a command of the gateway to its end.
func gatewayCommand(ctx context.Context, t *testing.T, env map[string]string, args ...string) (status int, out string) {
	t.Helper()
	status, out, err := e2e.Run(ctx, gatewayProgram, e2e.ProgramOptions{Env: env, Args: args, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return status, out
}

// compactRecorded compacts the rows of the recorded points. HBase before 2.4 lacks what that needs:
// the command says so.
func compactRecorded(ctx context.Context, t *testing.T, version string, env map[string]string, r *conformance.Data) {
	t.Helper()
	args := []string{"compact", "-margin", "0s", "1990/01/01-00:00:00", "2030/01/01-00:00:00"}
	for _, a := range r.Assign {
		if strings.HasPrefix(a[0], "metric") {
			args = append(args, a[1])
		}
	}
	status, out := gatewayCommand(ctx, t, env, args...)
	done := regexp.MustCompile(`rows: [1-9][0-9]* compacted`).MatchString(out)
	if known := version >= "2.4"; known != (status == 0 && done) || !known && !strings.Contains(out, "want HBase 2.4") {
		t.Fatalf("compact: exit status %d\n%s", status, out)
	}
}

// assignRecorded gives the names their UIDs in the recorded order.
func assignRecorded(ctx context.Context, g *e2e.Program, r *conformance.Data) error {
	for _, a := range r.Assign {
		answer, err := e2e.Post(ctx,
			g.URL+"/api/uid/assign", map[string][]string{strings.TrimSuffix(a[0], "s"): {a[1]}})
		if err == nil && answer.Status != 200 {
			err = fmt.Errorf("assign %v: status %d: %s", a, answer.Status, answer.Body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putRecorded puts the recorded points.
func putRecorded(ctx context.Context, g *e2e.Program, r *conformance.Data) error {
	for points := range slices.Chunk(r.Points, 2000) {
		answer, err := e2e.Post(ctx, g.URL+"/api/put", points)
		if err == nil && answer.Status != 204 {
			err = fmt.Errorf("put: status %d: %s", answer.Status, answer.Body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mustBeRecorded asks the recorded questions. One that is refused, because its store cannot be
// reached or its time is over, is repeated; any other answer must be the recorded one.
func mustBeRecorded(ctx context.Context, t *testing.T, g *e2e.Program, r *conformance.Data, when string) {
	t.Helper()
	c := compare.Comparer{
		MessageStart: true,
		Permits: []compare.Permit{{Path: compare.Path{"error", "details"}, Kinds: []compare.Kind{compare.Extra},
			Reason: "of errors only code and message were recorded"}},
	}
	began, refused := time.Now(), 0
	for _, q := range r.Queries {
		err := e2e.Until(ctx, 200*time.Millisecond, func(ctx context.Context) error {
			a, err := e2e.Post(ctx, g.URL+"/"+strings.TrimPrefix(q.Path, "/"), string(q.Request))
			if err != nil {
				return err
			}
			if a.Status != q.Status && (a.Status == 408 || a.Status == 424 || a.Status == 503) {
				refused++
				return fmt.Errorf("refused: %d %.300s", a.Status, a.Body)
			}
			report, err := c.Answers(compare.Answer{Status: q.Status, Body: q.Response},
				compare.Answer{Status: a.Status, Body: a.Body})
			if err != nil || !report.Equal() {
				t.Errorf("%s: %s %s: error %v, %v", when, q.Path, q.Request, err, report)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	t.Logf("%s: %d recorded answers in %.1f s, %d refusals before",
		when, len(r.Queries), time.Since(began).Seconds(), refused)
}

// refusals has a server with mutual TLS refuse clients that cannot be it, and one without TLS
// refuse a client that wants it. Each error says why.
func (a *arena) refusals(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	stranger := certificatestest.NewCA(t)
	theirs := stranger.Issue("localhost")
	usual := certificates.Files{Roots: a.ca.File, Cert: a.ours.CertFile, Key: a.ours.KeyFile}
	with := func(change func(*certificates.Files)) *store.Encryption {
		files := usual
		change(&files)
		return &store.Encryption{Certificates: must[*certificates.Reader](t)(certificates.Open(files, nil))}
	}
	const asked = "see DOWNPOUR_HBASE_TLS_CERT and hbase.server.netty.tls.client.auth.mode"
	for _, tc := range []struct {
		name string
		e    *store.Encryption
		want string
	}{
		{"as it should be", with(func(*certificates.Files) {}), ""},
		{"no certificate", with(func(f *certificates.Files) { f.Cert, f.Key = "", "" }), asked},
		{"another's certificate", with(func(f *certificates.Files) {
			f.Cert = theirs.CertFile
			f.Key = theirs.KeyFile
		}), asked},
		{
			"another authority", with(func(f *certificates.Files) { f.Roots = stranger.File }),
			"no authority in DOWNPOUR_HBASE_TLS has issued the server's certificate",
		},
		{"no TLS", nil, "DOWNPOUR_HBASE_TLS is off"},
	} {
		for _, cfg := range []store.Config{{Quorum: a.hbase.Quorum()}, {Nodes: []string{a.hbase.MasterAddr()}}} {
			cfg.Encryption = tc.e
			wantRefusal(ctx, t, tc.name, cfg, tc.want)
		}
	}
	wantRefusal(ctx, t, "a server without TLS",
		store.Config{Quorum: hbase(t).Quorum(), Encryption: with(func(*certificates.Files) {})},
		"the server speaks none")
}

// wantRefusal wants an error with a text, or none where the text is empty. A connection may
// break before the reason has come, so it is tried again.
func wantRefusal(ctx context.Context, t *testing.T, name string, cfg store.Config, want string) {
	t.Helper()
	err := e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		err := readOnce(ctx, cfg)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			return fmt.Errorf("got %v, want %q", err, want)
		}
		t.Logf("%s: %v", name, err)
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// readOnce reads a row on new connections. A fault is not tried again.
func readOnce(ctx context.Context, cfg store.Config) error {
	cfg.RetryTimeout = time.Nanosecond
	st, err := store.Open(cfg)
	if err != nil {
		return err
	}
	defer st.Close()
	_, err = st.Get(ctx, e2e.TablesWithPrefix("m01").UID, "id", [][]byte{[]byte("x")})
	return err
}

// The table stands between these lines of its page.
const tableBegin, tableEnd = "<!-- make matrix writes this table -->\n", "<!-- end -->"

// writeMatrix writes the table into its page. Cells that this run has not tried (-run can choose)
// stay as they are.
func writeMatrix(t *testing.T, versions []string, outcomes map[cell]string) {
	t.Helper()
	path := filepath.Join(must[string](t)(e2e.Root()), "pushdown", "docs", "hbase.md")
	page := string(must[[]byte](t)(os.ReadFile(path)))
	before, rest, ok := strings.Cut(page, tableBegin)
	table, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s: got no place for the table, want lines %q and %q", path, tableBegin, tableEnd)
	}
	had := outcomesIn(table)

	var b strings.Builder
	b.WriteString("| protection |")
	for _, v := range versions {
		for _, way := range ways {
			fmt.Fprintf(&b, " %s |", column(v, way))
		}
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(versions)*len(ways)) + "\n")
	for _, k := range kinds {
		for _, p := range k.protections {
			fmt.Fprintf(&b, "| %s |", p)
			for _, v := range versions {
				for _, way := range ways {
					fmt.Fprintf(&b, " %s |",
						cmp.Or(outcomes[cell{v, p, way}], had[[2]string{p, column(v, way)}], "not tried"))
				}
			}
			b.WriteString("\n")
		}
	}
	if err := os.WriteFile(path, []byte(before+tableBegin+b.String()+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// column is the head of a column of the table.
func column(version, way string) string { return strings.TrimSuffix(version, "-hadoop3") + ", " + way }

// outcomesIn reads what a table says, by protection and column.
func outcomesIn(table string) map[[2]string]string {
	had := map[[2]string]string{}
	var head []string
	for line := range strings.Lines(table) {
		columns := strings.Split(strings.TrimSpace(line), "|")
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		if head == nil {
			head = columns
		}
		for i := 2; i < min(len(head), len(columns))-1; i++ {
			had[[2]string{columns[1], head[i]}] = columns[i]
		}
	}
	return had
}
