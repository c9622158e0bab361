package extra_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/gateway"
	"downpour/gateway/extra/rollups"
	"downpour/gateway/gatewaytest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
)

// madeRollups are rollups of ten minutes, an hour and a day that the gateway makes itself.
const madeRollups = `auto:{"aggregationIds":{"sum":0,"count":1,"min":2,"max":3},"intervals":[
 {"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
 {"table":"r10m","preAggregationTable":"r10m-pre","interval":"10m","rowSpan":"6h"},
 {"table":"r1h","preAggregationTable":"r1h-pre","interval":"1h","rowSpan":"1d"},
 {"table":"r1d","preAggregationTable":"r1d-pre","interval":"1d","rowSpan":"1n"}]}`

// withMade has rollups made by the command alone.
func withMade(cfg *gateway.Config) {
	cfg.Rollups, gateway.SettingsOf[rollups.Settings](cfg).RollupRate = madeRollups, "off"
}

// rolled are counts of gateway rollup.
type rolled struct {
	Points, Made, Kept, Cells, Stay, Raw, Failed, Proven, Unproven int64
	Why                                                            string
}

// A dry run says what a run would do: everything before one, and nothing after it.
func TestMade_dryRun(t *testing.T) {
	b := open(t, withMade)
	twoDays(b)
	dry := func() (counts rolled) {
		t.Helper()
		a := b.Post("/api/tools/rollup", `{"args":["2013/01/01","2013/01/03","m"],"margin":"10m","dryRun":true}`)
		_, end, ok := strings.Cut(a.Body, "#end ")
		if err := json.Unmarshal([]byte(end), &counts); a.Status != http.StatusOK || !ok || err != nil {
			t.Fatalf("%d %s, %v", a.Status, a.Body, err)
		}
		return counts
	}
	before := dry()
	made := roll(b, "2013/01/01", "2013/01/03")
	after := dry()
	if before.Made != made.Made || before.Kept != 0 || after.Made != 0 || after.Kept != made.Made || made.Made == 0 {
		t.Errorf("before %+v, a run %+v, after it %+v, want the run's days made, and then none", before, made, after)
	}
}

// roll rolls up metric m between two times, as gateway rollup does.
func roll(b *bench, from, to string) rolled {
	b.Helper()
	return rollWith(b, from, to, false)
}

// rollWith is roll, and has rollups of more points than there are replaced if fewer is set.
func rollWith(b *bench, from, to string, fewer bool) (counts rolled) {
	b.Helper()
	a := b.Post("/api/tools/rollup", fmt.Sprintf(`{"args":[%q,%q,"m"],"margin":"10m","fewer":%v}`, from, to, fewer))
	_, end, ok := strings.Cut(a.Body, "#end ")
	if a.Status != http.StatusOK || !ok {
		b.Fatalf("rollup: got %d %s", a.Status, a.Body)
	}
	if err := json.Unmarshal([]byte(end), &counts); err != nil {
		b.Fatal(err)
	}
	return counts
}

// january are the first four days of 2013.
var january = [2]string{"2013/01/01", "2013/01/05"}

const day = "start=1356998400&end=1357084799&m="

const midnight = 1356998400 // of the first

// explained returns what explain says of rollups.
func explained(b *bench, query string) string {
	b.Helper()
	a := b.Get("/api/query?explain=true&" + query)
	var out struct{ Rollups string }
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil || a.Status != http.StatusOK {
		b.Fatalf("explain: %d %s", a.Status, a.Body)
	}
	return out.Rollups
}

// wantRead checks which rollups a query reads, by a part of what explain says, and that its answer
// is that of the raw rows.
func wantRead(b *bench, what, m, want string) {
	b.Helper()
	q := "start=1356998400&end=1357171199&m=" + url.QueryEscape(m)
	if got := explained(b, q); !strings.Contains(got, want) {
		b.Errorf("%s: %s: explain says %q, want %q", what, m, got, want)
	}
	sameAsRaw(b, q, m)
}

