package retention_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/extra/retention"
	"downpour/gateway/extra/retention/rules"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/hbase"
	"downpour/pushdown/store/hbase/hbasefake"
	"downpour/pushdown/store/open/opentest"
	"downpour/pushdown/store/pebble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	now  = 1_700_000_000 // 2023-11-14 22:13:20
	hour = encoding.RowSeconds
)

// world is a data table and one of rollups by day, with rows of some metrics.
type world struct {
	*testing.T
	rng    *rand.Rand
	store  store.Store
	schema encoding.Schema
	names  []string // of metric 1, 2, 3, …
	job    *retention.Job
	fake   *hbasefake.Cluster // nil for an embedded store
	rows   map[string]map[string]row
}

// row is what the test knows of a row.
type row struct {
	metric  string
	base    int64
	invalid bool // of the key
}

const rollupTable = "tsdb-rollup"

var daily = encoding.RowSpan{Count: 1, Unit: "d"}

func schemaOf(salts int) encoding.Schema {
	s := encoding.DefaultSchema()
	if salts > 0 {
		s.SaltWidth, s.SaltBuckets = 1, salts
	}
	return s
}

func newWorld(t *testing.T, rng *rand.Rand, st store.Store, schema encoding.Schema) *world {
	w := &world{T: t, rng: rng, store: st, schema: schema, rows: map[string]map[string]row{"tsdb": {}, rollupTable: {}},
		names: []string{"sys.cpu", "sys.mem", "net.in", "app.requests"}}
	spec := store.TableSpec{Name: rollupTable, Families: []store.FamilySpec{{Name: encoding.FamilyData}}}
	if err := st.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	w.job = &retention.Job{
		Store:  st,
		Schema: schema,
		Rules:  rules.All(1 << 20),
		Names:  w.each,
		Now:    func() time.Time { return time.Unix(now, 0) },
		Tables: []retention.Table{
			{Name: "tsdb", Span: rules.Hour},
			{Name: rollupTable, Interval: "1h", Span: daily, Optional: true},
		},
	}
	return w
}

func embedded(t *testing.T, rng *rand.Rand) *world {
	t.Helper()
	schema := schemaOf(rng.IntN(4))
	st := opentest.EmbeddedWith(t, pebble.Options{Grouping: schema.RowHours(), IdleFlush: -1},
		tablestest.Specs(schema)...)
	return newWorld(t, rng, st, schema)
}

func onHBase(t *testing.T, rng *rand.Rand) *world {
	t.Helper()
	return onHBaseWith(t, rng, schemaOf(rng.IntN(4)))
}

func onHBaseWith(t *testing.T, rng *rand.Rand, schema encoding.Schema) *world {
	t.Helper()
	fake := opentest.Fake(t, hbasefake.Options{})
	w := newWorld(t, rng, opentest.HBaseWith(t, fake, hbase.Config{}, tablestest.Specs(schema)...), schema)
	w.fake = fake
	return w
}

var stores = map[string]func(*testing.T, *rand.Rand) *world{"embedded": embedded, "hbase": onHBase}

// each yields the names, in another order than that of their UIDs.
func (w *world) each(context.Context) iter.Seq2[uid.Entry, error] {
	return func(yield func(uid.Entry, error) bool) {
		for i := range slices.Backward(w.names) {
			if !yield(uid.Entry{Name: w.names[i], UID: metric(i)}, nil) {
				return
			}
		}
	}
}

func metric(i int) encoding.UID { return encoding.UID{0, 0, byte(i + 1)} }

// put puts a row of a metric, 0 for the first, which holds a base time.
func (w *world) put(table string, i int, base int64, series int) {
	w.Helper()
	tags := []byte{0, 0, 1, 0, byte(series >> 8), byte(series)}
	key := w.schema.AppendRowKey(nil, metric(i), uint32(base), tags)
	name := "" // of a metric that the UID table does not name
	if i < len(w.names) {
		name = w.names[i]
	}
	w.putKey(table, key, row{metric: name, base: base})
}

