package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"downpour/encoding"
	"downpour/encoding/seedtest"
	"downpour/gateway"
	"downpour/pushdown/store"
)

// crookedHour is when the points of crookedWorld begin.
const crookedHour = 1356998400

// crookedWorld writes the same points twice: those of metric p in rows of full hours, and those of
// metric c in rows some of which begin between full hours.
type crookedWorld struct {
	*bench
	r      *rand.Rand
	schema encoding.Schema
	rows   map[string][]crookedPoint // by key
}

type crookedPoint struct {
	q     encoding.Qualifier
	value []byte
}

// fill makes UIDs by a put of each series, and then writes rows.
func (w *crookedWorld) fill(hours int) {
	w.Helper()
	w.schema, w.rows = w.Config.Schema(), map[string][]crookedPoint{}
	var names []string
	for _, metric := range []string{"c", "p"} {
		for _, host := range "abcd" {
			names = append(names, fmt.Sprintf("%s 1000000 1 host=%c dc=%c", metric, host, 'x'+host%2))
		}
	}
	w.Put(names...)
	for host := range byte(4) {
		at := int64(crookedHour*1000) + w.r.Int64N(3600_000)
		for at < crookedHour*1000+int64(hours)*3600_000 {
			w.point(host, at)
			if w.r.IntN(3) > 0 {
				at += 1000 * (1 + w.r.Int64N(900))
				at -= at % 1000
			} else {
				at += 1 + w.r.Int64N(1500_000)
			}
		}
	}
	w.write()
}

// point adds a point to a row of each metric.
func (w *crookedWorld) point(host byte, at int64) {
	var value []byte
	q := encoding.Qualifier{Milli: at%1000 != 0 || w.r.IntN(4) == 0}
	if v := w.r.Int64N(2000) - 1000; w.r.IntN(2) == 0 {
		value = encoding.AppendInt(nil, v)
	} else {
		q.Float, value = true, encoding.AppendDouble(nil, float64(v)/4)
	}
	q.Width = len(value)

	for metric := range 2 {
		base := encoding.Hour(at / 1000)
		if metric == 0 && w.r.IntN(2) == 0 {
			late := []int64{208, 1904, 1800, 1, 3599}[w.r.IntN(5)]
			if base += late; base*1000 > at {
				base -= 3600
			}
		}
		q.OffsetMS = int32(at - base*1000)
		key := string(w.key(metric, host, base))
		w.rows[key] = append(w.rows[key], crookedPoint{q, value})
	}
}

// write writes the rows, as single cells, a compacted cell or an append column, and some of both.
func (w *crookedWorld) write() {
	w.Helper()
	var all []store.Mutation
	for key, points := range w.rows {
		slices.SortFunc(points, func(a, b crookedPoint) int { return int(a.q.OffsetMS - b.q.OffsetMS) })
		cut := w.r.IntN(len(points) + 1)
		var b encoding.CellBuilder
		var blob []byte
		for i, p := range points {
			if i < cut {
				b.Add(p.q, p.value)
			} else if w.r.IntN(2) == 0 {
				blob = encoding.AppendEntry(blob, p.q, p.value)
			} else {
				all = append(all, store.Mutation{
					Row:       []byte(key),
					Family:    "t",
					Qualifier: encoding.AppendQualifier(nil, p.q),
					Value:     p.value,
				})
			}
		}
		if q, v := b.Cell(); cut > 0 {
			all = append(all, store.Mutation{Row: []byte(key), Family: "t", Qualifier: q, Value: v})
		}
		if len(blob) > 0 {
			all = append(all, store.Mutation{
				Row:       []byte(key),
				Family:    "t",
				Qualifier: encoding.AppendColumn,
				Value:     blob,
			})
		}
	}
	if err := w.Store.Apply(w.Context(), "tsdb", all); err != nil {
		w.Fatal(err)
	}
}

// key is the key of a series' row.
func (w *crookedWorld) key(metric int, host byte, base int64) []byte {
	find := func(kind, name string) encoding.UID {
		id, err := w.uid(kind, name)
		if err != nil {
			w.Fatal(err)
		}
		return id
	}
	pairs := []encoding.TagPair{
		{K: find("tagk", "host"), V: find("tagv", string(rune('a'+host)))},
		{K: find("tagk", "dc"), V: find("tagv", string(rune('x'+('a'+host)%2)))},
	}
	tags := w.schema.AppendTags(nil, pairs)
	return w.schema.AppendRowKey(nil, find("metrics", []string{"c", "p"}[metric]), encoding.KeyTime(base), tags)
}

// uid reads a UID from the UID table.
func (w *crookedWorld) uid(kind, name string) (encoding.UID, error) {
	rows, err := w.Store.Get(w.Context(), "tsdb-uid", "id", [][]byte{[]byte(name)})
	if err != nil {
		return nil, err
	}
	for _, c := range rows[0].Cells {
		if string(c.Qualifier) == kind {
			return slices.Clone(encoding.UID(c.Value)), nil
		}
	}
	return nil, fmt.Errorf("no UID of %s %s", kind, name)
}

