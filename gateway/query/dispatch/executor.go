package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/process/wait"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/store"
)

// Config is where plans are executed. Only Store is required.
type Config struct {
	// Store is read by parts that are executed in this process, which happens when
	// no pushdown server is configured or healthy. It also lists the regions.
	Store store.Reader
	// Servers are the pushdown servers at first, see client.Client and Executor.SetServers.
	Servers []Server
	// Rollups are the tables in addition to the data table. A server that does not name one of them
	// in its hello gets no parts of it.
	Rollups []string
	// Local bounds how many parts one run executes in this process concurrently. Default: the
	// number of CPUs.
	Local int
	// PerServer bounds how many parts one run has on one server concurrently. Default 4.
	PerServer int
	// SideBySide is set if idle scans of Store cost nothing, as those of the embedded store: the
	// hours of a plan may be read side by side.
	SideBySide bool
	// ResultCache keeps the answers of parts that are executed in this process; nil
	// for no result cache.
	ResultCache *resultcache.Cache
	// Mem allocates the batches that are made in this process. Default:
	// garbage-collected memory.
	Mem batch.Allocator
	// Seek keeps what earlier parts reported about their rows, from which later
	// parts choose their access path, see package access; nil keeps nothing.
	Seek *access.PrefixCache
	// HelloTimeout is how long a healthy server takes at most to answer a health check. Default
	// one second.
	HelloTimeout time.Duration
	// Log receives failed attempts. Default slog.Default().
	Log *slog.Logger
}

// Pauses before retrying a part after every place has failed it. The pause
// doubles from the first to the last.
const (
	minRetryPause = 50 * time.Millisecond
	maxRetryPause = 2 * time.Second
)

// partsPerSlot is how many parts are cut for each part that can run concurrently. More than one, so
// that a slot is not idle while another one works on a long part.
const partsPerSlot = 4

// Executor executes plans. Its methods may be called from many goroutines.
type Executor struct {
	cfg     Config
	here    *place // this process
	servers *registry
	regions regionLists
	sizes   *sizes
	paces   *paces
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
	servers := newRegistry(cfg.Servers, cfg.Rollups, cfg.Log)
	servers.within = cmp.Or(cfg.HelloTimeout, healthTimeout)
	return &Executor{cfg: cfg, here: &place{}, servers: servers, sizes: newSizes(),
		paces: newPaces(len(cfg.Servers), cfg.PerServer)}
}

// SetServers replaces the pushdown servers. One that was there before, the same Server, keeps its state; a new one
// is checked at once, and no query waits for that. One that is missing gets no further parts; those that it has, it may
// end.
func (e *Executor) SetServers(servers []Server) { e.servers.welcome(e.servers.set(servers)) }

// DropCaches empties the result caches of this process and of the pushdown servers.
// The error names the servers that may not have emptied theirs.
func (e *Executor) DropCaches(ctx context.Context) error {
	e.cfg.ResultCache.Drop()
	return e.servers.dropCaches(ctx)
}

// Sink receives the batches of one accepted part, in the order in which the part
// returned them. It is called from one goroutine, once for each part; parts come in
// no particular order. The executor releases the records when the call returns, so
// the sink retains what it keeps. An error of the sink ends the run.
type Sink func(part scanplan.KeyRange, records []batch.Record) error

// Stats counts the work of a run's accepted parts, and how it was spread.
type Stats struct {
	operator.Stats
	Parts     int `json:"parts"`
	Remote    int `json:"remote"`    // accepted parts that a pushdown server executed
	Attempts  int `json:"attempts"`  // at parts, including those that failed
	Discarded int `json:"discarded"` // attempts whose records were thrown away
	Partial   int `json:"partial"`   // accepted parts that answered with partial aggregates
	// Missing are the key ranges that were not read before the deadline; only with
	// Options.AllowMissing.
	Missing []scanplan.KeyRange `json:"missing,omitempty"`
	// Trace lists the attempts in the order in which they ended; only with
	// Options.Trace.
	Trace []Attempt `json:"-"`
}

// Add adds another run's counts and missing ranges. It does not add its Trace.
func (s *Stats) Add(o Stats) {
	s.Stats.Add(o.Stats)
	s.Parts += o.Parts
	s.Remote += o.Remote
	s.Attempts += o.Attempts
	s.Discarded += o.Discarded
	s.Partial += o.Partial
	s.Missing = append(s.Missing, o.Missing...)
}

// Attempt is one attempt at a part, as the trace of a query shows it.
type Attempt struct {
	Range        scanplan.KeyRange
	RegionServer string // region server that held the first row, "" if regions were not listed
	Place        string // pushdown server, host:port, or InProcess
	Mode         scanplan.Mode
	Bytes        int64         // estimate of the bytes to read; 0 where nothing was known
	Began        time.Duration // since the run began
	Took         time.Duration
	Stats        operator.Stats
	Accepted     bool
	// Second is set if it was started because another attempt was late, and RegionServerSlow if it was late itself,
	// and most of its time waited for the region server: of that, no part is started twice for a minute.
	Second, RegionServerSlow bool
	Err                      error
}

