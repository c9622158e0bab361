package encoding

import (
	"fmt"
	"math"
)

// Schema is the layout of one set of OpenTSDB tables. The tables do not describe
// themselves, so it is a value that callers pass in, and it must not change once
// data is written. Source: net.opentsdb.core.Const and the configuration keys
// tsd.storage.salt.* and tsd.storage.uid.width.*.
type Schema struct {
	SaltWidth   int // bytes of salt before a data row key, 0 to 8; 0 is unsalted
	SaltBuckets int // number of salt values, at least 1 when SaltWidth > 0
	MetricWidth int // bytes of a metric UID, 1 to 8
	TagKWidth   int // bytes of a tag key UID, 1 to 8
	TagVWidth   int // bytes of a tag value UID, 1 to 8
	MaxTags     int // tags a series may have; tsd.storage.max_tags
}

// BaseTimeWidth is the width of the base time in a row key.
const BaseTimeWidth = 4

// RowSeconds is the time that one row covers.
const RowSeconds = 3600

// DefaultSchema is OpenTSDB's default layout.
func DefaultSchema() Schema {
	return Schema{SaltBuckets: 20, MetricWidth: 3, TagKWidth: 3, TagVWidth: 3, MaxTags: 8}
}

// Validate returns an error that names the first field that is out of range.
func (s Schema) Validate() error {
	checks := []struct {
		field    string
		got      int
		min, max int
	}{
		{"salt width", s.SaltWidth, 0, 8},
		{"metric UID width", s.MetricWidth, 1, 8},
		{"tagk UID width", s.TagKWidth, 1, 8},
		{"tagv UID width", s.TagVWidth, 1, 8},
		{"max tags", s.MaxTags, 1, 255},
	}

	for _, c := range checks {
		if c.got < c.min || c.got > c.max {
			return fmt.Errorf("encoding: %s %d, want %d to %d", c.field, c.got, c.min, c.max)
		}
	}

	// An unsalted table ignores the number of buckets.
	if most := s.maxSaltBuckets(); s.SaltWidth > 0 && (s.SaltBuckets < 1 || s.SaltBuckets > most) {
		return fmt.Errorf("encoding: salt buckets %d with salt width %d, want 1 to %d", s.SaltBuckets, s.SaltWidth,
			most)
	}

	return nil
}

// maxSaltBuckets is the number of salt buckets that the salt width can count. The hash that selects one is a
// signed number of 32 bits, so more bytes do not help.
func (s Schema) maxSaltBuckets() int {
	if s.SaltWidth >= 4 {
		return math.MaxInt32
	}
	return 1 << (8 * s.SaltWidth)
}

// Buckets is the number of key prefixes that a metric is spread over: the number
// of salt buckets, or 1 for an unsalted table.
func (s Schema) Buckets() int {
	if s.SaltWidth == 0 {
		return 1
	}
	return s.SaltBuckets
}

// TagWidth is the width of one tag pair in a row key.
func (s Schema) TagWidth() int { return s.TagKWidth + s.TagVWidth }

// BaseTimeAt is the offset of the base time in a row key: the width of salt and
// metric, which come before it.
func (s Schema) BaseTimeAt() int { return s.SaltWidth + s.MetricWidth }

// HeadWidth is the width of a row key before its tags: salt, metric, base time.
func (s Schema) HeadWidth() int { return s.BaseTimeAt() + BaseTimeWidth }

// UIDWidth is the width of a UID of the given kind.
func (s Schema) UIDWidth(k UIDKind) int {
	switch k {
	case UIDMetric:
		return s.MetricWidth
	case UIDTagK:
		return s.TagKWidth
	default:
		return s.TagVWidth
	}
}
