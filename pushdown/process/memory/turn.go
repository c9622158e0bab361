package memory

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Class returns the kind of work that the account is for.
func (a *Account) Class() Class {
	if a == nil {
		return Query
	}
	return a.class
}

// Turn is for a request that was refused memory because others held it, and has released what it
// can: it waits until it may try again. One account of the pool has the turn at a time, so that
// refused requests do not take the memory from each other again. They get it in the order of their
// calls. end passes it to the next one; it must be called.
//
// Turn returns refused, with other numbers, if the turn does not come within patience or if the
// memory that the request still holds blocks all others, and the cause of ctx's end.
func (a *Account) Turn(ctx context.Context, refused *BusyError, patience time.Duration) (end func(), err error) {
	if a == nil {
		return func() {}, nil
	}
	p := a.pool
	w := &waiter{account: a, bytes: refused.Need, done: make(chan error, 1)}
	p.mu.Lock()
	p.turns = append(p.turns, w)
	p.nextTurnLocked()
	// A waiter here releases nothing.
	p.breakDeadlockLocked()
	p.mu.Unlock()

	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err = <-w.done:
	case <-ctx.Done():
		err = p.stopWaiting(&p.turns, w, context.Cause(ctx))
	case <-timer.C:
		err = p.stopWaiting(&p.turns, w, &BusyError{Need: w.bytes, Total: p.total})
	}
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(p.endTurn), nil
}

// nextTurnLocked gives the turn to the next account that waits for it, if no account has it.
func (p *Pool) nextTurnLocked() {
	if p.turn == nil && len(p.turns) > 0 {
		w := p.turns[0]
		p.turns = slices.Delete(p.turns, 0, 1)
		p.turn = w.account
		w.done <- nil
	}
}

// endTurn takes the turn from the account that has it.
func (p *Pool) endTurn() {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.turn = nil
	p.nextTurnLocked()
}
