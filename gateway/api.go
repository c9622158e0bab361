package gateway

import (
	"time"

	"downpour/gateway/admin/activity"
	"downpour/gateway/api/httpapi"
	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/adminroutes"
	"downpour/gateway/api/httpapi/dashboardroutes"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/opsroutes"
	"downpour/gateway/api/httpapi/putroutes"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/dashboard"
	"downpour/gateway/web"
)

// newCore returns what extras work with.
func (s *Server) newCore() *Core {
	guard := &access.Guard{Tokens: s.tokens, Origins: s.origins, Log: s.log}
	metadata := s.names.handlers(guard)
	return &Core{
		Config:   s.cfg,
		Guard:    guard,
		Metadata: metadata,
		Queries: &queryroutes.Handlers{
			Engine: s.queries.engine, Annotations: metadata.Annotations, Guard: guard,
			AllowDelete: s.cfg.AllowDelete, Rows: s.store,
			Limits: s.limits, AnswerLimits: s.cfg.answerLimits(), Timeout: s.cfg.QueryTimeout, SubQueries: s.cfg.subQueries(),
			Now: s.cfg.Now, Zone: s.zone, Fix: s.fix,
			Running: s.queries.listed, Counter: s.count, Log: s.log,
		},
	}
}

// api returns the HTTP API with all that its routes work with.
func (s *Server) api() *httpapi.API {
	c := s.core
	a := &httpapi.API{
		Put: putroutes.Handlers{
			Writer: s.writes.points, Rollups: s.writes.rollups,
			Count: sourceCounter{s.writes, activity.HTTP}, Log: s.writes.refusals,
		},
		Query: c.Queries, Meta: c.Metadata, Trees: s.names.treeHandlers(c.Guard, c.Metadata.FlushMeta),
		Admin: adminroutes.Handlers{
			LogLines: s.tail.Lines,
			Ready:    s.Ready, Version: version(), Settings: s.settings(), Profiles: s.cfg.Profiling,
			Stats: s.count.stats, Queries: s.queries.listed, Now: time.Now,
			DropCaches: s.dropCaches,
		},
		Ops: opsroutes.Handlers{Report: s.ops.report, Queries: s.queries.listed, EndLive: s.live.hub.End, Series: s.names.countSeries, Guard: c.Guard, Log: s.log},
		Dashboards: dashboardroutes.Handlers{
			Store:   &dashboard.Store{Cells: s.store, Table: s.cfg.TableState, Now: s.cfg.Now},
			BuiltIn: s.host.dashboards(), Start: s.host.startDashboard,
			ReadOnly: s.readOnly(), Guard: c.Guard, Timeout: s.cfg.QueryTimeout,
		},
		Live: s.live.sockets, Page: web.Handler(), Metrics: s.count.handler(), Tools: s.tools(),
		Guard: c.Guard, Mode: modes[s.cfg.Mode],
		Memory: s.memory, WriteTime: s.cfg.PutTimeout,
		Log: s.log,
	}
	for _, e := range s.extras {
		a.More = append(a.More, e.Routes)
	}
	return a
}

// modes are the modes that leave routes out.
var modes = map[string]httpio.Mode{"ro": httpio.ReadOnly, "wo": httpio.WriteOnly}
