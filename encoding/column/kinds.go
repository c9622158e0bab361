package column

import (
	"encoding/binary"
	"math"
)

// Flags of a point: the last four bits of its qualifier, and whether that has the milliseconds form.
const (
	lengthMask = 0x07 // length of the value minus 1
	FlagFloat  = 0x08
	FlagMillis = 0x10
)

// Kinds of points.
const (
	shortInteger  = 0 // on the shortest length
	integer1      = 1
	integer8      = 4
	shortFloat    = 5 // on 4 bytes if nothing is lost, else on 8
	float4        = 6
	float8        = 7
	kindMask      = 0x07
	kindMillis    = 0x08
	kindGoesOn    = 0x80 // in a list of runs: the run's length follows, and another run
	undefinedBits = 0x70
)

// integerFlags are the flags of integers of kinds 1 to 4.
var integerFlags = [...]uint8{1: 0, 2: 1, 3: 3, 4: 7}

// run is a number of points of one kind.
type run struct {
	kind uint8
	n    int
}

func (r run) float() bool { return r.kind&kindMask >= shortFloat }

// exactKind returns the kind of exactly a point's flags, which are valid.
func exactKind(flags uint8) (kind uint8) {
	switch flags & (FlagFloat | lengthMask) {
	case 0:
		kind = integer1
	case 1:
		kind = integer1 + 1
	case 3:
		kind = integer1 + 2
	case 7:
		kind = integer8
	case FlagFloat | 3:
		kind = float4
	default:
		kind = float8
	}
	if flags&FlagMillis != 0 {
		kind |= kindMillis
	}
	return kind
}

// shortKind returns the kind by which a value decides on its length, and whether the point has that length.
func shortKind(flags uint8, raw uint64) (kind uint8, ok bool) {
	if flags&FlagFloat != 0 {
		kind, ok = shortFloat, flags&lengthMask == floatLength(doubleBits(flags, raw))
	} else {
		kind, ok = shortInteger, flags&lengthMask == integerLength(signed(flags, raw))
	}
	if flags&FlagMillis != 0 {
		kind |= kindMillis
	}
	return kind, ok
}

// signed returns the integer of a value's bytes.
func signed(flags uint8, raw uint64) int64 {
	shift := (56 - 8*uint(flags&lengthMask)) & 63
	return int64(raw<<shift) >> shift
}

// integerLength returns the shortest length of an integer, minus 1.
func integerLength(v int64) uint8 {
	switch {
	case v == int64(int8(v)):
		return 0
	case v == int64(int16(v)):
		return 1
	case v == int64(int32(v)):
		return 3
	}
	return 7
}

// floatLength returns the length, minus 1, of a double that has four bytes if nothing is lost by that.
func floatLength(bits uint64) uint8 {
	if v := math.Float64frombits(bits); float64(float32(v)) == v {
		return 3
	}
	return 7
}

// doubleBits returns the bits of a float's double. Those of a NaN are moved, because the processor would change
// some of them, and those of an infinity in the same way.
func doubleBits(flags uint8, raw uint64) uint64 {
	if flags&lengthMask == 7 {
		return raw
	}
	if raw&0x7F80_0000 == 0x7F80_0000 {
		return raw>>31<<63 | 0x7FF<<52 | raw&0x007F_FFFF<<29
	}
	return math.Float64bits(float64(math.Float32frombits(uint32(raw))))
}

// floatBits is the inverse of doubleBits for four bytes.
func floatBits(double uint64) uint64 {
	if double&(0x7FF<<52) == 0x7FF<<52 {
		return double>>63<<31 | 0x7F80_0000 | double>>29&0x007F_FFFF
	}
	return uint64(math.Float32bits(float32(math.Float64frombits(double))))
}

// runsOf divides points into runs of one kind, each as long as can be.
func runsOf(runs []run, flags []uint8, raw []uint64) []run {
	for at := 0; at < len(flags); {
		exact := exactKind(flags[at])
		short, isShort := shortKind(flags[at], raw[at])
		n, asShort := 1, 1
		for at+n < len(flags) && exactKind(flags[at+n]) == exact {
			n++
		}
		for isShort && at+asShort < len(flags) {
			if k, ok := shortKind(flags[at+asShort], raw[at+asShort]); k != short || !ok {
				break
			}
			asShort++
		}
		r := run{exact, n}
		if isShort && asShort >= n {
			r = run{short, asShort}
		}
		runs = append(runs, r)
		at += r.n
	}
	return runs
}

// appendRuns appends a list of runs.
func appendRuns(dst []byte, runs []run) []byte {
	last := len(runs) - 1
	for _, r := range runs[:last] {
		dst = binary.AppendUvarint(append(dst, r.kind|kindGoesOn), uint64(r.n))
	}
	return append(dst, runs[last].kind)
}

// eachRun calls f for the runs of n points at the start of b, and returns what follows them.
func eachRun(b []byte, n int, f func(run)) (rest []byte, err error) {
	for {
		kind, rest, err := cutByte(b)
		if err != nil {
			return b, err
		}
		if kind&undefinedBits != 0 {
			return b, errorOf("kind of points", kind)
		}
		if kind&kindGoesOn == 0 {
			f(run{kind, n})
			return rest, nil
		}
		length, rest, err := cutUvarint(rest)
		if err != nil {
			return b, err
		}
		if length == 0 || length >= uint64(n) {
			return b, errorOf("number of points of a kind", length)
		}
		f(run{kind &^ kindGoesOn, int(length)})
		n, b = n-int(length), rest
	}
}
