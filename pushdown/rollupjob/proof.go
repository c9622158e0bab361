package rollupjob

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"downpour/encoding"
	"downpour/pushdown/rollup"
	"downpour/pushdown/store"
)

// Prover finds the rollups that equal what the raw rows give. Its fields are set before it is used.
type Prover struct {
	Store         store.Reader
	Tables        Tables
	Schema        encoding.Schema
	Config        *rollup.Config
	FixDuplicates bool
}

// Proof is a Prover's result for one interval and metric.
type Proof struct {
	// Ranges are the times whose rollups can be read, ascending. Others have to be read from
	// raw rows.
	Ranges []Range
	// Why is the reason why other times, or all, cannot be read; empty if all of the requested time
	// can be read.
	Why string

	rolled []rolledProof
	marker store.Marker
	table  string
}

// rolledProof is a range of rollup rows, and their mark.
type rolledProof struct {
	keys store.KeyRange
	mark string
}

// maxChecks bounds the checks of one mark that search the unchanged parts of its time.
const maxChecks = 12

// unchangedPieces returns those of some pieces, without a hole between them, whose rows have not
// changed by check, which tests a range; and why others are excluded.
func unchangedPieces(ctx context.Context, pieces []piece, checks int,
	check func(ctx context.Context, r Range) error) (out []piece, why error) {
	var search func(pieces []piece)
	search = func(pieces []piece) {
		if len(pieces) == 0 {
			return
		}
		if checks == 0 {
			return
		}
		checks--
		err := check(ctx, Range{pieces[0].From, pieces[len(pieces)-1].To})
		switch {
		case err == nil:
			out = append(out, pieces...)
			return
		case why == nil || !errors.Is(why, store.ErrRowsChanged):
			why = err
		}
		// Other errors are of whole regions.
		if errors.Is(err, store.ErrRowsChanged) && len(pieces) > 1 {
			search(pieces[:len(pieces)/2])
			search(pieces[len(pieces)/2:])
		}
	}
	search(pieces)
	return out, why
}

// bucketsAtOnce bounds the salt buckets that are checked concurrently.
const bucketsAtOnce = 8

// Prove finds the rollups of an interval that can be read between two times, in s. The result holds
// for a scan of raw rows that is opened at some moment while Prove runs; for the rollup rows, call
// Proof.Holds after they were read.
func (p *Prover) Prove(ctx context.Context, i *rollup.Interval, metric encoding.UID, r Range) (*Proof, error) {
	marker := p.Store.Features().Marker
	if marker == nil {
		return &Proof{Why: "the store makes no marks"}, nil
	}
	l := newLayout(p.Schema, p.Tables, p.Config, i, p.FixDuplicates)
	out := &Proof{marker: marker, table: l.table}

	buckets := make([]int, p.Schema.Buckets())
	for b := range buckets {
		buckets[b] = b
	}
	records, err := readRecords(ctx, p.Store, p.Tables, l, metric, buckets, r)
	if err != nil {
		return nil, err
	}
	all := make([]provenBucket, len(buckets))
	work, inner := errgroup.WithContext(ctx)
	work.SetLimit(bucketsAtOnce)
	for b := range buckets {
		work.Go(func() error {
			all[b] = l.proven(inner, marker, p.Tables.Data, b, metric, &records[b].record, r)
			return inner.Err()
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}

	out.Ranges = []Range{r}
	for b := range all {
		out.Ranges = intersection(out.Ranges, all[b].ranges)
		out.rolled = append(out.rolled, all[b].rolled...)
		if out.Why == "" {
			out.Why = all[b].why
		}
	}
	return out, nil
}

// notRolledUp is why nothing is proven for times without a piece.
const notRolledUp = "some hours are not rolled up"

// provenBucket is what can be read of a salt bucket.
type provenBucket struct {
	ranges []Range // ascending
	rolled []rolledProof
	why    string
}

// proven finds the rollups of a salt bucket that can be read.
func (l *layout) proven(ctx context.Context, marker store.Marker, data string, bucket int, metric encoding.UID,
	rec *record, r Range) (out provenBucket) {
	note := func(format string, args ...any) {
		// That some are missing is the least informative reason.
		if out.why == "" || out.why == notRolledUp {
			out.why = fmt.Sprintf(format, args...)
		}
	}
	at := r.From
	for i := range rec.Sections {
		s := &rec.Sections[i]
		if s.times().intersect(r).empty() {
			continue
		}
		if s.Pieces[0].From > at {
			note(notRolledUp)
		}
		at = s.times().To
		switch {
		case s.Settings != l.settings:
			note("they were rolled up with other settings")
			continue
		case s.Raw == "":
			note("nothing proves that raw rows stay as they are: %s", s.Why)
			continue
		case s.Rolled == "":
			note("they were rolled up and not read back yet")
			continue
		}

		usable := cutToTimes(s.Pieces, r)
		for _, p := range usable {
			if p.ReadRaw != "" {
				note("%s", p.ReadRaw)
			}
		}
		for _, run := range runs(*s, slices.DeleteFunc(usable, func(p piece) bool { return p.ReadRaw != "" })) {
			kept, why := unchangedPieces(ctx, run.Pieces, maxChecks, func(ctx context.Context, r Range) error {
				return marker.Unchanged(ctx, data, encoding.FamilyData, l.rawKeys(bucket, metric, r), s.Raw)
			})
			if why != nil { //fault:made-proof-of-raw-rows-ignored TestMade_changes
				note("raw rows: %v", why)
			}
			for _, same := range runs(*s, kept) {
				keys := l.rolledKeys(bucket, metric, same.times())
				if err := marker.Unchanged(ctx, l.table, encoding.FamilyData, keys, s.Rolled); err != nil {
					note("rollups: %v", err)
					continue
				}
				out.ranges = append(out.ranges, same.times())
				out.rolled = append(out.rolled, rolledProof{keys, s.Rolled})
			}
		}
	}
	if at < r.To && out.why == "" {
		note(notRolledUp)
	}
	return out
}

// cutToTimes returns the pieces that have times of r, cut to these.
func cutToTimes(pieces []piece, r Range) (out []piece) {
	for _, p := range pieces {
		if t := p.times().intersect(r); !t.empty() {
			p.From, p.To = t.From, t.To
			out = append(out, p)
		}
	}
	return out
}

// intersection returns the times that two ascending lists both have.
func intersection(a, b []Range) (out []Range) {
	for i, k := 0, 0; i < len(a) && k < len(b); {
		both := a[i].intersect(b[k])
		switch {
		case both.empty():
		// Two sections with separate proofs: a bucket may be in both.
		case len(out) > 0 && out[len(out)-1].To == both.From:
			out[len(out)-1].To = both.To
		default:
			out = append(out, both)
		}
		if a[i].To < b[k].To {
			i++
		} else {
			k++
		}
	}
	return out
}

// Holds returns nil if the rollup rows have not changed until now: what was read of them
// since Prove was called is what the raw rows gave.
func (p *Proof) Holds(ctx context.Context) error {
	work, inner := errgroup.WithContext(ctx)
	work.SetLimit(bucketsAtOnce)
	for _, r := range p.rolled {
		work.Go(func() error { return p.marker.Unchanged(inner, p.table, encoding.FamilyData, r.keys, r.mark) })
	}
	return work.Wait()
}
