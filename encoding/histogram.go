package encoding

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Histogram counts how often a value was in each of some ranges: a SimpleHistogram of OpenTSDB. It
// is a cell of its own next to the points of its series and hour:
//
//	row      as for points
//	column   06 | 00 3C                  prefix | offset in s, 2 bytes
//	         06 | 00 00 EB 5A            prefix | offset in ms, 4 bytes
//	value    2A | 00 02                  codec | number of buckets, 2 bytes
//	         | 00 00 00 00 3F E0 00 00 9B 03     [0, 1.75) 411 times
//	         | 3F E0 00 00 40 60 00 00 01        [1.75, 3.5) once
//	         | 00 | 05                           0 times below, 5 times above
//
// A bucket is two floats on 4 bytes and a count. Counts have 7 bits a byte, the lowest
// first; the highest bit says that more follow. A ninth byte has 8 bits, so that a
// negative count has 9 bytes. The codec is a number that the settings of all writers
// and readers agree on. Source: SimpleHistogram, Kryo's Output.writeLong.
type Histogram struct {
	Buckets             []HistogramBucket // ascending by bounds, each pair of bounds once
	Underflow, Overflow int64             // values below and above all buckets
}

// HistogramBucket is a range of values and the number of values in it. Ranges may overlap.
type HistogramBucket struct {
	Lower, Upper float32
	Count        int64
}

// Lengths and limits of histograms.
const (
	histogramSeconds = 3 // length of a qualifier with an offset in s
	histogramMillis  = 5
	boundsBytes      = 8 // of two floats
	maxCountBytes    = 9

	// MaxHistogramBuckets is what the stored number of buckets can be: OpenTSDB reads
	// it as a signed number of 2 bytes.
	MaxHistogramBuckets = math.MaxInt16
	// MaxHistogramCodec is the largest codec that OpenTSDB can read back: it reads a
	// signed byte.
	MaxHistogramCodec = math.MaxInt8
)

// AppendHistogramQualifier appends the column of a histogram, whose offset is whole
// seconds unless milli is set.
func AppendHistogramQualifier(dst []byte, offsetMS int32, milli bool) []byte {
	dst = append(dst, PrefixHistogram)
	if milli {
		return binary.BigEndian.AppendUint32(dst, uint32(offsetMS))
	}
	return binary.BigEndian.AppendUint16(dst, uint16(offsetMS/1000))
}

// IsHistogram reports whether a cell of the data table holds a histogram.
func IsHistogram(qualifier []byte) bool {
	return len(qualifier)%2 == 1 && qualifier[0] == PrefixHistogram
}

// ParseHistogramQualifier returns the offset of a histogram's column in ms. milli is set
// if the column has the milliseconds form.
func ParseHistogramQualifier(q []byte) (offsetMS int32, milli bool, err error) {
	if len(q) != histogramSeconds && len(q) != histogramMillis || q[0] != PrefixHistogram {
		return 0, false, fmt.Errorf("encoding: histogram column % X, want %02X and 2 or 4 bytes", q, PrefixHistogram)
	}

	var ms uint64
	if milli = len(q) == histogramMillis; milli {
		ms = uint64(binary.BigEndian.Uint32(q[1:]))
	} else {
		ms = uint64(binary.BigEndian.Uint16(q[1:])) * 1000
	}

	if ms > maxOffsetMS {
		return 0, false, fmt.Errorf("encoding: histogram column % X has offset %d ms, want at most %d", q, ms,
			maxOffsetMS)
	}
	return int32(ms), milli, nil
}

// AppendHistogram appends the value of a histogram's cell without the codec.
func AppendHistogram(dst []byte, h *Histogram) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(h.Buckets)))
	for _, b := range h.Buckets {
		dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(b.Lower))
		dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(b.Upper))
		dst = appendCount(dst, b.Count)
	}
	return appendCount(appendCount(dst, h.Underflow), h.Overflow)
}

// ParseHistogram reads the value of a histogram's cell without the codec into h, whose
// memory it uses again. Buckets may have any order; the last of those with equal bounds
// counts, and bytes after the overflow are ignored, both as in OpenTSDB. It allocates
// no more than the buckets that body really has.
func ParseHistogram(body []byte, h *Histogram) error {
	// The number of buckets has two bytes. Underflow and overflow, at least one byte each, are
	// missed below.
	if len(body) < 2 {
		return fmt.Errorf("encoding: histogram of %d bytes, want at least 4", len(body))
	}

	// Memory is allocated for n buckets: with one byte of count each they must fit the body.
	n, rest := int(binary.BigEndian.Uint16(body)), body[2:]
	if n > MaxHistogramBuckets || n > len(rest)/(boundsBytes+1) {
		return fmt.Errorf("encoding: histogram of %d bytes is said to have %d buckets, want at most %d", len(body), n,
			min(MaxHistogramBuckets, len(rest)/(boundsBytes+1)))
	}

	h.Buckets = slices.Grow(h.Buckets[:0], n)
	for i := range n {
		// Counts of several bytes leave less for later buckets than was checked above.
		if len(rest) < boundsBytes {
			return fmt.Errorf("encoding: histogram of %d bytes ends in bucket %d of %d", len(body), i, n)
		}
		b := HistogramBucket{
			Lower: math.Float32frombits(binary.BigEndian.Uint32(rest)),
			Upper: math.Float32frombits(binary.BigEndian.Uint32(rest[4:])),
		}
		var err error
		if b.Count, rest, err = parseCount(rest[boundsBytes:]); err != nil {
			return fmt.Errorf("encoding: histogram of %d bytes, bucket %d of %d: %w", len(body), i, n, err)
		}
		h.Buckets = append(h.Buckets, b)
	}

	var err error
	if h.Underflow, rest, err = parseCount(rest); err != nil {
		return fmt.Errorf("encoding: histogram of %d bytes, underflow: %w", len(body), err)
	}
	if h.Overflow, _, err = parseCount(rest); err != nil {
		return fmt.Errorf("encoding: histogram of %d bytes, overflow: %w", len(body), err)
	}

	h.sortBuckets()
	return nil
}

