package dispatch

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/wire"
)

// idleServer executes parts at once: what a run takes with it is the executor's own time.
type idleServer struct{ *scripted }

func (s *idleServer) Hello(context.Context) (wire.Hello, error) {
	return wire.Hello{Program: "pushdown", Plan: scanplan.Version, Batch: batch.Version, Beside: s.beside}, nil
}

func (s *idleServer) Open(part *scanplan.Part, _ operator.Budget) (operator.Operator, error) {
	return idleOperator{}, nil
}

// idleOperator has read 16 MiB, and found no series.
type idleOperator struct{}

func (idleOperator) Next(context.Context) (batch.Record, error) { return nil, io.EOF }
func (idleOperator) Stats() operator.Stats {
	return operator.Stats{Rows: 10_000, RowsScanned: 10_000, Bytes: 16 << 20}
}
func (idleOperator) Close() error { return nil }

// sized is an executor with pushdown servers that answer at once, next to a table with several regions each, in 20 salt
// buckets, and a plan of 30 days.
func sized(servers, regions int) (e *Executor, plan scanplan.Plan) {
	const hours, salts = 720, 20
	s := encoding.DefaultSchema()
	s.SaltWidth, s.SaltBuckets = 1, salts
	m := &operatortest.Store{}
	for i := range regions {
		m.Servers = append(m.Servers, fmt.Sprintf("rs%d:16020", i%servers))
		if i > 0 {
			salt, at := i*salts/regions, (i*salts%regions)*hours/regions
			m.Borders = append(m.Borders, s.AppendRangeKey(nil, salt, metric, base+uint32(at)*3600))
		}
	}
	cfg := quiet(m, nil)
	cfg.PerServer = 0 // the default
	for i := range servers {
		cfg.Servers = append(cfg.Servers,
			&idleServer{&scripted{name: fmt.Sprint("s", i), beside: fmt.Sprintf("rs%d:16020", i)}})
	}
	plan = operatortest.Plan(s, metric, base, base+hours*3600)
	plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
	return New(cfg), plan
}

// runSized runs the plan, and returns in how many parts.
func runSized(t testing.TB, e *Executor, plan *scanplan.Plan) (parts int) {
	t.Helper()
	stats, err := e.Run(t.Context(), plan, Options{Aggregation: PartialAggregation},
		func(scanplan.KeyRange, []batch.Record) error { return nil })
	if err != nil || stats.Remote != stats.Parts {
		t.Fatalf("%+v, error %v, want all parts at servers", stats, err)
	}
	return stats.Parts
}

// What a part costs the executor does not grow with the number of parts and servers: then a query of thousands of
// regions would take minutes of the processor. Allocations stand for what it does, because they do not depend on the
// machine.
func TestRun_size(t *testing.T) {
	each := func(servers, regions int) float64 {
		e, plan := sized(servers, regions)
		parts := 0
		for range leastSamples {
			parts = runSized(t, e, &plan)
		}
		if parts < regions {
			t.Fatalf("%d parts of %d regions", parts, regions)
		}
		return testing.AllocsPerRun(2, func() { runSized(t, e, &plan) }) / float64(parts)
	}
	small, large := each(4, 160), each(64, 1280)
	t.Logf("%.1f allocations a part of 4 servers and 160 regions, %.1f of 64 and 1,280", small, large)
	if large > 1.5*small {
		t.Error("want about as many")
	}
}

// BenchmarkRun_size is what a query costs the executor alone, by the number of pushdown servers and regions.
//
//	go test -run - -bench Run_size -benchtime 20x ./gateway/query/dispatch
func BenchmarkRun_size(b *testing.B) {
	for _, servers := range []int{8, 32, 128, 1000} {
		for _, regionsEach := range []int{10, 80} {
			b.Run(fmt.Sprintf("%d servers, %d regions", servers, servers*regionsEach), func(b *testing.B) {
				e, plan := sized(servers, servers*regionsEach)
				for range leastSamples {
					runSized(b, e, &plan)
				}
				parts, began := 0, processorTime(b)
				for b.Loop() {
					parts += runSized(b, e, &plan)
				}
				b.ReportMetric(float64(parts)/float64(b.N), "parts")
				b.ReportMetric(float64(processorTime(b)-began)/float64(b.N)/float64(time.Millisecond), "cpu-ms")
			})
		}
	}
}
