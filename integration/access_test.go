//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"downpour/integration/differential"
	"downpour/integration/e2e"
	"downpour/pushdown/store"
	hbasestore "downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/kerberos"
)

// accessCluster is a secured HBase that gives nobody a right unless told to.
type accessCluster struct {
	*testing.T
	*securedCluster
	rollups string // the file that names the tables of rollups
	feeder  *e2e.Program
}

// accessSite has HBase's AccessController check each call.
var accessSite = map[string]string{
	"hbase.security.authorization":           "true",
	"hbase.security.exec.permission.checks":  "true",
	"hbase.coprocessor.master.classes":       accessController,
	"hbase.coprocessor.region.classes":       accessController,
	"hbase.coprocessor.regionserver.classes": accessController,
}

const accessController = "org.apache.hadoop.hbase.security.access.AccessController"

// user is a principal, the rights that its work needs, by table or namespace, and the work: all of
// it, in processes of its own. An error of the work says what was refused.
type user struct {
	name   string
	rights map[string]string
	work   func(ctx context.Context, env map[string]string) error
}

// The rights that pushdown/docs/kerberos.md says are enough for each program are enough, and each of
// them is needed: without it the program says which right it lacks, and where, instead of a
// shorter answer.
func TestAccess(t *testing.T) {
	t.Parallel()
	c := &accessCluster{T: t, securedCluster: startSecured(t, e2e.HBaseOptions{Site: accessSite})}
	c.rollups = writeFile(t, "rollups.json", differential.RollupConfig(c.tables.Data))
	for _, u := range c.users() {
		t.Run(u.name, func(t *testing.T) { c.try(t, u) })
	}
	t.Run("columns", c.columns)
}

// columns gives a user one column: HBase leaves out the others and refuses nothing, so our programs refuse to start.
func (c *accessCluster) columns(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	if err := c.feed(ctx); err != nil {
		t.Fatal(err)
	}
	cells := must[[]e2e.Cell](t)(c.hbase.Admin.Scan(ctx, c.tables.Data))
	const name = "narrow"
	keytab := must[string](t)(c.kdc.Keytab(ctx, name))
	err := errors.Join(c.hbase.Admin.Grant(ctx, name, c.tables.UID, "R"),
		c.hbase.Admin.GrantColumn(ctx, name, c.tables.Data, cells[0].Qualifier))
	if err != nil {
		t.Fatal(err)
	}

	client := must[*kerberos.Client](t)(
		kerberos.Open(kerberos.Config{Keytab: keytab, Principal: name, Krb5Conf: c.kdc.Krb5Conf()}, nil),
	)
	st := must[*hbasestore.Store](t)(
		hbasestore.Open(hbasestore.Config{Quorum: c.hbase.Quorum(), Security: &hbasestore.Security{Client: client}}),
	)
	defer st.Close()
	err = e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		n := 0
		for rows, err := range store.Blocks(ctx, st, store.Scan{Table: c.tables.Data, Family: "t"}) {
			if err != nil {
				return err
			}
			for _, r := range rows {
				n += len(r.Cells)
			}
		}
		if n == 0 || n == len(cells) {
			return fmt.Errorf("read %d cells of %d, want some and not all", n, len(cells))
		}
		t.Logf("HBase leaves out %d cells of %d, without an error", len(cells)-n, len(cells))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	env := c.env(map[string]string{"DOWNPOUR_HBASE_KERBEROS": "keytab:" + keytab + ":" + name + "@" + e2e.Realm})
	pushdown := maps.Clone(env)
	delete(pushdown, "DOWNPOUR_AUTO_METRICS")
	_, asPushdown := e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: pushdown})
	for program, err := range map[string]error{
		"gateway":         c.on(ctx, env, nil, func(*e2e.Program) error { return nil }),
		"tool":            c.run(ctx, env, "export", "2012/12/31-00:00:00", "sum", "acl.m"),
		"pushdown server": asPushdown,
	} {
		if err == nil ||
			!strings.Contains(err.Error(), "lacks the right READ (in grant of hbase shell: 'R') on all of families") {
			t.Errorf("%s: got %v, want that it does not start", program, err)
		}
	}
}

