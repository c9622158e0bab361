//go:build integration

package integration

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/integration/compare"
	"downpour/integration/e2e"
	"downpour/integration/e2e/e2etest"
)

// call is one request of the metadata session.
type call struct{ method, path, body string }

// series1 and series2 are the TSUIDs of sys.cpu.nice in data centre lga, of web01 and of web02.
const (
	series1 = "000001000001000001000002000002"
	series2 = "000001000001000003000002000002"
)

// metadataCalls is a session over names, series, annotations, lookups, last points and deletes, on
// the tables that fillMetadata has filled.
var metadataCalls = []call{
	{"GET", "/api/uid/assign?metric=m1,,m2&tagk=k1", ""},
	{"GET", "/api/uid/assign?metric=m1&tagv=web01", ""},
	{"POST", "/api/uid/assign", `{"metric":["m3","bad name"],"nope":["x"]}`},
	{"POST", "/api/uid/assign", `{}`},
	{"POST", "/api/uid/assign", ``},
	{"POST", "/api/uid/assign", `{nope`},
	{"PUT", "/api/uid/assign?metric=m9", ""},
	{"GET", "/api/uid", ""},
	{"GET", "/api/uid/", ""},
	{"GET", "/api/uid/other/thing", ""},

	{"GET", "/api/uid/rename?metric=m2&name=m1", ""},
	{"GET", "/api/uid/rename?metric=m2&name=bad%20name", ""},
	{"GET", "/api/uid/rename?metric=m2", ""},
	{"POST", "/api/uid/rename", `{"metric":"m2","name":"m2.renamed"}`},
	{"POST", "/api/uid/rename", `{"nope":"m2","name":"m4"}`},
	{"PUT", "/api/uid/rename?metric=m2&name=m5", ""},
	{"GET", "/api/suggest?type=metrics&q=m", ""},
	{"GET", "/api/uid/assign?metric=m2", ""},

	{"GET", "/api/uid/uidmeta?uid=000001&type=metric", ""},
	{"GET", "/api/uid/uidmeta?uid=00001&type=METRICS", ""},
	{"GET", "/api/uid/uidmeta?type=metric", ""},
	{"GET", "/api/uid/uidmeta?uid=000001", ""},
	{"GET", "/api/uid/uidmeta?uid=000001&type=nope", ""},
	{"GET", "/api/uid/uidmeta?uid=0000FE&type=tagk", ""},
	{"POST", "/api/uid/uidmeta", `{"uid":"000001","type":"metric","displayName":"Nice CPU","notes":"n",` +
		`"custom":{"owner":"ops","a":"1","bb":"2"}}`},
	{"POST", "/api/uid/uidmeta", `{"uid":"000001","type":"METRIC","description":"d"}`},
	{"POST", "/api/uid/uidmeta", `{"uid":"000001","type":"metric"}`},
	{"POST", "/api/uid/uidmeta", `{"uid":"000001","type":"metric","description":""}`},
	{"POST", "/api/uid/uidmeta", `{"type":"metric","description":"x"}`},
	{"POST", "/api/uid/uidmeta", `{"uid":"000001","description":"x"}`},
	{"POST", "/api/uid/uidmeta", `{"uid":"0000FE","type":"metric","description":"x"}`},
	{"PUT", "/api/uid/uidmeta", `{"uid":"000001","type":"metric","notes":"put"}`},
	{"GET", "/api/uid/uidmeta?uid=000001&type=metric", ""},
	{"GET", "/api/uid/uidmeta?uid=000001&type=tagk&display_name=Host&method_override=post", ""},
	{"GET", "/api/uid/uidmeta?uid=000001&type=tagk&method_override=delete", ""},
	{"GET", "/api/uid/uidmeta?uid=000001&type=tagk", ""},
	{"GET", "/api/uid/uidmeta?uid=000001&type=tagk&method_override=patch", ""},
	{"GET", "/api/uid/uidmeta?uid=000001&type=tagk&method_override=", ""},
	{"DELETE", "/api/uid/uidmeta", `{"type":"metric"}`},
	{"DELETE", "/api/uid/uidmeta?uid=000002&type=metric", ""},
	{"GET", "/api/uid/uidmeta?uid=000002&type=metric", ""},
	{"PATCH", "/api/uid/uidmeta?uid=000002&type=metric", ""},

	{"GET", "/api/uid/tsmeta?tsuid=" + series1, ""},
	{"GET", "/api/uid/tsmeta?tsuid=000001000001000001", ""},
	{"GET", "/api/uid/tsmeta", ""},
	{"GET", "/api/uid/tsmeta?m=sys.cpu.nice", ""},
	{"GET", "/api/uid/tsmeta?m=sys.cpu.nice%7Bhost=web02%7D", ""},
	{"GET", "/api/uid/tsmeta?m=sys.cpu.nice%7Bhost=web02", ""},
	{"GET", "/api/uid/tsmeta?m=nope", ""},
	{"POST", "/api/uid/tsmeta", `{"tsuid":"` + series1 +
		`","displayName":"D","units":"%","retention":30,"max":100,"min":-1.5,"custom":{"a":"b"}}`},
	{"POST", "/api/uid/tsmeta", `{"tsuid":"` + series1 + `","dataType":"gauge"}`},
	{"POST", "/api/uid/tsmeta", `{"tsuid":"` + series1 + `"}`},
	{"PUT", "/api/uid/tsmeta", `{"tsuid":"` + series1 + `","notes":"n","max":1e10}`},
	{"GET", "/api/uid/tsmeta?tsuid=" + series2 + "&description=by+query&max=2.5&method_override=post", ""},
	{"GET", "/api/uid/tsmeta?tsuid=" + series2 + "&retention=x&method_override=post", ""},
	{"POST", "/api/uid/tsmeta", `{"tsuid":"000001000001000001","notes":"x"}`},
	{"POST", "/api/uid/tsmeta?m=sys.cpu.nice%7Bhost=web02,dc=lga%7D", `{"notes":"by m"}`},
	{"POST", "/api/uid/tsmeta?m=sys.cpu.nice%7Bhost=web01%7D", `{"notes":"none there"}`},
	{"POST", "/api/uid/tsmeta?m=sys.cpu.nice%7Bhost=web01%7D&create=true", `{"notes":"made"}`},
	{"GET", "/api/uid/tsmeta?tsuid=000001000001000001", ""},
	{"DELETE", "/api/uid/tsmeta?tsuid=000001000001000001", ""},
	{"DELETE", "/api/uid/tsmeta", `{"notes":"x"}`},
	{"GET", "/api/uid/tsmeta?tsuid=000001000001000001", ""},

	{"GET", "/api/search/lookup?m=sys.cpu.nice%7B%7D", ""},
	{"GET", "/api/search/lookup?m=%7Bhost=web01%7D", ""},
	{"GET", "/api/search/lookup?m=%7B=web02%7D", ""},
	{"GET", "/api/search/lookup?m=*%7Bhost=*%7D&limit=2", ""},
	{"GET", "/api/search/lookup?m=sys.cpu.nice%7Bhost=web01,host=web02,dc=lga%7D", ""},
	{"GET", "/api/search/lookup?m=sys.cpu.nice%7Bhost=%7D", ""},
	{"GET", "/api/search/lookup?m=sys.cpu.nice%7Bhost=web01,=web02%7D", ""},
	{"GET", "/api/search/lookup?m=sys.cpu.nice%7Bhost=nobody%7D", ""},
	{"GET", "/api/search/lookup?m=sys.cpu.nice%7Bhost=web01", ""},
	{"GET", "/api/search/lookup?m=sys.cpu.nice%7Bhost%7D", ""},
	{"GET", "/api/search/lookup?m=sys.cpu.nice&limit=x", ""},
	{"GET", "/api/search/lookup?m=sys.cpu.nice&limit=0", ""},
	{"POST", "/api/search/lookup", `{"metric":"sys.cpu.nice"}`},
	{"POST", "/api/search/lookup", `{"tags":[{"key":"host","value":"web02"}],"limit":1}`},
	{"POST", "/api/search/lookup", `{"metric":"sys.cpu.nice","useMeta":false}`},
	{
		"POST", "/api/search/lookup",
		`{"metric":"sys.cpu.nice","tags":[{"key":"host","value":"web02"}],"useMeta":false,"limit":3}`,
	},
	{"POST", "/api/search/lookup", `{"metric":"nope"}`},
	{"GET", "/api/search/tsmeta?query=*", ""},
	{"GET", "/api/search/tsmeta", ""},
	{"GET", "/api/search/nope", ""},
	{"GET", "/api/search", ""},
	{"PUT", "/api/search/lookup", `{}`},

	{
		"POST", "/api/annotation",
		`{"startTime":1356998401,"tsuid":"` + series1 + `","description":"d","custom":{"k":"v","a":"b"}}`,
	},
	{
		"POST", "/api/annotation",
		`{"startTime":1356998401,"tsuid":"` + series1 + `","notes":"merged","endTime":1356998500}`,
	},
	{"PUT", "/api/annotation", `{"startTime":1356998401,"tsuid":"` + series1 + `","notes":"put"}`},
	{"POST", "/api/annotation", `{"startTime":1356998401,"tsuid":"` + series1 + `"}`},
	{"POST", "/api/annotation", `{"startTime":1356998402,"tsuid":"` + series1 + `"}`},
	{"POST", "/api/annotation", `{"description":"no start"}`},
	{"POST", "/api/annotation", `{"startTime":1356998403250,"description":"ms"}`},
	{"GET", "/api/annotation", `{"startTime":1356998403250}`},
	{"POST", "/api/annotation", `{"startTime":1356998405000,"description":"ms on a second"}`},
	{"GET", "/api/annotation?start_time=1356998405", ""},
	{"GET", "/api/annotation?start_time=1356998401&tsuid=" + series1, ""},
	{"GET", "/api/annotation?start_time=2013/01/01-00:00:01&tsuid=" + series1, ""},
	{"GET", "/api/annotation?start_time=1356998410&description=by+query&method_override=post", ""},
	{"GET", "/api/annotation?start_time=1356998410&method_override=delete", ""},
	{"GET", "/api/annotation?start_time=1356998410", ""},
	{"GET", "/api/annotation?start_time=nope", ""},
	{"PATCH", "/api/annotation?start_time=1356998410", ""},
	{"POST", "/api/annotations", `{"startTime":1356998420,"description":"g","endTime":1356998425}`},
	{"GET", "/api/annotations?start_time=1356998300&end_time=1357002000", ""},
	{"GET", "/api/annotations?start_time=1356998300&end_time=1356998421", ""},
	{"GET", "/api/annotations?start_time=1356998500&end_time=1356998300", ""},
	{"GET", "/api/annotations", ""},
	{"POST", "/api/annotation/bulk", `[{"startTime":1356998430,"description":"b1"},{"startTime":1356998431},` +
		`{"startTime":1356998432,"tsuid":"` + series2 + `","notes":"b3"}]`},
	{"PUT", "/api/annotations/bulk", `[{"startTime":1356998430,"notes":"b1 put"}]`},
	{"POST", "/api/annotation/bulk", `[{"description":"no start"}]`},
	{"GET", "/api/annotation/bulk", ""},
	{"GET", "/api/query?start=1356998400&end=1357002000&m=sum:sys.cpu.nice&global_annotations", ""},
	{"GET", "/api/query?start=1356998415&end=1357002000&m=sum:sys.cpu.nice%7Bhost=*%7D&global_annotations", ""},
	{"GET", "/api/query?start=1356998480&end=1357002000&m=sum:sys.cpu.nice&global_annotations", ""},
	{"GET", "/api/query?start=1356998400&end=1357002000&m=sum:sys.cpu.nice&global_annotations&no_annotations", ""},
	{"GET", "/api/query?start=1357009200&end=1357012800&m=sum:sys.cpu.nice&global_annotations", ""},
	{"POST", "/api/query", `{"start":1356998400,"end":1357002000,"globalAnnotations":true,` +
		`"queries":[{"aggregator":"none","metric":"sys.cpu.nice"}]}`},
	{"DELETE", "/api/annotation/bulk", `{"startTime":"1356998400","endTime":"1356998429","global":true}`},
	{
		"DELETE",
		"/api/annotation/bulk?start_time=1356998400&end_time=1357002000&tsuids=" + series2 + ",%20" + series1,
		"",
	},
	{"DELETE", "/api/annotation", `{"startTime":1356998432,"tsuid":"` + series2 + `"}`},
	{"DELETE", "/api/annotation/bulk", `{"endTime":"1356998429","global":true}`},
	{"DELETE", "/api/annotation/bulk", `{"startTime":"1356998400"}`},
	{"GET", "/api/annotations?start_time=1356998300&end_time=1357002000", ""},
	{"DELETE", "/api/annotation", `{"startTime":1356998401,"tsuid":"` + series1 + `"}`},
	{"DELETE", "/api/annotation", `{"description":"no start"}`},

	{"GET", "/api/query/last?timeseries=sys.cpu.nice", ""},
	{"GET", "/api/query/last?timeseries=sys.cpu.nice%7Bhost=web01%7D&resolve", ""},
	{"GET", "/api/query/last?tsuids=" + series1 + "," + series2, ""},
	{"GET", "/api/query/last?tsuids=" + series1 + "&back_scan=24&resolve", ""},
	{"GET", "/api/query/last?timeseries=now.metric%7Bhost=web01%7D&back_scan=1&resolve", ""},
	{"GET", "/api/query/last?timeseries=now.metric%7Bhost=web01%7D", ""},
	{"GET", "/api/query/last?timeseries=now.metric&resolve", ""},
	{"GET", "/api/query/last?timeseries=now.metric&back_scan=1", ""},
	{"GET", "/api/query/last?timeseries=now.metric%7Bhost=nobody%7D&back_scan=1", ""},
	{"GET", "/api/query/last?timeseries=now.metric%7Bhost=web01", ""},
	{"GET", "/api/query/last?tsuids=000001", ""},
	{"GET", "/api/query/last?tsuids=" + series1 + "&back_scan=x", ""},
	{"GET", "/api/query/last?tsuids=" + series1 + "&back_scan=-1", ""},
	{"POST", "/api/query/last", `{"queries":[{"metric":"now.metric","tags":{"host":"web01"}},{"tsuids":["` + series1 +
		`"]}],"resolveNames":true,"backScan":2}`},
	{"POST", "/api/query/last", `{"queries":[]}`},
	{"POST", "/api/query/last", `{"queries":[{"tags":{"host":"web01"}}]}`},
	{"PUT", "/api/query/last", ``},

	{"DELETE", "/api/query?start=1357009200&end=1357012800&m=sum:sys.cpu.nice%7Bhost=web01%7D", ""},
	{"GET", "/api/query?start=1356998400&end=1357012800&m=none:sys.cpu.nice&show_tsuids", ""},
	{"GET", "/api/query?start=1356998460&end=1356998470&m=sum:sys.cpu.nice%7Bhost=wildcard(w*b01)%7D" +
		"&method_override=delete", ""},
	{"GET", "/api/query?start=1356998400&end=1357012800&m=none:sys.cpu.nice&show_tsuids", ""},
	{
		"POST", "/api/query",
		`{"start":1356998400,"end":1357012800,"delete":true,"queries":[{"aggregator":"sum","metric":"sys.cpu.nice"}]}`,
	},
	{"GET", "/api/query?start=1356998400&end=1357012800&m=none:sys.cpu.nice&show_tsuids", ""},
}

