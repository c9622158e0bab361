package retention

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// A clock that was set ahead makes rows past that are not, and so few that they are no great part of a table. Where the
// last run was longer ago than gap, either no gateway has run for so long, or the clock was set. Then points that have
// come lately, by their own times, show that it is not ahead. What this host puts of itself has the
// time of the same clock, so that it shows that only once it has for a day.
const (
	gap     = 2 * 86_400
	recent  = 4 * 86_400
	ownDay  = 86_400
	advance = encoding.RowSeconds // by which collectors may be ahead
)

// jumped reports whether the clock may have been set ahead since the last run.
func (j *Job) jumped(now int64) bool { return j.LastRun > 0 && now-j.LastRun > gap }

// shownRight reports whether rows of any table show that the clock is not ahead by more than recent. A table that
// cannot be read shows nothing.
func (j *Job) shownRight(ctx context.Context, all []*past, now int64) (ok bool, err error) {
	for _, p := range all {
		if p.err != nil {
			continue
		}
		ok, err := j.anyRow(ctx, p, p.others, now-recent, now+advance)
		if !ok && err == nil {
			ok, err = j.anyRow(ctx, p, p.own, now-recent, now-ownDay)
		}
		if p.missing(err) {
			continue
		}
		if err := p.fails(ctx, err); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// anyRow reports whether metrics have a row that begins between two times.
func (j *Job) anyRow(ctx context.Context, p *past, metrics []encoding.UID, from, to int64) (found bool, err error) {
	ranges := func(yield func(store.KeyRange) bool) {
		for bucket := range p.schema.Buckets() {
			for _, m := range metrics {
				if !yield(store.KeyRange{
					Start: p.schema.AppendRangeKey(nil, bucket, m, encoding.KeyTime(from)),
					Stop:  p.schema.AppendRangeKey(nil, bucket, m, encoding.KeyTime(to)),
				}) {
					return
				}
			}
		}
	}
	err = j.walk(ctx, p.table.Name, iter.Seq[store.KeyRange](ranges), true, func(store.Row) (bool, error) {
		found = true
		return false, nil
	})
	return found, err
}

// writers sorts metrics into those that others put and those that this host puts of itself.
func (j *Job) writers(ruled map[string][]metric) (others, own []encoding.UID) {
	for uid, names := range ruled {
		if j.Own == nil || slices.ContainsFunc(names, func(m metric) bool { return !j.Own(m.name) }) {
			others = append(others, encoding.UID(uid))
		} else {
			own = append(own, encoding.UID(uid))
		}
	}
	byUID := func(a, b encoding.UID) int { return bytes.Compare(a, b) }
	slices.SortFunc(others, byUID)
	slices.SortFunc(own, byUID)
	return others, own
}
