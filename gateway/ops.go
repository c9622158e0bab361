package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/gateway/admin/activity"
	"downpour/gateway/admin/putlog"
	"downpour/gateway/api/httpapi/opsroutes"
	"downpour/gateway/api/httpapi/querylog"
	"downpour/gateway/live"
	"downpour/gateway/metadata/seriescount"
	"downpour/gateway/query/dispatch"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
	"downpour/pushdown/rpc/auth"
)

// How much of what there may be a report has.
const (
	opsListed  = 20  // queries of a list, live queries
	opsSeconds = 180 // of puts
)

// operations is what the gateway keeps for its operator.
type operations struct {
	started time.Time
	queries *querylog.Log
	exec    *dispatch.Executor
	results *resultcache.Cache
	cacheOf int64 // bytes that the result cache may hold

	ended activity.Queries
	puts  activity.Puts
	uids  usedUIDs
}

// usedUIDs keeps the counts of UIDs, which are in the store.
type usedUIDs struct {
	mu     sync.Mutex
	asked  time.Time
	last   []opsroutes.UIDs
	failed string
	growth map[encoding.UIDKind]*activity.Growth
}

// askUIDsEvery is how old the counts of UIDs may be.
const askUIDsEvery = time.Minute

// askUIDsTimeout bounds the wait for the store, which may hang: the report must not.
const askUIDsTimeout = time.Second

// newQueryLog returns the log of queries, which tells of those that end.
func (s *Server) newQueryLog() *querylog.Log {
	return &querylog.Log{Slow: querylog.Slow{From: s.cfg.SlowQuery, Log: s.log}, Done: func(d *querylog.Done) {
		s.ops.ended.Add(time.Now(), d.Took, d.Bytes, d.Points, func() *activity.Query {
			return &activity.Query{Route: d.Route, Query: d.Query(), Client: d.Client, Token: d.Token, Request: d.Request, Start: d.Start, Took: d.Took,
				Status: d.Status, Failure: d.Failure, Rows: d.Rows, Points: d.Points, Bytes: d.Bytes, Answered: d.Answered}
		})
	}}
}

// toldRefusal takes in points that were refused.
func (s *Server) toldRefusal(r putlog.Refusal) {
	s.ops.puts.Refused(time.Now(), r.Via, r.Reason, r.Points, r.Err)
	// Without spaces: telnet's stats and /api/stats make tags of labels.
	s.count.refused.WithLabelValues(strings.ReplaceAll(r.Via, " ", "_"), strings.ReplaceAll(r.Reason, " ", "_")).Add(float64(r.Points))
}

// report tells what the gateway does.
func (s *Server) report(ctx context.Context) opsroutes.Report {
	now := time.Now()
	r := opsroutes.Report{Time: now.UnixMilli(), Started: s.ops.started.UnixMilli(), Host: version().Host, Store: s.cfg.Store, Mode: s.cfg.Mode,
		Queries: s.reportQueries(now), Live: s.reportLive(), Memory: reportMemory(s.memory.Stats()), ResultCache: s.reportResultCache(),
		Places: s.reportPlaces(), Puts: s.reportPuts(now)}
	r.UIDs, r.UIDsFailed = s.reportUIDs(ctx, now)
	return r
}

// reportText is report as the socket sends it.
func (s *Server) reportText(ctx context.Context) ([]byte, error) { return json.Marshal(s.report(ctx)) }

// countSeries counts the series of the meta table, for as long as a query may take.
func (s *Server) countSeries(ctx context.Context, top int) (*seriescount.Counts, error) {
	within, cancel := context.WithTimeout(ctx, s.cfg.QueryTimeout)
	defer cancel()
	return seriescount.Run(ctx, within, seriescount.Config{Store: s.store, Table: s.cfg.TableMeta, Schema: s.cfg.Schema(), Names: s.names}, top)
}

// mayOperate tells whether a token may see the report.
func (s *Server) mayOperate(token string) bool { return s.tokens.Check(token)&auth.Admin != 0 }

func (s *Server) reportQueries(now time.Time) opsroutes.Queries {
	q := opsroutes.Queries{Running: []opsroutes.Running{}, Slowest: []opsroutes.Ended{}, Heaviest: []opsroutes.Ended{}}
	for _, x := range s.ops.queries.Running() {
		q.Running = append(q.Running, opsroutes.Running{ID: x.ID, Route: x.Route, Query: x.Query, Client: x.Client, Token: x.Token, Request: x.Request,
			Start: x.Start.UnixMilli(), Elapsed: now.Sub(x.Start).Milliseconds(), Points: x.Cost.Points, Bytes: x.Cost.Bytes, Memory: x.Cost.Memory, EndedBy: x.EndedBy})
	}
	for _, x := range s.ops.ended.Slowest(now, opsListed) {
		q.Slowest = append(q.Slowest, endedQuery(x))
	}
	for _, x := range s.ops.ended.Heaviest(now, opsListed) {
		q.Heaviest = append(q.Heaviest, endedQuery(x))
	}
	return q
}

