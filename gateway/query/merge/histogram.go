package merge

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/encoding/batch"
	"downpour/encoding/scanplan"
	"downpour/pushdown/operator/downsample"
	"downpour/pushdown/operator/histogram"
)

// histogramSums are what the parts of a plan of histograms returned.
type histogramSums struct {
	sums    histogram.Sums
	members map[string][]*seriesData // by the group's key, as parts name it
	notes   map[string][]histogramNote
	counted int64 // bytes of sums that are accounted for
}

// histogramNote is an annotation of a series of a group.
type histogramNote struct {
	span, text []byte
	part       string // first key of the part
}

// addHistograms adds a batch of histograms of a part.
func (m *Merger) addHistograms(part string, rec batch.Record) error {
	r, err := batch.NewHistogramReader(rec)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}

	var row batch.Histograms
	for i := range r.Len() {
		if err := r.At(i, &row); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
		if err := m.addHistogramRow(part, &row); err != nil {
			return err
		}
	}
	return nil
}

// addHistogramRow adds the histograms of one group. A plan with a name filter has
// groups of one series each, and the filter drops them whole.
func (m *Merger) addHistogramRow(part string, row *batch.Histograms) error {
	h := &m.histograms
	if m.passesName != nil {
		sp, err := m.findSeries(row.Group)
		if err != nil || sp.id == nil {
			return err
		}
	}
	if h.members == nil {
		h.members, h.notes = map[string][]*seriesData{}, map[string][]histogramNote{}
	}

	key := string(row.Group)
	for _, id := range row.Spans {
		sp, err := m.findSeries(id)
		if err != nil {
			return err
		}
		// Each part names its members, and a group has each of them once.
		if sp.id != nil && !sp.hasData {
			sp.hasData = true
			h.members[key] = append(h.members[key], sp)
		}
	}

	for i, text := range row.Notes {
		n := histogramNote{m.memory.bytes.copy(row.NoteSpan[i]), m.memory.bytes.copy(text), part}
		h.notes[key] = append(h.notes[key], n)
		if err := m.account(int64(len(n.span)+len(n.text)) + sliceBytes*2); err != nil {
			return err
		}
	}

	group := h.sums.Group(row.Group)
	err := row.At(func(t int64, one *encoding.Histogram) error {
		group.Add(t, one)
		return m.accountSums()
	})
	if err != nil {
		return err
	}
	return m.accountSums() // the group itself, if it has no histogram
}

// sliceBytes are those of a slice's header.
const sliceBytes = 24

// accountSums counts what the sums have grown by.
func (m *Merger) accountSums() error {
	h := &m.histograms
	grown := h.sums.Bytes() - h.counted
	h.counted += grown
	return m.account(grown)
}

// histogramGroups makes the lines of all groups: percentiles, then buckets.
func (m *Merger) histogramGroups() ([]Group, error) {
	h := &m.histograms
	sums, err := m.sumSeries()
	if err != nil {
		return nil, err
	}

	var groups []Group
	for _, g := range sums.Sorted() {
		members := h.members[g.Key]
		if len(members) == 0 {
			continue // it has annotations only
		}
		if groups, err = m.appendLines(groups, g, members, h.notes[g.Key]); err != nil {
			m.outputBytes = 0 // nobody gets the lines that were made before
			return nil, err
		}
	}
	return groups, nil
}

// sumSeries adds up the groups of series that parts have returned, in groups of the
// plan. Calendar buckets are found first, series by series. If parts returned groups of
// the plan, these are the answer.
func (m *Merger) sumSeries() (*histogram.Sums, error) {
	h := &m.histograms
	var bucketer *downsample.Bucketer
	if d := m.plan.Downsample; d != nil && d.Calendar {
		var err error
		if bucketer, err = downsample.New(d, m.plan.From, m.plan.To, m.plan.Start, m.plan.End); err != nil {
			return nil, err
		}
	}

	if bucketer == nil && !m.returnedSeries() {
		return &h.sums, nil
	}

	out := new(histogram.Sums)
	members, notes := map[string][]*seriesData{}, map[string][]histogramNote{}
	var key []byte
	for i, g := range h.sums.Sorted() {
		if i%checkSpans == 0 {
			if err := m.Check(); err != nil {
				return nil, err
			}
		}

		key = append(key[:0], g.Key...)
		if own := h.members[g.Key]; m.isSpan(g.Key, own) {
			var ok bool
			if key, ok = m.plan.AppendGroupKey(key[:0], own[0].id); !ok {
				continue // it lacks a tag of the group-by
			}
		}
		members[string(key)] = append(members[string(key)], h.members[g.Key]...)
		notes[string(key)] = append(notes[string(key)], h.notes[g.Key]...)

		// Where calendar buckets begin depends on the series.
		if bucketer != nil {
			bucketer.Reset()
		}
		before := out.Bytes()
		to := out.Group(key)
		for _, t := range g.Times() {
			at, ok := t, true
			if bucketer != nil {
				at, ok = bucketer.Place(t)
			}
			if ok { // else it lies in no bucket
				to.Add(at, g.At(t))
			}
		}
		if err := m.account(out.Bytes() - before); err != nil {
			return nil, err
		}
	}

	h.members, h.notes = members, notes
	return out, nil
}

