package changefeed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/gateway/live"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// world is a store in memory and a query engine, with a clock that the test moves.
type world struct {
	clock  time.Time
	store  *pebble.Store
	names  *uid.Dictionary
	engine *engine.Engine // of live queries
	reads  *engine.Engine // of fresh ones: it has no result cache
	schema encoding.Schema
	uids   map[string]encoding.UID
	cells  bool // a cell a point, as on HBase
	stamp  atomic.Int64
	behind time.Duration // by how much the clock of the store's writes is behind
	fix    query.Fixes
	metric string  // of the rows, "m" if empty
	feeds  []*Feed // of all sources
}

// epoch is the time at which tests begin. It is not at the beginning of an hour.
var epoch = time.UnixMilli(1_700_000_123_456)

func newWorld(t testing.TB, fixDuplicates bool) *world { return newCachingWorld(t, fixDuplicates, nil) }

// newCachingWorld makes a world whose engine has a result cache; nil is none.
func newCachingWorld(t testing.TB, fixDuplicates bool, cache *resultcache.Cache) *world {
	w := &world{clock: epoch, schema: encoding.DefaultSchema(), uids: map[string]encoding.UID{}}
	var err error
	w.store, err = pebble.Open("db",
		pebble.Options{FS: vfs.NewMem(), Grouping: w.schema.RowHours(), Now: w.writing, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	names := tables.Names{Data: "tsdb", UID: "tsdb-uid", Meta: "tsdb-meta", Tree: "tsdb-tree"}
	if err := tables.Create(context.Background(), w.store, tables.Specs(names, w.schema, "NONE")); err != nil {
		t.Fatal(err)
	}
	w.names = uid.New(uid.Config{Store: w.store, Table: "tsdb-uid", Schema: w.schema, Log: quiet})
	of := func(cache *resultcache.Cache) *engine.Engine {
		return engine.New(engine.Config{
			Names:   w.names,
			Exec:    dispatch.New(dispatch.Config{Store: w.store, Log: quiet, ResultCache: cache}),
			Compile: plan.Options{Schema: w.schema, Table: "tsdb", FixDuplicates: fixDuplicates},
		})
	}
	w.engine, w.reads = of(cache), of(nil)
	return w
}

// writing returns the time of a write, a millisecond of its own: of two values for one time that
// were written in one millisecond, the form of the cells would decide which one counts.
func (w *world) writing() time.Time {
	for {
		last := w.stamp.Load()
		if next := max(last+1, w.clock.Add(-w.behind).UnixMilli()); w.stamp.CompareAndSwap(last, next) {
			return time.UnixMilli(next)
		}
	}
}

func (w *world) close() { w.store.Close() }

func (w *world) uid(kind encoding.UIDKind, name string) encoding.UID {
	key := fmt.Sprint(kind, name)
	if w.uids[key] == nil {
		u, err := w.names.Assign(context.Background(), kind, name)
		if err != nil {
			panic(err)
		}
		w.uids[key] = u
	}
	return w.uids[key]
}

// row returns the key and the base time of a series' row; tags are key, value, key, value, ….
func (w *world) row(ms int64, tags ...string) (key []byte, base int64) {
	var pairs []encoding.TagPair
	for i := 0; i < len(tags); i += 2 {
		pairs = append(pairs, encoding.TagPair{
			K: w.uid(encoding.UIDTagK, tags[i]),
			V: w.uid(encoding.UIDTagV, tags[i+1]),
		})
	}
	base = ms / 1000 / 3600 * 3600
	return w.schema.AppendRowKey(nil, w.uid(encoding.UIDMetric, cmp.Or(w.metric, "m")), uint32(base),
		w.schema.AppendTags(nil, pairs)), base
}

// point returns the mutation that writes a point.
func (w *world) point(ms int64, milli bool, v encoding.Value, tags ...string) store.Mutation {
	key, base := w.row(ms, tags...)
	q := encoding.Qualifier{OffsetMS: int32(ms - base*1000), Milli: milli, Float: v.Float}
	var value []byte
	if v.Float {
		value = encoding.AppendDouble(nil, v.Double())
	} else {
		value = encoding.AppendInt(nil, v.Int())
	}
	q.Width = len(value)
	m := store.Mutation{
		Kind:      store.Append,
		Row:       key,
		Family:    "t",
		Qualifier: encoding.AppendColumn,
		Value:     encoding.AppendEntry(nil, q, value),
	}
	if w.cells {
		m.Kind, m.Qualifier, m.Value = store.Put, encoding.AppendQualifier(nil, q), value
	}
	return m
}

func (w *world) apply(ms ...store.Mutation) {
	if err := w.store.Apply(context.Background(), "tsdb", ms); err != nil {
		panic(err)
	}
}

// fresh runs the query as of now.
func (w *world) fresh(body string) (picture, error) {
	q, err := query.Parser{Now: w.clock, Fix: w.fix}.JSON([]byte(body))
	if err != nil {
		return nil, err
	}
	results, _, err := w.reads.Run(context.Background(), q, engine.Options{})
	if err != nil {
		return nil, err
	}
	p := picture{}
	for _, r := range LiveResults(results) {
		p.set(&r)
	}
	return p, nil
}

// askAlso runs the query as of now with the engine of live queries, as another client would.
// Whether it fails does not matter.
func (w *world) askAlso(body string) {
	if q, err := (query.Parser{Now: w.clock, Fix: w.fix}).JSON([]byte(body)); err == nil {
		_, _, _ = w.engine.Run(context.Background(), q, engine.Options{})
	}
}

// picture is an answer as a subscriber keeps it: by group.
type picture map[string]*pictured

type pictured struct {
	about  string
	points map[int64]encoding.Value
}

func (p picture) set(r *live.Result) {
	g := &pictured{
		about:  fmt.Sprint(r.Metric, r.Tags, r.AggregateTags, r.NaNIsNull),
		points: map[int64]encoding.Value{},
	}
	for i := range r.Points.Len() {
		t, v := r.Points.At(i)
		g.points[t] = v
	}
	p[fmt.Sprint(r.QueryIndex, " ", r.Key)] = g
}

// apply takes an answer in, and returns an error if its windows break the contract of live.Change.
func (p picture) apply(a *live.Answer) error {
	for key := range p {
		if index := int(key[0] - '0'); !a.Kept[index] {
			delete(p, key)
		}
	}
	for i := range a.Results {
		p.set(&a.Results[i])
	}
	for i := range a.Changes {
		if err := p.change(&a.Changes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p picture) change(c *live.Change) error {
	if c.Full != nil {
		p.set(c.Full)
		return nil
	}
	g := p[fmt.Sprint(c.QueryIndex, " ", c.Key)]
	if g == nil {
		return fmt.Errorf("a change of group %x, which is not there", c.Key)
	}
	last := int64(math.MinInt64)
	for _, w := range c.Windows {
		if w.From <= last || w.To < w.From || bounded(w.From) && w.From%1000 != 0 ||
			bounded(w.To) && (w.To+1)%1000 != 0 {
			return fmt.Errorf("window %d to %d after %d", w.From, w.To, last)
		}
		last = w.To
		maps.DeleteFunc(g.points, func(t int64, _ encoding.Value) bool { return t >= w.From && t <= w.To })
		for i := range w.Points.Len() {
			t, v := w.Points.At(i)
			if t < w.From || t > w.To {
				return fmt.Errorf("a point at %d in the window %d to %d", t, w.From, w.To)
			}
			g.points[t] = v
		}
	}
	return nil
}

func bounded(t int64) bool { return t > -1<<60 && t < 1<<60 }

func (p picture) lines() []string {
	var lines []string
	for key, g := range p {
		lines = append(lines, fmt.Sprintf("%x %s", key, g.about))
		for t, v := range g.points {
			bits := v.Bits
			if v.Float && math.IsNaN(v.Double()) {
				bits = 0x7ff8000000000000
			}
			lines = append(lines, fmt.Sprintf("%x %d %t %x %v", key, t, v.Float, bits, v.Double()))
		}
	}
	slices.Sort(lines)
	return lines
}

func (p picture) String() string { return strings.Join(p.lines(), "\n") }

// unwatched is a store that cannot be watched.
type unwatched struct{ store.Reader }

func (unwatched) Features() store.Features { return store.Features{} }

// openSource returns the source of a query over a store.
func (w *world) openSource(body string, over store.Reader, poll Poll) *source {
	f := New(Config{Engine: w.engine, Store: over, Poll: poll, Fix: w.fix, Log: quiet})
	w.feeds = append(w.feeds, f)
	return f.Open(live.Question{Body: json.RawMessage(body)}).(*source)
}
