package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

// Config says where plans are executed. Only Store is needed.
type Config struct {
	// Store executes parts in process, when there is no server or none that
	// works, and tells the regions.
	Store store.Reader
	// Servers are pushdown servers, see client.Client.
	Servers []Server
	// Local bounds the parts that one run executes in process at once.
	// Default: the number of CPUs.
	Local int
	// PerServer bounds the parts that one run has on one server at once.
	// Default 4.
	PerServer int
	// ResultCache remembers the answers of parts executed in process; nil does
	// not.
	ResultCache *resultcache.Cache
	// Mem provides the memory of batches made in process. Default:
	// garbage-collected.
	Mem batch.Allocator
	// Seek remembers what parts can skip, see package seek; nil remembers
	// nothing.
	Seek *access.PrefixCache
	// Log gets failed attempts. Default slog.Default().
	Log *slog.Logger
}

// Pauses between attempts at a part that every place has failed at once.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// partsPerSlot is how many parts there are per part that can run at once: more
// than one, so that slots do not idle behind a long one.
const partsPerSlot = 4

// Executor runs plans. It is for many goroutines.
type Executor struct {
	cfg     Config
	servers *registry
	sizes   *sizes
}

// New returns an executor.
func New(cfg Config) *Executor {
	if cfg.Local <= 0 {
		cfg.Local = runtime.GOMAXPROCS(0)
	}
	if cfg.PerServer <= 0 {
		cfg.PerServer = 4
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Executor{cfg: cfg, servers: newRegistry(cfg.Servers, cfg.Log), sizes: newSizes()}
}

// DropCaches forgets the answers that are remembered, here and on the pushdown
// servers. The error names the servers that may still have theirs.
func (e *Executor) DropCaches(ctx context.Context) error {
	e.cfg.ResultCache.Drop()
	return e.servers.dropCaches(ctx)
}

// Sink takes the batches of one accepted interval, in the order in which the
// part returned them. It is called from one goroutine, once per interval, in no
// order of intervals. It retains what it keeps; the executor releases the
// records when it returns. An error ends the run.
type Sink func(part scanplan.KeyRange, records []batch.Record) error

// Stats counts a run: the work of all accepted parts, and how it was spread.
type Stats struct {
	operator.Stats
	Parts     int `json:"parts"`
	Remote    int `json:"remote"`    // accepted parts that a server executed
	Attempts  int `json:"attempts"`  // at parts, failed ones too
	Discarded int `json:"discarded"` // attempts whose records were thrown away
	Partial   int `json:"partial"`   // accepted parts that answered with states
	// Missing are the ranges that lack, with Options.AllowMissing.
	Missing []scanplan.KeyRange `json:"missing,omitempty"`
	// Attempt are the attempts, with Options.Trace, in the order of their ends.
	Trace []Attempt `json:"-"`
}

// Add adds another run's counts and missing ranges; what was tried stays out.
func (s *Stats) Add(o Stats) {
	s.Stats.Add(o.Stats)
	s.Parts += o.Parts
	s.Remote += o.Remote
	s.Attempts += o.Attempts
	s.Discarded += o.Discarded
	s.Partial += o.Partial
	s.Missing = append(s.Missing, o.Missing...)
}

// Attempt is one attempt at a part.
type Attempt struct {
	Range    scanplan.KeyRange
	Region   string // region server that held the first row, "" if not asked
	Place    string // pushdown server, host:port, or InProcess
	Mode     scanplan.Mode
	Bytes    int64         // that it was to read, about; 0 where that was not known
	Began    time.Duration // since the run began
	Took     time.Duration
	Stats    operator.Stats
	Accepted bool
	Err      error
}

// Options are what a run may do.
type Options struct {
	Aggregation Aggregation
	// AllowMissing makes a run that its deadline ends return what came in time,
	// and Stats.Missing.
	AllowMissing bool
	Trace        bool
}

// Run executes a plan with strict parts; see RunWith.
func (e *Executor) Run(ctx context.Context, plan *scanplan.Plan, sink Sink) (Stats, error) {
	return e.RunWith(ctx, plan, Options{Aggregation: PerSeries}, sink)
}

// RunWith executes a plan. It returns nil when all of the plan's ranges have gone to
// the sink, each key exactly once. After an error what the sink has got is
// incomplete; a *IncompleteError tells what lacks. The context's deadline ends
// waiting for stores and servers; see the errors of this package.
func (e *Executor) RunWith(ctx context.Context, plan *scanplan.Plan, opts Options, sink Sink) (Stats, error) {
	if err := plan.Validate(); err != nil {
		return Stats{}, fmt.Errorf("%w: %w", operator.ErrBadPlan, err)
	}
	d, err := e.divide(ctx, plan, opts.Aggregation)
	if err != nil && opts.AllowMissing && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Stats{Missing: plan.Ranges}, nil
	}
	if err != nil {
		return Stats{}, err
	}
	r := newRun(e, plan, opts, sink, d)
	err = r.work(ctx)
	return r.stats, err
}

