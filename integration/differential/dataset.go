package differential

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"downpour/encoding"
)

// Cell is a cell to be written, with the time of its write in ms.
type Cell struct {
	encoding.Cell
	Timestamp int64
}

// firstWrite is the earliest time of writing; a row's cells follow in ms.
const firstWrite = 1_500_000_000_000

// Series is one series and its points in the order of time. Of points at one
// time the last one was written last.
type Series struct {
	Metric string
	Tags   map[string]string
	TSUID  string // hex, upper case
	Points []Point

	tags []byte
	salt int // bucket it is stored under
}

// Point is a point as it is stored.
type Point struct {
	MS    int64
	Milli bool // under a qualifier in ms
	Float bool
	Value []byte // 1, 2, 4 or 8 bytes, of floats 4 or 8
}

// Text is the value as JSON spells it, by which a put stores the same type.
func (p Point) Text() json.RawMessage {
	v := p.value()
	if !p.Float {
		return strconv.AppendInt(nil, v.Int(), 10)
	}
	return encoding.AppendJavaDouble(nil, v.Double())
}

func (p Point) value() encoding.Value {
	v, err := encoding.ParseValue(encoding.Qualifier{Float: p.Float, Width: len(p.Value)}, p.Value)
	if err != nil {
		panic(err) // the value was encoded here
	}
	return v
}

// Data is a set of tables.
type Data struct {
	Schema encoding.Schema
	Era    int64 // first second of the data, the start of an hour
	Series []Series
	// UID and Rows are the cells of the UID and of the data table.
	UID, Rows []Cell

	names *names
}

// eras are hours at which the data may begin: an ordinary one, the hours before
// clocks change in Europe, in New York and in Sao Paulo, a year's end, and one
// whose seconds need the 32nd bit.
var eras = []int64{1356998400, 1364682000, 1383451200, 1350777600, 1388520000, 2499998400}

// Generate makes data for tables of the schema.
func Generate(seed uint64, schema encoding.Schema) *Data {
	r := rand.New(rand.NewPCG(seed, 1)) // 1, 2 and 3 keep Generate, Rollups and Histograms apart
	d := &Data{Schema: schema, Era: eras[r.IntN(len(eras))], names: newNames(r, schema)}
	for _, kind := range metricKinds {
		d.Series = append(d.Series, d.series(r, kind)...)
	}
	d.UID = d.names.cells()
	for i := range d.Series {
		d.Rows = append(d.Rows, d.rows(r, &d.Series[i])...)
	}
	d.Rows = append(d.Rows, d.notes(r)...)
	slices.SortFunc(d.Rows, func(a, b Cell) int {
		return cmp.Or(slices.Compare(a.Row, b.Row), slices.Compare(a.Qualifier, b.Qualifier))
	})
	return d
}

// Digest distinguishes the cells of all rows from those of other data.
func (d *Data) Digest() string {
	h := sha256.New()
	for _, cells := range [][]Cell{d.UID, d.Rows} {
		for _, c := range cells {
			fmt.Fprintf(h, "%x %s %x %x %d\n", c.Row, c.Family, c.Qualifier, c.Value, c.Timestamp)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// Metrics are the names of all metrics.
func (d *Data) Metrics() (all []string) {
	for _, s := range d.Series {
		if !slices.Contains(all, s.Metric) {
			all = append(all, s.Metric)
		}
	}
	return all
}

// Of returns the series of a metric.
func (d *Data) Of(metric string) (all []Series) {
	for _, s := range d.Series {
		if s.Metric == metric {
			all = append(all, s)
		}
	}
	return all
}

// Values are the values that a metric's series have of a tag key, ascending.
func (d *Data) Values(metric, key string) []string {
	var all []string
	for _, s := range d.Of(metric) {
		if v, ok := s.Tags[key]; ok {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// series makes the series of one metric, no two with the same tags.
func (d *Data) series(r *rand.Rand, kind metricKind) (all []Series) {
	seen := map[string]bool{}
	for len(all) < kind.series {
		tags := randomTags(r)
		tsuid := d.names.tsuid(kind.name, tags)
		if seen[tsuid] {
			continue
		}
		seen[tsuid] = true
		s := Series{Metric: kind.name, Tags: tags, TSUID: tsuid, tags: d.names.tags(tags)}
		s.salt = d.Schema.Salt(d.names.uids[encoding.UIDMetric][kind.name], s.tags)
		s.Points = kind.points(r, d.Era)
		all = append(all, s)
		if kind.twice && d.Schema.SaltWidth > 0 {
			all = append(all, d.otherSalt(r, kind, s))
		}
	}
	return all
}

// otherSalt is the same series under the next bucket, as it is left when the
// number of buckets has been changed.
func (d *Data) otherSalt(r *rand.Rand, kind metricKind, s Series) Series {
	s.salt = (s.salt + 1) % d.Schema.SaltBuckets
	s.Points = kind.points(r, d.Era)
	return s
}

// randomTags leaves keys out now and then, but never all.
func randomTags(r *rand.Rand) map[string]string {
	tags := map[string]string{}
	for i, k := range TagKeys {
		if r.IntN(10) < []int{9, 6, 3}[i] {
			tags[k] = pick(r, tagValues[k])
		}
	}
	if len(tags) == 0 {
		tags["dc"] = pick(r, tagValues["dc"])
	}
	return tags
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
