package rollupjob

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
)

// markCost is the cost of checking a mark, in points.
const markCost = 200

// UpToDate reports whether Roll and Prove have nothing to do between two times: all sealed hours are
// rolled up, and marks that survive nearby writes hold for all of them. It reads the records of all
// salt buckets in one call and checks each mark once, less than half of the calls of Roll and
// Prove, and it needs no lease.
func (j *Job) UpToDate(ctx context.Context, metric encoding.UID, from, to int64) (
	counts Counts, proven bool, err error) {
	marker := j.Store.Features().Marker
	if marker == nil {
		return counts, false, nil
	}
	intervals, err := j.Config.ComputedIntervals()
	if err != nil {
		return counts, false, err
	}
	for _, i := range intervals {
		n, ok, err := j.intervalUpToDate(ctx, marker, metric, i, from, to)
		if err != nil || !ok {
			return Counts{}, false, err
		}
		counts.Kept += n
		counts.Proven += n
	}
	return counts, true, nil
}

// intervalUpToDate reports whether all sealed hours of an interval are rolled up and proven, and in how
// many pieces.
func (j *Job) intervalUpToDate(ctx context.Context, marker store.Marker, metric encoding.UID, i *rollup.Interval,
	from, to int64) (n int64, proven bool, err error) {
	w := work{
		Job:    j,
		layout: newLayout(j.Schema, j.Tables, j.Config, i, j.FixDuplicates),
		marker: marker,
		metric: metric,
	}
	w.Range = w.sealed(from, to)
	if w.empty() {
		return 0, true, nil
	}
	buckets := make([]int, j.Schema.Buckets())
	for b := range buckets {
		buckets[b] = b
	}
	if err := w.pace(ctx, markCost); err != nil {
		return 0, false, err
	}
	all, err := readRecords(ctx, j.Store, j.Tables, w.layout, metric, buckets, w.Range)
	if err != nil {
		return 0, false, err
	}

	// First the checks that cost no call.
	for b := range all {
		if !w.provenByRecord(&all[b].record) {
			return 0, false, nil
		}
	}
	if err := w.pace(ctx, markCost*int64(2*len(buckets))); err != nil {
		return 0, false, err
	}
	var pieces atomic.Int64
	checks, inner := errgroup.WithContext(ctx)
	checks.SetLimit(bucketsAtOnce)
	for b := range all {
		checks.Go(func() error {
			for k := range all[b].Sections {
				s := &all[b].Sections[k]
				inside := cutToTimes(s.Pieces, w.Range)
				if len(inside) == 0 {
					continue
				}
				times := Range{inside[0].From, inside[len(inside)-1].To}
				pieces.Add(int64(len(inside)))
				err := marker.Unchanged(inner, j.Tables.Data, encoding.FamilyData, w.rawKeys(b, metric, times), s.Raw)
				if err == nil {
					keys := w.rolledKeys(b, metric, times)
					err = marker.Unchanged(inner, w.table, encoding.FamilyData, keys, s.Rolled)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	// Roll and Prove find and report why a mark does not hold.
	if checks.Wait() != nil {
		return 0, false, ctx.Err()
	}
	return pieces.Load(), true, nil
}

// provenByRecord reports whether a record has all of the time, with marks that Prove would keep. It does
// not check whether the marks hold.
func (w *work) provenByRecord(rec *record) bool {
	at, marks := w.From, 0
	for i := range rec.Sections {
		s := &rec.Sections[i]
		if s.times().intersect(w.Range).empty() {
			continue
		}
		if s.times().From > at || s.Settings != w.settings || s.Raw == "" || s.Rolled == "" || s.RolledResting {
			return false
		}
		at = s.times().To
		if marks++; marks > maxMarks {
			return false
		}
	}
	return at >= w.To
}
