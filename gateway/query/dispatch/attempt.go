package dispatch

import (
	"context"
	"io"
	"time"

	"downpour/encoding/scanplan"
	"downpour/pushdown/operator"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
)

// attempt executes a part at a place and collects its records until the part has
// ended. The records of a failed attempt are incomplete and must not be used.
func (r *run) attempt(ctx context.Context, p *pendingPart, of *runningAttempt) (a partAttempt) {
	a = partAttempt{part: p, of: of, place: of.place, began: time.Now()}
	// A panic on this goroutine would end the process; it fails the attempt instead.
	defer func() {
		if v := recover(); v != nil {
			a.err = operator.Recovered(v)
		}
	}()

	op, err := r.open(&scanplan.Part{Plan: *r.plan, Range: p.Range, Mode: p.Mode}, of)
	if err != nil {
		a.err = err
		return a
	}
	defer op.Close()

	a.lease = memory.NewLease(ctx)
	for {
		rec, err := op.Next(ctx)
		a.stats = op.Stats()
		if err == io.EOF {
			return a
		}
		if err != nil {
			a.err = err
			return a
		}

		// It belongs to the attempt even if it is refused: finishAttempt gives all of
		// them back.
		a.records = append(a.records, rec)
		n := operator.RecordBytes(rec)
		if !of.second {
			a.err = r.reserve(n)
		}
		if a.err == nil {
			a.err = a.lease.Reserve(n)
		}
		if a.err != nil {
			return a
		}
	}
}

// open starts a part at the place of an attempt.
func (r *run) open(part *scanplan.Part, of *runningAttempt) (operator.Operator, error) {
	if !of.place.remote() {
		cache := r.e.cfg.ResultCache
		if r.opts.Uncached {
			cache = nil
		}
		return resultcache.Open(cache, r.e.cfg.Store, part,
			operator.Options{
				Mem:        r.e.cfg.Mem,
				Prefixes:   r.e.cfg.Seek,
				SideBySide: r.e.cfg.SideBySide,
				Budget:     of.budget,
				Proving:    r.opts.Proving,
			})
	}
	return of.place.server.Open(part, of.budget)
}

// reserve counts n bytes against the plan's MaxBytes, which bounds all parts of a run
// together. The error is an *operator.LimitError.
func (r *run) reserve(n int64) error {
	held := r.heldBytes.Add(n)
	if limit := r.plan.MaxBytes; limit > 0 && held > limit { //fault:memory-bound-ignored TestRun_errors
		return &operator.LimitError{Limit: limit, Need: held}
	}
	return nil
}
