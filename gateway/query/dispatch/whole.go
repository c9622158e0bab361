package dispatch

import (
	"context"

	"downpour/encoding/scanplan"
	"downpour/pushdown/resultcache"
)

// AskWhole asks for what was made of a plan's answer, in a way that the caller
// names, before RunWith; nil if nothing can be kept. Only what this executor has
// executed itself may be, see Stats.Provable: servers read rows by connections of
// their own, of which the marks taken here prove nothing.
func (e *Executor) AskWhole(ctx context.Context, plan *scanplan.Plan, way string) *resultcache.Whole {
	if len(e.cfg.Servers) > 0 {
		return nil
	}
	return resultcache.AskWhole(ctx, e.cfg.Summaries, e.cfg.Store, plan, way)
}

// HoldsWhole tells whether AskWhole would find something if no row has changed.
func (e *Executor) HoldsWhole(plan *scanplan.Plan, way string) bool {
	return e.cfg.Summaries.HoldsWhole(plan, way)
}

// Provable tells whether all parts were executed in process and answered from
// memory, or kept: then what was made of them may be kept too.
func (s *Stats) Provable() bool {
	return s.Remote == 0 && s.Parts > 0 && len(s.Missing) == 0 && s.SummaryHits+s.SummaryKept == int64(s.Parts)
}

// Recalled are the counts of an answer that is made again from memory: rows,
// cells, bytes and points are those that it was made of.
func (s Stats) Recalled() Stats {
	s.Attempts, s.Discarded, s.Tried = 0, 0, nil
	s.RPCs, s.Resumes, s.Batches, s.ShippedBytes = 0, 0, 0, 0
	s.ScanTime, s.FoldTime, s.EmitTime = 0, 0, 0
	s.SummaryHits, s.SummaryKept, s.SummaryChanged = int64(s.Parts), 0, 0
	return s
}