// try gives a user its rights, has it work, and takes one right after the other away.
func (c *accessCluster) try(t *testing.T, u user) {
	ctx := within(t, 10*time.Minute)
	env := c.env(map[string]string{
		"DOWNPOUR_HBASE_KERBEROS": "keytab:" + must[string](t)(c.kdc.Keytab(ctx, u.name)) + ":" + u.name +
			"@" + e2e.Realm,
		"DOWNPOUR_QUERY_TIMEOUT": queryTimeout.String(),
	})
	grant := func(where, letters string) {
		t.Helper()
		if err := c.hbase.Admin.Grant(ctx, u.name, where, letters); err != nil {
			t.Fatal(err)
		}
	}
	for where, letters := range u.rights {
		grant(where, letters)
	}
	// Region servers hear of rights some time after they were given, or taken.
	soon, cancel := context.WithTimeout(ctx, waitForRights)
	defer cancel()
	var fault error
	err := e2e.Until(soon, 100*time.Millisecond, func(ctx context.Context) error {
		if err := u.work(ctx, env); err != nil && strings.Contains(err.Error(), " lacks the right ") {
			return err
		} else if err != nil {
			fault = err // no right mends it
		}
		return nil
	})
	if err := errors.Join(err, fault); err != nil {
		t.Fatalf("with all rights: %v", err)
	}

	for _, where := range slices.Sorted(maps.Keys(u.rights)) {
		for _, letter := range u.rights[where] {
			grant(where, strings.ReplaceAll(u.rights[where], string(letter), ""))
			c.refused(ctx, t, u, env, where, letter)
			grant(where, u.rights[where])
		}
	}
}

const (
	// queryTimeout is long, so that a query that tries again what is refused is seen to hang.
	queryTimeout = 10 * time.Minute
	// refusedWithin is how long the work of a program may take that lacks a right.
	refusedWithin = 2 * time.Minute
	// waitForRights is how long region servers may take to hear of a right.
	waitForRights = 3 * time.Minute
)

// refused wants an error that names the right and the table, and soon.
func (c *accessCluster) refused(
	ctx context.Context, t *testing.T, u user, env map[string]string, where string, letter rune,
) {
	t.Helper()
	right := map[rune]string{'R': "READ", 'W': "WRITE", 'C': "CREATE"}[letter]
	want := fmt.Sprintf(" lacks the right %s (in grant of hbase shell: '%c')", right, letter)
	name := strings.TrimPrefix(where, "@")
	ctx, cancel := context.WithTimeout(ctx, waitForRights)
	defer cancel()
	err := e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		began := time.Now()
		err := u.work(ctx, env)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			return fmt.Errorf("got %w, want %q and %q", err, want, name)
		}
		if took := time.Since(began); took > refusedWithin {
			return fmt.Errorf("the refusal took %v, want less than %v: %w", took, refusedWithin, err)
		}
		for line := range strings.Lines(err.Error()) {
			if strings.Contains(line, want) {
				t.Logf("%s without %c on %s: %.400s", u.name, letter, where, strings.TrimSpace(line))
				break
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s without %c on %s: %v", u.name, letter, where, err)
	}
}

