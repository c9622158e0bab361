package resultcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrUnproven is returned when a cached answer was found under a version token that
// could not be proven: its rows may have changed. Returned parts of the answer must not
// be used. The caller tries again, for a plan without Proofs.
var ErrUnproven = errors.New("resultcache: it cannot be proven that rows have not changed")

// Proofs are the pending proofs of cached answers of one request. The request continues in the
// meantime: the last call of a proof takes as long as writing a small answer.
type Proofs struct {
	ctx     context.Context // they end with the request, not with the sub-query that needs them
	mu      sync.Mutex
	waiting []func() error
}

// NewProofs returns proofs for LookupPlan, which then may find answers that are not yet
// proven. No result of them may leave the process before Wait returns nil. ctx must not
// end before that.
func NewProofs(ctx context.Context) *Proofs { return &Proofs{ctx: ctx} }

// add adds a proof to wait for.
func (p *Proofs) add(proof func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.waiting = append(p.waiting, proof)
}

// Pending reports whether Wait may have to wait. It is false for nil Proofs.
func (p *Proofs) Pending() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) > 0
}

// Wait waits for all proofs. It returns ErrUnproven, with the reason, if one fails. It
// may be called more than once; on nil Proofs it does nothing.
func (p *Proofs) Wait() error {
	if p == nil {
		return nil
	}

	// The lock is not held while proofs are waited for: a sub-query may add its own.
	p.mu.Lock()
	waiting := p.waiting
	p.mu.Unlock()

	for _, proof := range waiting {
		if err := proof(); err != nil {
			return fmt.Errorf("%w: %w", ErrUnproven, err)
		}
	}
	return nil
}
