//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// The real promtool takes the alert rules, and finds that each fires when it should: see
// testdata/alerts_test.yml.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	if err := e2e.SetUp(ctx, "prometheus"); err != nil {
		t.Fatal(err)
	}
	root := must[string](t)(e2e.Root())
	program := filepath.Join(root, "build/setup/prometheus/usr/bin/promtool")
	for _, args := range [][]string{
		{"check", "rules", "gateway/packaging/prometheus/alerts.yml"},
		{"test", "rules", "integration/testdata/alerts_test.yml"},
	} {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// The real promtool finds nothing to say about the names, types and help of the metrics of both
// programs.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	if err := e2e.SetUp(ctx, "prometheus"); err != nil {
		t.Fatal(err)
	}
	l, tables := layouts[0], createTables(t)
	p := must[*e2e.Program](t)(e2e.StartPushdown(ctx, e2e.ProgramOptions{Env: l.env(t, tables)}))
	closeAtEnd(t, p)
	ours := l.gateway(t, tables, map[string]string{"DOWNPOUR_PUSHDOWN": p.Addr, "DOWNPOUR_RETENTION": "36500d"})
	for _, url := range []string{ours.URL, p.URL} {
		text := string(must[e2e.Answer](t)(e2e.Get(ctx, url+"/metrics")).Body)
		if !strings.Contains(text, "\ndownpour_build_info{") {
			t.Errorf("%s has no downpour_build_info: %.300s", url, text)
		}
		if out, err := checkedMetrics(ctx, t, ownMetrics(text)); err != nil || out != "" {
			t.Errorf("promtool on %s: %v\n%s", url, err, out)
		}
	}
	if out, err := checkedMetrics(ctx, t, "# TYPE downpour_put_ms counter\ndownpour_put_ms 1\n"); err == nil {
		t.Errorf("promtool takes a counter without help and _total: %s", out)
	}
}

// ownMetrics are those of our own: others come from libraries.
func ownMetrics(text string) string {
	var own strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), "downpour_") {
			own.WriteString(line)
		}
	}
	return own.String()
}

// checkedMetrics is what promtool says of metrics.
func checkedMetrics(ctx context.Context, t *testing.T, text string) (string, error) {
	t.Helper()
	promtool := filepath.Join(must[string](t)(e2e.Root()), "build/setup/prometheus/usr/bin/promtool")
	cmd := exec.CommandContext(ctx, promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The dashboard is read by Grafana's own types, and its queries by the real promtool. A field that
// Grafana does not know, one that is missing and a value of another type are reported.
func TestGrafanaDashboard(t *testing.T) {
	t.Parallel()
	ctx := within(t, 10*time.Minute)
	if err := e2e.SetUp(ctx, "prometheus"); err != nil {
		t.Fatal(err)
	}
	root := must[string](t)(e2e.Root())
	program := filepath.Join(t.TempDir(), "dashboardcheck")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "-modfile=integration/setup/grafana.mod",
		"-tags", "grafana", "./integration/dashboardcheck")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dashboard := filepath.Join(root, "gateway/packaging/prometheus/grafana.json")

	out, err := exec.CommandContext(ctx, program, dashboard).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	queries := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(queries) < 20 {
		t.Errorf("got %d queries, want 20 or more: %s", len(queries), out)
	}
	if out, err := takenByPrometheus(ctx, t, root, queries); err != nil ||
		!strings.Contains(out, fmt.Sprintf("SUCCESS: %d rules", len(queries))) {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	if out, err := takenByPrometheus(ctx, t, root, []string{"sum by (host (m)"}); err == nil {
		t.Errorf("promtool takes a query that is none: %s", out)
	}

	text := must[[]byte](t)(os.ReadFile(dashboard))
	for old, changed := range map[string][2]string{
		`"legendFormat": "{{kind}}"`:           {`"legend": "{{kind}}"`, "unexpected field 'legend'"},
		`"schemaVersion": 39,`:                 {"", "schemaVersion: required field is missing"},
		`"fillOpacity": 10,`:                   {`"fillOpacity": "10",`, "cannot unmarshal string"},
		`"w": 8,`:                              {`"w": 25,`, "gridPos.w: must be <= 24"},
		`"type": "timeseries",`:                {`"type": "timeserie",`, "want a plugin that comes with Grafana"},
		`"refresh": 2,`:                        {`"refresh": "later",`, "templating.list[1].refresh"},
		"            \"type\": \"prometheus\"": {"            \"type\": \"prom\"", "want one for a data source"},
	} {
		if !bytes.Contains(text, []byte(old)) {
			t.Errorf("the dashboard has no %s to change", old)
		}
		broken := filepath.Join(t.TempDir(), "broken.json")
		if err := os.WriteFile(broken, bytes.Replace(text, []byte(old), []byte(changed[0]), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(ctx, program, broken).CombinedOutput(); err == nil ||
			!strings.Contains(string(out), changed[1]) {
			t.Errorf("%s in place of %s: %v %.300s, want %s", changed[0], old, err, out, changed[1])
		}
	}
}

// takenByPrometheus has promtool read queries of a dashboard, as rules, with variables as Grafana
// fills them in.
func takenByPrometheus(ctx context.Context, t *testing.T, root string, queries []string) (string, error) {
	t.Helper()
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, q := range queries {
		q = strings.NewReplacer("$instance", "gateway1:4242|gateway2:4242", "$__rate_interval", "1m").Replace(q)
		fmt.Fprintf(&rules, "  - {record: \"query:%d\", expr: %q}\n", i, q)
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool := filepath.Join(root, "build/setup/prometheus/usr/bin/promtool")
	out, err := exec.CommandContext(ctx, promtool, "check", "rules", file).CombinedOutput()
	return string(out), err
}
