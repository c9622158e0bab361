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
		status, out, err := e2e.Run(within(t, time.Minute), gatewayProgram, e2e.ProgramOptions{Env: all, Dir: t.TempDir()})
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
	f(map[string]string{"DOWNPOUR_LISTEN": free, "DOWNPOUR_STORE": "pebble:" + running.Dir() + "/here"}, "DOWNPOUR_STORE")
	f(map[string]string{"DOWNPOUR_LISTEN": strings.Replace(free, "127.0.0.1", "0.0.0.0", 1)}, "DOWNPOUR_TOKEN_FILE", "DOWNPOUR_INSECURE")
	f(map[string]string{"DOWNPOUR_LISTEN": free, "DOWNPOUR_NO_SUCH": "1"}, "DOWNPOUR_NO_SUCH")
	f(map[string]string{"DOWNPOUR_LISTEN": free, "DOWNPOUR_STORE": "nonsense"}, "DOWNPOUR_STORE")
}

// reason is the line that tells why the gateway does not start; log lines may
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

// Without HBase, or without its tables, the gateway either refuses to start and names the variable
// to set, or answers with status 424.
func TestRefuse_noHBase(t *testing.T) {
	t.Parallel()
	nobody := fmt.Sprintf("127.0.0.1:%d", must[int](t)(e2e.FreePort()))
	missing := layouts[0].env(t, e2e.TablesWithPrefix("nosuchtable"))
	for name, env := range map[string]map[string]string{
		"nobody listens": {"DOWNPOUR_STORE": "hbase:" + nobody},
		"no tables":      missing,
	} {
		t.Run(name, func(t *testing.T) {
			listen := fmt.Sprintf("127.0.0.1:%d", must[int](t)(e2e.FreePort()))
			all := map[string]string{"DOWNPOUR_LISTEN": listen, "DOWNPOUR_QUERY_TIMEOUT": "5s"}
			maps.Copy(all, env)
			ctx := within(t, 45*time.Second)
			ended := make(chan string, 1)
			go func() {
				status, out, err := e2e.Run(ctx, gatewayProgram, e2e.ProgramOptions{Env: all, Dir: t.TempDir()})
				ended <- fmt.Sprintf("exit status %d, %v\n%s", status, err, out)
			}()
			// Whichever comes first: an end with a reason, or an answer with one.
			answered := make(chan e2e.Answer, 1)
			go func() {
				_ = e2e.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
					a, err := e2e.Get(ctx, fmt.Sprintf("http://%s/api/query?start=1h-ago&m=sum:load.int", listen))
					if err == nil {
						answered <- a
					}
					return err
				})
			}()
			select {
			case out := <-ended:
				if !strings.Contains(out, "DOWNPOUR_") || strings.Contains(out, "status 0") {
					t.Errorf("ended without naming the variable to set: %s", out)
				}
			case a := <-answered:
				if a.Status != http.StatusFailedDependency {
					t.Errorf("status %d: %.300s; want 424", a.Status, a.Body)
				}
			case <-ctx.Done():
				t.Error("neither ended nor answered")
			}
		})
	}
}
