package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"downpour/bench"
	"downpour/bench/paired"
	"downpour/bench/report"
	"downpour/bench/workload"
)

// DashboardsConfig says how dashboards are measured. Their data set is one day of 100 hosts,
// unless a test wants less.
type DashboardsConfig struct {
	// Browser runs the script of the figures in a browser and returns what it prints; nil where
	// there is none.
	Browser func(ctx context.Context, args ...string) ([]byte, error)
	Data    workload.Devops
	Paints  int           // how often the dashboard is opened
	Viewers int           // that look at it at once, against one
	Seconds int           // of viewers, each time
	Wall    time.Duration // that the wall of live panels is open
}

// The dashboards: one is opened, and of the other all panels are live.
const (
	paintPanels = 20
	wallPanels  = 60
	wallGroup   = 10 // hosts of a panel of the wall: of so many, one has a point in each second
)

// Validate names the first field that is wrong.
func (c DashboardsConfig) Validate() error {
	err := bench.Positive(map[string]int{
		"paints": c.Paints, "viewers": c.Viewers, "seconds": c.Seconds, "wall": int(c.Wall / time.Second),
	})
	if err != nil {
		return err
	}
	if c.Data.Hosts < wallGroup {
		return fmt.Errorf("hosts: got %d, want at least %d", c.Data.Hosts, wallGroup)
	}
	return c.Data.Validate()
}

// liveQuery is a query of a panel, as the page's text and as the body of a subscription.
type liveQuery struct{ m, body string }

// overADay are the queries of the dashboard that is opened: the groups of a metric over the whole
// data set, with the downsample that the page chooses for a day.
func overADay(d workload.Devops) (all []liveQuery) {
	filter := func(tagk, value string) string {
		return fmt.Sprintf(`,"filters":[{"type":"wildcard","tagk":%q,"filter":%q,"groupBy":true}]`, tagk, value)
	}
	for i, aggregator := range []string{"sum", "avg", "max", "min"} {
		host := workload.HostName(i)
		for _, form := range []struct{ front, behind, rest string }{
			{"", "", ""}, {"", "{region=*}", filter("region", "*")}, {"", "{dc=*}", filter("dc", "*")},
			{"rate:", "", `,"rate":true`},
			{"", "{host=" + host + "}", strings.Replace(filter("host", host), "wildcard", "literal_or", 1)},
		} {
			all = append(all, liveQuery{
				m: fmt.Sprintf("%s:auto:%s%s%s", aggregator, form.front, d.Metric(), form.behind),
				body: fmt.Sprintf(`{"start":"%dh-ago","queries":[{"metric":%q,"aggregator":%q,`+
					`"downsample":"5m-avg"%s,"rollupUsage":"ROLLUP_RAW"}]}`,
					d.Hours, d.Metric(), aggregator, form.rest),
			})
		}
	}
	return all
}

// wall are the queries of live panels: each of ten hosts, so that each changes every second.
func wall(d workload.Devops) (all []string) {
	aggregators := []string{"sum", "avg", "max", "min", "count", "dev"}
	for i := range wallPanels {
		first := i / len(aggregators) * wallGroup % (d.Hosts - d.Hosts%wallGroup)
		var hosts []string
		for host := range wallGroup {
			hosts = append(hosts, workload.HostName(first+host))
		}
		all = append(all, fmt.Sprintf("%s:%s{}{host=%s}",
			aggregators[i%len(aggregators)], d.Metric(), strings.Join(hosts, "|")))
	}
	return all
}

// document is a dashboard of panels side by side, across of them in a row.
func document(from string, across int, ms []string) []byte {
	var panels []map[string]any
	for i, m := range ms {
		w := 12 / across
		panels = append(panels, map[string]any{
			"id":      fmt.Sprintf("p%d", i),
			"type":    "lines",
			"title":   fmt.Sprintf("Panel %d", i),
			"queries": []string{m},
			"place":   map[string]int{"x": i % across * w, "y": i / across * 5, "w": w, "h": 5},
		})
	}
	// It holds no value that fails.
	text, _ := json.Marshal(map[string]any{
		"form":   1,
		"title":  "Bench",
		"range":  map[string]string{"from": from, "to": ""},
		"panels": panels,
	})
	return text
}

