package incremental

import (
	"encoding/binary"
	"fmt"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// maxUnit is the longest unit (see Unit) that a plan may have, ms: a month. When
// one row changes, all rows of its unit are read again.
const maxUnit = 31 * 24 * 3600 * 1000

// notCovered lists the plans that have no view and whose query is run again at
// each tick, with the reason.
var notCovered = []struct {
	reason  string
	applies func(p *scanplan.Plan) bool
}{
	{"a view holds values, not histograms",
		func(p *scanplan.Plan) bool { return p.Histograms != nil }},
	{"the one bucket of all time ends now: every tick changes it",
		func(p *scanplan.Plan) bool { return p.Downsample != nil && p.Downsample.All }},
	{"calendar buckets lie by the first point of their series: a late one moves all",
		func(p *scanplan.Plan) bool { return p.Downsample != nil && p.Downsample.Calendar }},
	{"the arithmetic of the view is that of no fix",
		func(p *scanplan.Plan) bool { return p.Fix != 0 }},
	{"the interval and the hour have no common multiple below a month",
		func(p *scanplan.Plan) bool { return Unit(p) > maxUnit }},
}

// Covers returns the reason why a plan cannot have a view, or "" if it can.
func Covers(p *scanplan.Plan) (reason string) {
	for _, n := range notCovered {
		if n.applies(p) {
			return n.reason
		}
	}
	return ""
}

// hour is the time that one row covers, ms.
const hour = encoding.RowSeconds * 1000

// Unit returns the length in ms of the intervals of time, counted from 1970, that hold
// both whole rows and whole buckets of a plan: the least common multiple of the hour
// and the downsampling interval.
func Unit(p *scanplan.Plan) int64 {
	if p.Downsample == nil || p.Downsample.Interval <= 0 {
		return hour
	}

	a, b := int64(hour), p.Downsample.Interval
	for b != 0 {
		a, b = b, a%b
	}
	return p.Downsample.Interval / a * hour
}

// UnitKeys appends to dst the keys of all rows of a row's unit, within the plan's scan range: they
// must be read when that row changes.
func UnitKeys(dst [][]byte, p *scanplan.Plan, row []byte) ([][]byte, error) {
	k, err := p.Schema.ParseRowKey(row)
	if err != nil {
		return dst, fmt.Errorf("incremental: cannot determine which rows to read again: %w", err)
	}

	unit := Unit(p) / 1000
	start := int64(k.BaseTime) / unit * unit
	at := p.Schema.BaseTimeAt()

	for base := max(start, p.From); base < min(start+unit, p.To); base += encoding.RowSeconds {
		key := append(make([]byte, 0, len(row)), row[:at]...)
		key = binary.BigEndian.AppendUint32(key, encoding.KeyTime(base))
		dst = append(dst, append(key, row[at+encoding.BaseTimeWidth:]...))
	}
	return dst, nil
}