// users are the programs and their least rights. The first makes what the others use.
func (c *accessCluster) users() []user {
	data, uid, meta, tree, state := c.tables.Data, c.tables.UID, c.tables.Meta, c.tables.Tree, "downpour-state"
	rollups := map[string]string{data: "R", uid: "R", state: "RW"}
	for _, table := range differential.RollupTables(data) {
		if !strings.HasSuffix(table, "-pre") { // no job makes pre-aggregates
			rollups[table] = "RW"
		}
	}
	return []user{
		{"maker", map[string]string{"@default": "C"}, c.createTables},
		{"rw", map[string]string{data: "RW", uid: "RW"}, c.putAndQuery},
		{"rwmeta", map[string]string{data: "RW", uid: "RW", meta: "RW", tree: "RW", state: "RW"}, c.putAndDescribe},
		{"cached", map[string]string{data: "RC", uid: "R"}, c.cached},
		{"ro", map[string]string{data: "R", uid: "R", meta: "R", state: "R"}, c.readOnly},
		{"pushdown", map[string]string{data: "R"}, c.ofPushdown},
		{
			"compacting",
			map[string]string{data: "RWC", state: "RW", uid: "R"},
			c.tool("compact", "-margin", "0s", "2012/12/31-00:00:00", "2013/01/02-00:00:00", "acl.m"),
		},
		{"retaining", map[string]string{data: "RW", state: "RW", uid: "R"}, c.retaining},
		{"rolling", rollups, c.tool("rollup", "2012/12/31-00:00:00", "2013/01/02-00:00:00", "acl.m")},
	}
}

// createTables makes all tables, and again a table that does not exist yet.
func (c *accessCluster) createTables(ctx context.Context, env map[string]string) error {
	env = maps.Clone(env)
	env["DOWNPOUR_ROLLUPS"] = "auto:" + c.rollups
	made, err := c.hbase.Admin.Tables(ctx)
	if err != nil {
		return err
	}
	// An other one each time, because who made a table has all rights on it.
	env["DOWNPOUR_TABLE_STATE"] = "downpour-state"
	if slices.Contains(made, "downpour-state") {
		env["DOWNPOUR_TABLE_STATE"] = "state-" + strconv.Itoa(len(made))
	}
	return c.run(ctx, env, "-create-tables")
}

// tool returns work that runs a command of the gateway.
func (c *accessCluster) tool(args ...string) func(context.Context, map[string]string) error {
	return func(ctx context.Context, env map[string]string) error {
		env = maps.Clone(env)
		env["DOWNPOUR_ROLLUPS"] = "auto:" + c.rollups
		if err := c.feed(ctx); err != nil {
			return err
		}
		return c.run(ctx, env, args...)
	}
}

func (c *accessCluster) run(ctx context.Context, env map[string]string, args ...string) error {
	status, out, err := e2e.Run(ctx, "./gateway/cmd/gateway", e2e.ProgramOptions{
		Env:  env,
		Dir:  c.TempDir(),
		Args: args,
	})
	if err == nil && status != 0 {
		err = fmt.Errorf("%v: status %d: %s", args, status, out)
	}
	return err
}

// feed puts points into a new row, so that each run of a job has something to do. The gateway that
// does it has all rights that this needs.
func (c *accessCluster) feed(ctx context.Context) error {
	if c.feeder == nil {
		keytab, err := c.kdc.Keytab(ctx, "feeder")
		if err != nil {
			return err
		}
		env := c.env(map[string]string{"DOWNPOUR_HBASE_KERBEROS": "keytab:" + keytab + ":feeder@" + e2e.Realm})
		for _, table := range []string{c.tables.Data, c.tables.UID} {
			if err := c.hbase.Admin.Grant(ctx, "feeder", table, "RW"); err != nil {
				return err
			}
		}
		g, err := e2e.StartGateway(ctx, e2e.ProgramOptions{Env: env})
		if err != nil {
			return err
		}
		closeAtEnd(c.T, g)
		c.feeder = g
	}
	host := strconv.FormatInt(time.Now().UnixNano(), 10)
	var points []e2e.Point
	for _, metric := range []string{"acl.m", "acl.past"} {
		for i := range int64(2) {
			points = append(points, e2e.Point{
				Metric:    metric,
				Timestamp: dataStart + i,
				Value:     []byte("1"),
				Tags:      map[string]string{"host": host},
			})
		}
	}
	return e2e.Put(ctx, c.feeder.URL, points)
}

var rowsToDelete = regexp.MustCompile(`table \S+: (\d+) rows of`)

