//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/e2e"
)

// A real Prometheus writes what it scrapes into a gateway with tokens, reads what only the gateway has, and fires
// alerts over it. The gateway is killed, and stopped, while it writes: in the end the gateway has each sample that
// Prometheus has stored itself.
func TestPrometheus_writesReadsAndAlerts(t *testing.T) {
	t.Parallel()
	if err := e2e.SetUp(within(t, 5*time.Minute), "prometheus"); err != nil {
		t.Fatal(err)
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		tokens := writeFile(t, "tokens", "read token-of-a-reader\nwrite token-of-a-writer\nadmin token-of-an-admin\n")
		watchedByPrometheus(t, embedded(t, map[string]string{"DOWNPOUR_TOKEN_FILE": tokens}))
	})
	t.Run("HBase", func(t *testing.T) {
		t.Parallel()
		l, tables := layouts[1], createTables(t)
		p := must[*e2e.Program](t)(e2e.StartPushdown(within(t, time.Minute), e2e.ProgramOptions{Env: l.env(t, tables)}))
		closeAtEnd(t, p)
		more := map[string]string{"DOWNPOUR_PUSHDOWN": p.Addr, "DOWNPOUR_SELF_METRICS": "0"}
		watchedByPrometheus(t, l.gateway(t, tables, more))
	})
}

// watched is a gateway, and the Prometheus that scrapes it, writes to it and reads from it.
type watched struct {
	*testing.T
	gateway *e2e.Program
	server  *e2e.Prometheus
}

// prometheusYML has these parts of a configuration. Times between tries are short, so that the test is.
func prometheusYML(gateway string, parts ...string) map[string]string {
	text := strings.ReplaceAll(strings.Join(parts, ""), "GATEWAY", gateway)
	return map[string]string{"prometheus.yml": text, "rules.yml": prometheusRules}
}

const (
	prometheusGlobal = `
global: {scrape_interval: 1s, evaluation_interval: 1s}
`
	prometheusScrapes = `
rule_files: [rules.yml]
scrape_configs:
  - job_name: downpour
    authorization: {credentials: token-of-an-admin}
    static_configs: [{targets: ["GATEWAY"]}]
  - job_name: prometheus
    static_configs: [{targets: ["SELF"]}]
`
	prometheusWrites = `
remote_write:
  - url: http://GATEWAY/prometheus/api/v1/write
    authorization: {credentials: token-of-a-writer}
    queue_config: {batch_send_deadline: 500ms, max_backoff: 1s}
`
	prometheusReads = `
remote_read:
  - url: http://GATEWAY/prometheus/api/v1/read
    authorization: {credentials: token-of-a-reader}
    read_recent: true
`
	prometheusRules = `
groups:
  - name: over remote read
    rules:
      - {alert: AtOnce, expr: 'room_heat > 30', annotations: {summary: "it has {{ $value }}"}}
      - {alert: Later, expr: 'min by (room) (min_over_time(room_heat[5m])) > 20', for: 3s}
      - {alert: Never, expr: 'room_heat{room="cellar"} > 20'}
`
)

