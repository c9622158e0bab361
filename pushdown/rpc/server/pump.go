package server

import (
	"context"
	"runtime/debug"

	"downpour/encoding/batch"
	"downpour/pushdown/operator"
	"downpour/pushdown/rpc/wire"
)

// pump runs an operator on a goroutine of its own, so that the stream can send
// heartbeats while the operator waits for the store or for a slot.
type pump struct {
	out   chan outcome   // closed when the operator is closed
	stats operator.Stats // as of the last outcome received
}

// outcome is what one call of Next has returned.
type outcome struct {
	record batch.Record
	err    error
}

// startPump runs op when its query has a slot. From then on op belongs to the pump,
// which closes it.
func (s *service) startPump(ctx context.Context, op operator.Operator, query string) *pump {
	p := &pump{out: make(chan outcome)}
	go func() {
		defer func() {
			if v := recover(); v != nil {
				s.cfg.Log.Error("a part panicked as it ended", "panic", v, "stack", string(debug.Stack()))
			}
		}()
		// Closed last: after that op holds no memory.
		defer close(p.out)
		defer op.Close()
		if !s.waitForSlot(ctx, p, query) {
			return
		}

		defer s.slots.release(query)
		s.count.running.Inc()
		defer s.count.running.Dec()
		for p.next(ctx, op) {
		}
	}()
	return p
}

// waitForSlot waits for a slot. It returns false if ctx ends first or the server is
// ending: then the gateway had better begin the part elsewhere.
func (s *service) waitForSlot(ctx context.Context, p *pump, query string) bool {
	s.count.waiting.Inc()
	defer s.count.waiting.Dec()
	if s.slots.acquire(ctx, s.drain, query) {
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

// next passes one outcome on and reports whether another will follow.
func (p *pump) next(ctx context.Context, op operator.Operator) bool {
	r, err := nextRecovered(ctx, op)
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

// nextRecovered calls the operator's Next and returns a panic as an error. The server's
// interceptors recover panics of the call's goroutine only; here one would end the process.
func nextRecovered(ctx context.Context, op operator.Operator) (r batch.Record, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, operator.Recovered(p)
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
