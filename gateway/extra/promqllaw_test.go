package extra_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	prom "github.com/prometheus/prometheus/promql"

	"downpour/encoding/seedtest"
	"downpour/gateway"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase/hbasefake"
)

// promQueries is how many queries the law of PromQL draws.
var promQueries = flag.Int("promql", 200, "how many PromQL queries to draw")

const promStart = 1356998400_000

// Drawn queries of drawn points have the bits that Prometheus' engine has over a list of the same points, or over its
// own storage with -args -tsdb: in process
// and by a pushdown server, on the embedded store, whose older hours are sealed and have later points behind them, and
// on a simulated HBase, whose regions begin inside hours.
//
//fault:promql-absent-tag-demanded matchAll(matchers, "") => len(matchers) == 0
//fault:promql-groups-of-more-than-match !everything => everything && !everything
//fault:promql-labels-not-checked-again !m.Matches => m.Name == "" && m.Matches
func TestPromQL_law(t *testing.T) {
	t.Parallel()
	r := seedtest.Rand(t)
	peer := newPromPeer()
	drawPromSeries(r, peer)
	if *promTSDB {
		peer.tsdb = startTSDB(t, peer.series)
	}

	embedded := config(0)
	memory := memoryStore(t, embedded)
	all := promFronts(t, embedded, memory, peer)
	sealed, err := memory.Features().Seal(t.Context(), "tsdb", time.Time{}, time.Now(),
		func(store.SealReport) error { return nil })
	if err != nil || sealed.Sealed == 0 {
		t.Fatalf("%+v rows were sealed, %v", sealed, err)
	}
	promPut(all[0], drawAgain(r, peer))

	cluster := hbasefake.For(t, hbasefake.Options{})
	gatewaytest.CreateTables(cluster)
	hbase, st := gatewaytest.HBase(t, cluster.Address())
	hbase.AutoMetrics = "true"
	all = append(all, promFronts(t, hbase, st, peer)...)
	promPut(all[2], drawAgain(r, peer))
	for metric := range byte(4) {
		hour := binary.BigEndian.AppendUint32([]byte{0, 0, metric + 1}, promStart/1000+3600*uint32(r.IntN(3)))
		cluster.SplitRegion("tsdb", append(hour, 0, 0, 1, 0, 0, byte(1+r.IntN(3))))
	}

	failed, empty, uncertain := 0, 0, 0
	for i := range *promQueries {
		q := drawPromQuestion(r)
		want := peer.ask(t.Context(), q)
		asked := all[i%len(all) : i%len(all)+1]
		if *promTSDB {
			asked = all
		}
		for _, at := range asked {
			d := askGateway(at, q).differs(want)
			if d != "" && peer.uncertain(t.Context(), q, want) {
				uncertain++
				break
			}
			if d != "" {
				t.Errorf("query %d: %s: %s", i, q, d)
			}
		}
		switch {
		case want.failed:
			failed++
		case len(want.series) == 0:
			empty++
		}
	}
	t.Logf("%d queries of %d series: %d fail, %d have no series, of %d Prometheus has several answers", *promQueries,
		len(peer.series), failed, empty, uncertain)
	if good := *promQueries - failed - empty; 3*good < *promQueries || 50*uncertain > *promQueries {
		t.Errorf("%d of %d queries have series, want a third at least; %d have several answers, want 2 in 100 at most",
			good, *promQueries, uncertain)
	}
}

// drawAgain draws series whose points are put a second time.
func drawAgain(r *rand.Rand, peer *promPeer) (again []promSeries) {
	for _, s := range peer.series {
		if from := r.IntN(len(s.points)); r.IntN(3) == 0 {
			again = append(again, promSeries{s.labels, s.points[from:min(len(s.points), from+100)]})
		}
	}
	return again
}

// promFronts puts the peer's series into a store, and returns a gateway on it in process, and one with a pushdown
// server.
func promFronts(t *testing.T, cfg *gateway.Config, st gateway.Store, peer *promPeer) []*bench {
	t.Helper()
	cfg.AllowSpecialChars = "| "
	inProcess := &bench{T: t, Config: cfg, Gateway: start(t, cfg, st)}
	promPut(inProcess, peer.series)
	remote := *cfg
	remote.Extras = everything()
	remote.Pushdown = []string{gatewaytest.Pushdown(t, cfg, st)}
	return []*bench{inProcess, {T: t, Config: &remote, Gateway: start(t, &remote, st)}}
}

// drawPromSeries draws counters with resets, and gauges, with gaps; some series lack tags that others have.
func drawPromSeries(r *rand.Rand, peer *promPeer) {
	for _, metric := range []string{"reqs.total", "temp", "sys/load-1", "m_x"} {
		seen := map[string]bool{}
		for range 9 {
			b := labels.NewBuilder(labels.EmptyLabels())
			b.Set(model.MetricNameLabel, metric)
			b.Set("dc", pick(r, "ams", "fra", "ny c"))
			if r.IntN(4) > 0 {
				b.Set("host", pick(r, "web01", "web02", "db1", "a|b"))
			}
			if r.IntN(3) == 0 {
				b.Set("le", pick(r, "0.1", "1", "10"))
			}
			if l := b.Labels(); !seen[l.String()] {
				seen[l.String()] = true
				peer.add(l, drawPromPoints(r, metric == "reqs.total"))
			}
		}
	}
}

