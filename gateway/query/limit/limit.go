// Package limit bounds queries: what a query may read from the store, with bounds of
// their own for some metrics, and how many heavy queries may run at once. Every query
// begins light, and becomes heavy when it has read many points or holds much memory. A
// light query never waits.
//
// OpenTSDB's settings, and the environment variables that stand for them:
//
//	tsd.query.limits.data_points.default   DOWNPOUR_LIMIT_POINTS
//	tsd.query.limits.bytes.default         DOWNPOUR_LIMIT_BYTES
//	tsd.query.limits.overrides.config      DOWNPOUR_LIMIT_OVERRIDES
//
// Source: QueryLimitOverride.
package limit

import (
	"context"
	"crypto/rand"

	"downpour/gateway/query"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
)

// Config says what queries may read. As in OpenTSDB, each bound holds for one sub-query;
// 0 means no bound.
type Config struct {
	Points, Bytes int64
	// PointsOverride and BytesOverride allow a query to lift the bound for itself, with
	// overrideDataPointLimit and overrideByteLimit.
	PointsOverride, BytesOverride bool
	// Overrides are the bounds of single metrics; nil for none.
	Overrides *Overrides
	// Heavy bounds how many heavy queries run at once. A query is heavy when it has read
	// HeavyPoints points or holds heavyBytes. If either is 0, there is no bound.
	Heavy       int
	HeavyPoints int64
	// Memory is the pool from which queries reserve the bytes that they hold; nil means
	// no bound.
	Memory *memory.Pool
}

// heavyBytes is the memory at which a query counts as heavy, however few points it has
// read: a fill policy makes many points of two.
const heavyBytes = 64 << 20

// Limits applies the bounds. Its methods may be called from many goroutines.
type Limits struct {
	cfg  Config
	gate *gate // nil if heavy queries are not bounded
}

// New returns the limits of a gateway.
func New(cfg Config) *Limits {
	l := &Limits{cfg: cfg}
	if cfg.Heavy > 0 && cfg.HeavyPoints > 0 {
		l.gate = newGate(cfg.Heavy)
	}
	return l
}

// Entry is one query's share of what all queries have in common: its memory, and its
// slot if it is heavy. It is closed when the answer has been sent.
type Entry struct {
	slot    *heavySlot
	account *memory.Account
	read    tally
}

// Enter returns a context for one query. It carries a random name, by which pushdown
// servers recognise parts of the same query, and an account of the memory that the query
// holds.
func (l *Limits) Enter(ctx context.Context, class memory.Class) (context.Context, *Entry) {
	e := &Entry{slot: &heavySlot{gate: l.gate}, account: l.cfg.Memory.Open(class)}
	if l.gate != nil {
		e.account.Heavy(heavyBytes, e.slot.acquire)
	}

	ctx = operator.WithQuery(ctx, rand.Text())
	ctx = memory.With(ctx, e.account)
	ctx = context.WithValue(ctx, tallyKey{}, &e.read)
	return context.WithValue(ctx, heavySlotKey{}, e.slot), e
}

// Computed says that only sending the answer is left. The query is not heavy any more,
// but holds its memory until Close.
func (e *Entry) Computed() { e.slot.release() }

// Yield gives the slot back while a client takes the points that were made. Unlike after Computed, the query waits
// for a slot again when it reads on.
func (e *Entry) Yield() { e.slot.yield() }

// Close releases the slot and the memory.
func (e *Entry) Close() {
	e.slot.release()
	e.account.Close()
}

// Budget returns what a sub-query may read. When it has read HeavyPoints points, it waits
// for the slot of the query that ctx was made for by Enter.
func (l *Limits) Budget(ctx context.Context, q *query.Query, s *query.SubQuery) operator.Budget {
	points, bytes := l.cfg.Points, l.cfg.Bytes
	// With TSUIDs the name of the metric is passed over, and need not be that of what is read.
	if p, b, ok := l.cfg.Overrides.forMetric(s.Metric); ok && len(s.TSUIDs) == 0 {
		points, bytes = p, b
	}
	// 0 is no bound.
	if q.OverrideDataPointLimit && l.cfg.PointsOverride {
		points = 0
	}
	if q.OverrideByteLimit && l.cfg.BytesOverride {
		bytes = 0
	}

	read := operator.NewBudget(points, bytes)
	budget := operator.Budget(read)
	// Without a gate heavy queries are not bounded.
	if s, ok := ctx.Value(heavySlotKey{}).(*heavySlot); ok && s.gate != nil {
		budget = &gatedBudget{ReadBudget: read, heavyAt: l.cfg.HeavyPoints, slot: s}
	}
	if t, ok := ctx.Value(tallyKey{}).(*tally); ok {
		budget = &talliedBudget{Budget: budget, read: t}
	}
	return budget
}
