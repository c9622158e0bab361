package rollupjob

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"downpour/encoding"
)

// prove reads back the rollups of the time, and all others in their rows: writing some of a row's
// values has invalidated the mark of the others.
func (w *work) prove(ctx context.Context) error {
	if err := w.pace(ctx, recordCost); err != nil {
		return err
	}
	rows := Range{w.rows.Span.BaseTime(w.From), w.rows.Span.Next(w.rows.Span.BaseTime(w.To - 1))}
	rec, err := w.read(ctx, rows)
	if err != nil {
		return err
	}

	// Sections with a piece each, and the mark of its raw rows.
	var good []section
	for i := range rec.Sections {
		s := &rec.Sections[i]
		inside := cutToRows(s.Pieces, rows)
		if len(inside) == 0 {
			continue
		}
		kept, why := w.unchangedOf(ctx, s, Range{inside[0].From, inside[len(inside)-1].To})
		if n := len(inside) - len(kept); n > 0 {
			w.unproven(n, why)
		}
		for _, p := range kept {
			one := *s
			one.Pieces = []piece{p}
			good = append(good, one)
		}
	}

	for len(good) > 0 {
		n := 1
		for n < len(good) && good[n].Pieces[0].From == good[n-1].Pieces[0].To {
			n++
		}
		if err := w.proveRun(ctx, rec, good[:n]); err != nil {
			return err
		}
		good = good[n:]
	}
	return nil
}

// cutToRows returns the pieces that have times of r, as a whole.
func cutToRows(pieces []piece, r Range) (out []piece) {
	for _, p := range pieces {
		if !p.times().intersect(r).empty() {
			out = append(out, p)
		}
	}
	return out
}

// unproven counts pieces that queries do not read.
func (w *work) unproven(n int, why error) {
	w.counts.Unproven += int64(n)
	if why != nil {
		w.counts.Why = why.Error()
	}
}

// proveRun marks the rollup rows of sections that follow one another, reads them back, and records
// those that equal what was made of the raw rows.
func (w *work) proveRun(ctx context.Context, rec *records, run []section) error {
	times := Range{run[0].Pieces[0].From, run[len(run)-1].Pieces[0].To}
	keys := w.rolledKeys(w.bucket, w.metric, times)
	if w.stillProven(ctx, run, times) {
		w.counts.Proven += int64(len(run))
		return nil
	}
	// The mark comes first: writes while the rows are read invalidate it.
	mark, err := w.marker.Mark(ctx, w.table, encoding.FamilyData, keys)
	if err != nil {
		w.unproven(len(run), err)
		return ctx.Err()
	}

	pieces := make([]Range, len(run))
	for i := range run {
		pieces[i] = run[i].times()
	}
	days := w.days(pieces)
	sums, ofDays, err := w.readBack(ctx, w.Store, keys, pieces, days)
	if err != nil {
		return fmt.Errorf("cannot read back table %s: %w", w.table, err)
	}
	var same []section
	for i := range run {
		p := &run[i].Pieces[0]
		if p.ReadRaw == valuesStay {
			p.Digest = sums[i] // no query relies on it
		}
		if !bytes.Equal(p.Digest, sums[i]) {
			w.unproven(1, fmt.Errorf("table %s does not hold what was rolled up of %s", w.table,
				time.Unix(pieces[i].From, 0).UTC().Format(time.DateTime)))
			continue
		}
		run[i].Rolled, run[i].RolledResting = mark.Text, mark.Resting
		same = append(same, run[i])
	}
	w.counts.Proven += int64(len(same))
	return w.save(ctx, rec, []Range{times}, wholeDays(w.withOneRawMark(ctx, same), days, ofDays)...)
}

// days returns times that follow one another as those of days, or of what there is of each.
func (w *work) days(pieces []Range) (out []Range) {
	for _, p := range pieces {
		if n := len(out); n > 0 && p.From%w.piece() != 0 {
			out[n-1].To = p.To
			continue
		}
		out = append(out, p)
	}
	return out
}

// wholeDays puts one section in place of those that are together one of days, so that the record does not
// grow with the number of runs. Sections ascend and have one piece each. A section of a whole day has the
// day's digest, which is from the same read in which each piece was found to be as it was made.
func wholeDays(sections []section, days []Range, digests [][]byte) (out []section) {
	for len(sections) > 0 {
		first, n := sections[0], 1
		day := slices.IndexFunc(days, func(d Range) bool { return d.From == first.times().From })
		if day >= 0 {
			if n = countUntil(days[day].To, sections); n > 1 {
				first.Pieces = []piece{{
					From:    days[day].From,
					To:      days[day].To,
					Digest:  digests[day],
					ReadRaw: first.Pieces[0].ReadRaw,
				}}
			}
		}
		out = append(out, first)
		sections = sections[n:]
	}
	return out
}

// countUntil returns how many of the first sections, of one piece each, end together at a time; 1 if none
// ends there, or if they cannot be one section: there is a hole between them, or they differ in their proof or
// in what queries read.
func countUntil(end int64, sections []section) int {
	for i := range sections {
		s := &sections[i]
		if i > 0 && (!sections[i-1].continues(s) || s.Pieces[0].ReadRaw != sections[0].Pieces[0].ReadRaw) {
			break
		}
		if s.times().To == end {
			return i + 1
		}
	}
	return 1
}

// maxMarks is how many consecutive marks of raw rows a record may have before they are replaced by
// one: a query checks each.
const maxMarks = 4

// stillProven reports whether sections that follow one another need not be read back again: they
// have few marks, and these hold, even if rows nearby are written to.
func (w *work) stillProven(ctx context.Context, run []section, times Range) bool {
	marks := 0
	for i := range run {
		if run[i].Rolled == "" || run[i].RolledResting || run[i].Rolled != run[0].Rolled {
			return false
		}
		if i == 0 || run[i].Raw != run[i-1].Raw {
			marks++
		}
	}
	return marks <= maxMarks &&
		w.marker.Unchanged(ctx, w.table, encoding.FamilyData, w.rolledKeys(w.bucket, w.metric, times),
			run[0].Rolled) == nil
}

// withOneRawMark gives sections one mark of their raw rows in place of several, if it can: a query checks
// each.
func (w *work) withOneRawMark(ctx context.Context, all []section) []section {
	several, resting := false, true
	for i := range all {
		several = several || all[i].Raw != all[0].Raw
		resting = resting && all[i].Resting
		if i > 0 && all[i].Pieces[0].From != all[i-1].Pieces[0].To {
			return all
		}
	}
	if !several {
		return all
	}

	times := Range{all[0].Pieces[0].From, all[len(all)-1].Pieces[0].To}
	mark := w.rawMark(ctx, times)
	if mark.Raw == "" || mark.Resting && !resting {
		return all
	}
	// Rows that have not changed until after the new mark was made are those that it covers.
	out := make([]section, len(all))
	for i := range all {
		kept, _ := w.unchangedOf(ctx, &all[i], times)
		if len(kept) != 1 {
			return all
		}
		out[i] = all[i]
		out[i].Raw, out[i].Resting = mark.Raw, mark.Resting
	}
	return out
}