// sameAsRaw checks that a query has the answer of raw rows.
func sameAsRaw(b *bench, q, m string) {
	b.Helper()
	at := strings.LastIndex(m, ":m") // before the metric
	raw := strings.Replace(q, url.QueryEscape(m), url.QueryEscape(m[:at]+":rollup_raw"+m[at:]), 1)
	got, want := b.Get("/api/query?show_tsuids=true&"+q), b.Get("/api/query?show_tsuids=true&"+raw)
	if got.Status != want.Status {
		b.Fatalf("%s: got %d %.300s, from raw rows %d %.300s", q, got.Status, got.Body, want.Status, want.Body)
	}
	if d := cmp.Diff(want.Body, got.Body); d != "" && got.Status == http.StatusOK {
		b.Errorf("%s: -raw +rollups\n%s", q, d)
	}
}

// twoDays puts a point every 10 minutes of two days for two series.
func twoDays(b *bench) {
	b.Helper()
	var lines []string
	for at := midnight; at < midnight+2*86400; at += 600 {
		lines = append(lines, fmt.Sprintf("m %d %d host=a", at, at%977), fmt.Sprintf("m %d %d.5 host=b", at+1, at%613))
	}
	b.Put(lines...)
}

// A query reads rollups only while nothing of its raw rows has changed since they were made. When
// they were made again, it reads them again.
//
//fault:made-proof-of-raw-rows-ignored => if kept = run.Pieces; why != nil {
func TestMade_changes(t *testing.T) {
	for _, salt := range []int{0, 1} {
		b := open(t, func(cfg *gateway.Config) { withMade(cfg); cfg.SaltWidth = salt })
		twoDays(b)
		wantRead(b, "before", "sum:1h-sum:m", "raw rows: some hours are not rolled up")
		counts := roll(b, "2013/01/01", "2013/01/03")
		if counts.Unproven > 0 || counts.Proven == 0 || counts.Points == 0 {
			t.Fatalf("got %+v, want all proven", counts)
		}
		const whole = "table r1h from 2013-01-01 00:00:00 to 2013-01-03 00:00:00 UTC"
		wantRead(b, "rolled up", "sum:1h-sum:m", whole)
		wantRead(b, "rolled up", "sum:1d-avg:m{host=*}",
			"table r1d from 2013-01-01 00:00:00 to 2013-01-03 00:00:00 UTC")
		wantRead(b, "rolled up", "sum:20m-max:m", "table r10m from 2013-01-01 00:00:00 to 2013-01-03 00:00:00 UTC")
		if again := roll(b, "2013/01/01", "2013/01/03"); again.Made+again.Cells+again.Points > 0 ||
			again.Kept != counts.Made {
			t.Errorf("rolled up again: got %+v, want all kept", again)
		}

		for what, change := range map[string]func(){
			"a late point": func() { b.Put(fmt.Sprintf("m %d 1000 host=a", midnight+5*3600+17)) },
			"an overwrite": func() { b.Put(fmt.Sprintf("m %d 2000 host=a", midnight+5*3600)) },
			"a new series": func() { b.Put(fmt.Sprintf("m %d 3000 host=c", midnight+5*3600)) },
			"a deletion":   func() { deleteRows(b, midnight+5*3600) },
		} {
			change()
			wantRead(b, what, "sum:1h-sum:m",
				"table r1h from 2013-01-02 00:00:00 to 2013-01-03 00:00:00 UTC; raw rows at other times: raw rows: ")
			wantRead(b, what, "sum:1h-sum:m", "rows have changed")
			wantRead(b, what, "max:1d-max:m", "table r1d from 2013-01-02 00:00:00 to 2013-01-03 00:00:00 UTC")
			deleted := what == "a deletion"
			if deleted {
				if c := roll(b, "2013/01/01", "2013/01/03"); c.Stay == 0 || c.Raw == 0 {
					t.Errorf("%s: got %+v, want that values stay", what, c)
				}
				wantRead(b, what, "sum:1h-sum:m",
					"table r1h from 2013-01-02 00:00:00 to 2013-01-03 00:00:00 UTC; raw rows at other times: ")
			}
			if again := rollWith(b, "2013/01/01", "2013/01/03", deleted); again.Made == 0 || again.Kept == 0 ||
				again.Unproven > 0 {
				t.Errorf("%s: got %+v, want the first day made, the second kept", what, again)
			}
			wantRead(b, what+", rolled up again", "sum:1h-sum:m", whole)
		}
	}
}

