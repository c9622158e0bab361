package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
	"downpour/pushdown/store/open/opentest"
)

const (
	hourZero   = 1_356_998_400 // 2013-01-01
	boardHours = 4
)

// board is a store with two engines, one of them with a result cache, and makes random writes and
// queries as for a dashboard.
type board struct {
	*testing.T
	rng    *rand.Rand
	store  store.Store
	schema encoding.Schema
	cache  *resultcache.Cache
	budget func(context.Context, *query.Query, *query.SubQuery) operator.Budget

	caching, reading *Engine
}

// newBoard fills the tables with random points and annotations. The tables must exist.
func newBoard(t *testing.T, rng *rand.Rand, st store.Store) *board {
	b := &board{T: t, rng: rng, store: st, schema: encoding.DefaultSchema(), cache: resultcache.New(1<<20, nil)}
	if rng.IntN(3) == 0 {
		b.schema.SaltWidth, b.schema.SaltBuckets = 1, 3
	}
	names := uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: b.schema})
	for kind, list := range map[encoding.UIDKind][]string{encoding.UIDMetric: {"m"}, encoding.UIDTagK: {"host", "dc"},
		encoding.UIDTagV: {"a", "b", "c"}} {
		for _, name := range list {
			if _, err := names.Assign(t.Context(), kind, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	engine := func(cache *resultcache.Cache) *Engine {
		return New(Config{
			Names:   names,
			Exec:    dispatch.New(dispatch.Config{Store: st, ResultCache: cache}),
			Compile: plan.Options{Schema: b.schema, Table: "tsdb"},
			Budget: func(ctx context.Context, q *query.Query, s *query.SubQuery) operator.Budget {
				if b.budget == nil {
					return operator.NewBudget(0, 0)
				}
				return b.budget(ctx, q, s)
			},
		})
	}
	b.caching, b.reading = engine(b.cache), engine(nil)
	for range 80 {
		b.change()
	}
	return b
}

// readSideBySide has the engine with a cache read hours side by side where it can. The other one,
// whose answers it must give, does not.
func (b *board) readSideBySide() {
	cfg := b.caching.cfg
	cfg.Exec = dispatch.New(dispatch.Config{Store: b.store, ResultCache: b.cache, SideBySide: true})
	b.caching = New(cfg)
}

// change puts, overwrites or deletes a point, or puts an annotation.
func (b *board) change() {
	b.Helper()
	one := func(n int) encoding.UID { return encoding.UID{0, 0, byte(1 + b.rng.IntN(n))} }
	tags := b.schema.AppendTags(nil,
		[]encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: one(3)}, {K: encoding.UID{0, 0, 2}, V: one(2)}})
	base := uint32(hourZero + 3600*b.rng.IntN(boardHours))
	m := store.Mutation{Row: b.schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, base, tags), Family: encoding.FamilyData}
	at := int64(base) + 300*int64(b.rng.IntN(12))
	q, value := operatortest.Encode(at*1000,
		encoding.IntValue(int64(b.rng.IntN(100))-50)) // 1 byte: all values of a time have one qualifier
	m.Qualifier, m.Value = encoding.AppendQualifier(nil, q), value
	switch b.rng.IntN(8) {
	case 0:
		m.Kind, m.Value = store.DeleteCell, nil
	case 1:
		m.Qualifier = encoding.AppendAnnotationQualifier(nil, at)
		m.Value = encoding.AppendAnnotation(nil,
			encoding.Annotation{StartTime: at, Description: fmt.Sprint(b.rng.IntN(9))})
	}
	b.apply(m)
}

func (b *board) apply(m store.Mutation) {
	b.Helper()
	if err := b.store.Apply(b.Context(), "tsdb", []store.Mutation{m}); err != nil {
		b.Fatal(err)
	}
}

// panel draws a random query over up to two hours that begins at a full minute.
func (b *board) panel() *query.Query {
	b.Helper()
	start := hourZero + 3600*b.rng.IntN(2) + 60*b.rng.IntN(60)
	end := start + 3600*(1+b.rng.IntN(2))
	one := func(texts ...string) string { return texts[b.rng.IntN(len(texts))] }
	body := fmt.Sprintf(
		`{"start":%d,"end":%d,"msResolution":true,"showTSUIDs":%v,"mode":%q,`+
			`"queries":[{"metric":"m","aggregator":%q,"downsample":%q,"rate":%v,"tags":%s}]}`,
		start, end, b.rng.IntN(3) == 0, one("", "", "strict", "partial"), one("sum", "avg", "max", "none"),
		one("5m-avg", "1h-sum", "0all-sum", "7m-max", "10m-sum-zero"),
		b.rng.IntN(4) == 0, one(`{}`, `{"host":"*"}`, `{"dc":"a|b"}`))
	q, err := query.Parser{Now: time.Now()}.JSON([]byte(body))
	if err != nil {
		b.Fatalf("%s: %v", body, err)
	}
	return q
}

// ask runs a query on both engines, compares the answers, and returns the stats of the engine with
// the result cache.
func (b *board) ask(q *query.Query) Stats {
	b.Helper()
	got, stats, err := b.caching.Run(b.Context(), q, Options{})
	want, fresh, wantErr := b.reading.Run(b.Context(), q, Options{})
	if err != nil || wantErr != nil {
		b.Fatalf("error %v, want %v", err, wantErr)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		b.Fatalf("%d parts from the result cache; -want +got\n%s", stats.CacheHits, d)
	}
	if stats.Points != fresh.Points || stats.Rows != fresh.Rows || stats.PointsOut != fresh.PointsOut {
		b.Fatalf("stats %+v, want %+v", stats, fresh)
	}
	answer, err := b.caching.Open(b.Context(), q, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range answer.Results {
		if err := answer.Fill(b.Context(), i); err != nil {
			b.Fatal(err)
		}
		answer.Results[i].Annotations, answer.Results[i].HasNotes = want[i].Annotations, want[i].HasNotes
	}
	if d := cmp.Diff(want, answer.Results, cmpopts.EquateEmpty()); d != "" {
		b.Fatalf("opened: -want +got\n%s", d)
	}
	return stats
}

// live runs queries with moving windows between random writes, and returns the cache's counts.
func (b *board) live(asks int) resultcache.Counts {
	panels := []*query.Query{b.panel(), b.panel(), b.panel()}
	for range asks {
		i := b.rng.IntN(len(panels))
		if b.rng.IntN(10) == 0 {
			panels[i] = b.panel()
		}
		for range max(0, b.rng.IntN(8)-6) {
			b.change()
		}
		moved := *panels[i]
		moved.Start += 60_000 * b.rng.Int64N(5)
		moved.End -= 60_000 * b.rng.Int64N(5)
		b.ask(&moved)
	}
	return b.cache.Counts()
}

// boardTables are the tables of a board.
var boardTables = []store.TableSpec{
	opentest.Table("tsdb", encoding.FamilyData),
	opentest.Table("tsdb-uid", encoding.FamilyID, encoding.FamilyName),
}

func embedded(t *testing.T) store.Store { return opentest.Embedded(t, boardTables...) }
