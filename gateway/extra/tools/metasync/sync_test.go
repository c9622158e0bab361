package metasync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway/extra/tools/metasync"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/drystore"
	"downpour/pushdown/store/faultstore"
	"downpour/pushdown/store/open/opentest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// data is a store with points, for which a run makes meta data.
type data struct {
	*testing.T
	store.Store
	schema encoding.Schema
	lines  []string
	// The time of the first row of each TSUID, and of each UID with its kind before it, in s.
	series, uids map[string]int64
}

func embedded(t *testing.T, schema encoding.Schema) *data {
	t.Helper()
	return opened(t, opentest.Embedded(t, tablestest.Specs(schema)...), schema)
}

func onHBase(t *testing.T, schema encoding.Schema) *data {
	t.Helper()
	return opened(t, opentest.HBase(t, tablestest.Specs(schema)...), schema)
}

func opened(t *testing.T, s store.Store, schema encoding.Schema) *data {
	return &data{T: t, Store: s, schema: schema, series: map[string]int64{}, uids: map[string]int64{}}
}

// put stores a row of points of a series; UIDs are numbers.
func (d *data) put(metric, hour int, tags ...int) {
	d.Helper()
	id := func(kind encoding.UIDKind, n int) encoding.UID {
		u, err := encoding.AppendUID(nil, uint64(n), d.schema.UIDWidth(kind))
		if err != nil {
			d.Fatal(err)
		}
		return u
	}
	at := int64(hour) * 3600
	note := func(to map[string]int64, what string) {
		if was, ok := to[what]; !ok || at < was {
			to[what] = at
		}
	}
	m := id(encoding.UIDMetric, metric)
	note(d.uids, "metric "+m.String())
	var pairs []encoding.TagPair
	for i := 0; i < len(tags); i += 2 {
		k, v := id(encoding.UIDTagK, tags[i]), id(encoding.UIDTagV, tags[i+1])
		note(d.uids, "tagk "+k.String())
		note(d.uids, "tagv "+v.String())
		pairs = append(pairs, encoding.TagPair{K: k, V: v})
	}
	packed := d.schema.AppendTags(nil, pairs)
	note(d.series, encoding.UID(string(m)+string(packed)).String())
	d.write("tsdb", store.Mutation{
		Row:       d.schema.AppendRowKey(nil, m, uint32(at), packed),
		Family:    "t",
		Qualifier: []byte{0, 0},
		Value:     []byte{1},
	})
}

func (d *data) write(table string, all ...store.Mutation) {
	d.Helper()
	if err := d.Apply(d.Context(), table, all); err != nil {
		d.Fatal(err)
	}
}

// name gives UIDs of every kind, from 1, names.
func (d *data) name(upTo int) {
	d.Helper()
	names := uid.New(uid.Config{Store: d.Store, Table: "tsdb-uid", Schema: d.schema})
	for kind := encoding.UIDMetric; kind <= encoding.UIDTagV; kind++ {
		for n := range upTo {
			if _, err := names.Assign(d.Context(), kind, fmt.Sprintf("n%d", n+1)); err != nil {
				d.Fatal(err)
			}
		}
	}
}

// object returns the mutation that writes an object of meta data; row is in hex.
func object(row, qualifier, value string) store.Mutation {
	var u encoding.UID
	_ = u.UnmarshalText([]byte(row))
	return store.Mutation{Row: u, Family: "name", Qualifier: []byte(qualifier), Value: []byte(value)}
}

// cells returns the cells of meta data in the UID and the meta table.
func (d *data) cells() map[string]string {
	d.Helper()
	all := map[string]string{}
	for _, table := range []string{"tsdb-uid", "tsdb-meta"} {
		for row, err := range store.Rows(d.Context(), d.Store, store.Scan{Table: table, Family: "name"}) {
			if err != nil {
				d.Fatal(err)
			}
			for _, c := range row.Cells {
				if q := string(c.Qualifier); q == "ts_ctr" || strings.HasSuffix(q, "_meta") {
					all[encoding.UID(row.Key).String()+" "+q] = string(c.Value)
				}
			}
		}
	}
	return all
}

// want returns the cells that a run should make if there is no meta data.
func (d *data) want() map[string]string {
	all := map[string]string{}
	for tsuid, at := range d.series {
		all[tsuid+" ts_ctr"] = "\x00\x00\x00\x00\x00\x00\x00\x01"
		all[tsuid+" ts_meta"] = tsMeta(tsuid, "", at)
	}
	for what, at := range d.uids {
		kind, id, _ := strings.Cut(what, " ")
		all[id+" "+kind+"_meta"] = uidMeta(strings.ToUpper(kind), "", at)
	}
	return all
}

