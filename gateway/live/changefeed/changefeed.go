// Package changefeed keeps the answers of live queries up to date from the rows: it
// finds out which rows have changed, reads those, and has the standing answers
// (package standing) changed by them. It is the live.Source of a gateway.
//
// Which rows have changed, the embedded store tells itself (watched); HBase does
// not, and is looked through at two speeds (polled). Each tick prepares the query
// anew with its end at now; while only the bounds of the answer move, the tables
// stand, and when anything else in a plan is different (the hours read, the tag
// values that a wildcard means) the table is made anew, as a fresh query would be.
//
// What is asked whole at each tick instead: sub-queries that standing.Covers
// refuses, those whose table would take more memory than Config.TableBytes, those
// without any row to read, and all on a store that is neither watched nor polled.
// Whatever goes wrong on the way of changes makes the table anew: there is one
// answer, that of the rows.
package changefeed

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"downpour/gateway/live"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/pushdown/store"
)

// Config is what followers work with.
type Config struct {
	Engine *engine.Engine
	// Store is where rows are read from: that of the engine.
	Store store.Reader
	// Zone is the zone of dates in a query that names none, nil for UTC.
	Zone *time.Location
	// Fix are the known errors that queries are answered without.
	Fix query.Fixes
	// SubQueries bounds those of one query, see query.Parser.
	SubQueries int
	// Timeout bounds one tick. Default 30 s.
	Timeout time.Duration
	// Refusal words an error for the client; it may return err itself.
	Refusal func(err error) error
	// TableBytes bounds one standing answer. Default 128 MiB.
	TableBytes int64
	Poll       Poll // how a store that cannot be watched is looked through
	Log        *slog.Logger
}

func (c *Config) setDefaults() {
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.TableBytes <= 0 {
		c.TableBytes = 128 << 20
	}
	if c.Refusal == nil {
		c.Refusal = func(err error) error { return err }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Poll.setDefaults()
}

// Followers makes sources.
type Followers struct {
	cfg   Config
	stats stats
}

type stats struct{ whole, loads, late, changed, rows atomic.Int64 }

// Stats counts what was done for all live queries since the start.
type Stats struct {
	Whole   int64 // sub-queries asked whole
	Loads   int64 // tables made, or made anew
	Late    int64 // times that rows were looked through for late points
	Changed int64 // rows found changed
	Rows    int64 // rows read again because of them
}

// New returns followers of a store.
func New(cfg Config) *Followers {
	cfg.setDefaults()
	return &Followers{cfg: cfg}
}

// Stats returns the counts of now.
func (f *Followers) Stats() Stats {
	s := &f.stats
	return Stats{s.whole.Load(), s.loads.Load(), s.late.Load(), s.changed.Load(), s.rows.Load()}
}

// Follow returns the source of a query, a body of POST /api/query.
func (f *Followers) Follow(body json.RawMessage) live.Source {
	return &source{of: f, body: body, changed: make(chan struct{}, 1), fresh: true}
}

// source is one query.
type source struct {
	of      *Followers
	body    json.RawMessage
	subs    []*sub
	fresh   bool // the next answer is the first, or the first after an error
	last    time.Time
	changed chan struct{}
}

// Changed gets a value when a watched row has changed. It is nil for a store
// that cannot be watched.
func (s *source) Changed() <-chan struct{} {
	if _, ok := s.of.cfg.Store.(store.Watcher); !ok {
		return nil
	}
	return s.changed
}

// Close ends the following.
func (s *source) Close() { s.drop() }

// wake says that there may be news; it never blocks.
func (s *source) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// drop forgets everything: the next answer is made anew.
func (s *source) drop() {
	for _, sub := range s.subs {
		sub.close()
	}
	s.subs, s.fresh = nil, true
}

// Next answers the query as of now.
func (s *source) Next(ctx context.Context, now time.Time) (live.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.of.cfg.Timeout)
	defer cancel()
	if now.Before(s.last) {
		s.drop() // the clock was put back: what was shown may not be any more
	}
	s.last = now
	a, err := s.next(ctx, now)
	if err != nil {
		s.drop()
		return live.Answer{}, s.of.cfg.Refusal(err)
	}
	if s.fresh {
		a.Kept = nil
	}
	s.fresh = false
	return a, nil
}

func (s *source) next(ctx context.Context, now time.Time) (live.Answer, error) {
	q, err := query.Parser{Now: now, Zone: s.of.cfg.Zone, Fix: s.of.cfg.Fix, SubQueries: s.of.cfg.SubQueries}.JSON(s.body)
	if err != nil {
		return live.Answer{}, err
	}
	prepared, err := s.of.cfg.Engine.Prepare(ctx, q)
	if err != nil {
		return live.Answer{}, err
	}
	if len(prepared) != len(s.subs) {
		s.drop()
		for range prepared {
			s.subs = append(s.subs, &sub{source: s, of: s.of})
		}
	}
	a := live.Answer{Kept: map[int]bool{}}
	for i, sub := range s.subs {
		if err := sub.next(ctx, &prepared[i], now, &a); err != nil {
			return a, err
		}
		a.Held += sub.bytes()
		a.Rows += sub.rows
	}
	a.FinalBefore = s.final(now)
	return a, nil
}

// final is the time before which nothing changes while points come in order: 0
// if any sub-query is asked whole.
func (s *source) final(now time.Time) int64 {
	if len(s.subs) == 0 {
		return 0
	}
	final := int64(math.MaxInt64)
	for _, sub := range s.subs {
		if sub.table == nil {
			return 0
		}
		final = min(final, sub.table.Final(now.UnixMilli()))
	}
	return final
}

// errWhole says that a sub-query is to be asked whole from now on.
var errWhole = errors.New("follow: asked whole")
