package stage

import (
	"context"
	"time"

	"downpour/encoding/scanplan"
	"downpour/gateway/query/merge"
	"downpour/gateway/query/trace"
	"downpour/pushdown/process/memory"
	"downpour/pushdown/resultcache"
)

// shared answers equal requests by one execution, see sharing.
type shared struct {
	sharing *sharing
	alone   Stage // for a request without other waiters
	batch   Stage // for all that have waited: it looks into the result cache again
}

func (s *shared) Groups(ctx context.Context, r *Request) (Answer, error) {
	key, ok := r.shareKey()
	if !ok {
		return s.alone.Groups(ctx, r)
	}
	b := s.sharing.enter(key)
	if b == nil {
		defer s.sharing.end(key)
		return s.alone.Groups(ctx, r)
	}

	began := time.Now()
	leads, err := s.sharing.wait(ctx, key, b)
	switch {
	case err != nil:
		return Answer{}, err
	case leads:
		return s.lead(ctx, r, key, b)
	case b.answer != nil:
		return s.fromOther(ctx, r, b.answer, began)
	}
	return s.alone.Groups(ctx, r)
}

// shareKey returns what equal requests have in common. ok is false for a plan whose
// execution must not be shared, or that must not wait for another one: what it reads is
// deleted afterwards, it may be incomplete or depends on names, or the query has other plans,
// which may hold what the execution that it would wait for needs: a slot, or memory.
func (r *Request) shareKey() (key resultcache.ID, ok bool) {
	q := r.Query
	damaged := r.Plan.Fix&scanplan.FixDamaged != 0
	if q.Delete || q.AllowPartial || damaged || q.Untrimmed || r.PostFilter != nil ||
		len(q.Queries) != 1 || r.Rest() != nil || r.Fallback() != nil {
		return key, false
	}
	return resultcache.PlanKey(r.Plan, string(r.answerName())), true
}

// lead executes a request for its batch: all members get its answer, as soon as there is one, even if the
// request itself still fails, for example by its own limits. If the request's own context ends before,
// another member becomes the leader. Without an answer for any other reason each member executes for
// itself: most errors are of one query, and the members will meet any other themselves.
func (s *shared) lead(ctx context.Context, r *Request, key resultcache.ID, b *sharers) (a Answer, err error) {
	dismissed := false // the members no longer wait for this request
	dismiss := func(answer *cachedGroups) {
		if !dismissed {
			dismissed = true
			s.sharing.publish(key, b, answer)
		}
	}
	defer dismiss(nil) // without an answer, also if the execution panics

	batch := *r
	if s.sharing.isShared(b) {
		// The stages call share with the answer. One from the result cache must be proven by then,
		// because each query waits only for its own proofs, so there are no Proofs.
		batch.share, batch.Proofs = dismiss, nil
	}
	// This looks into the result cache again: others may have cached the answer during the wait.
	a, err = s.batch.Groups(ctx, &batch)
	if err != nil && ctx.Err() != nil && !dismissed {
		dismissed = true
		s.sharing.resign(key, b)
	}
	return a, err
}

// fromOther answers a request with the result of another one's execution, which began after the
// request. It reserves the memory that it holds of it.
func (s *shared) fromOther(ctx context.Context, r *Request, answer *cachedGroups, began time.Time) (Answer, error) {
	s.sharing.answered.Add(1)
	if err := r.spend(ctx, &answer.stats); err != nil {
		return Answer{}, err
	}

	// Each of the batch keeps the whole answer until its own client has read it.
	held := int64(pointsIn(answer.groups))*merge.PointBytes + int64(len(answer.groups))*namedBytes
	if err := memory.Reserve(ctx, held); err != nil {
		return Answer{}, err
	}

	a := Answer{Groups: trimmed(answer.groups, r.Plan), Stats: answer.stats.FromOther(), Plan: r.Compiled}
	if err := r.Points.set(pointsIn(a.Groups)); err != nil {
		return Answer{Stats: a.Stats}, err
	}
	counts := trace.Counts(a.Stats)
	counts["shared"] = "answered by the execution of an equal query, which began after this one was asked"
	r.Trace.Add("shared execution", time.Since(began), counts)
	return a, nil
}
