package scanplan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"downpour/encoding"
)

// Window computes, for each series and each of its times, one value of the points of the window before:
// those after t-Range, up to and with t. The windows of neighbouring times may overlap, and a time whose
// window has no value has none in the answer.
type Window struct {
	// Function is what is computed, see pushdown/operator/window.
	Function string
	Range    int64 // ms
	// The times are First and every Step after it up to Last, in ms. First may be before 1970.
	First, Last, Step int64
	// Groups, if set, has the values of several series at one time become one.
	Groups *WindowGroups `json:",omitempty"`
}

// WindowGroups makes one series of those that agree in some of their tags: it has these tags alone.
type WindowGroups struct {
	// Function is what is made of the values of one time, see pushdown/operator/window.
	Function string
	// Keys are the tag keys, ascending, that separate groups; if Without is set, all others do. A series without a
	// key is in a group without it.
	Keys    []encoding.UID
	Without bool
}

// Bounds of a window: how many times it may have, and of its times and lengths in ms.
const (
	maxWindowTimes = 1 << 20
	maxWindowMS    = 1 << 52
)

// validate checks what a window must have, in a plan without other computations; nil, no window, is valid.
func (w *Window) validate(p *Plan) error {
	switch {
	case w == nil:
		return nil
	case w.Range <= 0, w.Range > maxWindowMS, w.Step <= 0, w.Step > maxWindowMS, w.First < -maxWindowMS,
		w.Last > maxWindowMS, w.First > w.Last, (w.Last-w.First)/w.Step >= maxWindowTimes:
		return fmt.Errorf("scanplan: window of %d ms from %d to %d ms by %d ms, want up to %d times", w.Range, w.First,
			w.Last, w.Step, maxWindowTimes)
	case p.Downsample != nil || p.Rollup != nil || p.Histograms != nil || p.Rate != nil || p.Aggregator != None:
		return fmt.Errorf(
			"scanplan: a window with a downsample, a rollup, histograms, a rate or the aggregator %s, want none",
			p.Aggregator)
	}
	if g := w.Groups; g != nil {
		return p.validateTagKeys(g.Keys)
	}
	return nil
}

// Len returns how many times there are.
func (w *Window) Len() int { return int((w.Last-w.First)/w.Step) + 1 }

// At returns time i.
func (w *Window) At(i int) int64 { return w.First + int64(i)*w.Step }

// From returns the index of the first time at ms or later; it is Len if all are before.
func (w *Window) From(ms int64) int {
	switch {
	case ms <= w.First:
		return 0
	case ms > w.Last:
		return w.Len()
	}
	return int(min((ms-w.First+w.Step-1)/w.Step, int64(w.Len())))
}

// Inside returns the indexes [i, j) of the times whose windows are inside [from, to), in ms: rows of that
// stretch have all of their points. j is that of the first time at to or later.
func (w *Window) Inside(from, to int64) (i, j int) {
	j = w.From(to)
	return min(w.From(from+w.Range-1), j), j
}

// Around returns the window with those of its times whose windows have points in [from, to), in ms; ok is false if
// there are none.
func (w *Window) Around(from, to int64) (around Window, ok bool) {
	i, j := w.From(from), w.From(to-1+w.Range)
	if i >= j {
		return *w, false
	}
	around = *w
	around.First, around.Last = w.At(i), w.At(j-1)
	return around, true
}

// String is the window as explain shows it.
func (w *Window) String() string {
	text := fmt.Sprintf("%s of %d ms at [%d ms, %d ms] every %d ms", w.Function, w.Range, w.First, w.Last, w.Step)
	if w.Groups == nil {
		return text
	}
	return text + ", " + w.Groups.String()
}

// String is the groups as explain shows them.
func (g *WindowGroups) String() string {
	word := "by"
	if g.Without {
		word = "without"
	}
	return fmt.Sprintf("%s %s %s", g.Function, word, g.Keys)
}

// appendGroup appends the span of the series that stands for the group of a span, which has no salt.
func (g *WindowGroups) appendGroup(dst []byte, s encoding.Schema, span []byte) []byte {
	dst = append(dst, make([]byte, s.SaltWidth)...) //fault:window-group-with-salt TestWindows_cut
	dst = append(dst, span[s.SaltWidth:s.BaseTimeAt()]...)
	for tags := s.SpanTags(span); len(tags) >= s.TagWidth(); tags = tags[s.TagWidth():] {
		key := tags[:s.TagKWidth]
		_, found := slices.BinarySearchFunc(g.Keys, key, func(k encoding.UID, key []byte) int {
			return bytes.Compare(k, key)
		})
		if found != g.Without {
			dst = append(dst, tags[:s.TagWidth()]...)
		}
	}
	return dst
}

// SeriesTimes returns the times [from, to), in ms, of the rows that a part with a range of keys has of a
// series, given by its span. A part that has the first or the last of the plan's rows of the series has no
// beginning or no end: from is the least, or to the greatest integer.
func (p *Plan) SeriesTimes(r KeyRange, span []byte) (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if base := p.firstRow(r.Start, span); base > p.From {
		from = base * 1000
	}
	if len(r.Stop) > 0 {
		if base := p.firstRow(r.Stop, span); base < p.To {
			to = base * 1000
		}
	}
	return from, to
}

// firstRow returns the least base time of a full hour, in s, at which the row of a series is not before a key.
func (p *Plan) firstRow(key, span []byte) int64 {
	at := p.Schema.BaseTimeAt()
	head := key[:min(at, len(key))]
	switch c := bytes.Compare(head, span[:at]); {
	case c < 0:
		return p.From
	case c > 0:
		return p.To
	}
	// What is missing of a key counts as zero.
	var base [encoding.BaseTimeWidth]byte
	tags := key[at:]
	tags = tags[copy(base[:], tags):]
	hour := int64(binary.BigEndian.Uint32(base[:]))
	if rest := hour % encoding.RowSeconds; rest != 0 {
		return hour - rest + encoding.RowSeconds
	}
	if bytes.Compare(p.Schema.SpanTags(span), tags) < 0 { //fault:window-hour-of-a-cut TestSeriesTimes
		return hour + encoding.RowSeconds
	}
	return hour
}