// returnedSeries reports whether parts have returned series that the plan groups.
func (m *Merger) returnedSeries() bool {
	if m.plan.Aggregator == scanplan.None { // each series is a group of the plan
		return false
	}
	for key, members := range m.histograms.members {
		if m.isSpan(key, members) {
			return true
		}
	}
	return false
}

// isSpan reports whether a part has returned the histograms of one series under a key,
// and not those of a group: the key is then the series itself.
func (m *Merger) isSpan(key string, members []*seriesData) bool {
	return len(members) == 1 && string(members[0].id) == key
}

// appendLines appends the lines of a group: first its percentiles, then its buckets.
func (m *Merger) appendLines(lines []Group, g *histogram.Group, members []*seriesData,
	notes []histogramNote) ([]Group, error) {
	// In span order, as the members of any group; described.Spans is searched below.
	slices.SortFunc(members, func(a, b *seriesData) int { return bytes.Compare(a.id, b.id) })
	described := Group{Key: []byte(g.Key)}
	for _, sp := range members {
		described.Spans = append(described.Spans, sp.id)
	}
	m.describe(&described)

	slices.SortStableFunc(notes, func(a, b histogramNote) int { // parts come in any order
		return cmp.Or(bytes.Compare(a.span, b.span), strings.Compare(a.part, b.part))
	})
	for _, n := range notes {
		// An annotation of a series without histograms is none of the group's.
		if _, ok := slices.BinarySearchFunc(described.Spans, n.span, bytes.Compare); ok {
			described.Notes = append(described.Notes, n.text)
		}
	}

	times := g.Times()
	inside := m.timesInside(times)
	for _, p := range m.plan.Histograms.Percentiles {
		line, err := m.newLine(&described, "_pct_"+javaFloat(p), inside, func(h *encoding.Histogram) encoding.Value {
			return encoding.FloatValue(h.Percentile(float64(p)))
		}, g)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}

	// The buckets are those of the group's first histogram, also if that lies outside
	// the query. Source: TsdbQuery.generateHistogramBucketDataPoints.
	if !m.plan.Histograms.Buckets || len(times) == 0 {
		return lines, nil
	}
	for _, b := range bucketLines(g.At(times[0])) {
		line, err := m.newLine(&described, b.suffix, inside, b.count, g)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// timesInside returns the times that the answer has. The one bucket of a whole query is
// never among them: OpenTSDB stamps it with 1970. Source: HistogramDownsampler.
func (m *Merger) timesInside(times []int64) []int64 {
	if d := m.plan.Downsample; d != nil && d.All {
		return nil
	}
	from := sort.Search(len(times), func(i int) bool { return times[i] >= m.plan.Start })
	to := sort.Search(len(times), func(i int) bool { return times[i] > m.plan.End })
	return times[from:max(from, to)]
}

// bucketLine is a line of counts.
type bucketLine struct {
	suffix string
	count  func(h *encoding.Histogram) encoding.Value
}

// bucketLines returns the lines of a histogram's buckets.
func bucketLines(first *encoding.Histogram) []bucketLine {
	lines := []bucketLine{{"_UNDERFLOW",
		func(h *encoding.Histogram) encoding.Value { return encoding.IntValue(h.Underflow) }}}
	for _, b := range slices.Clone(first.Buckets) {
		suffix := "_" + javaFloat(b.Lower) + "_" + javaFloat(b.Upper)
		lines = append(lines, bucketLine{suffix,
			func(h *encoding.Histogram) encoding.Value { return encoding.IntValue(h.Count(&b)) }})
	}
	return append(lines, bucketLine{"_OVERFLOW",
		func(h *encoding.Histogram) encoding.Value { return encoding.IntValue(h.Overflow) }})
}

// newLine makes one line of a group. Its number of points is known before they are made.
func (m *Merger) newLine(described *Group, suffix string, times []int64,
	value func(*encoding.Histogram) encoding.Value, g *histogram.Group) (Group, error) {
	line := *described
	line.Suffix = suffix

	n := int64(len(times)) * pointBytes
	m.outputBytes += n
	if err := m.account(n + groupBytes + int64(len(suffix))); err != nil {
		return line, err
	}
	if err := m.countPoints(len(times)); err != nil {
		return line, err
	}
	if err := m.Check(); err != nil {
		return line, err
	}
	points := encoding.Points{
		Time: make([]int64, 0, len(times)), Bits: make([]uint64, 0, len(times)), Float: make([]bool, 0, len(times)),
	}
	for _, t := range times {
		points.Append(t, value(g.At(t)))
	}
	line.Points = points
	return line, nil
}

// javaFloat writes a float as Java does: with at least one digit after the point, and
// with an exponent below 0.001 and from ten millions on. Source: Float.toString.
func javaFloat(f float32) string {
	switch {
	case f != f:
		return "NaN"
	case f-f != 0 && f > 0: // an infinity minus itself is NaN
		return "Infinity"
	case f-f != 0:
		return "-Infinity"
	case f == 0 || f < 1e7 && f > -1e7 && (f >= 1e-3 || f <= -1e-3):
		text := strconv.FormatFloat(float64(f), 'f', -1, 32)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}

	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(float64(f), 'e', -1, 32), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent) // as FormatFloat has written it
	return mantissa + "E" + strconv.Itoa(n)
}
