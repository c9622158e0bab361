package operator

import (
	"bytes"
	"context"
	"slices"

	"downpour/encoding"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/access"
	"downpour/pushdown/store"
)

// scanOf returns the scan of a part by an access path; ok is false if no row can be wanted. The scan
// begins before the part where that begins the plan: the off-hour rows there hold points of the part's
// first hour, or of its hours in other parts, which do not read them.
func scanOf(part *scanplan.Part, a Access) (scan store.Scan, ok bool) {
	reads := part.Plan.Reads(part.Range)
	scan = store.Scan{
		Table:  part.Plan.Table,
		Family: encoding.FamilyData,
		Start:  reads.Start,
		Stop:   reads.Stop,
		Filter: a.Filter,
		Sealed: true,
	}
	begins := !bytes.Equal(reads.Start, part.Range.Start)
	if begins && (a.Nothing || len(a.Filter.Ranges) > 0) {
		first := store.KeyRange{Start: reads.Start, Stop: part.Range.Start}
		scan.Filter.Ranges = slices.Concat([]store.KeyRange{first}, a.Filter.Ranges)
	}
	return scan, begins || !a.Nothing //fault:off-hour-row-passed-over TestOffHour
}

// openScan opens the scan of a part by an access path. With SplitOffHour all rows that it returns are of
// full hours. splitBytes is about the memory that split rows take in addition to the scanner's blocks.
func openScan(ctx context.Context, from store.Reader, part *scanplan.Part, path Access, prefixes *access.PrefixCache,
	scan store.Scan, stats *Stats) (_ store.Scanner, splitBytes int64, err error) {
	var split []store.Row
	if part.Plan.SplitOffHour {
		if split, splitBytes, err = splitOffHourRows(ctx, from, part, stats); err != nil {
			return nil, 0, err
		}
	}
	var sc store.Scanner
	if path.ProbedRanges > 0 {
		sc = newLongScanner(ctx, from, part, path, prefixes, scan, stats)
	} else if sc, err = from.Scan(ctx, scan); err != nil {
		return nil, 0, err
	}
	if part.Plan.SplitOffHour {
		sc = &splitScanner{Scanner: sc, plan: &part.Plan, split: split}
	}
	return sc, splitBytes, nil
}
