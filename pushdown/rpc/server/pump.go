package server

import (
	"context"
	"fmt"

	"downpour/encoding/batch"
	"downpour/pushdown/operator"
	"downpour/pushdown/rpc/wire"
)

// pump runs an operator on a goroutine of its own, so that the stream can show
// signs of life while the operator waits for the store or for its turn.
type pump struct {
	out   chan outcome // closed when the operator is closed
	stats operator.Stats
}

// outcome is what one Next returned.
type outcome struct {
	record batch.Record
	err    error
}

// start runs op, which from now on belongs to the pump, when its query has a
// slot.
func (s *service) start(ctx context.Context, op operator.Operator, query string) *pump {
	p := &pump{out: make(chan outcome)}
	go func() {
		defer close(p.out)
		defer op.Close()
		if !s.turn(ctx, p, query) {
			return
		}
		defer s.shares.leave(query)
		s.count.running.Inc()
		defer s.count.running.Dec()
		for p.next(ctx, op) {
		}
	}()
	return p
}

// turn waits for a slot. It returns false if ctx ends first, or if the server
// does: the part is then better begun elsewhere.
func (s *service) turn(ctx context.Context, p *pump, query string) bool {
	s.count.waiting.Inc()
	defer s.count.waiting.Dec()
	if s.shares.enter(ctx, s.drain, query) {
		return true
	}
	if ctx.Err() == nil {
		select {
		case p.out <- outcome{err: wire.ErrEnding}:
		case <-ctx.Done():
		}
	}
	return false
}

// next hands one outcome over and tells whether another will follow.
func (p *pump) next(ctx context.Context, op operator.Operator) bool {
	r, err := guarded(ctx, op)
	p.stats = op.Stats() // read by the receiver of the outcome below
	select {
	case p.out <- outcome{r, err}:
		return err == nil
	case <-ctx.Done():
		if r != nil {
			r.Release()
		}
		return false
	}
}

// guarded is Next with a panic as an error.
func guarded(ctx context.Context, op operator.Operator) (r batch.Record, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	return op.Next(ctx)
}

// stop ends the operator and waits for it.
func (p *pump) stop(cancel context.CancelFunc) {
	cancel()
	for o := range p.out {
		if o.record != nil {
			o.record.Release()
		}
	}
}
