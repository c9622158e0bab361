package dispatch

import (
	"context"

	"downpour/encoding/scanplan"
	"downpour/pushdown/resultcache"
)

// LookupPlan asks for what was made of a plan's answer, in a way that the caller
// names, before RunWith; nil if nothing can be kept. Only what this executor has
// executed itself may be, see Stats.Provable: servers read rows by connections of
// their own, of which the marks taken here prove nothing.
func (e *Executor) LookupPlan(ctx context.Context, plan *scanplan.Plan, way string) *resultcache.PlanLookup {
	if len(e.cfg.Servers) > 0 {
		return nil
	}
	return resultcache.LookupPlan(ctx, e.cfg.ResultCache, e.cfg.Store, plan, way)
}

// HoldsPlan tells whether LookupPlan would find something if no row has changed.
func (e *Executor) HoldsPlan(plan *scanplan.Plan, way string) bool {
	return e.cfg.ResultCache.HoldsPlan(plan, way)
}

// CacheComplete tells whether all parts were executed in process and answered from
// memory, or kept: then what was made of them may be kept too.
func (s *Stats) CacheComplete() bool {
	return s.Remote == 0 && s.Parts > 0 && len(s.Missing) == 0 && s.CacheHits+s.CacheStored == int64(s.Parts)
}

// FromCache are the counts of an answer that is made again from memory: rows,
// cells, bytes and points are those that it was made of.
func (s Stats) FromCache() Stats {
	s.Attempts, s.Discarded, s.Trace = 0, 0, nil
	s.RPCs, s.Resumes, s.Batches, s.ShippedBytes = 0, 0, 0, 0
	s.ScanTime, s.DecodeTime, s.EmitTime = 0, 0, 0
	s.CacheHits, s.CacheStored, s.CacheChanged = int64(s.Parts), 0, 0
	return s
}
