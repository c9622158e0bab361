package column

import (
	"math"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"
)

// drawn are points as a collector may put them.
func drawn(t *rapid.T) Points {
	n := rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(1, 400)).Draw(t, "points")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	times := rapid.SampledFrom([]string{"even", "gaps", "jitter", "any"}).Draw(t, "times")
	values := rapid.SampledFrom(valueKinds).Draw(t, "values")
	other := rapid.SampledFrom(append([]string{values, values}, valueKinds...)).Draw(t, "some values")
	form := rapid.SampledFrom([]string{"seconds", "milliseconds", "both"}).Draw(t, "form")
	return generate(r, n, times, []string{values, other}, form)
}

var valueKinds = []string{
	"constant", "walk", "counter", "small", "any", "extreme", "wide", "percent", "cents", "float4", "quarters",
	"double", "nan", "smooth", "zeros",
}

// generate makes n points, fewer if they do not fit into an hour. Most values are of the first kind.
func generate(r *rand.Rand, n int, times string, values []string, form string) (p Points) {
	offsets := offsetsOf(r, n, times, form != "seconds")
	v := newValues(r)
	for i, o := range offsets {
		kind := values[0]
		if r.IntN(20) == 0 {
			kind = values[1]
		}
		flags, raw := v.next(kind, i)
		if form == "milliseconds" || o%1000 != 0 || form == "both" && r.IntN(2) == 0 {
			flags |= FlagMillis
		}
		p.Append(o, flags, raw)
	}
	return p
}

func offsetsOf(r *rand.Rand, n int, times string, millis bool) (offsets []int32) {
	unit := int32(1000)
	if millis {
		unit = 1
	}
	n = min(n, int(MaxOffset/unit))
	step := max(1, MaxOffset/unit/int32(n))
	step = 1 + r.Int32N(step)
	at := r.Int32N(max(1, MaxOffset/unit-step*int32(n)))
	for range n {
		if at*unit > MaxOffset {
			break
		}
		offsets = append(offsets, at*unit)
		switch times {
		case "even":
			at += step
		case "gaps":
			at += step * (1 + r.Int32N(50)/49*r.Int32N(9))
		case "jitter":
			at += max(1, step+r.Int32N(3)-1)
		default:
			at += 1 + r.Int32N(2*step)
		}
	}
	return offsets
}

// values makes values that go on from each other.
type values struct {
	r       *rand.Rand
	walk    int64
	counter int64
	smooth  float64
}

func newValues(r *rand.Rand) *values {
	return &values{r: r, walk: r.Int64N(100), counter: r.Int64N(1 << 40), smooth: r.Float64() * 1000}
}

var extremes = []int64{
	0, -1, 127, 128, -128, -129, 32767, 32768, -32768, -32769, math.MaxInt32, math.MaxInt32 + 1, math.MinInt32,
	math.MinInt32 - 1, math.MaxInt64, math.MinInt64,
}

func (v *values) next(kind string, i int) (flags uint8, raw uint64) {
	switch kind {
	case "constant":
		return integer(42)
	case "walk":
		v.walk += v.r.Int64N(11) - 5
		return integer(v.walk)
	case "counter":
		v.counter += v.r.Int64N(5000)
		return integer(v.counter)
	case "small":
		return integer(int64(v.r.IntN(8)))
	case "any":
		return integer(int64(v.r.Uint64()) >> v.r.IntN(64))
	case "extreme":
		return integer(extremes[v.r.IntN(len(extremes))])
	case "wide": // longer than it needs
		flags := []uint8{1, 3, 7}[v.r.IntN(3)]
		return flags, uint64(v.r.Int64N(256)-128) & (^uint64(0) >> (56 - 8*flags))
	case "percent":
		return double(float64(v.r.IntN(1000)) / 10)
	case "cents":
		v.walk += v.r.Int64N(201) - 100
		return double(float64(v.walk) / 100)
	case "float4":
		return FlagFloat | 3, uint64(math.Float32bits(v.r.Float32()))
	case "quarters":
		return double(float64(v.r.IntN(4000)) / 4)
	case "nan":
		return FlagFloat | 7, []uint64{
			0x7FF8_0000_0000_0001, 0xFFF0_0000_0000_0001, 0x7FF0 << 48, 0xFFF0 << 48, 1 << 63, 0, 1,
			0x7FEF_FFFF_FFFF_FFFF,
		}[v.r.IntN(8)]
	case "zeros": // of either sign
		return FlagFloat | 7, uint64(v.r.IntN(2)) << 63
	case "smooth":
		v.smooth += v.r.NormFloat64()
		return double(v.smooth)
	}
	if i%7 == 0 {
		return FlagFloat | 3, []uint64{0x7F80_0001, 0xFFC0_0000, 0x8000_0000, 1, 0x7F7F_FFFF}[v.r.IntN(5)]
	}
	return FlagFloat | 7, math.Float64bits(v.r.NormFloat64())
}

func integer(v int64) (uint8, uint64) {
	flags := integerLength(v)
	return flags, uint64(v) & (^uint64(0) >> (56 - 8*flags))
}

// double is a float as telnet stores it.
func double(v float64) (uint8, uint64) {
	if float64(float32(v)) == v {
		return FlagFloat | 3, uint64(math.Float32bits(float32(v)))
	}
	return FlagFloat | 7, math.Float64bits(v)
}

func equal(a, b Points) bool {
	return slices.Equal(a.Offset, b.Offset) && slices.Equal(a.Raw, b.Raw) && slices.Equal(a.Flags, b.Flags)
}