// metadataPermits are differences that are allowed, because times of counters and of points that
// are put now depend on the clock.
var metadataPermits = append([]compare.Permit{
	{
		Path:   compare.Path{"**", "lastReceived"},
		Kinds:  []compare.Kind{compare.Value},
		Reason: "the second in which the counter was written",
	},
	{Path: compare.Path{"endTime"}, Kinds: []compare.Kind{compare.Value}, Reason: "the clock, where no end is given"},
	{Path: compare.Path{"*", "timestamp"}, Kinds: []compare.Kind{compare.Value}, Reason: "the point was put now"},
}, compare.Standard...)

// metadataDiffers are calls that the gateway answers in another way by design, with the reasons.
var metadataDiffers = map[string]string{
	"GET /api/annotations?start_time=1356998500&end_time=1356998300": "theirs is status 500 and names " +
		"a Java class; ours is 400",
	"DELETE /api/annotation/bulk?start_time=1356998400&end_time=1357002000&tsuids=" + series2 + ",%20" + series1: "" +
		"theirs misses, on salted tables, the series of all buckets but the first",
}

// A gateway answers the whole metadata session as a real OpenTSDB does. Each has tables of its own,
// empty at first, which hold the same afterwards.
func TestMetadata_session(t *testing.T) {
	t.Parallel()
	for _, l := range layouts[:2] {
		t.Run(l.name, func(t *testing.T) {
			ctx := within(t, 5*time.Minute)
			there, here := createTables(t), createTables(t)
			tsd := l.trackingTSD(t, there)
			ours := l.gateway(t, here, trackingEnv)
			for _, url := range []string{tsd.URL, ours.URL} {
				fillMetadata(ctx, t, url)
			}
			comparer := compare.Comparer{Permits: metadataPermits}
			var said []recordedCall
			for _, c := range metadataCalls {
				plain := strings.NewReplacer(there.UID, "tsdb-uid", here.UID, "tsdb-uid").Replace
				if l.saltWidth > 0 && strings.HasPrefix(c.path, "/api/search/lookup") {
					plain = sortedResults // OpenTSDB scans all salt buckets at once, so the order varies
				}
				a := agree(ctx, t, comparer, c, tsd.URL, ours.URL, plain)
				said = append(said, recordedCall{
					c.method, c.path, c.body, a.Status, a.Body, metadataDiffers[c.method+" "+c.path+c.body],
				})
			}
			if *recordMetadata != "" && l.name == "plain" {
				record(t, said)
			}
			sameMetadata(ctx, t, l, there, here)
		})
	}
}

