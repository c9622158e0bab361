package extra_test

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"downpour/gateway"
	"downpour/gateway/extra/dashboards/dashboard"
	"downpour/gateway/extra/hostmetrics"
)

// boards is the answer of /api/dashboards.
type boards struct {
	Dashboards []dashboard.Listed
	Start      string
}

func boardsOf(b *bench) (all boards) {
	b.Helper()
	a := b.Get("api/dashboards")
	if err := json.Unmarshal([]byte(a.Body), &all); err != nil || a.Status != 200 {
		b.Fatalf("got %d %s: %v", a.Status, a.Body, err)
	}
	return all
}

// stored waits for the first sample.
func firstSample(b *bench) {
	b.Helper()
	eventually(b.T, "the first sample", func() bool {
		return strings.Contains(b.Get("/api/suggest?type=metrics&q=proc.loadavg").Body, "1min")
	})
}

// Every query of this host's dashboard finds points of the gateway's host, and the document is one
// that may be saved.
func TestHostDashboard(t *testing.T) {
	b := open(t, func(c *gateway.Config) { gateway.SettingsOf[hostmetrics.Settings](c).SelfMetrics = "1s" })
	firstSample(b)
	a := b.Get("api/dashboards/host")
	if _, err := dashboard.Check([]byte(a.Body)); err != nil || a.Header.Get("ETag") != `"0"` {
		t.Fatalf("got %v %s: %v", a.Header, a.Body, err)
	}
	var document struct {
		Range  struct{ From string }
		Panels []struct {
			ID      string
			Queries []json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(a.Body), &document); err != nil || document.Range.From != "1m-ago" ||
		len(document.Panels) < 12 {
		t.Errorf("range %+v, %d panels, %v; want the last minute", document.Range, len(document.Panels), err)
	}
	for _, p := range document.Panels {
		for _, raw := range p.Queries {
			var m string
			var sided struct{ M string }
			if json.Unmarshal(raw, &m) != nil {
				if err := json.Unmarshal(raw, &sided); err != nil {
					t.Fatal(err)
				}
				m = sided.M
			}
			m = strings.Replace(m, ":auto:", ":", 1) // short ranges are drawn as stored
			path := "/api/query?start=5m-ago&m=" + url.QueryEscape(m)
			if p.ID == "disks" { // a container may hide them
				path = strings.ReplaceAll(path, "proc.disk.bytes", "proc.net.bytes")
				path = strings.ReplaceAll(path, "dev", "iface")
			}
			eventually(t, "points of "+m, func() bool { return strings.Contains(b.Get(path).Body, `"dps":{"`) })
		}
	}
}

// The built-in dashboard can be saved, which takes its place, and deleted, which brings it back.
func TestHostDashboard_saved(t *testing.T) {
	b := open(t, func(c *gateway.Config) { gateway.SettingsOf[hostmetrics.Settings](c).SelfMetrics = "1h" })
	builtIn := b.Get("api/dashboards/host").Body
	if all := boardsOf(b); len(all.Dashboards) != 1 || all.Dashboards[0].Name != "host" ||
		all.Dashboards[0].Version.Version != 0 || all.Dashboards[0].Panels < 12 {
		t.Errorf("the list has %+v, want the built-in dashboard as version 0", all)
	}
	for _, path := range []string{
		"api/dashboards/host?version=1", "api/dashboards/host/versions", "api/dashboards/hosts",
	} {
		if a := b.Get(path); a.Status != 404 {
			t.Errorf("%s: got %d %s, want 404", path, a.Status, a.Body)
		}
	}
	if a := b.Do("PUT", "api/dashboards/host", strings.NewReader(oneText), "If-Match", `"0"`); a.Status != 200 ||
		a.Header.Get("ETag") != `"1"` {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	if a := b.Get("api/dashboards/host"); a.Body != oneText || len(boardsOf(b).Dashboards) != 1 {
		t.Errorf("got %s, want what was saved, once in the list", a.Body)
	}
	if a := b.Do("DELETE", "api/dashboards/host", nil, "If-Match", `"0"`); a.Status != 400 {
		t.Errorf("deleting what is built in: got %d %s, want 400", a.Status, a.Body)
	}
	if a := b.Do("DELETE", "api/dashboards/host", nil, "If-Match", `"1"`); a.Status != 204 {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	if a := b.Get("api/dashboards/host"); a.Body != builtIn {
		t.Errorf("got %d %s, want the built-in one", a.Status, a.Body)
	}
}

// The page at / leads to this host's dashboard until something else is stored.
func TestStartDashboard(t *testing.T) {
	b := open(t, func(c *gateway.Config) { gateway.SettingsOf[hostmetrics.Settings](c).SelfMetrics = "auto" })
	if all := boardsOf(b); all.Start != "host" {
		t.Errorf("before the first sample: %+v", all)
	}
	firstSample(b)
	if all := boardsOf(b); all.Start != "host" {
		t.Errorf("with this host's metrics: %+v", all)
	}
	b.Put("room.temperature 1356998400 21 room=kitchen")
	if all := boardsOf(b); all.Start != "" || len(all.Dashboards) != 1 {
		t.Errorf("with a metric of somebody: %+v, want no start, and the dashboard in the list", all)
	}
}

// With auto this host's metrics go into a store that was empty, and on into it after a restart, but
// never into one that somebody has filled; a gateway in mode ro puts nothing.
func TestSelfMetrics_auto(t *testing.T) {
	b := open(t, func(c *gateway.Config) { gateway.SettingsOf[hostmetrics.Settings](c).SelfMetrics = "auto" })
	firstSample(b)
	points := func(b *bench) int {
		a := b.Get("/api/query?start=1h-ago&m=sum:0all-count:proc.loadavg.1min")
		var results []struct{ DPS map[string]float64 }
		if err := json.Unmarshal([]byte(a.Body), &results); err != nil {
			t.Fatalf("got %d %s: %v", a.Status, a.Body, err) // duplicates in a second, too, are 400
		}
		// There are none yet if the first sample is of the second that follows.
		for _, r := range results {
			for _, n := range r.DPS {
				return int(n)
			}
		}
		return 0
	}
	if err := b.Gateway.Close(); err != nil {
		t.Fatal(err)
	}
	before := 0
	ro := *b.Config
	ro.Mode = "ro"
	g, err := gateway.Start(t.Context(), &ro, b.Store, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	reader := &bench{T: t, Config: &ro, Store: b.Store, Gateway: g}
	if all := boardsOf(reader); all.Start != "" || len(all.Dashboards) != 0 {
		t.Errorf("mode ro: %+v, want no dashboard of a host whose metrics are not collected", all)
	}
	before = points(reader)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	again := serve(t, b.Config, b.Store)
	eventually(t, "points after the restart", func() bool { return points(again) > before })

	filled := open(t, nil)
	filled.Put("room.temperature 1356998400 21 room=kitchen")
	auto := *filled.Config
	auto.Extras = everything()
	gateway.SettingsOf[hostmetrics.Settings](&auto).SelfMetrics = "auto"
	other := serve(t, &auto, filled.Store)
	if all := boardsOf(other); all.Start != "" || len(all.Dashboards) != 0 {
		t.Errorf("a store that somebody has filled: %+v, want no dashboard of this host", all)
	}
	cut := open(t, nil) // as of a gateway that ended during its first sample
	cut.Put("proc.loadavg.1min 1356998400 1 host=a")
	resumed := *cut.Config
	resumed.Extras = everything()
	gateway.SettingsOf[hostmetrics.Settings](&resumed).SelfMetrics = "auto"
	if all := boardsOf(serve(t, &resumed, cut.Store)); all.Start != "host" {
		t.Errorf("a store with a part of a sample: %+v, want it to be gone on with", all)
	}
	gateway.SettingsOf[hostmetrics.Settings](&auto).SelfMetrics = "1h" // requested
	asked := serve(t, &auto, filled.Store)
	firstSample(asked)
	if a := other.Get("/api/query?start=2012/12/31&m=sum:room.temperature"); !strings.Contains(a.Body, "21") {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

// The range of the dashboard is one that is filled at least by half.
func TestHostDashboard_range(t *testing.T) {
	now := time.Unix(1356998400, 0)
	for age, want := range map[time.Duration]string{
		0: "1m-ago", time.Minute: "1m-ago", 61 * time.Second: "2m-ago", 4 * time.Minute: "5m-ago",
		29 * time.Minute: "30m-ago", time.Hour: "1h-ago", now.Sub(time.Time{}): "1h-ago",
	} {
		got := string(dashboard.Host("a.b-c_d/e", now.Add(-age), now))
		if !strings.Contains(got, `"range": {"from": "`+want+`"`) || strings.Contains(got, "@") {
			t.Errorf("after %v: %.200s, want %s", age, got, want)
		}
	}
}

// The first sample of this host's metrics is stored at the start, not after an interval; with 0
// there is none.
func TestSelfMetrics(t *testing.T) {
	b := open(t, func(c *gateway.Config) { gateway.SettingsOf[hostmetrics.Settings](c).SelfMetrics = "1h" })
	query := "/api/query?start=1h-ago&m=sum:proc.loadavg.1min%7Bhost=*%7D"
	var a answer
	eventually(t, "the first sample", func() bool {
		a = b.Get(query)
		return a.Status == 200 && strings.Contains(a.Body, `"dps":{"`) // {} while its second is still to come
	})
	var results []struct {
		Tags map[string]string
		DPS  map[string]json.Number
	}
	err := json.Unmarshal([]byte(a.Body), &results)
	if err != nil || len(results) != 1 || len(results[0].DPS) != 1 || results[0].Tags["host"] == "" {
		t.Errorf("%s: %v", a.Body, err)
	}
	off := open(t, nil)
	if a := off.Get("/api/suggest?type=metrics"); a.Body != "[]" {
		t.Errorf("with 0: %s", a.Body)
	}
}

// A fault in the settings of an extra is named together with those of the core.
func TestConfig_extras(t *testing.T) {
	cfg := config(0)
	cfg.AutoMetrics, gateway.SettingsOf[hostmetrics.Settings](cfg).SelfMetrics = "maybe", "1ms"
	err := cfg.Validate()
	for _, name := range []string{"DOWNPOUR_AUTO_METRICS", "DOWNPOUR_SELF_METRICS"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}
