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
	processor time.Duration // processor time of the measurement; 0 if it is unknown
}

// entry is a row on a store, with what all rounds have measured.
type entry struct {
	row, store, what, unit string

	amounts    [2][]float64 // of A and of B, by round
	processors [2][]float64
	err        error // why it is not measured any more; nil as long as it is
}

// rowSet holds the rows of a comparison in the order in which they were first
// measured.
type rowSet struct{ entries []*entry }

// entry returns the entry of a row on a store. It adds one if there is none.
func (l *rowSet) entry(row, store, what, unit string) *entry {
	i := slices.IndexFunc(l.entries, func(e *entry) bool { return e.row == row && e.store == store })
	if i < 0 {
		l.entries = append(l.entries, &entry{row: row, store: store, what: what, unit: unit})
		i = len(l.entries) - 1
	}
	return l.entries[i]
}

// add adds what a round has measured of the row: for each build the median of its
// turns, which one disturbed turn does not move, and the mean of their processor
// times, because garbage is collected in few of the turns.
func (e *entry) add(samples [2][]sample) {
	for build, turns := range samples {
		var amounts []float64
		var processor time.Duration
		for _, s := range turns {
			amounts = append(amounts, s.amount)
			processor += s.processor
		}
		e.amounts[build] = append(e.amounts[build], paired.Median(amounts))
		e.processors[build] = append(e.processors[build], processor.Seconds()/float64(len(turns)))
	}
}

// changes returns the entries as the report has them.
func (l *rowSet) changes(tolerance float64) []report.Change {
	all := make([]report.Change, 0, len(l.entries))
	for _, e := range l.entries {
		c := report.Change{
			Row:       e.row,
			Store:     e.store,
			What:      e.what,
			Unit:      e.unit,
			A:         e.amounts[0],
			B:         e.amounts[1],
			Tolerance: tolerance,
		}
		if e.err != nil {
			c.Missing = e.err.Error()
		}
		c.Compare()

		// Unknown processor times are 0 and have no ratio.
		if x, err := paired.Ratio(e.processors[0], e.processors[1]); err == nil {
			c.Processor = &x
		}
		all = append(all, c)
	}
	return all
}

// differing returns the errors of the rows that could not be measured.
func (l *rowSet) differing() (all []error) {
	for _, e := range l.entries {
		if e.err != nil {
			all = append(all, fmt.Errorf("%s, %s: %w", e.store, e.row, e.err))
		}
	}
	return all
}