// retaining deletes rows that are past.
func (c *accessCluster) retaining(ctx context.Context, env map[string]string) error {
	if err := c.feed(ctx); err != nil {
		return err
	}
	env = maps.Clone(env)
	env["DOWNPOUR_RETENTION"] = writeFile(c.T, "rules", "^acl.past 1y\n")
	status, plan, err := e2e.Run(ctx, "./gateway/cmd/gateway", e2e.ProgramOptions{
		Env:  env,
		Dir:  c.TempDir(),
		Args: []string{"retention", "plan"},
	})
	rows := rowsToDelete.FindStringSubmatch(plan)
	if err != nil || status != 0 || rows == nil {
		return fmt.Errorf("plan: status %d, %v: %s", status, err, plan)
	}
	return c.run(ctx, env, "retention", "run", "-yes-delete", rows[1])
}

// on starts a gateway, gives it to f, and adds its log to an error.
func (c *accessCluster) on(ctx context.Context, env, more map[string]string, f func(g *e2e.Program) error) error {
	env = maps.Clone(env)
	maps.Copy(env, more)
	g, err := e2e.StartGateway(ctx, e2e.ProgramOptions{Env: env, Dir: c.TempDir()})
	if err != nil {
		return err
	}
	defer g.Process.Kill()
	if err := f(g); err != nil {
		return fmt.Errorf("%w\n%s", err, g.Process.LogTail(20))
	}
	return nil
}

// request wants a status and a text in the answer.
func request(ctx context.Context, url, body string, status int, text string) error {
	a, err := e2e.Answer{}, error(nil)
	if body == "" {
		a, err = e2e.Get(ctx, url)
	} else {
		a, err = e2e.Post(ctx, url, body)
	}
	if err == nil && (a.Status != status || !strings.Contains(string(a.Body), text)) {
		err = fmt.Errorf("%s: got status %d, %s, want %d and %q", url, a.Status, a.Body, status, text)
	}
	return err
}

const aclQuery = "/api/query?start=1356998000&end=1356999000&m=sum:acl.m"

// newPoint has a name that was not there before.
func newPoint() string {
	return fmt.Sprintf(`{"metric":"acl.m","timestamp":%d,"value":7,"tags":{"host":"h%d"}}`,
		dataStart, time.Now().UnixNano())
}

func (c *accessCluster) putAndQuery(ctx context.Context, env map[string]string) error {
	return c.on(ctx, env, map[string]string{"DOWNPOUR_RESULT_CACHE": "off"}, func(g *e2e.Program) error {
		return errors.Join(request(ctx, g.URL+"/api/put", newPoint(), 204, ""),
			request(ctx, g.URL+aclQuery, "", 200, `"metric":"acl.m"`))
	})
}

func (c *accessCluster) putAndDescribe(ctx context.Context, env map[string]string) error {
	tracking := map[string]string{"DOWNPOUR_RESULT_CACHE": "off", "DOWNPOUR_META_TRACKING": "true"}
	return c.on(ctx, env, tracking, func(g *e2e.Program) error {
		host := fmt.Sprint("h", time.Now().UnixNano())
		point := fmt.Sprintf(`{"metric":"acl.m","timestamp":%d,"value":7,"tags":{"host":"%s"}}`, dataStart, host)
		err := errors.Join(
			request(ctx, g.URL+"/api/put", point, 204, ""),
			request(ctx, g.URL+aclQuery, "", 200, `"metric":"acl.m"`),
			request(ctx, g.URL+"/api/tree", fmt.Sprintf(`{"name":"t%s"}`, host), 200, ""),
			saveDashboard(ctx, g.URL+"/api/dashboards/"+host),
		)
		if err != nil {
			return err
		}
		// The new series gets its meta data some time after the put was answered.
		soon, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return e2e.Until(soon, 100*time.Millisecond, func(ctx context.Context) error {
			if log := g.Process.LogTail(50); strings.Contains(log, " lacks the right ") {
				cancel()
				return errors.New("refused, see the log")
			}
			lookup := fmt.Sprintf(`{"metric":"acl.m","useMeta":true,"tags":[{"key":"host","value":"%s"}]}`, host)
			err := request(ctx, g.URL+"/api/search/lookup", lookup, 200, `"totalResults":1`)
			if err != nil && strings.Contains(err.Error(), " lacks the right ") {
				cancel() // asking again would give the same
			}
			return err
		})
	})
}

