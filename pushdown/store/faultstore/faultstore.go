// Package faultstore wraps a store.Store and makes calls slow or fail by rule:
// the third Next of a scan, every Apply to one table, one Get in ten. Tests of
// what stands above a store use it to see what the caller does then. The same
// rules and the same calls, in the same order, always fail alike.
package faultstore

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"downpour/pushdown/store"
)

// Op names the calls that a rule is about.
type Op string

// The calls of a store; AnyOp is all of them.
const (
	AnyOp         Op = ""
	Scan          Op = "scan" // the opening of a scan
	Next          Op = "next" // Next of any scan
	Get           Op = "get"
	Regions       Op = "regions"
	Apply         Op = "apply"
	Increment     Op = "increment"
	CompareAndPut Op = "compare and put"
	Mark          Op = "mark"
)

// Rule makes calls slow, or fail, or both. Of the calls that Op and Table
// select, Nth or Chance choose; without either all are chosen.
type Rule struct {
	Op    Op
	Table string // empty: any
	// Nth chooses one call, counted from 1 over all scans and goroutines.
	Nth int
	// Chance chooses each call with this probability, by a generator that
	// starts with Seed.
	Chance float64
	Seed   uint64
	// Delay is waited first; a context that ends meanwhile ends the call.
	Delay time.Duration
	// Err is returned. Nil: the call goes on after its delay.
	Err error
	// After returns Err after the call was made: a reply that got lost. The
	// write has happened, the rows are gone.
	After bool
}

// Store is the wrapped store. It has store.Admin, which no rule touches, as
// long as the inner store has.
type Store struct {
	store.Store
	mu    sync.Mutex
	rules []*counted
}

// counted is a rule with its memory.
type counted struct {
	Rule
	seen, hit int
	rng       *rand.Rand
}

// New wraps inner. Of several rules that choose a call all delays are waited;
// the first error counts.
func New(inner store.Store, rules ...Rule) *Store {
	s := &Store{Store: inner}
	for _, r := range rules {
		s.rules = append(s.rules, &counted{Rule: r, rng: rand.New(rand.NewPCG(r.Seed, 0))})
	}
	return s
}

// Hits tells how many calls each rule has chosen so far, in the order of New.
func (s *Store) Hits() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	hits := make([]int, len(s.rules))
	for i, r := range s.rules {
		hits[i] = r.hit
	}
	return hits
}

// fault is what happens to one call.
type fault struct {
	delay         time.Duration
	before, after error
}

// choose asks all rules about a call.
func (s *Store) choose(op Op, table string) (f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if !r.chooses(op, table) {
			continue
		}
		r.hit++
		f.delay += r.Delay
		switch {
		case r.Err == nil || f.before != nil:
		case !r.After:
			f.before = fmt.Errorf("%s of table %q, call %d: %w", op, table, r.seen, r.Err)
		case f.after == nil:
			f.after = fmt.Errorf("reply to %s of table %q, call %d: %w", op, table, r.seen, r.Err)
		}
	}
	return f
}

// chooses counts a call and tells whether the rule takes it.
func (r *counted) chooses(op Op, table string) bool {
	if r.Op != AnyOp && r.Op != op || r.Table != "" && r.Table != table {
		return false
	}
	r.seen++
	return (r.Nth == 0 || r.seen == r.Nth) && (r.Chance == 0 || r.rng.Float64() < r.Chance)
}

// call makes a call as the rules want it.
func call[T any](ctx context.Context, s *Store, op Op, table string, do func() (T, error)) (T, error) {
	var none T
	f := s.choose(op, table)
	if err := wait(ctx, f.delay); err != nil {
		return none, err
	}
	if f.before != nil {
		return none, f.before
	}
	got, err := do()
	if f.after == nil {
		return got, err
	}
	if c, ok := any(got).(io.Closer); ok && err == nil {
		_ = c.Close() // a scan that its caller never hears of
	}
	return none, f.after
}

// wait waits for d or the context's end.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
