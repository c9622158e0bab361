package gateway

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"downpour/encoding"
	"downpour/gateway/admin/activity"
	"downpour/gateway/api/httpapi/opsroutes"
	"downpour/gateway/live"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/rpc/auth"
)

// How much of what there may be a report has.
const (
	opsListed  = 20  // queries of a list, live queries
	opsSeconds = 180 // of puts
)

// operations is what the gateway shows its operator.
type operations struct {
	*common
	started time.Time
	names   *names
	writes  *writes
	queries *queries
	live    *liveQueries
	uids    usedUIDs
}

// newOperations returns the reports on the parts, and counts what no part counts by itself.
func newOperations(c *common, started time.Time, n *names, w *writes, q *queries, l *liveQueries) *operations {
	o := &operations{common: c, started: started, names: n, writes: w, queries: q, live: l}
	c.count.registry.MustRegister(opsCounts{o})
	return o
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

// report is what the gateway does.
func (o *operations) report(ctx context.Context) opsroutes.Report {
	now := time.Now()
	r := opsroutes.Report{Time: now.UnixMilli(), Started: o.started.UnixMilli(), Host: version().Host, Store: o.cfg.Store, Mode: o.cfg.Mode,
		Queries: o.reportQueries(now), Live: o.reportLive(), Memory: reportMemory(o.memory.Stats()), ResultCache: o.reportResultCache(),
		Places: o.reportPlaces(), Puts: o.reportPuts(now)}
	r.UIDs, r.UIDsFailed = o.reportUIDs(ctx, now)
	return r
}

// text is report as the socket sends it.
func (o *operations) text(ctx context.Context) ([]byte, error) { return json.Marshal(o.report(ctx)) }

// mayRead reports whether a token may query.
func (c *common) mayRead(token string) bool { return c.tokens.Check(token)&auth.Read != 0 }

// mayOperate reports whether a token may see the report.
func (c *common) mayOperate(token string) bool { return c.tokens.Check(token)&auth.Admin != 0 }

func (o *operations) reportQueries(now time.Time) opsroutes.Queries {
	q := opsroutes.Queries{Running: []opsroutes.Running{}, Slowest: []opsroutes.Ended{}, Heaviest: []opsroutes.Ended{}}
	for _, x := range o.queries.listed.Running() {
		q.Running = append(q.Running, opsroutes.Running{ID: x.ID, Route: x.Route, Query: x.Query, Client: x.Client, Token: x.Token, Request: x.Request,
			Start: x.Start.UnixMilli(), Elapsed: now.Sub(x.Start).Milliseconds(), Points: x.Cost.Points, Bytes: x.Cost.Bytes, Memory: x.Cost.Memory, EndedBy: x.EndedBy})
	}
	for _, x := range o.queries.ended.Slowest(now, opsListed) {
		q.Slowest = append(q.Slowest, endedQuery(x))
	}
	for _, x := range o.queries.ended.Heaviest(now, opsListed) {
		q.Heaviest = append(q.Heaviest, endedQuery(x))
	}
	return q
}

func endedQuery(x *activity.Query) opsroutes.Ended {
	return opsroutes.Ended{Route: x.Route, Query: x.Query, Client: x.Client, Token: x.Token, Request: x.Request, Start: x.Start.UnixMilli(), Took: x.Took.Milliseconds(),
		Status: x.Status, Failure: x.Failure, Rows: x.Rows, Points: x.Points, Bytes: x.Bytes, Answered: x.Answered}
}

func (o *operations) reportLive() opsroutes.Live {
	stats, held := o.live.hub.Stats(), o.live.hub.Held()
	l := opsroutes.Live{Queries: stats.Queries, Subscribers: stats.Subscribers, Sockets: o.live.sockets.Open(), Answers: held.Answer, History: held.History, Sending: held.Sending,
		Listed: []opsroutes.LiveQuery{}}
	var list []live.Listed
	list, l.More = o.live.hub.List(opsListed)
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

func (o *operations) reportResultCache() opsroutes.ResultCache {
	c := o.queries.results.Counts()
	return opsroutes.ResultCache{Limit: o.queries.results.bytes, Bytes: c.Bytes, Entries: c.Entries, Hits: c.Hits, New: c.New, Changed: c.Changed, Unproven: c.Unproven,
		Evictions: c.Evictions, SavedRows: c.SavedRows, SavedBytes: c.SavedBytes, Shared: o.queries.engine.SharedAnswers()}
}

func (o *operations) reportPlaces() opsroutes.Places {
	places, runs := o.queries.exec.Places(o.cfg.TableData)
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

func (o *operations) reportPuts(now time.Time) opsroutes.Puts {
	l := o.writes.lately.Lately(now, opsSeconds)
	p := opsroutes.Puts{From: l.From * 1000, HTTP: l.Stored[activity.HTTP], Telnet: l.Stored[activity.Telnet], Own: l.Stored[activity.Own], Refused: l.Refused,
		Reasons: []opsroutes.Refusal{}}
	for _, x := range o.writes.lately.Refusals() {
		p.Reasons = append(p.Reasons, opsroutes.Refusal{Via: x.Via, Reason: x.Reason, Points: x.Points, Times: x.Requests, Last: x.Last.UnixMilli(), Error: x.Err})
	}
	return p
}

// reportUIDs returns the counts of UIDs, at most as old as askUIDsEvery.
func (o *operations) reportUIDs(ctx context.Context, now time.Time) ([]opsroutes.UIDs, string) {
	u := &o.uids
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.asked.IsZero() && now.Sub(u.asked) < askUIDsEvery {
		return u.last, u.failed
	}

	ctx, cancel := context.WithTimeout(ctx, askUIDsTimeout)
	defer cancel()
	used, most, err := o.names.Used(ctx)
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
