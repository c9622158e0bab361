package differential

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"downpour/encoding"
)

// rows writes a series' points as cells, hour by hour.
func (d *Data) rows(r *rand.Rand, s *Series) (cells []Cell) {
	inTime(s.Points)
	for start := 0; start < len(s.Points); {
		base := encoding.KeyTime(encoding.Hour(s.Points[start].MS / 1000))
		end := start
		for end < len(s.Points) && encoding.KeyTime(encoding.Hour(s.Points[end].MS/1000)) == base {
			end++
		}
		w := rowWriter{r: r, base: base, damaged: kindOf(s.Metric).damaged}
		w.row(s.Points[start:end])
		cells = append(cells, d.keyed(s, base, w.cells)...)
		start = end
	}
	return cells
}

func kindOf(metric string) metricKind {
	return metricKinds[slices.IndexFunc(metricKinds, func(k metricKind) bool { return k.name == metric })]
}

// key is the row key of a series' hour, under the series' salt.
func (d *Data) key(s *Series, base uint32) []byte {
	metric := d.names.uids[encoding.UIDMetric][s.Metric]
	return append(d.Schema.AppendRangeKey(nil, s.salt, metric, base), s.tags...)
}

func (d *Data) keyed(s *Series, base uint32, cells []Cell) []Cell {
	key := d.key(s, base)
	for i := range cells {
		cells[i].Row, cells[i].Family = key, encoding.FamilyData
	}
	return cells
}

// rowWriter writes the points of one row.
type rowWriter struct {
	r       *rand.Rand
	base    uint32
	damaged bool
	cells   []Cell
}

// The heaps that a row's points are dealt over.
const (
	single = iota
	compacted
	appended
	compactedAgain
	heapCount
)

// The forms of a row other than those that put all points on one heap.
const (
	mixedRow = heapCount - 1 + iota // points anywhere
	leftRow                         // compacted, with some of its cells left over
	formCount
)

// row deals the points over heaps, each of which becomes single cells, one
// compacted cell or the append column. Points at one time go to different heaps,
// except for the append column, which may hold both.
func (w *rowWriter) row(points []Point) {
	heaps := make([][]Point, heapCount)
	form := w.r.IntN(formCount)
	for _, p := range points {
		h := form // all points on one heap, unless the form is one of these
		switch form {
		case mixedRow:
			h = w.r.IntN(heapCount)
		case leftRow:
			h = compacted
		}
		for h != appended && holds(heaps[h], p.MS) {
			h = (h + 1) % heapCount
		}
		heaps[h] = append(heaps[h], p)
		// Half of the points of such a row stand a second time, as single (0) or appended (2).
		if left := 2 * w.r.IntN(4); form == leftRow && left <= appended && !holds(heaps[left], p.MS) {
			heaps[left] = append(heaps[left], p)
		}
	}
	for _, p := range heaps[single] {
		w.single(p)
	}
	w.compacted(heaps[compacted])
	w.compacted(heaps[compactedAgain])
	w.appended(heaps[appended])
	if w.r.IntN(30) == 0 {
		w.add([]byte{0x09, 0x00, 0x00}, []byte("of no known kind"))
	}
	w.stamp()
}

func holds(points []Point, ms int64) bool {
	return slices.ContainsFunc(points, func(p Point) bool { return p.MS == ms })
}

func (w *rowWriter) qualifier(p Point) encoding.Qualifier {
	return encoding.Qualifier{
		OffsetMS: int32(p.MS - int64(w.base)*1000),
		Milli:    p.Milli,
		Float:    p.Float,
		Width:    len(p.Value),
	}
}

func (w *rowWriter) add(qualifier, value []byte) {
	w.cells = append(w.cells, Cell{Cell: encoding.Cell{Qualifier: qualifier, Value: value}})
}

// single writes a cell of one point, in a damaged metric now and then as the
// first versions did: a float of 4 bytes behind four zeros, or an integer whose
// qualifier has another length.
func (w *rowWriter) single(p Point) {
	q := w.qualifier(p)
	value := p.Value
	if w.damaged && !p.Milli && w.r.IntN(10) == 0 {
		if p.Float && len(value) == 4 {
			value = binary.BigEndian.AppendUint32(make([]byte, 4), binary.BigEndian.Uint32(value))
		} else if !p.Float {
			q.Width = pick(w.r, []int{1, 2, 4, 8})
		}
	}
	w.add(encoding.AppendQualifier(nil, q), value)
}

func (w *rowWriter) compacted(points []Point) {
	if len(points) == 0 {
		return
	}
	var b encoding.CellBuilder
	b.Reset()
	for _, p := range points {
		b.Add(w.qualifier(p), p.Value)
	}
	qualifier, value := b.Cell()
	w.add(slices.Clone(qualifier), slices.Clone(value))
}

// appended writes the append column; entries at different times may have come
// in any order.
func (w *rowWriter) appended(points []Point) {
	if len(points) == 0 {
		return
	}
	points = slices.Clone(points)
	if w.r.IntN(2) == 0 {
		w.r.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	}
	var blob []byte
	for _, p := range points {
		blob = encoding.AppendEntry(blob, w.qualifier(p), p.Value)
	}
	w.add(encoding.AppendColumn, blob)
}

// stamp makes cells of one qualifier one, the last, and gives each a time.
func (w *rowWriter) stamp() {
	slices.SortStableFunc(w.cells, func(a, b Cell) int { return slices.Compare(a.Qualifier, b.Qualifier) })
	w.cells = slices.CompactFunc(w.cells, func(a, b Cell) bool { return string(a.Qualifier) == string(b.Qualifier) })
	for i, at := range w.r.Perm(len(w.cells)) {
		w.cells[i].Timestamp = firstWrite + int64(at)
	}
}

// notes are annotations of some series, and some of none. A series under two
// salts has none: the reference gives all notes of its hour to the span under
// whichever salt it read first.
func (d *Data) notes(r *rand.Rand) (cells []Cell) {
	seen := map[string]bool{}
	for i := range 24 {
		s := &d.Series[r.IntN(len(d.Series))]
		if kindOf(s.Metric).twice {
			continue
		}
		start := d.Era + r.Int64N(FineSpan/second)
		note := encoding.Annotation{TSUID: s.TSUID, StartTime: start, Description: fmt.Sprintf("note %d", i)}
		key := d.key(s, encoding.KeyTime(encoding.Hour(start)))
		if i%8 == 0 { // of no series: under salt 0 and a metric UID of zeros, without tags
			note.TSUID = ""
			key = d.Schema.AppendRangeKey(nil, 0, make(encoding.UID, d.Schema.MetricWidth),
				encoding.KeyTime(encoding.Hour(start)))
		}
		qualifier := encoding.AppendAnnotationQualifier(nil, start)
		if id := string(key) + string(qualifier); !seen[id] {
			seen[id] = true
			cells = append(cells, Cell{Timestamp: firstWrite + 1000, Cell: encoding.Cell{
				Row:       key,
				Family:    encoding.FamilyData,
				Qualifier: qualifier,
				Value:     encoding.AppendAnnotation(nil, note),
			}})
		}
	}
	return cells
}
