package hostile

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"downpour/encoding"
)

// Era is where the world's dense series begin, in seconds: a full hour of
// November 2023.
const Era = 1_699_999_200

// Metric is one metric of the world. All its series have points at the same times.
type Metric struct {
	Name   string
	Series int
	Start  int64 // ms
	Step   int64 // ms
	Points int   // of a series
	Float  bool
	// Resets says that values only grow, and start over now and then.
	Resets bool
}

// End is the time of the last point, in ms.
func (m *Metric) End() int64 { return m.Start + int64(m.Points-1)*m.Step }

// The metrics: Light is for the client next to the storm.
const (
	Light = "hostile.light"
	two   = "hostile.two"
)

// metrics are the world's, some six million points.
var metrics = []Metric{
	{Name: Light, Series: 5, Start: Era * 1000, Step: 10_000, Points: 360},
	{Name: "hostile.dense", Series: 100, Start: Era * 1000, Step: 1000, Points: 36_000},
	{Name: "hostile.wide", Series: 20_000, Start: Era * 1000, Step: 60_000, Points: 60},
	{Name: "hostile.slow", Series: 2, Start: (Era - 12*365*86400) * 1000, Step: 3600_000, Points: 12 * 365 * 24},
	{Name: "hostile.milli", Series: 10, Start: Era * 1000, Step: 10, Points: 60_000},
	{Name: "hostile.float", Series: 40, Start: Era * 1000, Step: 10_000, Points: 2160, Float: true},
	{Name: "hostile.counter", Series: 50, Start: Era * 1000, Step: 10_000, Points: 2160, Resets: true},
	{Name: two, Series: 1, Start: 1_000_000, Step: 1_699_999_000_000, Points: 2},
}

// World is what a server is loaded with. It is the same each time.
type World struct {
	Schema encoding.Schema
	uids   map[encoding.UIDKind]map[string]encoding.UID
}

// NewWorld gives every name of the world a UID, as wide as the schema has it.
func NewWorld(schema encoding.Schema) *World {
	w := &World{Schema: schema, uids: map[encoding.UIDKind]map[string]encoding.UID{}}
	widest := 0
	for i := range metrics {
		w.assign(encoding.UIDMetric, metrics[i].Name)
		widest = max(widest, metrics[i].Series)
	}
	for _, k := range []string{"host", "dc"} {
		w.assign(encoding.UIDTagK, k)
	}
	for i := range centres {
		w.assign(encoding.UIDTagV, centre(i))
	}
	// Metrics share their hosts: series i of each is of host i.
	for i := range widest {
		w.assign(encoding.UIDTagV, host(i))
	}
	return w
}

// centres is the number of values of the tag dc.
const centres = 7

func centre(i int) string { return fmt.Sprintf("dc%d", i) }
func host(i int) string   { return hosts()[i] }

// hosts are the values of the tag host, and some more that no series has.
var hosts = sync.OnceValue(func() (names []string) {
	for i := range 30_000 {
		names = append(names, fmt.Sprintf("web%05d", i))
	}
	return names
})

func (w *World) assign(kind encoding.UIDKind, name string) {
	if w.uids[kind] == nil {
		w.uids[kind] = map[string]encoding.UID{}
	}
	n := uint64(len(w.uids[kind]) + 1)
	u := make(encoding.UID, w.Schema.UIDWidth(kind))
	for i := range u {
		u[len(u)-1-i] = byte(n >> (8 * i))
	}
	w.uids[kind][name] = u
}

// tags are those of series i, as row keys have them.
func (w *World) tags(i int) []byte {
	k, v := w.uids[encoding.UIDTagK], w.uids[encoding.UIDTagV]
	return w.Schema.AppendTags(nil, []encoding.TagPair{
		{K: k["host"], V: v[host(i)]},
		{K: k["dc"], V: v[centre(i%centres)]},
	})
}

// tsuid names series i of a metric, in hex.
func (w *World) tsuid(m *Metric, i int) string {
	return fmt.Sprintf("%X%X", []byte(w.uids[encoding.UIDMetric][m.Name]), w.tags(i))
}