func watchedByPrometheus(t *testing.T, gateway *e2e.Program) {
	breaks, limit := 2, time.Minute
	if *soak {
		breaks, limit = 40, 5*time.Minute
	}
	ctx := within(t, limit)
	all := prometheusYML(gateway.Addr, prometheusGlobal, prometheusScrapes, prometheusWrites, prometheusReads)
	w := &watched{t, gateway, must[*e2e.Prometheus](t)(e2e.StartPrometheus(ctx, all))}
	closeAtEnd(t, w.server)

	w.readsBack(ctx)
	w.fires(ctx)
	for i := range breaks {
		w.broken(ctx, func() {
			if i%2 == 0 {
				w.gateway.Process.Kill()
			} else if err := w.gateway.Process.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	w.keptAll(ctx, breaks)
}

// await waits for a state of the servers.
func (w *watched) await(ctx context.Context, what string, ready func(context.Context) error) {
	w.Helper()
	if err := e2e.UntilProcess(ctx, w.server.Process, 200*time.Millisecond, ready); err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// prometheusAPI asks a server that has Prometheus' API for the data of an answer.
func prometheusAPI(ctx context.Context, base, route string, form url.Values, into any) error {
	a, err := e2e.Get(ctx, base+"/api/v1/"+route+"?"+form.Encode(), "Authorization", "Bearer token-of-a-reader")
	if err != nil {
		return err
	}
	answer := struct {
		Data     any
		Warnings []string
	}{Data: into}
	if err := json.Unmarshal(a.Body, &answer); err != nil || a.Status != http.StatusOK || len(answer.Warnings) > 0 {
		return fmt.Errorf("%s %v: %d %.500s, %v", route, form, a.Status, a.Body, err)
	}
	return nil
}

// samples asks for a matrix: by series in JSON, a line for each sample but NaN, which has no place in the tables.
func samples(ctx context.Context, base, route string, form url.Values) (map[string][]string, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	if err := prometheusAPI(ctx, base, route, form, &data); err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for _, s := range data.Result {
		name, err := json.Marshal(s.Metric)
		if err != nil {
			return nil, err
		}
		for _, v := range s.Values {
			if v[1] != "NaN" {
				all[string(name)] = append(all[string(name)], fmt.Sprintf("%.3f %s", v[0], v[1]))
			}
		}
	}
	return all, nil
}

// readsBack puts points into the gateway alone, of now and of 2013, and has Prometheus read them.
func (w *watched) readsBack(ctx context.Context) {
	w.Helper()
	now := time.Now().Unix()
	var points []string
	add := func(at int64, room string, heat float64) {
		points = append(points, fmt.Sprintf(`{"metric":"room.heat","timestamp":%d,"value":%v,"tags":{"room":%q}}`,
			at, heat, room))
	}
	for room, heat := range map[string]float64{"attic": 31.5, "cellar": 12, "hall": 21} {
		for i := range int64(60) {
			add(now-60+i, room, heat)
			add(dataStart+60*i, room, heat)
		}
	}
	a := must[e2e.Answer](w.T)(e2e.Post(ctx, w.gateway.URL+"/api/put", "["+strings.Join(points, ",")+"]",
		"Authorization", "Bearer token-of-a-writer"))
	if a.Status != http.StatusNoContent {
		w.Fatalf("put: %d %s", a.Status, a.Body)
	}
	const attic = `{"__name__":"room_heat","room":"attic"}` // a Prometheus before 3 takes no dots
	want := map[string][]string{}
	for i := range 60 {
		want[attic] = append(want[attic], fmt.Sprintf("%d.000 31.5", dataStart+60*i))
	}
	got, err := samples(ctx, w.server.URL, "query_range", url.Values{
		"query": {`room_heat{room=~"a.*"}`}, "step": {"60"},
		"start": {strconv.Itoa(dataStart)}, "end": {strconv.Itoa(dataStart + 59*60)},
	})
	if d := cmp.Diff(want, got); d != "" || err != nil {
		w.Errorf("by remote read: %v, -want +got\n%s", err, d)
	}
}

// fires waits until the alerts over the gateway's points fire.
func (w *watched) fires(ctx context.Context) {
	w.Helper()
	w.await(ctx, "alerts", func(ctx context.Context) error {
		var data struct {
			Alerts []struct {
				Labels, Annotations map[string]string
				State               string
			}
		}
		if err := prometheusAPI(ctx, w.server.URL, "alerts", nil, &data); err != nil {
			return err
		}
		var got []string
		for _, a := range data.Alerts {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", a.Labels["alertname"], a.Labels["room"],
				a.State, a.Annotations["summary"])))
		}
		slices.Sort(got)
		want := []string{"AtOnce attic firing it has 31.5", "Later attic firing", "Later hall firing"}
		if !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
}

// broken ends the gateway while Prometheus writes, until that has sent a thousand samples more than once, and starts
// it again.
func (w *watched) broken(ctx context.Context, end func()) {
	w.Helper()
	w.moves(ctx, "up", "prometheus_remote_storage_samples_total")
	end()
	w.moves(ctx, "down", "prometheus_remote_storage_samples_retried_total")
	if err := w.gateway.Restart(ctx); err != nil {
		w.Fatal(err)
	}
}

// moves waits until scrapes have found the gateway so, and a counter of Prometheus has grown by a thousand.
func (w *watched) moves(ctx context.Context, health, counter string) {
	w.Helper()
	before := must[float64](w.T)(w.counted(ctx, counter))
	w.await(ctx, "the gateway is "+health, func(ctx context.Context) error {
		n, err := w.counted(ctx, counter)
		if err == nil && n < before+1000 {
			err = fmt.Errorf("%s is %v after %v, want 1000 more", counter, n, before)
		}
		return errors.Join(err, w.health(ctx, health))
	})
}

// health returns an error unless Prometheus' last scrape of the gateway has found it so.
func (w *watched) health(ctx context.Context, want string) error {
	var data struct {
		ActiveTargets []struct {
			ScrapePool, Health, LastError string
		}
	}
	if err := prometheusAPI(ctx, w.server.URL, "targets", nil, &data); err != nil {
		return err
	}
	for _, t := range data.ActiveTargets {
		if t.ScrapePool == "downpour" && t.Health == want {
			return nil
		}
	}
	return fmt.Errorf("targets %+v, want downpour %s", data.ActiveTargets, want)
}

// counted is a counter of Prometheus itself, all its series together.
func (w *watched) counted(ctx context.Context, metric string) (n float64, err error) {
	a, err := e2e.Get(ctx, w.server.URL+"/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(a.Body)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && strings.HasPrefix(name, metric+"{") {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			n += v
		}
	}
	return n, nil
}

// keptAll ends the scrapes, and compares what Prometheus has stored itself with what the gateway has.
func (w *watched) keptAll(ctx context.Context, breaks int) {
	w.Helper()
	if err := w.server.Reload(ctx, prometheusYML(w.gateway.Addr, prometheusGlobal, prometheusWrites)); err != nil {
		w.Fatal(err)
	}
	own := map[string][]string{}
	w.await(ctx, "the gateway has what Prometheus has", func(ctx context.Context) error {
		all := [2]map[string][]string{{}, {}}
		later := strconv.FormatInt(time.Now().Unix()+60, 10)
		for _, selector := range []string{`{job=~".+"}[1h]`, `ALERTS[1h]`, `ALERTS_FOR_STATE[1h]`} {
			for i, url := range []string{w.server.URL, w.gateway.URL + "/prometheus"} {
				found, err := samples(ctx, url, "query", map[string][]string{"query": {selector}, "time": {later}})
				if err != nil {
					return err
				}
				maps.Copy(all[i], found)
			}
		}
		if d := cmp.Diff(all[0], all[1]); d != "" {
			return fmt.Errorf("-Prometheus +gateway\n%.3000s", d)
		}
		own = all[0]
		return nil
	})
	n, found := 0, 0
	for name, values := range own {
		n += len(values)
		if strings.Contains(name, `"__name__":"up"`) && strings.Contains(name, `"job":"downpour"`) {
			for i, v := range values[1:] {
				if strings.HasSuffix(values[i], " 1") && strings.HasSuffix(v, " 0") {
					found++
				}
			}
		}
	}
	w.Logf("%d samples of %d series, %d breaks", n, len(own), found)
	if found != breaks || len(own) < 400 {
		w.Errorf("%d breaks, want %d; %d series, want 400 and more", found, breaks, len(own))
	}
}
