package resultcache

import (
	"context"
	"encoding/binary"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/store"
)

// PlanLookup is one lookup of the result of a whole plan. A nil lookup has found
// nothing and stores nothing.
type PlanLookup struct {
	cache   *Cache
	id      ID
	version string
	same    bool // version is that of the lookup before
	found   Answer
	reason  string // why there is no version; else empty
}

// LookupPlan looks for the result of a plan; variant is that of PlanKey. It must be called before
// anything of the plan is read: a result of later reads may be stored under the version token that
// is taken here.
//
// The first lookup of a plan takes no version token and returns nil, so a plan that
// only one query has costs nothing. With proofs it may find an answer that is not yet
// proven; with nil it waits for each proof.
func LookupPlan(ctx context.Context, c *Cache, from store.Reader, plan *scanplan.Plan, variant string,
	proofs *Proofs) *PlanLookup {
	if c == nil {
		return nil
	}
	versioner := from.Features().Versioner
	if versioner == nil {
		return nil
	}
	id := PlanKey(plan, variant)
	if !c.queriedBefore(id) {
		return nil
	}

	asking := ctx
	if proofs != nil {
		asking = proofs.ctx // the proof may take longer than this sub-query
	}
	version, proof, err := planVersion(asking, versioner, plan)
	// A request that ends is no reason why answers are not cached.
	if err != nil && ctx.Err() == nil {
		c.logOnce(err.Error())
	}
	// Without a token it counts the lookup, and finds nothing.
	found, same, ok := c.lookupPlan(id, version)
	if err != nil {
		return &PlanLookup{reason: err.Error()}
	}
	if !ok {
		return nil
	}

	// A cached answer may be returned while its token is being proven. Rows may be read only after
	// that, because their result is stored under the token.
	if proofs != nil && found != nil {
		proofs.add(proof)
	} else if err := proof(); err != nil { //fault:stored-before-proven TestLookupPlan_unproven
		if ctx.Err() == nil {
			c.logOnce(err.Error())
		}
		return nil
	}
	return &PlanLookup{cache: c, id: id, version: version, same: same, found: found}
}

// Found returns the cached answer, nil if there is none.
func (l *PlanLookup) Found() Answer {
	if l == nil {
		return nil
	}
	return l.found
}

// Wanted reports whether no answer is cached and one should be stored.
func (l *PlanLookup) Wanted() bool { return l != nil && l.version != "" && l.found == nil }

// Reason is why the store could not prove anything; it is empty if it could.
func (l *PlanLookup) Reason() string {
	if l == nil {
		return ""
	}
	return l.reason
}

// Unchanged reports whether no row has changed since the lookup before this one. An answer that is
// expensive to store is worth storing only then: for rows that change all the time it would never
// be used.
func (l *PlanLookup) Unchanged() bool { return l != nil && l.same }

// Store caches the result of the plan, made after the lookup, if that is wanted. All
// parts of the plan must have been answered from the cache, or read and stored in it,
// by this process: that shows that answers over these rows may be cached, see the
// package comment.
func (l *PlanLookup) Store(a Answer) {
	if l.Wanted() {
		l.cache.store(l.id, l.version, a)
	}
}

// HoldsPlan reports whether a result of a plan is cached.
func (c *Cache) HoldsPlan(plan *scanplan.Plan, variant string) bool {
	if c == nil {
		return false
	}
	return c.holdsID(PlanKey(plan, variant))
}

// versionsAtOnce bounds the version tokens of one plan that are requested at a time.
const versionsAtOnce = 8

// planVersion returns one token made of the version tokens of all ranges of a plan, and
// their proof. The token is "" if a range has none.
func planVersion(ctx context.Context, versioner store.Versioner, plan *scanplan.Plan) (string, func() error, error) {
	versions, proofs := make([]string, len(plan.Ranges)), make([]func() error, len(plan.Ranges))
	var work errgroup.Group
	work.SetLimit(versionsAtOnce)
	for i, r := range plan.Ranges {
		work.Go(func() (err error) {
			r = plan.Reads(r)
			// Not a context of the group's: it would end before the proofs do.
			versions[i], proofs[i], err = versioner.Version(ctx, plan.Table, encoding.FamilyData,
				store.KeyRange{Start: r.Start, Stop: r.Stop})
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return "", nil, err
	}

	// Lengths keep tokens apart: "a" and "bc" must not equal "ab" and "c".
	var all []byte
	for _, v := range versions {
		if v == "" {
			return "", nil, nil
		}
		all = append(binary.AppendUvarint(all, uint64(len(v))), v...)
	}
	return string(all), func() error {
		for _, proof := range proofs {
			if err := proof(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// queriedBefore reports whether a plan was queried before. If not, it adds an entry.
func (c *Cache) queriedBefore(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if el := c.entries[id]; el != nil {
		c.order.MoveToFront(el)
		return true
	}
	c.addEntry(id, "")
	return false
}

// lookupPlan looks for the answer to a plan over rows with the given version token, and
// keeps the token for the next lookup. same reports whether the token is that of the
// lookup before. ok is false if nothing can be cached: there is no token, or the entry
// was evicted.
func (c *Cache) lookupPlan(id ID, version string) (found Answer, same, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if version == "" {
		c.counts.Unproven++
		return nil, false, false
	}
	el := c.entries[id]
	if el == nil {
		return nil, false, false
	}

	e := el.Value.(*entry)
	same = e.version == version
	if !same {
		// Without an answer, as at the first token after queriedBefore, nothing is lost.
		if e.answer != nil {
			c.counts.Changed++
		}
		c.resetEntry(e, version)
	}
	if e.answer != nil {
		c.countHit(e.answer)
		c.counts.PlanHits++
	}
	return e.answer, same, true
}
