package limit

import (
	"context"
	"sync"
	"time"

	"downpour/pushdown/operator"
)

// patience is how long a heavy query waits for others to end.
const patience = 10 * time.Second

// gate lets some queries through at once.
type gate struct{ slots chan struct{} }

func newGate(slots int) *gate { return &gate{slots: make(chan struct{}, slots)} }

// pass is a query's own: it takes one slot, however many of its parts turn out
// to be heavy.
type pass struct {
	gate *gate

	mu    sync.Mutex
	holds bool
	left  bool
	err   error
}

type passKey struct{}

// heavy waits for a slot, unless the query has one.
func (p *pass) heavy(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holds || p.left || p.err != nil {
		return p.err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case p.gate.slots <- struct{}{}:
		p.holds = true
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		p.err = &operator.LimitError{What: operator.Queries, Limit: int64(cap(p.gate.slots))}
	}
	return p.err
}

// gatedBudget is the budget of a sub-query that must pass the gate once it has read
// more than heavyAt points. It may wait there, before each further block of rows.
type gatedBudget struct {
	*operator.ReadBudget
	heavyAt int64
	pass    *pass
}

// Spend counts what was read and waits at the gate if that is much.
func (b *gatedBudget) Spend(ctx context.Context, points, bytes int64) error {
	if err := b.ReadBudget.Spend(ctx, points, bytes); err != nil {
		return err
	}
	if b.Spent() > b.heavyAt {
		return b.pass.heavy(ctx)
	}
	return nil
}

// leave gives the slot back.
func (p *pass) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holds {
		<-p.gate.slots
	}
	p.holds, p.left = false, true
}