// agree sends one call to both servers and compares the answers. OpenTSDB answers
// some deletions before they are done, so a reading call is repeated for a
// while before its answer counts.
func agree(
	ctx context.Context, t *testing.T, comparer compare.Comparer, c call, theirs, ours string,
	plain func(string) string,
) (want compare.Answer) {
	t.Helper()
	got := send(ctx, t, ours, c)
	got.Body = []byte(plain(string(got.Body)))
	patience := 3 * e2etest.Busy * time.Second
	if metadataDiffers[c.method+" "+c.path+c.body] != "" {
		patience = 3 * time.Second // it will not become equal
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var r compare.Report
	err := e2e.Until(wait, 200*time.Millisecond, func(context.Context) (err error) {
		want = send(ctx, t, theirs, c)
		want.Body = []byte(plain(string(want.Body)))
		if r, err = comparer.Answers(want, got); err != nil || r.Equal() || c.method != "GET" ||
			strings.Contains(c.path, "method_override") {
			return nil
		}
		return errors.New("not equal yet")
	})
	if (err != nil || !r.Equal()) && metadataDiffers[c.method+" "+c.path+c.body] == "" {
		t.Errorf("%s %s %s: %v, %v\n  theirs %d %.300s\n  ours   %d %.300s",
			c.method, c.path, c.body, err, r, want.Status, want.Body, got.Status, got.Body)
	}
	return want
}

// sortedResults sorts the results of a lookup. A body without results stays as it is.
func sortedResults(body string) string {
	var a map[string]any
	if json.Unmarshal([]byte(body), &a) != nil {
		return body
	}
	results, _ := a["results"].([]any)
	slices.SortFunc(results, func(x, y any) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	sorted, err := json.Marshal(a)
	if err != nil {
		return body
	}
	return string(sorted)
}

var recordMetadata = flag.String("record-metadata", "",
	"write what OpenTSDB answers to the metadata session to this file, gzip")

// recordedCall is a call and OpenTSDB's answer, as gateway/testdata has it.
type recordedCall struct {
	Method, Path, Body string
	Status             int
	Response           json.RawMessage
	Differs            string `json:",omitempty"` // why the gateway answers in another way, by design
}

func record(t *testing.T, calls []recordedCall) {
	t.Helper()
	for i := range calls {
		if len(calls[i].Response) == 0 {
			calls[i].Response = nil
		}
	}
	f := must[*os.File](t)(os.Create(*recordMetadata))
	defer f.Close()
	z := gzip.NewWriter(f)
	if err := errors.Join(json.NewEncoder(z).Encode(calls), z.Close()); err != nil {
		t.Fatal(err)
	}
}

// Each server changes what the other has stored. OpenTSDB's compare-and-set works only on exactly
// the bytes that it would write itself.
func TestMetadata_exchange(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Minute)
	l := layouts[0]
	tables := createTables(t)
	tsd := l.trackingTSD(t, tables)
	ours := l.gateway(t, tables, trackingEnv)
	fillMetadata(ctx, t, ours.URL)
	servers := []string{tsd.URL, ours.URL, tsd.URL}
	for _, c := range []call{
		{
			"POST", "/api/uid/uidmeta",
			`{"uid":"000001","type":"metric","custom":{"owner":"ops","Aa":"1","BB":"2","x":"é"},"notes":"\"\n"}`,
		},
		{"POST", "/api/uid/uidmeta", `{"uid":"000001","type":"metric","description":"d"}`},
		{"POST", "/api/uid/tsmeta", `{"tsuid":"` + series1 +
			`","custom":{"owner":"ops","Aa":"1","BB":"2","team":"x","url":"y"},"max":1e10,"min":0.0001}`},
		{"POST", "/api/uid/tsmeta", `{"tsuid":"` + series1 + `","notes":"\"\n"}`},
		{
			"POST", "/api/annotation",
			`{"startTime":1356998401,"tsuid":"` + series1 + `","custom":{"z":"1","Aa":"2","é":"3"}}`,
		},
		{"POST", "/api/annotation", `{"startTime":1356998401,"tsuid":"` + series1 + `","notes":"\"\n"}`},
	} {
		for i, url := range servers {
			if a := send(ctx, t, url, c); a.Status != http.StatusOK {
				t.Errorf("server %d: %s %s: %d %s", i, c.path, c.body, a.Status, a.Body)
			}
		}
	}
}

// trackingEnv lets a gateway record and delete as trackingTSD does.
var trackingEnv = map[string]string{"DOWNPOUR_META_TRACKING": "true", "DOWNPOUR_META_INCREMENTING": "true",
	"DOWNPOUR_META_REALTIME_TS": "true", "DOWNPOUR_META_REALTIME_UID": "true", "DOWNPOUR_ALLOW_DELETE": "true"}

func (l layout) trackingTSD(t *testing.T, tables e2e.Tables) *e2e.OpenTSDB {
	t.Helper()
	config := map[string]string{
		"tsd.storage.enable_compaction": "false",
		"tsd.http.query.allow_delete":   "true",
		"tsd.http.show_stack_trace":     "false",
	}
	for _, key := range []string{
		"enable_tsuid_tracking", "enable_tsuid_incrementing", "enable_realtime_ts", "enable_realtime_uid",
	} {
		config["tsd.core.meta."+key] = "true"
	}
	tsd, err := e2e.StartOpenTSDB(within(t, time.Minute), e2e.OpenTSDBOptions{Quorum: hbase(t).Quorum(), Tables: tables,
		SaltWidth: l.saltWidth, SaltBuckets: l.saltBuckets, Config: config, QuickStart: !*soak})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, tsd)
	return tsd
}

