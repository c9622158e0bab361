//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"downpour/integration/differential"
	"downpour/integration/e2e"
)

// A real Chromium opens the page, picks a metric by completion, and sees the
// chart move after a put; no request leaves the host.
func TestBrowser_chartMovesAfterPut(t *testing.T) {
	t.Parallel()
	ours := embedded(t, nil)
	screenshot := filepath.Join(ours.Dir(), "page.png") // kept with the logs when the test fails
	out, err := e2e.Node(within(t, 3*time.Minute), "integration/browser/chart.mjs", ours.URL, screenshot)
	if err != nil || !strings.Contains(string(out), "chart moved") {
		t.Errorf("error %v, output %q", err, out)
	}
}

// browserScript runs a script of Node.js tests, which prints their names and failures, and returns
// what it printed.
func browserScript(t *testing.T, script string, args ...string) string {
	t.Helper()
	out, err := e2e.Node(within(t, 8*time.Minute), "integration/browser/"+script, args...)
	if err != nil {
		t.Error(err)
	}
	ran := regexp.MustCompile(`(?m)^# tests [1-9]`)
	if !(strings.Contains(string(out), "# fail 0") && ran.Match(out)) && err == nil {
		t.Errorf("%s does not say that it has run tests and that none failed: %s", script, out)
	}
	return string(out)
}

// The page against a scripted server: late points, stalls, dropped sockets,
// refused origins, what it says in each state, and each control.
func TestBrowser_statesOfThePage(t *testing.T) {
	t.Parallel()
	browserScript(t, "states.mjs")
}

// The same page over 10,000 updates, whose heap does not grow, and in every state with axe.
func TestBrowser_lasting(t *testing.T) {
	t.Parallel()
	browserScript(t, "lasting.mjs")
}

// What the page draws and saves equals what the gateway answers; through proxies
// that block sockets or change the host name, it polls or says why not.
func TestBrowser_pageEqualsGateway(t *testing.T) {
	t.Parallel()
	ours := embedded(t, map[string]string{"DOWNPOUR_HISTOGRAMS": differential.HistogramConfig})
	browserScript(t, "gateway.mjs", ours.URL)
}

// The first start: / leads to a dashboard of this host, whose panels all fill and move. The time
// from the start of the program until then is printed.
func TestBrowser_firstStart(t *testing.T) {
	t.Parallel()
	program := must[string](t)(e2e.Build(within(t, 3*time.Minute), "./gateway/cmd/gateway"))
	started := time.Now()
	ours := startGateway(t, e2e.ProgramOptions{Path: program})
	out := browserScript(t, "first.mjs", ours.URL, strconv.FormatInt(started.UnixMilli(), 10))
	t.Log(regexp.MustCompile(`filled \d+ ms.*`).FindString(out))
}

// Dashboards: built, saved, opened again, in conflict, from links and files, over dropped sockets,
// hostile documents, accessibility; and kept by a real gateway.
func TestBrowser_dashboards(t *testing.T) {
	t.Parallel()
	ours := embedded(t, nil)
	browserScript(t, "board.mjs", ours.URL)
}

// Panels of dashboards in pages of another origin: drawn as on the dashboard, apart from that page's
// styles, and with words for tokens, names and forms that are wrong.
func TestBrowser_panelElsewhere(t *testing.T) {
	t.Parallel()
	port := must[int](t)(e2e.FreePort())
	const token = "token-of-another-page"
	tokens := writeFile(t, "tokens", "read "+token+"\nwrite "+token+"\n")
	ours := embedded(t, map[string]string{
		"DOWNPOUR_ALLOW_ORIGINS": fmt.Sprintf("http://127.0.0.1:%d", port),
		"DOWNPOUR_TOKEN_FILE":    tokens,
	})
	browserScript(t, "elsewhere.mjs", ours.URL, strconv.Itoa(port), token)
}

