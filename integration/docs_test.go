//go:build integration

package integration

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// examples are the code blocks of one language on the page clients.md, with the address of the
// gateway in place of the usual one.
func examples(t *testing.T, language, address string) (blocks []string) {
	t.Helper()
	root := must[string](t)(e2e.Root())
	text := must[[]byte](t)(os.ReadFile(filepath.Join(root, "gateway", "docs", "clients.md")))
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		block := string(m[1])
		if !strings.Contains(block, "127.0.0.1:4242") {
			t.Errorf("an example does not name 127.0.0.1:4242:\n%s", block)
		}
		blocks = append(blocks, strings.ReplaceAll(block, "127.0.0.1:4242", address))
	}
	return blocks
}

// The Python examples of clients.md run and print the names of what they read.
func TestDocs_notebook(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	ours := embedded(t, nil)
	hostMetrics(ctx, t, ours.URL)
	blocks := examples(t, "python", ours.Addr)
	if len(blocks) != 2 {
		t.Fatalf("%d examples, want 2", len(blocks))
	}
	for i, words := range []string{"proc.stat.cpu{host=web01,type=system}", "proc.loadavg.1min"} {
		script := writeFile(t, "example.py", blocks[i])
		out := must[[]byte](t)(e2e.PythonFile(ctx, script))
		if !strings.Contains(string(out), words) {
			t.Errorf("example %d lacks %q:\n%s", i, words, out)
		}
	}
}

// The HTML examples of clients.md, on a page of another origin, draw charts that move.
func TestDocs_ownChart(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	var page string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html><link rel=icon href=data:,>"+page)
	}))
	defer elsewhere.Close()
	ours := embedded(t, map[string]string{"DOWNPOUR_ALLOW_ORIGINS": elsewhere.URL})
	hostMetrics(ctx, t, ours.URL)
	defer feed(ctx, t, ours.URL)()
	keepDashboard(ctx, t, ours.URL)
	blocks := examples(t, "html", ours.Addr)
	if len(blocks) != 3 {
		t.Fatalf("%d examples, want 3", len(blocks))
	}
	if n := strings.Count(blocks[0], "\n"); n > 10 {
		t.Errorf("the first example has %d lines, want at most 10", n)
	}
	for i, kind := range []string{"chart", "panel", "list"} {
		page = blocks[i]
		out, err := e2e.Node(ctx, "integration/browser/own.mjs", elsewhere.URL, kind)
		if err != nil || !strings.Contains(string(out), kind+" moved") {
			t.Errorf("%s: error %v, output %q", kind, err, out)
		}
	}
}

// keepDashboard saves the dashboard that the example of a panel names.
func keepDashboard(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	const document = `{"form": 1, "panels": [{"id": "cpu", "type": "lines", "place": {"x": 0, "y": 0, "w": 6, "h": 8},
		"queries": ["sum:rate:proc.stat.cpu{type=*}"]}], "range": {"from": "15m-ago"}}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/api/dashboards/web",
		strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("If-None-Match", "*")
	answer := must[*http.Response](t)(http.DefaultClient.Do(request))
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("saving the dashboard: %s", answer.Status)
	}
}
