package dispatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/rpc/wire"
	"downpour/pushdown/store"
)

// fleet are pushdown servers in simulated time, next to region servers with a few hours each.
type fleet struct {
	*testing.T
	e       *Executor
	plan    scanplan.Plan
	want    answer
	mem     *memory.CheckedAllocator
	servers []*scripted
	// takes returns how long a server takes for a part, less than 0 for ever.
	takes func(server int) time.Duration
	// away is the server that does not answer a health check, -1 for none.
	away atomic.Int64
	// budget is that of the run; second attempts have another one. They fail with secondErr unless that is nil.
	budget    operator.Budget
	secondErr error
}

// awayServer is a server that may not answer health checks.
type awayServer struct {
	*scripted
	f *fleet
	i int
}

func (a *awayServer) Hello(ctx context.Context) (wire.Hello, error) {
	if int(a.f.away.Load()) == a.i {
		<-ctx.Done()
		return wire.Hello{}, ctx.Err()
	}
	return a.scripted.Hello(ctx)
}

func (a *awayServer) Open(part *scanplan.Part, budget operator.Budget) (operator.Operator, error) {
	if a.f.secondErr != nil && budget != a.f.budget {
		return nil, a.f.secondErr
	}
	return a.scripted.Open(part, budget)
}

// newFleet returns n servers, each next to a region server with as many hours of the plan, on a store.
func newFleet(t *testing.T, n int, st func(*operatortest.Store) store.Reader) *fleet {
	s, m, hours := encoding.DefaultSchema(), &operatortest.Store{BlockRows: 3}, max(6, n)
	for i := range 5 {
		values := func(j int) float64 { return float64(100*i + j) }
		m.Load(s, metric, operatortest.Series{
			Tags:   []encoding.TagPair{operatortest.Tag(1, i+1)},
			Points: operatortest.Every(base, base+int64(hours)*3600, 600, values),
		})
	}
	f := &fleet{
		T:    t,
		plan: operatortest.Plan(s, metric, base, base+int64(hours)*3600),
		mem:  memory.NewCheckedAllocator(memory.NewGoAllocator()),
	}
	f.away.Store(-1)
	f.want = truth(t, m, &f.plan)
	f.takes = func(int) time.Duration { return time.Second }
	for i := range n {
		if i > 0 {
			m.Borders = append(m.Borders, s.AppendRangeKey(nil, 0, metric, base+uint32(i*hours/n)*3600))
		}
		m.Servers = append(m.Servers, fmt.Sprintf("rs%d:1", i))
		server := &scripted{name: fmt.Sprint("s", i), beside: m.Servers[i], store: st(m)}
		server.fault = func(ctx context.Context, batch int) error {
			if batch > 0 {
				return nil
			}
			d := f.takes(i)
			if d < 0 {
				<-ctx.Done()
				return ctx.Err()
			}
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		f.servers = append(f.servers, server)
	}
	cfg := quiet(st(m), f.mem, f.servers...)
	for i, s := range f.servers {
		cfg.Servers[i] = &awayServer{s, f, i}
	}
	f.e = New(cfg)
	return f
}

// run runs the plan within a budget of just its points, and returns how long it took.
func (f *fleet) run() (time.Duration, Stats) {
	f.Helper()
	got, began := answer{}, time.Now()
	points := int64(0)
	for _, span := range f.want {
		points += int64(len(span))
	}
	f.budget = operator.NewBudget(points, 0) // just enough for what is read once
	stats, err := f.e.Run(f.Context(), &f.plan,
		Options{Aggregation: PerSeries, Trace: true, Budget: f.budget}, got.sink(f.T))
	if err != nil {
		f.Fatal(err)
	}
	if diff := cmp.Diff(f.want, got); diff != "" {
		f.Fatal(diff)
	}
	if f.budget.(*operator.ReadBudget).Spent() != points || stats.Points != points ||
		stats.Attempts != stats.Parts+stats.Discarded {
		f.Errorf("%+v: want %d points, counted once, and all attempts parts or discarded", stats, points)
	}
	f.mem.AssertSize(f.T, 0)
	return time.Since(began), stats
}

// train runs the plan until the sizes of rows and the paces of servers are known.
func (f *fleet) train() {
	for range leastSamples + 2 {
		f.run()
	}
}

// A part at a server that is paused is started elsewhere, too, and no more parts go there; the points that were read
// twice count once.
func TestRun_paused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, func(m *operatortest.Store) store.Reader { return m })
		f.train()
		usual, _ := f.run()
		f.takes = func(server int) time.Duration {
			if server == 1 {
				return -1
			}
			return time.Second
		}
		f.away.Store(1)
		took, stats := f.run()
		if stats.Discarded == 0 || stats.Discarded > f.e.cfg.PerServer || took > usual+2*time.Second {
			t.Errorf("%v, usually %v; %d attempts discarded, want 1 to %d", took, usual, stats.Discarded,
				f.e.cfg.PerServer)
		}
		second := 0
		for _, a := range stats.Trace {
			if a.Second {
				second++
				if a.Place == "s1" {
					t.Errorf("second attempt %+v, want it elsewhere", a)
				}
			}
		}
		if second != stats.Discarded {
			t.Errorf("%d second attempts, %d discarded", second, stats.Discarded)
		}
		time.Sleep(healthTimeout)
		_, stats = f.run()
		if slices.ContainsFunc(stats.Trace, func(a Attempt) bool { return a.Place == "s1" }) {
			t.Error("the next run: attempts at a server that does not answer, want none")
		}
		time.Sleep(2 * maxBackoff) // checks in the background end
	})
}

