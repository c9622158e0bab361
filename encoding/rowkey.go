package encoding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// RowKey is a parsed key of the data table. Its slices are views into the key.
//
//	[salt][metric UID][base time: 4 bytes, seconds][tagk UID tagv UID]…
//
// Example, default schema, mysql.bytes_sent host=ubuntu at 1292148123:
//
//	00 00 01 | 4D 04 9D 20 | 00 00 01 00 00 01
//	metric 1 | 1292148000  | tagk 1,  tagv 1
type RowKey struct {
	Salt     []byte
	Metric   []byte
	BaseTime uint32 // seconds, a multiple of 3600
	Tags     []byte // tag pairs, ascending by tagk
}

// Global reports whether the row holds global annotations, those of no series: it has no tags,
// and a metric that is never assigned.
func (k RowKey) Global() bool { return len(k.Tags) == 0 && UIDNumber(k.Metric) == 0 }

// TagPair is one tag of a series as UIDs.
type TagPair struct{ K, V UID }

// ParseRowKey splits a data row key. The result is views into key. It fails if the
// length is not that of salt, metric, base time and whole tag pairs.
func (s Schema) ParseRowKey(key []byte) (RowKey, error) {
	head := s.HeadWidth()
	if len(key) < head || (len(key)-head)%s.TagWidth() != 0 {
		return RowKey{}, fmt.Errorf("encoding: row key % X has %d bytes, want %d and a multiple of %d for tags",
			key, len(key), head, s.TagWidth())
	}

	at := s.BaseTimeAt()
	return RowKey{
		Salt:     key[:s.SaltWidth],
		Metric:   key[s.SaltWidth:at],
		BaseTime: binary.BigEndian.Uint32(key[at:]),
		Tags:     key[head:],
	}, nil
}

// AppendRowKey appends the data row key of a series and hour, with the salt that
// OpenTSDB gives the series. tags are tag pairs in ascending order of tagk, as
// AppendTags makes them.
// Source: RowKey.prefixKeyWithSalt, IncomingDataPoints.rowKeyTemplate.
func (s Schema) AppendRowKey(dst []byte, metric UID, baseTime uint32, tags []byte) []byte {
	dst = s.AppendSalt(dst, s.Salt(metric, tags))
	return append(s.appendMetricTime(dst, metric, baseTime), tags...)
}

// AppendRangeKey appends the first possible key of a salt bucket, metric and base
// time, which has no tags. Scans start and stop at such keys.
func (s Schema) AppendRangeKey(dst []byte, salt int, metric UID, baseTime uint32) []byte {
	return s.appendMetricTime(s.AppendSalt(dst, salt), metric, baseTime)
}

// appendMetricTime appends metric and base time.
func (s Schema) appendMetricTime(dst []byte, metric UID, baseTime uint32) []byte {
	dst = append(dst, metric...)
	return binary.BigEndian.AppendUint32(dst, baseTime)
}

// AppendTags appends tag pairs in ascending order of tagk. It sorts pairs in place.
func (s Schema) AppendTags(dst []byte, pairs []TagPair) []byte {
	slices.SortFunc(pairs, func(a, b TagPair) int { return bytes.Compare(a.K, b.K) })
	for _, p := range pairs {
		dst = append(append(dst, p.K...), p.V...)
	}
	return dst
}

// Tag returns the value of a tag key among tags, as a view; ok is false if the key
// is not there.
func (s Schema) Tag(tags []byte, tagk UID) (UID, bool) {
	for step := s.TagWidth(); len(tags) >= step; tags = tags[step:] {
		if bytes.Equal(tags[:s.TagKWidth], tagk) {
			return tags[s.TagKWidth:step], true
		}
	}
	return nil, false
}

// AppendPairs appends the pairs of tags to dst, as views.
func (s Schema) AppendPairs(dst []TagPair, tags []byte) []TagPair {
	for step := s.TagWidth(); len(tags) >= step; tags = tags[step:] {
		dst = append(dst, TagPair{K: tags[:s.TagKWidth], V: tags[s.TagKWidth:step]})
	}
	return dst
}

// AppendSpan appends a row key without its base time: salt, metric and tags. It
// names a span, OpenTSDB's word for a series as a query sees it: a series that has
// rows under two salts is two spans. OpenTSDB aggregates spans in the order of
// these bytes. Source: TsdbQuery.SpanCmp, TsdbQuery.findSpans.
func (s Schema) AppendSpan(dst, key []byte) []byte {
	dst = append(dst, key[:s.BaseTimeAt()]...)
	return append(dst, key[s.HeadWidth():]...)
}

// SpanTSUID is the TSUID of a span: the span without its salt.
func (s Schema) SpanTSUID(span []byte) []byte { return span[s.SaltWidth:] }

// SpanTags is the tags of a span.
func (s Schema) SpanTags(span []byte) []byte { return span[s.BaseTimeAt():] }

// Salt is the salt bucket of a series: Arrays.hashCode of Java over metric and
// tags, modulo the number of buckets. The time is not hashed, so that all hours of
// a series share a bucket. It is 0 for an unsalted table.
// Source: RowKey.prefixKeyWithSalt.
func (s Schema) Salt(metric UID, tags []byte) int {
	if s.SaltWidth == 0 {
		return 0
	}

	// Java's bytes are signed, and its products wrap at 32 bits.
	h := int32(1)
	for _, b := range metric {
		h = 31*h + int32(int8(b))
	}
	for _, b := range tags {
		h = 31*h + int32(int8(b))
	}

	// The remainder has the sign of the hash; Java takes its absolute value.
	salt := int(h % int32(s.SaltBuckets))
	return max(salt, -salt)
}

// AppendSalt appends the number of a salt bucket, big-endian on the salt width.
func (s Schema) AppendSalt(dst []byte, salt int) []byte {
	for i := s.SaltWidth - 1; i >= 0; i-- {
		dst = append(dst, byte(uint64(salt)>>(8*i)))
	}
	return dst
}
