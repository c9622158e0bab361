// Package write is the write path: it turns points, as clients spell them, into
// UIDs, row keys and cells, and acknowledges them once they are durable. Points
// of one row that arrive within the commit window are written together.
//
//	Point          a point with names           point.go
//	Resolver       a spelling to its SeriesKey  resolver.go, series.go, seriestable.go
//	entry          qualifier and value          point.go
//	rows           entries gathered by row      rows.go
//	cells          rows as the store's cells    cells.go
//	Batch          what is written in one call  batch.go
//	shard          a queue of batches           shard.go
//	RequestBatch   the points of one request    requestbatch.go
//	Writer         all of it                    writer.go
//	Rollups        a Writer for each table      rollups.go
//	histograms     of telnet and of JSON        histogram.go, histogramtext.go
//
// Checks and error texts follow OpenTSDB (PutDataPointRpc, TSDB.addPoint,
// Tags.validateString), because collectors match these texts.
package write

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"downpour/encoding"
	"downpour/gateway/java"
)

// Tag is one tag of a point, as names.
type Tag struct{ K, V string }

// Point is one data point as a client names it.
type Point struct {
	Metric string
	Tags   []Tag
	Time   int64 // seconds, or milliseconds when it does not fit 32 bits
	Value  encoding.Value
	// Narrow stores a float in 4 bytes if that loses nothing, as telnet puts and
	// imports do. HTTP puts always use 8. Answers are the same.
	Narrow bool
	// Rollup is where the value of a rollup is stored; nil for a point of raw data.
	Rollup *RollupCell
}

// RollupCell is the place of a rollup in its table.
type RollupCell struct {
	Layout *encoding.RollupLayout
	ID     byte // of the column
}

// maxMillis is the largest time in milliseconds that OpenTSDB takes.
const maxMillis = 9999999999999

// CheckTime returns an error, an ErrTimestamp, for a time that no row can hold. OpenTSDB stores
// those after encoding.MaxTime in rows of other years, where they make every query fail.
func CheckTime(t int64) error {
	switch {
	case t <= 0 || t > maxMillis:
		return ErrTimestamp
	case t > encoding.MaxTime*1000+999:
		return fmt.Errorf("%w: got %d ms, want at most %d (2106-02-07T06:28:15.999Z)", ErrTimestamp, t,
			int64(encoding.MaxTime*1000+999))
	}
	return nil
}

// IsMillis reports whether a time is in milliseconds, which is whether it needs
// more than 32 bits. Source: Const.SECOND_MASK.
func IsMillis(t int64) bool { return uint64(t)>>32 != 0 }

// Validate checks everything about a point except whether its names have UIDs. Names
// may have the characters of allowed in addition to OpenTSDB's
// (tsd.core.tag.allow_specialchars).
func (p *Point) Validate(schema encoding.Schema, allowed ...rune) error {
	if p.Metric == "" {
		return ErrNoMetric
	}
	if err := CheckTime(p.Time); err != nil {
		return err
	}
	switch {
	case len(p.Tags) == 0:
		return ErrNoTags
	case len(p.Tags) > schema.MaxTags:
		return fmt.Errorf("Too many tags: %d maximum allowed: %d, tags: %s", len(p.Tags), schema.MaxTags,
			TagText(p.Tags))
	}
	return p.validateNames(allowed)
}

// validateNames checks the characters of metric and tags. Its errors name them as
// OpenTSDB's do.
func (p *Point) validateNames(allowed []rune) error {
	if err := encoding.ValidateName("metric name", p.Metric, allowed...); err != nil {
		return err
	}
	for _, t := range p.Tags {
		// An error's text is made only if there is one: every new series comes here.
		if encoding.ValidateName("", t.K, allowed...) != nil {
			return encoding.ValidateName("tag name with value ["+t.V+"]", t.K, allowed...)
		}
		if encoding.ValidateName("", t.V, allowed...) != nil {
			return encoding.ValidateName("tag value with key ["+t.K+"]", t.V, allowed...)
		}
	}
	return nil
}

// TagText writes tags as Java prints a map of them, but in the order of the text.
func TagText(tags []Tag) string {
	pairs := make([]string, len(tags))
	for i, t := range tags {
		pairs[i] = t.K + "=" + t.V
	}
	sort.Strings(pairs)
	return "{" + strings.Join(pairs, ", ") + "}"
}

