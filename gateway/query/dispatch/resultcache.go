package dispatch

import (
	"context"

	"downpour/encoding/scanplan"
	"downpour/pushdown/resultcache"
)

// PlanAnswer names one of several answers that are made from the same plan. Answers
// of different names are cached separately. The text is part of the cache key.
type PlanAnswer string

// Names of a plan's answers.
const (
	// ExactAnswer has the bits that per-series aggregation gives.
	ExactAnswer PlanAnswer = "exact"
	// RoundedAnswer was merged from partial aggregates in the order of the parts, so
	// the last bits of sums may differ.
	RoundedAnswer PlanAnswer = "partial"
	// WithSeries follows one of those names: the answer has the TSUIDs of the members of its groups.
	WithSeries PlanAnswer = " with series"
	// OlderHoursAnswer is what the groups have in hours before those of another plan.
	OlderHoursAnswer PlanAnswer = "stretch"
)

// LookupPlan looks up a plan's answer in the result cache; it is called before Run, so
// that the version tokens it takes are older than the rows that Run reads. It returns
// nil if nothing can be cached. Only an answer whose parts were all executed in this
// process can be, see Stats.CacheComplete: pushdown servers read rows over their own
// connections, for which a version token taken here is no proof.
func (e *Executor) LookupPlan(ctx context.Context, plan *scanplan.Plan, name PlanAnswer,
	proofs *resultcache.Proofs) *resultcache.PlanLookup {
	if len(e.servers.list()) > 0 {
		return nil
	}
	return resultcache.LookupPlan(ctx, e.cfg.ResultCache, e.cfg.Store, plan, string(name), proofs)
}

// HoldsPlan reports whether LookupPlan would find an answer if no row has changed.
func (e *Executor) HoldsPlan(plan *scanplan.Plan, name PlanAnswer) bool {
	return e.cfg.ResultCache.HoldsPlan(plan, string(name))
}

// CacheComplete reports whether all parts were executed in this process, and each was
// answered from the result cache or read under a version token that held until its end.
// Then the result of their answers may be cached, even if they themselves are too
// large.
func (s *Stats) CacheComplete() bool {
	return s.Remote == 0 && s.Parts > 0 && len(s.Missing) == 0 && s.CacheHits+s.CacheProven == int64(s.Parts)
}

// FromCache returns the counts of an answer from the result cache. Rows, cells, bytes and points
// are those that the answer was made of; the counts of work are zero.
func (s Stats) FromCache() Stats {
	s.Attempts, s.Discarded, s.Trace = 0, 0, nil
	s.RPCs, s.Resumes, s.Batches, s.ShippedBytes = 0, 0, 0, 0
	s.ScanTime, s.DecodeTime, s.EmitTime = 0, 0, 0
	s.CacheHits, s.CacheProven, s.CacheStored, s.CacheChanged = int64(s.Parts), 0, 0, 0
	return s
}

// FromOther returns the counts of an answer that another query was executed for. They are as
// FromCache's, but nothing was in the result cache.
func (s Stats) FromOther() Stats {
	s = s.FromCache()
	s.CacheHits = 0
	return s
}