// slowStore takes long for the rows of one region server, in this process and at servers.
type slowStore struct {
	*operatortest.Store
	slow *atomic.Bool
}

func (*slowStore) Features() store.Features { return store.Features{} }

func (s *slowStore) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	sc, err := s.Store.Scan(ctx, scan)
	regions, _ := s.Regions(ctx, scan.Table, scan.Start, scan.Stop)
	if err == nil && s.slow.Load() && len(regions) > 0 && regions[0].Server == "rs1:1" {
		sc = &slowScanner{Scanner: sc}
	}
	return sc, err
}

type slowScanner struct {
	store.Scanner
	slept bool
}

func (s *slowScanner) Next() ([]store.Row, error) {
	if !s.slept {
		s.slept = true
		time.Sleep(20 * time.Second)
	}
	return s.Scanner.Next()
}

// A region server that is slow itself is named in the trace, and its rows are not read twice again.
func TestRun_slowRegionServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		f := newFleet(t, 3, func(m *operatortest.Store) store.Reader { return &slowStore{m, &slow} })
		f.train()
		slow.Store(true)
		_, stats := f.run()
		named := slices.ContainsFunc(stats.Trace, func(a Attempt) bool {
			return a.RegionServerSlow && a.RegionServer == "rs1:1"
		})
		if !named || stats.Discarded > f.e.cfg.PerServer {
			t.Errorf("the region server is named: %t; %d attempts discarded, want at most %d", named, stats.Discarded,
				f.e.cfg.PerServer)
		}
		if _, stats = f.run(); stats.Discarded != 0 {
			t.Errorf("the next run: %d attempts discarded, want none at a slow region server", stats.Discarded)
		}
		slow.Store(false)
		time.Sleep(slowFor)
	})
}

// With one of 64 servers ten times as slow, or paused, the 99th percentile of a query's time is at most 1.5 times as
// long, for at most 5 % more attempts at parts, those of one server aside.
func TestRun_tail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 64, func(m *operatortest.Store) store.Reader { return m })
		rng, mu := rand.New(rand.NewPCG(seedtest.Of(t), 0)), new(sync.Mutex)
		factor := time.Duration(1)
		f.takes = func(server int) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			// Most parts take a second, some two.
			d := time.Second + time.Duration(200*rng.ExpFloat64())*time.Millisecond
			if server == 5 {
				d *= factor
			}
			return d
		}
		f.train()
		p99 := func() (time.Duration, float64) {
			var times []time.Duration
			parts, extra := 0, 0
			for range 100 {
				d, stats := f.run()
				times = append(times, d)
				parts, extra = parts+stats.Parts, extra+stats.Discarded
			}
			slices.Sort(times)
			return times[98], float64(extra) / float64(parts)
		}
		usual, more := p99()
		t.Logf("usual: %v, %.1f %% more attempts", usual, 100*more)
		for _, factor = range []time.Duration{10, -1} {
			if factor < 0 {
				f.away.Store(5)
			}
			got, more := p99()
			t.Logf("times %d: %v, %.2f times as long, %.1f %% more attempts", factor, got,
				float64(got)/float64(usual), 100*more)
			if float64(got) > 1.5*float64(usual) || more > 0.055 {
				t.Errorf("times %d: %v, usually %v, and %.1f %% more attempts", factor, got, usual, 100*more)
			}
		}
		time.Sleep(2 * maxBackoff)
	})
}

// Of two attempts at a part neither ends the query: memory for one may be too little for two. The part is not started
// twice again.
func TestRun_secondFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, func(m *operatortest.Store) store.Reader { return m })
		f.train()
		f.takes = func(server int) time.Duration {
			if server == 1 {
				return 10 * time.Second
			}
			return time.Second
		}
		f.secondErr = &operator.LimitError{What: operator.Memory}
		// The first one fails, too, in the end.
		var failed atomic.Bool
		first := f.servers[1].fault
		f.servers[1].fault = func(ctx context.Context, batch int) error {
			if err := first(ctx, batch); err != nil || failed.Swap(true) {
				return err
			}
			return f.secondErr
		}
		took, stats := f.run()
		if stats.Discarded == 0 || took < 10*time.Second {
			t.Errorf("%v, %d attempts discarded, want that some fail and the first ones go on", took, stats.Discarded)
		}
		seconds := map[string]int{}
		for _, a := range stats.Trace {
			if a.Second {
				seconds[a.Range.Start.String()]++
			}
		}
		for at, n := range seconds {
			if n > 1 {
				t.Errorf("part %s was started twice %d times, want once", at, n)
			}
		}
		time.Sleep(2 * maxBackoff)
	})
}

// How long a part may take goes by the median server, so that slow ones say nothing of others.
func TestPaces(t *testing.T) {
	p, servers := newPaces(5, 4), []*place{{}, {}, {}, {}, {}}
	if _, ok := p.late(servers, 1<<20); ok {
		t.Error("a part is late before a server is known")
	}
	for i, seconds := range []int{1, 1, 1, 40, 40} {
		for range leastSamples {
			p.add(servers[i], len(servers), time.Duration(seconds)*time.Second, 1<<20-partOverhead)
		}
	}
	for bytes, want := range map[int64]time.Duration{
		1<<20 - partOverhead: time.Second,
		2<<20 - partOverhead: 2 * time.Second,
		1:                    time.Second * (partOverhead + 1) / (1 << 20),
	} {
		if got, ok := p.late(servers, bytes); !ok || (got-want).Abs() > time.Microsecond {
			t.Errorf("%d bytes: %v, %t, want %v", bytes, got, ok, want)
		}
	}
	if _, ok := p.late(servers, 0); ok {
		t.Error("a part of unknown size is late")
	}
}
