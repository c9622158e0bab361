package picture

import (
	"time"

	"downpour/gateway/extra/graph/gnuformat"
)

// step is the time between two ticks: a number of seconds, which divides a day, or of days,
// months or years.
type step struct{ seconds, days, months int }

// The steps, from the shortest to the longest, each with into how many parts small ticks
// divide it.
var steps = []struct {
	step
	parts int
}{
	{step{seconds: 1}, 1}, {step{seconds: 2}, 2}, {step{seconds: 5}, 5},
	{step{seconds: 10}, 5}, {step{seconds: 15}, 3}, {step{seconds: 30}, 3},
	{step{seconds: 60}, 6}, {step{seconds: 120}, 4}, {step{seconds: 300}, 5},
	{step{seconds: 600}, 5}, {step{seconds: 900}, 3}, {step{seconds: 1800}, 3},
	{step{seconds: 3600}, 6}, {step{seconds: 7200}, 4}, {step{seconds: 10800}, 3},
	{step{seconds: 21600}, 6}, {step{seconds: 43200}, 4},
	{step{days: 1}, 4}, {step{days: 2}, 2}, {step{days: 7}, 7}, {step{days: 14}, 2},
	{step{months: 1}, 1}, {step{months: 2}, 2}, {step{months: 3}, 3}, {step{months: 6}, 6},
	{step{months: 12}, 4}, {step{months: 24}, 2}, {step{months: 60}, 5}, {step{months: 120}, 10},
	{step{months: 240}, 2}, {step{months: 600}, 5},
}

// length is about how many seconds a step has; a mean month has 2,629,746.
func (s step) length() int64 { return int64(s.seconds) + int64(s.days)*86400 + int64(s.months)*2629746 }

// mostTicks bounds the ticks below a picture.
const mostTicks = 2000

// timeTick is a mark below the picture.
type timeTick struct {
	ms    int64
	label string // "" for a small mark
}

// timeTicks returns the ticks from start to end, in ms, with at most so many labelled ones,
// at times that are round in the zone.
func timeTicks(start, end int64, zone *time.Location, most int, format *gnuformat.Time) []timeTick {
	if zone == nil {
		zone = time.UTC
	}
	chosen := steps[len(steps)-1]
	for _, s := range steps {
		if (end-start)/1000 <= s.length()*int64(most) {
			chosen = s
			break
		}
	}

	var ticks []timeTick
	for _, ms := range roundTimes(start, end, zone, chosen.step) {
		ticks = append(ticks, timeTick{ms, format.Format(time.UnixMilli(ms).In(zone))})
	}
	// Small ticks, without a label, divide the steps.
	for _, ms := range roundTimes(start, end, zone, chosen.part(chosen.parts)) {
		ticks = append(ticks, timeTick{ms: ms})
	}
	return ticks
}

// part returns a step of a part's length.
func (s step) part(parts int) step {
	switch {
	case s.months > 0:
		return step{months: max(1, s.months/parts)}
	case s.days > 1:
		return step{days: s.days / parts}
	case s.days == 1:
		return step{seconds: 86400 / parts}
	}
	return step{seconds: max(1, s.seconds/parts)}
}

// roundTimes returns the times from start to end, in ms, that a clock in the zone shows as a
// multiple of a step: of seconds since midnight, of days since a Sunday, of months
// since the year 0.
func roundTimes(start, end int64, zone *time.Location, s step) (out []int64) {
	from := time.UnixMilli(start).In(zone)
	year, month, day := from.Date()
	at := func(i int) time.Time { return time.Date(year, month, day, 0, 0, i*s.seconds, 0, zone) }
	switch {
	case s.months > 0:
		first := year*12 + int(month) - 1
		first -= first % s.months
		at = func(i int) time.Time { return time.Date(0, time.Month(first+i*s.months+1), 1, 0, 0, 0, 0, zone) }
	case s.days > 0:
		// Days are counted from Sunday 1970-01-04, so that weeks begin on Sundays.
		first := int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()/86400) - 3
		first -= (first%s.days + s.days) % s.days
		at = func(i int) time.Time { return time.Date(1970, 1, 4+first+i*s.days, 0, 0, 0, 0, zone) }
	default:
		// What is before start on its day is skipped at once.
		hour, minute, second := from.Clock()
		skipped := (hour*3600 + minute*60 + second) / s.seconds
		begin := at
		at = func(i int) time.Time { return begin(i + skipped) }
	}

	for i := 0; i < mostTicks; i++ {
		ms := at(i).UnixMilli()
		if ms > end {
			break
		}
		// Where clocks are turned, two of the times may be one.
		if ms >= start && (len(out) == 0 || ms > out[len(out)-1]) {
			out = append(out, ms)
		}
	}
	return out
}

// usualFormat returns the format of the times of a picture that has none. Source:
// Plot.xFormat.
func usualFormat(start, end int64) *gnuformat.Time {
	const day = 86400
	text := "%Y/%m/%d"
	switch seconds := (end - start) / 1000; {
	case seconds < 2100:
		text = "%H:%M:%S"
	case seconds < day:
		text = "%H:%M"
	case seconds < 7*day:
		text = "%a %H:%M"
	case seconds < 14*day:
		text = "%a %d %H:%M"
	case seconds < 90*day:
		text = "%b %d"
	}

	f, err := gnuformat.ParseTime(text)
	if err != nil {
		panic(err) // one of those above
	}
	return f
}