// deleteRows deletes all rows of an hour.
func deleteRows(b *bench, base int64) {
	b.Helper()
	var m []store.Mutation
	for row, err := range store.Rows(b.Context(), b.Store, store.Scan{Table: "tsdb", Family: "t"}) {
		if err != nil {
			b.Fatal(err)
		}
		if key, err := b.Config.Schema().ParseRowKey(row.Key); err == nil && int64(key.BaseTime) == base {
			m = append(m, store.Mutation{Kind: store.DeleteRow, Row: append([]byte(nil), row.Key...), Family: "t"})
		}
	}
	if err := b.Store.Apply(b.Context(), "tsdb", m); err != nil || len(m) == 0 {
		b.Fatal(len(m), err)
	}
}

// Rollups that somebody else has changed are not read, nor those of a table that has lost some.
func TestMade_othersWrite(t *testing.T) {
	for what, change := range map[string]func(m *store.Mutation){
		"another value": func(m *store.Mutation) { m.Value[0] ^= 1 },
		"a lost value":  func(m *store.Mutation) { m.Kind = store.DeleteCell },
		"a lost row":    func(m *store.Mutation) { m.Kind = store.DeleteRow },
	} {
		b := open(t, withMade)
		twoDays(b)
		roll(b, "2013/01/01", "2013/01/03")
		var m *store.Mutation
		for row, err := range store.Rows(t.Context(), b.Store, store.Scan{Table: "r1h", Family: "t"}) {
			if err != nil {
				t.Fatal(err)
			}
			c := row.Cells[0].Clone()
			m = &store.Mutation{
				Row:       append([]byte(nil), row.Key...),
				Family:    "t",
				Qualifier: c.Qualifier,
				Value:     c.Value,
			}
			break
		}
		change(m)
		if err := b.Store.Apply(t.Context(), "r1h", []store.Mutation{*m}); err != nil {
			t.Fatal(err)
		}
		wantRead(b, what, "sum:1h-sum:m", "table r10m") // the next shorter interval
		// The next run finds that they are not what it has written, the one after it mends that.
		if c := roll(b, "2013/01/01", "2013/01/03"); c.Unproven == 0 ||
			!strings.Contains(c.Why, "does not hold what was rolled up") {
			t.Errorf("%s: got %+v, want that the table does not hold what was rolled up", what, c)
		}
		wantRead(b, what, "sum:1h-sum:m", "table r1h from 2013-01-02 00:00:00 to 2013-01-03 00:00:00 UTC; "+
			"raw rows at other times: some hours are not rolled up")
		if c := roll(b, "2013/01/01", "2013/01/03"); c.Made == 0 || c.Unproven > 0 {
			t.Errorf("%s: got %+v, want it made again", what, c)
		}
		wantRead(b, what+", made again", "sum:1h-sum:m",
			"table r1h from 2013-01-01 00:00:00 to 2013-01-03 00:00:00 UTC")
	}
}

// A worker that writes to the rollups while a query reads them does not change its answer.
func TestMade_changesWhileRead(t *testing.T) {
	b := open(t, withMade)
	twoDays(b)
	roll(b, "2013/01/01", "2013/01/03")
	written := 0
	judge := func(s store.Scan) error {
		if s.Table != "r1h" || written > 0 {
			return nil
		}
		written++
		key, err := b.Config.Schema().ParseRowKey(s.Start)
		if err != nil {
			return err
		}
		row := b.Config.Schema().AppendRowKey(nil, key.Metric, uint32(midnight), []byte{0, 0, 1, 0, 0, 1})
		return b.Store.Store.Apply(t.Context(), "r1h",
			[]store.Mutation{{Row: row, Family: "t", Qualifier: []byte{0, 0, 0}, Value: []byte{1}}})
	}
	b.Store.Judge.Store(&judge)
	sameAsRaw(b, day+url.QueryEscape("sum:1h-sum:m"), "sum:1h-sum:m")
	if written == 0 {
		t.Error("the query has read no rollups")
	}
}

