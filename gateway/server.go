package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"downpour/encoding"
	"downpour/gateway/admin/activity"
	"downpour/gateway/admin/logtail"
	"downpour/gateway/admin/putlog"
	"downpour/gateway/admin/retention"
	"downpour/gateway/api/httpapi"
	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/adminroutes"
	"downpour/gateway/api/httpapi/dashboardroutes"
	"downpour/gateway/api/httpapi/opsroutes"
	"downpour/gateway/api/httpapi/putroutes"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/api/listener"
	"downpour/gateway/api/origin"
	"downpour/gateway/api/standby"
	"downpour/gateway/api/telnet"
	"downpour/gateway/api/ws"
	"downpour/gateway/dashboard"
	"downpour/gateway/live"
	"downpour/gateway/metadata/forest"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/limit"
	"downpour/gateway/uid"
	"downpour/gateway/web"
	"downpour/gateway/write"
	compactions "downpour/pushdown/compaction/background"
	"downpour/pushdown/process/lasting"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rollupjob/background"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/rpc/client"
	"downpour/pushdown/store"
)

// Store is what a gateway needs of a store.
type Store = store.Store

// TableNames returns the configured names of the tables.
func (c *Config) TableNames() tables.Names {
	return tables.Names{Data: c.TableData, UID: c.TableUID, Meta: c.TableMeta, Tree: c.TableTree, Rollups: c.RollupTables(), State: c.TableState}
}

// Server is a running gateway.
type Server struct {
	cfg      *Config
	log      *slog.Logger
	tail     *logtail.Tail // the last lines of log
	store    Store
	names    *uid.Dictionary
	series   *write.SeriesCache
	tracker  *meta.Tracker // nil if puts record no meta data
	trees    *forest.Forest
	writer   *write.Writer
	rollups  *write.Rollups
	engine   *engine.Engine
	hub      *live.Hub
	stream   *ws.Server
	tokens   *auth.Tokens
	memory   *memory.Pool
	origins  origin.Rules
	limits   *limit.Limits
	count    *counters
	putLog   *putlog.Log
	standby  *standby.Standby // until the store answers
	listener *listener.Listener
	http     *http.Server
	url      string
	zone     *time.Location // of dates without a time zone; nil is UTC
	fix      query.Fixes
	clients  []*client.Client
	own      own
	// retention gives the deletion of rows that are past to one worker at a time.
	retention retention.Turns
	// rollupWorker makes rollups in the background, nil if none are made.
	rollupWorker *background.Worker
	// compactor compacts rows in the background, nil if it is not to.
	compactor *compactions.Worker
	ops       operations

	cancel     context.CancelFunc // ends the goroutines of background; nil until the store answers
	ending     <-chan struct{}    // closed by cancel
	background sync.WaitGroup
	closing    closeTimeouts
	draining   draining
	fault      fault
	readable   *store.ReadCheck
}

