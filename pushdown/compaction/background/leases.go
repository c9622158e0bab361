package background

import (
	"bytes"
	"context"
	"slices"
	"time"

	"downpour/pushdown/compaction"
)

// readLeases reads the leases of regions that are due, in one call: regions that another process
// works on wait, those whose hours another has done are no longer due, and those of a dead holder
// come first.
func (w *Worker) readLeases(ctx context.Context, due []*region) error {
	names := make([]string, len(due))
	for i, r := range due {
		names[i] = compaction.LeaseName(w.cfg.Table, r.Start)
	}
	w.leasesRead = time.Now()
	sights, err := w.cfg.Leases.Statuses(ctx, names)
	if err != nil {
		return err
	}

	for i, r := range due {
		r.leasesRead = time.Now()
		s := sights[i]
		r.dead = s.Expired
		switch {
		case s.Held && !s.Expired:
			w.totals.Add(func(t *totals) { t.held++ })
			r.due = time.Now().Add(heldWait)
		case !s.Held:
			w.skipDone(r, s.State)
		}
	}
	return nil
}

// unseen returns up to most regions that are due, except the current one, from a key on, and the
// first key of the last of them.
func (w *Worker) unseen(after []byte, most int) (due []*region, last []byte) {
	for _, r := range w.regions {
		if r != w.now && !time.Now().Before(r.due) {
			due = append(due, r)
		}
	}
	from := max(0, slices.IndexFunc(due, func(r *region) bool { return bytes.Compare(r.Start, after) > 0 }))
	due = append(due[from:], due[:from:from]...)
	due = due[:min(most, len(due))]
	if len(due) > 0 {
		last = due[len(due)-1].Start
	}
	return due, last
}

// skipDone skips a region until its next hour is sealed, if all others are done by the state of its
// lease.
func (w *Worker) skipDone(r *region, state []byte) {
	p, err := parseProgress(state)
	if err != nil {
		return // Try has the error
	}
	p.fit(r.Stop)
	sealed, next := w.sealed(r)
	if known := p; p.next(sealed) == nil {
		r.last, r.parent, r.due = &known, nil, time.Now().Add(next)
	}
}

// urgent reports whether the holder of another region has died, whose work waits.
func (w *Worker) urgent(ctx context.Context) bool {
	if time.Since(w.leasesRead) >= readEvery {
		var due []*region
		due, w.seen = w.unseen(w.seen, readMost)
		if w.readLeases(ctx, due) != nil {
			return false // the lease of this region has the same error soon
		}
	}
	return slices.ContainsFunc(w.regions, func(r *region) bool { return r.dead })
}
