//go:build integration

package integration

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/integration/e2e"
)

// Client libraries, as PyPI has them, write by telnet and HTTP; the query builder of one of them
// reads what all have written.
func TestClients_libraries(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	ours := embedded(t, nil)
	host, port, _ := strings.Cut(ours.Addr, ":")
	args := []string{host, port, strconv.Itoa(dataStart)}
	if out, err := e2e.PythonClients(ctx, "integration/clients/libraries.py",
		append([]string{"write"}, args...)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	libraries := []string{"opentsdb-http-client", "opentsdb-py-http", "opentsdb-py-telnet", "potsdb"}
	// A telnet client that just closes does not learn when its lines are stored.
	err := e2e.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		a, err := e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&m=sum:0all-count:clients.points%%7Blib=*%%7D",
			ours.URL, dataStart))
		if n := bytes.Count(a.Body, []byte(":10.0}")); err == nil && n < len(libraries) {
			err = fmt.Errorf("%d libraries' points are there: %.500s", n, a.Body)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		All, Two []struct {
			Tags          map[string]string
			AggregateTags []string
			DPS           map[string]json.Number
		}
		None int
	}
	out := must[[]byte](t)(e2e.PythonClients(ctx, "integration/clients/libraries.py",
		append([]string{"read"}, args...)...))
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.None != http.StatusBadRequest {
		t.Errorf("unknown metric: %d, want 400", got.None)
	}
	read := map[string]map[string]json.Number{}
	for _, r := range got.All {
		read[r.Tags["lib"]] = r.DPS
	}
	want := map[string]map[string]json.Number{}
	for _, lib := range libraries {
		want[lib] = map[string]json.Number{}
		for i := range 10 {
			want[lib][strconv.Itoa(dataStart+10*i)] = json.Number(strconv.Itoa(i))
		}
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read by opentsdb2py: %s", diff)
	}
	means := map[string]json.Number{strconv.Itoa(dataStart): "2.0", strconv.Itoa(dataStart + 50): "7.0"}
	if len(got.Two) != 2 || !cmp.Equal(got.Two[0].DPS, means) || !cmp.Equal(got.Two[1].DPS, means) {
		t.Errorf("two libraries, downsampled: %+v, want %v twice", got.Two, means)
	}
}

// The reporters of Java's metrics libraries write a counter, a gauge and a histogram, by
// HTTP with gzip (Micrometer), by HTTP and by telnet (metrics-opentsdb).
func TestClients_java(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	ours := embedded(t, nil)
	host, port, _ := strings.Cut(ours.Addr, ":")
	if out, err := e2e.JavaWriters(ctx, "integration/clients/Writers.java", host, port); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []struct {
		metric string
		value  json.Number
		libs   []string
	}{
		{"clients_orders_total", "3", []string{"micrometer"}},
		{"clients_queue", "2.5", []string{"micrometer"}},
		{"clients_size_sum", "12", []string{"micrometer"}},
		{"clients.orders.count", "3", []string{"metrics-http", "metrics-telnet"}},
		{"clients.queue.value", "2.5", []string{"metrics-http", "metrics-telnet"}},
		{"clients.size.max", "8", []string{"metrics-http", "metrics-telnet"}},
	} {
		for _, lib := range want.libs {
			// A telnet client that just closes does not learn when its lines are stored.
			err := e2e.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
				return oneValue(ctx, ours.URL, fmt.Sprintf("sum:%s{lib=%s}", want.metric, lib), want.value)
			})
			if err != nil {
				t.Errorf("%s of %s: %v", want.metric, lib, err)
			}
		}
	}
}

// oneValue returns an error unless a query over the last hour answers one value.
func oneValue(ctx context.Context, url, m string, want json.Number) error {
	a, err := e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=1h-ago&m=%s", url, m))
	if err != nil {
		return err
	}
	var results []struct{ DPS map[string]json.Number }
	if err := json.Unmarshal(a.Body, &results); err != nil || len(results) != 1 || len(results[0].DPS) != 1 {
		return fmt.Errorf("got %d %.300s, want one value", a.Status, a.Body)
	}
	for _, got := range results[0].DPS {
		if got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
	}
	return nil
}

