package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"downpour/encoding/scanplan"
	"downpour/gateway/query"
	"downpour/gateway/query/dispatch"
	"downpour/gateway/query/merge"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
)

// Many who look at one dashboard ask for the same plans at the same time. Those who ask while
// an equal plan is being executed share the next execution of it, which begins when that one
// ends. They never share one that has begun: it may have read a row already to which a point
// was written since, and a point that is acknowledged before a query is asked must be in its
// answer.

// sharePatience bounds how long a query waits for an execution that has begun before it asked.
// Then the next one begins beside it, so a plan that takes long is begun at most so often.
const sharePatience = time.Second

// sharing has the plans that are being executed. Its methods may be called from many
// goroutines.
type sharing struct {
	patience time.Duration
	answered atomic.Int64 // queries by the execution of another one

	mu    sync.Mutex
	plans map[resultcache.ID]*executions
}

// executions are those of one plan.
type executions struct {
	running int      // at least 1
	next    *sharers // those who share the next one; nil for none
}

// sharers are the queries that share an execution.
type sharers struct {
	// lead has a value once the execution may begin, for the query that takes it: that one
	// executes. If it ends too early, it puts the value back.
	lead chan struct{}
	// done is closed at the end. Then answer is what all share, nil if each has to execute
	// for itself.
	done   chan struct{}
	answer *cachedGroups

	// Guarded by sharing.mu.
	members int // those who have left are not counted
	begun   bool
}

func newSharing() *sharing {
	return &sharing{patience: sharePatience, plans: map[resultcache.ID]*executions{}}
}

// enter begins an execution of a plan, which the caller ends by end, and returns nil. While
// there is one it returns the batch of the next one instead, which the caller has joined: see
// wait.
func (s *sharing) enter(plan resultcache.ID) *sharers {
	s.mu.Lock()
	defer s.mu.Unlock()

	x := s.plans[plan]
	if x == nil {
		s.plans[plan] = &executions{running: 1}
		return nil
	}
	if x.next == nil {
		x.next = &sharers{lead: make(chan struct{}, 1), done: make(chan struct{})}
	}
	x.next.members++
	return x.next
}

// end ends an execution, and has the next one begin.
func (s *sharing) end(plan resultcache.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.endLocked(plan)
}

func (s *sharing) endLocked(plan resultcache.ID) {
	x := s.plans[plan]
	x.running--
	if b := x.next; b != nil {
		x.begin()
		b.lead <- struct{}{}
	} else if x.running == 0 {
		delete(s.plans, plan)
	}
}

// begin closes the next batch: who asks from now on does not share it.
func (x *executions) begin() {
	x.next.begun, x.next = true, nil
	x.running++
}

// wait waits for the answer of a batch. leads tells the caller to execute for the batch, and
// to end by publish or resign.
func (s *sharing) wait(ctx context.Context, plan resultcache.ID, b *sharers) (leads bool, err error) {
	patience := time.NewTimer(s.patience)
	defer patience.Stop()
	for {
		select {
		case <-b.lead:
			return true, nil
		case <-b.done:
			return false, nil
		case <-patience.C:
			if s.beginBeside(plan, b) {
				return true, nil
			}
		case <-ctx.Done():
			s.leave(plan, b)
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return false, fmt.Errorf("%w while it waited for the execution of an equal one", dispatch.ErrDeadline)
			}
			return false, context.Cause(ctx)
		}
	}
}

// beginBeside begins the execution of a batch beside those that run, unless it has begun.
func (s *sharing) beginBeside(plan resultcache.ID, b *sharers) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if b.begun {
		return false
	}
	s.plans[plan].begin()
	return true
}

// leave takes a query that does not execute out of a batch.
func (s *sharing) leave(plan resultcache.ID, b *sharers) {
	s.mu.Lock()
	defer s.mu.Unlock()

	b.members--
	switch {
	case b.members > 0:
	case !b.begun:
		s.plans[plan].next = nil
	default: // nobody is left who would take the lead
		select {
		case <-b.lead:
			s.endLocked(plan)
		case <-b.done:
		}
	}
}

// resign takes the query that executes out of a batch: another one executes anew.
func (s *sharing) resign(plan resultcache.ID, b *sharers) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if b.members--; b.members > 0 {
		b.lead <- struct{}{}
		return
	}
	s.endLocked(plan)
}

// publish ends the execution of a batch with its answer, nil if it has none to share.
func (s *sharing) publish(plan resultcache.ID, b *sharers, answer *cachedGroups) {
	b.answer = answer
	close(b.done)
	s.end(plan)
}

// shared tells whether several queries wait for the execution of a batch.
func (s *sharing) shared(b *sharers) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.members > 1
}

// SharedAnswers returns how many sub-queries were answered by the execution of another one.
func (e *Engine) SharedAnswers() int64 { return e.sharing.answered.Load() }

// shareKey returns what equal plans of a query have in common. ok is false for a plan whose
// execution must not be shared, or that must not wait for another one: what it reads is
// deleted afterwards, it may be incomplete or depends on names, or the query has other plans,
// which may hold what the execution that it would wait for needs: a slot, or memory.
func (e *Engine) shareKey(q *query.Query, p subPlan) (key resultcache.ID, ok bool) {
	if q.Delete || q.AllowPartial || p.Plan.Fix&scanplan.FixDamaged != 0 || q.Untrimmed || p.PostFilter != nil || len(q.Queries) != 1 || p.Rest() != nil || p.Fallback() != nil {
		return key, false
	}
	return resultcache.PlanKey(p.Plan, string(planAnswer(e.aggregationFor(q, p)))), true
}