// saveDashboard makes a dashboard.
func saveDashboard(ctx context.Context, url string) error {
	document := `{"form":1,"title":"x","panels":[` +
		`{"id":"a","type":"text","text":"x","place":{"x":0,"y":0,"w":6,"h":1}}]}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(document))
	if err != nil {
		return err
	}
	r.Header.Set("If-None-Match", "*")
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if body, err := io.ReadAll(a.Body); a.StatusCode != 200 || err != nil {
		return fmt.Errorf("%s: status %d, %v: %s", url, a.StatusCode, err, body)
	}
	return nil
}

// cached wants an answer of the result cache.
func (c *accessCluster) cached(ctx context.Context, env map[string]string) error {
	return c.on(ctx, env, map[string]string{"DOWNPOUR_MODE": "ro"}, func(g *e2e.Program) error {
		for range 12 { // on a busy machine HBase may not report in time whether rows have changed
			if err := request(ctx, g.URL+aclQuery, "", 200, `"metric":"acl.m"`); err != nil {
				return err
			}
			a, err := e2e.Get(ctx, g.URL+"/metrics")
			if err != nil || !strings.Contains(string(a.Body), "\ndownpour_result_cache_hits_total 0\n") {
				return err
			}
		}
		return errors.New("no answer came from the result cache")
	})
}

func (c *accessCluster) readOnly(ctx context.Context, env map[string]string) error {
	readOnly := map[string]string{"DOWNPOUR_MODE": "ro", "DOWNPOUR_RESULT_CACHE": "off"}
	return c.on(ctx, env, readOnly, func(g *e2e.Program) error {
		return errors.Join(
			request(ctx, g.URL+aclQuery, "", 200, `"metric":"acl.m"`),
			request(ctx, g.URL+"/api/suggest?type=metrics&q=acl", "", 200, "acl.m"),
			request(ctx, g.URL+"/api/search/lookup", `{"metric":"acl.m","useMeta":true}`, 200, "acl.m"),
			request(ctx, g.URL+"/api/dashboards", "", 200, `"name"`),
		)
	})
}

// ofPushdown wants a part that a pushdown server has executed. The gateway in front has other
// rights, and answers without the server, too.
func (c *accessCluster) ofPushdown(ctx context.Context, env map[string]string) error {
	env = maps.Clone(env)
	delete(env, "DOWNPOUR_AUTO_METRICS")
	delete(env, "DOWNPOUR_QUERY_TIMEOUT")
	env["DOWNPOUR_RESULT_CACHE"] = "off"
	p, err := e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: env, Dir: c.TempDir()})
	if err != nil {
		return err
	}
	defer p.Process.Kill()
	keytab, err := c.kdc.Keytab(ctx, "front")
	if err != nil {
		return err
	}
	front := c.env(map[string]string{"DOWNPOUR_HBASE_KERBEROS": "keytab:" + keytab + ":front@" + e2e.Realm})
	for _, table := range []string{c.tables.Data, c.tables.UID} {
		if err := c.hbase.Admin.Grant(ctx, "front", table, "R"); err != nil {
			return err
		}
	}
	pushed := map[string]string{
		"DOWNPOUR_PUSHDOWN":     p.Addr,
		"DOWNPOUR_MODE":         "ro",
		"DOWNPOUR_RESULT_CACHE": "off",
	}
	return c.on(ctx, front, pushed, func(g *e2e.Program) error {
		if err := request(ctx, g.URL+aclQuery, "", 200, `"metric":"acl.m"`); err != nil {
			return err
		}
		if log := g.Process.LogTail(20); strings.Contains(log, "retrying a part") {
			return errors.New("the part was not executed by the server")
		}
		return nil
	})
}