// collectd writes what it reads of this host.
func TestClients_collectd(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	ours := embedded(t, nil)
	host, port, _ := strings.Cut(ours.Addr, ":")
	c := must[*e2e.Collectd](t)(e2e.StartCollectd(ctx, host, port))
	closed := false
	defer func() {
		if !closed {
			c.Close()
		}
	}()
	err := e2e.UntilProcess(ctx, c.Process, 200*time.Millisecond, func(ctx context.Context) error {
		a, err := e2e.Get(ctx, ours.URL+"/api/query?start=1h-ago&m=none:load.load.shortterm{lib=collectd,fqdn=h1}")
		var results []struct{ DPS map[string]json.Number }
		if err == nil && (json.Unmarshal(a.Body, &results) != nil || len(results) != 1 || len(results[0].DPS) < 3) {
			err = fmt.Errorf("got %d %.300s, want three points of its load", a.Status, a.Body)
		}
		return err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Process.LogTail(20))
	}
	closed = true
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A client like tcollector opens one connection, sends lines in bulk and asks for the version now
// and then. It gets the answer to version and error lines, and nothing else.
func TestClients_tcollector(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	ours := embedded(t, nil)
	c := must[*telnet](t)(dialTelnet(ctx, ours.Addr))
	defer c.Close()
	const points = 2000
	for round := range 2 { // version is requested after each half
		for i := range points / 2 {
			n := round*points/2 + i
			fmt.Fprintf(c.out, "put proc.loadavg.1min %d %d.5 host=h%d fstype=ext4\n", dataStart+n, n, n%3)
		}
		if earlier, err := versionOf(c); err != nil || len(earlier) > 0 {
			t.Fatalf("round %d: lines %q before the answer to version, error %v; want none", round, earlier, err)
		}
	}
	// What was sent before the answer to version is there.
	a := must[e2e.Answer](t)(e2e.Get(
		ctx,
		fmt.Sprintf("%s/api/query?start=%d&m=sum:0all-count:proc.loadavg.1min%%7Bfstype=ext4%%7D", ours.URL, dataStart),
	))
	if !bytes.Contains(a.Body, []byte(fmt.Sprintf(":%d.0}", points))) {
		t.Errorf("%d points sent, and counted as %s", points, a.Body)
	}

	for _, bad := range []struct{ line, want string }{
		{"put proc.x 1356998400", "put: illegal argument: not enough arguments (need least 4, got 2)"},
		{"put proc.x 1356998400 abc host=a", "put: invalid value: "},
		{"put proc.x 1356998400 1", "put: illegal argument: not enough arguments"},
		{"put proc.x 1356998400 1 host", "put: illegal argument: invalid tag: host"},
		{
			"put proc!x 1356998400 1 host=a",
			"put: illegal argument: Invalid metric name (\"proc!x\"): illegal character: !",
		},
		{"putt proc.x 1356998400 1 host=a", "unknown command: putt.  Try "},
	} {
		fmt.Fprintf(c.out, "%s\nput proc.ok 1356998400 1 host=a\n", bad.line)
		if err := c.out.Flush(); err != nil {
			t.Fatal(err)
		}
		line, err := c.in.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, bad.want) {
			t.Errorf("%s: %q, %v, want %q", bad.line, line, err, bad.want)
		}
	}
	if earlier, err := versionOf(c); err != nil || len(earlier) > 0 {
		t.Errorf("version after errors: %q, %v, want no further line", earlier, err)
	}
	if rest, err := c.halfClose(); err != nil || rest != "" {
		t.Errorf("at the end: %q, error %v; want nothing more", rest, err)
	}
}

// versionOf asks for the version and returns the lines before the two of the answer.
func versionOf(c *telnet) (earlier []string, err error) {
	fmt.Fprintln(c.out, "version")
	if err := c.out.Flush(); err != nil {
		return nil, err
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return earlier, err
		}
		if strings.HasPrefix(line, "Built on") {
			return earlier[:len(earlier)-1], nil
		}
		earlier = append(earlier, line)
	}
}

