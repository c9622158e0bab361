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
	"downpour/pushdown/resultcache"
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
	for i, seconds := range []int{40, 1, 40, 1, 1} {
		for range leastSamples {
			if _, ok := p.late(servers, 1<<20); ok != (i > 0) {
				t.Errorf("a part is late: %t, before %d servers are known", ok, i+1)
			}
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
	for _, s := range servers { // all become slower
		for range paceSamples {
			p.add(s, len(servers), 50*time.Second, 1<<20-partOverhead)
		}
	}
	if got, ok := p.late(servers, 1<<20-partOverhead); !ok || (got-50*time.Second).Abs() > time.Microsecond {
		t.Errorf("of slower servers: %v, %t, want 50 s", got, ok)
	}
}

// As many parts are started twice at once as one server executes, and a share of those of a run.
func TestPaces_takeSecond(t *testing.T) {
	for servers, want := range map[int]int{0: 4, 100: 84} {
		p, n := newPaces(servers, 4), 0
		for p.takeSecond() {
			n++
		}
		if n != want {
			t.Errorf("%d servers: %d parts are started twice, want %d", servers, n, want)
		}
	}
}

// Attempts at a part are known until they have ended: the part is in flight once, with one or two of them. Of one in
// this process it is not looked whether it is late.
func TestRun_inFlight(t *testing.T) {
	m, _ := table(false)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	s := newStepped(t, m, mem)
	for range leastSamples {
		s.e.paces.add(s.at[0], 2, time.Second, 1<<20)
	}
	s.start(t.Context(), s.part, s.at[0], false)
	s.start(t.Context(), s.part, s.e.here, true)
	if first, second := s.part.running[0], s.part.running[1]; first.lookAt.IsZero() || !second.lookAt.IsZero() {
		t.Errorf("it is looked at %v whether the first attempt is late, and at %v, want at the server's alone",
			first.lookAt, second.lookAt)
	}
	for ended := range 2 {
		if len(s.inFlight) != 1 {
			t.Errorf("a part with %d attempts is in flight %d times, want once", 2-ended, len(s.inFlight))
		}
		a := <-s.results
		s.running--
		freed, cancel := false, a.of.cancel
		a.of.cancel = func() { freed = true; cancel() }
		if s.ended(&a); !freed {
			t.Error("the context of an attempt that has ended goes on")
		}
		a.release()
	}
	if len(s.inFlight) != 0 {
		t.Error("a part without attempts is in flight")
	}
}

// Of two attempts that have succeeded the first one is accepted, whichever ends first, and the memory of both is given
// back. What is read counts once.
func TestRun_settle(t *testing.T) {
	for _, secondWins := range []bool{false, true} {
		m, _ := table(false)
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		s := newStepped(t, m, mem)
		s.start(t.Context(), s.part, s.at[0], false)
		first := <-s.results
		s.start(t.Context(), s.part, s.at[1], true)
		second := <-s.results
		s.running = 0
		order := []*partAttempt{&first, &second}
		if secondWins {
			slices.Reverse(order)
		}
		for _, a := range order {
			if err := s.finishAttempt(t.Context(), a); err != nil || a.err != nil {
				t.Fatal(err, a.err)
			}
		}
		if !s.coverage.complete() || s.stats.Parts != 1 || s.stats.Discarded != 1 {
			t.Errorf("%+v, want one part and one attempt that is discarded", s.stats)
		}
		read := s.opts.Budget.(*operator.ReadBudget).Spent()
		if held := s.heldBytes.Load(); held <= 0 || read != first.stats.Points || s.stats.Points != read {
			t.Errorf("%d bytes are held, want those of the accepted attempt; %d points read, want %d", held, read,
				first.stats.Points)
		}
		mem.AssertSize(t, 0)
	}
}

// What one of two attempts at a part ends with says whether its server gets further parts, and this one again.
func TestRun_leave(t *testing.T) {
	m, _ := table(false)
	for name, c := range map[string]struct {
		err                     error
		gone                    bool // the query has ended
		again, healthy, panicks bool
		failure                 error
	}{
		"server":    {wire.ErrServer, false, false, false, false, wire.ErrServer},
		"unproven":  {resultcache.ErrUnproven, false, true, true, false, resultcache.ErrUnproven},
		"too new":   {operator.ErrBadPlan, false, false, true, false, operator.ErrBadPlan},
		"memory":    {&operator.LimitError{}, false, false, true, false, &operator.LimitError{}},
		"panic":     {&operator.PanicError{}, false, false, true, true, &operator.PanicError{}},
		"query":     {context.Canceled, true, true, true, false, nil},
		"too late":  {wire.ErrServer, true, true, true, false, wire.ErrServer},
		"cancelled": {context.Canceled, false, false, false, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t, m, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.gone {
				cancel()
			}
			s.part.running = []*runningAttempt{{place: s.at[1], cancel: func() {}}} // the other one
			if err := s.ends(ctx, s.at[0], operator.Stats{}, c.err); err != nil {
				t.Fatal(err)
			}
			if s.mayTake(s.part, s.at[0]) != c.again || s.healthy(s.at[0]) != c.healthy {
				t.Errorf("may take the part again: %v, want %v; healthy: %v, want %v", !c.again, c.again,
					s.healthy(s.at[0]), c.healthy)
			}
			if fmt.Sprint(s.part.failure) != fmt.Sprint(c.failure) || s.part.panicked != c.panicks {
				t.Errorf("failure %v, panicked %v, want %v", s.part.failure, s.part.panicked, c)
			}
			if !s.part.noSecond || s.refusedBy[s.at[0]] != (name == "too new") {
				t.Errorf("may be started twice again: %v; refused: %v", !s.part.noSecond, s.refusedBy[s.at[0]])
			}
		})
	}
}

