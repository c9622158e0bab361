package engine

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/plan"
	"downpour/gateway/uid"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

// BenchmarkLiving asks for 5-minute averages of 300 series over 10 days, a point a minute, with a
// write to the last hour before each query:
//
//	go test -run - -bench Living ./gateway/query/engine
func BenchmarkLiving(b *testing.B) {
	const series, hours = 300, 240
	s := encoding.DefaultSchema()
	st, err := pebble.Open(b.TempDir(), pebble.Options{Grouping: s.RowHours(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	for _, spec := range boardTables {
		if err := st.CreateTable(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
	}
	names := uid.New(uid.Config{Store: st, Table: "tsdb-uid", Schema: s})
	for kind, list := range map[encoding.UIDKind][]string{encoding.UIDMetric: {"m"}, encoding.UIDTagK: {"host"}} {
		if _, err := names.Assign(b.Context(), kind, list[0]); err != nil {
			b.Fatal(err)
		}
	}
	for n := range series {
		if _, err := names.Assign(b.Context(), encoding.UIDTagV, fmt.Sprint("h", n)); err != nil {
			b.Fatal(err)
		}
	}
	put := func(n, hour, from, to int) {
		tags := s.AppendTags(nil,
			[]encoding.TagPair{{K: encoding.UID{0, 0, 1}, V: encoding.UID{0, byte((n + 1) >> 8), byte(n + 1)}}})
		base := int64(hourZero + 3600*hour)
		m := store.Mutation{
			Kind:      store.Append,
			Row:       s.AppendRowKey(nil, encoding.UID{0, 0, 1}, uint32(base), tags),
			Family:    encoding.FamilyData,
			Qualifier: encoding.AppendColumn,
		}
		for i := from; i < to; i++ {
			q, value := operatortest.Encode((base+60*int64(i))*1000, encoding.FloatValue(float64(n+i)/7))
			m.Value = encoding.AppendEntry(m.Value, q, value)
		}
		if err := st.Apply(b.Context(), "tsdb", []store.Mutation{m}); err != nil {
			b.Fatal(err)
		}
	}
	for hour := range hours {
		for n := range series {
			put(n, hour, 0, 50)
		}
	}
	if err := st.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}

	e := New(Config{
		Names:   names,
		Exec:    dispatch.New(dispatch.Config{Store: st, ResultCache: resultcache.New(256<<20, nil)}),
		Compile: plan.Options{Schema: s, Table: "tsdb"},
	})
	body := fmt.Sprintf(`{"start":%d,"end":%d,"queries":[{"metric":"m","aggregator":"sum","downsample":"5m-avg"}]}`,
		hourZero, hourZero+hours*3600-1)
	q, err := query.Parser{Now: time.Now()}.JSON([]byte(body))
	if err != nil {
		b.Fatal(err)
	}
	next := 50
	ask := func() {
		b.StopTimer()
		put(next%series, hours-1, 50+next/series%10, 51+next/series%10)
		next++
		b.StartTimer()
		if _, _, err := e.Run(b.Context(), q, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	for range 6 {
		ask()
	}
	for b.Loop() {
		ask()
	}
}