// fillMetadata gives the session's names the same UIDs on every server, puts its
// points, and waits until series and counters are recorded.
func fillMetadata(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	for _, names := range []string{"metric=sys.cpu.nice,now.metric", "tagk=host,dc", "tagv=web01,lga,web02"} {
		if a := send(ctx, t, url, call{"GET", "/api/uid/assign?" + names, ""}); a.Status != http.StatusOK {
			t.Fatalf("assign: %d %s", a.Status, a.Body)
		}
	}
	tags := func(host string) map[string]string { return map[string]string{"host": host, "dc": "lga"} }
	points := []e2e.Point{{
		Metric:    "now.metric",
		Timestamp: secondOfNow(),
		Value:     json.RawMessage("42.5"),
		Tags:      map[string]string{"host": "web01"},
	}}
	for i := range int64(4) {
		points = append(points,
			e2e.Point{
				Metric:    "sys.cpu.nice",
				Timestamp: 1356998400 + 60*i,
				Value:     json.RawMessage("1"),
				Tags:      tags("web01"),
			},
			e2e.Point{
				Metric:    "sys.cpu.nice",
				Timestamp: 1356998400 + 3600*i,
				Value:     json.RawMessage("2.5"),
				Tags:      tags("web02"),
			})
	}
	points = append(points, e2e.Point{
		Metric:    "sys.cpu.nice",
		Timestamp: 1357009260,
		Value:     json.RawMessage("7"),
		Tags:      tags("web01"),
	})
	put(ctx, t, url, points)
	awaitCounters(ctx, t, url, map[string]int64{series1: 5, series2: 4, "000002000001000001": 1})
}

