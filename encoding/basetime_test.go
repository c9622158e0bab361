package encoding

import (
	"errors"
	"math"
	"testing"
)

// A base time is that of the hour, or refused: never one of another year.
func TestBaseTime(t *testing.T) {
	f := func(seconds int64, want uint32) {
		t.Helper()
		if got, err := BaseTime(seconds); err != nil || got != want {
			t.Errorf("BaseTime(%d) = %d, %v, want %d", seconds, got, err, want)
		}
		if got := KeyTime(Hour(seconds)); got != want {
			t.Errorf("KeyTime(Hour(%d)) = %d, want %d", seconds, got, want)
		}
	}
	f(0, 0)
	f(3599, 0)
	f(3600, 3600)
	f(1356998400, 1356998400)
	f(math.MaxUint32, 4294965600)
	for _, seconds := range []int64{-1, -3600, math.MinInt64, math.MaxUint32 + 1, 9999999999, math.MaxInt64} {
		var out *RangeError
		if got, err := BaseTime(seconds); !errors.As(err, &out) || out.Seconds != seconds {
			t.Errorf("BaseTime(%d) = %d, %v, want a RangeError", seconds, got, err)
		}
	}
	for seconds, want := range map[int64]uint32{-1: 0, math.MinInt64: 0, 5: 5, math.MaxUint32 + 1: math.MaxUint32,
		math.MaxInt64: math.MaxUint32} {
		if got := KeyTime(seconds); got != want {
			t.Errorf("KeyTime(%d) = %d, want %d", seconds, got, want)
		}
	}
}

// An annotation, too, is put at its time or refused.
func TestAnnotationKey_range(t *testing.T) {
	s := DefaultSchema()
	for start, ok := range map[int64]bool{0: false, -5: false, 1: true, math.MaxUint32: true,
		math.MaxUint32 + 1:        true, // the last one is in ms
		math.MaxUint32*1000 + 999: true, math.MaxUint32*1000 + 1000: false, math.MaxInt64: false} {
		if key, err := s.AppendAnnotationKey(nil, nil, start); (err == nil) != ok {
			t.Errorf("start %d: % X, %v, want a key: %v", start, key, err, ok)
		}
	}
}
