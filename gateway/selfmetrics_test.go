package gateway_test

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

func (b *bench) boards() (all boards) {
	b.Helper()
	a := b.get("api/dashboards")
	if err := json.Unmarshal([]byte(a.body), &all); err != nil || a.status != 200 {
		b.Fatalf("got %d %s: %v", a.status, a.body, err)
	}
	return all
}

// stored waits for the first sample.
func (b *bench) stored() {
	b.Helper()
	eventually(b.T, "the first sample", func() bool { return strings.Contains(b.get("/api/suggest?type=metrics&q=proc.loadavg").body, "1min") })
}

// Every query of this host's dashboard finds points of the gateway's host, and the document is one
// that may be saved.
func TestHostDashboard(t *testing.T) {
	b := open(t, func(c *gateway.Config) { gateway.SettingsOf[hostmetrics.Settings](c).SelfMetrics = "1s" })
	b.stored()
	a := b.get("api/dashboards/host")
	if _, err := dashboard.Check([]byte(a.body)); err != nil || a.header.Get("ETag") != `"0"` {
		t.Fatalf("got %v %s: %v", a.header, a.body, err)
	}
	var document struct {
		Range  struct{ From string }
		Panels []struct {
			ID      string
			Queries []json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(a.body), &document); err != nil || document.Range.From != "1m-ago" || len(document.Panels) < 12 {
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
			eventually(t, "points of "+m, func() bool { return strings.Contains(b.get(path).body, `"dps":{"`) })
		}
	}
}

