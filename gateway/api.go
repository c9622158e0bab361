package gateway

import (
	"downpour/gateway/admin/activity"
	"downpour/gateway/api/httpapi"
	"downpour/gateway/api/httpapi/access"
	"downpour/gateway/api/httpapi/adminroutes"
	"downpour/gateway/api/httpapi/dashboardroutes"
	"downpour/gateway/api/httpapi/opsroutes"
	"downpour/gateway/api/httpapi/putroutes"
	"downpour/gateway/api/httpapi/queryroutes"
	"downpour/gateway/dashboard"
	"downpour/gateway/web"
	"time"
)

// api returns the HTTP API with all that its routes work with.
func (s *Server) api() *httpapi.API {
	guard := &access.Guard{Tokens: s.tokens, Origins: s.origins, Log: s.log}
	if s.cfg.AllowImages {
		guard.Picture = queryroutes.IsPicture
	}
	metadata := s.names.handlers(guard)
	return &httpapi.API{
		Put: putroutes.Handlers{Writer: s.writes.points, Rollups: s.writes.rollups, Count: sourceCounter{s.writes, activity.HTTP}, Log: s.writes.refusals},
		Query: queryroutes.Handlers{
			Engine: s.queries.engine, Annotations: metadata.Annotations, Guard: guard,
			AllowDelete: s.cfg.AllowDelete, Rows: s.store,
			Limits: s.limits, AnswerLimits: s.cfg.answerLimits(), Timeout: s.cfg.QueryTimeout, SubQueries: s.cfg.subQueries(),
			Now: s.cfg.Now, Zone: s.zone, Fix: s.fix,
			Running: s.queries.listed, Count: s.count, Log: s.log,
		},
		Meta: metadata, Trees: s.names.treeHandlers(guard, metadata.FlushMeta),
		Admin: adminroutes.Handlers{
			LogLines: s.tail.Lines,
			Ready:    s.Ready, Version: version(), Settings: s.settings(), Profiles: s.cfg.Profiling,
			Stats: s.count.stats, Queries: s.queries.listed, Now: time.Now,
			DropCaches: s.dropCaches,
		},
		Ops: opsroutes.Handlers{Report: s.ops.report, Queries: s.queries.listed, EndLive: s.live.hub.End, Series: s.names.countSeries, Guard: guard, Log: s.log},
		Dashboards: dashboardroutes.Handlers{
			Store:   &dashboard.Store{Cells: s.store, Table: s.cfg.TableState, Now: s.cfg.Now},
			BuiltIn: s.host.dashboards(), Start: s.host.startDashboard,
			ReadOnly: s.readOnly(), Guard: guard, Timeout: s.cfg.QueryTimeout,
		},
		Live: s.live.sockets, Page: web.Handler(), Metrics: s.count.handler(), Tools: s.tools(),
		Guard:  guard,
		Memory: s.memory, WriteTime: s.cfg.PutTimeout,
		Log: s.log,
	}
}
