package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"downpour/encoding"
)

// Age is how old rows may get, in seconds. Keep is for ever.
type Age int64

// Keep is the age of rows that never go.
const Keep Age = 0

// The word for Keep, and the bounds of any other age in seconds. Less than an hour would be
// less than one row, and a longer time than the second one is a mistake.
const (
	keepWord     = "keep"
	minAge   Age = encoding.RowSeconds
	maxAge   Age = 200 * 365 * 86_400
)

// units are the seconds of OpenTSDB's units of durations that are not shorter than a second,
// from the longest. Source: DateTime.parseDuration.
var units = []struct {
	name    string
	seconds Age
}{{"y", 365 * 86_400}, {"n", 30 * 86_400}, {"w", 7 * 86_400}, {"d", 86_400}, {"h", 3600}, {"m", 60}, {"s", 1}}

// ParseAge reads an age: a number and a unit, or keep. It is stricter than durations of
// queries, where OpenTSDB takes 1.5d for one day.
func ParseAge(text string) (Age, error) {
	if text == keepWord {
		return Keep, nil
	}

	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > math.MaxInt64/uint64(u.seconds) {
			break
		}
		age := Age(n) * u.seconds
		if age < minAge || age > maxAge {
			return 0, fmt.Errorf("got %q, want %s to %s, or keep", text, minAge, maxAge)
		}
		return age, nil
	}
	return 0, fmt.Errorf("got %q, want a number and s, m, h, d, w, n or y, such as 400d, or keep", text)
}

// String writes an age in the longest unit that it is a multiple of, except months.
func (a Age) String() string {
	if a == Keep {
		return keepWord
	}
	for _, u := range units {
		if u.name != "n" && a%u.seconds == 0 {
			return strconv.FormatInt(int64(a/u.seconds), 10) + u.name
		}
	}
	return ""
}

// lessThan says that rows of age a go before those of age b.
func (a Age) lessThan(b Age) bool { return a != Keep && (b == Keep || a < b) }

// Longest returns the age of rows that two rules cover.
func Longest(a, b Age) Age {
	if a.lessThan(b) {
		return b
	}
	return a
}

// Hour is the span of a row of points.
var Hour = encoding.RowSpan{Count: 1, Unit: "h"}

// Cut returns the base time from which on rows of a span stay at the time now, in seconds: a
// row goes if its base time is before. All that such a row can hold is then older than the age,
// because the whole span is. ok is false if no row goes.
//
// It is one more than the base time of the last row that goes, and not that of the next one: a
// row whose base time is none of a row's, which is in between, has younger times.
func (a Age) Cut(now int64, span encoding.RowSpan) (cut uint32, ok bool) {
	if a == Keep || now-int64(a) < 0 {
		return 0, false
	}

	// The row that is not wholly past. Before it is the last one that is.
	stays := span.BaseTime(now - int64(a))
	if stays == 0 {
		return 0, false
	}
	last := span.BaseTime(stays - 1) //fault:retention-an-hour-early TestAge_Cut
	return encoding.KeyTime(last + 1), true
}
