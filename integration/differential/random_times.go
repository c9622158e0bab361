package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// randomTimes sets start and end: often at a point, or 1 ms next to it, or on a round time.
func randomTimes(r *rand.Rand, d *Data, q *Query) {
	slow := slices.ContainsFunc(q.Subs, func(s Sub) bool { return s.slow(d) })
	span := int64(FineSpan)
	lengths := []int64{second, hour / 6, hour, hour, 2 * hour, 2 * hour, 3*hour + 7, 6 * hour, 8 * hour}
	if slow {
		span, lengths = SlowSpan, []int64{3 * hour, day, 7 * day, 20 * day, 45 * day, 80 * day}
	}
	start := d.Era*1000 - hour/2 + r.Int64N(span*3/4)
	if r.IntN(2) == 0 {
		s := pick(r, d.asked(q.Subs[0]))
		start = pick(r, s.Points).MS + pick(r, []int64{-1, 0, 0, 1})
	} else if r.IntN(3) == 0 {
		start = d.Era * 1000
	}
	end := start + pick(r, lengths)
	grain := pick(r, []int64{1, second, second, 60 * second, 300 * second, hour})
	start, end = start-start%grain, end-end%grain
	if r.IntN(6) == 0 {
		// On the hour, or the last time before it.
		end -= end % hour
		end -= pick(r, []int64{1, second, 0})
	}
	if end <= start && r.IntN(30) > 0 { // now and then such a range is requested
		end = start + second
	}
	q.Start, q.End = writeTime(r, start, q), writeTime(r, end, q)
}

// setTimes sets start and end to whole seconds, often to full hours or days. start lies at a
// point of any series, or within span of half an hour before the era.
func (q *Query) setTimes(r *rand.Rand, d *Data, span int64, lengths []int64) {
	start := d.Era*1000 - hour/2 + r.Int64N(span)
	if r.IntN(2) == 0 {
		start = pick(r, pick(r, d.Series).Points).MS + pick(r, []int64{-second, 0, 0, second})
	}
	end := start + pick(r, lengths)
	grain := pick(r, []int64{second, second, 600 * second, hour, day})
	start, end = start-start%grain, end-end%grain
	if end <= start {
		end = start + second
	}
	q.Start, q.End = writeTime(r, start, q), writeTime(r, end, q)
}

// writeTime writes ms in one of the forms that can hold it. A date is written in UTC; a query
// with a zone means another time by it, and both servers must read the same one.
func writeTime(r *rand.Rand, ms int64, q *Query) string {
	switch {
	case ms%second == 0 && r.IntN(8) == 0:
		return time.UnixMilli(ms).UTC().Format("2006/01/02-15:04:05")
	case ms%(60*second) == 0 && r.IntN(8) == 0:
		return time.UnixMilli(ms).UTC().Format("2006/01/02 15:04")
	case ms%second == 0 && r.IntN(2) == 0:
		return strconv.FormatInt(ms/second, 10)
	case r.IntN(8) == 0:
		return fmt.Sprintf("%d.%03d", ms/second, ms%second)
	case r.IntN(12) == 0:
		return strconv.FormatInt(ms, 10) + "ms"
	}
	return strconv.FormatInt(ms, 10)
}

// span is about how long the query's range is, ms.
func (q Query) span() int64 { return max(readTime(q.End)-readTime(q.Start), second) }

// readTime reads what writeTime writes, dates as UTC.
func readTime(text string) int64 {
	text = strings.TrimSuffix(text, "ms")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		// Seconds of all eras are below, their milliseconds are above.
		if n < 1<<33 {
			n *= second
		}
		return n
	}
	// readTime takes the fraction, three digits of ms, for seconds; the division undoes that.
	if whole, fraction, ok := strings.Cut(text, "."); ok {
		return readTime(whole) + readTime(fraction)/second
	}
	for _, layout := range []string{"2006/01/02-15:04:05", "2006/01/02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMilli()
		}
	}
	return 0
}

// maxBuckets bounds what a filled answer holds for each group.
const maxBuckets = 3000

var (
	fineIntervals = []string{"1s", "10s", "500ms", "1500ms", "30s", "1m", "1m", "5m", "5m", "7m", "90s", "13m",
		"1h", "1h", "2h", "5h", "1d", "0all", "all", "1mc", "5mc", "7mc", "1hc", "5hc", "7hc", "1dc", "1wc",
		"40sc"}
	slowIntervals = []string{"1h", "6h", "7h", "36h", "1d", "3d", "1w", "2w", "1n", "1y", "0all",
		"1dc", "3dc", "1wc", "2wc", "1nc", "2nc", "5nc", "1yc", "12hc", "7hc"}
	nominal = map[byte]int64{
		's': second, 'm': 60 * second, 'h': hour, 'd': day, 'w': 7 * day, 'n': 30 * day, 'y': 365 * day,
	}
)

func randomDownsample(r *rand.Rand, slow bool, span int64) string {
	if r.IntN(3) == 0 {
		return ""
	}
	intervals := fineIntervals
	if slow {
		intervals = slowIntervals
	}
	interval := pick(r, intervals)
	function := pick(r, aggregators)
	// As the function of a downsampler none is refused, and to ask that now and then is
	// enough. The usual functions come more often.
	if function == "none" && r.IntN(20) > 0 || r.IntN(3) == 0 {
		function = pick(r, []string{"avg", "sum", "max", "count"})
	}
	fill := pick(r, []string{"", "", "-none", "-nan", "-null", "-zero", "-NaN"})
	// All fill policies but none make a value for every bucket of the range.
	if (span+2*hour)/intervalMS(interval) > maxBuckets {
		fill = ""
	}
	return fmt.Sprintf("%s-%s%s", interval, function, fill)
}

// intervalMS is the nominal length of an interval.
func intervalMS(interval string) int64 {
	if strings.HasSuffix(interval, "all") {
		return 1 << 62
	}
	interval = strings.TrimSuffix(interval, "c")
	if n, ok := strings.CutSuffix(interval, "ms"); ok {
		count, _ := strconv.ParseInt(n, 10, 64)
		return count
	}
	count, _ := strconv.ParseInt(interval[:len(interval)-1], 10, 64)
	return count * nominal[interval[len(interval)-1]]
}