// tsMeta and uidMeta return the objects as OpenTSDB stores them.
func tsMeta(tsuid, notes string, created int64) string {
	return fmt.Sprintf(`{"tsuid":%q,"displayName":"","description":"","notes":%q,"created":%d,"custom":null,`+
		`"units":"","dataType":"","retention":0,"max":"NaN","min":"NaN"}`, tsuid, notes, created)
}

func uidMeta(kind, notes string, created int64) string {
	return fmt.Sprintf(`{"type":%q,"displayName":"","description":"","notes":%q,"created":%d,"custom":null}`,
		kind, notes, created)
}

func (d *data) run(change ...func(*metasync.Config)) (*metasync.Report, error) {
	d.lines = nil
	cfg := metasync.Config{Store: d.Store, Data: "tsdb", UID: "tsdb-uid", Meta: "tsdb-meta", Schema: d.schema,
		Say: func(line string) { d.lines = append(d.lines, line) }, Progress: func(string) {}}
	for _, f := range change {
		f(&cfg)
	}
	return metasync.Run(d.Context(), cfg)
}

func (d *data) sync(change ...func(*metasync.Config)) *metasync.Report {
	d.Helper()
	r, err := d.run(change...)
	if err != nil {
		d.Fatal(err)
	}
	return r
}

func dry(c *metasync.Config) { c.Store = drystore.New(c.Store, c.UID, c.Meta) }

// salted is a schema with other widths and salts.
func salted() encoding.Schema {
	return encoding.Schema{SaltWidth: 1, SaltBuckets: 4, MetricWidth: 3, TagKWidth: 2, TagVWidth: 4, MaxTags: 8}
}

// fill puts rows of random series.
func (d *data) fill(rng *rand.Rand, rows int) {
	for range rows {
		tags := []int{1 + rng.IntN(3), 1 + rng.IntN(20)}
		if rng.IntN(3) == 0 {
			tags = append(tags, 4+rng.IntN(3), 1+rng.IntN(20))
		}
		d.put(1+rng.IntN(4), 100+rng.IntN(30), tags...)
	}
}

// A run gives every series a TSMeta and a counter and every UID a UIDMeta, created in the hour of
// the first row: with and without salts, with little memory, and on both stores. A dry run writes
// nothing, and a second run changes nothing.
func TestRun_random(t *testing.T) {
	seed := seedtest.Of(t)
	for n := range 24 {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		open, schema := embedded, encoding.DefaultSchema()
		if n%8 == 0 {
			open = onHBase
		}
		if n%2 == 1 {
			schema = salted()
		}
		limit := func(c *metasync.Config) {
			if n%3 == 0 {
				c.Bytes = 500
			}
		}
		d := open(t, schema)
		d.name(20)
		d.fill(rng, 50+rng.IntN(200))

		planned := d.sync(dry, limit)
		if diff := cmp.Diff(map[string]string{}, d.cells()); diff != "" {
			t.Fatalf("run %d: a dry run has written\n%s", n, diff)
		}
		r := d.sync(limit)
		if diff := cmp.Diff(d.want(), d.cells()); diff != "" {
			t.Fatalf("run %d: %+v -want +got\n%s", n, r, diff)
		}
		uids, series := int64(len(d.uids)), int64(len(d.series))
		if r.Series != series || r.MadeTSMeta != series || r.Counters != series || r.MadeUIDMeta != uids ||
			r.ChangedTSMeta+r.Nameless+r.Skipped+r.Unreadable > 0 {
			t.Fatalf("run %d: got %+v, want all of %d series and %d UIDs made", n, r, series, uids)
		}
		if planned.MadeTSMeta != r.MadeTSMeta || planned.Counters != r.Counters ||
			planned.MadeUIDMeta < r.MadeUIDMeta || n%3 != 0 && *planned != *r {
			t.Fatalf("run %d: the dry run reports %+v, want it as the run, %+v", n, planned, r)
		}
		if r := d.sync(limit); r.MadeTSMeta+r.MadeUIDMeta+r.Counters+r.ChangedTSMeta+r.ChangedUIDMeta > 0 ||
			len(d.lines) > 0 {
			t.Fatalf("run %d: the second run: got %+v %q, want nothing made or told", n, r, d.lines)
		}
	}
}

