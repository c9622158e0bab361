package encoding

import (
	"encoding/hex"
	"fmt"
)

// A TSUID names a series: it is the metric UID and the tag pairs, a row key without
// salt and base time. Clients see it in upper-case hex. Example, default schema:
//
//	00 00 01  00 00 01 00 00 01  00 00 02 00 00 02
//	metric 1  tagk 1 = tagv 1    tagk 2 = tagv 2
//
// It is also the row key of the meta table. Source: UniqueId.getTSUIDFromKey.

// AppendTSUID appends the TSUID of a data row key, which must be one that
// ParseRowKey accepts.
func (s Schema) AppendTSUID(dst, key []byte) []byte {
	dst = append(dst, key[s.SaltWidth:s.BaseTimeAt()]...)
	return append(dst, key[s.HeadWidth():]...)
}

// SplitTSUID returns a TSUID's metric and tag pairs as views. It fails if the
// length is not that of a metric and at least one tag pair.
func (s Schema) SplitTSUID(tsuid []byte) (metric UID, tags []byte, err error) {
	tagBytes := len(tsuid) - s.MetricWidth
	if tagBytes <= 0 || tagBytes%s.TagWidth() != 0 {
		return nil, nil, fmt.Errorf("encoding: TSUID %s has %d bytes, want %d and a multiple of %d",
			UID(tsuid), len(tsuid), s.MetricWidth, s.TagWidth())
	}
	return tsuid[:s.MetricWidth], tsuid[s.MetricWidth:], nil
}

// ParseTSUID reads a TSUID in hex of either case, as clients send it. It fails for
// what is not hex and where SplitTSUID does.
func (s Schema) ParseTSUID(text string) ([]byte, error) {
	tsuid, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("encoding: TSUID %q: %w", text, err)
	}
	_, _, err = s.SplitTSUID(tsuid)
	return tsuid, err
}
