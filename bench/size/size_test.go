package size

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/bench/report"
	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/engine/stage"
	"downpour/gateway/query/plan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/process/memory"
)

var (
	long   = flag.Bool("long", false, "simulate up to 1,000 servers of 10,000 series each")
	folder = flag.String("report", "", "write the curves into this folder")
)

// cost is what one query has cost the gateway.
type cost struct {
	servers       int
	parts, remote int
	partial       int           // of the parts
	shipped       int64         // bytes of batches
	processor     time.Duration // of all its work
	after         time.Duration // processor time after the last part has been answered
	wall          time.Duration // of the query, in virtual time: what it has waited
	busiest       time.Duration // what the slowest server needs for its parts, four at a time
	beyond        time.Duration // what was waited for after the last part was answered
	held, made    int64         // bytes that the request held at most, and that were allocated
}

// compiled is sum:5m-avg by 9 groups over all hours of a layout, except the last bucket: with that one the plan would
// read an hour more.
func compiled(t testing.TB, l layout, mode string) *stage.Request {
	t.Helper()
	q, err := query.Parser{Now: time.Now()}.JSON([]byte(fmt.Sprintf(`{"start":%d,"end":%d,"queries":[{"metric":"m",`+
		`"aggregator":"sum","downsample":"5m-avg","tags":{"group":"*"}}]}`, base, base+l.hours*3600-bucket-1)))
	if err != nil {
		t.Fatal(err)
	}
	q.Mode = mode
	c, err := plan.Compile(q, 0, plan.Names{Metric: metric, TagKs: map[string]encoding.UID{"group": byKey}},
		plan.Options{Schema: l.schema(), Table: operatortest.Table})
	if err != nil {
		t.Fatal(err)
	}
	return &stage.Request{
		Compiled: c, Query: q, Sub: &q.Queries[0],
		NewBudget: func() operator.Budget { return operator.NewBudget(0, 0) },
	}
}

// used is the processor time of this process so far.
func used(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// warm is how many queries come before the one that is measured: then sizes, regions and paces are known.
const warm = 2

// simulate asks the query of a new gateway, and returns what the last one has cost.
func simulate(t *testing.T, l layout, parts [][2]int64, mode string) (c cost) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := newCluster(l, parts, 1)
		e := k.executor()
		stages := stage.New(stage.Config{Exec: e, Log: slog.New(slog.DiscardHandler)})
		for i := range warm + 1 {
			r := compiled(t, l, mode)
			account := memory.New(1 << 40).Open(memory.Query)
			ctx := memory.With(t.Context(), account)
			clear(k.busy)
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			last := used(t)
			k.answered = func() {
				c.held = max(c.held, account.Held())
				if i == warm {
					last = used(t)
				}
			}
			began, at := used(t), time.Now()
			a, err := stages.Groups(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			if i == warm {
				ended := used(t)
				runtime.ReadMemStats(&after)
				c.servers, c.shipped = l.servers, a.Stats.ShippedBytes
				c.parts, c.remote, c.partial = a.Stats.Parts, a.Stats.Remote, a.Stats.Partial
				c.processor, c.after, c.wall, c.beyond = ended-began, ended-last, time.Since(at), time.Since(k.last)
				c.made = int64(after.TotalAlloc - before.TotalAlloc)
				for _, b := range k.busy {
					c.busiest = max(c.busiest, b/4)
				}
			}
			check(t, l, a)
			account.Close()
		}
	})
	return c
}

// check compares an answer with what the series are.
func check(t *testing.T, l layout, a stage.Answer) {
	t.Helper()
	if len(a.Groups) != groups {
		t.Fatalf("%d groups, want %d", len(a.Groups), groups)
	}
	for g := range a.Groups {
		p, want := &a.Groups[g].Points, float64(l.members(g)*l.salts)
		if p.Len() != l.hours*perRow-1 {
			t.Fatalf("group %d has %d points, want %d", g, p.Len(), l.hours*perRow-1)
		}
		for i := range p.Len() {
			if ms, v := p.At(i); ms != int64(base+i*bucket)*1000 || v.Double() != want {
				t.Fatalf("group %d has %v at %d, want %v at %d", g, v.Double(), ms, want, int64(base+i*bucket)*1000)
			}
		}
	}
}

