package column

import (
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"downpour/encoding/seedtest"
)

// What is encoded is decoded to the last bit, into whatever is behind it in a cell.
//
//fault:columns-lose-negative-zero !(x == 0 && c.words[i] != 0) => true
//fault:columns-without-patches dst[i] |= high => _ = high
func TestBlock_roundTrip(t *testing.T) {
	t.Parallel()
	var e Encoder
	var s Scratch
	var k Block
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		b := e.Append([]byte("before"), p)[6:]
		rest, err := k.Parse(append(slices.Clone(b), "behind"...))
		if err != nil || string(rest) != "behind" {
			t.Fatalf("rest %q, %v: % X of %v", rest, err, b, p)
		}
		var got Points
		if err := k.AppendTo(&got, &s); err != nil || !equal(got, p) {
			t.Fatalf("got %v, %v, want %v: % X", got, err, p, b)
		}
		integers := 0
		for _, f := range p.Flags {
			if f&FlagFloat == 0 {
				integers++
			}
		}
		if k.OnlyIntegers() != (integers == p.Len()) || k.OnlyFloats() != (integers == 0) {
			t.Fatalf("only integers: %v, only floats: %v, of %v", k.OnlyIntegers(), k.OnlyFloats(), p)
		}
		checkFused(t, &k, p)
	})
}

// checkFused compares what is computed from packed integers with what each point says.
func checkFused(t *rapid.T, k *Block, p Points) {
	if !k.OnlyIntegers() {
		return
	}
	from := rapid.IntRange(0, p.Len()-1).Draw(t, "from")
	to := rapid.IntRange(from+1, p.Len()).Draw(t, "to")
	sums := slices.Repeat([]uint64{99}, p.Len()+1)
	k.Integers.Sums(sums)
	sum, least, most := int64(0), int64(math.MaxInt64), int64(math.MinInt64)
	for i := from; i < to; i++ {
		v := signed(p.Flags[i], p.Raw[i])
		sum, least, most = sum+v, min(least, v), max(most, v)
		if k.Integers.Summable() && k.Integers.At(i) != v {
			t.Fatalf("integer %d is %d, want %d", i, k.Integers.At(i), v)
		}
	}
	if got := int64(sums[to] - sums[from]); got != sum {
		t.Fatalf("by sums, that of [%d, %d) is %d, want %d", from, to, got, sum)
	}
	for _, tight := range [][2]int64{{least + 1, math.MaxInt64}, {math.MinInt64, most - 1}} {
		if least < most && k.Integers.Within(tight[0], tight[1]) {
			t.Fatalf("integers are within %v, want %d to %d outside", tight, least, most)
		}
	}
	if !k.Integers.Summable() {
		return
	}
	if got := k.Integers.Sum(from, to); got != sum {
		t.Fatalf("sum of [%d, %d) is %d, want %d", from, to, got, sum)
	}
	if l, m := k.Integers.Bounds(from, to); l != least || m != most {
		t.Fatalf("[%d, %d) is between %d and %d, want %d and %d", from, to, l, m, least, most)
	}
	if k.Integers.Within(least, most) && from == 0 && to == p.Len() && (k.Integers.first != least) {
		t.Fatalf("the least integer is %d, want %d", k.Integers.first, least)
	}
}

// Sums of differences of every width are those of the integers that they lead to, however many there are.
func TestIntegers_sums(t *testing.T) {
	t.Parallel()
	r := seedtest.Rand(t)
	for w := range 20 {
		for _, n := range []int{9, 10, 17, 40, 360} {
			values := []int64{-1000}
			for len(values) < n {
				values = append(values, values[len(values)-1]+1<<40+r.Int64N(1<<w))
			}
			c, _, err := parseIntegers(appendIntegers(nil, values), n)
			if err != nil || c.form != differences {
				t.Fatalf("%d integers, %d bits: form %d, %v, want differences", n, w, c.form, err)
			}
			sums, sum := make([]uint64, n+1), int64(0)
			c.Sums(sums)
			for i, v := range values {
				sum += v
				if got := int64(sums[i+1]); got != sum {
					t.Fatalf("%d integers, %d bits: the sum of the first %d is %d, want %d", n, w, i+1, got, sum)
				}
			}
		}
	}
}

// Bounds that differences hold are those of the integers that they lead to, and differences that are far apart, or
// begin far away, have none.
func TestIntegers_within(t *testing.T) {
	t.Parallel()
	for _, first := range []int64{0, -5, 1 << 20} {
		for _, step := range []int64{100, -100, 1 << 30, -1 << 30, 1 << 41, math.MinInt64 / 50} {
			values := []int64{first}
			for i := int64(1); i < 40; i++ {
				values = append(values, first+i*step+i%2)
			}
			c, _, err := parseIntegers(appendIntegers(nil, values), len(values))
			if err != nil || c.form != differences {
				t.Fatalf("from %d by %d: form %d, %v, want differences", first, step, c.form, err)
			}
			least, most := slices.Min(values), slices.Max(values)
			if c.Within(least+1, math.MaxInt64) || c.Within(math.MinInt64, most-1) {
				t.Errorf("from %d by %d: within bounds that %d or %d breaks", first, step, least, most)
			}
			if near := max(step, -step) < 1<<40; c.Within(least-100, most+100) != near {
				t.Errorf("from %d by %d: within %d and %d is %v, want %v", first, step, least, most, !near, near)
			}
		}
	}
}

