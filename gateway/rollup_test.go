package gateway_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/faultstore"
)

// points returns the points of the answer's groups as JSON.
func points(b *bench, query string) string {
	b.Helper()
	a := b.Get("/api/query?" + query)
	var groups []struct{ DPs json.RawMessage }
	if err := json.Unmarshal([]byte(a.Body), &groups); err != nil || a.Status != http.StatusOK {
		b.Fatalf("%s: %d %.300s", query, a.Status, a.Body)
	}
	text := make([]string, len(groups))
	for i, g := range groups {
		text[i] = string(g.DPs)
	}
	return strings.Join(text, " ")
}

func hasPoints(b *bench, query, want string) {
	b.Helper()
	if d := cmp.Diff(want, points(b, query)); d != "" {
		b.Errorf("%s: -want +got\n%s", query, d)
	}
}

// rowsOf returns the number of a table's rows.
func rowsOf(b *bench, table string) (n int) {
	b.Helper()
	for _, err := range store.Rows(b.Context(), b.Store, store.Scan{Table: table, Family: encoding.FamilyData}) {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	return n
}

// day is 2013-01-01 00:00:00.
const day = "start=1356998400&end=1357084799&m="

// Rollups that are put by HTTP or by telnet can be read, with and without salt.
func TestRollup_doors(t *testing.T) {
	for _, salt := range []int{0, 1} {
		b := open(t, func(cfg *gateway.Config) { gatewaytest.WithRollups(cfg); cfg.SaltWidth = salt })
		b.Rollups("1h-sum m 1356998400 7 host=a",
			"1h-sum m 1357002000 0.5 host=a", "1h-count m 1357002000 2 host=a", "1h-sum:sum m 1357002000 9 dc=x")
		a := b.Post("/api/rollup",
			`[{"metric":"m","timestamp":1357002001,"value":3,"tags":{"host":"b"},"interval":"1h","aggregator":"sum"},
			{"metric":"m","timestamp":"1356998400","value":"1.5","tags":{"dc":"x"},"groupByAggregator":"max"}]`)
		if a.Status != http.StatusNoContent {
			t.Fatalf("rollups by HTTP: got %d %s, want 204", a.Status, a.Body)
		}

		hasPoints(b, day+"sum:1h-sum:m", `{"1356998400":7.0,"1357002000":3.5}`)
		hasPoints(b, day+"sum:2h-sum:m{host=*}", `{"1356998400":7.5} {"1356998400":3.0}`)
		hasPoints(b, day+"sum:1h-avg:m", `{"1357002000":0.25}`)
		hasPoints(b, day+"sum:1h-count:m", `{"1357002000":2.0}`)
		hasPoints(b, day+"sum:1h-sum:pre-agg:m", `{"1357002000":9.0}`)
		hasPoints(b, day+"sum:m{_aggregate=MAX}", `{"1356998400":1.5}`)
		hasPoints(b, day+"sum:1h-sum:rollup_raw:m", ``)
		if rowsOf(b, "tsdb") != 0 {
			t.Error("a rollup was stored as raw data")
		}
	}
}

// Each invalid rollup is refused with its reason, and nothing of it is stored.
func TestRollup_refused(t *testing.T) {
	b := open(t, gatewaytest.WithRollups)
	f := func(point, want string) {
		t.Helper()
		a := b.Post("/api/rollup?details", point)
		if a.Status != http.StatusBadRequest || !strings.Contains(a.Body, want) {
			t.Errorf("%s: got %d %s, want %s", point, a.Status, a.Body, want)
		}
	}
	f(`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"},"interval":"7m","aggregator":"sum"}`,
		"No rollups configured for the interval: 7m")
	f(`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"},"interval":"1m","aggregator":"sum"}`,
		"The interval 1m is that of raw data")
	f(`{"metric":"m","timestamp":9999999999,"value":1,"tags":{"a":"b"},"interval":"1h","aggregator":"sum"}`,
		"bad timestamp=9999999999")
	f(`{"metric":"m","timestamp":1356998400,"value":1e999,"tags":{"a":"b"},"interval":"1h","aggregator":"sum"}`,
		"Unable to parse value")
	f(`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"},"interval":["1h"],"aggregator":"sum"}`,
		"Unable to parse the given JSON")
	f(`[{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"},"interval":"1h","aggregator":"sum"}`,
		"Unable to parse the given JSON")
	nine := `"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","g":"1","h":"1"`
	f(`{"metric":"m","timestamp":1356998400,"value":1,"tags":{`+nine+
		`},"interval":"1h","aggregator":"sum","groupByAggregator":"sum"}`,
		"Too many tags: 9 maximum allowed: 8")
	f(`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"},"interval":"1h","aggregator":"`+
		strings.Repeat("x", 5000)+`"}`,
		"No ID found mapping to aggregator: xxx")
	for _, table := range []string{"tsdb", "r1h", "r1h-pre", "pre"} {
		if n := rowsOf(b, table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
	if a := b.Get("/api/suggest?type=metrics"); a.Body != "[]" {
		t.Errorf("a refused point has made a name: %s", a.Body)
	}

	many := strings.Repeat(
		`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"},"interval":"1h","aggregator":"sum"},`,
		100_000,
	)
	b.Refused(b.Post("/api/rollup", "["+many+many[:len(many)-1]+"]"), http.StatusRequestEntityTooLarge,
		"More than 100000 data points")
	// The valid rollups of a request are stored, as with a put.
	a := b.Post("/api/rollup?summary", `[{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"},`+
		`"interval":"1h","aggregator":"sum"},{"metric":"m"}]`)
	if a.Status != http.StatusBadRequest || a.Body != `{"success":1,"failed":1}` {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

// Unknown names are reported before a function without rollups, whichever sub-query comes first:
// OpenTSDB finds the names of all sub-queries before it runs one.
func TestRollup_unknownNameFirst(t *testing.T) {
	b := open(t, gatewaytest.WithRollups)
	b.Put("m 1356998400 1 host=a")
	const late, early = "sum:1h-last:m", "sum:m%7Bhost=nobody%7D"
	for _, m := range []string{"m=" + late + "&m=" + early, "m=" + early + "&m=" + late} {
		b.Refused(b.Get("/api/query?start=1356998400&"+m), 400, "No such name for 'tagv': 'nobody'")
	}
	b.Refused(b.Get("/api/query?start=1356998400&m="+late+"&m=sum:1h-mimmin:m&m=sum:m"), 400,
		"No ID found mapping to aggregator: last")
}

// A gateway without the setting refuses rollups, and reads raw data whatever a query asks for.
func TestRollup_off(t *testing.T) {
	b := open(t, nil)
	b.Put("m 1356998400 1 host=a")
	a := b.Post("/api/rollup?details",
		`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"},"interval":"1h","aggregator":"sum"}`)
	if a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "No rollup or aggregations were configured") {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
	hasPoints(b, day+"sum:1h-sum:rollup_fallback:pre-agg:m", `{"1356998400":1.0}`)
	hasPoints(b, day+"sum:1h-last:m", `{"1356998400":1.0}`)
}

// Of two values for one interval the newer one counts, whatever their types.
func TestRollup_writtenAgain(t *testing.T) {
	b := open(t, gatewaytest.WithRollups)
	f := func(value, want string) {
		t.Helper()
		b.Rollups("1h-sum m 1356998400 " + value + " host=a")
		hasPoints(b, day+"sum:1h-sum:m", `{"1356998400":`+want+`}`)
	}
	f("1.5", "1.5")
	f("300", "300.0")
	f("2", "2.0")
	f("0.1", "0.1")
	f("1", "1.0")
	// So it is within one commit window.
	b.Rollups("1h-sum m 1356998400 4.5 host=a", "1h-sum m 1356998400 5 host=a")
	hasPoints(b, day+"sum:1h-sum:m", `{"1356998400":5.0}`)
}

// The result cache never confuses rollups with raw data or one table with another, and sees what is
// written.
func TestRollup_resultCache(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { gatewaytest.WithRollups(cfg); cfg.ResultCache = "16MiB" })
	b.Put("m 1356998400 1 host=a")
	b.Rollups("10m-sum m 1356998400 2 host=a", "1h-sum m 1356998400 3 host=a", "1d-sum m 1356998400 4 host=a",
		"1h-sum:sum m 1356998400 5 host=a", "1h-max m 1356998400 6 host=a")
	all := map[string]string{
		"sum:1h-sum:rollup_raw:m": "1.0", "sum:20m-sum:m": "2.0", "sum:1h-sum:m": "3.0", "sum:1d-sum:m": "4.0",
		"sum:1h-sum:pre-agg:m": "5.0", "sum:1h-max:m": "6.0",
	}
	for round := range 4 {
		for query, want := range all {
			hasPoints(b, day+query, `{"1356998400":`+want+`}`)
		}
		if round == 2 {
			b.Rollups("1h-sum m 1356998400 33 host=a")
			all["sum:1h-sum:m"] = "33.0"
		}
	}
	if stats := b.Get("/metrics").Body; !strings.Contains(stats, "downpour_result_cache_hits") ||
		strings.Contains(stats, "downpour_result_cache_hits_total 0\n") {
		t.Error("nothing was answered from the result cache")
	}
}

// A query that finds nothing goes on to the fallbacks that its rollup usage permits.
func TestRollup_fallback(t *testing.T) {
	b := open(t, gatewaytest.WithRollups)
	b.Put("m 1356998400 1 host=a", "m 1357000260 5 host=a")
	f := func(usage, want string) {
		t.Helper()
		hasPoints(b, day+"sum:1d-zimsum:"+usage+"m", want)
	}
	f("", "")
	f("rollup_nofallback:", "")
	f("rollup_raw:", `{"1356998400":6.0}`)
	f("rollup_fallback_raw:", `{"1356998400":6.0}`)
	f("rollup_fallback:", `{"1356998400":1.0,"1357000200":5.0}`)
	b.Rollups("1h-sum m 1356998400 3 host=a")
	f("rollup_fallback:", `{"1356998400":3.0}`)
	f("", "")
}

// A live query that would read rollups is refused with that reason; with ROLLUP_RAW it is answered.
func TestRollup_live(t *testing.T) {
	b := open(t, gatewaytest.WithRollups)
	b.Rollups("1h-sum m 1356998400 3 host=a")
	b.Put("m 1356998400 1 host=a")
	s := subscribe(b, `{"start":1356998400,"queries":[{"aggregator":"sum","metric":"m","downsample":"1h-sum"}]}`, "")
	if got := s.next(); got.Type != "error" ||
		!strings.Contains(got.Error.Message, "A query that is kept up to date cannot read rollups") {
		t.Errorf("got %+v", got)
	}
	table := `{"time":{"start":1356998400,"aggregator":"sum","downsampler":{"interval":"1h",` +
		`"aggregator":"sum"}%s},"metrics":[{"id":"a","metric":"m"}]}`
	if got := subscribeExp(b, fmt.Sprintf(table, ""), "").next(); got.Type != "error" ||
		!strings.Contains(got.Error.Message, "A query that is kept up to date cannot read rollups") {
		t.Errorf("expressions: got %+v, want an error", got)
	}
	e := subscribeExp(b, fmt.Sprintf(table, `,"rollupUsage":"ROLLUP_RAW"`), "")
	e.settle(e.next())
	s = subscribe(b, `{"start":1356998400,"queries":[{"aggregator":"sum","metric":"m","downsample":"1h-sum",`+
		`"rollupUsage":"ROLLUP_RAW"}]}`, "")
	if got := s.next(); got.Type != "snapshot" {
		t.Errorf("got %+v", got)
	}
}

// A query that would delete and reads rollups is refused, and deletes neither rollups nor raw data.
func TestRollup_delete(t *testing.T) {
	b := open(t, func(cfg *gateway.Config) { gatewaytest.WithRollups(cfg); cfg.AllowDelete = true })
	b.Rollups("1h-sum m 1356998400 3 host=a")
	b.Put("m 1356998400 1 host=a")
	b.Refused(b.Do(http.MethodDelete, "/api/query?"+day+"sum:1h-sum:m", nil), http.StatusBadRequest,
		"A query that deletes cannot read rollups")
	b.Refused(b.Do(http.MethodDelete, "/api/query?"+day+"sum:1d-sum:rollup_fallback_raw:m", nil), http.StatusBadRequest,
		"A query that deletes cannot read rollups")
	if rowsOf(b, "tsdb") != 1 || rowsOf(b, "r1h") != 1 {
		t.Error("a refused query has deleted a row")
	}
	b.Do(http.MethodDelete, "/api/query?"+day+"sum:1h-sum:rollup_raw:m", nil)
	if rowsOf(b, "tsdb") != 0 || rowsOf(b, "r1h") != 1 {
		t.Error("raw data is not deleted, or rollups are")
	}
}

// A query of rollups is answered as Arrow, too.
func TestRollup_arrow(t *testing.T) {
	b := open(t, gatewaytest.WithRollups)
	for i := range 24 {
		b.Rollups(fmt.Sprintf("1h-sum small %d %d.5 host=a", 1356998400+3600*i, i))
	}
	a := arrow(b, "m=sum:1h-sum:small")
	rows, sum, err := sums(t, a.Body)
	if err != nil || rows != 24 || sum != 24*23/2+12 {
		t.Errorf("%d rows, sum %v, %v: %d", rows, sum, err, a.Status)
	}
}

// If a rollup table cannot be written, the rollup is refused, and points are stored all the same.
func TestRollup_storeFails(t *testing.T) {
	b := open(t, gatewaytest.WithRollups)
	b.Store.Set(faultstore.Rule{Op: faultstore.Apply, Table: "r1h", Chance: 1, Err: store.ErrUnavailable})
	body := `{"metric":"m","timestamp":1356998400,"value":1,"tags":{"a":"b"},"interval":"1h","aggregator":"sum"}`
	b.Refused(b.Post("/api/rollup", body), http.StatusServiceUnavailable, "Storage exception")
	c := b.Dial()
	fmt.Fprint(c, "rollup 1h-sum m 1356998400 1 a=b\nput m 1356998400 1 a=b\n")
	if got := c.Rest(); !strings.HasPrefix(got, "rollup: HBase error: ") || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q", got)
	}
	if rowsOf(b, "tsdb") != 1 {
		t.Error("the point is not stored")
	}
}

// Parts that read rollups go only to pushdown servers that have their tables.
func TestRollup_servers(t *testing.T) {
	cfg := config(0)
	gatewaytest.WithRollups(cfg)
	st := memoryStore(t, cfg)
	without := *cfg
	without.Rollups = ""
	reads, other := gatewaytest.Pushdown(t, cfg, st), gatewaytest.Pushdown(t, &without, st)

	place := func(server string) string {
		t.Helper()
		remote := config(0)
		gatewaytest.WithRollups(remote)
		remote.Pushdown = []string{server}
		b := serve(t, remote, st)
		b.Rollups("1h-sum m 1356998400 3 host=a")
		// explain comes first: once a server has refused a part, it gets none for a while.
		var explained struct{ Parts []struct{ Server string } }
		err := json.Unmarshal([]byte(b.Get("/api/query?explain&"+day+"sum:1h-sum:m").Body), &explained)
		if err != nil || len(explained.Parts) == 0 {
			t.Fatalf("explain: %v", err)
		}
		hasPoints(b, day+"sum:1h-sum:m", `{"1356998400":3.0}`)
		return explained.Parts[0].Server
	}
	if got := place(reads); got != reads {
		t.Errorf("the part goes to %s, want %s", got, reads)
	}
	if got := place(other); got != "in-process" {
		t.Errorf("the part goes to %s, want in-process", got)
	}
}

// With a split, raw data takes the place of rollups from the first bucket on whose rollup may be
// late.
func TestRollup_split(t *testing.T) {
	now := time.Unix(1356998400+8*3600+2400, 0) // 08:40; rollups of an hour are complete until 06:40
	b := open(t, func(cfg *gateway.Config) {
		gatewaytest.WithRollups(cfg)
		cfg.RollupSplit, cfg.Now = true, func() time.Time { return now }
	})
	for hour := range 9 {
		b.Put(fmt.Sprintf("m %d %d host=a", 1356998400+3600*hour+60, hour))
		b.Rollups(fmt.Sprintf("1h-sum m %d %d host=a", 1356998400+3600*hour, 100+hour),
			fmt.Sprintf("10m-sum m %d %d host=a", 1356998400+3600*hour, 200+hour))
	}
	b.Put("m 1357020060 60 host=b") // 06:01, of a series without rollups
	f := func(query, want string) {
		t.Helper()
		hasPoints(b, "start=1356998400&"+query, want)
	}

	f("m=sum:1h-sum:m", `{"1356998400":100.0,"1357002000":101.0,"1357005600":102.0,"1357009200":103.0,`+
		`"1357012800":104.0,"1357016400":105.0,"1357020000":66.0,"1357023600":7.0,"1357027200":8.0}`)
	f("m=sum:3h-sum:m{host=*}", `{"1356998400":303.0,"1357009200":312.0,"1357020000":21.0} {"1357020000":60.0}`)
	// The first rate after the split is computed from raw data alone, which begins a bucket earlier.
	f("m=sum:rate:1h-sum:m{host=a}", `{"1357002000":2.777777777777778E-4,"1357005600":2.777777777777778E-4,`+
		`"1357009200":2.777777777777778E-4,"1357012800":2.777777777777778E-4,"1357016400":2.777777777777778E-4,`+
		`"1357020000":2.777777777777778E-4,"1357023600":2.777777777777778E-4,"1357027200":2.777777777777778E-4}`)
	// Only rollups: the query ends before the split. Only raw data: by rollup_raw. Only rollups: the
	// table of ten minutes has no delay, and so no split.
	f("end=1357016400&m=sum:1h-sum:m", `{"1356998400":100.0,"1357002000":101.0,"1357005600":102.0,`+
		`"1357009200":103.0,"1357012800":104.0,"1357016400":105.0}`)
	f("end=1357027200&m=sum:1h-sum:rollup_raw:m{host=a}", `{"1356998400":0.0,"1357002000":1.0,"1357005600":2.0,`+
		`"1357009200":3.0,"1357012800":4.0,"1357016400":5.0,"1357020000":6.0,"1357023600":7.0,"1357027200":8.0}`)
	f("m=sum:30m-sum:m{host=a}&arrays", `[[1356998400,200.0],[1357002000,201.0],[1357005600,202.0],[1357009200,`+
		`203.0],[1357012800,204.0],[1357016400,205.0],[1357020000,206.0],[1357023600,207.0],[1357027200,208.0]]`)
	hasPoints(b, "start=1357020000&m=sum:1h-sum:m", `{"1357020000":66.0,"1357023600":7.0,"1357027200":8.0}`)

	// Two hours later the same query has more complete rollups, and no split.
	now = now.Add(2 * time.Hour)
	f("end=1357027200&m=sum:1h-sum:m",
		`{"1356998400":100.0,"1357002000":101.0,"1357005600":102.0,"1357009200":103.0,"1357012800":104.0,`+
			`"1357016400":105.0,"1357020000":106.0,"1357023600":107.0,"1357027200":108.0}`)
	s := subscribe(b, `{"start":1357020000,"queries":[{"aggregator":"sum","metric":"m","downsample":"1h-sum"}]}`, "")
	if got := s.next(); got.Type != "error" {
		t.Errorf("got %+v", got)
	}
}

// Older versions of OpenTSDB have the aggregator's name in a cell's qualifier, and not its number.
// Both are read; where there are both, the number's cell counts.
func TestRollup_oldCells(t *testing.T) {
	b := open(t, gatewaytest.WithRollups)
	b.Rollups("1h-sum m 1356998400 7 host=a", "1h-count m 1356998400 2 host=a", "1h-count m 1357002000 4 host=a")
	row := []byte{0, 0, 1, 0x50, 0xe2, 0x27, 0, 0, 0, 1, 0, 0, 1}
	old := func(qualifier string, value byte) store.Mutation {
		return store.Mutation{Row: row, Family: encoding.FamilyData, Qualifier: []byte(qualifier), Value: []byte{value}}
	}
	if err := b.Store.Apply(b.Context(), "r1h",
		[]store.Mutation{old("sum:\x00\x10", 20), old("count:\x00\x20", 3), old("max:\x00\x00", 9)}); err != nil {
		t.Fatal(err)
	}
	hasPoints(b, day+"sum:1h-sum:m", `{"1356998400":7.0,"1357002000":20.0}`)
	hasPoints(b, day+"sum:1h-avg:m", `{"1356998400":3.5,"1357002000":5.0}`)
	hasPoints(b, day+"sum:1h-count:m", `{"1356998400":2.0,"1357002000":4.0,"1357005600":3.0}`)
	hasPoints(b, day+"sum:1h-max:m", `{"1356998400":9.0}`)
}

// Queries have the same answer from raw data and from the rollups that were made of it.
func TestRollup_equalsRaw(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	b := open(t, func(cfg *gateway.Config) { gatewaytest.WithRollups(cfg); cfg.SaltWidth = r.IntN(2) })
	const from, days = 1356998400, 3

	var puts, lines []string
	for host := range 4 {
		made := map[string]map[int64][]int64{}
		// A row of rollups covers more time than one of raw data, so that it may have series without
		// a point in the query. Here every series has points throughout.
		for at := int64(from); at < from+days*86400; at += r.Int64N(550) + 1 {
			v := r.Int64N(1000) - 300
			puts = append(puts, fmt.Sprintf("m %d %d host=h%d", at, v, host))
			for name, seconds := range map[string]int64{"10m": 600, "1h": 3600, "1d": 86400} {
				if made[name] == nil {
					made[name] = map[int64][]int64{}
				}
				made[name][at-at%seconds] = append(made[name][at-at%seconds], v)
			}
		}
		for name, buckets := range made {
			for at, values := range buckets {
				sum := int64(0)
				for _, v := range values {
					sum += v
				}
				for function, v := range map[string]int64{
					"sum": sum, "count": int64(len(values)), "min": slices.Min(values),
					"max": slices.Max(values),
				} {
					lines = append(lines, fmt.Sprintf("%s-%s m %d %d host=h%d", name, function, at, v, host))
				}
			}
		}
	}
	b.Put(puts...)
	b.Rollups(lines...)

	// No aggregators that interpolate: they use points beyond the query's times, which raw data
	// and rollups have at different times.
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	for range 200 {
		width := []int64{600, 1200, 3600, 7200, 21600, 86400}[r.IntN(6)]
		start := from + r.Int64N(2*86400/width)*width
		end := start + (1+r.Int64N(86400/width))*width - 1
		query := fmt.Sprintf("start=%d&end=%d&m=%s:%ds-%s%s:", start, end, pick("zimsum", "none", "mimmax", "mimmin"),
			width, pick("sum", "count", "min", "max", "avg", "zimsum", "mimmin", "mimmax"), pick("", "-nan", "-zero"))
		rest := "m{host=" + pick("*", "h1|h2", "h3") + "}"
		if width == 600 && r.IntN(2) == 0 {
			rest = "m"
		}
		if got, want := points(b, query+rest), points(b, query+"rollup_raw:"+rest); got != want {
			t.Fatalf("%s%s: rollups give %s, raw data %s", query, rest, got, want)
		}
	}
}
