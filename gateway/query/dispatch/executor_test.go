package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/encoding/seedtest"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/operatortest"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/wire"
	"downpour/pushdown/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a server that executes parts on a store and fails by its script.
type scripted struct {
	name, beside string
	store        store.Reader
	mem          batch.Allocator
	hello        error
	batch        string // version of its record batches; "" is this one
	// fault is asked before each batch of a part, and at its end; an error
	// ends the attempt. It may block until ctx ends.
	fault   func(ctx context.Context, batch int) error
	parts   atomic.Int64
	refused atomic.Int64 // of parts
	drop    error        // the error of DropCaches
	drops   atomic.Int64
}

func (s *scripted) Address() string { return s.name }

func (s *scripted) Hello(context.Context) (wire.Hello, error) {
	h := wire.Hello{Program: "pushdown", Plan: scanplan.Version, Batch: batch.Version, Beside: s.beside}
	if s.batch != "" {
		h.Batch = s.batch
	}
	return h, s.hello
}

func (s *scripted) DropCaches(context.Context) error {
	s.drops.Add(1)
	return s.drop
}

func (s *scripted) Open(part *scanplan.Part, budget operator.Budget) (operator.Operator, error) {
	s.parts.Add(1)
	// As scanplan.ParseTicket of the release before does.
	if p := &part.Plan; s.batch == batch.Previous && (part.Mode == scanplan.Aligned || p.SplitOffHour) {
		s.refused.Add(1)
		return nil, operator.ErrBadPlan
	}
	op, err := operator.New(s.store, part, operator.Options{Mem: s.mem, FlushBytes: 500, Budget: budget})
	if err != nil || s.fault == nil {
		return op, err
	}
	return &faulty{Operator: op, fault: s.fault}, nil
}

type faulty struct {
	operator.Operator
	fault func(context.Context, int) error
	n     int
}

func (f *faulty) Next(ctx context.Context) (batch.Record, error) {
	if err := f.fault(ctx, f.n); err != nil {
		return nil, err
	}
	f.n++
	return f.Operator.Next(ctx)
}

func table(salted bool) (*operatortest.Store, encoding.Schema) {
	s := encoding.DefaultSchema()
	if salted {
		s.SaltWidth, s.SaltBuckets = 1, 4
	}
	m := &operatortest.Store{BlockRows: 3}
	for i := range 7 {
		m.Load(s, metric, operatortest.Series{
			Tags:   []encoding.TagPair{operatortest.Tag(1, i+1)},
			Points: operatortest.Every(base, base+6*3600, 60, func(j int) float64 { return float64(100*i + j) }),
		})
	}
	return m, s
}

// answer is every point and bucket that a sink got, by span and time.
type answer map[string]map[int64]string

// sink returns a sink that collects the points and buckets of records, and fails the test if a
// time comes twice.
func (a answer) sink(t *testing.T) Sink {
	return func(_ scanplan.KeyRange, records []batch.Record) error {
		for _, r := range records {
			reader, err := batch.NewSeriesReader(r)
			if err != nil {
				return err
			}
			var s batch.Series
			for i := range reader.Len() {
				if err := reader.At(i, &s); err != nil {
					return err
				}
				for j, ms := range s.Time {
					a.add(t, string(s.Span), ms, fmt.Sprint(s.Value[j]))
				}
				for j, ms := range s.Raw.Time {
					a.add(t, string(s.Span), ms, fmt.Sprint(s.Raw.Bits[j], s.Raw.Float[j]))
				}
			}
		}
		return nil
	}
}

func (a answer) add(t *testing.T, span string, ms int64, text string) {
	if a[span] == nil {
		a[span] = map[int64]string{}
	}
	if _, ok := a[span][ms]; ok {
		t.Errorf("span %X has %d twice", span, ms)
	}
	a[span][ms] = text
}

// quiet is a configuration that logs nothing.
func quiet(st store.Reader, mem batch.Allocator, servers ...*scripted) Config {
	c := Config{Store: st, Mem: mem, Local: 2, PerServer: 2, Log: slog.New(slog.DiscardHandler)}
	for _, s := range servers {
		if s.mem == nil {
			s.mem = mem
		}
		c.Servers = append(c.Servers, s)
	}
	return c
}

