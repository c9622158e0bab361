package extra_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"downpour/gateway"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/sealing"
	"downpour/gateway/gatewaytest"
)

// exported returns, of what /metrics says, a line of the page for each metric of ours: its name,
// type, labels and help.
func exported(text string) []string {
	help, kind, labels := map[string]string{}, map[string]string{}, map[string]map[string]bool{}
	label := regexp.MustCompile(`([a-z_]+)="`)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch f := strings.SplitN(line, " ", 4); {
		case strings.HasPrefix(line, "# HELP downpour_"):
			help[f[2]] = f[3]
			labels[f[2]] = map[string]bool{}
		case strings.HasPrefix(line, "# TYPE downpour_"):
			kind[f[2]] = f[3]
		case strings.HasPrefix(line, "downpour_"):
			name, _, _ := strings.Cut(line, "{")
			name, _, _ = strings.Cut(name, " ")
			if kind[name] == "" { // a histogram has _bucket, _sum and _count
				name = name[:strings.LastIndexByte(name, '_')]
			}
			for _, m := range label.FindAllStringSubmatch(line, -1) {
				if m[1] != "le" && labels[name] != nil {
					labels[name][m[1]] = true
				}
			}
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(help)) {
		var all []string
		for _, l := range slices.Sorted(maps.Keys(labels[name])) {
			all = append(all, "`"+l+"`")
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s | %s |",
			name, kind[name], strings.Join(all, ", "), help[name]))
	}
	return lines
}

// section returns the lines of a table below a heading of a page.
func section(page, heading string) (lines []string) {
	_, rest, _ := strings.Cut(page, "\n## "+heading+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "| `") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// metrics.md has every metric that a gateway exports, with its type, labels and help, and no other.
// They are promised to last (STABILITY.md): a name that is gone, or means something else, breaks
// dashboards and alerts of others.
func TestMetricsPage(t *testing.T) {
	b := open(t, func(c *gateway.Config) {
		gateway.SettingsOf[retention.Settings](c).Retention = "36500d"
		gateway.SettingsOf[sealing.Settings](c).Seal = "1000"
	})
	b.Put("m 1356998400 1 host=a")
	b.Post("/api/put", `{"metric":"m","timestamp":1356998400,"value":"x","tags":{"host":"a"}}`)
	b.Get(gatewaytest.PastQuery)
	page := readPage(t, "../docs/metrics.md")
	want := exported(b.Get("/metrics").Body)
	got := slices.Concat(section(page, "Gateways"), section(page, "Live queries"), section(page, "Retention"),
		section(page, "Sealing"))
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the page and /metrics differ (-/metrics +page):\n%s", diff)
	}
}

// Alerts and the dashboard ask for metrics that the page lists, and each alert is explained.
func TestMetricsPage_users(t *testing.T) {
	page := readPage(t, "../docs/metrics.md")
	listed := gatewaytest.Names(regexp.MustCompile("(?m)^\\| `(downpour_\\w+)` "), page)
	used := regexp.MustCompile(`downpour_\w+`)
	for _, file := range []string{"../packaging/prometheus/alerts.yml", "../packaging/prometheus/grafana.json"} {
		found := used.FindAllString(readPage(t, file), -1)
		for _, name := range found {
			base := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
			if !slices.Contains(listed, name) && !slices.Contains(listed, base) {
				t.Errorf("%s asks for %s, which is not on the page", file, name)
			}
		}
		if len(found) < 10 {
			t.Errorf("%s asks for %d metrics, want 10 or more", file, len(found))
		}
	}
	alerts := gatewaytest.Names(regexp.MustCompile(`(?m)^      - alert: (\w+)$`),
		readPage(t, "../packaging/prometheus/alerts.yml"))
	explained := gatewaytest.Names(regexp.MustCompile(`(?m)^### (Downpour\w+)$`), page)
	if diff := cmp.Diff(alerts, explained); diff != "" || len(alerts) == 0 {
		t.Errorf("alerts and their explanations differ (-alerts +page):\n%s", diff)
	}
	if !json.Valid([]byte(readPage(t, "../packaging/prometheus/grafana.json"))) {
		t.Error("grafana.json is no JSON")
	}
}
