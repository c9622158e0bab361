// Package write is the write path: points as clients spell them become UIDs, row
// keys and cells, and are durable before they are acknowledged. Points of one
// row that arrive within a short window are written together.
//
// What is checked, and in which words it is refused, follows OpenTSDB
// (PutDataPointRpc, TSDB.addPoint, Tags.validateString), because collectors
// match on them.
package write

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"downpour/encoding"
)

// Tag is one tag of a point, as names.
type Tag struct{ K, V string }

// Point is one data point as a client names it.
type Point struct {
	Metric string
	Tags   []Tag
	Time   int64 // seconds, or milliseconds when it does not fit 32 bits
	Value  encoding.Value
	// Narrow stores a float on 4 bytes where that loses nothing, as telnet
	// puts and imports do; HTTP puts always use 8. Answers are the same.
	Narrow bool
}

// Errors of validation, in OpenTSDB's words.
var (
	ErrNoMetric  = errors.New("Metric name was empty")             //lint:ignore ST1005 a client's text
	ErrTimestamp = errors.New("Invalid timestamp")                 //lint:ignore ST1005 a client's text
	ErrNoValue   = errors.New("Empty value")                       //lint:ignore ST1005 a client's text
	ErrNoTags    = errors.New("Missing tags")                      //lint:ignore ST1005 a client's text
	ErrValue     = errors.New("Unable to parse value to a number") //lint:ignore ST1005 a client's text
)

// maxMillis is the largest time in milliseconds that OpenTSDB stores.
const maxMillis = 9999999999999

// IsMillis tells whether a time is in milliseconds: whether it needs more than
// 32 bits. Source: Const.SECOND_MASK.
func IsMillis(t int64) bool { return uint64(t)>>32 != 0 }

// Validate checks all but the existence of names, which may have the characters
// of allowed beside the usual ones (tsd.core.tag.allow_specialchars).
func (p *Point) Validate(schema encoding.Schema, allowed ...rune) error {
	switch {
	case p.Metric == "":
		return ErrNoMetric
	case p.Time <= 0 || p.Time > maxMillis:
		return ErrTimestamp
	case len(p.Tags) == 0:
		return ErrNoTags
	case len(p.Tags) > schema.MaxTags:
		return fmt.Errorf("Too many tags: %d maximum allowed: %d, tags: %s", len(p.Tags), schema.MaxTags, tagText(p.Tags))
	}
	return p.validateNames(allowed)
}

func (p *Point) validateNames(allowed []rune) error {
	if err := encoding.ValidateName("metric name", p.Metric, allowed...); err != nil {
		return err
	}
	for _, t := range p.Tags {
		if err := encoding.ValidateName("tag name with value ["+t.V+"]", t.K, allowed...); err != nil {
			return err
		}
		if err := encoding.ValidateName("tag value with key ["+t.K+"]", t.V, allowed...); err != nil {
			return err
		}
	}
	return nil
}

func tagText(tags []Tag) string {
	pairs := make([]string, len(tags))
	for i, t := range tags {
		pairs[i] = t.K + "=" + t.V
	}
	sort.Strings(pairs)
	return "{" + strings.Join(pairs, ", ") + "}"
}

// ParseValue types a value by its spelling: without '.', 'e' and 'E' it is a
// signed 64-bit integer, else a double. NaN and infinities are refused.
// Source: Tags.looksLikeInteger, TSDB.addPoint.
func ParseValue(text string) (encoding.Value, error) {
	if text == "" {
		return encoding.Value{}, ErrNoValue
	}
	if v, ok := shortInt(text); ok {
		return encoding.IntValue(v), nil
	}
	float := false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.' || c|0x20 == 'e':
			float = true
		case c-'0' > 9 && c != '+' && c != '-':
			return encoding.Value{}, ErrValue
		}
	}
	if !float {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return encoding.Value{}, ErrValue
		}
		return encoding.IntValue(v), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsInf(v, 0) {
		return encoding.Value{}, ErrValue
	}
	return encoding.FloatValue(v), nil
}

// shortInt reads the usual integer: digits that cannot overflow, perhaps behind
// a minus. What it does not read may be a number all the same.
func shortInt(text string) (v int64, ok bool) {
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

// ParseTime reads a time as telnet writes it: digits, or seconds with a
// fraction whose dot is simply left out. Source: PutDataPointRpc.importDataPoint.
func ParseTime(text string) (int64, error) {
	if text != "" {
		if t, ok := shortInt(text); ok && t > 0 && t <= maxMillis {
			return t, nil
		}
	}
	t, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64)
	if err != nil || t <= 0 || t > maxMillis {
		return 0, fmt.Errorf("invalid timestamp: %s", text)
	}
	return t, nil
}

// split divides a time into its row's base time and the qualifier's offset.
func split(t int64) (base uint32, q encoding.Qualifier) {
	if !IsMillis(t) {
		base = encoding.BaseTime(t)
		return base, encoding.Qualifier{OffsetMS: int32(t-int64(base)) * 1000}
	}
	base = encoding.BaseTime(t / 1000)
	return base, encoding.Qualifier{OffsetMS: int32(t - int64(base)*1000), Milli: true}
}

// appendEntry appends the qualifier and value that p is stored as, and returns
// the base time of its row; ErrTimestamp if p has no time that can be stored.
func (p *Point) appendEntry(dst []byte) ([]byte, uint32, error) {
	if p.Time <= 0 || p.Time > maxMillis {
		return nil, 0, ErrTimestamp
	}
	base, q := split(p.Time)
	var buf [8]byte
	value := buf[:0]
	switch {
	case !p.Value.Float:
		value = encoding.AppendInt(value, p.Value.Int())
	case p.Narrow:
		value = encoding.AppendShortFloat(value, p.Value.Double())
	default:
		value = encoding.AppendDouble(value, p.Value.Double())
	}
	q.Float, q.Width = p.Value.Float, len(value)
	return encoding.AppendEntry(dst, q, value), base, nil
}