// Existing meta data stays as it is, except for a time of creation that is 0 or more than an hour
// later than the first row, which is corrected. The texts of users stay in any case.
func TestRun_existing(t *testing.T) {
	d := embedded(t, encoding.DefaultSchema())
	d.name(3)
	for n := range 6 {
		d.put(1, 100, 1, n%3+1, 2, n/3+1)
		d.put(1, 200, 1, n%3+1, 2, n/3+1)
	}
	const hour = 100 * 3600
	tsuid := func(n int) string { return fmt.Sprintf("0000010000010000%02X0000020000%02X", n%3+1, n/3+1) }
	d.write("tsdb-meta",
		object(tsuid(0), "ts_meta", tsMeta(tsuid(0), "mine", hour+3600)), // within an hour: stays
		object(tsuid(1), "ts_meta", tsMeta(tsuid(1), "mine", hour+3601)),
		object(tsuid(2), "ts_meta", tsMeta(tsuid(2), "mine", 0)),
		object(tsuid(3), "ts_meta", tsMeta("", "mine", 5)),
		object(tsuid(4), "ts_meta", "no JSON"),
		object(tsuid(5), "ts_meta", tsMeta(tsuid(5), "mine", 5)),
		object(tsuid(5), "ts_ctr", "\x00\x00\x00\x00\x00\x00\x00\x09"))
	d.write("tsdb-uid",
		object("000001", "metric_meta", uidMeta("METRIC", "mine", hour+3600)),
		object("000001", "tagk_meta", uidMeta("", "mine", hour+3601)),
		object("000002", "tagk_meta", "no JSON"),
		object("000002", "tagv_meta", uidMeta("TAGV", "mine", 0)))

	want := d.want()
	for n, value := range []string{tsMeta(tsuid(0), "mine", hour+3600), tsMeta(tsuid(1), "mine", hour),
		tsMeta(tsuid(2), "mine", hour), tsMeta(tsuid(3), "mine", 5), "no JSON", tsMeta(tsuid(5), "mine", 5)} {
		want[tsuid(n)+" ts_meta"] = value
	}
	want[tsuid(5)+" ts_ctr"] = "\x00\x00\x00\x00\x00\x00\x00\x09"
	want["000001 metric_meta"] = uidMeta("METRIC", "mine", hour+3600)
	want["000001 tagk_meta"] = uidMeta("TAGK", "mine", hour)
	want["000002 tagk_meta"] = "no JSON"
	want["000002 tagv_meta"] = uidMeta("TAGV", "mine", hour)
	r := d.sync()
	if diff := cmp.Diff(want, d.cells()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if r.ChangedTSMeta != 3 || r.MadeTSMeta != 0 || r.Counters != 5 || r.ChangedUIDMeta != 2 || r.MadeUIDMeta != 2 ||
		r.Unreadable != 2 || len(d.lines) != 2 {
		t.Errorf("got %+v %q, want the counts of the cells above and a line for each unreadable object", r, d.lines)
	}
}

// A UID without a name gets no meta data, nor does a series that has it, so that the API can name
// all that was made. Row keys of no series are counted as unreadable, but not the row of global
// annotations.
func TestRun_nameless(t *testing.T) {
	d := embedded(t, encoding.DefaultSchema())
	d.name(2)
	d.put(1, 100, 1, 1)
	want := d.want()
	d.put(1, 100, 1, 9)
	d.put(1, 100, 9, 1)
	d.put(9, 100, 1, 1)
	for _, key := range []string{"\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x01\x00\x00\x00\x00", "short"} {
		d.write("tsdb", store.Mutation{Row: []byte(key), Family: "t", Qualifier: []byte{1, 0, 0}, Value: []byte("{}")})
	}
	r := d.sync()
	diff := cmp.Diff(want, d.cells())
	if diff != "" || r.Series != 4 || r.Skipped != 3 || r.Nameless != 3 || r.Unreadable != 2 || len(d.lines) != 3 {
		t.Errorf("%+v %q -want +got\n%s", r, d.lines, diff)
	}
	names := uid.New(uid.Config{Store: d.Store, Table: "tsdb-uid", Schema: d.schema})
	catalog := meta.New(meta.Config{
		Store:     d.Store,
		UIDTable:  "tsdb-uid",
		MetaTable: "tsdb-meta",
		Schema:    d.schema,
		Names:     names,
	})
	all, err := catalog.TSMetas(t.Context(), store.KeyRange{}, store.RowFilter{})
	if err != nil || len(all) != 1 || all[0].Created != 360000 || all[0].Metric.Created != 360000 {
		t.Errorf("%d series, %v, want 1 that was created at 360000, as was its metric", len(all), err)
	}
}

// A run that fails at any call of the store is completed by a second run.
func TestRun_interrupted(t *testing.T) {
	broken := errors.New("broken")
	for n := 1; ; n++ {
		d := embedded(t, encoding.DefaultSchema())
		d.name(6)
		for i := range 12 {
			d.put(1+i%2, 100+i, 1, 1+i%3)
		}
		inner := d.Store
		faults := faultstore.New(inner, faultstore.Rule{Nth: n, Err: broken, After: n%2 == 0})
		_, err := d.run(func(c *metasync.Config) { c.Store, c.Bytes = faults, 250 })
		if faults.Hits()[0] == 0 {
			if n < 20 || err != nil {
				t.Errorf("%d calls were made, %v, want at least 19 and no error", n-1, err)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Errorf("call %d fails: got %v, want that call's error", n, err)
		}
		d.sync()
		if diff := cmp.Diff(d.want(), d.cells()); diff != "" {
			t.Fatalf("call %d fails, and again: -want +got\n%s", n, diff)
		}
	}
}

// between is a store that calls before with the cell of each CompareAndPut, before it.
type between struct {
	store.Store
	mu     sync.Mutex // held by before
	before func(c store.CellKey)
}

func (*between) Features() store.Features { return store.Features{} }

func (b *between) CompareAndPut(ctx context.Context, table string, c store.CellKey, old, value []byte) (bool, error) {
	b.mu.Lock()
	b.before(c)
	b.mu.Unlock()
	return b.Store.CompareAndPut(ctx, table, c, old, value)
}

// An object that another process writes in the meantime stays. The TSMeta of a series is written before
// its counter, because a gateway takes a series with a counter for one that has both.
func TestRun_othersWrite(t *testing.T) {
	d := embedded(t, encoding.DefaultSchema())
	d.name(1)
	d.put(1, 100, 1, 1)
	const tsuid = "000001000001000001"
	d.write("tsdb-uid", object("000001", "tagk_meta", uidMeta("TAGK", "mine", 0)))
	var order []string
	r := d.sync(func(c *metasync.Config) {
		c.Store = &between{Store: d.Store, before: func(c store.CellKey) {
			q := string(c.Qualifier)
			order = append(order, q)
			table, text := "tsdb-uid", "theirs"
			if strings.HasPrefix(q, "ts_") {
				table = "tsdb-meta"
			}
			d.write(table, object(encoding.UID(c.Row).String(), q, text))
		}}
	})
	want := map[string]string{
		tsuid + " ts_meta": "theirs", tsuid + " ts_ctr": "theirs", "000001 metric_meta": "theirs",
		"000001 tagk_meta": "theirs", "000001 tagv_meta": "theirs",
	}
	if diff := cmp.Diff(want, d.cells()); diff != "" || r.MadeTSMeta+r.MadeUIDMeta+r.ChangedUIDMeta+r.Counters != 0 {
		t.Errorf("%+v -want +got\n%s", r, diff)
	}
	if slices.Index(order, "ts_meta") != 0 || slices.Index(order, "ts_ctr") != 1 {
		t.Errorf("written in the order %q, want ts_meta and then ts_ctr first", order)
	}
}

// All series of a metric and all UIDs are found, also if they are more than the memory allows at
// a time and are read in parts.
func TestRun_many(t *testing.T) {
	d := embedded(t, encoding.DefaultSchema())
	const series = 2500
	var rows, names []store.Mutation
	for n := range series {
		v, err := encoding.AppendUID(nil, uint64(n+1), 3)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, store.Mutation{
			Row:       v,
			Family:    "name",
			Qualifier: []byte("tagv"),
			Value:     []byte(fmt.Sprint("v", n)),
		})
		for hour := range 2 {
			tags := append([]byte{0, 0, 1}, v...)
			rows = append(rows, store.Mutation{
				Row:       d.schema.AppendRowKey(nil, encoding.UID{0, 0, 1}, uint32(hour+1)*3600, tags),
				Family:    "t",
				Qualifier: []byte{0, 0},
				Value:     []byte{1},
			})
		}
	}
	one := []byte{0, 0, 1}
	names = append(names, store.Mutation{Row: one, Family: "name", Qualifier: []byte("metrics"), Value: []byte("m")},
		store.Mutation{Row: one, Family: "name", Qualifier: []byte("tagk"), Value: []byte("k")})
	d.write("tsdb-uid", names...)
	d.write("tsdb", rows...)
	parts := 0
	r := d.sync(func(c *metasync.Config) {
		c.Bytes = 40_000
		c.Progress = func(line string) {
			if strings.Contains(line, "has many series") {
				parts++
			}
		}
	})
	if len(d.cells()) != 2*series+series+2 || r.MadeTSMeta != series || r.MadeUIDMeta != series+2 || parts < 4 {
		t.Errorf("%d cells, %+v in %d parts, want 7502 cells for 2500 series, in at least 4 parts",
			len(d.cells()), r, parts)
	}
}