// madeGroups returns a plan's groups, which are not in the result cache: of an execution of
// its own, or of one that it shares with equal plans.
func (e *Engine) madeGroups(ctx context.Context, q *query.Query, p subPlan, lookup *resultcache.PlanLookup, node *Node) ([]merge.Group, dispatch.Stats, error) {
	key, ok := e.shareKey(q, p)
	if !ok {
		return e.ownGroups(ctx, q, p, lookup, node)
	}
	b := e.sharing.enter(key)
	if b == nil {
		defer e.sharing.end(key)
		return e.ownGroups(ctx, q, p, lookup, node)
	}

	began := time.Now()
	leads, err := e.sharing.wait(ctx, key, b)
	switch {
	case err != nil:
		return nil, dispatch.Stats{}, err
	case leads:
		return e.leadBatch(ctx, q, p, key, b, node)
	case b.answer != nil:
		return e.fromShared(ctx, q, p, b.answer, began, node)
	}
	return e.ownGroups(ctx, q, p, lookup, node)
}

// leadBatch executes a plan for a batch. An error is not shared: most are of one query, such as
// a limit, and with any other the rest of the batch finds out for itself.
func (e *Engine) leadBatch(ctx context.Context, q *query.Query, p subPlan, key resultcache.ID, b *sharers, node *Node) ([]merge.Group, dispatch.Stats, error) {
	var answer *cachedGroups
	publish := sync.OnceFunc(func() { e.sharing.publish(key, b, answer) })
	resigned := false
	// Also if the execution panics.
	defer func() {
		if !resigned {
			publish()
		}
	}()

	// The lookup was before the wait: what others have stored meanwhile is found now. It is
	// shared only if it is proven, because each query waits for no proofs but its own.
	var groups []merge.Group
	var stats dispatch.Stats
	var err error
	if e.sharing.shared(b) {
		answer, groups, stats, err = e.executeShared(resultcache.ProvenAtOnce(ctx), q, p, node)
	} else {
		groups, stats, err = e.ownGroups(ctx, q, p, e.lookUpCached(ctx, q, p), node)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		resigned = true
		e.sharing.resign(key, b)
	case answer == nil && mayLieOutsideQuery(err):
		publish() // the others need not wait for what is this query's alone
		return e.executePlan(ctx, q, p, node)
	}
	return groups, stats, err
}

// executeShared answers a plan for all times of its rows, as the others of a batch need it. It
// returns that, and the groups of the plan itself.
func (e *Engine) executeShared(ctx context.Context, q *query.Query, p subPlan, node *Node) (*cachedGroups, []merge.Group, dispatch.Stats, error) {
	began := time.Now()
	lookup := e.lookUpCached(ctx, q, p)
	noteUnproven(lookup, began, node)
	if cached, ok := lookup.Found().(*cachedGroups); ok {
		groups, stats, err := e.fromCache(ctx, q, p, cached, node)
		return cached, groups, stats, err
	}

	execute := e.executePlan
	if lookup.Wanted() {
		execute = func(ctx context.Context, q *query.Query, whole subPlan, node *Node) ([]merge.Group, dispatch.Stats, error) {
			return e.executeAtSeam(provingIf(ctx, lookup), q, whole, p.Plan.End, node)
		}
	}
	groups, stats, err := execute(ctx, q, p.untrimmed(), node)
	if err != nil {
		return nil, nil, stats, err
	}
	made := newCachedGroups(groups, stats)
	if stats.CacheComplete() {
		lookup.Store(made)
	}
	groups = trimmed(groups, p.Plan)
	return made, groups, stats, planPointsOf(ctx).set(pointsIn(groups))
}

// fromShared answers a plan with the groups of an execution that began after it was asked for.
// It spends what that has cost, as fromCache does, and reserves what it holds of it.
func (e *Engine) fromShared(ctx context.Context, q *query.Query, p subPlan, answer *cachedGroups, began time.Time, node *Node) ([]merge.Group, dispatch.Stats, error) {
	e.sharing.answered.Add(1)
	if e.cfg.Budget != nil {
		if err := e.cfg.Budget(ctx, q, p.sub).Spend(ctx, answer.stats.Points, answer.stats.Bytes); err != nil {
			return nil, dispatch.Stats{}, err
		}
	}

	// Each of the batch keeps the whole answer until its own client has read it.
	held := int64(pointsIn(answer.groups))*merge.PointBytes + int64(len(answer.groups))*namedBytes
	if err := memory.Reserve(ctx, held); err != nil {
		return nil, dispatch.Stats{}, err
	}

	groups, stats := trimmed(answer.groups, p.Plan), answer.stats.FromOther()
	if err := planPointsOf(ctx).set(pointsIn(groups)); err != nil {
		return nil, stats, err
	}
	a := attributes(stats)
	a["shared"] = "answered by the execution of an equal query, which began after this one was asked"
	node.add("shared execution", time.Since(began), a)
	return groups, stats, nil
}
