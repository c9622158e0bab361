package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"downpour/gateway/admin/activity"
	"downpour/gateway/admin/putlog"
	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/metaroutes"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/api/ws"
	"downpour/gateway/live"
	"downpour/gateway/metadata/meta"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/uid"
	"downpour/gateway/web"
	"downpour/gateway/write"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
)

// Extra is something around the core that the core does not need: a folder of gateway/extra. The
// core imports none; a program lists those that it has in Config.Extras.
type Extra struct {
	Name     string
	Settings Settings // its part of the settings; nil if it has none
	// Open makes the extra's parts on a core that does not serve yet. ctx is that of the start.
	Open func(ctx context.Context, c *Core) (Parts, error)
}

// Settings are the settings of an extra: a pointer to a struct whose fields have the tags of
// caarlos0/env, as Config has.
type Settings interface {
	// SetDefaults fills in the defaults that depend on other settings.
	SetDefaults(*Config)
	// Validate returns all faults, each with its variable.
	Validate(*Config) error
}

// SettingsOf returns the settings of an extra by their type, their zero value if the gateway has no such extra.
func SettingsOf[T any](c *Config) *T {
	for _, e := range c.Extras {
		if s, ok := any(e.Settings).(*T); ok {
			return s
		}
	}
	return new(T)
}

// Core is what extras work with: the gateway without them.
type Core struct {
	Config  *Config
	Store   Store
	Log     *slog.Logger
	Memory  *memory.Pool
	Zone    *time.Location // of dates without a time zone; nil is UTC
	Started time.Time
	Ending  <-chan struct{} // closed when the gateway begins to end

	// Names are the UIDs, Tracker what records puts in the meta data, nil if nothing does.
	Names   *uid.Dictionary
	Tracker *meta.Tracker

	// Points takes points, Lately counts them, and Refused logs refused ones. CountPuts counts points that
	// did not come by a route of the core.
	Series    *write.SeriesCache
	Points    *write.Writer
	Lately    *activity.Puts
	Refused   *putlog.Log
	CountPuts func(source activity.Source, stored, refused int)

	// Queries and Metadata answer the core's routes. Ended are the queries of the last minutes.
	Queries     *queryroutes.Handlers
	Metadata    metaroutes.Handlers
	Executor    *dispatch.Executor
	Results     *resultcache.Cache
	ResultBytes int64 // that Results may hold
	Ended       *activity.Queries

	// Live keeps the answers of live queries, Sockets sends them.
	Live    *live.Hub
	Sockets *ws.Server

	Guard   *access.Guard
	Page    http.Handler
	Metrics prometheus.Registerer
	Own     prometheus.Gatherer // the metrics that are stored with this host's

	provided []any
}

// Provided returns what an extra that was opened before provides, by its type; false if none does.
func Provided[T any](c *Core) (found T, ok bool) {
	for _, p := range c.provided {
		if found, ok = p.(T); ok {
			return found, true
		}
	}
	return found, false
}

// ReadOnly reports whether the gateway writes nothing.
func (c *Core) ReadOnly() bool { return c.Config.readOnly() }

// Parts are what an extra adds to the core; all are optional.
type Parts struct {
	// Routes are served by the HTTP API, by their path; see httpio.RouteOf.
	Routes map[string]httpio.Endpoint
	// Pages are served below a first word of a path.
	Pages map[string]http.Handler
	// Jobs run in the background until their context ends.
	Jobs []Job
	// NewSeries takes in series that got a TSMeta, and returns those that are to be passed again. What several
	// extras return is passed again to all of them.
	NewSeries func(ctx context.Context, tsuids []string) (again []string, err error)
	// Report is the text that sockets of operators get.
	Report func(context.Context) ([]byte, error)
	// DropCaches drops what the extra has cached.
	DropCaches func()
	// Provides is what extras that are opened later may use, see Provided.
	Provides any
}

// Job is work in the background.
type Job struct {
	Name string
	Run  func(context.Context)
}

// newCore returns what extras work with.
func (s *Server) newCore() *Core {
	guard := &access.Guard{Tokens: s.tokens, Origins: s.origins, Log: s.log}
	metadata := s.names.handlers(guard)
	return &Core{
		Config:    s.cfg,
		Store:     s.store,
		Log:       s.log,
		Memory:    s.memory,
		Zone:      s.zone,
		Started:   s.started,
		Ending:    s.life.Done(),
		Names:     s.names.Dictionary,
		Tracker:   s.names.tracker,
		Series:    s.writes.series,
		Points:    s.writes.points,
		Lately:    &s.writes.lately,
		Refused:   s.writes.refusals,
		CountPuts: s.writes.countPuts,
		Queries: &queryroutes.Handlers{
			Engine:       s.queries.engine,
			Annotations:  metadata.Annotations,
			Guard:        guard,
			AllowDelete:  s.cfg.AllowDelete,
			Rows:         s.store,
			Limits:       s.limits,
			AnswerLimits: s.cfg.answerLimits(),
			Timeout:      s.cfg.QueryTimeout,
			SubQueries:   s.cfg.subQueries(),
			Now:          s.cfg.Now,
			Zone:         s.zone,
			Fix:          s.fix,
			Running:      s.queries.listed,
			Counter:      s.count,
			Log:          s.log,
		},
		Metadata:    metadata,
		Executor:    s.queries.exec,
		Results:     s.queries.results.Cache,
		ResultBytes: s.queries.results.bytes,
		Ended:       &s.queries.ended,
		Live:        s.live.hub,
		Sockets:     s.live.sockets,
		Guard:       guard,
		Page:        web.Handler(),
		Metrics:     s.count.registry,
		Own:         s.count.own,
	}
}

// openExtras makes the parts of the extras, which come after those of the core.
func (s *Server) openExtras(ctx context.Context) error {
	s.core = s.newCore()
	for _, e := range s.cfg.Extras {
		parts, err := e.Open(ctx, s.core)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		s.extras = append(s.extras, parts)
		if parts.Provides != nil {
			s.core.provided = append(s.core.provided, parts.Provides)
		}
		if parts.NewSeries != nil {
			s.names.newSeries = append(s.names.newSeries, parts.NewSeries)
		}
	}
	if len(s.names.newSeries) > 0 && s.names.tracker != nil {
		s.names.tracker.OnDescribed(s.names.described)
	}
	return nil
}

// report is the text that sockets of operators get.
func (s *Server) report(ctx context.Context) ([]byte, error) {
	for _, e := range s.extras {
		if e.Report != nil {
			return e.Report(ctx)
		}
	}
	return []byte("{}"), nil
}
