package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"downpour/gateway/gatewaytest"
	"downpour/integration/e2e"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/pebble"
)

const program = "./gateway/cmd/gateway"

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// runProgram runs the built gateway to its end, which must come by itself.
func runProgram(t *testing.T, args []string, env ...string) (status int, output string) {
	t.Helper()
	set := map[string]string{"DOWNPOUR_LISTEN": "127.0.0.1:0", "DOWNPOUR_SELF_METRICS": "0"}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		set[name] = value
	}
	status, output, err := e2e.Run(within(t, gatewaytest.Patience),
		program, e2e.ProgramOptions{Env: set, Args: args, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return status, output
}

// A start that must fail ends with one line, which names the setting to change. A misspelled
// variable is named, and -print-config prints the settings.
func TestProgram_refuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	f := func(words []string, env ...string) {
		t.Helper()
		status, out := runProgram(t, nil, env...)
		if status == 0 || strings.Count(out, "\n") != 1 {
			t.Errorf("%v: status %d, %q; want a failure and one line", env, status, out)
		}
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("%v: %q does not name %s", env, out, word)
			}
		}
	}
	address := taken.Addr().String()
	f([]string{"DOWNPOUR_LISTEN", address, "in use"}, "DOWNPOUR_LISTEN="+address)
	f([]string{"DOWNPOUR_STORE", "mysql:x"}, "DOWNPOUR_STORE=mysql:x")
	f([]string{"DOWNPOUR_LISTEN", "DOWNPOUR_TOKEN_FILE", "DOWNPOUR_INSECURE"}, "DOWNPOUR_LISTEN=0.0.0.0:0")
	f([]string{"DOWNPOUR_TOKEN_FILE"}, "DOWNPOUR_TOKEN_FILE=/nowhere")
	f([]string{"DOWNPOUR_SALT_WIDTH", `"many"`}, "DOWNPOUR_SALT_WIDTH=many")
	f([]string{"DOWNPOUR_QUERY_TIMEOUT", `"soon"`}, "DOWNPOUR_QUERY_TIMEOUT=soon")
	status, out := runProgram(t, nil, "DOWNPOUR_STOER=pebble:x")
	if status == 0 || !strings.Contains(out, "DOWNPOUR_STOER") || !strings.Contains(out, "DOWNPOUR_STORE") {
		t.Errorf("an unknown variable: status %d, %s", status, out)
	}
	status, out = runProgram(t, []string{"-print-config"}, "DOWNPOUR_QUERY_TIMEOUT=7s", "DOWNPOUR_TOKEN_FILE=/nowhere")
	for _, line := range []string{
		"DOWNPOUR_LISTEN=127.0.0.1:0\n", "DOWNPOUR_QUERY_TIMEOUT=7s\n", "DOWNPOUR_STORE=pebble:data\n",
		"DOWNPOUR_AUTO_METRICS=true\n", "DOWNPOUR_TABLE_UID=tsdb-uid\n",
	} {
		if status != 0 || !strings.Contains(out, line) {
			t.Errorf("-print-config: status %d, no %q in\n%s", status, line, out)
		}
	}
}

// No value of a key that is not honoured, no token and no word of a JAAS file is shown at a start, when it fails, or by
// -print-config.
func TestProgram_secrets(t *testing.T) {
	dir := t.TempDir()
	const secret = "5eCr3t-0123456789"
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	conf := file("opentsdb.conf", "tsd.storage.salt.width = 0\ntsd.mode = rw\n"+
		strings.Join([]string{"tsd.search.plugin.password", "tsd.rtpublisher.rabbitmq.password",
			"tsd.http.keystore.password", "tsd.core.authentication.token",
			"hbase.sasl.jaas.config", "tsd.storage.hbase.secret", "tsd.http.cachedir", "tsd.rollups.config",
			"hbase.rpc.protection", "db"}, " = "+secret+"\n")+
		" = "+secret+"\n  username=\"alice\" password=\""+secret+"\";\n")
	tokens := file("tokens", secret+" read\n")
	jaas := file("jaas.conf",
		`Client { com.sun.security.auth.module.Krb5LoginModule required password "`+secret+`"; };`)
	for _, c := range []struct {
		fails bool
		args  []string
		env   []string
		words string
	}{
		{
			false,
			[]string{"-print-config"},
			[]string{"DOWNPOUR_OPENTSDB_CONF=" + conf},
			"tsd.http.keystore.password is not honoured",
		},
		{true, nil, []string{"DOWNPOUR_OPENTSDB_CONF=" + conf, "DOWNPOUR_TOKEN_FILE=" + tokens}, "line 1: scope"},
		{true, nil, []string{"DOWNPOUR_STORE=hbase:127.0.0.1:1", "DOWNPOUR_HBASE_JAAS=" + jaas}, "jaas.conf"},
		{
			true,
			nil,
			[]string{"DOWNPOUR_STORE=hbase:127.0.0.1:1", "DOWNPOUR_HBASE_KERBEROS=password:" + secret},
			"DOWNPOUR_HBASE_KERBEROS",
		},
		{
			true,
			nil,
			[]string{
				"DOWNPOUR_STORE=hbase:127.0.0.1:1", "DOWNPOUR_HBASE_JAAS=" + secret,
				"DOWNPOUR_HBASE_KERBEROS=keytab:/k:" + secret,
			},
			"DOWNPOUR_HBASE_JAAS",
		},
		{true, nil, []string{"DOWNPOUR_PASSWORD=" + secret}, "DOWNPOUR_PASSWORD"},
	} {
		status, out := runProgram(t, c.args, c.env...)
		if (status != 0) != c.fails || !strings.Contains(out, c.words) || strings.Contains(out, secret) {
			t.Errorf("%v %v: status %d, want %q and no secret in\n%s", c.args, c.env, status, c.words, out)
		}
	}
}

