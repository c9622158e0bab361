package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func small() Devops {
	return Devops{MetricCount: 4, Hosts: 3, Tags: 8, Start: 3600, Hours: 2, Step: 600, Seed: 7}
}

// Hourly and Ticks yield the same points in different orders, and another seed yields other points.
func TestDevops_orders(t *testing.T) {
	d := small()
	points := map[string]int64{}
	hours := map[string]bool{}
	for h := range d.Hourly() {
		hours[fmt.Sprint(h.Values)] = true
		for i, v := range h.Values {
			points[fmt.Sprint(h.Series, h.Base+int64(i*d.Step))] = v
			if v < 0 || h.Metric.Kind == Gauge && v > h.Metric.Max {
				t.Fatalf("%s: value %d, want 0 to %d", h.Metric.Name, v, h.Metric.Max)
			}
		}
	}
	if len(hours) != d.Series()*d.Hours {
		t.Errorf("%d different hours, want all %d", len(hours), d.Series()*d.Hours)
	}
	last := make([]int64, d.Series())
	n, other := 0, d
	for tick := range d.Ticks() {
		for i, v := range tick.Values {
			if want, ok := points[fmt.Sprint(i, tick.Time)]; !ok || v != want {
				t.Fatalf("series %d at %d: %d in a tick, %d in its row", i, tick.Time, v, want)
			}
			if Metrics[i%d.MetricCount].Kind == Counter && v < last[i] {
				t.Fatalf("counter %d falls from %d to %d", i, last[i], v)
			}
			last[i] = v
			n++
		}
	}
	if n != d.Points() || n != 4*3*2*6 {
		t.Errorf("%d points, want %d", n, d.Points())
	}
	other.Seed++
	same := 0
	for h := range other.Hourly() {
		for i, v := range h.Values {
			if points[fmt.Sprint(h.Series, h.Base+int64(i*d.Step))] == v {
				same++
			}
		}
	}
	if same > n/2 {
		t.Errorf("%d of %d points do not depend on the seed", same, n)
	}
}

// In each format the texts of several senders together are the whole data set, with every series in
// the order of time.
func TestText_lanes(t *testing.T) {
	d := small()
	for _, format := range Formats {
		var all []string
		for lane := range 2 {
			last := map[string]string{}
			for c := range d.Text(format, 5, func(i int) bool { return i%2 == lane }) {
				points := read(t, format, c.Text)
				if len(points) != c.Points || c.Points > 5 {
					t.Fatalf("%s: a chunk of %d points says %d", format, len(points), c.Points)
				}
				for _, p := range points {
					series := p[0] + p[3]
					if p[1] <= last[series] && len(p[1]) == len(last[series]) {
						t.Fatalf("%s: %s after %s", format, p[1], last[series])
					}
					last[series] = p[1]
					all = append(all, strings.Join(p[:], " "))
				}
			}
		}
		if len(all) != d.Points() {
			t.Errorf("%s: %d points, want %d", format, len(all), d.Points())
		}
		if format == Telnet && !strings.Contains(strings.Join(all, "\n"), "load.1m 3600 ") {
			t.Errorf("no point of load.1m at the start: %s", all[0])
		}
	}
}

// read takes a chunk apart into metric, time, value and tags.
func read(t *testing.T, format Format, text []byte) (out [][4]string) {
	t.Helper()
	if format == JSON {
		var points []struct {
			Metric    string
			Timestamp json.Number
			Value     json.Number
			Tags      map[string]string
		}
		if err := json.Unmarshal(text, &points); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, p := range points {
			if len(p.Tags) != 8 {
				t.Fatalf("%d tags, want 8", len(p.Tags))
			}
			out = append(out, [4]string{p.Metric, string(p.Timestamp), string(p.Value), fmt.Sprint(p.Tags)})
		}
		return out
	}
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if format == Telnet {
			if f[0] != "put" {
				t.Fatalf("line %q", line)
			}
			f = f[1:]
		}
		if len(f) != 3+8 {
			t.Fatalf("line %q has %d tags, want 8", line, len(f)-3)
		}
		out = append(out, [4]string{f[0], f[1], f[2], strings.Join(f[3:], " ")})
	}
	return out
}

