//go:build integration

package integration

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/e2e"
)

// Queries as Grafana's OpenTSDB data source sends them, set to each of the versions 2.1 to 2.4, get
// answers from which it reads what was put.
func TestGrafana(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	ours := embedded(t, map[string]string{"DOWNPOUR_ALLOW_ORIGINS": "http://grafana.example:3000"})
	fillGrafana(ctx, t, ours.URL)
	t.Run("support", func(t *testing.T) { grafanaSupport(ctx, t, ours.URL) })
	for _, v := range []grafana{
		{version: "2.1"},
		{version: "2.2"},
		{version: "2.3"},
		{version: "2.4"},
		{version: "2.1", backend: true},
		{version: "2.4", backend: true},
	} {
		t.Run(fmt.Sprintf("%s backend=%t", v.version, v.backend), func(t *testing.T) { v.check(ctx, t, ours.URL) })
	}
	t.Run("browser", func(t *testing.T) { grafanaBrowser(ctx, t, ours.URL) })
}

// The data: ten minutes of two hosts, a point a minute; the second lacks minutes
// 4 and 5. A counter of one host wraps at 1000.
const grafanaMinutes = 10

func fillGrafana(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	a := must[e2e.Answer](t)(
		e2e.Get(ctx, url+"/api/uid/assign?metric=cpu.load,cpu.count,cpu.now&tagk=host,dc&tagv=web01,web02,lga"),
	)
	if a.Status != http.StatusOK {
		t.Fatalf("assign: %s", a.Body)
	}
	var points []e2e.Point
	add := func(metric, host string, at int64, value int) {
		points = append(points, e2e.Point{
			Metric:    metric,
			Timestamp: at,
			Value:     json.RawMessage(strconv.Itoa(value)),
			Tags:      map[string]string{"host": host, "dc": "lga"},
		})
	}
	for i := range grafanaMinutes {
		at := int64(dataStart + 60*i)
		add("cpu.load", "web01", at, i)
		if i != 4 && i != 5 {
			add("cpu.load", "web02", at, 10*i)
		}
		add("cpu.count", "web01", at, (700+60*i)%1000)
	}
	add("cpu.now", "web01", time.Now().Add(-time.Minute).Unix(), 7)
	put(ctx, t, url, points)
	for _, note := range []string{
		fmt.Sprintf(`{"startTime":%d,"tsuid":"000001000001000001000002000003","description":"on web01"}`, dataStart+60),
		fmt.Sprintf(`{"startTime":%d,"description":"everywhere"}`, dataStart+120),
	} {
		if a := must[e2e.Answer](t)(e2e.Post(ctx, url+"/api/annotation", note)); a.Status != http.StatusOK {
			t.Fatalf("annotation: %s", a.Body)
		}
	}
}

// grafana is a data source: the version of OpenTSDB that it is set to, and whether Grafana's
// backend asks or its page.
type grafana struct {
	version string
	backend bool
}

// series is what the data source makes of one result.
type series struct {
	name   string // metric and tags, as a legend
	index  int    // of the target, where the version has it
	points map[int64]any
}

// target is one query of a panel.
type target map[string]any

// filter is a target's restriction on one tag, in the form of the version.
func (g grafana) filter(tagk, value string) target {
	if g.version == "2.1" {
		return target{"tags": map[string]string{tagk: value}}
	}
	kind := "literal_or"
	if strings.Contains(value, "*") {
		kind = "wildcard"
	}
	return target{"filters": []any{map[string]any{"type": kind, "tagk": tagk, "filter": value, "groupBy": true}}}
}

func with(parts ...target) target {
	all := target{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

// ask sends targets as this data source does and reads the answer as it does.
func (g grafana) ask(
	ctx context.Context, t *testing.T, url string, start, end any, targets ...target,
) (all []series, a e2e.Answer) {
	t.Helper()
	body := target{"start": start, "queries": targets}
	if end != nil {
		body["end"] = end
	}
	path := "/api/query"
	switch {
	case g.backend && g.version == "2.4":
		path += "?arrays=true"
	case !g.backend:
		body["msResolution"], body["globalAnnotations"] = false, true
		if g.version >= "2.3" {
			body["showQuery"] = true
		}
	}
	a = must[e2e.Answer](t)(e2e.Post(ctx, url+path, body))
	if a.Status != http.StatusOK {
		return nil, a
	}
	var results []struct {
		Metric        string
		Tags          map[string]string
		AggregateTags []string
		Query         struct{ Index *int }
		DPS           json.RawMessage
	}
	if err := json.Unmarshal(a.Body, &results); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	for _, r := range results {
		s := series{name: r.Metric + legend(r.Tags), index: -1, points: g.points(t, r.DPS)}
		if r.Query.Index != nil {
			s.index = *r.Query.Index
		}
		if !g.backend && g.version >= "2.3" && s.index < 0 {
			t.Errorf("%s has no query.index", s.name)
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b series) int { return strings.Compare(a.name, b.name) })
	return all, a
}

func legend(tags map[string]string) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		words = append(words, k+"="+tags[k])
	}
	return "{" + strings.Join(words, ",") + "}"
}