// Integers that have what they have more than the least one say of themselves what their bits say: that they are within
// the bounds of those, and no others. Integers that are computed with as they are packed are all that few bits hold.
func TestIntegers_withinBits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values      []int64
		least, most int64
		want        bool
	}{
		{[]int64{5, 5}, 5, 5, true}, {[]int64{5, 5}, 6, 9, false}, {[]int64{5, 5}, 1, 4, false},
		{[]int64{0, 7, 3}, 0, 7, true}, {[]int64{0, 7, 3}, 0, 6, false}, {[]int64{0, 7, 3}, 1, 7, false},
		{slices.Repeat([]int64{1<<32 - 1, 0, 1<<32 - 1}, 9), 0, 1<<32 - 1, true},
		{[]int64{-1 << 62, 1 << 62, 0}, -1 << 62, 0, false},
		{[]int64{math.MaxInt64 - 4, math.MaxInt64}, -1 << 53, 1 << 53, false},
	} {
		k, _, err := parseIntegers(appendIntegers(nil, c.values), len(c.values))
		if err != nil || k.form != fromLeast || !k.Summable() {
			t.Fatalf("%v: form %d, %v, summable: %v", c.values, k.form, err, k.Summable())
		}
		if got := k.Within(c.least, c.most); got != c.want {
			t.Errorf("%v: within %d and %d: %v, want %v", c.values, c.least, c.most, got, c.want)
		}
	}
	k, _, err := parseIntegers(appendIntegers(nil, []int64{0, 100, 250, 420}), 4)
	if err != nil || k.form == differences && k.Summable() {
		t.Errorf("form %d, %v, summable: %v", k.form, err, k.Summable())
	}
}

// A few floats that are no decimals take their place and their words, wherever they are; and decimals of the most
// digits take fewer bytes than words.
func TestFloats_exceptions(t *testing.T) {
	t.Parallel()
	column := func(exceptions ...int) *floatColumn {
		c := &floatColumn{size: 8}
		for i := range 360 {
			c.words = append(c.words, math.Float64bits(1000+float64(i%7)/100))
		}
		for _, i := range exceptions {
			c.words[i] = 0x7FF8_0000_0000_0001
		}
		return c
	}
	without := len(column().append(nil))
	for _, exceptions := range [][]int{{0}, {0, 1}, {15}, {14, 15, 16}, {100, 101}, {359}, {0, 15, 359}} {
		if got := len(column(exceptions...).append(nil)); got > without+10*len(exceptions) {
			t.Errorf("exceptions %v: %d bytes, %d without", exceptions, got, without)
		}
	}
	least := &floatColumn{size: 8}
	for i := range 100 {
		least.words = append(least.words, math.Float64bits(float64(i%9+1)/1e17))
	}
	if n := len(least.append(nil)); n > 200 {
		t.Errorf("100 decimals of 17 digits take %d bytes", n)
	}
}

// Floats of four bytes are kept as such, also those that are no numbers, and take few bytes where most are decimals.
func TestFloats_fourBytes(t *testing.T) {
	t.Parallel()
	r := seedtest.Rand(t)
	for n := 1; n < 80; n++ {
		var p, got Points
		for i := range n {
			raw := math.Float32bits(float32(r.IntN(40)) / 10)
			if i == n-1 || r.IntN(30) == 0 {
				raw = []uint32{0x7F80_0001, 0xFFC0_0000, 0x7FC0_1234}[r.IntN(3)]
			}
			p.Append(int32(i)*1000, FlagFloat|3, uint64(raw))
		}
		b := new(Encoder).Append(nil, p)
		k, _, err := Parse(b)
		if err == nil {
			err = k.AppendTo(&got, new(Scratch))
		}
		if err != nil || !equal(got, p) || k.Floats.Size() != 4 || len(b) > 30+2*n {
			t.Fatalf("%d floats: %v, %d bytes, words of %d: got %v, want %v", n, err, len(b), k.Floats.Size(), got, p)
		}
	}
}

