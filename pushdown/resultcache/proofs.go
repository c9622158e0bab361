package resultcache

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"downpour/pushdown/store"
)

// ErrUnproven is returned when a cached answer was found under a version token that
// could not be proven: its rows may have changed. What was handed out of the answer
// must not be used. The caller asks again, for a plan without WithProofs.
var ErrUnproven = errors.New("resultcache: it cannot be proven that rows have not changed")

// Proofs are the proofs that cached answers of one request still wait for. The request
// goes on meanwhile: the last call of a proof takes as long as writing a small answer.
type Proofs struct {
	ctx     context.Context // they end with the request, not with the sub-query that needs them
	mu      sync.Mutex
	waiting []func() error
}

type proofsKey struct{}

// WithProofs returns a context in which LookupPlan may find answers that are not proven
// yet. Nothing that was made of them may leave the process before Wait returns nil. ctx
// must not end before that.
func WithProofs(ctx context.Context) (context.Context, *Proofs) {
	p := &Proofs{ctx: ctx}
	return context.WithValue(ctx, proofsKey{}, p), p
}

// ProvenAtOnce returns a context in which LookupPlan finds nothing that is not proven yet,
// whatever ctx allows: for what is made for other requests as well.
func ProvenAtOnce(ctx context.Context) context.Context {
	return context.WithValue(ctx, proofsKey{}, (*Proofs)(nil))
}

type provingKey struct{}

// Proving returns a context in which each part finds out whether its rows were read under a
// version token that held until their end, also where its answer is not to be stored: for
// what is made of a whole plan, which may be kept even if the answers of its parts are too
// large.
func Proving(ctx context.Context) context.Context {
	return context.WithValue(ctx, provingKey{}, true)
}

// isProving tells whether ctx is of Proving.
func isProving(ctx context.Context) bool { return ctx.Value(provingKey{}) != nil }

// proofsOf returns the proofs of a context, nil if its answers must be proven at once.
func proofsOf(ctx context.Context) *Proofs {
	p, _ := ctx.Value(proofsKey{}).(*Proofs)
	return p
}

// add adds a proof to wait for.
func (p *Proofs) add(proof func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.waiting = append(p.waiting, proof)
}

// Pending tells whether Wait may have to wait. Of nil Proofs it is false.
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

// earlyVersion returns a version token of a range, and its proof. A store whose tokens
// are proven when it returns them has none to wait for.
func earlyVersion(ctx context.Context, from store.Versioner, table, family string, r store.KeyRange) (string, func() error, error) {
	if early, ok := from.(store.EarlyVersioner); ok {
		return early.EarlyVersion(ctx, table, family, r)
	}
	version, err := from.Version(ctx, table, family, r)
	return version, func() error { return nil }, err
}
