// Package limit bounds queries: what one may read from the store, by metric
// where a file says so, and how many of those that read much may run at once.
// A light query waits for nobody: every query begins light, and becomes heavy
// when it has read so much.
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

// Config says what queries may read. The bounds are those of OpenTSDB: each
// holds for one sub-query; 0 is no bound.
type Config struct {
	Points, Bytes int64
	// PointsOverride and BytesOverride let a query lift the bound for itself,
	// by overrideDataPointLimit and overrideByteLimit.
	PointsOverride, BytesOverride bool
	// Overrides are the bounds of single metrics; nil for none.
	Overrides *Overrides
	// Heavy queries run at once; each is one that has read HeavyPoints or holds
	// much memory. 0 is no bound.
	Heavy       int
	HeavyPoints int64
	// Memory is what queries reserve the bytes that they hold from; nil is no
	// bound.
	Memory *memory.Pool
}

// heavyBytes is the memory from which on a query counts as heavy, however few
// points it has read: filling makes many of two.
const heavyBytes = 64 << 20

// Limits judges queries. It is for many goroutines.
type Limits struct {
	cfg  Config
	gate *gate
}

// New returns the limits of a gateway.
func New(cfg Config) *Limits {
	l := &Limits{cfg: cfg}
	if cfg.Heavy > 0 && cfg.HeavyPoints > 0 {
		l.gate = newGate(cfg.Heavy)
	}
	return l
}

// Entry is what one query holds of what all share. It is closed when the answer
// has been sent.
type Entry struct {
	pass    *pass
	account *memory.Account
}

// Enter makes a context of one query, with a name by which pushdown servers know
// its parts and an account of the memory that it holds, of a class.
func (l *Limits) Enter(ctx context.Context, class memory.Class) (context.Context, *Entry) {
	e := &Entry{pass: &pass{gate: l.gate}, account: l.cfg.Memory.Open(class)}
	if l.gate != nil {
		e.account.Heavy(heavyBytes, e.pass.heavy)
	}
	ctx = operator.WithQuery(ctx, rand.Text())
	ctx = memory.With(ctx, e.account)
	return context.WithValue(ctx, passKey{}, e.pass), e
}

// Computed says that what is left is to send the answer: the query is not heavy
// any more, but holds its memory until Close.
func (e *Entry) Computed() { e.pass.leave() }

// Close gives back everything.
func (e *Entry) Close() {
	e.pass.leave()
	e.account.Close()
}

// Budget is what a sub-query may read; heavy ones wait for the others of the
// context's query (see Enter).
func (l *Limits) Budget(ctx context.Context, q *query.Query, s *query.SubQuery) operator.Budget {
	points, bytes := l.cfg.Points, l.cfg.Bytes
	if p, b, ok := l.cfg.Overrides.of(s.Metric); ok && len(s.TSUIDs) == 0 {
		points, bytes = p, b
	}
	if q.OverrideDataPointLimit && l.cfg.PointsOverride {
		points = 0
	}
	if q.OverrideByteLimit && l.cfg.BytesOverride {
		bytes = 0
	}
	budget := operator.NewBudget(points, bytes)
	if p, ok := ctx.Value(passKey{}).(*pass); ok && p.gate != nil {
		return &gatedBudget{ReadBudget: budget, heavyAt: l.cfg.HeavyPoints, pass: p}
	}
	return budget
}