// points reads dps. The page reads a map of any values, the backend one of floats, or pairs in
// version 2.4.
func (g grafana) points(t *testing.T, dps json.RawMessage) map[int64]any {
	t.Helper()
	out := map[int64]any{}
	if g.backend && g.version == "2.4" {
		var pairs [][2]float64
		if err := json.Unmarshal(dps, &pairs); err != nil {
			t.Fatalf("%v: %s", err, dps)
		}
		for _, p := range pairs {
			out[int64(p[0])] = p[1]
		}
		return out
	}
	read := func(into any) {
		if err := json.Unmarshal(dps, into); err != nil {
			t.Fatalf("%v: %s", err, dps)
		}
	}
	values := map[string]any{}
	if floats := map[string]float64{}; g.backend {
		read(&floats)
		for k, v := range floats {
			values[k] = v
		}
	} else {
		read(&values)
	}
	for k, v := range values {
		at, err := strconv.ParseInt(k, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out[at] = v
	}
	return out
}

// at is the time of a minute of the data.
func at(minute int) int64 { return dataStart + 60*int64(minute) }

// every holds a value for each step-th minute, but those that are missing.
func every(step int, value func(minute int) any) map[int64]any {
	out := map[int64]any{}
	for i := 0; i < grafanaMinutes; i += step {
		if v := value(i); v != missing {
			out[at(i)] = v
		}
	}
	return out
}

// missing is a point that is not there.
var missing any = struct{}{}

func (g grafana) check(ctx context.Context, t *testing.T, url string) {
	var start, end any = int64(dataStart) * 1000, at(grafanaMinutes)*1000 - 1
	if g.backend {
		start, end = int64(dataStart), at(grafanaMinutes)-1
	}
	f := func(name string, want []series, targets ...target) e2e.Answer {
		t.Helper()
		got, a := g.ask(ctx, t, url, start, end, targets...)
		for i := range want {
			if g.backend || g.version < "2.3" {
				want[i].index = -1
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(series{})); diff != "" {
			t.Errorf("%s: %s\n%d %.500s", name, diff, a.Status, a.Body)
		}
		return a
	}
	load := target{"metric": "cpu.load", "aggregator": "sum"}
	web01 := every(1, func(i int) any { return float64(i) })
	web02 := func(gap any) map[int64]any {
		return every(1, func(i int) any {
			if i == 4 || i == 5 {
				return gap
			}
			return float64(10 * i)
		})
	}
	a := f("by host",
		[]series{{"cpu.load{dc=lga,host=web01}", 0, web01}, {"cpu.load{dc=lga,host=web02}", 0, web02(missing)}},
		with(load, g.filter("host", "*")))
	for _, want := range []string{`"description":"on web01"`, `"description":"everywhere"`} {
		if !g.backend && !bytes.Contains(a.Body, []byte(want)) {
			t.Errorf("annotations: no %s in %s", want, a.Body)
		}
	}
	f("one host", []series{{"cpu.load{dc=lga,host=web02}", 0, web02(missing)}}, with(load, g.filter("host", "web02")))
	f("two hosts",
		[]series{{"cpu.load{dc=lga,host=web01}", 0, web01}, {"cpu.load{dc=lga,host=web02}", 0, web02(missing)}},
		with(load, g.filter("host", "web01|web02")))
	// The gap of web02 is filled by the line between its neighbours.
	f("sum, downsampled", []series{{"cpu.load{dc=lga}", 0, every(2, func(i int) any { return 11*float64(i) + 5.5 })}},
		with(load, target{"downsample": "2m-avg"}, g.filter("dc", "lga")))
	f("two targets",
		[]series{
			{"cpu.count{dc=lga,host=web01}", 1, map[int64]any{at(0): 940.0, at(5): 240.0}},
			{"cpu.load{dc=lga,host=web01}", 0, map[int64]any{at(0): 4.0, at(5): 9.0}},
		},
		with(load, target{"downsample": "5m-max", "aggregator": "max"}, g.filter("host", "web01")),
		with(target{"metric": "cpu.count", "aggregator": "max", "downsample": "5m-last"}, g.filter("host", "web01")))
	g.fills(f, load, web02)
	g.rates(ctx, t, url)

	unknown := target{"metric": "no.such.metric", "aggregator": "sum"}
	if got, a := g.ask(ctx, t, url, start, end, unknown); a.Status != http.StatusBadRequest || len(got) > 0 ||
		!strings.Contains(grafanaError(a.Body), "No such name for 'metrics': 'no.such.metric'") {
		t.Errorf("unknown metric: status %d, want 400 and the name: %s", a.Status, a.Body)
	}
	if got, a := g.ask(ctx, t, url, int64(dataStart+86400), int64(dataStart+90000), load); a.Status != http.StatusOK ||
		len(got) > 0 || strings.HasPrefix(string(a.Body), "[]") == false && g.backend {
		t.Errorf("no data: status %d, want 200 and no series: %s", a.Status, a.Body)
	}
	if !g.backend {
		now := target{"metric": "cpu.now", "aggregator": "sum"}
		if got, a := g.ask(ctx, t, url, "1h-ago", nil, now); len(got) != 1 || len(got[0].points) != 1 {
			t.Errorf("the last hour: status %d, want one point: %s", a.Status, a.Body)
		}
	}
}

// fills asks with each fill policy. null is a gap to the page and 0 to the backend, which cannot
// read NaN.
func (g grafana) fills(f func(string, []series, ...target) e2e.Answer, load target, web02 func(any) map[int64]any) {
	for fill, gap := range map[string]any{"": missing, "-none": missing, "-zero": 0.0, "-null": nil, "-nan": "NaN"} {
		if g.backend && (fill == "-nan" || fill == "-null") {
			if fill == "-nan" || g.version == "2.4" || gap != nil {
				continue
			}
			gap = 0.0
		}
		f("fill "+fill, []series{{"cpu.load{dc=lga,host=web02}", 0, web02(gap)}},
			with(load, target{"downsample": "1m-avg" + fill}, g.filter("host", "web02")))
	}
}

// rates asks for the rate of the counter, which goes up by 1 a second and wraps at 1000. The first
// point of the rate, for which OpenTSDB has a rule of its own, is not checked.
func (g grafana) rates(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	for name, options := range map[string]any{
		"integer": map[string]any{"counter": true, "counterMax": 1000},
		"float":   json.RawMessage(`{"counter":true,"counterMax":1000.0,"resetValue":0.0}`),
	} {
		got, a := g.ask(ctx, t, url, int64(dataStart), at(grafanaMinutes), with(
			target{"metric": "cpu.count", "aggregator": "sum", "rate": true, "rateOptions": options},
			g.filter("host", "web01"),
		))
		if len(got) != 1 || len(got[0].points) < grafanaMinutes-1 {
			t.Errorf("rate, %s: status %d, want one series of at least 9 points: %s", name, a.Status, a.Body)
			continue
		}
		for i := 1; i < grafanaMinutes; i++ {
			if v := got[0].points[at(i)]; v != 1.0 {
				t.Errorf("rate, %s, minute %d: %v, want 1", name, i, v)
			}
		}
	}
	tooLarge := target{
		"metric":      "cpu.count",
		"aggregator":  "sum",
		"rate":        true,
		"rateOptions": json.RawMessage(`{"counter":true,"counterMax":1.8446744073709552e19}`),
	}
	_, a := g.ask(ctx, t, url, int64(dataStart), at(grafanaMinutes), tooLarge)
	if a.Status != http.StatusBadRequest || grafanaError(a.Body) == "" {
		t.Errorf("a counterMax beyond 64 bits: status %d, want 400 and a message: %s", a.Status, a.Body)
	}
}

// grafanaError is the text that a panel shows.
func grafanaError(body []byte) string {
	var e struct{ Error struct{ Message string } }
	_ = json.Unmarshal(body, &e)
	return e.Error.Message
}

// grafanaSupport asks what the query editor, the variables and the test button ask.
func grafanaSupport(ctx context.Context, t *testing.T, url string) {
	get := func(path string, into any) {
		t.Helper()
		a := must[e2e.Answer](t)(e2e.Get(ctx, url+path))
		if err := json.Unmarshal(a.Body, into); err != nil || a.Status != http.StatusOK {
			t.Errorf("%s: %d %v: %s", path, a.Status, err, a.Body)
		}
	}
	for path, want := range map[string][]string{
		"/api/suggest?q=cpu&type=metrics":            {"cpu.count", "cpu.load", "cpu.now"},
		"/api/suggest?type=metrics&q=cpu.l&max=1000": {"cpu.load"},
		"/api/suggest?type=metrics&q=cpu&max=2":      {"cpu.count", "cpu.load"}, // the data source's lookup limit
		"/api/suggest?type=metrics&q=&max=1000":      {"cpu.count", "cpu.load", "cpu.now"},
		"/api/suggest?type=tagk&q=&max=1000":         {"dc", "host"},
		"/api/suggest?type=tagk&q=ho&max=1000":       {"host"},
		"/api/suggest?type=tagv&q=web&max=1000":      {"web01", "web02"},
		"/api/suggest?type=tagv&q=nobody&max=1000":   {},
	} {
		var got []string
		if get(path, &got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	var aggregators []string
	if get("/api/aggregators", &aggregators); !slices.Contains(aggregators, "zimsum") ||
		!slices.Contains(aggregators, "none") || len(aggregators) != 35 {
		t.Errorf("aggregators: %q, want 35 with zimsum and none", aggregators)
	}
	var filters map[string]struct{ Examples, Description string }
	get("/api/config/filters", &filters)
	if got := slices.Sorted(maps.Keys(filters)); !cmp.Equal(got,
		[]string{"iliteral_or", "iwildcard", "literal_or", "not_iliteral_or", "not_literal_or", "regexp", "wildcard"}) {
		t.Errorf("filters: %q, want the 7 of OpenTSDB", got)
	}
	for path, want := range map[string][]string{
		"/api/search/lookup?m=cpu.load&limit=1000":                          {"dc=lga,host=web01", "dc=lga,host=web02"},
		"/api/search/lookup?m=cpu.load%7Bhost=*%7D&limit=1000":              {"dc=lga,host=web01", "dc=lga,host=web02"},
		"/api/search/lookup?m=cpu.load%7Bhost=*,dc=lga%7D&limit=1000":       {"dc=lga,host=web01", "dc=lga,host=web02"},
		"/api/search/lookup?m=cpu.load%7Bdc=*,host=web02%7D&limit=1000":     {"dc=lga,host=web02"},
		"/api/search/lookup?m=cpu.count%7Bhost=*%7D&limit=1000&use_meta=on": {"dc=lga,host=web01"},
	} {
		var got struct {
			Results []struct{ Tags map[string]string }
		}
		get(path, &got)
		var all []string
		for _, r := range got.Results {
			all = append(all, strings.Trim(legend(r.Tags), "{}"))
		}
		if slices.Sort(all); !slices.Equal(all, want) {
			t.Errorf("%s: %q, want %q", path, all, want)
		}
	}
}

// grafanaBrowser asks as Grafana's page does in a browser, from an origin of its own, and for
// compressed answers.
func grafanaBrowser(ctx context.Context, t *testing.T, url string) {
	ask := func(method, origin string, header ...string) (*http.Response, []byte) {
		t.Helper()
		body := fmt.Sprintf(`{"start":%d,"end":%d,"queries":[{"metric":"cpu.load","aggregator":"none",`+
			`"downsample":"1s-avg-zero"}]}`, dataStart, dataStart+600)
		req := must[*http.Request](t)(http.NewRequestWithContext(ctx, method, url+"/api/query",
			strings.NewReader(body)))
		req.Header.Set("Origin", origin)
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp := must[*http.Response](t)(http.DefaultClient.Do(req))
		defer resp.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp, b.Bytes()
	}
	const page = "http://grafana.example:3000"
	resp, _ := ask(http.MethodOptions, page, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
		"content-type")
	if h := resp.Header; resp.StatusCode != http.StatusOK || h.Get("Access-Control-Allow-Origin") != page ||
		!strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Content-Type") {
		t.Errorf("preflight: %d %v", resp.StatusCode, h)
	}
	resp, plain := ask(http.MethodPost, page)
	if h := resp.Header; resp.StatusCode != http.StatusOK || h.Get("Access-Control-Allow-Origin") != page ||
		!strings.HasPrefix(h.Get("Content-Type"), "application/json") ||
		!bytes.HasPrefix(plain, []byte(`[{"metric":"cpu.load"`)) {
		t.Errorf("from the page: %d %v %.100s", resp.StatusCode, resp.Header, plain)
	}
	if resp, body := ask(http.MethodPost, "http://other.example"); bytes.Contains(body, []byte("dps")) ||
		resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("from another page: %d %v %.100s", resp.StatusCode, resp.Header, body)
	}
	resp, packed := ask(http.MethodPost, page, "Accept-Encoding", "gzip")
	if resp.Header.Get("Content-Encoding") != "gzip" || len(packed) >= len(plain) {
		t.Fatalf("compressed: %v, %d bytes of %d", resp.Header, len(packed), len(plain))
	}
	var unpacked bytes.Buffer
	if _, err := unpacked.ReadFrom(must[*gzip.Reader](t)(gzip.NewReader(bytes.NewReader(packed)))); err != nil ||
		!bytes.Equal(unpacked.Bytes(), plain) {
		t.Errorf("compressed: %v, %d bytes of %d", err, unpacked.Len(), len(plain))
	}
}