// truth executes each range of the plan as one part, in this process: the expected answer.
func truth(t *testing.T, st store.Reader, plan *scanplan.Plan) answer {
	t.Helper()
	a := answer{}
	for _, r := range plan.Ranges {
		op, err := operator.New(st, &scanplan.Part{Plan: *plan, Range: r}, operator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sink := a.sink(t)
		take := func(r batch.Record) error { return sink(scanplan.KeyRange{}, []batch.Record{r}) }
		if err := operatortest.Drain(t.Context(), op, take); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// As long as some attempts succeed, a run accepts every key interval exactly once. Servers fail at
// random batches with errors of every kind or hang, leave and join, and the gateway's own reads of the store fail
// now and then as well.
//
//fault:hole-not-issued-again == 0 => <= 1
//fault:failed-attempt-kept a.err == nil => a.err == nil || len(a.records) > 0
func TestRun_chaos(t *testing.T) {
	first := seedtest.Of(t)
	for seed := first; seed < first+30; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func chaos(t *testing.T, rng *rand.Rand) {
	m, s := table(rng.IntN(2) == 0)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	if rng.IntN(2) == 0 {
		plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
	}
	want := truth(t, m, &plan)
	m.Borders = [][]byte{
		plan.Ranges[0].Start, s.AppendRangeKey(nil, 0, metric, base+2*3600),
		append(s.AppendRangeKey(nil, s.Buckets()-1, metric, base+4*3600), 0, 0, 1, 0, 0, 4),
	}
	m.Servers = []string{"rs0:1", "rs1:1", "rs2:1"}
	var mu sync.Mutex
	dice := func(n int) int { mu.Lock(); defer mu.Unlock(); return rng.IntN(n) }
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	var servers []*scripted
	var trained bool // before, no server fails
	var e *Executor
	for i := range dice(4) {
		bad := dice(4)
		servers = append(servers, &scripted{
			name:   fmt.Sprint("s", i),
			beside: fmt.Sprintf("rs%d:1", i),
			store:  m,
			fault: func(ctx context.Context, _ int) error {
				if trained && dice(6) == 0 {
					// Some servers leave, and others come back.
					e.SetServers(slices.DeleteFunc(slices.Clone(e.cfg.Servers),
						func(Server) bool { return dice(3) == 0 }))
				}
				if trained && dice(5) < bad {
					return misfortune(ctx, dice(5))
				}
				return nil
			},
		})
	}
	local := &flaky{Store: m, fail: func() bool { return trained && dice(6) == 0 }}
	e = New(quiet(local, mem, servers...))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	// Of every other run the paces of servers are known: then parts that hang are started twice.
	for range dice(2) * leastSamples {
		if _, err := e.Run(ctx, &plan, Options{Aggregation: PerSeries}, answer{}.sink(t)); err != nil {
			t.Fatal(err)
		}
	}
	trained = true
	got := answer{}
	stats, err := e.Run(ctx, &plan, Options{Aggregation: PerSeries}, got.sink(t))
	if err != nil {
		t.Fatalf("%v (%+v)", err, stats)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if stats.Attempts != stats.Parts+stats.Discarded {
		t.Errorf("%+v: attempts are not parts and discarded attempts together", stats)
	}
	if n := m.Open.Load(); n != 0 {
		t.Errorf("%d scanners are open", n)
	}
	mem.AssertSize(t, 0)
}

// misfortune returns one of the errors of a stream after which another attempt may succeed.
func misfortune(ctx context.Context, kind int) error {
	switch kind {
	case 0:
		return wire.ErrIncomplete
	case 1:
		return store.ErrUnavailable
	case 2:
		return wire.ErrMisfit
	case 3:
		return operator.ErrBadPlan // as of an older server that does not know the plan's version
	}
	select { // hangs until the client gives up
	case <-time.After(2 * time.Second):
		return wire.ErrStalled
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flaky is a store whose scans fail now and then.
type flaky struct {
	*operatortest.Store
	fail func() bool
}

func (*flaky) Features() store.Features { return store.Features{} }

func (f *flaky) Scan(ctx context.Context, s store.Scan) (store.Scanner, error) {
	if f.fail() {
		return nil, store.ErrUnavailable
	}
	return f.Store.Scan(ctx, s)
}

// Explain shows where parts go: to the server next to their region, else to any healthy
// server, else they are executed in process.
func TestExplain(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	m.Borders = [][]byte{s.AppendRangeKey(nil, 0, metric, base+3*3600)}
	m.Servers = []string{"rs0:16020", "rs1:16020"}
	f := func(want []string, servers ...*scripted) {
		t.Helper()
		infos, err := New(quiet(m, nil, servers...)).Explain(t.Context(), &plan, PerSeries, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		at := plan.Ranges[0].Start
		for _, p := range infos {
			if !bytes.Equal(p.Range[0], at) || p.Mode != "strict" || p.Rows == "" || strings.Contains(p.Why, "region") {
				t.Errorf("part %+v, want it to follow the one before, in mode strict and with its rows", p)
			}
			at = p.Range[1]
			got = append(got, p.Server)
		}
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("servers %q, want %q", got, want)
		}
	}
	a, b := &scripted{name: "a:1", beside: "rs0:16020"}, &scripted{name: "b:1", beside: "rs1:16020"}
	f([]string{InProcess})
	f([]string{"a:1", "b:1"}, a, b)
	f([]string{"a:1", "b:1"}, b, a)
	f([]string{"a:1"}, a)
	f([]string{"h:1"}, &scripted{name: "h:1", beside: "rs0:9999"})
	f([]string{"b:1"}, &scripted{name: "a:1", beside: "rs0:16020", hello: wire.ErrServer}, b)
	f([]string{InProcess}, &scripted{name: "a:1", hello: wire.ErrServer})
}

// Of partial parts, those of an hour in which a region ends are strict, and say why.
func TestExplain_regionEndsInside(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	plan.Downsample = &scanplan.Downsample{Interval: 300_000, Function: "avg", Fill: scanplan.FillNone}
	m.Borders = [][]byte{append(s.AppendRangeKey(nil, 0, metric, base+3*3600), 0, 0, 1, 0, 0, 4)}
	m.Servers = []string{"rs0:16020", "rs1:16020"}
	server := &scripted{name: "a:1", beside: "rs0:16020"}
	parts, err := New(quiet(m, nil, server)).Explain(t.Context(), &plan, PartialAggregation, false)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range parts {
		seen[p.Mode] = true
		if ends := p.Why == "a region ends inside this hour"; ends != (p.Mode == "strict") {
			t.Errorf("a part is %s because %s", p.Mode, p.Why)
		}
	}
	if !seen["strict"] || !seen["partial"] {
		t.Errorf("got parts of modes %v, want strict and partial ones", seen)
	}
}

// hanging is a server that never answers a Hello.
type hanging struct {
	*scripted
	hellos atomic.Int64
}

func (h *hanging) Hello(ctx context.Context) (wire.Hello, error) {
	h.hellos.Add(1)
	<-ctx.Done()
	return wire.Hello{}, ctx.Err()
}

func (h *hanging) DropCaches(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("%s: %w", h.name, ctx.Err())
}

// A cached answer of a server whose version token could not be proven is discarded and the server
// retried immediately. It counts as failed only if the next answer is unproven, too.
func TestRun_unproven(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	for name, c := range map[string]struct {
		failures int64 // attempts that end unproven
		remote   bool
	}{
		"once":  {1, true},
		"again": {50, false},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			var failed atomic.Int64
			server := &scripted{name: "s", store: m, fault: func(_ context.Context, n int) error {
				if n == 1 && failed.Add(1) <= c.failures {
					return fmt.Errorf("%w: the region was opened again", resultcache.ErrUnproven)
				}
				return nil
			}}
			cfg := quiet(m, mem, server)
			cfg.PerServer = 1 // one part at a time, so that the first part fails
			e := New(cfg)
			got := answer{}
			stats, err := e.Run(t.Context(), &plan, Options{Aggregation: PerSeries}, got.sink(t))
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(truth(t, m, &plan), got); diff != "" {
				t.Error(diff)
			}
			if c.remote != (stats.Remote == stats.Parts) || stats.Discarded == 0 {
				t.Errorf("got %+v, want a discarded attempt, and all parts from the server if it recovers", stats)
			}
			if healthy := len(e.servers.placement(plan.Table).places) > 0; healthy != c.remote {
				t.Errorf("the server counts as healthy: %v, want %v", healthy, c.remote)
			}
		})
	}
}

// DropCaches asks every server, also one that is avoided after a failure, and its error names the
// servers that may not have dropped their caches.
func TestExecutor_dropCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := &scripted{name: "good"}
		bad := &scripted{name: "bad", drop: errors.New("bad: no")}
		hung := &hanging{scripted: &scripted{name: "hung"}}
		e := New(Config{
			Servers:     []Server{bad, hung, good},
			Log:         slog.New(slog.DiscardHandler),
			ResultCache: resultcache.New(1<<20, nil),
		})
		e.servers.markFailed(e.servers.list()[2])
		err := e.DropCaches(t.Context())
		if err == nil || !strings.Contains(err.Error(), "bad: no") || !strings.Contains(err.Error(), "hung: ") ||
			strings.Contains(err.Error(), "good") {
			t.Errorf("error %v, want those of bad and hung", err)
		}
		if good.drops.Load() != 1 || bad.drops.Load() != 1 {
			t.Errorf("asked %d and %d times, want once each", good.drops.Load(), bad.drops.Load())
		}
	})
}

// A server that has failed is not used for a while, which grows with further failures up to a
// bound, and is then asked in the background, so that no query waits for it.
func TestRegistry_backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{name: "s", hello: wire.ErrServer}
		b := newRegistry([]Server{s}, nil, slog.New(slog.DiscardHandler))
		usableAfter := func() (d time.Duration) {
			s.hello = nil
			for start := time.Now(); ; {
				b.checkHealth(t.Context())
				synctest.Wait() // it is asked in the background
				if len(b.placement("tsdb").places) > 0 {
					return time.Since(start)
				}
				<-time.After(100 * time.Millisecond)
			}
		}
		b.checkHealth(t.Context())
		if d := usableAfter(); d != minBackoff {
			t.Errorf("usable after %s, want %s", d, minBackoff)
		}
		for i, want := range []time.Duration{1, 2, 2, 2} {
			if i > 0 {
				s.hello = wire.ErrServer
				b.checkHealth(t.Context())
				synctest.Wait()
			} else {
				b.markFailed(b.list()[0])
			}
			b.mu.Lock()
			pause := time.Until(b.mu.places[0].health.notBefore)
			b.mu.Unlock()
			if pause != want*time.Second {
				t.Errorf("failure %d: pause %s, want %s", i+1, pause, want*time.Second)
			}
			<-time.After(pause)
		}
		hung := &hanging{scripted: s}
		b.list()[0].server = hung
		start := time.Now()
		b.checkHealth(t.Context())
		if took := time.Since(start); took != 0 {
			t.Errorf("a query waited %s for a server that had failed", took)
		}
		synctest.Wait()
		b.checkHealth(t.Context())
		synctest.Wait()
		if n := hung.hellos.Load(); n != 1 {
			t.Errorf("the server is asked %d times at the same time, want once", n)
		}
		<-time.After(2 * healthTimeout)
	})
}

