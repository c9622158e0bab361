package pebble

import (
	"bytes"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"pgregory.net/rapid"
)

// putValue is a Put as stored.
func putValue(ms int64, v []byte) []byte {
	stored := make([]byte, putHeader, putHeader+len(v))
	fillPut(stored, ms)
	return append(stored, v...)
}

// join runs the merger, from the youngest or from the oldest operand.
func join(t interface {
	Helper()
	Fatal(...any)
}, operands [][]byte, older bool) []byte {
	t.Helper()
	first, rest := operands[0], operands[1:]
	if older {
		first, rest = operands[len(operands)-1], operands[:len(operands)-1]
	}
	m, err := newJoiner(nil, first)
	for i := range rest {
		if err == nil && older {
			err = m.MergeOlder(rest[len(rest)-1-i])
		} else if err == nil {
			err = m.MergeNewer(rest[i])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	got, closer, err := m.Finish(true)
	if err != nil {
		t.Fatal(err)
	}
	got = bytes.Clone(got)
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	return got
}

// However pebble groups operands, from either end, the result is the same.
//
//fault:sealed-length-lost appendSealedHeader(header[:0], j.oldest.sealed) => appendSealedHeader(header[:0], 0)
func TestJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 1, 20).Draw(t, "values")
		var operands [][]byte
		for _, v := range values {
			operands = append(operands, append([]byte{tagAppend}, v...))
		}
		want := append([]byte{tagAppend}, bytes.Join(values, nil)...)
		switch rapid.SampledFrom([]byte{tagAppend, tagPut, tagSealed}).Draw(t, "first") {
		case tagPut:
			if operands[0] = putValue(1297574486000, values[0]); len(operands) == 1 {
				want = operands[0]
			}
		case tagSealed:
			sealed := rapid.IntRange(0, len(values[0])).Draw(t, "sealed")
			operands[0] = append(appendSealedHeader(nil, sealed), values[0]...)
			want = append(appendSealedHeader(nil, sealed), bytes.Join(values, nil)...)
		}
		for len(operands) > 1 { // compactions join neighbours before the end
			at := rapid.IntRange(0, len(operands)-1).Draw(t, "from")
			to := rapid.IntRange(at+1, len(operands)).Draw(t, "to")
			part := join(t, operands[at:to], rapid.Bool().Draw(t, "older"))
			operands = append(append(operands[:at:at], part), operands[to:]...)
		}
		if got := join(t, operands, true); !bytes.Equal(got, want) {
			t.Fatalf("got %x, want %x", got, want)
		}
	})
}

// Ten thousand operands cost a handful of allocations: the buffer doubles.
func TestJoinIsLinear(t *testing.T) {
	operand := append([]byte{tagAppend}, "0123456789"...)
	for _, older := range []bool{true, false} {
		n := testing.AllocsPerRun(3, func() {
			m, _ := newJoiner(nil, operand)
			for range 10_000 {
				if older {
					_ = m.MergeOlder(operand)
				} else {
					_ = m.MergeNewer(operand)
				}
			}
			if v, _, _ := m.Finish(true); len(v) != 1+10*10_001 {
				t.Fatalf("%d bytes, want those of all operands", len(v))
			}
		})
		if n > 40 {
			t.Errorf("older %v: %v allocations, want at most 40", older, n)
		}
	}
}

func TestBadOperands(t *testing.T) {
	good := []byte{tagAppend, 'x'}
	put, sealed := putValue(1, nil), append(appendSealedHeader(nil, 1), 'x')
	for name, f := range map[string]func(pebble.ValueMerger) error{
		"empty operand":    func(m pebble.ValueMerger) error { return m.MergeOlder(nil) },
		"unknown tag":      func(m pebble.ValueMerger) error { return m.MergeNewer([]byte{2, 3}) },
		"short put":        func(m pebble.ValueMerger) error { return m.MergeOlder(put[:6]) },
		"younger put":      func(m pebble.ValueMerger) error { return m.MergeNewer(put) },
		"younger columns":  func(m pebble.ValueMerger) error { return m.MergeNewer(sealed) },
		"columns cut":      func(m pebble.ValueMerger) error { return m.MergeOlder(sealed[:len(sealed)-1]) },
		"columns unmarked": func(m pebble.ValueMerger) error { return m.MergeOlder([]byte{tagSealed, 1, 0}) },
		"marked put":       func(m pebble.ValueMerger) error { return m.MergeOlder([]byte{tagPut, sealedMark, 0}) },
		"a mark alone":     func(m pebble.ValueMerger) error { return m.MergeOlder([]byte{tagSealed, sealedMark}) },
		"a length cut": func(m pebble.ValueMerger) error {
			return m.MergeOlder([]byte{tagSealed, sealedMark, 0x80})
		},
		"older than columns": func(m pebble.ValueMerger) error {
			if err := m.MergeOlder(sealed); err != nil {
				t.Fatal(err)
			}
			return m.MergeOlder(good)
		},
		"older than a put": func(m pebble.ValueMerger) error {
			if err := m.MergeOlder(put); err != nil {
				t.Fatal(err)
			}
			return m.MergeOlder(good)
		},
	} {
		m, err := newJoiner(nil, good)
		if err != nil {
			t.Fatal(err)
		}
		if f(m) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := newJoiner(nil, []byte{9}); err == nil {
		t.Error("first operand with an unknown tag: no error")
	}
}

func TestWriteTime(t *testing.T) {
	now := func() time.Time { return time.UnixMilli(1297574486123) }
	for ms, want := range map[int64]int64{0: 1297574486123, 1: 1, maxMillis: maxMillis} {
		got, err := writeTime(ms, now)
		if err != nil || got != want {
			t.Errorf("%d: %d, %v, want %d", ms, got, err, want)
		}
		if v, err := parseValue(putValue(got, []byte("v"))); v.ms != want || string(v.bytes) != "v" || err != nil {
			t.Errorf("%d: read back %+v, %v", ms, v, err)
		}
	}
	for _, ms := range []int64{-1, maxMillis + 1} {
		if _, err := writeTime(ms, now); err == nil {
			t.Errorf("%d: no error", ms)
		}
	}
}
