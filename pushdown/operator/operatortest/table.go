package operatortest

import (
	"downpour/encoding"
	"downpour/encoding/scanplan"
)

// Table is the name of the data table that plans of this package read.
const Table = "tsdb"

// Series is one series of a test table.
type Series struct {
	Tags   []encoding.TagPair
	Points encoding.Points
	// Appended makes an hour an append column instead of a compacted cell.
	Appended bool
}

// UID returns a UID of the default width.
func UID(n int) encoding.UID { return encoding.UID{byte(n >> 16), byte(n >> 8), byte(n)} }

// Tag returns a tag pair.
func Tag(k, v int) encoding.TagPair { return encoding.TagPair{K: UID(k), V: UID(v)} }

// Load writes series of one metric. Each hour of a series becomes one cell.
func (m *Store) Load(s encoding.Schema, metric encoding.UID, series ...Series) {
	for _, one := range series {
		tags := s.AppendTags(nil, one.Tags)
		var b encoding.CellBuilder
		var entries []byte
		for i := range one.Points.Len() {
			ms, v := one.Points.At(i)
			hour := encoding.KeyTime(encoding.Hour(ms / 1000))
			q, value := Encode(ms, v)
			b.Add(q, value)
			entries = encoding.AppendEntry(entries, q, value)

			// The last point of its hour ends the cell.
			if i+1 == one.Points.Len() || encoding.Hour(one.Points.Time[i+1]/1000) != int64(hour) {
				qualifier, cell := b.Cell()
				if one.Appended {
					qualifier, cell = encoding.AppendColumn, entries
				}
				m.Cell(s.AppendRowKey(nil, metric, hour, tags), qualifier, cell, 1)
				b.Reset()
				entries = entries[:0]
			}
		}
	}
}

// Encode returns the qualifier and value of a point as OpenTSDB stores it.
func Encode(ms int64, v encoding.Value) (encoding.Qualifier, []byte) {
	q := encoding.Qualifier{OffsetMS: int32(ms - encoding.Hour(ms/1000)*1000), Milli: ms%1000 != 0, Float: v.Float}
	var value []byte
	if v.Float {
		value = encoding.AppendDouble(nil, v.Double())
	} else {
		value = encoding.AppendInt(nil, v.Int())
	}
	q.Width = len(value)
	return q, value
}

// Plan returns a plan over the hours [from, to) of a metric, in seconds, with a key
// range for each salt bucket. The query covers the same hours.
func Plan(s encoding.Schema, metric encoding.UID, from, to int64) scanplan.Plan {
	p := scanplan.Plan{
		Version: scanplan.Version, Schema: s, Table: Table, Metric: metric,
		From: from, To: to, Start: from * 1000, End: to*1000 - 1, Aggregator: "sum",
	}

	for salt := range s.Buckets() {
		p.Ranges = append(p.Ranges, scanplan.KeyRange{
			Start: s.AppendRangeKey(nil, salt, metric, encoding.KeyTime(from)),
			Stop:  s.AppendRangeKey(nil, salt, metric, encoding.KeyTime(to)),
		})
	}
	return p
}

// Every returns points at times in [from, to), every step seconds. Every third value is
// a float, the others are integers.
func Every(from, to, step int64, value func(i int) float64) (p encoding.Points) {
	for i, t := 0, from; t < to; i, t = i+1, t+step {
		v := value(i)
		if i%3 == 2 {
			p.Append(t*1000, encoding.FloatValue(v))
		} else {
			p.Append(t*1000, encoding.IntValue(int64(v)))
		}
	}
	return p
}
