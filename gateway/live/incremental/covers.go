package incremental

import (
	"fmt"

	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// maxUnit bounds the stretch of rows that is read again when one of them
// changes, ms: a month.
const maxUnit = 31 * 24 * 3600 * 1000

// uncovered is the table of what is asked whole again at each tick, and why.
var uncovered = []struct {
	reason string
	is     func(p *scanplan.Plan) bool
}{
	{"the one bucket of all time ends now: every tick changes it",
		func(p *scanplan.Plan) bool { return p.Downsample != nil && p.Downsample.All }},
	{"calendar buckets lie by the first point of their series: a late one moves all",
		func(p *scanplan.Plan) bool { return p.Downsample != nil && p.Downsample.Calendar }},
	{"the arithmetic of the table is that of no fix",
		func(p *scanplan.Plan) bool { return p.Fix != 0 }},
	{"the interval and the hour have no common multiple below a month",
		func(p *scanplan.Plan) bool { return Unit(p) > maxUnit }},
}

// Covers returns why a plan cannot stand in a table, "" if it can.
func Covers(p *scanplan.Plan) (reason string) {
	for _, u := range uncovered {
		if u.is(p) {
			return u.reason
		}
	}
	return ""
}

// hour is what a row holds, ms.
const hour = encoding.RowSeconds * 1000

// Unit is the length in ms of the stretches of time, counted from 1970, that hold
// whole rows and whole buckets of a plan.
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

// UnitKeys appends to dst the keys of all rows of the unit that a row lies in:
// what must be read when that row changes.
func UnitKeys(dst [][]byte, p *scanplan.Plan, row []byte) ([][]byte, error) {
	k, err := p.Schema.ParseRowKey(row)
	if err != nil {
		return dst, fmt.Errorf("standing: %w", err)
	}
	unit := Unit(p) / 1000
	start := int64(k.BaseTime) / unit * unit
	at := p.Schema.BaseTimeAt()
	for base := max(start, p.From); base < min(start+unit, p.To); base += encoding.RowSeconds {
		key := append(make([]byte, 0, len(row)), row[:at]...)
		key = append(key, byte(base>>24), byte(base>>16), byte(base>>8), byte(base))
		dst = append(dst, append(key, row[at+encoding.BaseTimeWidth:]...))
	}
	return dst, nil
}
