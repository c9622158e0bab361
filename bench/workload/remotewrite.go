package workload

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// labels is the labels of a series as a message of remote write has them, sorted.
func labels(metric Metric, tags []Tag) (message []byte) {
	all := append([]Tag{{K: "__name__", V: metric.Name}}, tags...)
	slices.SortFunc(all, func(a, b Tag) int { return cmp.Compare(a.K, b.K) })
	for _, t := range all {
		var label []byte
		label = protowire.AppendString(protowire.AppendTag(label, 1, protowire.BytesType), t.K)
		label = protowire.AppendString(protowire.AppendTag(label, 2, protowire.BytesType), t.V)
		message = protowire.AppendBytes(protowire.AppendTag(message, 1, protowire.BytesType), label)
	}
	return message
}

// appendSample appends a series of one sample. v is to be divided by 10^decimals.
func appendSample(dst []byte, s *spelledSeries, seconds, v int64) []byte {
	var room [24]byte
	sample := protowire.AppendTag(room[:0], 1, protowire.Fixed64Type)
	sample = protowire.AppendFixed64(sample, math.Float64bits(float64(v)/math.Pow10(s.decimals)))
	sample = protowire.AppendTag(sample, 2, protowire.VarintType)
	sample = protowire.AppendVarint(sample, uint64(seconds*1000))

	dst = protowire.AppendTag(dst, 1, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(len(s.head)+1+protowire.SizeBytes(len(sample))))
	dst = append(dst, s.head...)
	return protowire.AppendBytes(protowire.AppendTag(dst, 2, protowire.BytesType), sample)
}