// The requests of other writers get the answers that each depends on: scollector sends a batch
// again unless the status is 204, tcollector drops one for 400, the Prometheus adapter reads counts
// from the body.
func TestClients_writers(t *testing.T) {
	t.Parallel()
	ctx := within(t, 3*time.Minute)
	ours := embedded(t, nil)
	zip := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, text)
		z.Close()
		return b.String()
	}
	point := func(metric, value string, more ...string) string {
		all := []string{fmt.Sprintf(`{"metric":%q,"timestamp":%d,"value":%s,"tags":{"host":"a"}}`,
			metric, dataStart, value)}
		return "[" + strings.Join(append(all, more...), ",") + "]"
	}
	bad := `{"metric":"bad.one","timestamp":1356998400,"value":1,"tags":{}}`
	for _, w := range []struct {
		name, path, body string
		header           []string
		status           int
		want             string // of the body
		metric, value    string // to be read back
	}{
		{"scollector", "/api/put", zip(point("os.cpu", "1.5")),
			[]string{"Content-Encoding", "gzip", "X-Access-Token", "abc"}, 204, "", "os.cpu", "1.5"},
		{"tcollector", "/api/put", point("proc.stat", "3.0"), []string{"Authorization", "Basic dTpw"}, 204, "",
			"proc.stat", "3.0"},
		{"tcollector, one is wrong", "/api/put", point("proc.other", "3.0", bad), nil, 400, `"code":400`,
			"proc.other", "3.0"},
		{"telegraf", "/api/put", zip(point("cpu_usage", `"12.340000"`)),
			[]string{"Content-Encoding", "gzip", "Content-Type", "aplication/json"}, 204, "", "cpu_usage", "12.34"},
		{"telegraf, debug", "/api/put?details", point("cpu_idle", `"7.000000"`), nil, 200, `"success":1`,
			"cpu_idle", "7.0"},
		{"Prometheus adapter", "/api/put?details", point("up", "1.0", bad), nil, 400, `"failed":1`, "up", "1.0"},
		{"vitess", "/api/put?summary", point("qps", "5"),
			[]string{"Content-Type", "application/x-www-form-urlencoded"}, 200, `{"success":1,"failed":0}`, "qps",
			"5"},
		{"a script", "/api/put?sync&details", strings.Trim(point("script.one", `"42"`), "[]"), nil, 200,
			`"success":1`, "script.one", "42"},
		{"API version", "/api/v1/put", point("versioned", "1"), nil, 204, "", "versioned", "1"},
	} {
		a := must[e2e.Answer](t)(e2e.Post(ctx, ours.URL+w.path, w.body, w.header...))
		if a.Status != w.status || !bytes.Contains(a.Body, []byte(w.want)) || w.status == 204 && len(a.Body) > 0 {
			t.Errorf("%s: %d %s, want %d with %s", w.name, a.Status, a.Body, w.status, w.want)
		}
		read := must[e2e.Answer](t)(e2e.Get(ctx, fmt.Sprintf("%s/api/query?start=%d&m=sum:%s",
			ours.URL, dataStart, w.metric)))
		if !bytes.Contains(read.Body, []byte(fmt.Sprintf(`"dps":{"%d":%s}`, dataStart, w.value))) {
			t.Errorf("%s: read %s, want %s", w.name, read.Body, w.value)
		}
	}
	// Scripts that ask for the last value of a device.
	now := time.Now().Unix()
	put(ctx, t, ours.URL, []e2e.Point{{
		Metric:    "room.temperature",
		Timestamp: now,
		Value:     json.RawMessage("21.5"),
		Tags:      map[string]string{"room": "kitchen"},
	}})
	a := must[e2e.Answer](t)(e2e.Get(ctx,
		ours.URL+"/api/query/last?timeseries=room.temperature%7Broom=kitchen%7D&back_scan=24&resolve=true"))
	var last []struct {
		Metric, Value string
		Timestamp     int64
		Tags          map[string]string
	}
	err := json.Unmarshal(a.Body, &last)
	if err != nil || a.Status != http.StatusOK || len(last) != 1 || last[0].Value != "21.5" ||
		last[0].Timestamp != now*1000 || last[0].Tags["room"] != "kitchen" {
		t.Errorf("query/last: status %d, %s, %v; want the value 21.5 of the kitchen", a.Status, a.Body, err)
	}
}