// ask compares the answers of both metrics.
func (w *crookedWorld) ask(path, m string) {
	w.Helper()
	sorted := func(body string) string {
		if w.Config.SaltWidth == 0 {
			return body
		}
		// The salt, by which series are in order, is of the metric.
		var groups []json.RawMessage
		if err := json.Unmarshal([]byte(body), &groups); err != nil {
			w.Fatalf("%s: %v", body, err)
		}
		slices.SortFunc(groups, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
		return fmt.Sprintf("%s", groups)
	}
	crooked, plain := w.Get(path+url.QueryEscape(fmt.Sprintf(m, "c"))), w.Get(path+url.QueryEscape(fmt.Sprintf(m, "p")))
	got := strings.ReplaceAll(crooked.Body, `"metric":"c"`, `"metric":"p"`)
	if crooked.Status != 200 || sorted(got) != sorted(plain.Body) {
		w.Errorf("%s%s:\ngot  %d %.900s\nwant %.900s", path, m, crooked.Status, got, plain.Body)
	}
	// Arrow answers of some queries take a way of their own.
	const arrow = "application/vnd.apache.arrow.stream"
	a := w.Get(path+url.QueryEscape(fmt.Sprintf(m, "c")), "Accept", arrow)
	b := w.Get(path+url.QueryEscape(fmt.Sprintf(m, "p")), "Accept", arrow)
	if a.Status != 200 || len(a.Body) != len(b.Body) {
		w.Errorf("%s%s as Arrow: %d, %d bytes, want %d", path, m, a.Status, len(a.Body), len(b.Body))
	}
}

// worlds are the ways in which a query is executed.
func crookedWorlds(t *testing.T) map[string]*bench {
	salted := func(c *gateway.Config) { c.SaltWidth, c.ResultCache = 1, "16MiB" }
	return map[string]*bench{
		"embedded": open(t, func(c *gateway.Config) { c.ResultCache = "16MiB" }), "salted": open(t, salted),
		"pushdown": behind(t, 4, nil), "HBase": onFakeHBase(t, func(c *gateway.Config) { c.ResultCache = "16MiB" }),
	}
}

// Rows of no full hour give the answers that the same points give in rows of full hours: with and
// without a filter, of all kinds and in all modes.
func TestCrooked(t *testing.T) {
	for name, b := range crookedWorlds(t) {
		t.Run(name, func(t *testing.T) {
			w := &crookedWorld{bench: b.In(t), r: seedtest.Rand(t)}
			const hours = 7
			w.fill(hours)
			filters := []string{
				"", "{host=*}", "{host=a}", "{host=a|c}", "{dc=x}", "{host=b,dc=y}", "{}{host=a}",
				"{dc=*}{host=not_literal_or(b)}", "{host=regexp([ab])}",
			}
			shapes := []string{
				"sum:", "none:", "sum:1h-count:", "avg:1m-avg:", "max:7m-sum:", "sum:2h-sum:", "sum:rate:",
				"sum:10m-sum-nan:", "count:all-sum:", "zimsum:1dc-sum:", "p50:", "mimmax:30s-max:rate:",
				"none:1h-count:",
			}
			if w.Config.SaltWidth > 0 { // without sums of fractions, whose last bits depend on the order of series
				shapes = []string{
					"none:", "sum:1h-count:", "max:7m-sum:", "count:all-sum:", "mimmax:30s-max:", "none:rate:",
				}
			}
			for range 40 {
				start := crookedHour - 3600 + w.r.Int64N(hours*3600)
				end := start + 1 + w.r.Int64N((hours+1)*3600)
				path := fmt.Sprintf("/api/query?start=%d&end=%d&ms=true&mode=%s&m=",
					start, end, []string{"", "strict", "partial"}[w.r.IntN(3)])
				m := shapes[w.r.IntN(len(shapes))] + "%s" + filters[w.r.IntN(len(filters))]
				w.ask(path, m)
			}
			if w.Config.SaltWidth == 0 {
				w.ask("/api/query?start=1&ms=true&m=", "sum:1h-count:%s{host=a}")
				w.ask("/api/query?start=1&ms=true&m=", "none:%s")
			}
		})
	}
}

// Live queries show what queries show while rows of no full hour are there, and from the moment when one comes.
func TestCrooked_live(t *testing.T) {
	for name, b := range map[string]*bench{"embedded": open(t, nil), "HBase": onFakeHBase(t, nil)} {
		t.Run(name, func(t *testing.T) {
			w := &crookedWorld{bench: b.In(t), schema: b.Config.Schema()}
			w.Put("c 1356998400 1 host=a dc=y", "c 1356998400 2 host=b dc=x", "p 1 1 host=a dc=x",
				"c 1357005000 3 host=a dc=y")
			const hour = 1356998400
			query := fmt.Sprintf(`{"start":%d,"queries":[{"aggregator":"none","metric":"c"},{"aggregator":"sum",`+
				`"metric":"c","downsample":"1m-sum"},{"aggregator":"sum","metric":"c","tags":{"host":"a"}}]}`, hour)
			s := subscribe(w.bench, query, "")
			s.until("a snapshot", news)
			s.settle()
			crooked := func(host byte, base int64, qualifier, value string) {
				err := w.Store.Apply(t.Context(), "tsdb", []store.Mutation{
					{Row: w.key(0, host, base), Family: "t", Qualifier: []byte(qualifier), Value: []byte(value)},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			crooked(0, hour+1904, "\x00\x10", "\x07")
			s.settle()
			w.Put("c 1356998460 4 host=a dc=y", "c 1357002000 5 host=b dc=x")
			s.settle()
			crooked(1, hour+208, "\x00\x10", "\x08")
			crooked(0, hour+1904, "\xe0\x10", "\x09")
			s.settle()
			if n := len(s.fresh()); n < 12 {
				t.Errorf("%d points, want those of rows of no full hour, too", n)
			}
		})
	}
}