// What rollups cannot say is read from raw rows.
func TestMade_onlyRaw(t *testing.T) {
	b := open(t, withMade)
	twoDays(b)
	b.Put(fmt.Sprintf("m %d 1e300 host=a", midnight+86400+3600))
	roll(b, "2013/01/01", "2013/01/03")
	for m, want := range map[string]string{
		"sum:1h-dev:m":   "raw rows: dev cannot be made of sums",
		"sum:1h-last:m":  "raw rows: last cannot",
		"sum:m":          "raw rows: nothing is downsampled",
		"sum:0all-sum:m": "raw rows: one bucket",
		"sum:1hc-sum:m":  "raw rows: calendar buckets",
		"sum:7m-sum:m":   "raw rows: no interval that is rolled up divides",
		"sum:1h-sum:m": "table r1h from 2013-01-01 00:00:00 to 2013-01-02 00:00:00 UTC; " +
			"raw rows at other times: values near the largest double",
		"max:1h-avg:m{host=*}": "table r1h from 2013-01-01 00:00:00 to 2013-01-02 00:00:00 UTC",
		"zimsum:1h-zimsum:m":   "table r1h from 2013-01-01 00:00:00 to 2013-01-02 00:00:00 UTC",
		"sum:40m-mimmin:m":     "table r10m from 2013-01-01 00:00:00 to 2013-01-02 00:00:00 UTC",
	} {
		wantRead(b, "", m, want)
	}
	why := b.Get("/api/query?explain=true&mode=strict&" + day + "sum:2h-sum:m").Body
	if !strings.Contains(why, "sums of sums round in another order") {
		t.Errorf("mode=strict: got %s", why)
	}

	a := b.Post("/api/annotation",
		fmt.Sprintf(`{"startTime":%d,"tsuid":"000001000001000001","description":"note"}`, midnight+600))
	if a.Status != http.StatusOK {
		t.Fatal(a.Body)
	}
	wantRead(b, "an annotation", "sum:1h-sum:m", "raw rows: ")
	roll(b, "2013/01/01", "2013/01/03")
	wantRead(b, "an annotation", "sum:1h-sum:m", "raw rows: rows with annotations")

	a = b.Post("/api/rollup?details",
		`{"metric":"m","timestamp":1356998400,"value":1,"tags":{"host":"a"},"interval":"1h","aggregator":"sum"}`)
	if a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "Rollups of series are made here") {
		t.Errorf("a put of a rollup: got %d %s", a.Status, a.Body)
	}
}

// Hours that are not over are not rolled up, and hours without points are none.
func TestMade_sealed(t *testing.T) {
	b := open(t, withMade)
	now := b.Config.Now().Unix()
	b.Put(fmt.Sprintf("m %d 1 host=a", now-3*3600), fmt.Sprintf("m %d 2 host=a", now-600),
		fmt.Sprintf("m %d 2 host=a", now))
	roll(b, "2d-ago", "now")
	for row, err := range store.Rows(t.Context(), b.Store, store.Scan{Table: "r1h", Family: "t"}) {
		if err != nil {
			t.Fatal(err)
		}
		key, _ := b.Config.Schema().ParseRowKey(row.Key)
		for _, cell := range row.Cells {
			index := int64(cell.Qualifier[1])<<4 | int64(cell.Qualifier[2])>>4
			if end := int64(key.BaseTime) + (index+1)*3600; end > now-600 {
				t.Errorf("the hour that ends at %d is rolled up at %d", end, now)
			}
		}
	}
	q := fmt.Sprintf("start=%d&end=%d&m=sum:1h-count:m", now-86400, now+3600)
	sameAsRaw(b, q, "sum:1h-count:m")
}

// madeCluster is a fake HBase with the tables of withMade.
func madeCluster(t *testing.T) *hbasefake.Cluster {
	t.Helper()
	cluster := hbasefake.For(t, hbasefake.Options{})
	cluster.CreateTable("tsdb", []string{"t"})
	cluster.CreateTable("tsdb-uid", []string{"id", "name"})
	for _, table := range []string{"r10m", "r1h", "r1d", "pre", "r10m-pre", "r1h-pre", "r1d-pre"} {
		cluster.CreateTable(table, []string{"t"})
	}
	return cluster
}