// The last of two attempts that fail leaves the part to a third one. An error that may have been of two attempts at
// once says nothing of the place, and ends the query with the third one.
func TestRun_bothFail(t *testing.T) {
	m, _ := table(false)
	for _, failure := range []error{&operator.LimitError{What: operator.Memory}, wire.ErrServer} {
		s := newStepped(t, m, nil)
		s.part.doubled = true
		if err := s.ends(t.Context(), s.at[0], operator.Stats{}, failure); err != nil {
			t.Fatal(err)
		}
		final := isFinal(failure, false)
		if s.healthy(s.at[0]) != final || s.mayTake(s.part, s.at[0]) != final {
			t.Errorf("%v: healthy %v, may take the part again %v", failure, s.healthy(s.at[0]),
				s.mayTake(s.part, s.at[0]))
		}
		if err := s.ends(t.Context(), s.at[1], operator.Stats{}, failure); (err != nil) != final {
			t.Errorf("%v: the third attempt ends the query: %v", failure, err)
		}
	}
}

// Parts are started a second time when they are late, not with the first one that is. While no place has room, they are
// looked at again soon.
func TestRun_startSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := table(false)
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		s := newStepped(t, m, mem)
		second := func() int { s.startSeconds(t.Context()); return s.running }
		soon, later := time.Now().Add(time.Second), time.Now().Add(time.Minute)
		inFlight := func(at time.Time) *pendingPart {
			p := &pendingPart{part: s.part.part, failedAt: map[*place]bool{}}
			p.running = []*runningAttempt{{place: s.at[0], lookAt: at, cancel: func() {}}}
			s.inFlight = append(s.inFlight, p)
			return p
		}
		won, first, last := inFlight(soon), inFlight(soon), inFlight(later)
		won.winner = &partAttempt{} // of two, the other one has not ended yet
		for _, at := range []time.Time{later, soon, later} {
			if s.lookBy(at); at == soon && s.lookAt != soon {
				t.Errorf("parts are looked at %v, want it at %v", s.lookAt, soon)
			}
		}
		if s.lookAt != soon {
			t.Errorf("parts are looked at %v, want it at %v", s.lookAt, soon)
		}
		if second() != 0 {
			t.Error("a part is started a second time before it is late")
		}
		time.Sleep(time.Second)
		s.busy[s.at[1]], s.busy[s.e.here] = s.e.cfg.PerServer, s.e.cfg.Local
		if second() != 0 || s.lookAt != time.Now().Add(leastLate) {
			t.Errorf("without room %d are started, and looked at %v, want it soon", s.running, time.Until(s.lookAt))
		}
		s.busy[s.at[1]] = 0
		time.Sleep(leastLate)
		if second() != 1 || won.doubled || !first.doubled || last.doubled || s.lookAt != later {
			t.Errorf("%d are started, the first %v, the last %v; looked at %v, want the first alone", s.running,
				first.doubled, last.doubled, s.lookAt)
		}
		a := <-s.results
		a.release()
		mem.AssertSize(t, 0)
	})
}

// A region server is slow if a part of it is late at a server, and most of its time waited for the region server.
// Nothing is learnt of an answer from a cache.
func TestRun_learnPace(t *testing.T) {
	m, _ := table(false)
	late := operator.Stats{ScanTime: 2 * time.Second}
	for name, c := range map[string]struct {
		expected, took time.Duration
		stats          operator.Stats
		slow           bool
		learnt         int
	}{
		"late":         {time.Second, 3 * time.Second, late, true, 1},
		"in time":      {4 * time.Second, 3 * time.Second, late, false, 1},
		"just in time": {3 * time.Second, 3 * time.Second, late, false, 1},
		"unknown":      {0, 3 * time.Second, late, false, 1},
		"itself slow":  {time.Second, 4 * time.Second, late, false, 1},
		"cached":       {time.Second, 3 * time.Second, operator.Stats{ScanTime: late.ScanTime, CacheHits: 1}, false, 0},
	} {
		s := newStepped(t, m, nil)
		a := &partAttempt{part: s.part, place: s.at[0], of: &runningAttempt{expected: c.expected}, stats: c.stats}
		s.learnPace(a, c.took)
		if slow := s.e.paces.isSlow("rs0:1", time.Now()); slow != c.slow || a.regionServerSlow != slow ||
			s.at[0].pace.n != c.learnt {
			t.Errorf("%s: the region server is slow: %v, want %v; %d times are learnt, want %d", name, slow, c.slow,
				s.at[0].pace.n, c.learnt)
		}
	}
}