// What happens to dashboards that nobody wished for, with a real gateway: a connection that dies under
// 60 live panels, a token that ends, two who save at once, files that are no dashboard.
func TestBrowser_dashboardsInTrouble(t *testing.T) {
	t.Parallel()
	const token, next = "token-that-is-ended", "token-that-comes-next"
	tokens := writeFile(t, "tokens", "read "+token+"\nwrite "+token+"\n")
	ours := embedded(t, map[string]string{"DOWNPOUR_TOKEN_FILE": tokens})
	browserScript(t, "trouble.mjs", ours.URL, tokens, token, next)
}

// The operator's page with a real gateway: a query that runs is shown and ended, a refused put is
// counted, names from outside are texts, only a token with the scope admin is let in; accessibility.
func TestBrowser_operations(t *testing.T) {
	t.Parallel()
	const admin, reader, writer = "token-of-an-operator", "token-of-a-reader", "token-of-a-writer"
	tokens := writeFile(t, "tokens", "admin "+admin+" alice\nread "+reader+" grafana\nwrite "+writer+"\n")
	ours := embedded(t, map[string]string{"DOWNPOUR_TOKEN_FILE": tokens})
	browserScript(t, "ops.mjs", ours.URL, admin, reader, writer)
}

// The documentation: every page under its policy, on a phone and with axe; the search, by the keyboard.
func TestBrowser_documentation(t *testing.T) {
	t.Parallel()
	ours := embedded(t, nil)
	browserScript(t, "docs.mjs", ours.URL)
}

// A page of another site, and one whose name is made to lead to the gateway, over plain HTTP and without tokens:
// they read and change nothing. The gateway's own page works by an address, by the machine's name and by a listed one.
func TestBrowser_hostile(t *testing.T) {
	t.Parallel()
	// As every name but localhost this one counts as one beyond loopback, and is none.
	listen := fmt.Sprintf("Localhost:%d", must[int](t)(e2e.FreePort()))
	ours := embedded(t, map[string]string{
		"DOWNPOUR_LISTEN":          listen,
		"DOWNPOUR_INSECURE":        "true",
		"DOWNPOUR_ALLOW_DELETE":    "true",
		"DOWNPOUR_ALLOW_HOSTS":     "gateway.example",
		"DOWNPOUR_TREE_PROCESSING": "true",
	})
	browserScript(t, "hostile.mjs", ours.URL, must[string](t)(os.Hostname()))
}

// Panels of every type: what they draw and say, sorting, full screen, keys, sheets, phones,
// accessibility.
func TestBrowser_panels(t *testing.T) {
	t.Parallel()
	browserScript(t, "panels.mjs")
}

// Variables of dashboards, links with them, comparisons with before, moved ranges, annotations;
// against a scripted server, and a real gateway.
func TestBrowser_variables(t *testing.T) {
	t.Parallel()
	ours := embedded(t, nil)
	browserScript(t, "variables.mjs", ours.URL)
}

// Twelve tasks of a new user, by clicks and keys, which take as many as the table in gateway/web/README.md says.
func TestBrowser_tasks(t *testing.T) {
	t.Parallel()
	program := must[string](t)(e2e.Build(within(t, 3*time.Minute), "./gateway/cmd/gateway"))
	python := filepath.Join(must[string](t)(e2e.Root()), "build", "venv", "bin", "python")
	port := must[int](t)(e2e.FreePort())
	ours := embedded(t, map[string]string{
		"DOWNPOUR_ALLOW_DELETE":  "true",
		"DOWNPOUR_ALLOW_ORIGINS": fmt.Sprintf("http://127.0.0.1:%d", port),
	})
	t.Log(browserScript(t, "tasks.mjs", ours.URL, strconv.Itoa(port), program, python))
}

// The files that the page takes from npm are those of the packages.
func TestBrowser_vendoredFilesEqualPackages(t *testing.T) {
	t.Parallel()
	browserScript(t, "vendored.mjs")
}