// The same on HBase, where a region that rests is a proof, and a point of a TSD ends it.
func TestMade_hbase(t *testing.T) {
	cluster := madeCluster(t)
	cfg, st := gatewaytest.HBase(t, cluster.Address())
	withMade(cfg)
	cluster.CreateTable(cfg.TableState, []string{"s"})
	b := serve(t, cfg, st)
	twoDays(b)
	if c := roll(b, "2013/01/01", "2013/01/03"); c.Unproven > 0 || c.Proven == 0 {
		t.Fatalf("got %+v, want all proven", c)
	}
	const whole = "table r1h from 2013-01-01 00:00:00 to 2013-01-03 00:00:00 UTC"
	wantRead(b, "rolled up", "sum:1h-sum:m", whole)

	// Another gateway on the same tables finds the same.
	where, err := hbase.ParseAddress(cluster.Address())
	if err != nil {
		t.Fatal(err)
	}
	second, err := hbase.Open(where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Close() })
	other := serve(t, cfg, second)
	wantRead(other, "another gateway", "sum:1h-sum:m", whole)

	other.Put(fmt.Sprintf("m %d 1000 host=a", midnight+5*3600+17))
	wantRead(b, "a late point", "sum:1h-sum:m", "raw rows: raw rows: ")
	roll(other, "2013/01/01", "2013/01/03")
	wantRead(b, "rolled up again", "sum:1h-sum:m", whole)
}

