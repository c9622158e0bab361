// Package opspage is what the gateway shows its operator: /api/ops and the page /ops, metrics of
// what no part counts by itself, and counts of series.
package opspage

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"downpour/gateway"
	"downpour/gateway/admin/activity"
	"downpour/gateway/api/httpapi/httpio"
	"downpour/gateway/extra/opspage/opsroutes"
	"downpour/gateway/extra/opspage/seriescount"
	"downpour/gateway/extra/opspage/uidusage"
	"downpour/gateway/live"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/process/version"
)

// How much of what there may be a report has.
const (
	opsListed  = 20  // queries of a list, live queries
	opsSeconds = 180 // of puts
)

// New returns the report, its routes and its page.
func New() gateway.Extra { return gateway.Extra{Name: "operator's page", Open: open} }

func open(_ context.Context, c *gateway.Core) (gateway.Parts, error) {
	o := &operations{Core: c}
	c.Metrics.MustRegister(counts{o})
	h := opsroutes.Handlers{
		Report:  o.report,
		Queries: c.Queries.Running,
		EndLive: c.Live.End,
		Series:  o.countSeries,
		Guard:   c.Guard,
		Log:     c.Log,
	}
	routes := h.Endpoints()
	// The page shows what /api/ops answers, which needs a token's scope.
	routes["ops"] = httpio.Endpoint{Serve: httpio.FromHandler(c.Page), Reads: httpio.Get}
	return gateway.Parts{Routes: routes, Report: o.text}, nil
}

// operations is what the gateway shows its operator.
type operations struct {
	*gateway.Core
	uids usedUIDs
}

// usedUIDs keeps the counts of UIDs, which are in the store.
type usedUIDs struct {
	mu     sync.Mutex
	asked  time.Time
	last   []uidusage.UIDs
	failed string
}

// askUIDsEvery is how old the counts of UIDs may be.
const askUIDsEvery = time.Minute

// askUIDsTimeout bounds the wait for the store, which may hang: the report must not.
const askUIDsTimeout = time.Second

// report is what the gateway does.
func (o *operations) report(ctx context.Context) opsroutes.Report {
	now := time.Now()
	r := opsroutes.Report{
		Time:        now.UnixMilli(),
		Started:     o.Started.UnixMilli(),
		Version:     version.Version,
		Host:        hostName(),
		Store:       o.Config.Store,
		Mode:        o.Config.Mode,
		Queries:     o.reportQueries(now),
		Live:        o.reportLive(),
		Memory:      reportMemory(o.Memory.Stats()),
		ResultCache: o.reportResultCache(),
		Places:      o.reportPlaces(),
		Puts:        o.reportPuts(now),
	}
	r.UIDs, r.UIDsFailed = o.reportUIDs(ctx, now)
	return r
}

// text is report as the socket sends it.
func (o *operations) text(ctx context.Context) ([]byte, error) { return json.Marshal(o.report(ctx)) }

func (o *operations) reportQueries(now time.Time) opsroutes.Queries {
	q := opsroutes.Queries{Running: []opsroutes.Running{}, Slowest: []opsroutes.Ended{}, Heaviest: []opsroutes.Ended{}}
	for _, x := range o.Queries.Running.Running() {
		q.Running = append(q.Running, opsroutes.Running{
			ID:      x.ID,
			Route:   x.Route,
			Query:   x.Query,
			Client:  x.Client,
			Token:   x.Token,
			Request: x.Request,
			Start:   x.Start.UnixMilli(),
			Elapsed: now.Sub(x.Start).Milliseconds(),
			Points:  x.Cost.Points,
			Bytes:   x.Cost.Bytes,
			Memory:  x.Cost.Memory,
			EndedBy: x.EndedBy,
		})
	}
	for _, x := range o.Ended.Slowest(now, opsListed) {
		q.Slowest = append(q.Slowest, endedQuery(x))
	}
	for _, x := range o.Ended.Heaviest(now, opsListed) {
		q.Heaviest = append(q.Heaviest, endedQuery(x))
	}
	return q
}

func endedQuery(x *activity.Query) opsroutes.Ended {
	return opsroutes.Ended{
		Route:    x.Route,
		Query:    x.Query,
		Client:   x.Client,
		Token:    x.Token,
		Request:  x.Request,
		Start:    x.Start.UnixMilli(),
		Took:     x.Took.Milliseconds(),
		Status:   x.Status,
		Failure:  x.Failure,
		Rows:     x.Rows,
		Points:   x.Points,
		Bytes:    x.Bytes,
		Answered: x.Answered,
	}
}