// build makes the components of the server, each from those that it needs.
func (s *Server) build() error {
	schema := s.cfg.Schema()

	servers, err := s.connect()
	if err != nil {
		return err
	}
	bytes, err := s.cfg.ResultCacheBytes()
	if err != nil {
		return err
	}
	s.ops.cacheOf = s.memory.Cache(bytes)
	results := resultcache.New(s.ops.cacheOf, s.log)
	s.count.registry.MustRegister(resultcache.Metrics(results), memory.Metrics(s.memory))

	s.startTracker()
	// Shared: gateways and TSDs on the same HBase change names, too; an embedded store is this
	// process's alone. The names tell the tracker of new UIDs, so the tracker is made first.
	s.names = uid.New(uid.Config{Store: s.store, Table: s.cfg.TableUID, Schema: schema, MaxName: s.cfg.LimitName,
		Bytes: s.memory.Cache(uid.DefaultBytes), Shared: !s.cfg.Embedded(), Assigned: s.assigned, Told: s.forgetMeta, Log: s.log})
	s.trees = s.newTrees()
	// Staged: where the store can order its writes, a new series does not wait until its
	// UIDs are on the disk.
	s.series = write.NewSeries(write.SeriesConfig{Schema: schema, Names: uid.Staged{Dictionary: s.names}, Auto: s.cfg.Auto(),
		Bytes: s.memory.LargeCache(write.SeriesBytes)})

	codec, err := s.cfg.histogramCodec()
	if err != nil {
		return fmt.Errorf("DOWNPOUR_HISTOGRAMS: %w", err)
	}
	// On HBase several shards write at the same time: its servers have logs of their own.
	// pebble has one log, which all writes share, so that several shards would only wait for
	// one another. Large requests are written beside the one shard.
	shards, requestBatchFrom := 4, 0
	if s.cfg.Embedded() {
		shards, requestBatchFrom = 1, write.UsualRequestBatchFrom
	}
	points := write.Config{Schema: schema, Table: s.cfg.TableData, Form: s.cfg.form(), Shards: shards, RequestBatchFrom: requestBatchFrom,
		Allowed: []rune(s.cfg.AllowSpecialChars), Observer: s.observer(), Histograms: codec}
	s.writer = write.New(points, s.store, s.series)

	rollups, err := s.cfg.RollupConfig()
	if err != nil {
		return fmt.Errorf("DOWNPOUR_ROLLUPS: %w", err)
	}
	s.rollups = write.NewRollups(write.RollupsConfig{Config: points, Rollups: rollups, TagKey: s.cfg.RollupTagKey, RawValue: s.cfg.RollupRawValue,
		TagRaw: s.cfg.RollupTagRaw, Made: s.cfg.RollupsMade(), BlockDerived: s.cfg.RollupBlockDerived}, s.store, s.series)

	exec := dispatch.New(dispatch.Config{Store: s.store, SideBySide: s.cfg.Embedded(), Servers: servers, Rollups: s.cfg.RollupTables(), ResultCache: results, Seek: s.cfg.SeekMemory(), HelloTimeout: s.cfg.PushdownPatience, Log: s.log})
	s.ops.exec, s.ops.results, s.ops.queries = exec, results, s.newQueryLog()
	s.engine = engine.New(engine.Config{Names: s.names, Exec: exec,
		Compile: s.cfg.compileWith(rollups), Made: s.prover(rollups), Now: s.cfg.Now, Budget: s.limits.Budget, Log: s.log})
	s.count.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "downpour_query_shared_total",
		Help: "Sub-queries answered by the execution of an equal one."}, func() float64 { return float64(s.engine.SharedAnswers()) }))
	s.retention = s.newTurns()
	if s.rollupWorker, err = s.newRollupWorker(rollups); err != nil {
		return err
	}
	if s.compactor, err = s.newCompactor(); err != nil {
		return err
	}
	feed := s.newFeed()
	s.hub = live.New(live.Config{Ask: s.askLive, OpenSource: feed.Open, Enter: s.enterLive, MaxBytes: s.memory.Cache(live.DefaultMaxBytes), MaxSending: s.memory.Cache(live.DefaultMaxBytes), Memory: s.memory, Log: s.log})
	s.count.registry.MustRegister(liveCounts{s.hub, feed})
	s.stream = ws.New(ws.Config{Hub: s.hub, AllowOrigins: s.origins.Allowed, Authorize: s.mayRead, Ops: s.reportText, AuthorizeOps: s.mayOperate, Log: s.log})
	s.count.registry.MustRegister(opsCounts{s})

	return nil
}

func (s *Server) mayRead(token string) bool { return s.tokens.Check(token)&auth.Read != 0 }

// serve answers clients, and starts what works in the background.
func (s *Server) serve() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.ending = cancel, ctx.Done()
	s.standby.Open(s.lastAnswers(s.inMode(s.api().Handler())), telnet.NewServer(s.telnetConfig()).Serve)

	s.collect(ctx)
	s.retain(ctx)
	s.rollUp(ctx)
	s.compact(ctx)
	s.watchDisk(ctx)
	s.inBackground(ctx, "names", func() { s.names.Watch(ctx) })
	s.inBackground(ctx, "store", func() { store.Tell(ctx, s.store, s.cfg.TableData, encoding.FamilyData, s.log) })
	s.background.Go(func() {
		if err := s.readable.Await(ctx); err != nil {
			s.fail(s.storeError(err))
		}
	})
}