func endedQuery(x *activity.Query) opsroutes.Ended {
	return opsroutes.Ended{Route: x.Route, Query: x.Query, Client: x.Client, Token: x.Token, Request: x.Request, Start: x.Start.UnixMilli(), Took: x.Took.Milliseconds(),
		Status: x.Status, Failure: x.Failure, Rows: x.Rows, Points: x.Points, Bytes: x.Bytes, Answered: x.Answered}
}

func (s *Server) reportLive() opsroutes.Live {
	stats, held := s.hub.Stats(), s.hub.Held()
	l := opsroutes.Live{Queries: stats.Queries, Subscribers: stats.Subscribers, Sockets: s.stream.Open(), Answers: held.Answer, History: held.History, Sending: held.Sending,
		Listed: []opsroutes.LiveQuery{}}
	var list []live.Listed
	list, l.More = s.hub.List(opsListed)
	for _, x := range list {
		l.Listed = append(l.Listed, opsroutes.LiveQuery{ID: x.ID, Query: x.Query, Expression: x.Exp, Subscribers: x.Subscribers, Bytes: x.Held.Total(), Error: x.Error})
	}
	return l
}

func reportMemory(m memory.Stats) opsroutes.Memory {
	held := []opsroutes.Holder{{Name: "cache", Bytes: m.Caches}}
	for c := range m.Held {
		held = append(held, opsroutes.Holder{Name: memory.Class(c).String(), Bytes: m.Held[c], Refused: m.Refused[c]})
	}
	return opsroutes.Memory{Limit: m.Total, Waiting: m.Waiting, Held: held}
}

func (s *Server) reportResultCache() opsroutes.ResultCache {
	c := s.ops.results.Counts()
	return opsroutes.ResultCache{Limit: s.ops.cacheOf, Bytes: c.Bytes, Entries: c.Entries, Hits: c.Hits, New: c.New, Changed: c.Changed, Unproven: c.Unproven,
		Evictions: c.Evictions, SavedRows: c.SavedRows, SavedBytes: c.SavedBytes, Shared: s.engine.SharedAnswers()}
}

func (s *Server) reportPlaces() opsroutes.Places {
	places, runs := s.ops.exec.Places(s.cfg.TableData)
	p := opsroutes.Places{List: []opsroutes.Place{}, Regions: []opsroutes.Run{}}
	for _, x := range places {
		place := opsroutes.Place{Address: x.Address, Beside: x.Beside, State: x.State, Regions: x.Regions, Parts: x.Parts, Failed: x.Failed, Bytes: x.Bytes,
			Mean: x.Mean.Milliseconds(), Longest: x.Longest.Milliseconds(), LastError: x.LastError}
		if x.LastError != "" {
			place.LastFail = x.LastFail.UnixMilli()
		}
		p.List = append(p.List, place)
	}
	for _, x := range runs {
		p.Regions = append(p.Regions, opsroutes.Run(x))
	}
	return p
}

func (s *Server) reportPuts(now time.Time) opsroutes.Puts {
	l := s.ops.puts.Lately(now, opsSeconds)
	p := opsroutes.Puts{From: l.From * 1000, HTTP: l.Stored[activity.HTTP], Telnet: l.Stored[activity.Telnet], Own: l.Stored[activity.Own], Refused: l.Refused,
		Reasons: []opsroutes.Refusal{}}
	for _, x := range s.ops.puts.Refusals() {
		p.Reasons = append(p.Reasons, opsroutes.Refusal{Via: x.Via, Reason: x.Reason, Points: x.Points, Times: x.Requests, Last: x.Last.UnixMilli(), Error: x.Err})
	}
	return p
}

// reportUIDs returns the counts of UIDs, at most as old as askUIDsEvery.
func (s *Server) reportUIDs(ctx context.Context, now time.Time) ([]opsroutes.UIDs, string) {
	u := &s.ops.uids
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.asked.IsZero() && now.Sub(u.asked) < askUIDsEvery {
		return u.last, u.failed
	}

	ctx, cancel := context.WithTimeout(ctx, askUIDsTimeout)
	defer cancel()
	used, most, err := s.names.Used(ctx)
	u.asked = now
	if err != nil {
		u.failed = err.Error()
		return u.last, u.failed
	}

	if u.growth == nil {
		u.growth = map[encoding.UIDKind]*activity.Growth{}
	}
	u.last, u.failed = []opsroutes.UIDs{}, ""
	for _, kind := range []encoding.UIDKind{encoding.UIDMetric, encoding.UIDTagK, encoding.UIDTagV} {
		g := u.growth[kind]
		if g == nil {
			g = new(activity.Growth)
			u.growth[kind] = g
		}
		g.Add(now, used[kind])
		x := opsroutes.UIDs{Kind: kind.String(), Used: used[kind], Most: most[kind]}
		var within time.Duration
		x.Grown, within = g.Grown()
		x.Within = within.Milliseconds()
		if at, ok := g.Reaches(most[kind]); ok {
			x.RunOut = at.UnixMilli()
		}
		u.last = append(u.last, x)
	}
	return u.last, u.failed
}