// Options are how Run executes a plan. The zero value lets the planner choose the
// aggregation, and demands a complete answer.
type Options struct {
	Aggregation Aggregation
	// Budget bounds what all parts read together. Default: no bound.
	Budget operator.Budget
	// Unnamed is set for an answer that names no series: parts may then leave names out, see
	// scanplan.PartialWithoutNames.
	Unnamed bool
	// Proving has each part prove what it reads: see operator.Options.
	Proving bool
	// Uncached has parts in this process neither looked up nor kept in the result cache: a plan that reads much,
	// and once, would push out all else.
	Uncached bool
	// AllowMissing makes a run that is ended by its deadline succeed: the sink has
	// received what was read in time, and Stats.Missing lists the rest.
	AllowMissing bool
	// Trace records every attempt in Stats.Trace.
	Trace bool
}

// Run executes a plan and passes the records of its parts to the sink. It returns nil
// when the sink has received all of the plan's ranges, each key exactly once. After an
// error the sink has received only some of them; an *IncompleteError lists those that
// are missing. Run waits for stores and servers until the context's deadline. The
// errors are listed in errors.go.
func (e *Executor) Run(ctx context.Context, plan *scanplan.Plan, opts Options, sink Sink) (Stats, error) {
	if err := plan.Validate(); err != nil {
		return Stats{}, fmt.Errorf("%w: %w", operator.ErrBadPlan, err)
	}

	parts, err := e.partition(ctx, plan, opts.Aggregation, opts.Unnamed)
	// The deadline came before anything was read.
	if opts.AllowMissing && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Stats{Missing: plan.Ranges}, nil
	}
	if err != nil {
		return Stats{}, err
	}

	if opts.Budget == nil {
		opts.Budget = operator.NewBudget(0, 0)
	}
	r := newRun(e, plan, opts, sink, parts)
	err = r.execute(ctx)
	return r.stats, err
}

// PlannedPart is one part as explain shows it.
type PlannedPart struct {
	Range  [2]scanplan.HexBytes `json:"range"`
	Server string               `json:"server"` // host:port or InProcess
	Mode   string               `json:"mode"`   // strict (per-series), partial or aligned
	Why    string               `json:"why"`    // the reason for Mode
	Rows   string               `json:"rows"`   // the access path: how rows are selected in the store
	// Bytes estimates how many bytes the part will read from the store, from earlier queries. It is
	// 0, and omitted, if unknown.
	Bytes int64 `json:"bytes,omitempty"`
	// Filter is the row filter that the store's servers evaluate, if the store can describe it.
	Filter string `json:"filter,omitempty"`
	// ResultCache is "kept" if the part is executed in this process and its answer
	// is in the result cache: it is given again if no row has changed.
	ResultCache string `json:"resultCache,omitempty"`
}

// InProcess is this process in place of a server's name.
const InProcess = "in-process"

// filterDescriber is a store that has rows filtered by its servers and can describe
// the filter.
type filterDescriber interface {
	DescribeFilter(f store.RowFilter) string
}

// Explain lists the parts into which Run would cut a plan now, and where it would
// execute them. unnamed is as in Options.
func (e *Executor) Explain(ctx context.Context, plan *scanplan.Plan, how Aggregation,
	unnamed bool) ([]PlannedPart, error) {
	if err := plan.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", operator.ErrBadPlan, err)
	}
	cut, err := e.partition(ctx, plan, how, unnamed)
	if err != nil {
		return nil, err
	}

	servers := e.servers.placement(plan.Table)
	planned := make([]PlannedPart, len(cut.parts))
	for i, p := range cut.parts {
		path := operator.ChooseAccess(&scanplan.Part{Plan: *plan, Range: p.Range}, e.cfg.Seek)
		planned[i] = PlannedPart{
			Range: [2]scanplan.HexBytes{p.Range.Start, p.Range.Stop}, Server: InProcess, Mode: p.Mode.String(),
			Why: cut.choice.reason, Rows: path.Reason, Bytes: p.Bytes,
		}
		if cut.choice.partial && p.Mode == scanplan.PerSeries {
			planned[i].Why = "a region ends inside this hour"
		}
		if d, ok := e.cfg.Store.(filterDescriber); ok {
			planned[i].Filter = d.DescribeFilter(path.Filter)
		}

		// Parts that a server executes are in the server's result cache, not in ours.
		if at := servers.closest(p.RegionServer, i); at != nil && !p.Here {
			planned[i].Server = at.name()
		} else if e.cfg.ResultCache.Holds(&scanplan.Part{Plan: *plan, Range: p.Range, Mode: p.Mode}) {
			planned[i].ResultCache = "kept"
		}
	}
	return planned, nil
}

