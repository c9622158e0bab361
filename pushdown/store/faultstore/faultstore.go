// Package faultstore wraps a store.Store and makes calls slow, or makes them fail, by
// rules: the third Next of a scan, every Apply to one table, one Get in ten. Tests use
// it to see what a caller of a store does then. The same calls in the same order,
// under the same rules, always fail alike.
package faultstore

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"downpour/pushdown/process/wait"
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
	Version       Op = "version"
	Replace       Op = "replace"
)

// Rule makes calls slow, or makes them fail, or both. Of the calls that Op and Table
// select, Nth or Chance choose some; without either all are chosen.
type Rule struct {
	Op    Op
	Table string // empty: any
	// Nth chooses one call, counted from 1 over all scans and goroutines.
	Nth int
	// Chance is the probability with which each call is chosen, by a generator
	// that starts with Seed.
	Chance float64
	Seed   uint64
	// Delay is how long a call waits first. The end of its context ends the call.
	Delay time.Duration
	// Err is what the call returns; if it is nil, the call is made after its delay.
	Err error
	// After is set if Err is returned after the call was made, as when a reply gets
	// lost: a write has happened, and the rows of a read are lost.
	After bool
}

// Store is a store whose calls obey rules, except those of store.Admin. It does not embed the wrapped
// store: no call may bypass the rules by oversight.
type Store struct {
	inner store.Store
	scans atomic.Int64 // that are open
	mu    sync.Mutex
	rules []*counted
}

// counted is a rule with its state.
type counted struct {
	Rule
	seen, hit int // calls that Op and Table have selected; of these, that were chosen
	rng       *rand.Rand
}

// New wraps inner. If several rules choose a call, it waits for the sum of their
// delays and returns the first of their errors, one without After before one with it.
func New(inner store.Store, rules ...Rule) *Store {
	s := &Store{inner: inner}
	s.Set(rules...)
	return s
}

// Set replaces all rules, as those of New.
func (s *Store) Set(rules ...Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
	for _, r := range rules {
		s.rules = append(s.rules, &counted{Rule: r, rng: rand.New(rand.NewPCG(r.Seed, 0))})
	}
}

// OpenScans returns how many scanners are open.
func (s *Store) OpenScans() int64 { return s.scans.Load() }

// Hits returns how many calls each rule has chosen so far, in the order of New.
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

// hungUp is an error that wraps io.EOF, too, as that of a server which has closed its connection.
// It is no end of a scan.
type hungUp struct{ error }

// Unwrap returns the fault and io.EOF.
func (h hungUp) Unwrap() []error { return []error{h.error, io.EOF} }

// choose returns what the rules make happen to a call.
func (s *Store) choose(op Op, table string) (f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if !r.chooses(op, table) {
			continue
		}
		r.hit++
		f.delay += r.Delay
		// The first rule with an error of a kind wins. With errors of both kinds the call is not
		// made.
		switch {
		case r.Err == nil || f.before != nil:
		case !r.After:
			f.before = hungUp{fmt.Errorf("%s of table %q, call %d: %w", op, table, r.seen, r.Err)}
		case f.after == nil:
			f.after = hungUp{fmt.Errorf("reply to %s of table %q, call %d: %w", op, table, r.seen, r.Err)}
		}
	}
	return f
}

// chooses counts a call and reports whether the rule chooses it.
func (r *counted) chooses(op Op, table string) bool {
	if r.Op != AnyOp && r.Op != op || r.Table != "" && r.Table != table {
		return false
	}

	r.seen++
	return (r.Nth == 0 || r.seen == r.Nth) && (r.Chance == 0 || r.rng.Float64() < r.Chance)
}

// call makes a call under the rules.
func call[T any](ctx context.Context, s *Store, op Op, table string, do func() (T, error)) (T, error) {
	var none T
	f := s.choose(op, table)
	if err := wait.For(ctx, f.delay); err != nil {
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
		_ = c.Close() // the caller does not get the scanner
	}
	return none, f.after
}