func TestAppendValue(t *testing.T) {
	f := func(v int64, decimals int, want string) {
		t.Helper()
		if got := string(AppendValue(nil, v, decimals)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f(1234, 0, "1234")
	f(1234, 2, "12.34")
	f(7, 2, "0.07")
	f(-7, 2, "-0.07")
	f(100, 2, "1.00")
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Devops){
		"hosts":   func(d *Devops) { d.Hosts = 0 },
		"metrics": func(d *Devops) { d.MetricCount = 17 },
		"tags":    func(d *Devops) { d.Tags = 9 },
		"step":    func(d *Devops) { d.Step = 7 },
		"start":   func(d *Devops) { d.Start = 1 },
		"hours":   func(d *Devops) { d.Hours = 0 },
	} {
		d := Default()
		change(&d)
		if err := d.Validate(); err == nil || !strings.HasPrefix(err.Error(), want+": got ") {
			t.Errorf("%s: error %v", want, err)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

// Vary yields queries inside the range of the first one, never the same twice in a row, and the
// same ones for the same seed. Recorded reads queries that Vary can vary too.
func TestVary(t *testing.T) {
	q := Default().Whole("sum:5m-avg:%s")
	first, again := Take(50, q.Vary(3600, 300, 1)), Take(50, q.Vary(3600, 300, 1))
	for i, v := range first {
		if v != again[i] {
			t.Fatalf("variant %d is %v and %v", i, v, again[i])
		}
		if i > 0 && v == first[i-1] {
			t.Errorf("variants %d and %d are the same", i-1, i)
		}
		if v.Start < q.Start || v.Start >= q.Start+3600 || v.End > q.End || v.End <= q.End-3600 ||
			(v.Start-q.Start)%300 != 0 || (q.End-v.End)%300 != 0 {
			t.Errorf("variant %v of %v, want times within an hour of its own, in steps of 300 s", v, q)
		}
	}
	recorded, err := Recorded(strings.NewReader("# a comment\n\nhttp://x:4242/api/query?start=1700000000000" +
		"&end=1700003600&m=sum:a\n/api/query?start=1h-ago&m=sum:a\n"))
	if err != nil || len(recorded) != 2 || recorded[1].Path != "/api/query?start=1h-ago&m=sum:a" {
		t.Fatalf("%v, %v", recorded, err)
	}
	v := Take(2, recorded[0].Vary(3600, 1, 1))
	if v[0].Path == v[1].Path || !strings.Contains(v[1].Path, "start=1700000001000") {
		t.Errorf("recorded variants %v, want two that differ, the second 1 s later", v)
	}
	for _, v := range Take(100, recorded[0].Vary(3600, 1, 1)) {
		if v.span() < 1800 {
			t.Errorf("variant %v reaches over %d s, want at least half of 3600", v, v.span())
		}
	}
	for body, want := range map[string]string{
		`{"start":1700000000,"end":"1700003600","queries":[]}`: `{"end":"1700003600","queries":[],` +
			`"start":"1700000001"}`,
		`{"start":"1h-ago","end":1700003600123,"queries":[]}`: `{"end":"1700003600123","queries":[],"start":"1h-ago"}`,
	} {
		if got := (Query{JSON: body}).moved(1, 0).JSON; got != want {
			t.Errorf("%s a second later: got %s, want %s", body, got, want)
		}
	}
	hour, err := Recorded(strings.NewReader(`arrow {"start":1700000000,"end":1700003600000,"queries":[]}`))
	if err != nil || !hour[0].Arrow || hour[0].span() != 3600 {
		t.Errorf("%+v, %v; want an hour, as Arrow", hour, err)
	}
	for _, bad := range []string{
		"", "/api/query?m=sum:a", "GET /api/query?start=1", `{"queries":[]}`, `{"start":1`, "arrow",
	} {
		if _, err := Recorded(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: no error, want one", bad)
		}
	}
}

// The queries of Mixed and Dashboard lie inside the data and have no placeholders left.
func TestQueries_inside(t *testing.T) {
	d := Default()
	for _, q := range append(Take(200, d.Mixed(3)), d.Dashboard(300, 5, 999)...) {
		if q.Start < d.Start || q.End >= d.End() || q.End <= q.Start || strings.Contains(q.M, "HOST") ||
			strings.Contains(q.M, "%") {
			t.Errorf("query %v", q)
		}
	}
}

// The texts of two senders together are every point of every pod once, and each pod is a series
// of its own.
func TestPods_text(t *testing.T) {
	p := Pods{Count: 250, Start: 3600, Hours: 2, PerHour: 3, Seed: 1}
	seen := map[string]int{}
	for lane := range 2 {
		for c := range p.Text(Telnet, 7, func(i int) bool { return i%2 == lane }) {
			for line := range bytes.Lines(c.Text) {
				f := strings.Fields(string(line))
				seen[f[2]+" "+strings.Join(f[4:], " ")]++
			}
		}
	}
	if len(seen) != p.Points() {
		t.Errorf("%d times of series, want %d", len(seen), p.Points())
	}
	for _, at := range []string{"3600", "4800", "6000", "7200", "8400", "9600"} {
		key := at + " host=" + HostName(1) + " pod=pod-0000249 zone=zone-1"
		if seen[key] != 1 {
			t.Errorf("%s: %d points, want 1", key, seen[key])
		}
	}
	if q := p.OnePod(249); q.Start != 3600 || q.End != 10799 || q.M != "sum:5m-avg:pod.cpu{pod=pod-0000249}" {
		t.Errorf("query of one pod: %+v", q)
	}
}

// A log becomes requests in the order of their first times, a query that came three times three of them, and
// in turn with others. What could not be sent again is counted. A recording is read as it was written.
func TestRecord(t *testing.T) {
	t.Parallel()
	query := func(metric, more string) string {
		return `{"start":"1h-ago","end":null,"delete":false,"queries":[{"metric":"` + metric +
			`","tags":{"host":"literal_or(a)"},
			"index":0,"rate":true,"rateOptions":{"counter":false,"counterMax":9223372036854775807},` +
			`"useMultiGets":false,"useFuzzyFilter":true,
			"filters":[{"tagk":"host","filter":"a","group_by":true,"type":"literal_or"}]}]` + more + `}`
	}
	entry := func(start, executed, code int, accept, query string) string {
		return fmt.Sprintf(`{"query":%s,"executed":%d,"httpResponse":{"code":%d},"queryStartTimestamp":%d,`+
			`"requestHeaders":{"Accept":%q}}`,
			query, executed, code, start, accept)
	}
	log := `{"running":[{}],"completed":[` + strings.Join([]string{
		entry(30, 1, 200, "application/vnd.apache.arrow.stream", query("b", "")),
		entry(10, 3, 200, "*/*", query("a", "")),
		entry(11, 1, 400, "", query("c", "")),
		entry(12, 1, 200, "", strings.Replace(query("d", ""), `"delete":false`, `"delete":true`, 1)),
		entry(13, 1, 200, "", query("e", `,"notListed":"a query of 70000 bytes"`)),
		entry(14, 1, 304, "", query("f", "")),
	}, ",") + "]}"
	all, left, err := Record([]byte(log))
	if err != nil {
		t.Fatal(err)
	}
	if left != (LeftOut{Running: 1, Failed: 1, Deleting: 1, TooLong: 1}) ||
		left.String() != "1 running, 1 that failed, 1 that delete points, 1 too long for the log" {
		t.Errorf("left out: %+v, %s", left, left)
	}
	line := func(metric string) string {
		return `{"queries":[{"filters":[{"filter":"a","group_by":true,"tagk":"host","type":"literal_or"}],"metric":"` +
			metric +
			`","rate":true,"rateOptions":{"counterMax":9223372036854775807},"useMultiGets":false}],"start":"1h-ago"}`
	}
	var lines []string
	for _, q := range all {
		lines = append(lines, q.Line())
	}
	want := []string{line("a"), line("f"), "arrow " + line("b"), line("a"), line("a")}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	again, err := Recorded(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil || len(again) != len(all) {
		t.Fatalf("%d requests are read, want %d: %v", len(again), len(all), err)
	}
	for i, q := range again {
		if q.JSON != all[i].JSON || q.Arrow != all[i].Arrow {
			t.Errorf("request %d is %+v, want %+v", i, q, all[i])
		}
	}
	if _, _, err := Record([]byte("<html>")); err == nil {
		t.Error("an answer that is no log: no error, want one")
	}
}

// Of queries that came a million times a recording has a share, and of those that came once still one.
func TestRecord_share(t *testing.T) {
	t.Parallel()
	const entry = `{"query":{"start":"%s"},"executed":%d,"httpResponse":{"code":%d}}`
	all, _, err := Record(fmt.Appendf(nil, `{"completed":[`+entry+","+entry+","+entry+","+entry+"]}",
		"a", 3_000_000, 200, "b", 1_000_000, 200, "c", 1, 200, "d", 5_000_000, 500))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, q := range all {
		counts[q.JSON]++
	}
	diff := cmp.Diff(map[string]int{`{"start":"a"}`: 7499, `{"start":"b"}`: 2499, `{"start":"c"}`: 1}, counts)
	if diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}