// AggregatesPartially reports whether Run would make parts answer with partial aggregates, or with
// aligned ones of a single group: with few points, which may prove insufficient. Aligned ones of
// many groups may be as many points as are read.
func (e *Executor) AggregatesPartially(ctx context.Context, plan *scanplan.Plan, how Aggregation) bool {
	e.servers.checkHealth(ctx)
	c := chooseAggregation(plan, how, e.places(plan, e.servers.placement(plan.Table)))
	return c.partial || c.aligned && len(plan.GroupBy) == 0
}

// SideBySide reports whether a plan's hours can be read side by side, in this process.
func (e *Executor) SideBySide(plan *scanplan.Plan) bool {
	return chooseAggregation(plan, Auto, e.places(plan, newPlacement())).whole
}

// places returns where the parts of a plan can be executed, with these servers. All ranges of a plan differ only in
// their salt, so the first range's access path represents all.
func (e *Executor) places(plan *scanplan.Plan, servers *placement) places {
	path := operator.ChooseAccess(&scanplan.Part{Plan: *plan, Range: plan.Ranges[0]}, e.cfg.Seek)
	return places{
		remote: len(servers.places) > 0, before: servers.before, sideBySide: e.cfg.SideBySide, path: path,
	}
}

// partition is a plan cut into parts, with what was decided on the way.
type partition struct {
	parts     []part
	choice    aggregationChoice
	skipsRows bool // the access path may leave out rows of the parts' hours
}

// partition cuts a plan at the boundaries that its regions have now. Without servers the location
// of rows does not matter, so it is not read.
func (e *Executor) partition(ctx context.Context, plan *scanplan.Plan, how Aggregation,
	unnamed bool) (p partition, err error) {
	e.servers.checkHealth(ctx)
	servers := e.servers.placement(plan.Table)
	slots := e.cfg.Local + len(servers.places)*e.cfg.PerServer

	var regions []store.Region
	if len(e.servers.list()) > 0 {
		if regions, err = e.planRegions(ctx, plan); err != nil {
			return p, err
		}
	}

	at := e.places(plan, servers)
	goal := cutGoal{parts: partsPerSlot * slots, path: at.path, bytes: e.sizes.estimate(plan, at.path)}
	p.choice, p.skipsRows = chooseAggregation(plan, how, at), skipsRows(at.path)
	p.choice.unnamed = unnamed
	p.parts = cutPlan(plan, regions, goal, p.choice)
	here := at.remote && readsHere(plan, at.path)
	for i := range p.parts {
		p.parts[i].Here = here
	}
	return p, nil
}

// hoursReadHere is the number of hours of a plan that this process reads itself, if few rows are read in each.
const hoursReadHere = 24

// readsHere reports whether this process reads a plan's rows itself, though there are pushdown servers: from so few
// rows a server would ship about as much as it reads, and the call to it takes longer than the reading. That the rows
// are few may be a guess: a part that fails here goes to a server.
func readsHere(plan *scanplan.Plan, path operator.Access) bool {
	return path.Few && plan.To-plan.From <= hoursReadHere*encoding.RowSeconds
}

// planRegions lists the regions that hold a plan's rows, or held them a moment ago. It retries
// until the context ends, because a table whose regions are moving may answer a moment later.
func (e *Executor) planRegions(ctx context.Context, plan *scanplan.Plan) ([]store.Region, error) {
	start, stop := plan.Ranges[0].Start, plan.Ranges[len(plan.Ranges)-1].Stop
	began := time.Now()
	if known, renew, ok := e.regions.get(plan.Table, began); ok {
		if renew {
			go e.renewRegions(context.WithoutCancel(ctx), plan.Table)
		}
		return overlapping(known, start, stop), nil
	}

	for pause := minRetryPause; ; pause = min(2*pause, maxRetryPause) {
		// All of them: the next plan may be of other rows, and they are read together.
		regions, err := e.cfg.Store.Regions(ctx, plan.Table, nil, nil)
		if err == nil {
			e.regions.set(plan.Table, regions, began)
			return overlapping(regions, start, stop), nil
		}
		// Once ctx has ended, the error may be only that, and the wait ends the loop.
		if ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
			return nil, fmt.Errorf("cannot list the regions of table %s: %w", plan.Table, err)
		}
		if wait.For(ctx, pause) != nil {
			return nil, deadlineError(ctx, plan.Ranges, 0, unlessContext(err)) // 0 parts accepted
		}
	}
}

// renewRegions lists the regions of a table again, while queries go by the list that there is.
func (e *Executor) renewRegions(ctx context.Context, table string) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	began := time.Now()
	regions, err := e.cfg.Store.Regions(ctx, table, nil, nil)
	if err != nil {
		e.cfg.Log.Debug("cannot list regions, parts go by those of before", "table", table, "err", err)
		e.regions.failed(table)
		return
	}
	e.regions.set(table, regions, began)
}

// unlessContext returns err, or nil if err is only the context's end. An unavailable store is a
// separate failure, even if its error wraps the context's.
func unlessContext(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