// A run ends with the error that fits the fault, not later than its deadline, and closes its
// scanners.
//
//fault:memory-bound-ignored held > limit => held < 0
func TestRun_errors(t *testing.T) {
	f := func(change func(*operatortest.Store, *scanplan.Plan), check func(error) bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			m, s := table(false)
			plan := operatortest.Plan(s, metric, base, base+6*3600)
			change(m, &plan)
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			begin := time.Now()
			_, err := New(quiet(m, mem)).Run(ctx, &plan, Options{Aggregation: PerSeries}, answer{}.sink(t))
			if !check(err) {
				t.Errorf("got %v after %s", err, time.Since(begin))
			}
			if time.Since(begin) > 31*time.Second || m.Open.Load() != 0 {
				t.Errorf("ended after %s with %d scanners open", time.Since(begin), m.Open.Load())
			}
			mem.AssertSize(t, 0)
		})
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	unavailable := func(context.Context, int) error { return fmt.Errorf("rs1 is away: %w", store.ErrUnavailable) }
	hang := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }

	f(func(m *operatortest.Store, _ *scanplan.Plan) { m.Fail = unavailable }, is(ErrUnreachable))
	f(func(m *operatortest.Store, _ *scanplan.Plan) { m.Fail = hang }, is(ErrDeadline))
	f(func(m *operatortest.Store, _ *scanplan.Plan) {
		m.Fail = func(ctx context.Context, _ int) error { <-ctx.Done(); return unavailable(ctx, 0) }
	}, is(ErrUnreachable))
	f(func(_ *operatortest.Store, p *scanplan.Plan) { p.Version = 7 }, is(operator.ErrBadPlan))
	f(func(_ *operatortest.Store, p *scanplan.Plan) {
		p.Downsample = &scanplan.Downsample{Interval: 1000, Function: "nonsense", Fill: scanplan.FillNone}
	}, is(operator.ErrBadPlan))
	f(func(m *operatortest.Store, _ *scanplan.Plan) {
		m.Fail = func(context.Context, int) error { return store.ErrNoTable }
	}, is(store.ErrNoTable))
	f(func(m *operatortest.Store, _ *scanplan.Plan) {
		m.Fail = func(context.Context, int) error { return store.ErrDenied }
	}, is(store.ErrDenied))
	f(func(_ *operatortest.Store, p *scanplan.Plan) { p.MaxBytes = 10_000 }, func(err error) bool {
		var limit *operator.LimitError
		return errors.As(err, &limit)
	})
	badCell := func(m *operatortest.Store, _ *scanplan.Plan) { m.Cell(m.Rows[9].Key, []byte{0, 1}, []byte{7, 7}, 9) }
	f(badCell, func(err error) bool {
		var data *operator.DataError
		return errors.As(err, &data)
	})
	f(func(m *operatortest.Store, _ *scanplan.Plan) {
		m.Fail = func(context.Context, int) error { panic("boom") }
	}, func(err error) bool { var fault *operator.PanicError; return errors.As(err, &fault) })
}

