package pebble

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"downpour/encoding"
	"downpour/pushdown/store"
)

// The rows of tests of sealing: series of a metric from an hour of 2011 on.
const sealedFirst = 1_297_573_200

var sealedSchema = encoding.DefaultSchema()

// sealedRow is the key of a series' row.
func sealedRow(series, hour int) []byte {
	tags := binary.BigEndian.AppendUint16([]byte{0, 0, 1, 0}, uint16(series+1))
	return sealedSchema.AppendRowKey(nil, encoding.UID{0, 0, 1}, uint32(sealedFirst+3600*hour), tags)
}

// sealedEntries are the entries of a series and hour, one each ten seconds: integers, floats of two decimals,
// counters, doubles or a mixture, by the number of the series.
func sealedEntries(series, hour int) (entries []byte) {
	r := rand.New(rand.NewPCG(uint64(series), uint64(hour)))
	last := int64(series * 1000)
	for i := range 360 {
		q, v := encoding.Qualifier{OffsetMS: int32(i) * 10_000}, []byte(nil)
		last += r.Int64N(11) - 5
		switch {
		case series%5 == 1, series%5 == 4 && r.IntN(4) == 0:
			v, q.Float = encoding.AppendShortFloat(nil, float64(last)/100), true
		case series%5 == 3:
			v, q.Float = encoding.AppendDouble(nil, r.NormFloat64()), true
			q.OffsetMS += r.Int32N(1000)
			q.Milli = true
		case series%5 == 2:
			last += r.Int64N(4000)
			v = encoding.AppendInt(nil, last)
		default:
			v = encoding.AppendInt(nil, last%100)
		}
		q.Width = len(v)
		entries = encoding.AppendEntry(entries, q, v)
	}
	return entries
}

// appendEntries puts entries into a row.
func appendEntries(t testing.TB, s *Store, series, hour int, entries []byte) {
	t.Helper()
	apply(t, s, store.Mutation{
		Kind:      store.Append,
		Row:       sealedRow(series, hour),
		Family:    "t",
		Qualifier: encoding.AppendColumn,
		Value:     entries,
	})
}

// Rows of the directory of 0.1.0.
const (
	oldSeries = 10
	oldHours  = 3
)