// appendCount appends a count.
func appendCount(dst []byte, count int64) []byte {
	v := uint64(count)
	for range maxCountBytes - 1 {
		if v < 0x80 {
			return append(dst, byte(v))
		}
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v)) // the ninth byte has the 8 bits that are left
}

// parseCount reads a count and returns the bytes that follow it.
func parseCount(b []byte) (count int64, rest []byte, err error) {
	var v uint64
	for i := range min(len(b), maxCountBytes) {
		// All bits of the ninth byte belong to the count: none says that more follow.
		if b[i] < 0x80 || i == maxCountBytes-1 {
			return int64(v | uint64(b[i])<<(7*i)), b[i+1:], nil
		}
		v |= uint64(b[i]&0x7F) << (7 * i)
	}
	return 0, nil, fmt.Errorf("the count % X is cut short", b)
}

// NewHistogram returns a histogram of buckets in any order, whose memory it takes. The last of
// those with equal bounds counts.
func NewHistogram(buckets []HistogramBucket, underflow, overflow int64) Histogram {
	h := Histogram{Buckets: buckets, Underflow: underflow, Overflow: overflow}
	h.sortBuckets()
	return h
}

// sortBuckets puts buckets into the order of their bounds and keeps the last of those
// with equal ones.
func (h *Histogram) sortBuckets() {
	ascending := func(a, b HistogramBucket) int { return a.CompareBounds(&b) }
	if !slices.IsSortedFunc(h.Buckets, ascending) {
		// Stable: the last of those with equal bounds stays the last.
		slices.SortStableFunc(h.Buckets, ascending)
	}

	kept := h.Buckets[:0]
	for i, b := range h.Buckets {
		if i+1 == len(h.Buckets) || b.CompareBounds(&h.Buckets[i+1]) != 0 {
			kept = append(kept, b)
		}
	}
	h.Buckets = kept
}

// CompareBounds compares the bounds of two buckets in the order of a histogram: by the
// lower one, then by the upper one. As in Java, -0 is before 0, and any NaN after all
// others. Source: HistogramBucket.compareTo, Float.compare.
func (b *HistogramBucket) CompareBounds(o *HistogramBucket) int {
	return cmp.Or(cmp.Compare(floatOrder(b.Lower), floatOrder(o.Lower)),
		cmp.Compare(floatOrder(b.Upper), floatOrder(o.Upper)))
}

// floatOrder returns a number that is ordered as Java orders floats.
func floatOrder(f float32) int32 {
	if f != f {
		return math.MaxInt32
	}
	bits := int32(math.Float32bits(f))
	if bits < 0 {
		bits ^= math.MaxInt32 // larger magnitudes come first
	}
	return bits
}

// SameBounds reports whether both histograms have the same buckets, whatever their
// counts.
func (h *Histogram) SameBounds(o *Histogram) bool {
	return slices.EqualFunc(h.Buckets, o.Buckets, func(a, b HistogramBucket) bool { return a.CompareBounds(&b) == 0 })
}

// Add adds the counts of o, bucket by bucket; h has the buckets of both afterwards.
// Counts wrap around as Java's do, so that the order of additions does not matter. o
// stays as it is and shares no memory with h. Source: SimpleHistogram.aggregate.
func (h *Histogram) Add(o *Histogram) {
	h.Underflow += o.Underflow
	h.Overflow += o.Overflow

	// Histograms of one metric mostly have the same buckets, which needs no memory.
	if h.SameBounds(o) {
		for i := range h.Buckets {
			h.Buckets[i].Count += o.Buckets[i].Count
		}
		return
	}

	both := make([]HistogramBucket, 0, len(h.Buckets)+len(o.Buckets))
	a, b := h.Buckets, o.Buckets
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].CompareBounds(&b[0]); {
		case c < 0:
			both, a = append(both, a[0]), a[1:]
		case c > 0:
			both, b = append(both, b[0]), b[1:]
		default:
			sum := a[0]
			sum.Count += b[0].Count
			both, a, b = append(both, sum), a[1:], b[1:]
		}
	}
	h.Buckets = append(append(both, a...), b...)
}

// Count returns the number of values in the bucket with the bounds of b, 0 if there is
// no such bucket.
func (h *Histogram) Count(b *HistogramBucket) int64 {
	at, ok := slices.BinarySearchFunc(h.Buckets, *b, func(a, b HistogramBucket) int { return a.CompareBounds(&b) })
	if !ok {
		return 0
	}
	return h.Buckets[at].Count
}

// Percentile returns the middle, in float32, of the first bucket up to which the buckets hold at
// least p percent of all values; 0 if there is none, and -1 for a p that is not within 1 and 100.
// Counts and their sum are cut to 32 bits, so answers equal OpenTSDB's beyond them too. Source:
// SimpleHistogram.percentile.
func (h *Histogram) Percentile(p float64) float64 {
	if p < 1 || p > 100 {
		return -1
	}

	var sum int32
	for i := range h.Buckets {
		sum += int32(h.Buckets[i].Count)
	}

	var running int64
	for i := range h.Buckets {
		b := &h.Buckets[i]
		running += int64(int32(b.Count))
		// Without any value this is NaN, which is not at least p.
		if float64(running)*100/float64(sum) >= p {
			return float64((b.Lower + b.Upper) / 2)
		}
	}
	return 0
}
