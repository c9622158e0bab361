package stage

import (
	"context"
	"net"
	"syscall"
	"testing"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query/dispatch"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/rpc/server"
)

// overFlight returns an executor with one pushdown server over a connection.
func overFlight(t testing.TB, m *operatortest.Store, s encoding.Schema) *dispatch.Executor {
	t.Helper()
	srv, err := server.NewServer(server.Config{Table: operatortest.Table, Schema: s}, m)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	c, err := client.New(l.Addr().String(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return dispatch.New(dispatch.Config{Store: m, Servers: []dispatch.Server{c}})
}

// BenchmarkRaw executes sum and sum:rate without downsample over 1,000 series of 6 hours, a point
// every 10 s, in process and over Flight, per series and aligned. cpu-ns/point is processor time.
func BenchmarkRaw(b *testing.B) {
	const series, hours = 1000, 6
	s := encoding.DefaultSchema()
	m := &operatortest.Store{Keep: true, BlockRows: 500}
	for i := range series {
		points := operatortest.Every(alignedBase, alignedBase+hours*3600, 10, func(k int) float64 { return 0 })
		for k := range points.Len() {
			points.Bits[k], points.Float[k] = uint64((k*7+i*13)%101), false
		}
		m.Load(s, operatortest.UID(9),
			operatortest.Series{Tags: []encoding.TagPair{operatortest.Tag(1, i+1)}, Points: points})
	}
	for _, place := range []struct {
		name string
		e    *dispatch.Executor
	}{{"in process", dispatch.New(dispatch.Config{Store: m})}, {"flight", overFlight(b, m, s)}} {
		for _, q := range []struct {
			name string
			rate *scanplan.Rate
		}{{"sum", nil}, {"rate", &scanplan.Rate{}}} {
			for _, how := range []dispatch.Aggregation{dispatch.PerSeries, dispatch.Auto} {
				b.Run(place.name+"/"+q.name+"/"+
					map[dispatch.Aggregation]string{dispatch.PerSeries: "per series", dispatch.Auto: "aligned"}[how],
					func(b *testing.B) {
						plan := operatortest.Plan(s, operatortest.UID(9), alignedBase, alignedBase+hours*3600)
						plan.Rate = q.rate
						b.ReportAllocs()
						began := processorTime()
						for b.Loop() {
							groups, stats, err := mergedBy(b.Context(), place.e, &plan, how)
							if err != nil || len(groups) != 1 || (how == dispatch.Auto) != answersAligned(stats) {
								b.Fatal(err, len(groups), stats)
							}
						}
						b.ReportMetric(float64(processorTime()-began)/float64(b.N)/float64(series*hours*360),
							"cpu-ns/point")
					})
			}
		}
	}
}

// BenchmarkManyGroups executes avg:5m-max of each of 1,000 series over 6 hours, a point every
// 10 s, and of one series alone, over Flight, per series and with partial aggregates.
func BenchmarkManyGroups(b *testing.B) {
	const series, hours = 1000, 6
	s := encoding.DefaultSchema()
	m := &operatortest.Store{Keep: true, BlockRows: 500}
	for i := range series {
		points := operatortest.Every(alignedBase, alignedBase+hours*3600, 10, func(k int) float64 { return 0 })
		for k := range points.Len() {
			points.Bits[k], points.Float[k] = uint64((k*7+i*13)%101), false
		}
		m.Load(s, operatortest.UID(9),
			operatortest.Series{Tags: []encoding.TagPair{operatortest.Tag(1, i+1)}, Points: points})
	}
	e := overFlight(b, m, s)
	one := &operatortest.Store{Keep: true}
	for i := 0; i < len(m.Rows); i += series {
		one.Rows = append(one.Rows, m.Rows[i])
	}
	eOne := overFlight(b, one, s)
	for _, how := range []dispatch.Aggregation{dispatch.PerSeries, dispatch.Auto} {
		f := func(name string, e *dispatch.Executor, want int) {
			b.Run(name+"/"+map[dispatch.Aggregation]string{dispatch.PerSeries: "per series",
				dispatch.Auto: "partial"}[how], func(b *testing.B) {
				plan := operatortest.Plan(s, operatortest.UID(9), alignedBase, alignedBase+hours*3600)
				plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "max", Fill: scanplan.FillNone}
				plan.Aggregator, plan.GroupBy = "avg", []encoding.UID{operatortest.UID(1)}
				b.ReportAllocs()
				began := processorTime()
				var shipped int64
				for b.Loop() {
					groups, stats, err := mergedBy(b.Context(), e, &plan, how)
					if err != nil || len(groups) != want {
						b.Fatal(err, len(groups), stats)
					}
					shipped = stats.ShippedBytes
				}
				b.ReportMetric(float64(processorTime()-began)/float64(b.N)/1e6, "cpu-ms")
				b.ReportMetric(float64(shipped), "shipped-bytes")
			})
		}
		f("1000 hosts", e, series)
		f("one host", eOne, 1)
	}
}

// processorTime is that of this process so far, in ns.
func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