// The built-in dashboard can be saved, which takes its place, and deleted, which brings it back.
func TestHostDashboard_saved(t *testing.T) {
	b := open(t, func(c *gateway.Config) { gateway.SettingsOf[hostmetrics.Settings](c).SelfMetrics = "1h" })
	builtIn := b.get("api/dashboards/host").body
	if all := b.boards(); len(all.Dashboards) != 1 || all.Dashboards[0].Name != "host" || all.Dashboards[0].Version.Version != 0 || all.Dashboards[0].Panels < 12 {
		t.Errorf("the list has %+v, want the built-in dashboard as version 0", all)
	}
	for _, path := range []string{"api/dashboards/host?version=1", "api/dashboards/host/versions", "api/dashboards/hosts"} {
		if a := b.get(path); a.status != 404 {
			t.Errorf("%s: got %d %s, want 404", path, a.status, a.body)
		}
	}
	if a := b.do("PUT", "api/dashboards/host", strings.NewReader(oneText), "If-Match", `"0"`); a.status != 200 || a.header.Get("ETag") != `"1"` {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if a := b.get("api/dashboards/host"); a.body != oneText || len(b.boards().Dashboards) != 1 {
		t.Errorf("got %s, want what was saved, once in the list", a.body)
	}
	if a := b.do("DELETE", "api/dashboards/host", nil, "If-Match", `"0"`); a.status != 400 {
		t.Errorf("deleting what is built in: got %d %s, want 400", a.status, a.body)
	}
	if a := b.do("DELETE", "api/dashboards/host", nil, "If-Match", `"1"`); a.status != 204 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if a := b.get("api/dashboards/host"); a.body != builtIn {
		t.Errorf("got %d %s, want the built-in one", a.status, a.body)
	}
}

// The page at / leads to this host's dashboard until something else is stored.
func TestStartDashboard(t *testing.T) {
	b := open(t, func(c *gateway.Config) { gateway.SettingsOf[hostmetrics.Settings](c).SelfMetrics = "auto" })
	if all := b.boards(); all.Start != "host" {
		t.Errorf("before the first sample: %+v", all)
	}
	b.stored()
	if all := b.boards(); all.Start != "host" {
		t.Errorf("with this host's metrics: %+v", all)
	}
	b.put("room.temperature 1356998400 21 room=kitchen")
	if all := b.boards(); all.Start != "" || len(all.Dashboards) != 1 {
		t.Errorf("with a metric of somebody: %+v, want no start, and the dashboard in the list", all)
	}
}

// With auto this host's metrics go into a store that was empty, and on into it after a restart, but
// never into one that somebody has filled; a gateway in mode ro puts nothing.
func TestSelfMetrics_auto(t *testing.T) {
	b := open(t, func(c *gateway.Config) { gateway.SettingsOf[hostmetrics.Settings](c).SelfMetrics = "auto" })
	b.stored()
	points := func(b *bench) int {
		a := b.get("/api/query?start=1h-ago&m=sum:0all-count:proc.loadavg.1min")
		var results []struct{ DPS map[string]float64 }
		if err := json.Unmarshal([]byte(a.body), &results); err != nil {
			t.Fatalf("got %d %s: %v", a.status, a.body, err) // duplicates in a second, too, are 400
		}
		// There are none yet if the first sample is of the second that follows.
		for _, r := range results {
			for _, n := range r.DPS {
				return int(n)
			}
		}
		return 0
	}
	if err := b.g.Close(); err != nil {
		t.Fatal(err)
	}
	before := 0
	ro := *b.cfg
	ro.Mode = "ro"
	g, err := gateway.Start(t.Context(), &ro, b.store, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	reader := &bench{T: t, cfg: &ro, store: b.store, g: g}
	if all := reader.boards(); all.Start != "" || len(all.Dashboards) != 0 {
		t.Errorf("mode ro: %+v, want no dashboard of a host whose metrics are not collected", all)
	}
	before = points(reader)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	again := &bench{T: t, cfg: b.cfg, store: b.store, g: start(t, b.cfg, b.store)}
	eventually(t, "points after the restart", func() bool { return points(again) > before })

	filled := open(t, nil)
	filled.put("room.temperature 1356998400 21 room=kitchen")
	auto := *filled.cfg
	renewExtras(&auto)
	gateway.SettingsOf[hostmetrics.Settings](&auto).SelfMetrics = "auto"
	other := &bench{T: t, cfg: &auto, store: filled.store, g: start(t, &auto, filled.store)}
	if all := other.boards(); all.Start != "" || len(all.Dashboards) != 0 {
		t.Errorf("a store that somebody has filled: %+v, want no dashboard of this host", all)
	}
	cut := open(t, nil) // as of a gateway that ended during its first sample
	cut.put("proc.loadavg.1min 1356998400 1 host=a")
	resumed := *cut.cfg
	renewExtras(&resumed)
	gateway.SettingsOf[hostmetrics.Settings](&resumed).SelfMetrics = "auto"
	if all := (&bench{T: t, cfg: &resumed, store: cut.store, g: start(t, &resumed, cut.store)}).boards(); all.Start != "host" {
		t.Errorf("a store with a part of a sample: %+v, want it to be gone on with", all)
	}
	gateway.SettingsOf[hostmetrics.Settings](&auto).SelfMetrics = "1h" // asked for
	asked := &bench{T: t, cfg: &auto, store: filled.store, g: start(t, &auto, filled.store)}
	asked.stored()
	if a := other.get("/api/query?start=2012/12/31&m=sum:room.temperature"); !strings.Contains(a.body, "21") {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

// The range of the dashboard is one that is filled at least by half.
func TestHostDashboard_range(t *testing.T) {
	now := time.Unix(1356998400, 0)
	for age, want := range map[time.Duration]string{0: "1m-ago", time.Minute: "1m-ago", 61 * time.Second: "2m-ago", 4 * time.Minute: "5m-ago",
		29 * time.Minute: "30m-ago", time.Hour: "1h-ago", now.Sub(time.Time{}): "1h-ago"} {
		if got := string(dashboard.Host("a.b-c_d/e", now.Add(-age), now)); !strings.Contains(got, `"range": {"from": "`+want+`"`) || strings.Contains(got, "@") {
			t.Errorf("after %v: %.200s, want %s", age, got, want)
		}
	}
}