// secondOfNow is now, but never one of the seconds 80 to 95 of an hour. The qualifier of a
// point of these begins with 05, as that of an append column (05 00 00) does, and OpenTSDB's
// look-up of last points goes by that byte alone (Internal.extractDataPoints): it answers 400.
func secondOfNow() int64 {
	const asAppendColumn = 0x05 << 4 // the first of the 16 seconds
	now := time.Now().Unix()
	if of := now % encoding.RowSeconds; asAppendColumn <= of && of < asAppendColumn+16 {
		return now - of + asAppendColumn - 1
	}
	return now
}

func awaitCounters(ctx context.Context, t *testing.T, url string, want map[string]int64) {
	t.Helper()
	for tsuid, n := range want {
		err := e2e.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
			a := send(ctx, t, url, call{"GET", "/api/uid/tsmeta?tsuid=" + tsuid, ""})
			var m struct{ TotalDatapoints int64 }
			if err := json.Unmarshal(a.Body, &m); err != nil {
				return err
			}
			if m.TotalDatapoints != n {
				return io.ErrNoProgress
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: series %s is not recorded: %v", url, tsuid, err)
		}
	}
}

func send(ctx context.Context, t *testing.T, url string, c call) compare.Answer {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, c.method, url+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return compare.Answer{Status: resp.StatusCode, Body: body}
}