func (w *world) putKey(table string, key []byte, r row) {
	w.Helper()
	m := store.Mutation{Row: key, Family: encoding.FamilyData, Qualifier: []byte{0, 0}, Value: []byte{1}}
	if err := w.store.Apply(w.Context(), table, []store.Mutation{m}); err != nil {
		w.Fatal(err)
	}
	w.rows[table][string(key)] = r
}

// keys returns the keys of a table, in hex.
func (w *world) keys(table string) (keys []string) {
	w.Helper()
	for row, err := range store.Rows(w.Context(), w.store, store.Scan{Table: table}) {
		if err != nil {
			w.Fatal(err)
		}
		keys = append(keys, fmt.Sprintf("%x", row.Key))
	}
	return keys
}

// want returns the keys that stay: all whose row is not wholly past.
func (w *world) want(table string, span encoding.RowSpan, interval string) (keys []string) {
	for key, r := range w.rows[table] {
		rule := w.job.Rules.Of(r.metric)
		past := false
		if rule != nil && !r.invalid && r.metric != "" {
			age := rule.Age(interval)
			past = age != rules.Keep && span.Next(r.base) <= now-int64(age)
		}
		if !past {
			keys = append(keys, fmt.Sprintf("%x", key))
		}
	}
	slices.Sort(keys)
	return keys
}

// past returns how many rows of all tables are past.
func (w *world) past() (n int) {
	for _, t := range w.job.Tables {
		n += len(w.rows[t.Name]) - len(w.want(t.Name, t.Span, t.Interval))
	}
	return n
}

// draw puts rows of all kinds around the times at which rows go.
func (w *world) draw(n int) {
	for range n {
		at := int64(now) - w.rng.Int64N(12*86_400)
		i := w.rng.IntN(len(w.names) + 1)
		w.put("tsdb", i, at-at%hour, 1+w.rng.IntN(3))
		w.put(rollupTable, i, daily.BaseTime(at), 1+w.rng.IntN(3))
	}
	// Global annotations, and keys that no row has: too short, with half a tag, at no hour.
	global := w.schema.AppendRangeKey(nil, 0, encoding.UID{0, 0, 0}, uint32(now-400*86_400)/hour*hour)
	w.putKey("tsdb", global, row{invalid: true})
	salt := w.schema.AppendSalt(nil, 0)
	w.putKey("tsdb", append(slices.Clone(salt), 0, 0, 1, 1), row{invalid: true})
	at := uint32(now) - uint32(w.rng.Int64N(12*86_400))
	half := w.schema.AppendRangeKey(nil, 0, metric(w.rng.IntN(len(w.names))), at/hour*hour)
	w.putKey("tsdb", append(half, 0, 0, 1), row{invalid: true})
}

var ages = []string{"1h", "2d", "36h", "3d", "5d", "100h", "keep"}

// drawRules draws rules; some match, and some hide others.
func (w *world) drawRules() string {
	patterns := []string{"^sys\\.", "cpu", "mem$", "^net", "in", ".", "^none$"}
	var b strings.Builder
	for range 1 + w.rng.IntN(4) {
		fmt.Fprintf(&b, "%s %s", patterns[w.rng.IntN(len(patterns))], ages[w.rng.IntN(len(ages)-1)])
		if w.rng.IntN(2) == 0 {
			fmt.Fprintf(&b, " %s=%s",
				[]string{"rollups", "1h"}[w.rng.IntN(2)], []string{"6d", "7d", "keep"}[w.rng.IntN(3)])
		}
		b.WriteString("\n")
	}
	if w.rng.IntN(3) == 0 {
		b.WriteString("app keep\n")
	}
	return b.String()
}

// parse parses rules for a job.
func parse(t *testing.T, text string) *rules.Rules {
	t.Helper()
	r, err := rules.Parse([]byte(text), []string{"1h"})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return r
}

// both runs a test on both stores.
func both(t *testing.T, f func(*world)) {
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		t.Run(name, func(t *testing.T) {
			seed := seedtest.Of(t)
			f(stores[name](t, rand.New(rand.NewPCG(seed, 0))))
		})
	}
}
