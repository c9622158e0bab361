//go:build integration

package integration

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
)

const gatewayProgram = "./gateway/cmd/gateway"

// A start that must fail ends with one line that names the variable to set.
func TestRefuse_start(t *testing.T) {
	t.Parallel()
	f := func(env map[string]string, words ...string) {
		t.Helper()
		all := map[string]string{"DOWNPOUR_SELF_METRICS": "0"}
		maps.Copy(all, env)
		status, out, err := e2e.Run(within(t, time.Minute),
			gatewayProgram, e2e.ProgramOptions{Env: all, Dir: t.TempDir()})
		if err != nil || status == 0 {
			t.Errorf("%v: exit status %d, %v; want a refusal\n%s", env, status, err, out)
			return
		}
		for _, word := range words {
			if !strings.Contains(reason(out), word) {
				t.Errorf("%v: said %q, want it to name %q", env, reason(out), word)
			}
		}
	}
	running := embedded(t, map[string]string{"DOWNPOUR_STORE": "pebble:here"})
	port := must[int](t)(e2e.FreePort())
	free := fmt.Sprintf("127.0.0.1:%d", port)
	f(map[string]string{"DOWNPOUR_LISTEN": running.Addr}, "DOWNPOUR_LISTEN")
	f(map[string]string{"DOWNPOUR_LISTEN": strings.Replace(free, "127.0.0.1", "0.0.0.0", 1)}, "DOWNPOUR_TOKEN_FILE",
		"DOWNPOUR_INSECURE")
	f(map[string]string{"DOWNPOUR_LISTEN": free, "DOWNPOUR_NO_SUCH": "1"}, "DOWNPOUR_NO_SUCH")
	f(map[string]string{"DOWNPOUR_LISTEN": free, "DOWNPOUR_STORE": "nonsense"}, "DOWNPOUR_STORE")
}

// reason is the line that says why the gateway does not start; log lines may
// come before it, an explanation after it.
func reason(out string) string {
	_, rest, _ := strings.Cut("\n"+out, "\ngateway: ")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// A salt width that does not fit the rows is noticed at the start, by a sample of the rows.
func TestRefuse_wrongSalt(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	tables := createTables(t)
	salted := layouts[1].gateway(t, tables, nil)
	put(ctx, t, salted.URL, introduce())
	env := layouts[0].env(t, tables)
	env["DOWNPOUR_LISTEN"] = fmt.Sprintf("127.0.0.1:%d", must[int](t)(e2e.FreePort()))
	status, out, err := e2e.Run(ctx, gatewayProgram, e2e.ProgramOptions{Env: env, Dir: t.TempDir()})
	if err != nil || status == 0 || !strings.Contains(reason(out), "DOWNPOUR_SALT_WIDTH") {
		t.Errorf("exit status %d, %v; want a refusal that names DOWNPOUR_SALT_WIDTH\n%s", status, err, out)
	}
}

// Without HBase the gateway waits, and says for what. Without its tables it refuses to start and names the variable
// to set.
func TestRefuse_noHBase(t *testing.T) {
	t.Parallel()
	nobody := fmt.Sprintf("127.0.0.1:%d", must[int](t)(e2e.FreePort()))
	for name, env := range map[string]map[string]string{
		"nobody listens": {"DOWNPOUR_STORE": "hbase:" + nobody},
		"no tables":      layouts[0].env(t, e2e.TablesWithPrefix("nosuchtable")),
	} {
		t.Run(name, func(t *testing.T) {
			listen := fmt.Sprintf("127.0.0.1:%d", must[int](t)(e2e.FreePort()))
			all := map[string]string{"DOWNPOUR_LISTEN": listen, "DOWNPOUR_QUERY_TIMEOUT": "5s"}
			maps.Copy(all, env)
			ctx, stop := context.WithTimeout(t.Context(), 45*time.Second)
			ended := make(chan string, 1)
			go func() {
				status, out, err := e2e.Run(ctx, gatewayProgram, e2e.ProgramOptions{Env: all, Dir: t.TempDir()})
				ended <- fmt.Sprintf("exit status %d, %v\n%s", status, err, out)
			}()
			defer func() { stop(); <-ended }()
			if name == "no tables" {
				out := <-ended
				ended <- ""
				if !strings.Contains(out, "DOWNPOUR_") || strings.Contains(out, "status 0") || ctx.Err() != nil {
					t.Errorf("ended without naming the variable to set: %s", out)
				}
				return
			}
			err := e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
				a, err := e2e.Get(ctx, fmt.Sprintf("http://%s/api/query?start=1h-ago&m=sum:load.int", listen))
				if err == nil &&
					(a.Status != http.StatusServiceUnavailable || !strings.Contains(string(a.Body), nobody)) {
					err = fmt.Errorf("status %d: %.300s; want 503 and the reason", a.Status, a.Body)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			if a, err := e2e.Get(ctx, "http://"+listen+"/healthz"); err != nil || a.Status != http.StatusOK {
				t.Errorf("/healthz: %d, %v, want 200", a.Status, err)
			}
		})
	}
}