// The servers answer as real ones do: a part's batch is that of the operator over rows of the same series.
func TestForm(t *testing.T) {
	l := layout{servers: 2, regions: 1, series: 20, hours: 3, salts: 2}
	m := &operatortest.Store{}
	s := l.schema()
	for n := range l.inSalt() {
		points := operatortest.Every(base, base+3*3600, 60, func(int) float64 { return 1 })
		for hour := range l.hours {
			row := s.AppendTags(s.AppendRangeKey(nil, 1, metric, uint32(base+hour*3600)), l.tags(1, n))
			qualifier, value := cell(points, hour)
			m.Cell(row, qualifier, value, 1)
		}
	}
	part := &scanplan.Part{Plan: *compiled(t, l, "partial").Plan, Mode: scanplan.PartialAggregation}
	part.Range = part.Plan.Ranges[1]
	op, err := operator.New(m, part, operator.Options{Mem: arrowmemory.DefaultAllocator})
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	want, err := op.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer want.Release()
	got := newCluster(l, nil, 1).whole(1, l.hours)
	defer got.Release()
	for i := range want.Columns() {
		if diff := cmp.Diff(fmt.Sprint(want.Column(i)), fmt.Sprint(got.Column(i))); diff != "" {
			t.Errorf("column %s: %s", want.ColumnName(i), diff)
		}
	}
	if _, err := op.Next(t.Context()); err != io.EOF {
		t.Errorf("error %v, want one batch", err)
	}
}

// cell is the compacted cell of an hour, with a point a minute.
func cell(points encoding.Points, hour int) (qualifier, value []byte) {
	var b encoding.CellBuilder
	for i := range 60 {
		b.Add(operatortest.Encode(points.At(hour*60 + i)))
	}
	return b.Cell()
}

