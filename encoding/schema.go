package encoding

import (
	"fmt"
	"math"
)

// Schema is the layout of one set of OpenTSDB tables. It is a value: it is
// passed in, never global, and never changes once data is written, because the
// tables do not describe themselves. Source: net.opentsdb.core.Const and the
// configuration keys tsd.storage.salt.* and tsd.storage.uid.width.*.
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

// Validate returns an error that names the first field out of range.
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
	if most := s.maxBuckets(); s.SaltWidth > 0 && (s.SaltBuckets < 1 || s.SaltBuckets > most) {
		return fmt.Errorf("encoding: salt buckets %d with salt width %d, want 1 to %d", s.SaltBuckets, s.SaltWidth, most)
	}
	return nil
}

// maxBuckets is how many buckets the salt width can number; the hash that picks
// one has 32 bits with a sign.
func (s Schema) maxBuckets() int {
	if s.SaltWidth >= 4 {
		return math.MaxInt32
	}
	return 1 << (8 * s.SaltWidth)
}

// Buckets is the number of key prefixes a metric is spread over: the salt
// buckets, or 1 for an unsalted table.
func (s Schema) Buckets() int {
	if s.SaltWidth == 0 {
		return 1
	}
	return s.SaltBuckets
}

// TagWidth is the width of one tag pair in a row key.
func (s Schema) TagWidth() int { return s.TagKWidth + s.TagVWidth }

// BaseTimeAt is where the base time begins in a row key: behind salt and metric.
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
