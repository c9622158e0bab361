// Package changefeed keeps the answers of live queries up to date from the rows. At each tick it
// finds the rows that have changed, reads those, and updates the views of package incremental. It
// is the live.Source of a gateway.
//
//	rows ──▶ finder: which have changed ──▶ view (package incremental) ──▶ live.Answer
//
// The embedded store itself reports which rows have changed (watched). HBase does not;
// its rows are scanned at two speeds (poller). Each tick compiles the query again with
// its end at now. While only the bounds of the answer move, the views are kept. When
// anything else in a plan is different (the hours that it reads, the tag values of a
// wildcard), the view is loaded again, as a fresh query would be run.
//
// A sub-query is run in full at each tick instead if incremental.Covers refuses its
// plan, if its view would take more memory than Config.ViewBytes, or if there is no row
// to read. After any fault in an update the view is loaded again: there is one answer,
// that of the rows.
//
// The metrics of a request for expressions are sub-queries, too. When one of them has
// changed, the tables are computed again from the groups that the views hold.
package changefeed

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"downpour/gateway/live"
	"downpour/gateway/query"
	"downpour/gateway/query/engine"
	"downpour/gateway/query/exp"
	"downpour/pushdown/store"
)

// Config is what a Feed works with.
type Config struct {
	// Engine compiles and runs queries.
	Engine *engine.Engine
	// Store is the store that the engine reads. Rows are read from it.
	Store store.Reader
	// Zone is the time zone of dates in a query that names none. Nil is UTC.
	Zone *time.Location
	// Fix lists OpenTSDB's known errors that queries are answered without.
	Fix query.Fixes
	// SubQueries bounds the sub-queries of one query, see query.Parser.
	SubQueries int
	// Timeout bounds one tick. Default 30 s.
	Timeout time.Duration
	// Refusal words an error for the client. It may return err itself.
	Refusal func(err error) error
	// ViewBytes bounds the memory of one view. Default 128 MiB.
	ViewBytes int64
	// Poll is how rows of a store that cannot be watched are scanned for changes.
	Poll Poll
	// Log gets what goes wrong. Default slog.Default().
	Log *slog.Logger
}

