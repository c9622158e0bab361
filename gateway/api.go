package gateway

import (
	"maps"
	"net/http"
	"time"

	"downpour/gateway/admin/activity"
	"downpour/gateway/api/httpapi"
	"downpour/gateway/api/httpapi/adminroutes"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/api/httpapi/putroutes"
)

// api returns the HTTP API with all that its routes work with.
func (s *Server) api() *httpapi.API {
	c := s.core
	a := &httpapi.API{
		Put: putroutes.Handlers{
			Writer: s.writes.points, Rollups: s.writes.rollups,
			Count: sourceCounter{s.writes, activity.HTTP}, Log: s.writes.refusals,
		},
		Query: c.Queries, Meta: c.Metadata,
		Admin: adminroutes.Handlers{
			LogLines: s.tail.Lines,
			Ready:    s.Ready, Version: version(), Settings: s.settings(), Profiles: s.cfg.Profiling,
			Stats: s.count.stats, Queries: s.queries.listed, Now: time.Now,
			DropCaches: s.dropCaches,
		},
		Live: s.live.sockets, Page: c.Page, Pages: map[string]http.Handler{"ui": c.Page}, Metrics: s.count.handler(),
		Guard: c.Guard, Mode: modes[s.cfg.Mode],
		Memory: s.memory, WriteTime: s.cfg.PutTimeout,
		Log: s.log,
	}
	for _, e := range s.extras {
		a.More = append(a.More, e.Routes)
		maps.Copy(a.Pages, e.Pages)
	}
	return a
}

// modes are the modes that leave routes out.
var modes = map[string]httpio.Mode{"ro": httpio.ReadOnly, "wo": httpio.WriteOnly}
