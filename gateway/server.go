package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/gateway/admin/logtail"
	"downpour/gateway/api/listener"
	"downpour/gateway/api/origin"
	"downpour/gateway/api/standby"
	"downpour/gateway/api/telnet"
	"downpour/gateway/metadata/tables"
	"downpour/gateway/query"
	"downpour/gateway/query/limit"
	"downpour/pushdown/process/lasting"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/process/settings"
	"downpour/pushdown/rpc/auth"
	"downpour/pushdown/rpc/proof"
	"downpour/pushdown/store"
)

// Store is what a gateway needs of a store.
type Store = store.Store

// TableNames returns the configured names of the tables.
func (c *Config) TableNames() tables.Names {
	return tables.Names{
		Data:    c.TableData,
		UID:     c.TableUID,
		Meta:    c.TableMeta,
		Tree:    c.TableTree,
		Rollups: c.RollupTables(),
		State:   c.TableState,
	}
}

// common is what all parts of a gateway work with.
type common struct {
	cfg     *Config
	log     *slog.Logger
	count   *counters
	memory  *memory.Pool
	limits  *limit.Limits
	tokens  *auth.Tokens
	keys    func() ([]proof.Key, error) // of the admin tokens; nil unless pushdown servers are found
	origins origin.Rules
	zone    *time.Location // of dates without a time zone; nil is UTC
	fix     query.Fixes
	store   Store // nil until it answers
}

// readOnly reports whether the gateway writes nothing.
func (c *common) readOnly() bool { return c.cfg.readOnly() }

// parser returns what reads queries at a moment.
func (c *common) parser(now time.Time) query.Parser {
	return query.Parser{Now: now, Zone: c.zone, Fix: c.fix, SubQueries: c.cfg.subQueries()}
}

// Server is a running gateway: its parts, its port, and what ends them in order.
type Server struct {
	common
	tail *logtail.Tail // the last lines of the log

	// The parts, each made of those before it; nil until the store answers.
	names   *names
	writes  *writes
	queries *queries
	live    *liveQueries
	core    *Core
	extras  []Parts

	standby  *standby.Standby // until the store answers
	listener *listener.Listener
	http     *http.Server
	url      string
	started  time.Time

	life       context.Context    // of the goroutines of background; nil until the parts are made
	end        context.CancelFunc // of life
	serving    bool               // since the store answers
	background sync.WaitGroup
	closing    closeTimeouts
	draining   draining
	fault      fault
	readable   *store.ReadCheck
}

// build makes the parts of the server.
func (s *Server) build(ctx context.Context) error {
	rollups, err := s.cfg.RollupConfig()
	if err != nil {
		return fmt.Errorf("DOWNPOUR_ROLLUPS: %w", err)
	}
	results, err := newResultCache(&s.common)
	if err != nil {
		return err
	}
	s.names = newNames(&s.common)
	if s.writes, err = newWrites(&s.common, s.names, rollups); err != nil {
		return err
	}
	if s.queries, err = newQueries(&s.common, s.names, rollups, results); err != nil {
		return err
	}
	s.live = newLiveQueries(&s.common, s.queries, s.report)
	s.life, s.end = context.WithCancel(context.Background())
	return s.openExtras(ctx)
}

// serve answers clients, and starts what works in the background.
func (s *Server) serve() {
	ctx := s.life
	s.serving = true
	s.standby.Open(s.lastAnswers(s.api().Handler()), telnet.NewServer(s.telnetConfig()).Serve)

	// A panic in one of them does not end the process.
	start := func(name string, work func(context.Context)) {
		s.background.Go(func() { lasting.Run(ctx, s.log, name, func() { work(ctx) }) })
	}
	for _, e := range s.extras {
		for _, job := range e.Jobs {
			start(job.Name, job.Run)
		}
	}
	if s.cfg.findsPushdown() {
		start("pushdown servers", s.queries.findServers)
	}
	start("names", s.names.Watch)
	start("store", func(ctx context.Context) { store.Tell(ctx, s.store, s.cfg.TableData, encoding.FamilyData, s.log) })
	s.background.Go(func() {
		if err := s.readable.Await(ctx); err != nil {
			s.fail(s.storeError(err))
		}
	})
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