func (c *Config) setDefaults() {
	live.SetDefault(&c.Timeout, 30*time.Second)
	live.SetDefault(&c.ViewBytes, 128<<20)
	if c.Refusal == nil {
		c.Refusal = func(err error) error { return err }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Poll.setDefaults()
}

// Feed opens the sources of live queries over one store.
type Feed struct {
	cfg   Config
	stats stats
}

type stats struct{ whole, loads, continued, late, changed, rows atomic.Int64 }

// Stats counts what was done for all live queries since the start.
type Stats struct {
	FullRuns  int64 // sub-queries that were run in full at a tick
	Loads     int64 // views loaded, first or again
	Continued int64 // of these, and of views loaded for late points: begun with older hours from the result cache
	Late      int64 // scans for late points
	Changed   int64 // rows found changed
	Rows      int64 // rows read again because of them
}

// New returns the feed of a store.
func New(cfg Config) *Feed {
	cfg.setDefaults()
	return &Feed{cfg: cfg}
}

// Stats returns the present counts.
func (f *Feed) Stats() Stats {
	s := &f.stats
	return Stats{s.whole.Load(), s.loads.Load(), s.continued.Load(), s.late.Load(), s.changed.Load(), s.rows.Load()}
}

// Open returns the source of a live query.
func (f *Feed) Open(q live.Question) live.Source {
	s := &source{feed: f, changed: make(chan struct{}, 1), fresh: true}
	if q.Exp {
		s.question = &expQuestion{body: q.Body}
	} else {
		s.question = plainQuestion{q.Body}
	}
	return s
}

// question is what a source answers, in one of its forms.
type question interface {
	// read returns the query that reads the rows of the answer.
	read(ctx context.Context, p query.Parser) (*query.Query, error)

	// answer makes the answer from each sub-query's news. whole is set if it must be complete. The
	// error may be an *exp.DataError, after which the next tick tries again with the changes since.
	answer(ctx context.Context, subs []*subQuery, all []news, whole bool) (live.Answer, error)

	// bytes returns the memory of the question without its sub-queries.
	bytes() int64
}

// source answers one live query. It implements live.Source.
type source struct {
	feed     *Feed
	question question
	subs     []*subQuery
	fresh    bool          // the next answer is the first, or the first after an error
	last     time.Time     // of the last tick
	changed  chan struct{} // holds one value
}

// Changed gets a value when a watched row has changed. It is nil for a store that
// cannot be watched.
func (s *source) Changed() <-chan struct{} {
	if s.feed.cfg.Store.Features().Watch == nil {
		return nil
	}
	return s.changed
}

// Close frees the views and ends the watches.
func (s *source) Close() { s.reset() }

// signalChanged signals on Changed that there may be news. It never blocks.
func (s *source) signalChanged() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// reset drops everything: the next answer is loaded from the rows.
func (s *source) reset() {
	for _, sub := range s.subs {
		sub.close()
	}
	s.subs, s.fresh = nil, true
}

// Next answers the query as of now.
func (s *source) Next(ctx context.Context, now time.Time) (live.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.feed.cfg.Timeout)
	defer cancel()

	// When the clock was set back, points that were shown may now be in the future. Views can only
	// move forward.
	if now.Before(s.last) {
		s.reset()
	}
	s.last = now

	a, err := s.update(ctx, now)
	var data *exp.DataError
	if errors.As(err, &data) {
		// The client gets an error, and then a whole answer: changes of this one were never
		// sent.
		s.fresh = true // the views are as they should be
		return live.Answer{}, s.feed.cfg.Refusal(err)
	}
	if err != nil {
		s.reset()
		return live.Answer{}, s.feed.cfg.Refusal(err)
	}

	// The hub has no answer that the first one could be a change of.
	if s.fresh {
		a.Kept = nil
	}
	s.fresh = false
	return a, nil
}

// update compiles the query with its end at now and updates each sub-query.
func (s *source) update(ctx context.Context, now time.Time) (live.Answer, error) {
	cfg := &s.feed.cfg
	q, err := s.question.read(ctx, query.Parser{Now: now, Zone: cfg.Zone, Fix: cfg.Fix, SubQueries: cfg.SubQueries})
	if err != nil {
		return live.Answer{}, err
	}
	prepared, err := cfg.Engine.Prepare(ctx, q)
	if err != nil {
		return live.Answer{}, err
	}

	// There are none at the first tick, after an error, and after the clock was set back.
	if len(prepared) != len(s.subs) {
		s.reset()
		for range prepared {
			s.subs = append(s.subs, &subQuery{source: s, feed: s.feed})
		}
	}

	all := make([]news, len(s.subs))
	for i, sub := range s.subs {
		if all[i], err = sub.update(ctx, &prepared[i], now); err != nil {
			return live.Answer{}, err
		}
	}
	a, err := s.question.answer(ctx, s.subs, all, s.fresh)
	if err != nil {
		return a, err
	}

	a.Held = s.question.bytes()
	for _, sub := range s.subs {
		a.Held += sub.bytes()
		a.Rows += sub.rowsRead
		a.Damaged += sub.damaged //fault:live-damaged-rows-untold TestFix_damagedElsewhere
	}
	// Not after the query's end: the views of expressions reach to the end of their rows, and
	// so does their watermark.
	a.FinalBefore = min(s.finalBefore(now), q.End)
	return a, nil
}

// finalBefore returns the earliest watermark of all sub-queries, see
// live.Answer.FinalBefore. It is 0 if any sub-query has no view, because nothing
// is known about its series.
func (s *source) finalBefore(now time.Time) int64 {
	if len(s.subs) == 0 { // without metrics nothing is known of any point
		return 0
	}

	final := int64(math.MaxInt64)
	for _, sub := range s.subs {
		if sub.view == nil {
			return 0
		}
		final = min(final, sub.view.FinalBefore(now.UnixMilli()))
	}
	return final
}