// sameMetadata compares the cells of two sets of tables, except for the times at which meta data
// was made.
func sameMetadata(ctx context.Context, t *testing.T, l layout, there, here e2e.Tables) {
	t.Helper()
	for _, pair := range [][2]string{{there.UID, here.UID}, {there.Meta, here.Meta}, {there.Data, here.Data}} {
		want, got := timeless(ctx, t, pair[0]), timeless(ctx, t, pair[1])
		if pair[0] == there.Data {
			// The point put now may lie in different hours on the two servers.
			now := func(at, _ string) bool { return strings.HasPrefix(at[2*l.saltWidth:], "000002") }
			maps.DeleteFunc(want, now)
			maps.DeleteFunc(got, now)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("table %s and %s: %s", pair[0], pair[1], diff)
		}
	}
}

// timeless is a table's cells as text, without the times at which meta data was made.
func timeless(ctx context.Context, t *testing.T, table string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range must[[]e2e.Cell](t)(hbase(t).Admin.Scan(ctx, table)) {
		value := string(c.Value)
		switch q := string(c.Qualifier); {
		case q == encoding.ChangesQualifier:
			continue // OpenTSDB has no such cell
		case q == "ts_meta":
			m, err := encoding.ParseTSMeta(c.Value)
			if err != nil {
				t.Error(err)
			}
			m.Created = min(m.Created, 1)
			value = string(encoding.AppendTSMeta(nil, m))
		case strings.HasSuffix(q, "_meta"):
			m, err := encoding.ParseUIDMeta(c.Value)
			if err != nil {
				t.Error(err)
			}
			m.Created = min(m.Created, 1)
			value = string(encoding.AppendUIDMeta(nil, m))
		}
		out[encoding.UID(c.Row).String()+" "+string(c.Family)+" "+encoding.UID(c.Qualifier).String()] = value
	}
	return out
}
