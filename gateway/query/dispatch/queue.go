package dispatch

import (
	"cmp"
	"slices"
	"time"
)

// queue holds the parts of a run that wait, by the place that is to execute each. When an attempt ends, the run looks
// at the parts of that one place: with thousands of parts and many servers, looking at all of them after each attempt
// would take longer than the query.
type queue struct {
	placement *placement                // for which places were chosen
	at        map[*place][]*pendingPart // in their order
	mayStart  []*place                  // that may have room for a part of at, and some for which none waits
	unplaced  []*pendingPart
	paused    []*pendingPart // until their notBefore
}

// add has a part wait: place gives it a place, or has it pause.
func (q *queue) add(p *pendingPart) { q.unplaced = append(q.unplaced, p) }

// place gives a place to each part that has none or whose pause is over; to all, if the servers are other ones than the
// last time.
func (q *queue) place(servers *placement, now time.Time, choose func(*pendingPart) *place) {
	if servers != q.placement {
		q.placement, q.unplaced = servers, q.waiting()
		q.at, q.mayStart, q.paused = map[*place][]*pendingPart{}, nil, nil
	} else {
		q.unplaced = append(q.unplaced, q.paused...)
		q.paused = q.paused[:0]
	}
	for _, p := range q.unplaced {
		if now.Before(p.notBefore) {
			q.paused = append(q.paused, p)
			continue
		}
		at := choose(p)
		if len(q.at[at]) == 0 {
			q.mayStart = append(q.mayStart, at)
		}
		q.at[at] = append(q.at[at], p)
	}
	q.unplaced = q.unplaced[:0]
}

// freed has a place looked at, at which an attempt has ended.
func (q *queue) freed(at *place) {
	if len(q.at[at]) > 0 {
		q.mayStart = append(q.mayStart, at)
	}
}

// take returns the next part of a place that has room, nil if there is none.
func (q *queue) take(room func(*place) bool) (*pendingPart, *place) {
	for len(q.mayStart) > 0 {
		at := q.mayStart[0]
		if parts := q.at[at]; len(parts) > 0 && room(at) {
			q.at[at] = parts[1:]
			return parts[0], at
		}
		q.mayStart = q.mayStart[1:]
	}
	return nil, nil
}

// waiting returns all parts, in the order of their turns.
func (q *queue) waiting() []*pendingPart {
	all := slices.Concat(q.unplaced, q.paused)
	for _, parts := range q.at {
		all = append(all, parts...)
	}
	slices.SortFunc(all, func(a, b *pendingPart) int { return cmp.Compare(a.turn, b.turn) })
	return all
}

// nextPauseEnd returns how long it takes until the first pause is over, false if no part pauses.
func (q *queue) nextPauseEnd(now time.Time) (d time.Duration, ok bool) {
	for _, p := range q.paused {
		if left := max(0, p.notBefore.Sub(now)); !ok || left < d {
			d, ok = left, true
		}
	}
	return d, ok
}
