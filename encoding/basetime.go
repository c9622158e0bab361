package encoding

import (
	"fmt"
	"math"
	"time"
)

// MaxTime is the last time, in seconds, that a row can hold: its base time has four bytes.
const MaxTime = math.MaxUint32

// RangeError is returned for a time that no row can hold.
type RangeError struct{ Seconds int64 }

// Error says which times rows can hold.
func (e *RangeError) Error() string {
	return fmt.Sprintf("got the time %d s, want 0 to %d (%s)", e.Seconds, int64(MaxTime),
		time.Unix(MaxTime, 0).UTC().Format(time.RFC3339))
}

// BaseTime is the base time of the row that holds a time, both in seconds. The error is a
// *RangeError: OpenTSDB drops the upper bits of such a time and stores the point in another
// year, in a row whose base time is no full hour. Source: Internal.baseTime.
func BaseTime(seconds int64) (uint32, error) {
	if seconds < 0 || seconds > MaxTime {
		return 0, &RangeError{seconds}
	}
	return uint32(seconds - seconds%RowSeconds), nil
}

// KeyTime is a time in seconds as a bound of row keys: times before 1970 become 0, and those too
// large for a key become the largest that it holds.
func KeyTime(seconds int64) uint32 { return uint32(min(max(seconds, 0), MaxTime)) }

// Hour is the beginning of the hour that holds a time of at least 0, both in seconds.
func Hour(seconds int64) int64 { return seconds - seconds%RowSeconds }

// OffHour reports whether a base time is not a full hour, which no writer intends. Such rows hold
// points of times after 2106, which OpenTSDB has written without the upper bits of their times.
func OffHour(baseTime uint32) bool { return baseTime%RowSeconds != 0 }