// A gateway waits for the process that has its store, names it, and serves once that is at an end.
// A tool waits for such a gateway and takes nothing away from it.
func TestProgram_waitsForLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	st, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	release := sync.OnceValue(st.Close)
	defer release()
	port, err := e2e.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"DOWNPOUR_SELF_METRICS": "0",
		"DOWNPOUR_STORE":        "pebble:" + dir,
		"DOWNPOUR_LISTEN":       fmt.Sprintf("127.0.0.1:%d", port),
	}
	url := "http://" + env["DOWNPOUR_LISTEN"]
	started := make(chan *e2e.Program, 1)
	go func() {
		p, err := e2e.StartGateway(within(t, gatewaytest.Patience), e2e.ProgramOptions{Env: env})
		if err != nil {
			t.Error(err)
		}
		started <- p
	}()
	want := fmt.Sprintf("data directory is in use by another process: %d, %s", os.Getpid(), filepath.Base(os.Args[0]))
	gatewaytest.Eventually(t, "the gateway says for whom it waits", func() bool {
		a, err := e2e.Get(within(t, gatewaytest.Patience), url+"/readyz")
		return err == nil && a.Status == http.StatusServiceUnavailable && strings.Contains(string(a.Body), want)
	})
	if a, err := e2e.Get(within(t, gatewaytest.Patience), url+"/healthz"); err != nil || a.Status != http.StatusOK {
		t.Errorf("/healthz: %d, %v, want 200", a.Status, err)
	}

	path, err := e2e.Build(within(t, gatewaytest.Patience), program)
	if err != nil {
		t.Fatal(err)
	}
	var set []string
	for name, value := range env {
		set = append(set, name+"="+value)
	}
	tool, err := e2e.Start(within(t, gatewaytest.Patience), e2e.Command{
		Name: "tool",
		Path: path,
		Args: []string{"mkmetric", "made.by.tool"},
		Env:  set,
		Dir:  t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Kill()
	gatewaytest.Eventually(t, "the tool waits", func() bool {
		return strings.Contains(tool.LogTail(20), "waiting for it")
	})
	if err := release(); err != nil {
		t.Error(err)
	}
	p := <-started
	if p == nil {
		return
	}
	defer p.Close()
	if status := tool.ExitCode(within(t, gatewaytest.Patience)); status != 0 {
		t.Errorf("the tool ended with %d, want 0: %s", status, tool.LogTail(20))
	}
	if a, err := e2e.Get(within(t, gatewaytest.Patience), url+"/api/suggest?type=metrics"); err != nil ||
		!strings.Contains(string(a.Body), "made.by.tool") {
		t.Errorf("the gateway knows %s, %v, want the name that the tool made", a.Body, err)
	}
}

// Missing tables on HBase are named; -create-tables makes them, our own among them, and a second time
// finds them; then the gateway serves.
func TestProgram_createTables(t *testing.T) {
	cluster := hbasefake.For(t, hbasefake.Options{})
	env := map[string]string{
		"DOWNPOUR_STORE":        "hbase:" + cluster.Address(),
		"DOWNPOUR_AUTO_METRICS": "true",
		"DOWNPOUR_SELF_METRICS": "0",
	}
	status, out := runProgram(t, nil, "DOWNPOUR_STORE="+env["DOWNPOUR_STORE"])
	if status == 0 || !strings.Contains(out, "-create-tables") || !strings.Contains(out, "tsdb") {
		t.Errorf("without tables: status %d, %s", status, out)
	}
	if status, out := runProgram(t, []string{"-create-tables"}, "DOWNPOUR_STORE="+env["DOWNPOUR_STORE"]); status != 0 {
		t.Fatalf("-create-tables: status %d, %s", status, out)
	}
	_, st := gatewaytest.HBase(t, cluster.Address())
	made := func(table string) bool {
		ok, err := st.TableExists(t.Context(), table)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !made("downpour-state") || made("elsewhere") {
		t.Error("no table downpour-state, or one that nobody has named")
	}
	// The others are there.
	if status, out := runProgram(t, []string{"-create-tables"}, "DOWNPOUR_STORE="+env["DOWNPOUR_STORE"],
		"DOWNPOUR_TABLE_STATE=elsewhere"); status != 0 || !made("elsewhere") {
		t.Errorf("-create-tables with DOWNPOUR_TABLE_STATE: status %d, %s", status, out)
	}
	p, err := e2e.StartGateway(within(t, gatewaytest.Patience), e2e.ProgramOptions{Env: env, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	putLines(t, p, "m 1356998400 1 host=a\n")
	stored(t, p, `{"1356998400":1}`)
}

// Points that were acknowledged are there after a restart, whether the gateway was ended by SIGTERM
// or killed.
func TestProgram_restart(t *testing.T) {
	p, err := e2e.StartGateway(within(t, gatewaytest.Patience),
		e2e.ProgramOptions{Env: map[string]string{"DOWNPOUR_SELF_METRICS": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	putLines(t, p, "m 1356998400 1 host=a\nput m 1356998401 2 host=a\n")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := p.Process.ExitCode(within(t, gatewaytest.Patience)); status != 0 {
		t.Errorf("after SIGTERM: status %d\n%s", status, p.Process.LogTail(20))
	}
	if err := p.Restart(within(t, gatewaytest.Patience)); err != nil {
		t.Fatal(err)
	}
	stored(t, p, `{"1356998400":1,"1356998401":2}`)
	p.Process.Kill()
	if err := p.Restart(within(t, gatewaytest.Patience)); err != nil {
		t.Fatal(err)
	}
	stored(t, p, `{"1356998400":1,"1356998401":2}`)
}

// Fifty queries at once, more than there is memory for, are all answered, and what
// is resident stays below 1.25 times DOWNPOUR_MEMORY, as the settings' page says.
func TestProgram_manyQueries(t *testing.T) {
	const budget, hosts = 256 << 20, 2000
	p, err := e2e.StartGateway(within(t, gatewaytest.Patience), e2e.ProgramOptions{Env: map[string]string{
		"DOWNPOUR_SELF_METRICS":  "0",
		"DOWNPOUR_MEMORY":        "256MiB",
		"DOWNPOUR_QUERY_TIMEOUT": gatewaytest.Patience.String(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var lines strings.Builder
	for hour := range 24 {
		for i := range hosts {
			fmt.Fprintf(&lines, "put adv.m %d %d host=h%d zone=z%d\n", 1356998400+3600*hour, i+hour, i, i%7)
		}
	}
	putLines(t, p, strings.TrimPrefix(lines.String(), "put "))
	question := p.URL + "/api/query?start=1356998400&end=1357084799&m=sum:1h-avg:adv.m%7Bhost=*%7D"
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			a, err := e2e.Get(within(t, gatewaytest.Patience), question)
			if err != nil || a.Status != http.StatusOK || strings.Count(string(a.Body), `"dps":{`) != hosts {
				t.Errorf("got %d, %d series, %.300s, %v; want 200 and %d series",
					a.Status, strings.Count(string(a.Body), `"dps":{`), a.Body, err, hosts)
			}
		})
	}
	group.Wait()
	m, err := p.Process.Memory()
	if err != nil || m.Peak > budget*5/4 {
		t.Errorf("%d MiB were resident, %v; want %d at most", m.Peak>>20, err, budget*5/4>>20)
	}
}

// putLines sends put lines by telnet, where text has all but the first put, and waits for the
// answer to version, which acknowledges them.
func putLines(t *testing.T, p *e2e.Program, text string) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(gatewaytest.Patience))
	fmt.Fprintf(c, "put %sversion\n", text)
	answer := make([]byte, 100)
	if n, err := c.Read(answer); err != nil || !strings.HasPrefix(string(answer[:n]), "downpour ") {
		t.Fatalf("got %q, %v, want the answer to version", answer[:n], err)
	}
}

func stored(t *testing.T, p *e2e.Program, dps string) {
	t.Helper()
	a, err := e2e.Get(within(t, gatewaytest.Patience), p.URL+"/api/query?start=1356998400&end=1356998500&m=sum:m")
	if err != nil || a.Status != http.StatusOK || !strings.Contains(string(a.Body), dps) {
		t.Errorf("got %d %s, %v; want %s", a.Status, a.Body, err, dps)
	}
}