// With as much data at each server, what a server costs the gateway is as much with 128 servers as with 8: bytes and
// memory. Nothing is waited for but the slowest part, which is hardly slower when it is the slowest of more.
// Allocations stand for what the gateway computes: they do not depend on the machine.
func TestSize(t *testing.T) {
	servers, l := []int{1, 2, 4, 8, 16, 32, 64, 128}, layout{regions: 4, series: 36, hours: 96}
	if *long {
		servers, l = append(servers, 256, 512, 1000), layout{regions: 10, series: 1000, hours: 720}
	}
	r := report.New("size", []string{"go test ./bench/size -run TestSize -args -long -report bench/results"})
	r.Data = fmt.Sprintf("sum:5m-avg by %d groups over %d hours, mode=partial; for each server %d series, %d regions "+
		"and one salt bucket", groups, l.hours, l.series, l.regions)
	r.Cache = "sizes of hours, regions and paces are known, no answer"
	r.Note("%s", times(t).Note)
	by := along(t, servers, l, func(n int) int { return n })
	curves(r, "", servers, by)
	if *long {
		l.series = 100
		r.Note("20 salt buckets, whatever the number of servers: %d series for each server. Their names come with "+
			"each part, and each bucket has more parts: names grow by the square.", l.series)
		few := servers[1:8] // with fewer series than groups in a salt bucket there are fewer groups
		curves(r, ", 20 salt buckets", few, along(t, few, l, func(int) int { return 20 }))
	}
	if *folder != "" {
		path, err := r.Done().Save(*folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(path)
	}

	small, large := by[8], by[128]
	for what, f := range map[string]func(cost) float64{
		"bytes shipped":   func(c cost) float64 { return float64(c.shipped) / float64(c.servers) },
		"bytes allocated": func(c cost) float64 { return float64(c.made) / float64(c.servers) },
		"bytes held":      func(c cost) float64 { return float64(c.held) / float64(c.servers) },
		"time waited":     func(c cost) float64 { return float64(c.wall) },
	} {
		if f(large) > 1.3*f(small) {
			t.Errorf("%s for each server: %.0f with 128, %.0f with 8, want at most 1.3 times as much", what, f(large),
				f(small))
		}
	}
	if large.beyond > 0 {
		t.Errorf("%v were waited for after the last part, want nothing", large.beyond)
	}
}

// Without mode=partial the same partial aggregates are taken where they are proven to give the same bits, as these are:
// what the proofs cost comes on top.
func TestSize_proven(t *testing.T) {
	l := layout{servers: 32, salts: 32, regions: 4, series: 36, hours: 96}
	rounded := simulate(t, l, times(t).By["1"].Parts, "partial")
	proven := simulate(t, l, times(t).By["1"].Parts, "")
	t.Logf("processor %.1f ms, with proofs %.1f", ms(rounded.processor), ms(proven.processor))
	if proven.partial != proven.parts || proven.made > 2*rounded.made {
		t.Errorf("%+v, want all parts partial, and about as much allocated as by %+v", proven, rounded)
	}
}

// along simulates layouts with more and more servers.
func along(t *testing.T, servers []int, l layout, salts func(servers int) int) map[int]cost {
	t.Helper()
	recorded, by := times(t).By["1"].Parts, map[int]cost{}
	for _, n := range servers {
		l.servers, l.salts = n, salts(n)
		c := simulate(t, l, recorded, "partial")
		by[n] = c
		if c.remote != c.parts || c.parts < n {
			t.Errorf("%d servers: %d of %d parts at servers, want all, and %d at least", n, c.remote, c.parts, n)
		}
		t.Logf("%4d servers, %d salt buckets: %d parts, %.2f MB shipped, processor %.1f ms, %.1f after the last part; "+
			"waited %.0f ms, %.0f for the busiest server, %v after the last part; %.2f MB held, %.2f allocated", n,
			l.salts, c.parts, mb(c.shipped), ms(c.processor), ms(c.after), ms(c.wall), ms(c.busiest), c.beyond,
			mb(c.held), mb(c.made))
	}
	return by
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func mb(n int64) float64         { return float64(n) / 1e6 }

// curves adds the curves to the report.
func curves(r *report.Report, of string, servers []int, by map[int]cost) {
	plot := func(name, y string, lines map[string]func(cost) float64) {
		p := report.Plot{Name: name + of, X: "pushdown servers", Y: y, LogX: true, LogY: true}
		for _, line := range sorted(lines) {
			for _, n := range servers {
				p.Add(line, float64(n), lines[line](by[n]))
			}
		}
		r.Curves = append(r.Curves, p)
	}
	plot("time of a query", "ms", map[string]func(cost) float64{
		"waited, virtual":                func(c cost) float64 { return ms(c.wall) },
		"busiest server's parts":         func(c cost) float64 { return ms(c.busiest) },
		"gateway's processor":            func(c cost) float64 { return ms(c.processor) },
		"gateway's, after the last part": func(c cost) float64 { return ms(c.after) },
	})
	plot("what a server costs the gateway", "ms of processor, MB", map[string]func(cost) float64{
		"processor, ms": func(c cost) float64 { return ms(c.processor) / float64(c.servers) },
		"shipped, MB":   func(c cost) float64 { return mb(c.shipped) / float64(c.servers) },
		"held, MB":      func(c cost) float64 { return mb(c.held) / float64(c.servers) },
		"allocated, MB": func(c cost) float64 { return mb(c.made) / float64(c.servers) },
	})
	plot("memory and bytes of a query", "MB", map[string]func(cost) float64{
		"held":    func(c cost) float64 { return mb(c.held) },
		"shipped": func(c cost) float64 { return mb(c.shipped) },
	})
	plot("parts of a query", "parts", map[string]func(cost) float64{
		"parts": func(c cost) float64 { return float64(c.parts) },
	})
}

// Recorded queries of 1, 2, 4 and 8 real processes are predicted from their parts: what the simulation waits is within
// a factor of what the query took.
func TestPredicts(t *testing.T) {
	all := times(t)
	for _, n := range []int{1, 2, 4, 8} {
		r := all.By[fmt.Sprint(n)]
		l := layout{servers: n, regions: r.Regions, series: r.Series, hours: r.Hours, salts: n}
		c := simulate(t, l, r.Parts, "partial")
		ratio := float64(c.wall) / float64(r.Wall)
		t.Logf("%d processes: %.0f ms measured, %.0f simulated (%.2fx), %d parts, %.0f ms of processor", n, ms(r.Wall),
			ms(c.wall), ratio, c.parts, ms(c.processor))
		if ratio < 0.5 || ratio > 2 {
			t.Errorf("%d processes: %.2f times what was measured, want 0.5 to 2", n, ratio)
		}
	}
}