// By timestamps rollups stay proven while others write to the region of their raw rows, and a late
// point ends that for its day alone.
func TestMade_timestamps(t *testing.T) {
	cluster := madeCluster(t)
	where, err := hbase.ParseAddress(cluster.Address())
	if err != nil {
		t.Fatal(err)
	}
	where.Proof, where.VersionTimeout = hbase.ProofTimestamps, gatewaytest.Patience
	st, err := hbase.Open(where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	cfg := config(0)
	cfg.Store, cfg.AutoMetrics, cfg.ResultCacheProof = "hbase:"+cluster.Address(), "true", "timestamps"
	withMade(cfg)
	cluster.CreateTable(cfg.TableState, []string{"s"})
	b := serve(t, cfg, st)

	// Written an hour ago, and flushed.
	cluster.SetClock(func() int64 { return time.Now().Add(-time.Hour).UnixMilli() })
	twoDays(b)
	cluster.Flush("tsdb")
	cluster.SetClock(func() int64 { return time.Now().UnixMilli() })

	roll(b, "2013/01/01", "2013/01/03")
	const whole = "table r1h from 2013-01-01 00:00:00 to 2013-01-03 00:00:00 UTC"
	wantRead(b, "rolled up", "sum:1h-sum:m", whole)
	b.Put(fmt.Sprintf("other %d 1 host=a", midnight+5*3600))
	cluster.Flush("tsdb")
	wantRead(b, "another metric was written to", "sum:1h-sum:m", whole)
	b.Put(fmt.Sprintf("m %d 1000 host=a", midnight+5*3600+17))
	wantRead(b, "a late point", "sum:1h-sum:m",
		"table r1h from 2013-01-02 00:00:00 to 2013-01-03 00:00:00 UTC; raw rows at other times: raw rows: ")

	// It is made again, but the point is too young for a proof by timestamps: only while the
	// region rests it is proven.
	if c := roll(b, "2013/01/01", "2013/01/03"); c.Made != 3 || c.Kept != 3 {
		t.Errorf("got %+v, want a day of each interval made again", c)
	}
	wantRead(b, "rolled up again", "sum:1h-sum:m", whole)
	b.Put(fmt.Sprintf("other %d 2 host=a", midnight+5*3600))
	wantRead(b, "the region is written to", "sum:1h-sum:m",
		"table r1h from 2013-01-02 00:00:00 to 2013-01-03 00:00:00 UTC")
	cluster.CompactAll("tsdb")
	wantRead(b, "all files are compacted", "sum:1h-sum:m", "raw rows: raw rows: ")
}

// Whatever is put, late, overwritten or deleted, before and after it is rolled up, and whatever is
// asked: the answer is that of the raw rows to the last bit, where no addition rounds.
func TestMade_drawn(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	used := 0
	for round := range 6 {
		b := open(t, func(cfg *gateway.Config) { withMade(cfg); cfg.SaltWidth = round % 2 })
		d := drawnMade{b, rng}
		d.points(200)
		roll(b, january[0], january[1])
		for range 5 {
			for range 12 {
				if d.query() {
					used++
				}
			}
			deleted := rng.IntN(4) == 0
			if deleted {
				d.deleteSome()
			}
			d.points(rng.IntN(3))
			if rng.IntN(2) == 0 {
				from := rng.IntN(3)
				rollWith(b, fmt.Sprintf("2013/01/0%d", 1+from), fmt.Sprintf("2013/01/0%d", 2+from+rng.IntN(3)), deleted)
			}
		}
		if t.Failed() {
			return
		}
	}
	if used < 30 {
		t.Errorf("%d queries read rollups, want at least 30: little is tried", used)
	}
}

// drawnMade draws points and queries.
type drawnMade struct {
	*bench
	rng *rand.Rand
}

// points puts some points, whose values have few bits.
func (d *drawnMade) points(n int) {
	var lines []string
	for range n {
		at := int64(midnight + d.rng.IntN(4*86400))
		value := fmt.Sprint(d.rng.IntN(1000) - 500)
		if d.rng.IntN(2) == 0 {
			value = fmt.Sprint(math.Ldexp(float64(d.rng.IntN(1000)-500), -3), "e0")
		}
		series := []string{"host=a", "host=b", "host=c dc=x", "host=a dc=y"}[d.rng.IntN(4)]
		for range 1 + d.rng.IntN(20) { // points come in rows
			lines = append(lines, fmt.Sprintf("m %d %s %s", at, value, series))
			at += int64(1 + d.rng.IntN(900))
		}
	}
	if len(lines) > 0 {
		d.Put(lines...)
	}
}

// deleteSome deletes the rows of one hour.
func (d *drawnMade) deleteSome() {
	var bases []int64
	for row, err := range store.Rows(d.Context(), d.Store, store.Scan{Table: "tsdb", Family: encoding.FamilyData}) {
		if err != nil {
			d.Fatal(err)
		}
		if key, err := d.Config.Schema().ParseRowKey(row.Key); err == nil {
			bases = append(bases, int64(key.BaseTime))
		}
	}
	deleteRows(d.bench, bases[d.rng.IntN(len(bases))])
}

// query runs a drawn query and reports whether rollups were read.
func (d *drawnMade) query() bool {
	pick := func(list ...string) string { return list[d.rng.IntN(len(list))] }
	m := pick("sum", "avg", "min", "max", "count", "dev", "zimsum", "mimmin", "mimmax", "pfsum", "none", "first", "p90")
	if d.rng.IntN(4) == 0 {
		m += pick(":rate", ":rate{counter,1000}", ":rate{dropcounter}")
	}
	m += ":" +
		pick("10m", "20m", "1h", "1h", "2h", "3h", "5h", "1d", "1d", "2d", "45m", "90m", "1440m", "30m", "1dc", "7m")
	m += "-" + pick("sum", "avg", "min", "max", "count", "zimsum", "mimmin", "mimmax", "sum", "avg", "dev")
	fills := []string{"", "", ""}
	for _, f := range scanplan.Fills {
		fills = append(fills, "-"+string(f))
	}
	m += pick(fills...)
	m += ":m" + pick("", "{host=*}", "{host=a}", "{host=a|b}{dc=*}", "{}{host=wildcard(*)}", "{dc=not_literal_or(x)}")
	from := midnight - 86400 + d.rng.IntN(5*86400)
	q := fmt.Sprintf("start=%d&end=%d&m=%s", from, from+1+d.rng.IntN(4*86400), url.QueryEscape(m))
	sameAsRaw(d.bench, q, m)
	if d.Failed() {
		d.Logf("explain: %s", explained(d.bench, q))
	}
	return strings.Contains(explained(d.bench, q), "table ")
}

// A name is not deleted while rollup tables have its UID.
func TestRollup_nameInUse(t *testing.T) {
	b := open(t, gatewaytest.WithRollups)
	b.Rollups("1h-sum:sum m 1356998400 7 dc=x")
	for _, body := range []string{
		`{"kind":"metrics","name":"m"}`, `{"kind":"tagk","name":"_aggregate"}`, `{"kind":"tagv","name":"x"}`,
	} {
		a := b.Post("/api/tools/delete", body)
		if a.Status == http.StatusOK || !strings.Contains(a.Body, "of table r1h-pre holds its UID") {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
}