// viewers measures the processor time of the gateway for many viewers of one dashboard against
// one, in turn, while points come.
func (c *Config) viewers(ctx context.Context, h *history) error {
	p := c.Progress("viewers, rounds, "+c.Store, int64(c.Rounds))
	defer p.End()
	one := report.Figure{Name: "a second of one viewer, CPU, " + c.Store, Work: paintPanels, Unit: "panels"}
	many := report.Figure{
		Name: fmt.Sprintf("a second of %d viewers, CPU, %s", c.Dashboards.Viewers, c.Store),
		Of:   one.Name,
		Work: int64(c.Dashboards.Viewers) * paintPanels,
		Unit: "panels",
	}
	for range c.Rounds {
		for n, figure := range map[int]*report.Figure{1: &one, c.Dashboards.Viewers: &many} {
			used, err := c.viewed(ctx, h, n)
			if err != nil {
				return err
			}
			figure.Runs = append(figure.Runs, used)
		}
		p.Add(1)
	}
	c.Report.Figures = append(c.Report.Figures, one, many)
	c.Report.Aims = append(c.Report.Aims, report.Aim{
		Row:   "viewers",
		Scale: "1x",
		What: fmt.Sprintf("gateway's CPU, %d viewers of one dashboard of %d panels",
			c.Dashboards.Viewers, paintPanels),
		Against: "one viewer",
		Want:    1.2,
		Got:     many.Over(one),
		Figure:  many.Name,
	})
	return nil
}

// viewed returns the processor time of a second while so many look at the dashboard. Each viewer
// has one socket.
func (c *Config) viewed(ctx context.Context, h *history, viewers int) (time.Duration, error) {
	var bodies []string
	for _, q := range overADay(h.data) {
		bodies = append(bodies, q.body)
	}
	var all []*subscriptions
	defer func() {
		for _, f := range all {
			f.close()
		}
	}()
	for n := range viewers {
		s, err := dial(ctx, c.Server, n, reading)
		if err != nil {
			return 0, err
		}
		f, err := subscribeAll(ctx, s, bodies)
		if err != nil {
			return 0, err
		}
		all = append(all, f)
	}

	// What is done once, such as that at the first new point of each series, is not measured.
	if err := h.run(ctx, h.data.Step+2); err != nil {
		return 0, err
	}
	before, err := c.Tick.CPU()
	if err != nil {
		return 0, err
	}
	if err := h.run(ctx, c.Dashboards.Seconds); err != nil {
		return 0, err
	}
	after, err := c.Tick.CPU()
	for _, f := range all {
		if f.messages() == 0 {
			err = errors.Join(err, errors.New("a viewer got no message"))
		}
	}
	return (after - before) / time.Duration(c.Dashboards.Seconds), err
}

// inBrowser measures the first paint of a dashboard, and what a wall of live panels costs.
func (c *Config) inBrowser(ctx context.Context, h *history) error {
	p := c.Progress("dashboards in a browser, "+c.Store, 0)
	defer p.End()
	var ms []string
	for _, q := range overADay(h.data) {
		ms = append(ms, q.m)
	}
	if err := c.save(ctx, "bench-paint", document(fmt.Sprintf("%dh-ago", h.data.Hours), 4, ms)); err != nil {
		return err
	}
	if err := c.save(ctx, "bench-wall", document("15m-ago", 6, wall(h.data))); err != nil {
		return err
	}
	if err := h.durable(ctx); err != nil {
		return err
	}

	var painted struct{ MS []float64 }
	err := c.browse(ctx, &painted, "paint", "bench-paint", fmt.Sprint(paintPanels), fmt.Sprint(c.Dashboards.Paints))
	if err != nil {
		return err
	}
	if len(painted.MS) == 0 {
		return errors.New("first paint: the browser tells no time")
	}
	c.addPaints(painted.MS)

	// Points come while the wall is open.
	var walled wallFigures
	open, closed := context.WithCancel(ctx)
	defer closed()
	written := make(chan error, 1)
	go func() { written <- h.run(open, int((c.Dashboards.Wall + 10*time.Minute).Seconds())) }()
	err = c.browse(ctx, &walled, "wall", "bench-wall", fmt.Sprint(wallPanels),
		fmt.Sprint(int(c.Dashboards.Wall.Seconds())))
	closed()
	if putting := <-written; putting != nil && !errors.Is(putting, context.Canceled) {
		err = errors.Join(err, putting)
	}
	if err != nil {
		return err
	}
	return c.addWall(walled)
}

