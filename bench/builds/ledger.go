package builds

import (
	"fmt"
	"slices"
	"time"

	"downpour/bench/paired"
	"downpour/bench/report"
)

// sample is one measurement of one build.
type sample struct {
	amount    float64       // seconds or bytes
	processor time.Duration // that it took; 0 is unknown
}

// entry is a row on a store: what all rounds have shown of it.
type entry struct {
	row, store, what, unit string

	amounts    [2][]float64 // of A and of B, by round
	processors [2][]float64
	err        error // why it is measured no more
}

// ledger holds the entries in the order in which they came.
type ledger struct{ entries []*entry }

// entry finds a row on a store, or opens it.
func (l *ledger) entry(row, store, what, unit string) *entry {
	i := slices.IndexFunc(l.entries, func(e *entry) bool { return e.row == row && e.store == store })
	if i < 0 {
		l.entries = append(l.entries, &entry{row: row, store: store, what: what, unit: unit})
		i = len(l.entries) - 1
	}
	return l.entries[i]
}

// add takes what a round has shown of the row: of each build the median of its
// turns, which one that was disturbed does not move, and the mean of their
// processor time, for that of collecting garbage falls into few of them.
func (e *entry) add(turns [2][]sample) {
	for i, samples := range turns {
		var amounts []float64
		var processor time.Duration
		for _, s := range samples {
			amounts = append(amounts, s.amount)
			processor += s.processor
		}
		e.amounts[i] = append(e.amounts[i], median(amounts))
		e.processors[i] = append(e.processors[i], processor.Seconds()/float64(len(samples)))
	}
}

// median is the middle value, or the mean of the two in the middle; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// changes is what the entries come to.
func (l *ledger) changes(tolerance float64) []report.Change {
	all := make([]report.Change, 0, len(l.entries))
	for _, e := range l.entries {
		c := report.Change{Row: e.row, Store: e.store, What: e.what, Unit: e.unit, A: e.amounts[0], B: e.amounts[1], Tolerance: tolerance}
		if e.err != nil {
			c.Missing = e.err.Error()
		}
		c.Compare()

		// Where processor time is unknown it is 0, which has no ratio.
		if x, err := paired.Ratio(e.processors[0], e.processors[1]); err == nil {
			c.Processor = &x
		}
		all = append(all, c)
	}
	return all
}

// differing are the errors of rows.
func (l *ledger) differing() (all []error) {
	for _, e := range l.entries {
		if e.err != nil {
			all = append(all, fmt.Errorf("%s, %s: %w", e.store, e.row, e.err))
		}
	}
	return all
}