// ParseValue reads a value. Its spelling decides its type: with '.', 'e' or 'E' it
// is a double, otherwise a signed 64-bit integer. NaN and infinities are refused.
// Source: Tags.looksLikeInteger, TSDB.addPoint.
func ParseValue(text string) (encoding.Value, error) {
	if text == "" {
		return encoding.Value{}, ErrNoValue
	}
	if v, ok := ShortInt(text); ok {
		return encoding.IntValue(v), nil
	}
	if !strings.ContainsAny(text, ".eE") {
		v, err := parseLong(text)
		return encoding.IntValue(v), err
	}
	v, err := java.ParseDouble(text)
	if err != nil || math.IsInf(v, 0) {
		return encoding.Value{}, ErrValue
	}
	return encoding.FloatValue(v), nil
}

// parseLong reads an integer of at most 19 ASCII digits. Source: Tags.parseLong.
func parseLong(text string) (int64, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || len(strings.TrimLeft(text, "+-")) > 19 {
		return 0, ErrValue
	}
	return v, nil
}

// ShortInt reads an integer of at most 18 digits, which cannot overflow, with an
// optional minus. ok is false for everything else, which may still be a number.
// text must not be empty.
func ShortInt(text string) (v int64, ok bool) {
	digits := text
	if text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}

	for i := range len(digits) {
		d := digits[i] - '0'
		if d > 9 {
			return 0, false
		}
		v = 10*v + int64(d)
	}
	if len(digits) < len(text) {
		v = -v
	}
	return v, true
}

// ParseTime reads a time of a telnet put: seconds or milliseconds. Seconds may have
// a fraction: its dots are dropped, so that 1356998400.123 becomes milliseconds.
// Source: PutDataPointRpc.importDataPoint.
func ParseTime(text string) (int64, error) {
	if text != "" {
		if t, ok := ShortInt(text); ok && t > 0 && t <= maxMillis {
			return t, nil
		}
	}
	t, _ := parseLong(strings.ReplaceAll(text, ".", "")) // with an error it returns 0, which is no time either
	if t <= 0 || t > maxMillis {
		return 0, fmt.Errorf("invalid timestamp: %s", text)
	}
	return t, nil
}

// splitTime divides a time into the base time of its row and the offset in the row. The qualifier
// has no type and width yet. The error is ErrTimestamp if no row can hold the time.
func splitTime(t int64) (base uint32, q encoding.Qualifier, err error) {
	if err := CheckTime(t); err != nil {
		return 0, q, err
	}
	seconds, milli := t, IsMillis(t)
	if milli {
		seconds /= 1000
	}
	if base, err = encoding.BaseTime(seconds); err != nil {
		return 0, q, fmt.Errorf("%w: %w", ErrTimestamp, err)
	}
	if !milli {
		return base, encoding.Qualifier{OffsetMS: int32(t-int64(base)) * 1000}, nil
	}
	return base, encoding.Qualifier{OffsetMS: int32(t - int64(base)*1000), Milli: true}, nil
}

// appendEntry appends the entry of a point, its qualifier followed by its value,
// and returns the base time of its row. The error is ErrTimestamp if the time
// cannot be stored.
func (p *Point) appendEntry(dst []byte) ([]byte, uint32, error) {
	var buf [8]byte
	value := p.appendValue(buf[:0])
	if p.Rollup != nil {
		return p.appendRollupEntry(dst, value)
	}

	base, q, err := splitTime(p.Time)
	if err != nil {
		return nil, 0, err
	}
	// The qualifier's type bits follow from the value's encoding.
	q.Float, q.Width = p.Value.Float, len(value)
	return encoding.AppendEntry(dst, q, value), base, nil
}

// appendRollupEntry is appendEntry for a rollup with the bytes of its value. Its error is ErrTimestamp, or
// that of RollupLayout.Split.
func (p *Point) appendRollupEntry(dst, value []byte) ([]byte, uint32, error) {
	if err := CheckTime(p.Time); err != nil {
		return nil, 0, err
	}
	if IsMillis(p.Time) { // rollups have whole seconds
		return nil, 0, ErrTimestamp
	}
	base, index, err := p.Rollup.Layout.Split(p.Time)
	if err != nil {
		return nil, 0, err
	}
	dst = encoding.AppendRollupQualifier(dst, p.Rollup.ID, index, p.Value.Float, len(value))
	return append(dst, value...), uint32(base), nil // seconds of a checked time fit 32 bits
}

// appendValue appends the bytes of the point's value.
func (p *Point) appendValue(dst []byte) []byte {
	switch {
	case !p.Value.Float:
		return encoding.AppendInt(dst, p.Value.Int())
	case p.Narrow:
		return encoding.AppendShortFloat(dst, p.Value.Double())
	}
	return encoding.AppendDouble(dst, p.Value.Double())
}
