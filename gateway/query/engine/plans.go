package engine

import (
	"slices"
	"sync"

	"downpour/encoding/scanplan"
)

// maxPlans is how many plans of one request are collected.
const maxPlans = 16

// Plans collects the scan plans that a request compiles, so that its log can name them, even if the
// query fails. It may be used from many goroutines. A nil one collects nothing.
type Plans struct {
	mu    sync.Mutex
	plans []*scanplan.Plan
	more  int // that are not kept
}

// add adds the plans of a query.
func (p *Plans) add(plans []subPlan) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range plans {
		switch {
		case readsNothing(s.Compiled):
		case len(p.plans) == maxPlans:
			p.more++
		default:
			p.plans = append(p.plans, s.Plan)
		}
	}
}

// Texts returns the plans as text, each once, and how many more there were. A retried query has its
// plans once.
func (p *Plans) Texts() (texts []string, more int) {
	if p == nil {
		return nil, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, plan := range p.plans {
		if text := plan.String(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts, p.more
}