func drawPromPoints(r *rand.Rand, counter bool) (points []prom.FPoint) {
	step := pick(r, int64(10_000), 15_000, 60_000, 1_500)
	value := float64(r.IntN(100))
	t := int64(promStart) + r.Int64N(step)
	if r.IntN(2) == 0 {
		t -= t % 1000 // whole seconds
	}
	for range 60 + r.IntN(400) {
		switch {
		case counter && r.IntN(40) == 0:
			value = 0
		case counter:
			value += float64(r.IntN(50))
		case r.IntN(30) == 0:
			value = pick(r, 0, math.Copysign(0, -1), 1e300, -1e-300, 1<<53-1, 0.1)
		case r.IntN(3) == 0:
			value = r.NormFloat64() * 100
		default:
			value = float64(float32(r.NormFloat64()))
		}
		points = append(points, prom.FPoint{T: t, F: value})
		t += step
		if r.IntN(50) == 0 {
			t += int64(r.IntN(900_000)) // a gap
		}
	}
	return points
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func drawPromQuestion(r *rand.Rand) promQuestion {
	q := promQuestion{text: drawPromVector(r, 3), start: promStart + r.Int64N(3_000_000)}
	switch r.IntN(6) {
	case 0, 1:
		q.start -= q.start % 60_000 // where points are
	case 2:
		q.start = promStart + r.Int64N(4*3600_000)
	case 3:
		q.lookback = pick(r, int64(1), 20_000, 1800_000, -1000)
	}
	q.end = q.start
	if r.IntN(2) == 0 {
		q.step = pick(r, int64(1_000), 15_000, 60_000, 61_003, 420_000)
		q.end = q.start + q.step*int64(r.IntN(60)) + pick(r, int64(0), 0, 999)
	}
	return q
}

// drawPromSelector draws a selector, with matchers of all types, also for tags that are absent.
func drawPromSelector(r *rand.Rand) string {
	var in []string
	in = append(in, pick(r, `"reqs.total"`, `"reqs.total"`, `"temp"`, `"sys/load-1"`, `"m_x"`, `"m_x"`,
		`__name__=~"(temp|m_x|none)"`, `__name__=~"te.*"`, `__name__!~"[st].+",dc=~".+"`, `"none"`))
	for range max(0, r.IntN(5)-2) {
		in = append(in, pick(r, `dc`, `dc`, `host`, `host`, `le`, `other`)+pick(r, `="fra"`, `!="fra"`, `=""`, `!=""`,
			`=~"web.*"`, `=~"web01|db1"`, `!~"web.*"`, `=~"web.*|"`, `=~".*"`, `=~".+"`, `!~".+"`, `!~"|fra"`, `="a|b"`,
			`=~"a.b|ams"`, `=~"(?i)WEB01"`, `="ny c"`, `=~"n[[:alpha:]] .|0\\.1"`, `!="nowhere"`, `=~"^w.b01$"`))
	}
	return "{" + strings.Join(in, ",") + "}"
}

func drawPromRange(r *rand.Rand) string {
	window := pick(r, "[1m]", "[5m]", "[90s]", "[1ms]", "[1h]", "[150m]", "[61003ms]", "[20m:1m]", "[10m:]", "[5m:7s]")
	end := pick(r, "", "", "", " offset 5m", " offset -3m", " @ 1356999000", " @ end()", " @ start() offset 1m")
	if strings.Contains(window, ":") && r.IntN(2) == 0 {
		return "(" + drawPromVector(r, 1) + ")" + window + end
	}
	return drawPromSelector(r) + window + end
}

func drawPromVector(r *rand.Rand, depth int) string {
	if depth == 0 {
		return drawPromSelector(r) + pick(r, "", "", "", " offset 2m", " offset -90s", " @ 1356999600")
	}
	over := func() string {
		return fmt.Sprintf("%s(%s)", pick(r, "rate", "increase", "delta", "irate", "idelta", "deriv", "resets",
			"changes", "avg_over_time", "sum_over_time", "min_over_time", "max_over_time", "count_over_time",
			"last_over_time", "stddev_over_time", "stdvar_over_time", "present_over_time", "absent_over_time",
			"first_over_time", "mad_over_time"), drawPromRange(r))
	}
	by := func() string {
		return pick(r, "", " by (dc)", " by (host, dc)", " without (host)", " without (dc, le)", " by (other)")
	}
	switch r.IntN(13) {
	case 0:
		return drawPromVector(r, 0)
	case 1, 2, 3:
		return over()
	case 10, 11, 12: // those whose groups may be made where the points are
		return fmt.Sprintf("%s%s (%s)", pick(r, "min", "max", "count", "group"), pick(r, by(), by(),
			" by (__name__, dc)", " by (le)", " without ()"), pick(r, over(), drawPromVector(r, 0)))
	case 4, 5:
		return fmt.Sprintf("%s%s (%s)", pick(r, "sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"), by(),
			drawPromVector(r, depth-1))
	case 6:
		return fmt.Sprintf("%s%s (%s, %s)", pick(r, "topk", "bottomk", "quantile", "limitk"), by(),
			pick(r, "1", "2", "0.5"), drawPromVector(r, depth-1))
	case 7:
		return fmt.Sprintf("%s(%s)", pick(r, "abs", "ceil", "sgn", "sort", "absent", "timestamp", "sort_desc", "sqrt",
			"exp", "-", "hour", "scalar"), drawPromVector(r, depth-1))
	case 8:
		return fmt.Sprintf("quantile_over_time(%s, %s)", pick(r, "0.5", "0.99", "2"), drawPromRange(r))
	default:
		sign := pick(r, "+", "-", "*", "/", "%", "^", "==", "> bool", "<", "and", "or", "unless",
			"/ on (dc) group_left ()", "- ignoring (host, le) group_right ()")
		return fmt.Sprintf("(%s %s %s)", drawPromVector(r, depth-1), sign,
			pick(r, "2", "0.5", drawPromVector(r, depth-1)))
	}
}
