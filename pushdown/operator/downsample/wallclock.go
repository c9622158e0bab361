package downsample

import "time"

// wallClock converts local times as Java's GregorianCalendar does, which decides where
// buckets are on days on which clocks change. Times are ms since 1970.
type wallClock struct{ zone *time.Location }

const dayMillis = 86_400_000

// wallTime is a local time. Fields may be out of range: they carry over.
type wallTime struct{ year, month, day, hour, minute, second, ms int }

// local returns the time as ms since 1970-01-01 00:00 local time.
func (w wallTime) local() int64 {
	return time.Date(w.year, time.Month(w.month), w.day, w.hour, w.minute, w.second, w.ms*1e6, time.UTC).UnixMilli()
}

// weekday returns the day of the week; Sunday is 0.
func (w wallTime) weekday() int {
	return int(time.Date(w.year, time.Month(w.month), w.day, 0, 0, 0, 0, time.UTC).Weekday())
}

// offset returns local time minus UTC at an instant, in ms.
func (c wallClock) offset(t int64) int64 {
	_, seconds := time.UnixMilli(t).In(c.zone).Zone()
	return int64(seconds) * 1000
}

// wall returns the local time at an instant.
func (c wallClock) wall(t int64) wallTime {
	l := time.UnixMilli(t).In(c.zone)
	return wallTime{l.Year(), int(l.Month()), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond() / 1e6}
}

// instant returns when clocks show a local time. A time that they skip is converted
// with the offset before the change, and so moves forward. A time that they show twice
// is the later instant. Source: sun.util.calendar.ZoneInfo.getOffsetsByWall.
func (c wallClock) instant(w wallTime) int64 {
	local := w.local()

	// No zone is more than 16 hours behind UTC, so the search begins after the time. It
	// goes back to the last change of clocks that is not after the local time.
	for t := time.UnixMilli(local).Add(16 * time.Hour).In(c.zone); ; {
		_, seconds := t.Zone()
		offset := int64(seconds) * 1000
		change, _ := t.ZoneBounds()
		if change.IsZero() || change.UnixMilli()+offset <= local {
			return local - offset
		}
		t = change.Add(-time.Nanosecond)
	}
}

// add adds n units, weeks, days, months or years, on the calendar. The local time of
// day stays, unless clocks skip it: then it moves forward, and further steps start from
// there. Source: GregorianCalendar.add.
func (c wallClock) add(t int64, unit string, n int) int64 {
	switch unit {
	case "w":
		return c.addDays(t, 7*n)
	case "d":
		return c.addDays(t, n)
	case "n":
		return c.addMonths(t, n)
	}
	return c.addMonths(t, 12*n)
}

// addDays adds n days.
func (c wallClock) addDays(t int64, n int) int64 {
	offset := c.offset(t)
	local := t + offset + int64(n)*dayMillis
	t = local - offset

	// If the offset has changed, the local time is corrected by the difference, unless
	// that leads to another day.
	if adjusted := t + offset - c.offset(t); day(adjusted+c.offset(adjusted)) == day(local) {
		return adjusted
	}
	return t
}

// day numbers the local days.
func day(local int64) int64 { return (local - (local%dayMillis+dayMillis)%dayMillis) / dayMillis }

// addMonths adds n months. Buckets of months begin on the first day of one, or on the second where
// clocks skip the first: every month has that day.
func (c wallClock) addMonths(t int64, n int) int64 {
	w := c.wall(t)
	months := w.year*12 + w.month - 1 + n
	w.year, w.month = months/12, months%12+1
	return c.instant(w)
}