func (o *operations) reportLive() opsroutes.Live {
	stats, held := o.Live.Stats(), o.Live.Held()
	l := opsroutes.Live{
		Queries:     stats.Queries,
		Subscribers: stats.Subscribers,
		Sockets:     o.Sockets.Open(),
		Answers:     held.Answer,
		History:     held.History,
		Sending:     held.Sending,
		Listed:      []opsroutes.LiveQuery{},
	}
	var list []live.Listed
	list, l.More = o.Live.List(opsListed)
	for _, x := range list {
		l.Listed = append(l.Listed, opsroutes.LiveQuery{
			ID:          x.ID,
			Query:       x.Query,
			Expression:  x.Exp,
			Subscribers: x.Subscribers,
			Bytes:       x.Held.Total(),
			Error:       x.Error,
		})
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
	c := o.Results.Counts()
	return opsroutes.ResultCache{
		Limit:      o.ResultBytes,
		Bytes:      c.Bytes,
		Entries:    c.Entries,
		Hits:       c.Hits,
		New:        c.New,
		Changed:    c.Changed,
		Unproven:   c.Unproven,
		Evictions:  c.Evictions,
		SavedRows:  c.SavedRows,
		SavedBytes: c.SavedBytes,
		Shared:     o.Queries.Engine.SharedAnswers(),
	}
}

func (o *operations) reportPlaces() opsroutes.Places {
	places, runs := o.Executor.Places(o.Config.TableData)
	p := opsroutes.Places{List: []opsroutes.Place{}, Regions: []opsroutes.Run{}}
	for _, x := range places {
		place := opsroutes.Place{
			Address:   x.Address,
			Beside:    x.Beside,
			State:     x.State,
			Regions:   x.Regions,
			Parts:     x.Parts,
			Failed:    x.Failed,
			Bytes:     x.Bytes,
			Mean:      x.Mean.Milliseconds(),
			Longest:   x.Longest.Milliseconds(),
			LastError: x.LastError,
		}
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

// sums adds lists of equal length.
func sums(lists ...[]int64) []int64 {
	out := make([]int64, len(lists[0]))
	for _, l := range lists {
		for i, n := range l {
			out[i] += n
		}
	}
	return out
}

func (o *operations) reportPuts(now time.Time) opsroutes.Puts {
	l := o.Lately.Lately(now, opsSeconds)
	p := opsroutes.Puts{
		From:    l.From * 1000,
		HTTP:    sums(l.Stored[activity.HTTP], l.Stored[activity.RemoteWrite], l.Stored[activity.OTLP]),
		Telnet:  l.Stored[activity.Telnet],
		Own:     l.Stored[activity.Own],
		Refused: l.Refused,
		Reasons: []opsroutes.Refusal{},
	}
	for _, x := range o.Lately.Refusals() {
		p.Reasons = append(p.Reasons, opsroutes.Refusal{
			Via:    x.Via,
			Reason: x.Reason,
			Points: x.Points,
			Times:  x.Requests,
			Last:   x.Last.UnixMilli(),
			Error:  x.Err,
		})
	}
	return p
}

// reportUIDs returns the counts of UIDs, at most as old as askUIDsEvery.
func (o *operations) reportUIDs(ctx context.Context, now time.Time) ([]uidusage.UIDs, string) {
	u := &o.uids
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.asked.IsZero() && now.Sub(u.asked) < askUIDsEvery {
		return u.last, u.failed
	}

	ctx, cancel := context.WithTimeout(ctx, askUIDsTimeout)
	defer cancel()
	read, err := uidusage.Read(ctx, o.Names, now)
	u.asked, u.failed = now, ""
	if err != nil {
		u.failed = err.Error()
		return u.last, u.failed
	}
	u.last = read
	return u.last, ""
}

// countSeries counts series, for as long as a query may take.
func (o *operations) countSeries(ctx context.Context, top int) (*seriescount.Counts, error) {
	within, cancel := context.WithTimeout(ctx, o.Config.QueryTimeout)
	defer cancel()
	if flush := o.Metadata.FlushMeta; flush != nil {
		_ = flush(within) // what it could not write is counted with the next point
	}
	return seriescount.Run(ctx, within, seriescount.Config{
		Store:     o.Store,
		Table:     o.Config.TableMeta,
		DataTable: o.Config.TableData,
		Schema:    o.Config.Schema(),
		Names:     o.Names,
		Now:       time.Now,
	}, top)
}

// hostName is this machine's name, "" if it has none.
func hostName() string {
	name, _ := os.Hostname()
	return name
}
