package tools

import (
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"downpour/encoding"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/uid"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// hoursOfPoints is the number of hours of the benchmark's series, which has a point a second.
const hoursOfPoints = 100

// writeHours writes append columns, or single cells with a duplicate of every tenth point. It
// returns the number of values.
func writeHours(
	b *testing.B, st store.Store, schema encoding.Schema, metric encoding.UID, tags []byte, appended bool,
) (values int) {
	b.Helper()
	for hour := range uint32(hoursOfPoints) {
		key := schema.AppendRowKey(nil, metric, 1356998400+hour*encoding.RowSeconds, tags)
		var ms []store.Mutation
		var column []byte
		for s := range int32(encoding.RowSeconds) {
			q := encoding.Qualifier{OffsetMS: s * 1000, Width: 2}
			value := []byte{byte(s >> 8), byte(s)}
			values++
			if appended {
				column = encoding.AppendEntry(column, q, value)
				continue
			}
			ms = append(ms, store.Mutation{
				Row:       key,
				Family:    "t",
				Qualifier: encoding.AppendQualifier(nil, q),
				Value:     value,
				Timestamp: 1000,
			})
			if s%10 == 0 {
				q.Width = 4
				ms = append(ms, store.Mutation{
					Row:       key,
					Family:    "t",
					Qualifier: encoding.AppendQualifier(nil, q),
					Value:     []byte{0, 0, 0, 1},
					Timestamp: 2000,
				})
				values++
			}
		}
		if appended {
			ms = append(ms, store.Mutation{
				Kind:      store.Append,
				Row:       key,
				Family:    "t",
				Qualifier: encoding.AppendColumn,
				Value:     column,
			})
		}
		if err := st.Apply(b.Context(), "tsdb", ms); err != nil {
			b.Fatal(err)
		}
	}
	return values
}

// BenchmarkFsck measures how many values a minute are checked in an embedded store in memory, in
// one thread: in append columns, in single cells with a duplicate of every tenth point, and when
// the latter are repaired, which makes one cell of the 3,960 of a row.
func BenchmarkFsck(b *testing.B) {
	for name, how := range map[string]struct {
		appended, repair bool
	}{"appended": {true, false}, "single": {false, false}, "repair": {false, true}} {
		b.Run(name, func(b *testing.B) {
			schema := encoding.DefaultSchema()
			st, err := pebble.Open("db", pebble.Options{FS: vfs.NewMem()})
			if err != nil {
				b.Fatal(err)
			}
			defer st.Close()
			names := tables.Names{Data: "tsdb", UID: "tsdb-uid", Meta: "tsdb-meta", Tree: "tsdb-tree"}
			if err := tables.Create(b.Context(), st, tables.Specs(names, schema, "NONE")); err != nil {
				b.Fatal(err)
			}
			x := &work{Served: Served{
				Settings: Settings{Schema: schema, Tables: names},
				Store:    st,
				Names:    uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: schema}),
			}}
			var uids []encoding.UID
			for i, kind := range everyKind {
				u, err := x.Names.Assign(b.Context(), kind, "name"+string(rune('a'+i)))
				if err != nil {
					b.Fatal(err)
				}
				uids = append(uids, u)
			}
			tags := schema.AppendTags(nil, []encoding.TagPair{{K: uids[1], V: uids[2]}})

			values := 0
			for b.Loop() {
				if how.repair || values == 0 {
					b.StopTimer()
					values = writeHours(b, st, schema, uids[0], tags, how.appended)
					b.StartTimer()
				}
				req := &fsckRequest{Full: true, Threads: 1}
				if how.repair {
					req.Options.All()
				}
				counts, err := x.checkRows(b.Context(), req, io.Discard, func(string) {})
				if err != nil || counts.Rows != hoursOfPoints {
					b.Fatal(counts, err)
				}
			}
			b.ReportMetric(float64(values)*float64(b.N)/b.Elapsed().Minutes()/1e6, "Mvalues/min")
		})
	}
}