// Sums of packed numbers of every width, where lanes are full, are those of the numbers.
//
//fault:columns-lanes-run-over loads == 1<<(w-1) => loads == 1<<(w+1)
func TestPacked_sum(t *testing.T) {
	t.Parallel()
	r := seedtest.Rand(t)
	for w := range maxWidth + 1 {
		numbers := make([]uint64, 3600)
		for i := range numbers {
			numbers[i] = 1<<w - 1 - uint64(r.IntN(2))&(1<<w-1)
		}
		p := packed{n: len(numbers), width: w, bits: appendBits(nil, numbers, w)}
		got := make([]uint64, len(numbers))
		if p.unpack(got); !slices.Equal(got, numbers) {
			t.Fatalf("%d bits: unpacked %v, want %v", w, got, numbers)
		}
		for i := range 80 {
			from := r.IntN(len(numbers))
			to := from + r.IntN(len(numbers)-from) + 1
			if i < 30 { // where fewer than eight bytes are left
				from, to = len(numbers)-i-1, len(numbers)
			}
			want := uint64(0)
			for _, v := range numbers[from:to] {
				want += v
			}
			if got := p.sum(from, to); got != want {
				t.Fatalf("%d bits, [%d, %d): %d, want %d", w, from, to, got, want)
			}
		}
	}
}

// Any byte that is another one is noticed.
//
//fault:columns-without-checksum crc32.Checksum(covered, castagnoli) != want => false && want > 0
func TestFlippedByte(t *testing.T) {
	t.Parallel()
	r := seedtest.Rand(t)
	var e Encoder
	for _, kind := range valueKinds {
		b := e.Append(nil, generate(r, 40, "gaps", []string{kind, kind}, "both"))
		for i := range b {
			for range 8 {
				damaged := slices.Clone(b)
				damaged[i] ^= byte(1 + r.IntN(255))
				if _, rest, err := Parse(append(damaged, "behind"...)); !errors.Is(err, ErrDamaged) {
					t.Fatalf("%s: byte %d of % X is %02X: %v, %d bytes left, want a damaged block",
						kind, i, b, damaged[i], err, len(rest))
				}
			}
		}
		for n := range b {
			if _, _, err := Parse(b[:n]); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s: the first %d bytes of %d: %v, want a damaged block", kind, n, len(b), err)
			}
		}
	}
}

// frozen are blocks as the package comment and the format page show them.
var frozen = []struct {
	name, hex string
	points    func() Points
}{
	{"six integers", "FF10 06 00 00000A 00D80403 88C602 4CAF9F2E", func() (p Points) {
		for i := range 6 {
			p.Append(int32(i)*10_000, 1, uint64(300+i))
		}
		return p
	}},
}

func TestFrozen(t *testing.T) {
	t.Parallel()
	var e Encoder
	for _, f := range frozen {
		want, err := hex.DecodeString(strings.ReplaceAll(f.hex, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Append(nil, f.points()); !slices.Equal(got, want) {
			t.Errorf("%s: % X, want % X", f.name, got, want)
		}
	}
}

// The bytes a point of usual kinds of values, at ten seconds.
func TestSizes(t *testing.T) {
	t.Parallel()
	var e Encoder
	for kind, most := range map[string]float64{
		"constant": 0.06, "walk": 1, "counter": 1.8, "small": 0.45, "percent": 1.35, "cents": 1.8,
		"float4": 4.1, "smooth": 7,
	} {
		r := rand.New(rand.NewPCG(1, 2))
		p := generate(r, 360, "even", []string{kind, kind}, "seconds")
		if got := float64(len(e.Append(nil, p))) / float64(p.Len()); got > most {
			t.Errorf("%s: %.2f bytes a point, want at most %v", kind, got, most)
		}
	}
}

// Blocks are no larger than they were: of the forms that columns may have, those are chosen that take the fewest bytes.
func TestSizes_total(t *testing.T) {
	t.Parallel()
	var e Encoder
	for kind, most := range map[string]int{
		"constant": 45210, "quarters": 42717, "walk": 48378, "counter": 61219, "small": 47063, "any": 123730,
		"extreme": 124023, "wide": 70859, "percent": 32449, "cents": 30799, "float4": 80755,
		"double": 127117, "nan": 123652, "smooth": 100818, "zeros": 40196,
	} {
		r, got := rand.New(rand.NewPCG(1, 2)), 0
		for _, times := range []string{"even", "gaps", "jitter", "any"} {
			for _, form := range []string{"seconds", "milliseconds", "both"} {
				for _, n := range []int{1, 2, 5, 30, 360} {
					for _, some := range []string{kind, "any", "nan"} {
						got += len(e.Append(nil, generate(r, n, times, []string{kind, some}, form)))
					}
				}
			}
		}
		if got > most {
			t.Errorf("%s: %d bytes in all, want at most %d", kind, got, most)
		}
	}
}

// Of two forms that take the same bytes, numbers get the one whose sums are computed while they are packed.
func TestBestWidth_sameSize(t *testing.T) {
	if width, size := bestWidth([]uint64{0, 1<<13 - 1}); width != 13 || size != 5 {
		t.Errorf("got width %d and %d bytes, want 13 and 5: all bits of both numbers", width, size)
	}
}