// If some parts cannot be read, the error names exactly the key ranges that are missing.
//
//fault:missing-ranges-not-told => return nil
func TestRun_missing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := table(false)
		plan := operatortest.Plan(s, metric, base, base+6*3600)
		bad := s.AppendRangeKey(nil, 0, metric, base+4*3600)
		st := &torn{Store: m, from: bad}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		got := answer{}
		_, err := New(quiet(st, memory.DefaultAllocator)).Run(ctx, &plan, Options{Aggregation: PerSeries}, got.sink(t))
		var missing *IncompleteError
		if !errors.As(err, &missing) || !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("got %v, want an *IncompleteError", err)
		}
		at := []byte(bad)
		for _, r := range missing.Ranges {
			if !bytes.Equal(r.Start, at) {
				t.Errorf("missing %v, want it to start at %X", r, at)
			}
			at = r.Stop
		}
		if !bytes.Equal(at, plan.Ranges[0].Stop) || len(got) != 7 {
			t.Errorf("missing up to %X; %d spans, want up to the end of the plan and 7", at, len(got))
		}
		for span, points := range got {
			if len(points) != 4*60 {
				t.Errorf("span %X has %d points, want those of four hours", span, len(points))
			}
		}
	})
}

// An incomplete answer has the cause of the failure and not the place: the log has the address.
func TestRun_missingNamesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := table(false)
		plan := operatortest.Plan(s, metric, base, base+6*3600)
		// The store gives this process nothing until the time is over.
		st := &operatortest.Store{
			Rows: m.Rows,
			Fail: func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() },
		}
		cfg := quiet(st, memory.DefaultAllocator)
		var log strings.Builder
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		cfg.Servers = []Server{&scripted{
			name:  "pushdown",
			store: m,
			mem:   memory.DefaultAllocator,
			fault: func(context.Context, int) error {
				return fmt.Errorf("%w: dial tcp 10.0.0.7:17151: connection refused", wire.ErrServer)
			},
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := New(cfg).Run(ctx, &plan, Options{Aggregation: PerSeries}, answer{}.sink(t))
		var missing *IncompleteError
		if !errors.As(err, &missing) || !errors.Is(err, wire.ErrServer) || strings.Contains(err.Error(), "10.0.0.7") {
			t.Errorf("got %v, want that a server failed, without its address", err)
		}
		if !strings.Contains(log.String(), "10.0.0.7") {
			t.Errorf("the log has no address: %s", &log)
		}
	})
}

