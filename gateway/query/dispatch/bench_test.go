package dispatch

import (
	"flag"
	"log/slog"
	"math"
	"syscall"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/merge"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/store"
	"downpour/pushdown/store/pebble"
)

var sparseSeries = flag.Int("sparse-series", 100_000, "series of BenchmarkSparse")

// BenchmarkSparse sums up 3 hours of many series with two points an hour, as pods have them
// that come and go, from the embedded store: scan, decode, downsample, merge.
//
//	go test -run - -bench Sparse -benchtime 5x ./gateway/query/dispatch
func BenchmarkSparse(b *testing.B) {
	const hours, hosts, zones = 3, 1000, 7
	s := encoding.DefaultSchema()
	st, err := pebble.Open(b.TempDir(), pebble.Options{Grouping: s.RowHours(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	if err := st.CreateTable(b.Context(),
		store.TableSpec{
			Name:     operatortest.Table,
			Families: []store.FamilySpec{{Name: encoding.FamilyData}},
		}); err != nil {
		b.Fatal(err)
	}
	for n := range hours * 2 {
		var mutations []store.Mutation
		for i := range *sparseSeries {
			host := i % hosts
			tags := s.AppendTags(nil,
				[]encoding.TagPair{operatortest.Tag(1, host+1), operatortest.Tag(2, i+5000),
					operatortest.Tag(3, host%zones+1)})
			at := int64(base + n*1800)
			q, v := operatortest.Encode(at*1000, encoding.IntValue(int64((i*7919+n)%1001)))
			mutations = append(mutations,
				store.Mutation{
					Kind:      store.Append,
					Row:       s.AppendRowKey(nil, metric, encoding.KeyTime(encoding.Hour(at)), tags),
					Family:    encoding.FamilyData,
					Qualifier: encoding.AppendColumn,
					Value:     encoding.AppendEntry(nil, q, v),
				})
			if len(mutations) == 5000 || i == *sparseSeries-1 {
				if err := st.Apply(b.Context(), operatortest.Table, mutations); err != nil {
					b.Fatal(err)
				}
				mutations = nil
			}
		}
	}

	f := func(name string, sideBySide bool, groupBy []encoding.UID) {
		b.Run(name, func(b *testing.B) {
			e := New(Config{Store: st, SideBySide: sideBySide})
			p := operatortest.Plan(s, metric, base, base+hours*3600)
			p.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
			p.GroupBy = groupBy
			b.ReportAllocs()
			least := time.Duration(math.MaxInt64)
			for b.Loop() {
				began := processorTime(b)
				m := merge.New(&p, nil)
				_, err := e.Run(b.Context(), &p, Options{}, func(part scanplan.KeyRange, records []batch.Record) error {
					for _, r := range records {
						if err := m.Add(part, r); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := m.Finish(); err != nil {
					b.Fatal(err)
				}
				m.Free()
				least = min(least, processorTime(b)-began)
			}
			rows := float64(*sparseSeries * hours)
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/rows, "ns/row")
			b.ReportMetric(float64(least)/rows, "least-cpu-ns/row")
		})
	}
	for _, sideBySide := range []bool{false, true} {
		name := map[bool]string{false: "one after the other", true: "side by side"}[sideBySide]
		f("sum/"+name, sideBySide, nil)
		f("by zone/"+name, sideBySide, []encoding.UID{operatortest.UID(3)})
	}
}

// processorTime is what the process has used: other than elapsed time it hardly depends on what
// else the machine does.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