// Names are the cells of the UID table: each name both ways, and the counters.
func (w *World) Names() iter.Seq[encoding.Cell] {
	return func(yield func(encoding.Cell) bool) {
		for _, kind := range slices.Sorted(maps.Keys(w.uids)) {
			for _, name := range slices.Sorted(maps.Keys(w.uids[kind])) {
				m := encoding.UIDMapping{Kind: kind, Name: name, UID: w.uids[kind][name]}
				forward, _ := m.Forward() // names of letters and digits alone
				reverse, _ := m.Reverse()
				if !yield(forward) || !yield(reverse) {
					return
				}
			}
			if !yield(encoding.Cell{Row: encoding.CounterRow, Family: encoding.FamilyID, Qualifier: kind.Qualifier(),
				Value: encoding.AppendCounter(nil, int64(len(w.uids[kind])))}) {
				return
			}
		}
	}
}

// Series are the cells of the meta table: each series with the number of its
// points.
func (w *World) Series() iter.Seq[encoding.Cell] {
	return func(yield func(encoding.Cell) bool) {
		for i := range metrics {
			m := &metrics[i]
			for s := range m.Series {
				c := encoding.Cell{
					Row:       slices.Concat(w.uids[encoding.UIDMetric][m.Name], w.tags(s)),
					Family:    encoding.FamilyName,
					Qualifier: []byte(encoding.MetaCounterQualifier),
					Value:     encoding.AppendCounter(nil, int64(m.Points)),
				}
				if !yield(c) {
					return
				}
			}
		}
	}
}

// Rows are the cells of the data table, an hour of a series in each, metric by
// metric in the order of their keys.
func (w *World) Rows() iter.Seq[encoding.Cell] {
	return func(yield func(encoding.Cell) bool) {
		for i := range metrics {
			if !w.rowsOf(&metrics[i], yield) {
				return
			}
		}
	}
}

// rowsOf yields a metric's rows, each hour with all series before the next one. It returns
// false if yield wants no more.
func (w *World) rowsOf(m *Metric, yield func(encoding.Cell) bool) bool {
	metric := w.uids[encoding.UIDMetric][m.Name]
	for first := 0; first < m.Points; {
		base := encoding.KeyTime(encoding.Hour((m.Start + int64(first)*m.Step) / 1000))
		next := first
		for next < m.Points && encoding.KeyTime(encoding.Hour((m.Start+int64(next)*m.Step)/1000)) == base {
			next++
		}
		for s := range m.Series {
			c := encoding.Cell{
				Row:       w.Schema.AppendRowKey(nil, metric, base, w.tags(s)),
				Family:    encoding.FamilyData,
				Qualifier: encoding.AppendColumn,
			}
			for i := first; i < next; i++ {
				c.Value = m.appendPoint(c.Value, s, i, base)
			}
			if !yield(c) {
				return false
			}
		}
		first = next
	}
	return true
}

// appendPoint adds point i of series s to the column of an hour.
func (m *Metric) appendPoint(dst []byte, s, i int, base uint32) []byte {
	at := m.Start + int64(i)*m.Step
	q := encoding.Qualifier{OffsetMS: int32(at - int64(base)*1000), Milli: m.Step < 1000, Float: m.Float}
	var value []byte
	switch n := m.value(s, i); {
	case m.Float:
		value = encoding.AppendDouble(nil, float64(n)/100)
	default:
		value = encoding.AppendInt(nil, n)
	}
	q.Width = len(value)
	return encoding.AppendEntry(dst, q, value)
}

// resetEvery is after how many points a counter starts over.
const resetEvery = 500

// value is some number that depends on series and point alone.
func (m *Metric) value(s, i int) int64 {
	if m.Resets {
		i %= resetEvery + s
		return int64(i) * int64(7+s%5)
	}
	// 12 bits of a hash: -1024 to 3071.
	h := uint64(s)*0x9E3779B97F4A7C15 ^ uint64(i)*0xC2B2AE3D27D4EB4F
	h ^= h >> 29
	return int64(h*0xBF58476D1CE4E5B9>>52) - 1024
}