// addPaints puts the times of first paints, in ms, into the report. The first time nothing is in
// the gateway's memory.
func (c *Config) addPaints(ms []float64) {
	f := report.Figure{
		Name: fmt.Sprintf("first paint of %d panels over a day, %s", paintPanels, c.Store),
		Work: paintPanels,
		Unit: "panels",
	}
	for _, v := range ms {
		f.Runs = append(f.Runs, time.Duration(v*float64(time.Millisecond)))
	}
	sorted := slices.Sorted(slices.Values(ms))
	c.Report.Figures = append(c.Report.Figures, f)
	c.Report.Aims = append(c.Report.Aims, report.Aim{
		Row:    "dashboards",
		Scale:  "1x",
		What:   f.Name + ", in Chromium",
		Unit:   "ms",
		Want:   1000,
		Got:    report.Ratio{Median: sorted[len(sorted)/2], Low: sorted[0], High: sorted[len(sorted)-1]},
		Figure: f.Name,
	})
	c.Report.Note("first paints, in their order: %.0f ms; the first with nothing in the gateway's result cache", ms)
}

// wallFigures is what the browser reports about the wall.
type wallFigures struct {
	TaskMS   float64 // of the main thread in a second
	ScriptMS float64 // of these, in scripts
	Points   int     // that the panels show
	// Samples are taken at equal distances, each after a garbage collection.
	Samples []struct{ Seconds, Heap, Resident float64 }
}

// addWall puts the wall's figures into the report: the main thread has no aim, memory must not
// grow from the second third of the time to the last. Single samples go up and down by a quarter,
// with the room that lists of points have to grow, so medians are compared.
func (c *Config) addWall(w wallFigures) error {
	if len(w.Samples) < 3 {
		return fmt.Errorf("the wall: got %d samples of memory, want at least 3", len(w.Samples))
	}
	var heaps []float64 // MiB
	for _, s := range w.Samples {
		heaps = append(heaps, s.Heap/(1<<20))
	}
	n := len(heaps)
	middle, end := paired.Median(heaps[n/3:n-n/3]), paired.Median(heaps[n-n/3:])
	grown := end / middle
	c.Report.Figures = append(c.Report.Figures, report.Figure{
		Name: fmt.Sprintf("main thread in a second, %d live panels, %s", wallPanels, c.Store),
		Work: wallPanels,
		Unit: "panels",
		Runs: []time.Duration{time.Duration(w.TaskMS * float64(time.Millisecond))},
	})
	c.Report.Aims = append(c.Report.Aims, report.Aim{
		Row:   "dashboards",
		Scale: "1x",
		What: fmt.Sprintf("heap of a tab with %d live panels in the last third of %s, against the third before",
			wallPanels, c.Dashboards.Wall),
		Want: 1.05,
		Got:  report.Single(grown),
	})
	c.Report.Note("%d live panels, %d points: main thread %.0f ms a second, %.0f of them in scripts; "+
		"heap after collections, every %.0f s: %.1f MiB; resident memory of the tab %.0f MiB at first, %.0f at the end",
		wallPanels, w.Points, w.TaskMS, w.ScriptMS, w.Samples[0].Seconds, heaps, w.Samples[0].Resident/(1<<20),
		w.Samples[n-1].Resident/(1<<20))
	return nil
}

// browse runs the script and reads the JSON that it prints last.
func (c *Config) browse(ctx context.Context, to any, args ...string) error {
	if c.Dashboards.Browser == nil {
		return errors.New("there is no browser")
	}
	out, err := c.Dashboards.Browser(ctx, append([]string{c.Server.URL}, args...)...)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), to); err != nil {
		return fmt.Errorf("%s: %w: %.200s", args[0], err, out)
	}
	return nil
}

// save puts a dashboard.
func (c *Config) save(ctx context.Context, name string, document []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, c.Server.URL+"/api/dashboards/"+name,
		strings.NewReader(string(document)))
	if err != nil {
		return err
	}
	request.Header.Set("If-None-Match", "*")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return fmt.Errorf("save dashboard %s: %s: %s", name, answer.Status, text)
	}
	return nil
}
