package query

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// parseDate parses a date. Its length alone decides the format. As in Java, month 13 is the
// next January, and what follows the last field is ignored.
// Source: DateTime.parseDateTimeString, java.text.SimpleDateFormat.
func (c clock) parseDate(text, zone string) (int64, error) {
	var layout string // the separators
	switch utf8.RuneCountInString(text) {
	case 10:
		layout = "//"
	case 16:
		layout = "// :"
	case 19:
		layout = "// ::"
	default:
		return 0, fmt.Errorf("Invalid absolute date: %s", text)
	}
	// A blank or a hyphen is between date and time.
	if strings.Contains(text, "-") {
		layout = strings.Replace(layout, " ", "-", 1)
	}

	loc := c.zone
	if loc == nil {
		loc = time.UTC
	}
	if zone != "" {
		z, ok := lookUpZone(zone)
		if !ok {
			return 0, fmt.Errorf("Invalid timezone name: %s", zone)
		}
		loc = z.location
	}

	f, ok := dateFields(text, layout)
	if !ok {
		return 0, fmt.Errorf("Invalid date: %s. Unparseable date: \"%s\"", text, text)
	}
	return wallTime(f, loc).UnixMilli(), nil
}

// dateFields parses the numbers between the separators of layout.
func dateFields(text, layout string) (f [6]int, ok bool) {
	for i := 0; ; i++ {
		// SimpleDateFormat skips blanks before a number and accepts a sign.
		text = strings.TrimLeft(text, " \t")
		digits := leadingDigits(text)
		if digits == "" && text != "" && text[0] == '-' {
			digits = text[:1+len(leadingDigits(text[1:]))]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			return f, false
		}

		f[i], text = n, text[len(digits):]
		if i == len(layout) {
			return f, true
		}
		if text == "" || text[0] != layout[i] {
			return f, false
		}
		text = text[1:]
	}
}

// wallTime returns the instant at which clocks in loc show year, month, day, hour, minute
// and second. If clocks show an hour twice it is the later one. A skipped time is counted
// from the time before the gap.
// Source: java.util.GregorianCalendar.
func wallTime(f [6]int, loc *time.Location) time.Time {
	asUTC := time.Date(f[0], time.Month(f[1]), f[2], f[3], f[4], f[5], 0, time.UTC)
	// A day earlier and a day later the offsets are those of either side of a change of clocks.
	before := asUTC.Add(-offset(asUTC.Add(-24*time.Hour), loc))
	after := asUTC.Add(-offset(asUTC.Add(24*time.Hour), loc))

	if after.Add(offset(after, loc)).Equal(asUTC) {
		return after // in an hour that is shown twice, the later instant
	}
	return before
}

func offset(t time.Time, loc *time.Location) time.Duration {
	_, seconds := t.In(loc).Zone()
	return time.Duration(seconds) * time.Second
}
