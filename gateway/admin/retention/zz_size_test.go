package retention_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"log/slog"

	"downpour/encoding"
	"downpour/gateway/admin/retention"
	"downpour/gateway/admin/retention/rules"
	"downpour/gateway/metadata/tables/tablestest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

func du(dir string) (n int64) {
	filepath.Walk(dir, func(_ string, i os.FileInfo, err error) error {
		if err == nil && !i.IsDir() {
			n += i.Size()
		}
		return nil
	})
	return n
}

func TestZZSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	schema := schemaOf(0)
	dir := t.TempDir()
	db := filepath.Join(dir, "db")
	st := tablestest.In[*pebble.Store](t, schema)(pebble.Open(db, pebble.Options{Grouping: schema.RowHours(), Logger: slog.New(slog.DiscardHandler)}))
	const hours, series, points = 100, 40, 900
	began := time.Now()
	var n int
	put := func(h, s int) {
		key := schema.AppendRowKey(nil, metric(s%4), uint32(now/hour*hour-int64(h)*hour), []byte{0, 0, 1, 0, byte(s >> 8), byte(s)})
		var v []byte
		for p := range points {
			q := encoding.Qualifier{OffsetMS: int32(p) * 4000, Width: 8, Float: true}
			b := make([]byte, 8)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			v = encoding.AppendEntry(v, q, b)
			n++
		}
		if err := st.Apply(t.Context(), "tsdb", []store.Mutation{{Kind: store.Append, Row: key, Family: "t", Qualifier: encoding.AppendColumn, Value: v}}); err != nil {
			t.Fatal(err)
		}
	}
	for h := hours - 1; h >= 0 && time.Since(began) < 100*time.Second; h-- {
		for s := range series {
			for range 6 {
				put(h, s*7%1000+rng.IntN(6)*1000)
			}
		}
	}
	fmt.Printf("put %d points in %v; %d MB on disk\n", n, time.Since(began), du(dir)>>20)
	w := newWorldIn(t, rng, st, schema)
	w.job.Rules = rules.All(40 * hour)
	stop := make(chan struct{})
	done := make(chan struct{})
	var puts, queries int
	var worstPut, worstQuery time.Duration
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			b := time.Now()
			put(0, i%50)
			puts++
			worstPut = max(worstPut, time.Since(b))
			b = time.Now()
			for _, err := range store.Rows(t.Context(), st, store.Scan{Table: "tsdb", Family: "t", Start: schema.AppendRangeKey(nil, 0, metric(0), uint32(now/hour*hour-2*hour)), Stop: schema.AppendRangeKey(nil, 0, metric(0), uint32(now/hour*hour))}) {
				if err != nil {
					t.Error(err)
				}
			}
			queries++
			worstQuery = max(worstQuery, time.Since(b))
			time.Sleep(20 * time.Millisecond)
		}
	}()
	before := du(dir)
	b := time.Now()
	report, err := w.job.Run(t.Context(), 0, 1<<40)
	fmt.Printf("run: %v, %v after %v; %d MB before, %d MB after\n", report, err, time.Since(b), before>>20, du(dir)>>20)
	for range 30 {
		time.Sleep(time.Second)
		fmt.Printf("%d s: %d MB\n", int(time.Since(b).Seconds()), du(dir)>>20)
	}
	close(stop)
	<-done
	fmt.Printf("%d puts, slowest %v, %d queries, slowest %v\n", puts, worstPut, queries, worstQuery)
}

func newWorldIn(t *testing.T, rng *rand.Rand, st tablestest.Store, schema encoding.Schema) *world {
	w := &world{T: t, rng: rng, store: st, schema: schema, rows: map[string]map[string]row{"tsdb": {}, rollupTable: {}}, names: []string{"sys.cpu", "sys.mem", "net.in", "app.requests"}}
	w.job = &retention.Job{Store: st, Schema: schema, Names: w.each, Now: func() time.Time { return time.Unix(now, 0) },
		Tables: []retention.Table{{Name: "tsdb", Span: rules.Hour}}}
	return w
}