// PlannedPart is one part as explain shows it.
type PlannedPart struct {
	Range  [2]scanplan.HexBytes `json:"range"`
	Server string               `json:"server"` // host:port or InProcess
	Mode   string               `json:"mode"`   // strict or partial
	Why    string               `json:"why"`    // of the mode
	Rows   string               `json:"rows"`   // how rows are selected in the store
	// Bytes are about those that the part will read from the store, by what
	// earlier queries found there; 0, and left out, where nothing is known.
	Bytes int64 `json:"bytes,omitempty"`
	// Filter is what the store's servers are asked to evaluate, where the
	// store can tell.
	Filter string `json:"filter,omitempty"`
	// ResultCache is "kept" of a part in process whose answer is remembered: it is
	// given again if no row has changed.
	ResultCache string `json:"resultCache,omitempty"`
}

// InProcess stands for the executor itself where a server is named.
const InProcess = "in-process"

// describer is a store that filters rows in servers of its own, and tells how.
type describer interface {
	DescribeFilter(f store.RowFilter) string
}

// Explain tells how RunWith would cut and place a plan now.
func (e *Executor) Explain(ctx context.Context, plan *scanplan.Plan, how Aggregation) ([]PlannedPart, error) {
	if err := plan.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", operator.ErrBadPlan, err)
	}
	d, err := e.divide(ctx, plan, how)
	if err != nil {
		return nil, err
	}
	infos := make([]PlannedPart, len(d.parts))
	for i, p := range d.parts {
		access := operator.ChooseAccess(&scanplan.Part{Plan: *plan, Range: p.Range}, e.cfg.Seek)
		infos[i] = PlannedPart{Range: [2]scanplan.HexBytes{p.Range.Start, p.Range.Stop}, Server: InProcess, Mode: p.Mode.String(), Why: d.choice.reason, Rows: access.Reason, Bytes: p.Bytes}
		if d.choice.partial && p.Mode == scanplan.PerSeries {
			infos[i].Why = "a region ends inside this hour"
		}
		if d, ok := e.cfg.Store.(describer); ok {
			infos[i].Filter = d.DescribeFilter(access.Filter)
		}
		if order := e.servers.beside(p.Region, i); len(order) > 0 {
			infos[i].Server = e.cfg.Servers[order[0]].Address()
		} else if e.cfg.ResultCache.Holds(&scanplan.Part{Plan: *plan, Range: p.Range, Mode: p.Mode}) {
			infos[i].ResultCache = "kept"
		}
	}
	return infos, nil
}

// AggregatesPartially tells whether RunWith would let parts answer with states.
func (e *Executor) AggregatesPartially(ctx context.Context, plan *scanplan.Plan, how Aggregation) bool {
	e.servers.checkHealth(ctx)
	return choose(plan, how, slices.Contains(e.servers.healthy(), true)).partial
}

// division is a plan cut into pieces, and what was found out about it on the way.
type division struct {
	parts  []part
	choice choice
	seeks  bool // the parts may leave rows of their hours out
}

// divide cuts a plan by the regions as they are now; without servers it does not
// matter where rows lie, and nobody is asked.
func (e *Executor) divide(ctx context.Context, plan *scanplan.Plan, how Aggregation) (d division, err error) {
	e.servers.checkHealth(ctx)
	slots, remote := e.cfg.Local, false
	for _, ok := range e.servers.healthy() {
		if ok {
			slots, remote = slots+e.cfg.PerServer, true
		}
	}
	rows := operator.ChooseAccess(&scanplan.Part{Plan: *plan, Range: plan.Ranges[0]}, e.cfg.Seek)
	want := limits{parts: partsPerSlot * slots, rows: rows, bytes: e.sizes.of(plan, rows)}
	var regions []store.Region
	if len(e.cfg.Servers) > 0 {
		if regions, err = e.regions(ctx, plan); err != nil {
			return d, err
		}
	}
	d.choice, d.seeks = choose(plan, how, remote), seeks(rows)
	d.parts = cut(plan, regions, want, d.choice)
	return d, nil
}

// regions are those that hold a plan's rows. The store is asked until the context
// ends, for a table whose regions are moving is no error yet.
func (e *Executor) regions(ctx context.Context, plan *scanplan.Plan) ([]store.Region, error) {
	start, stop := plan.Ranges[0].Start, plan.Ranges[len(plan.Ranges)-1].Stop
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		regions, err := e.cfg.Store.Regions(ctx, plan.Table, start, stop)
		if err == nil {
			return regions, nil
		}
		if ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
			return nil, fmt.Errorf("regions of %s: %w", plan.Table, err)
		}
		if !wait(ctx, pause) {
			return nil, ended(ctx, plan.Ranges, 0, unlessContext(err))
		}
	}
}

// unlessContext is err unless it only says that the context ended.
func unlessContext(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// wait returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