// inBackground does some work until ctx ends. A panic does not end the process.
func (s *Server) inBackground(ctx context.Context, name string, work func()) {
	s.background.Go(func() { lasting.Run(ctx, s.log, name, work) })
}

// api returns the HTTP API with all that its routes work with.
func (s *Server) api() *httpapi.API {
	guard := &access.Guard{Tokens: s.tokens, Origins: s.origins, Log: s.log}
	if s.cfg.AllowImages {
		guard.Picture = queryroutes.IsPicture
	}
	metadata := s.metadataHandlers(guard)
	return &httpapi.API{
		Put: putroutes.Handlers{Writer: s.writer, Rollups: s.rollups, Count: sourceCounter{s, activity.HTTP}, Log: s.putLog},
		Query: queryroutes.Handlers{
			Engine: s.engine, Annotations: metadata.Annotations, Guard: guard,
			AllowDelete: s.cfg.AllowDelete, Rows: s.store,
			Limits: s.limits, AnswerLimits: s.cfg.answerLimits(), Timeout: s.cfg.QueryTimeout, SubQueries: s.cfg.subQueries(),
			Now: s.cfg.Now, Zone: s.zone, Fix: s.fix,
			Running: s.ops.queries, Count: s.count, Log: s.log,
		},
		Meta: metadata, Trees: s.treeHandlers(guard, metadata.FlushMeta),
		Admin: adminroutes.Handlers{
			LogLines: s.tail.Lines,
			Ready:    s.Ready, Version: version(), Settings: s.settings(), Profiles: s.cfg.Profiling,
			Stats: s.stats, Queries: s.ops.queries, Now: time.Now,
			DropCaches: s.dropCaches,
		},
		Ops: opsroutes.Handlers{Report: s.report, Queries: s.ops.queries, EndLive: s.hub.End, Series: s.countSeries, Guard: guard, Log: s.log},
		Dashboards: dashboardroutes.Handlers{
			Store:   &dashboard.Store{Cells: s.store, Table: s.cfg.TableState, Now: s.cfg.Now},
			BuiltIn: s.builtIn(), Start: s.startDashboard,
			ReadOnly: s.cfg.Mode == "ro", Guard: guard, Timeout: s.cfg.QueryTimeout,
		},
		Live: s.stream, Page: web.Handler(), Metrics: s.count.handler(), Tools: s.tools(),
		Guard:  guard,
		Memory: s.memory, WriteTime: s.cfg.PutTimeout,
		Log: s.log,
	}
}

// settings returns the effective settings by their variables, for /api/config.
func (s *Server) settings() map[string]string {
	out := map[string]string{}
	for _, v := range settings.List(s.cfg) {
		out[v.Name] = v.Value
	}
	// Who reads it has another working directory.
	out["DOWNPOUR_STORE"] = s.cfg.StoreAddress()
	return out
}

// Memory returns the process's memory budget in bytes.
func (s *Server) Memory() int64 { return s.memory.Total() }

// URL returns the address of the page and the API.
func (s *Server) URL() string { return s.url }

// Ready returns why puts or queries would fail now, or soon because the server stops, or nil.
// It looks for the tables.
func (s *Server) Ready(ctx context.Context) error {
	if err := s.fault.get(); err != nil {
		return err
	}
	if s.draining.begun.Load() {
		return errStopping
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := tables.Check(ctx, s.store, s.cfg.TableNames()); err != nil {
		return err
	}

	// A gateway that only reads is ready while its disk is full.
	if writable := s.store.Features().Writable; writable != nil && s.cfg.Mode != "ro" {
		return writable()
	}
	return nil
}