// torn is a store in which no scan that reaches beyond a key succeeds.
type torn struct {
	*operatortest.Store
	from []byte
}

func (*torn) Features() store.Features { return store.Features{} }

func (s *torn) Scan(ctx context.Context, scan store.Scan) (store.Scanner, error) {
	if bytes.Compare(scan.Stop, s.from) > 0 {
		return nil, store.ErrUnavailable
	}
	return s.Store.Scan(ctx, scan)
}

// A run ends at once if its caller has left or its sink fails.
func TestRun_ends(t *testing.T) {
	m, s := table(false)
	plan := operatortest.Plan(s, metric, base, base+6*3600)
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	fails := func(scanplan.KeyRange, []batch.Record) error { return io.ErrShortWrite }
	_, err := New(quiet(m, mem)).Run(t.Context(), &plan, Options{Aggregation: PerSeries}, fails)
	if !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a sink that fails: got %v, want its error", err)
	}
	mem.AssertSize(t, 0)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("client is gone")
	m.Fail = func(ctx context.Context, block int) error {
		if block == 1 {
			cancel(gone)
			<-ctx.Done()
		}
		return ctx.Err()
	}
	_, err = New(quiet(m, mem)).Run(ctx, &plan, Options{Aggregation: PerSeries}, answer{}.sink(t))
	if !errors.Is(err, gone) {
		t.Errorf("a caller that has left: got %v, want its cause", err)
	}
	mem.AssertSize(t, 0)
	if n := m.Open.Load(); n != 0 {
		t.Errorf("%d scanners are open", n)
	}
}
