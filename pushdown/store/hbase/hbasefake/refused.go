package hbasefake

import "sync"

// RefusedWrites makes servers answer writes with an exception from some call on, until
// Lift: their memory is full, or the table may take no more room. Its Fault is a hook,
// see SetHook.
type RefusedWrites struct {
	Exception string // class name
	First     int    // number of the first call of writes that is refused, from 0
	// Cells is the least number of cells of a call that counts as a write; 0 is 1. The trial of row
	// compaction, whether servers know conditions, has one.
	Cells int
	// Single refuses single puts and deletions, as those of leases, too.
	Single bool

	mu            sync.Mutex
	calls         int
	begun, lifted bool
}

// Fault is what goes wrong with a call.
func (r *RefusedWrites) Fault(c Call) Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	write := c.Method == "Multi" && c.Cells > 0 // gets have no cells
	if write && c.Cells >= r.Cells {
		r.begun = r.begun || r.calls == r.First
		r.calls++
	}

	switch {
	case !r.begun || r.lifted:
	case write:
		return Fault{Kind: RefuseActions, Exception: r.Exception}
	case c.Method == "Mutate" && r.Single:
		return Fault{Kind: Refuse, Exception: r.Exception}
	}
	return Fault{}
}

// Lift ends it.
func (r *RefusedWrites) Lift() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lifted = true
}

// Begun reports whether a call was refused.
func (r *RefusedWrites) Begun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}
